//! Reads that end after some cells, and reads that are cancelled alone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::column::{ColumnBuffers, ColumnMut, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::format::schema::ArraySchema;
use azulejo::format::{Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use azulejo::space::Layout;
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context, Error};

/// 30 by 30 cells, in two fragments where they are sparse.
fn array(context: &Context, uri: &str, dense: bool) -> Array {
    let schema = match dense {
        true => ArraySchema::dense(),
        false => ArraySchema::sparse().capacity(16),
    };
    let schema = schema
        .dimension("x", 0..=29i32, 7)
        .dimension("y", 0..=29i32, 7)
        .attribute("a", Datatype::Int32)
        .var_attribute("s", Datatype::StringUtf8)
        .build()
        .unwrap();
    context.array(uri).create(schema).unwrap();
    for fragment in 0..2 {
        let cells: Vec<i32> = (0..900).filter(|i| dense || i % 2 == fragment).collect();
        let mut columns = vec![
            ColumnBuffers::of_values("a", cells.clone()),
            ColumnBuffers::of_strings("s", cells.iter().map(|cell| format!("{cell}"))),
        ];
        if !dense {
            columns.push(ColumnBuffers::of_values(
                "x",
                cells.iter().map(|c| c / 30).collect(),
            ));
            columns.push(ColumnBuffers::of_values(
                "y",
                cells.iter().map(|c| c % 30).collect(),
            ));
        }
        let mut writer = context.array(uri).writer(WriteOptions::new()).unwrap();
        writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
        writer.finish().unwrap();
    }
    context.array(uri).open().unwrap()
}

/// Reads field `a` into buffers for `room` cells at a time.
fn in_pieces(array: &Array, options: ReadOptions, room: usize) -> Vec<i32> {
    let mut reader = array.read(options.fields(["a"])).unwrap();
    let mut found = Vec::new();
    loop {
        let mut data = vec![0; room * 4];
        let mut columns = [ColumnMut {
            data: &mut data,
            offsets: None,
            validity: None,
        }];
        let progress = reader.read_into(&mut columns).unwrap();
        let cells = data.as_chunks::<4>().0.iter().take(progress.cells);
        found.extend(cells.map(|cell| i32::from_le_bytes(*cell)));
        if progress.complete {
            return found;
        }
        assert!(progress.cells > 0, "no progress");
    }
}

#[test]
fn the_first_cells_come_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let context = Context::new(Config::default(), None).unwrap();
    for (dense, memory) in [(true, true), (true, false), (false, true), (false, false)] {
        let uri = match memory {
            true => format!("mem://{dense}"),
            false => dir
                .path()
                .join(format!("{dense}"))
                .to_str()
                .unwrap()
                .to_owned(),
        };
        let array = array(&context, &uri, dense);
        let few = Condition::compare("a", Comparison::Ge, 300i32.to_le_bytes());
        let reads = [
            ReadOptions::new(),
            ReadOptions::new().layout(Layout::ColMajor),
            ReadOptions::new().layout(Layout::Global),
            ReadOptions::new().fields(["a"]),
            ReadOptions::new().condition(few).matching_only(),
        ];
        for options in reads {
            let options = options.memory_budget(2 << 20);
            let all = array.read(options.clone()).unwrap().read_all().unwrap();
            for limit in [0, 1, 29, 450, 899, 900, 10_000] {
                let limited = options.clone().limit(limit);
                let expected = all.slice(0..usize::try_from(limit).unwrap());
                let found = array.read(limited.clone()).unwrap().read_all().unwrap();
                assert!(found == expected, "{uri} {limited:?}");
                let batches: Vec<ColumnSet> = array
                    .read(limited.clone())
                    .unwrap()
                    .map(Result::unwrap)
                    .collect();
                assert!(batches.iter().map(|b| b.cell_num).sum::<usize>() == expected.cell_num);
                let a = expected.column("a").unwrap().values::<i32>().unwrap();
                for room in [1, 100, 2000] {
                    assert!(
                        in_pieces(&array, limited.clone(), room) == a,
                        "{uri} {limited:?} {room}"
                    );
                }
            }
        }
    }
}

#[test]
fn aggregates_are_those_of_the_first_cells() {
    let context = Context::new(Config::default(), None).unwrap();
    let asked = [
        Aggregate::Count,
        Aggregate::Sum("a".into()),
        Aggregate::Max("a".into()),
    ];
    for dense in [true, false] {
        let array = array(&context, &format!("mem://aggregates{dense}"), dense);
        let few = Condition::compare("a", Comparison::Ge, 300i32.to_le_bytes());
        let reads = [
            ReadOptions::new(),
            ReadOptions::new().layout(Layout::ColMajor),
            ReadOptions::new().layout(Layout::Global),
            ReadOptions::new().condition(few).matching_only(),
        ];
        for options in reads {
            let options = options.fields(["a"]).memory_budget(2 << 20);
            for limit in [0, 1, 29, 450, 899, 900, 10_000] {
                let limited = options.clone().limit(limit);
                let cells = array.read(limited.clone()).unwrap().read_all().unwrap();
                let a = cells.column("a").unwrap().values::<i32>().unwrap();
                let sum = a.iter().map(|a| i64::from(*a)).sum();
                let greatest = a.iter().max().map(|greatest| greatest.to_le_bytes());
                let greatest = match greatest {
                    Some(bytes) => AggregateValue::Cell {
                        datatype: Datatype::Int32,
                        bytes: bytes.to_vec(),
                    },
                    None => AggregateValue::Null,
                };
                let count = AggregateValue::Unsigned(a.len() as u64);
                let expected = [count.clone(), AggregateValue::Signed(sum), greatest];
                let found = array.aggregate(limited.clone(), &asked).unwrap();
                assert_eq!(found, expected, "{dense} {limited:?}");
                let found = array.aggregate(limited.clone(), &asked[..1]).unwrap();
                assert_eq!(found, [count], "{dense} {limited:?}");
            }
        }
    }
}

/// Cells that nobody wrote are among the first, though they have no values.
#[test]
fn aggregates_of_the_first_cells_of_an_array_with_gaps() {
    let context = Context::new(Config::default(), None).unwrap();
    let schema = ArraySchema::dense()
        .dimension("x", 0..=99i32, 10)
        .attribute("a", Datatype::Int32)
        .build()
        .unwrap();
    let array = context.array("mem://gaps");
    array.create(schema).unwrap();
    for first in [5, 55] {
        let options = WriteOptions::new().subarray(NdRectangle {
            ranges: vec![Range::of(first, first + 9)],
        });
        let cells = ColumnBuffers::of_values("a", vec![1i32; 10]);
        let mut writer = array.writer(options).unwrap();
        writer.write(&ColumnSet::of([cells]).unwrap()).unwrap();
        writer.finish().unwrap();
    }
    let array = array.open().unwrap();
    let asked = [Aggregate::Count, Aggregate::Sum("a".into())];
    for (limit, sum) in [(5, 0), (7, 2), (40, 10), (60, 15), (100, 20), (1000, 20)] {
        let found = array.aggregate(ReadOptions::new().limit(limit), &asked);
        let expected = [
            AggregateValue::Unsigned(limit.min(100)),
            AggregateValue::Signed(sum),
        ];
        assert_eq!(found.unwrap(), expected, "{limit}");
    }
}

#[test]
fn a_read_is_cancelled_alone() {
    let context = Context::new(Config::default(), None).unwrap();
    for dense in [true, false] {
        let array = array(&context, &format!("mem://{dense}"), dense);
        let (mut one, mut other) = (
            array.read(ReadOptions::new()).unwrap(),
            array.read(ReadOptions::new()).unwrap(),
        );
        one.cancel_handle().cancel();
        assert!(matches!(one.next(), Some(Err(Error::Cancelled))));
        assert!(one.next().is_none());
        assert_eq!(other.next().unwrap().unwrap().cell_num, 900);
    }
}

#[test]
fn what_is_begun_through_a_part_is_cancelled_alone() {
    let context = Context::new(Config::default(), None).unwrap();
    for dense in [true, false] {
        let array = array(&context, &format!("mem://part{dense}"), dense);
        let (one, other) = (array.cancellable(), array.cancellable());
        let begun = |array: &Array| array.read(ReadOptions::new()).unwrap();
        let (mut ends, mut whole, mut part) = (begun(&one), begun(&array), begun(&other));
        one.context().cancel_handle().cancel();
        assert!(matches!(ends.next(), Some(Err(Error::Cancelled))));
        assert_eq!(whole.next().unwrap().unwrap().cell_num, 900);
        assert_eq!(part.next().unwrap().unwrap().cell_num, 900);
        // What begins later is not concerned; the context's own handle ends all of them.
        assert_eq!(begun(&one).next().unwrap().unwrap().cell_num, 900);
        let (mut whole, mut part) = (begun(&array), begun(&other));
        context.cancel_handle().cancel();
        assert!(matches!(whole.next(), Some(Err(Error::Cancelled))));
        assert!(matches!(part.next(), Some(Err(Error::Cancelled))));
    }
}
