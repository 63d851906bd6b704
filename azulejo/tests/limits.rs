//! Reads that end after some cells, and reads that are cancelled alone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::column::{ColumnBuffers, ColumnMut, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::format::Datatype;
use azulejo::format::schema::ArraySchema;
use azulejo::read::ReadOptions;
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
