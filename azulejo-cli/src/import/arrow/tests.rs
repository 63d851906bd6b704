use super::*;
use arrow_array::{
    BooleanArray, Date32Array, Decimal128Array, DictionaryArray, FixedSizeListArray, Float64Array,
    Int32Array, Int64Array, LargeStringArray, ListArray, StringArray, TimestampMicrosecondArray,
    TimestampSecondArray, UInt8Array,
};
use azulejo::format::schema::Enumeration;
use std::collections::HashMap;
use std::sync::Arc;

fn read(
    array: impl Array + 'static,
    column_type: ColumnType,
) -> Result<Vec<Option<Vec<u8>>>, String> {
    let array: ArrayRef = Arc::new(array);
    let read = column(&array, &Target::new(column_type, 0, false))
        .map_err(|e| format!("{}: {}", e.row, e.reason))?;
    read.validate().unwrap();
    Ok(read.cells().map(|cell| cell.map(<[u8]>::to_vec)).collect())
}

fn ticks(array: impl Array + 'static, datatype: Datatype) -> Result<Vec<i64>, String> {
    let cells = read(array, ColumnType::new("x", datatype))?;
    Ok(cells
        .iter()
        .map(|c| i64::from_le_bytes(c.as_deref().unwrap().try_into().unwrap()))
        .collect())
}

#[test]
fn numbers_are_shared_or_converted_or_refused() {
    let array: ArrayRef = Arc::new(Int32Array::from(vec![1, -2, 3]).slice(1, 2));
    let target = Target::new(ColumnType::new("x", Datatype::Int32), 0, false);
    let read_column = column(&array, &target).unwrap();
    assert_eq!(
        read_column.data.as_ptr(),
        array.as_primitive::<Int32Type>().values().as_ptr().cast()
    );
    assert_eq!(read_column.values::<i32>(), Some(&[-2, 3][..]));
    let int8 = || ColumnType::new("x", Datatype::Int8);
    assert_eq!(
        read(Int32Array::from(vec![127]), int8()).unwrap(),
        [Some(vec![127])]
    );
    assert_eq!(
        read(Int32Array::from(vec![1, 128]), int8()).unwrap_err(),
        "1: 128 is not a value of INT8"
    );
    assert_eq!(
        read(Float64Array::from(vec![2.0]), int8()).unwrap(),
        [Some(vec![2])]
    );
    assert!(read(Float64Array::from(vec![2.5]), int8()).is_err());
    assert!(read(Float64Array::from(vec![f64::NAN]), int8()).is_err());
    assert_eq!(
        read(Float64Array::from(vec![-0.0]), int8()).unwrap(),
        [Some(vec![0])]
    );
    let decimals = |values: Vec<i128>| Decimal128Array::from(values).with_precision_and_scale(9, 2);
    assert_eq!(
        read(decimals(vec![200]).unwrap(), int8()).unwrap(),
        [Some(vec![2])]
    );
    assert_eq!(
        read(decimals(vec![200, 225]).unwrap(), int8()).unwrap_err(),
        "1: 2.25 is not a value of INT8"
    );
    let float32 = || ColumnType::new("x", Datatype::Float32);
    assert_eq!(
        read(Float64Array::from(vec![0.1, 1e300]), float32()).unwrap_err(),
        "1: 1e300 is not a value of FLOAT32"
    );
    assert!(read(Float64Array::from(vec![f64::INFINITY, f64::NAN]), float32()).is_ok());
    let bool = || ColumnType::new("x", Datatype::Bool);
    assert_eq!(
        read(Int32Array::from(vec![1, 0]), bool()).unwrap(),
        [Some(vec![1]), Some(vec![0])]
    );
    for wrong in [2, 256, -1] {
        assert!(read(Int32Array::from(vec![wrong]), bool()).is_err());
    }
    assert!(read(Float64Array::from(vec![0.5]), bool()).is_err());
    let bools = BooleanArray::from(vec![Some(true), None]);
    assert_eq!(
        read(bools, ColumnType::new("x", Datatype::Bool).with_nulls()).unwrap(),
        [Some(vec![1]), None]
    );
}

#[test]
fn missing_values() {
    let some = || Int32Array::from(vec![Some(1), None]);
    let null = ColumnType::new("x", Datatype::Int32).with_nulls();
    assert_eq!(
        read(some(), null).unwrap(),
        [Some(1i32.to_le_bytes().to_vec()), None]
    );
    let error = read(some(), ColumnType::new("x", Datatype::Int32)).unwrap_err();
    assert!(error.starts_with("1: it is missing"), "{error}");
    let nan = read(
        Float64Array::from(vec![None, Some(1.0)]),
        ColumnType::new("x", Datatype::Float64),
    )
    .unwrap();
    assert!(f64::from_le_bytes(nan[0].as_deref().unwrap().try_into().unwrap()).is_nan());
    assert_eq!(
        ticks(
            Date32Array::from(vec![None, Some(3)]),
            Datatype::DateTimeDay
        )
        .unwrap(),
        [i64::MIN, 3]
    );
}

#[test]
fn missing_lists_and_values_within_lists() {
    let lists = |rows: Vec<Option<Vec<Option<i16>>>>| {
        FixedSizeListArray::from_iter_primitive::<Int16Type, _, _>(rows, 2)
    };
    let pair = || ColumnType {
        cell_val_num: CellValNum::Fixed(2),
        ..ColumnType::new("x", Datatype::Int16)
    };
    let rows = vec![Some(vec![Some(1), Some(2)]), None];
    let found = read(lists(rows.clone()), pair().with_nulls()).unwrap();
    assert_eq!(found, [Some(vec![1, 0, 2, 0]), None]);
    assert!(
        read(lists(rows), pair())
            .unwrap_err()
            .starts_with("1: it is missing")
    );
    let hole = || lists(vec![None, Some(vec![Some(3), None])]);
    let error = read(hole(), pair().with_nulls()).unwrap_err();
    assert_eq!(
        error,
        "1: a value within the list is missing, which cells cannot hold"
    );
    let real = ColumnType {
        datatype: Datatype::Float32,
        ..pair().with_nulls()
    };
    let found = read(hole(), real).unwrap();
    assert!(found[0].is_none());
    let second = found[1].as_deref().unwrap()[4..].try_into().unwrap();
    assert!(f32::from_le_bytes(second).is_nan());
}

#[test]
fn ticks_change_their_unit_only_without_loss() {
    let seconds = |values: Vec<i64>| TimestampSecondArray::from(values);
    assert_eq!(
        ticks(seconds(vec![60, -120]), Datatype::DateTimeMinute).unwrap(),
        [1, -2]
    );
    assert_eq!(
        ticks(seconds(vec![604_800]), Datatype::DateTimeWeek).unwrap(),
        [1]
    );
    assert_eq!(
        ticks(seconds(vec![0, 31 * 86_400]), Datatype::DateTimeMonth).unwrap(),
        [0, 1]
    );
    assert_eq!(
        ticks(seconds(vec![-365 * 86_400]), Datatype::DateTimeYear).unwrap(),
        [-1]
    );
    assert_eq!(
        ticks(seconds(vec![2]), Datatype::DateTimeNano).unwrap(),
        [2_000_000_000]
    );
    for (value, datatype) in [
        (61, Datatype::DateTimeMinute),
        (86_400, Datatype::DateTimeMonth),
        (i64::MAX, Datatype::DateTimeNano),
        (31 * 86_400, Datatype::DateTimeYear),
    ] {
        assert!(ticks(seconds(vec![value]), datatype).is_err(), "{datatype}");
    }
    // A zone says how to show an instant, not which one it is.
    let zoned = TimestampMicrosecondArray::from(vec![1]).with_timezone("+02:00");
    assert_eq!(ticks(zoned, Datatype::DateTimeMicro).unwrap(), [1]);
    assert_eq!(
        ticks(Int64Array::from(vec![5]), Datatype::DateTimePico).unwrap(),
        [5]
    );
    assert_eq!(
        ticks(StringArray::from(vec!["1970-01-02"]), Datatype::DateTimeDay).unwrap(),
        [1]
    );
}

#[test]
fn texts_lists_and_labels() {
    let var = |datatype| ColumnType::new("x", datatype).with_cell_val_num(CellValNum::Var);
    let text = LargeStringArray::from(vec![Some("a"), None, Some("")]).slice(1, 2);
    assert_eq!(
        read(text, var(Datatype::StringUtf8).with_nulls()).unwrap(),
        [None, Some(vec![])]
    );
    let fixed = ColumnType::new("x", Datatype::Char).with_cell_val_num(CellValNum::Fixed(2));
    assert_eq!(
        read(StringArray::from(vec!["a"]), fixed.clone()).unwrap(),
        [Some(vec![b'a', 0])]
    );
    assert!(read(StringArray::from(vec!["abc"]), fixed).is_err());
    let lists = || {
        ListArray::from_iter_primitive::<UInt8Type, _, _>([
            Some(vec![Some(1), Some(2)]),
            None,
            Some(vec![]),
        ])
    };
    let nullable = var(Datatype::UInt8).with_nulls();
    assert_eq!(
        read(lists(), nullable).unwrap(),
        [Some(vec![1, 2]), None, Some(vec![])]
    );
    let pairs = FixedSizeListArray::from_iter_primitive::<UInt8Type, _, _>(
        [Some(vec![Some(1), Some(2)]), Some(vec![Some(3), Some(4)])],
        2,
    );
    let two = ColumnType::new("x", Datatype::UInt8).with_cell_val_num(CellValNum::Fixed(2));
    assert_eq!(read(pairs.slice(1, 1), two).unwrap(), [Some(vec![3, 4])]);
    let labels = Enumeration::of_strings("e", Datatype::StringUtf8, false, ["b", "a"]).unwrap();
    let labelled = ColumnType {
        enumeration: Some(Arc::new(labels)),
        ..ColumnType::new("x", Datatype::UInt8)
    };
    let keys = UInt8Array::from(vec![Some(0), Some(1), None]);
    let dictionary =
        || DictionaryArray::new(keys.clone(), Arc::new(StringArray::from(vec!["a", "b"])));
    assert_eq!(
        read(dictionary(), labelled.clone().with_nulls()).unwrap(),
        [Some(vec![1]), Some(vec![0]), None]
    );
    assert!(
        read(dictionary(), labelled.clone())
            .unwrap_err()
            .contains("missing")
    );
    // A column of nulls alone has a dictionary without words.
    let none = DictionaryArray::new(
        UInt8Array::from(vec![None, None]),
        Arc::new(StringArray::from(Vec::<&str>::new())),
    );
    assert_eq!(
        read(none, labelled.clone().with_nulls()).unwrap(),
        [None, None]
    );
    assert!(
        read(StringArray::from(vec!["c"]), labelled)
            .unwrap_err()
            .contains("none of the labels")
    );
}

#[test]
fn exported_columns_say_what_they_were() {
    let field = |data_type: DataType, datatype: &str, number: &str| {
        let metadata = [("tiledb_type", datatype), ("tiledb_cell_val_num", number)];
        let metadata: HashMap<String, String> =
            metadata.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        natural_type(&Field::new("x", data_type, true).with_metadata(metadata)).unwrap()
    };
    let seconds = DataType::Timestamp(TimeUnit::Second, None);
    assert_eq!(
        field(seconds.clone(), "DATETIME_WEEK", "1").0,
        Datatype::DateTimeWeek
    );
    assert_eq!(
        field(DataType::LargeUtf8, "CHAR", "3"),
        (Datatype::Char, CellValNum::Fixed(3), None)
    );
    assert_eq!(field(DataType::Int64, "TIME_AS", "1").0, Datatype::TimeAtto);
    // What cannot be is not believed.
    assert_eq!(field(seconds, "INT32", "1").0, Datatype::DateTimeSecond);
    assert_eq!(field(DataType::Int32, "FLOAT64", "1").0, Datatype::Int32);
    assert!(
        natural_type(&Field::new(
            "x",
            DataType::Interval(arrow_schema::IntervalUnit::DayTime),
            true
        ))
        .is_err()
    );
}

#[test]
fn periods_are_no_numbers() {
    let name = (
        "ARROW:extension:name".to_owned(),
        "pandas.period".to_owned(),
    );
    let plain = Field::new("p", DataType::Int64, true);
    assert!(natural_type(&plain).is_ok());
    let period = plain.with_metadata(HashMap::from([name]));
    assert!(natural_type(&period).unwrap_err().contains("periods"));
}
