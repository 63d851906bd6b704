//! Fragments whose cells lie in an order of their own, as some old writers left them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::check::{CheckOptions, Severity};
use azulejo::column::{ColumnBuilder, ColumnSet, ColumnType};
use azulejo::format::schema::Layout;
use azulejo::format::{ArraySchema, Datatype};
use azulejo::read::ReadOptions;
use azulejo::write::WriteOptions;
use azulejo::{Config, Context};
use std::fs;
use std::path::Path;

fn create(context: &Context, uri: &str, order: Layout, duplicates: bool) {
    let schema = ArraySchema::sparse()
        .dimension("x", 0i32..=99, 10)
        .dimension("y", 0i32..=99, 10)
        .attribute("a", Datatype::Int32)
        .cell_order(order)
        .capacity(6)
        .allows_duplicates(duplicates)
        .build()
        .unwrap();
    context.array(uri).create_at(schema, 1).unwrap();
}

/// Writes cells to tiles from `tile` on; `a` tells them apart.
fn write(context: &Context, uri: &str, tile: i32, time: u64) {
    let mut columns: Vec<ColumnBuilder> = ["x", "y", "a"]
        .map(|name| ColumnBuilder::new(ColumnType::new(name, Datatype::Int32)))
        .into();
    for i in 0..40 {
        let (x, y) = (tile * 10 + i % 7, tile * 10 + i / 7);
        for (column, value) in columns.iter_mut().zip([x, y, i]) {
            column.append_cell(&value.to_le_bytes(), true);
        }
    }
    let columns = columns.into_iter().map(ColumnBuilder::finish).collect();
    let options = WriteOptions::new().timestamp(time);
    let mut writer = context.array(uri).writer(options).unwrap();
    writer
        .write(&ColumnSet {
            cell_num: 40,
            columns,
        })
        .unwrap();
    writer.finish().unwrap();
}

fn schema_file(array: &Path) -> std::path::PathBuf {
    let entries = fs::read_dir(array.join("__schema")).unwrap();
    let mut files = entries.map(|e| e.unwrap().path()).filter(|p| p.is_file());
    files.next().unwrap()
}

/// The worst that a check finds in an array whose schema says another order than its writers
/// followed; and the cells that it reads.
fn check(tiles: &[i32], duplicates: bool) -> (Option<Severity>, Vec<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let context = Context::new(Config::new().threads(1), None).unwrap();
    let path = |name: &str| folder.path().join(name);
    let uri = |name: &str| path(name).to_str().unwrap().to_owned();
    create(&context, &uri("a"), Layout::RowMajor, duplicates);
    for (time, tile) in (2..).zip(tiles) {
        write(&context, &uri("a"), *tile, time);
    }
    create(&context, &uri("b"), Layout::ColMajor, duplicates);
    fs::copy(schema_file(&path("b")), schema_file(&path("a"))).unwrap();

    let handle = context.array(&uri("a"));
    let deep = CheckOptions::new().deep(true);
    let report = handle.check(deep).unwrap();
    let disorder = |what: &str| what.contains("not in global order");
    assert!(
        report.findings.iter().all(|f| disorder(&f.what)),
        "{report:?}"
    );
    let options = ReadOptions::new().fields(["a"]).layout(Layout::RowMajor);
    let set = handle
        .open()
        .unwrap()
        .read(options)
        .unwrap()
        .read_all()
        .unwrap();
    let cell = |cell: Option<&[u8]>| i32::from_le_bytes(cell.unwrap().try_into().unwrap());
    let mut cells: Vec<i32> = set.columns[0].cells().map(cell).collect();
    cells.sort_unstable();
    (report.worst(), cells)
}

#[test]
fn disorder_that_no_read_notices_is_a_note() {
    let once: Vec<i32> = (0..40).collect();
    let twice: Vec<i32> = (0..40).flat_map(|i| [i, i]).collect();
    assert_eq!(check(&[0], false), (Some(Severity::Note), once));
    assert_eq!(check(&[0, 2], false), (Some(Severity::Note), twice.clone()));
    assert_eq!(check(&[1, 1], true), (Some(Severity::Note), twice));
    // Cells of one coordinate are found by their order.
    assert_eq!(check(&[1, 1], false).0, Some(Severity::Error));
}
