use super::*;
use arrow_array::types::Int8Type;
use arrow_array::{
    BooleanArray, DictionaryArray, FixedSizeListArray, Int32Array, Int64Array, LargeStringArray,
    ListArray, StringArray, StringViewArray, TimestampMillisecondArray, UInt16Array,
};
use azulejo_format::schema::Enumeration;
use proptest::prelude::*;
use std::sync::Arc;

fn batch(array: impl Array + 'static) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("a", Arc::new(array) as ArrayRef, true)]).unwrap()
}

fn import(kind: ColumnType, array: impl Array + 'static) -> Result<ColumnBuffers> {
    Ok(ArrowImporter::new([kind])
        .convert(&batch(array))?
        .columns
        .remove(0))
}

fn cells(column: &ColumnBuffers) -> Vec<Option<Vec<u8>>> {
    column
        .cells()
        .map(|cell| cell.map(<[u8]>::to_vec))
        .collect()
}

proptest! {
    /// What the parent module exports comes back, as people want it and raw.
    #[test]
    fn columns_come_back(
        datatype in 0u8..44,
        shape in 0u32..4,
        nullable in any::<bool>(),
        values in proptest::collection::vec((any::<bool>(), proptest::collection::vec(0u8..100, 0..4)), 0..20),
        slice in 0usize..3,
    ) {
        let datatype = Datatype::from_id(datatype, 0).unwrap();
        let cell_val_num = match shape {
            0 => CellValNum::Var,
            n => CellValNum::Fixed(n),
        };
        let mut kind = ColumnType::new("a", datatype).with_cell_val_num(cell_val_num);
        if nullable {
            kind = kind.with_nulls();
        }
        let mut column = ColumnBuilder::new(kind.clone());
        for (valid, bytes) in &values {
            let size = datatype.size();
            let count = match cell_val_num { CellValNum::Var => bytes.len(), CellValNum::Fixed(n) => n as usize };
            let bool = datatype == Datatype::Bool;
            let cell: Vec<u8> = (0..count)
                .flat_map(|i| {
                    let byte = bytes.get(i).copied().unwrap_or(7) % if bool { 2 } else { 100 };
                    std::iter::once(byte).chain(std::iter::repeat_n(0, size - 1))
                })
                .collect();
            column.append_cell(&cell, *valid || !nullable);
        }
        let column = column.finish();
        let set = ColumnSet { cell_num: column.cell_num, columns: vec![column.clone()] };
        for raw in [false, true] {
            let exported = set.to_record_batch(ArrowOptions::new().raw(raw));
            let Ok(exported) = exported else { continue };
            let start = slice.min(exported.num_rows());
            let exported = exported.slice(start, exported.num_rows() - start);
            let back = ArrowImporter::new([kind.clone()]).convert(&exported).unwrap();
            back.columns[0].validate().unwrap();
            let expected: Vec<_> = cells(&column).split_off(start);
            prop_assert_eq!(cells(&back.columns[0]), expected, "raw {}", raw);
        }
    }
}

#[test]
fn lists_of_truth_values_are_bytes() {
    let field = || Arc::new(arrow_schema::Field::new("item", DataType::Boolean, true));
    let bits = || Arc::new(BooleanArray::from(vec![true, true, false, true]));
    let kind = |num| ColumnType::new("a", Datatype::Bool).with_cell_val_num(num);
    let ends = arrow_buffer::OffsetBuffer::from_lengths([1, 2, 0, 1]);
    let list = ListArray::new(field(), ends, bits(), None);
    let column = import(kind(CellValNum::Var), list.slice(1, 3)).unwrap();
    let expected = [vec![1, 0], vec![], vec![1]].map(Some);
    assert_eq!(cells(&column), expected);
    let pairs = FixedSizeListArray::new(field(), 2, bits(), None);
    let column = import(kind(CellValNum::Fixed(2)), pairs.slice(1, 1)).unwrap();
    assert_eq!(cells(&column), [Some(vec![0, 1])]);
    let wide = ColumnType::new("a", Datatype::Int32).with_cell_val_num(CellValNum::Var);
    assert!(import(wide, list).is_err());
}

#[test]
fn truth_values_are_indices_of_labels_that_there_are() {
    let mut kind = ColumnType::new("a", Datatype::UInt8);
    let label = Enumeration::of_strings("e", Datatype::StringUtf8, false, ["no"]).unwrap();
    kind.enumeration = Some(Arc::new(label));
    let of = |values: Vec<bool>| import(kind.clone(), BooleanArray::from(values));
    assert_eq!(cells(&of(vec![false]).unwrap()), [Some(vec![0])]);
    assert!(of(vec![false, true]).is_err());
}

#[test]
fn times_change_their_unit_or_fail() {
    let millis =
        || TimestampMillisecondArray::from(vec![Some(86_400_000), None, Some(-172_800_000)]);
    let kind = |datatype| ColumnType::new("a", datatype).with_nulls();
    let ticks =
        |datatype| import(kind(datatype), millis()).map(|c| c.values::<i64>().unwrap().to_vec());
    assert_eq!(ticks(Datatype::DateTimeDay).unwrap(), [1, 0, -2]);
    assert_eq!(
        ticks(Datatype::DateTimeNano).unwrap()[0],
        86_400_000_000_000
    );
    assert_eq!(ticks(Datatype::Int64).unwrap()[0], 86_400_000);
    let error = ticks(Datatype::DateTimeWeek).unwrap_err().to_string();
    assert!(
        error.contains("cell 0") && error.contains("DATETIME_WEEK"),
        "{error}"
    );
    assert!(matches!(
        ticks(Datatype::TimeSecond),
        Err(Error::SchemaMismatch(_))
    ));
    assert!(matches!(
        ticks(Datatype::Int32),
        Err(Error::SchemaMismatch(_))
    ));
    let february = TimestampMillisecondArray::from(vec![31 * 86_400_000i64]);
    let month = import(kind(Datatype::DateTimeMonth), february.clone()).unwrap();
    assert_eq!(month.values::<i64>(), Some(&[1][..]));
    assert!(import(kind(Datatype::DateTimeYear), february).is_err());
}

#[test]
fn texts_of_a_fixed_length_are_filled_up() {
    let kind = |datatype| ColumnType::new("a", datatype).with_cell_val_num(CellValNum::Fixed(3));
    let texts = || StringViewArray::from(vec!["ab", "abc", ""]);
    for datatype in [Datatype::Char, Datatype::StringAscii, Datatype::StringUtf8] {
        let column = import(kind(datatype), texts()).unwrap();
        assert_eq!(column.data.as_slice(), b"ab\0abc\0\0\0");
        let set = ColumnSet::of([column]).unwrap();
        let shown = |options: ArrowOptions| set.to_record_batch(options).unwrap().remove_column(0);
        let trimmed = ArrowOptions::new().trimmed(true);
        assert_eq!(
            &shown(trimmed.views(true)),
            &(Arc::new(texts()) as ArrayRef)
        );
        let trimmed = shown(trimmed);
        let expected = LargeStringArray::from(vec!["ab", "abc", ""]);
        assert_eq!(trimmed.as_string::<i64>(), &expected);
        let whole = shown(ArrowOptions::new());
        assert_eq!(whole.as_string::<i64>().value(0), "ab\0");
    }
    let long = import(kind(Datatype::Char), StringArray::from(vec!["abcd"]));
    assert!(long.unwrap_err().to_string().contains("has 4 bytes"));
    let bytes = arrow_array::BinaryArray::from(vec![&b"ab"[..]]);
    assert!(import(kind(Datatype::Blob), bytes).is_err());
}

#[test]
fn labels_become_indices() {
    let enumeration =
        Enumeration::of_strings("e", Datatype::StringUtf8, false, ["x", "yy", ""]).unwrap();
    let kind = ColumnType {
        enumeration: Some(Arc::new(enumeration)),
        ..ColumnType::new("a", Datatype::UInt16)
    };
    let nullable = kind.clone().with_nulls();
    let keys = |column: ColumnBuffers| column.values::<u16>().unwrap().to_vec();
    let dictionary: DictionaryArray<Int8Type> = vec![Some("yy"), None, Some("x"), Some("yy")]
        .into_iter()
        .collect();
    let column = import(nullable.clone(), dictionary.clone()).unwrap();
    assert_eq!(column.validity.as_deref(), Some(&[1, 0, 1, 1][..]));
    assert_eq!(keys(column), [1, 0, 0, 1]);
    assert!(
        import(kind.clone(), dictionary)
            .unwrap_err()
            .to_string()
            .contains("cell 1 is null")
    );
    assert_eq!(
        keys(import(kind.clone(), StringArray::from(vec!["", "x"])).unwrap()),
        [2, 0]
    );
    assert_eq!(
        keys(import(kind.clone(), StringViewArray::from(vec!["yy"])).unwrap()),
        [1]
    );
    assert_eq!(
        keys(import(kind.clone(), UInt16Array::from(vec![2, 1])).unwrap()),
        [2, 1]
    );
    let error = import(kind, LargeStringArray::from(vec!["x", "nope"]))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("cell 1") && error.contains("\"nope\"") && error.contains("\"e\""),
        "{error}"
    );

    let data = [10i32, 20].iter().flat_map(|v| v.to_le_bytes()).collect();
    let numbers =
        Enumeration::of_fixed("n", Datatype::Int32, CellValNum::ONE, false, data).unwrap();
    let kind = ColumnType {
        enumeration: Some(Arc::new(numbers)),
        ..ColumnType::new("a", Datatype::UInt16)
    };
    let keys_array = arrow_array::Int8Array::from(vec![1, 0, 1]);
    let dictionary =
        DictionaryArray::<Int8Type>::new(keys_array, Arc::new(Int32Array::from(vec![20, 10])));
    assert_eq!(keys(import(kind, dictionary).unwrap()), [0, 1, 0]);
}

/// Categories of pandas' that no row has, and values of which all cells are null.
#[test]
fn entries_that_no_cell_has_need_no_label() {
    let mut kind = ColumnType::new("a", Datatype::Int8).with_nulls();
    let labels = Enumeration::of_strings("e", Datatype::StringUtf8, false, ["lo", "hi"]).unwrap();
    kind.enumeration = Some(Arc::new(labels));
    let of = |keys: Vec<Option<i8>>| {
        let keys = arrow_array::Int8Array::from(keys);
        let values = StringArray::from(vec!["no", "hi", "lo"]);
        import(kind.clone(), DictionaryArray::new(keys, Arc::new(values)))
    };
    let found = of(vec![Some(2), Some(1), None]).unwrap();
    assert_eq!(cells(&found), [Some(vec![0]), Some(vec![1]), None]);
    let error = of(vec![Some(1), None, Some(0)]).unwrap_err().to_string();
    assert!(error.contains("cell 2 is \"no\""), "{error}");

    // The same for values of a fixed length.
    let keys = arrow_array::Int8Array::from(vec![1, 1]);
    let values: ArrayRef = Arc::new(StringArray::from(vec!["too long", "ab"]));
    let kind = ColumnType::new("a", Datatype::StringAscii).with_cell_val_num(CellValNum::Fixed(2));
    let found = import(kind, DictionaryArray::new(keys, values)).unwrap();
    assert_eq!(cells(&found), vec![Some(b"ab".to_vec()); 2]);
}

#[test]
fn numbers_are_indices_of_labels_that_there_are() {
    let mut kind = ColumnType::new("a", Datatype::Int8).with_nulls();
    let labels = Enumeration::of_strings("e", Datatype::StringUtf8, false, ["lo", "hi"]).unwrap();
    kind.enumeration = Some(Arc::new(labels));
    let import =
        |values: Vec<Option<i8>>| import(kind.clone(), arrow_array::Int8Array::from(values));
    let found = import(vec![Some(1), None, Some(0)]).unwrap();
    assert_eq!(cells(&found), [Some(vec![1]), None, Some(vec![0])]);
    for wrong in [2, -1] {
        let error = import(vec![Some(0), Some(wrong)]).unwrap_err().to_string();
        assert!(
            error.contains("cell 1 is no index of the 2 labels"),
            "{error}"
        );
    }
}

#[test]
fn dictionaries_of_plain_fields_are_decoded() {
    let dictionary: DictionaryArray<Int8Type> = vec!["b", "a", "b"].into_iter().collect();
    let kind = ColumnType::new("a", Datatype::StringAscii).with_cell_val_num(CellValNum::Var);
    let column = import(kind, dictionary).unwrap();
    assert_eq!(
        column
            .strings()
            .map(|s| s.unwrap().unwrap().to_owned())
            .collect::<Vec<_>>(),
        ["b", "a", "b"]
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let kind = ColumnType::new("a", Datatype::Int32);
    let refused = import(kind.clone(), Int64Array::from(vec![1])).unwrap_err();
    assert!(
        matches!(&refused, Error::SchemaMismatch(m) if m.contains("Int64") && m.contains("INT32")),
        "{refused}"
    );
    let nulls = import(kind.clone(), Int32Array::from(vec![Some(1), None])).unwrap_err();
    assert!(nulls.to_string().contains("cell 1 is null"), "{nulls}");
    assert!(import(kind.clone(), StringArray::from(vec!["1"])).is_err());
    let other = ColumnType::new("b", Datatype::Int32);
    assert!(matches!(
        import(other, Int32Array::from(vec![1])),
        Err(Error::SchemaMismatch(_))
    ));
    let fixed = ColumnType::new("a", Datatype::StringAscii).with_cell_val_num(CellValNum::Fixed(2));
    assert_eq!(
        cells(&import(fixed.clone(), StringArray::from(vec!["ab"])).unwrap()),
        [Some(b"ab".to_vec())]
    );
    assert!(
        import(fixed, StringArray::from(vec!["ab", "abc"]))
            .unwrap_err()
            .to_string()
            .contains("cell 1 has 3")
    );
    assert!(import(kind.with_nulls(), arrow_array::NullArray::new(2)).is_ok());
    let moments = ColumnType::new("a", Datatype::DateTimeMilli);
    let none = import(moments, arrow_array::NullArray::new(2)).unwrap();
    assert_eq!(none.values::<i64>(), Some(&[i64::MIN; 2][..]));
}

#[test]
fn what_is_no_time_needs_no_nulls() {
    let array = TimestampMillisecondArray::from(vec![Some(86_400_000), None, Some(i64::MIN)]);
    for (datatype, tick) in [
        (Datatype::DateTimeDay, 1),
        (Datatype::DateTimeMilli, 86_400_000),
        (Datatype::DateTimeNano, 86_400_000_000_000),
    ] {
        let column = import(ColumnType::new("a", datatype), array.clone()).unwrap();
        let ticks = [tick, i64::MIN, i64::MIN].map(i64::to_le_bytes);
        assert_eq!(column.data.as_slice(), ticks.as_flattened());
        assert!(column.validity.is_none());
        let nullable = import(ColumnType::new("a", datatype).with_nulls(), array.clone()).unwrap();
        assert_eq!(nullable.validity.unwrap().as_slice(), [1, 0, 1]);
    }
    // What is exported comes back.
    let day = ColumnBuffers {
        column_type: ColumnType::new("a", Datatype::DateTimeDay),
        ..ColumnBuffers::of_values("a", vec![3i64, i64::MIN])
    };
    let set = ColumnSet::of([day]).unwrap();
    let exported = set.to_record_batch(ArrowOptions::default()).unwrap();
    let importer = ArrowImporter::new([set.columns[0].column_type.clone()]);
    assert_eq!(importer.convert(&exported).unwrap(), set);
    for nullable in [false, true] {
        let kind = ColumnType::new("a", Datatype::DateTimeDay);
        let kind = kind.with_cell_val_num(CellValNum::Fixed(2));
        let kind = if nullable { kind.with_nulls() } else { kind };
        let days = [3, i64::MIN, i64::MIN, 4].map(i64::to_le_bytes);
        let days = days.as_flattened().to_vec();
        let validity = nullable.then(|| vec![1, 1]);
        let days = ColumnBuffers::of_raw(kind.clone(), days, None, validity).unwrap();
        let set = ColumnSet::of([days]).unwrap();
        let exported = set.to_record_batch(ArrowOptions::default()).unwrap();
        assert_eq!(
            ArrowImporter::new([kind]).convert(&exported).unwrap(),
            set,
            "{nullable}"
        );
    }
    // Of numbers there is no such value.
    let numbers = import(
        ColumnType::new("a", Datatype::DateTimeDay),
        Int64Array::from(vec![None]),
    );
    assert!(numbers.unwrap_err().to_string().contains("cell 0 is null"));
}
