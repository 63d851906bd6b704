//! Many threads write one array while others read it: no cell is lost, no reader fails.

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::ArraySchema;
use azulejo::format::datatype::Datatype;
use azulejo::read::ReadOptions;
use azulejo::write::{WriteOptions, Writer};
use azulejo::{Array, Config, Context, Reader, Result};
use std::sync::atomic::{AtomicBool, Ordering};

const THREADS: i64 = 6;
const WRITES: i64 = 8;
const CELLS: i64 = 25;

fn write(context: &Context, uri: &str, from: i64) -> Result<()> {
    let cells: Vec<i64> = (from..from + CELLS).collect();
    let mut writer = Writer::open(context, uri, WriteOptions::new())?;
    writer.write(&ColumnSet::of([
        ColumnBuffers::of_values("x", cells.clone()),
        ColumnBuffers::of_values("a", cells),
    ])?)?;
    writer.finish()?;
    Ok(())
}

/// The array's cells; each write is there as a whole or not at all.
fn read(context: &Context, uri: &str) -> Result<Vec<i64>> {
    let cells = Array::open(context, uri)?.read(ReadOptions::new()).and_then(Reader::read_all)?;
    let values =
        |i: usize| cells.columns.get(i).and_then(|column| column.values::<i64>()).map(<[i64]>::to_vec);
    let found = values(0).unwrap_or_default();
    assert_eq!(values(1), Some(found.clone()), "coordinates and values belong together");
    assert!(found.chunk_by(|a, b| a / CELLS == b / CELLS).all(|write| write.len() as i64 == CELLS));
    Ok(found)
}

#[test]
fn threads_write_and_read_one_array() {
    let folder = tempfile::tempdir().expect("a folder");
    for uri in ["mem://array", folder.path().join("array").to_str().expect("a path")] {
        let context = Context::new(Config::default(), None).expect("a context");
        let schema = ArraySchema::sparse().dimension("x", 0i64..=99_999, 100).attribute("a", Datatype::Int64);
        Array::create(&context, uri, schema.build().expect("a schema")).expect("it is made");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let context = &context;
                    scope.spawn(move || {
                        let writes = thread * WRITES..(thread + 1) * WRITES;
                        writes.into_iter().try_for_each(|n| write(context, uri, n * CELLS))
                    })
                })
                .collect();
            let reader = scope.spawn(|| {
                let mut most = 0;
                while !done.load(Ordering::Relaxed) {
                    let found = read(&context, uri).expect("it reads").len();
                    assert!(found >= most, "{found} cells where there were {most}");
                    most = found;
                }
            });
            let results: Vec<_> =
                writers.into_iter().map(|writer| writer.join().expect("no panic")).collect();
            done.store(true, Ordering::Relaxed);
            reader.join().expect("no panic");
            results.into_iter().for_each(|result| result.expect("it is written"));
        });
        let all: Vec<i64> = (0..THREADS * WRITES * CELLS).collect();
        assert!(read(&context, uri).expect("it reads") == all, "{uri}: cells are missing");
    }
}
