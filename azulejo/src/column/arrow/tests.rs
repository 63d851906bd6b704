//! Every datatype to Arrow and what comes out.

use super::*;
use crate::column::ColumnBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, PrimitiveArray};

fn column(kind: ColumnType, cells: &[Option<&[u8]>]) -> ColumnBuffers {
    let mut column = ColumnBuilder::new(kind);
    for cell in cells {
        column.append_cell(cell.unwrap_or(&[]), cell.is_some());
    }
    column.finish()
}

fn ticks(datatype: Datatype, values: &[i64]) -> ColumnBuffers {
    let mut column = ColumnBuilder::new(ColumnType::new("a", datatype));
    for value in values {
        column.append_cell(&value.to_le_bytes(), true);
    }
    column.finish()
}

fn convert(column: &ColumnBuffers, raw: bool) -> Result<ArrayRef> {
    let set = ColumnSet {
        cell_num: column.cell_num,
        columns: vec![column.clone()],
    };
    let batch = set.to_record_batch(ArrowOptions::new().raw(raw))?;
    batch.column(0).to_data().validate_full().unwrap();
    assert_eq!(
        batch.schema().field(0).metadata()["tiledb_type"],
        column.column_type.datatype.name()
    );
    for (rows, views) in [(1, false), (1, true), (2, true)] {
        let options = ArrowOptions::new().raw(raw).views(views);
        let whole = set.to_record_batch(options)?;
        let mut done = 0;
        for piece in cut(&set, options.rows(rows)) {
            piece.column(0).to_data().validate_full().unwrap();
            assert_eq!(piece, whole.slice(done, rows.min(column.cell_num - done)));
            done += piece.num_rows();
        }
        assert_eq!(done, column.cell_num);
    }
    Ok(Arc::clone(batch.column(0)))
}

fn cut(set: &ColumnSet, options: ArrowOptions) -> Vec<RecordBatch> {
    let types = set.columns.iter().map(|c| &c.column_type);
    let converter = ArrowConverter::new(types, options).unwrap();
    let mut pieces = Some(Pieces::of(set.clone().into(), &converter).unwrap());
    std::iter::from_fn(|| Pieces::next_of(&mut pieces, &converter))
        .map(Result::unwrap)
        .collect()
}

#[test]
fn pieces_share_memory_and_count_their_own() {
    let numbers = ticks(Datatype::Int64, &(0..1000).collect::<Vec<_>>());
    let mut text = ColumnBuilder::new(
        ColumnType::new("t", Datatype::StringUtf8).with_cell_val_num(CellValNum::Var),
    );
    for i in 0..1000 {
        text.append_cell("a text ".repeat(i % 20).as_bytes(), true);
    }
    let set = ColumnSet {
        cell_num: 1000,
        columns: vec![numbers.clone(), text.finish()],
    };
    let whole = set.to_record_batch(ArrowOptions::new()).unwrap();
    let pieces = cut(&set, ArrowOptions::new().rows(300));
    let rows: Vec<usize> = pieces.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(rows, [300, 300, 300, 100]);
    let counted: usize = pieces.iter().map(RecordBatch::get_array_memory_size).sum();
    assert!(counted < whole.get_array_memory_size() * 5 / 4, "{counted}");
    for (piece, first) in pieces.iter().zip([0, 300, 600, 900]) {
        let values = piece.column(0).as_primitive::<Int64Type>().values();
        assert_eq!(values.inner().as_ptr(), numbers.data[first * 8..].as_ptr());
    }
}

#[test]
fn every_type_in_every_shape_makes_a_valid_array() {
    for datatype in Datatype::ALL {
        for cell_val_num in [CellValNum::ONE, CellValNum::Fixed(3), CellValNum::Var] {
            for nullable in [false, true] {
                let mut kind = ColumnType::new("a", datatype).with_cell_val_num(cell_val_num);
                kind.nullable = nullable;
                let size = if kind.is_var() {
                    2 * datatype.size()
                } else {
                    kind.cell_size()
                };
                let cell = vec![1; size];
                let null = if nullable { None } else { Some(&cell[..]) };
                let column = column(kind.clone(), &[Some(&cell), null, Some(&cell)]);
                for raw in [false, true] {
                    let array = convert(&column, raw).unwrap();
                    assert_eq!(array.len(), 3, "{kind:?}");
                    let expected = usize::from(nullable);
                    // What Arrow cannot hold becomes null: ticks of this size lie far away.
                    assert!(
                        array.null_count() == expected
                            || (!raw && (datatype.is_datetime() || datatype.is_time())),
                        "{kind:?}"
                    );
                    assert!(!array.is_valid(1) || !nullable);
                    // The same through a converter that has not seen data, and for no cells.
                    let converter =
                        ArrowConverter::new([&kind], ArrowOptions::new().raw(raw)).unwrap();
                    assert_eq!(converter.schema().field(0).data_type(), array.data_type());
                    assert_eq!(
                        convert(&ColumnBuffers::empty(kind.clone()), raw)
                            .unwrap()
                            .len(),
                        0
                    );
                    assert_eq!(convert(&column.slice(1..3), raw).unwrap().len(), 2);
                }
            }
        }
    }
}

#[test]
fn numbers_and_strings_share_their_memory() {
    let numbers = ticks(Datatype::Int64, &[1, -2, 3]);
    let array = convert(&numbers, false).unwrap();
    let array = array.as_primitive::<Int64Type>();
    assert_eq!(array.values(), &[1, -2, 3]);
    assert_eq!(array.values().inner().as_ptr(), numbers.data.as_ptr());
    let text = ColumnType::new("a", Datatype::StringUtf8)
        .with_cell_val_num(CellValNum::Var)
        .with_nulls();
    let text = column(
        text,
        &[
            Some(b"x"),
            None,
            Some("\u{e9}t\u{e9}".as_bytes()),
            Some(b""),
        ],
    );
    let array = convert(&text, false).unwrap();
    let array = array.as_string::<i64>();
    assert_eq!(
        array.iter().collect::<Vec<_>>(),
        [Some("x"), None, Some("\u{e9}t\u{e9}"), Some("")]
    );
    assert_eq!(array.values().as_ptr(), text.data.as_ptr());
    assert_eq!(
        array.offsets().inner().inner().as_ptr(),
        text.offsets.as_ref().unwrap().as_ptr()
    );
}

#[test]
fn text_that_is_not_utf8_is_an_error_and_raw_bytes() {
    for kind in [
        ColumnType::new("a", Datatype::StringAscii).with_cell_val_num(CellValNum::Var),
        ColumnType::new("a", Datatype::StringUtf8).with_cell_val_num(CellValNum::Fixed(2)),
    ] {
        let column = column(kind, &[Some(b"ok"), Some(b"\xff\xfe")]);
        let error = convert(&column, false).unwrap_err().to_string();
        assert!(error.contains("column a: cell 1 is not UTF-8"), "{error}");
        assert_eq!(convert(&column, true).unwrap().len(), 2);
    }
    let fixed = ColumnType::new("a", Datatype::StringAscii).with_cell_val_num(CellValNum::Fixed(2));
    let array = convert(&column(fixed, &[Some(b"ab"), Some(b"cd")]), false).unwrap();
    assert_eq!(
        array.as_string::<i64>().iter().collect::<Vec<_>>(),
        [Some("ab"), Some("cd")]
    );
}

#[test]
fn what_lies_under_a_null_need_not_be_text() {
    for cells in [CellValNum::Var, CellValNum::Fixed(2)] {
        let kind = ColumnType::new("a", Datatype::StringUtf8)
            .with_cell_val_num(cells)
            .with_nulls();
        let mut column = ColumnBuilder::new(kind);
        column.append_cell(b"ok", true);
        column.append_cell(b"\xff\xfe", false);
        let array = convert(&column.finish(), false).unwrap();
        let texts: Vec<_> = array.as_string::<i64>().iter().collect();
        assert_eq!(texts, [Some("ok"), None]);
    }
}

#[test]
fn datetimes_are_converted_where_they_can_be() {
    fn values<T: ArrowPrimitiveType>(
        datatype: Datatype,
        ticks_in: &[i64],
    ) -> Vec<Option<T::Native>> {
        let array = convert(&ticks(datatype, ticks_in), false).unwrap();
        let array: &PrimitiveArray<T> = array.as_primitive();
        array.iter().collect()
    }
    const NAT: i64 = i64::MIN;
    let day = 86_400;
    assert_eq!(
        values::<Date32Type>(Datatype::DateTimeDay, &[-1, 18_262, NAT]),
        [Some(-1), Some(18_262), None]
    );
    type Seconds = TimestampSecondType;
    assert_eq!(
        values::<Seconds>(Datatype::DateTimeYear, &[0, 50, -1]),
        [0, 18_262 * day, -365 * day].map(Some)
    );
    assert_eq!(
        values::<Seconds>(Datatype::DateTimeYear, &[NAT, i64::MAX]),
        [None, None]
    );
    assert_eq!(
        values::<Seconds>(Datatype::DateTimeMonth, &[1, -1]),
        [31 * day, -31 * day].map(Some)
    );
    assert_eq!(
        values::<Seconds>(Datatype::DateTimeWeek, &[2, NAT]),
        [Some(14 * day), None]
    );
    assert_eq!(
        values::<Seconds>(Datatype::DateTimeHour, &[-1, i64::MAX]),
        [Some(-3_600), None]
    );
    assert_eq!(
        values::<TimestampNanosecondType>(Datatype::DateTimeNano, &[5, NAT]),
        [Some(5), Some(NAT)]
    );
    assert_eq!(
        values::<DurationSecondType>(Datatype::TimeMinute, &[-2]),
        [Some(-120)]
    );
    assert_eq!(
        values::<DurationMillisecondType>(Datatype::TimeMilli, &[7]),
        [Some(7)]
    );
    assert_eq!(values::<Int64Type>(Datatype::DateTimeAtto, &[7]), [Some(7)]);
}

#[test]
fn booleans_and_lists() {
    let kind = ColumnType::new("a", Datatype::Bool).with_nulls();
    let array = convert(
        &column(kind, &[Some(&[1]), None, Some(&[0]), Some(&[7])]),
        false,
    )
    .unwrap();
    assert_eq!(
        array.as_boolean().iter().collect::<Vec<_>>(),
        [Some(true), None, Some(false), Some(true)]
    );
    let kind = ColumnType::new("a", Datatype::Int16).with_cell_val_num(CellValNum::Var);
    let array = convert(
        &column(
            kind.clone(),
            &[Some(&[1, 0, 2, 0]), Some(&[]), Some(&[3, 0])],
        ),
        false,
    )
    .unwrap();
    let lists: Vec<Vec<i16>> = array
        .as_list::<i64>()
        .iter()
        .map(|l| l.unwrap().as_primitive::<Int16Type>().values().to_vec())
        .collect();
    assert_eq!(lists, [vec![1, 2], vec![], vec![3]]);
    let error = convert(&column(kind, &[Some(&[1])]), false)
        .unwrap_err()
        .to_string();
    assert!(error.contains("ends within a value"), "{error}");
    let kind = ColumnType::new("a", Datatype::Float32)
        .with_cell_val_num(CellValNum::Fixed(2))
        .with_nulls();
    let array = convert(&column(kind, &[Some(&[0; 8]), None]), false).unwrap();
    assert_eq!(
        (
            array.as_fixed_size_list().value_length(),
            array.null_count()
        ),
        (2, 1)
    );
}

#[test]
fn lists_of_truth_values() {
    let kind = |number| ColumnType::new("a", Datatype::Bool).with_cell_val_num(number);
    let cells: [Option<&[u8]>; 3] = [Some(&[1, 0]), Some(&[]), Some(&[7])];
    let lists = column(kind(CellValNum::Var), &cells);
    let flags = |list: ArrayRef| list.as_boolean().iter().flatten().collect::<Vec<_>>();
    let array = convert(&lists, false).unwrap();
    let found: Vec<_> = array.as_list::<i64>().iter().flatten().map(flags).collect();
    assert_eq!(found, [vec![true, false], vec![], vec![true]]);
    let raw = convert(&lists, true).unwrap();
    let bytes = raw.as_list::<i64>().values();
    assert_eq!(bytes.as_primitive::<UInt8Type>().values(), &[1, 0, 7]);

    let pairs = column(
        kind(CellValNum::Fixed(2)).with_nulls(),
        &[Some(&[1, 0]), None],
    );
    let array = convert(&pairs, false).unwrap();
    assert_eq!(array.null_count(), 1);
    assert_eq!(flags(array.as_fixed_size_list().value(0)), [true, false]);

    // Labels are told by numbers.
    let label = Enumeration::of_strings("e", Datatype::StringUtf8, false, ["a", "b", "c"]).unwrap();
    let mut kind = kind(CellValNum::Fixed(2));
    kind.enumeration = Some(Arc::new(label));
    let array = convert(&column(kind, &[Some(&[2, 1])]), false).unwrap();
    let indices = array.as_fixed_size_list().value(0);
    assert_eq!(indices.as_primitive::<UInt8Type>().values(), &[2, 1]);
}

#[test]
fn labels_become_dictionaries() {
    let labels = Enumeration::of_strings("e", Datatype::StringUtf8, true, ["lo", "hi"]).unwrap();
    for (datatype, width) in [
        (Datatype::Int8, 1),
        (Datatype::UInt32, 4),
        (Datatype::Int64, 8),
    ] {
        let mut kind = ColumnType::new("a", datatype).with_nulls();
        kind.enumeration = Some(Arc::new(labels.clone()));
        let cells = [1i64, 0, -1, 2, 1].map(|v| v.to_le_bytes()[..width].to_vec());
        let cells: Vec<Option<&[u8]>> = cells.iter().map(|c| Some(&c[..])).collect();
        let with_null = column(kind, &[&cells[..], &[None]].concat());
        let array = convert(&with_null, false).unwrap();
        let DataType::Dictionary(key, value) = array.data_type() else {
            panic!("{:?}", array.data_type())
        };
        assert_eq!(
            (&**key, &**value),
            (&number_type(datatype.physical()), &DataType::LargeUtf8)
        );
        let dictionary = array.as_any_dictionary();
        let values = dictionary.values().as_string::<i64>();
        let found: Vec<Option<&str>> = (0..array.len())
            .map(|i| {
                array
                    .is_valid(i)
                    .then(|| values.value(dictionary.normalized_keys()[i]))
            })
            .collect();
        assert_eq!(
            found,
            [Some("hi"), Some("lo"), None, None, Some("hi"), None]
        );
        assert_eq!(
            convert(&with_null, true).unwrap().data_type(),
            &number_type(datatype.physical())
        );
    }
}

#[test]
fn labels_that_are_not_what_they_say_are_bytes() {
    for (datatype, values) in [
        (Datatype::Int32, [&b"aaa"[..], b"bb"]),
        (Datatype::StringUtf8, [&b"\xff"[..], b"ok"]),
    ] {
        let labels = Enumeration {
            name: "e".into(),
            file_name: "e".into(),
            datatype,
            cell_val_num: CellValNum::Var,
            ordered: false,
            data: values.concat(),
            offsets: vec![0, values[0].len() as u64],
        };
        let mut kind = ColumnType::new("a", Datatype::UInt8);
        kind.enumeration = Some(Arc::new(labels));
        let array = convert(&column(kind, &[Some(&[1]), Some(&[0])]), false).unwrap();
        let dictionary = array.as_any_dictionary();
        assert_eq!(
            dictionary
                .values()
                .as_binary::<i64>()
                .iter()
                .flatten()
                .collect::<Vec<_>>(),
            values
        );
    }
}

#[test]
fn columns_that_lie_are_refused() {
    let good = ticks(Datatype::Int64, &[1, 2]);
    for bad in [
        ColumnBuffers {
            cell_num: 3,
            ..good.clone()
        },
        ColumnBuffers {
            validity: Some(Buffer::from(vec![1u8, 1])),
            ..good.clone()
        },
        ColumnBuffers {
            offsets: Some(Buffer::from_vec(vec![0u64, 8, 16])),
            ..good.clone()
        },
    ] {
        assert!(convert(&bad, false).is_err());
    }
    let kind = ColumnType::new("a", Datatype::Blob).with_cell_val_num(CellValNum::Var);
    let good = column(kind, &[Some(b"ab"), Some(b"c")]);
    for offsets in [
        vec![0u64, 2],
        vec![0, 3, 2],
        vec![0, 2, 9],
        vec![0, 2, u64::MAX],
    ] {
        let bad = ColumnBuffers {
            offsets: Some(Buffer::from_vec(offsets)),
            ..good.clone()
        };
        assert!(convert(&bad, false).is_err());
    }
    assert!(
        convert(
            &ColumnBuffers {
                offsets: None,
                ..good
            },
            false
        )
        .is_err()
    );
}

/// The attribute that a column becomes in a new array.
fn attribute_of(field: Field) -> azulejo_format::schema::Attribute {
    let new = azulejo_format::schema::ArraySchema::sparse()
        .dimension("x", 0i64..=9, 5)
        .arrow_fields(&Schema::new(vec![field]))
        .unwrap()
        .build()
        .unwrap();
    new.schema.attributes[0].clone()
}

#[test]
fn what_is_no_time_is_null_where_it_is_to_be() {
    const NAT: i64 = i64::MIN;
    let batch_of = |column: ColumnBuffers, null_times: bool| {
        let set = ColumnSet {
            cell_num: column.cell_num,
            columns: vec![column],
        };
        let options = ArrowOptions::new().null_times(null_times);
        let batch = set.to_record_batch(options).unwrap();
        batch.column(0).to_data().validate_full().unwrap();
        batch
    };
    for datatype in [Datatype::DateTimeNano, Datatype::TimeMilli] {
        for (null_times, nulls) in [(false, 0), (true, 1)] {
            let batch = batch_of(ticks(datatype, &[5, NAT, -1]), null_times);
            assert_eq!(batch.column(0).null_count(), nulls, "{datatype}");
            // An array that is made of it is as this one.
            let made = attribute_of(batch.schema().field(0).clone());
            assert_eq!((made.datatype, made.nullable), (datatype, false));
        }
        let kind = ColumnType::new("a", datatype);
        let ticks: Vec<u8> = [NAT, 5].into_iter().flat_map(i64::to_le_bytes).collect();
        let nullable = ColumnType {
            nullable: true,
            ..kind.clone()
        };
        let cells = [Some(&ticks[..8]), None, Some(&ticks[8..])];
        let batch = batch_of(column(nullable, &cells), true);
        let valid = |at: usize| batch.column(0).is_valid(at);
        assert_eq!([0, 1, 2].map(valid), [false, false, true], "{datatype}");
        assert!(attribute_of(batch.schema().field(0).clone()).nullable);
        // Of lists the values are null.
        for cell_val_num in [CellValNum::Fixed(2), CellValNum::Var] {
            let lists = kind.clone().with_cell_val_num(cell_val_num);
            let batch = batch_of(column(lists, &[Some(&ticks)]), true);
            let values = match cell_val_num {
                CellValNum::Var => batch.column(0).as_list::<i64>().values().clone(),
                CellValNum::Fixed(_) => batch.column(0).as_fixed_size_list().values().clone(),
            };
            assert_eq!([0, 1].map(|at| values.is_null(at)), [true, false]);
        }
    }
}

#[test]
fn a_column_that_says_nothing_of_its_values_is_text() {
    let none = attribute_of(Field::new("none", DataType::Null, false));
    assert_eq!(
        (none.datatype, none.cell_val_num, none.nullable),
        (Datatype::StringUtf8, CellValNum::Var, true)
    );
}

#[test]
fn times_of_day_become_durations() {
    let of_day = [
        (DataType::Time32(TimeUnit::Second), Datatype::TimeSecond),
        (DataType::Time32(TimeUnit::Millisecond), Datatype::TimeMilli),
        (DataType::Time64(TimeUnit::Microsecond), Datatype::TimeMicro),
        (DataType::Time64(TimeUnit::Nanosecond), Datatype::TimeNano),
    ];
    for (data_type, wanted) in of_day {
        let found = attribute_of(Field::new("t", data_type, true));
        assert_eq!(
            (found.datatype, found.cell_val_num),
            (wanted, CellValNum::ONE)
        );
    }
}
