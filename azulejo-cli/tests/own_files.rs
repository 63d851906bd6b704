//! Files as people have them: other columns than an array, names that are the format's own, several
//! at once.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use parquet::arrow::ArrowWriter;
#[cfg(feature = "c-codecs")]
use parquet::basic::ZstdLevel;
use parquet::basic::{BrotliLevel, Compression, GzipLevel};
use parquet::file::properties::WriterProperties;
use serde_json::Value as Json;
use std::ops::Range;
use std::sync::Arc;
use support::Bench;

/// A file of CSV with these rows.
fn rows(header: &str, rows: Range<u64>, row: impl Fn(u64) -> String) -> String {
    let rows: Vec<String> = rows.map(row).collect();
    format!("{header}\n{}", rows.concat())
}

fn csv(bench: &Bench, uri: &str) -> String {
    bench.line(&format!("cat {uri} --format csv")).out
}

#[test]
fn columns_that_were_not_chosen_are_not_added() {
    let bench = Bench::new();
    bench.write("a.csv", "id,v,c\n1,1.5,red\n2,2.5,blue\n");
    bench.line("import a.csv a --dims id");
    bench.write("b.csv", "id,v,c,more\n3,3.5,green,x\n");
    bench.fails(
        "import b.csv a --append --columns id,v",
        2,
        "--columns leaves that column out",
    );
    bench.fails(
        "import b.csv a --append --columns id,v,c,mroe",
        2,
        "no column \"mroe\"",
    );
    assert_eq!(bench.count("a"), 2);
    bench.line("import b.csv a --append --columns id,v,c --strict");
    assert_eq!(bench.count("a"), 3);
    // Rows without the coordinates that they have in the file go behind the others.
    bench.write("r.csv", "v\n1\n2\n");
    bench.line("import r.csv r");
    bench.write("s.csv", "row,v\n0,7\n");
    bench.fails("import s.csv r --append", 2, "--overwrite");
    bench.line("import s.csv r --append --columns v");
    assert_eq!(csv(&bench, "r"), "v\n1\n2\n7\n");
    // A schema that is given says no more than an array that is there.
    bench.write("schema.json", bench.line("schema a --json").out);
    bench.fails(
        "import b.csv s --schema schema.json --columns id,c",
        2,
        "\"v\", and --columns leaves that column out",
    );
    assert!(!bench.path().join("s").exists());
}

#[test]
fn options_stand_anywhere() {
    let bench = Bench::new();
    bench.write("a.csv", "id,v\n1,1.5\n2,2.5\n");
    bench.write("-b.csv", "id,v\n3,3.5\n");
    bench.line("import a.csv --dims id a");
    bench.line("import a.csv ./-b.csv --dims id -q both");
    bench.line("import --dims id -- -b.csv -b");
    assert_eq!(bench.count("a"), 2);
    assert_eq!(bench.count("both"), 3);
    assert_eq!(bench.count("./-b"), 1);
    bench.fails("import a.csv --dims id", 2, "FILE.. URI");
    bench.fails("import", 2, "<FILE>... <URI>");
}

#[cfg(unix)]
#[test]
fn a_tree_obeys_no_name() {
    let bench = Bench::new();
    bench.write("a.csv", "id,v\n1,1\n");
    bench.run(&["import", "a.csv", "f/x\u{1b}[31my/a"]);
    let tree = bench.line("tree f").out;
    assert!(
        tree.contains("[31my") && !tree.contains('\u{1b}'),
        "{tree:?}"
    );
}

#[test]
fn times_that_end_before_they_begin_are_refused() {
    let bench = Bench::new();
    bench.write("a.csv", "id,v\n1,1\n");
    bench.line("import a.csv a --dims id --at 2024-05-01");
    bench.fails("export a a.zarr.gz", 2, "is not compressed as a whole");
    bench.fails("cat a --step id=2 --step id=3", 2, "given twice");
    for line in [
        "agg a count --from 2025 --to 2024",
        "cat a --from 2024-06 --to 2024-05-01",
        "delete a --from 2025 --to 2024 --dry-run",
    ] {
        bench.fails(line, 2, "--from lies after --to");
    }
    assert_eq!(
        bench
            .line("agg a count --from 2024-05 --to 2024-05")
            .out
            .trim(),
        "1"
    );
}

#[test]
fn utf_16_without_a_mark_is_told() {
    let bench = Bench::new();
    let text = "a,b\n1,2\n";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bench.write("little.csv", little);
    let big: Vec<u8> = (text.encode_utf16().map(u16::swap_bytes))
        .flat_map(u16::to_le_bytes)
        .collect();
    bench.write("big.csv", big);
    for order in ["little", "big"] {
        bench.fails(&format!("import {order}.csv {order}"), 1, "UTF-16");
        assert!(!bench.path().join(order).exists());
    }
}

#[test]
fn a_first_line_of_numbers_is_told() {
    let bench = Bench::new();
    bench.write("a.csv", "1,2.5,1\n3,4.5,3\n");
    let said = bench.line("import a.csv a");
    assert!(said.err.contains("--no-header"), "{}", said.err);
    assert_eq!(bench.count("a"), 1);
    let said = bench.line("import a.csv b --no-header");
    assert!(!said.err.contains("--no-header"), "{}", said.err);
    assert_eq!(bench.count("b"), 2);
    bench.write("c.csv", "1_x,2_y\n3,4\n");
    let said = bench.line("import c.csv c");
    assert!(!said.err.contains("--no-header"), "{}", said.err);
}

#[test]
fn names_that_are_the_formats_own_become_others() {
    let bench = Bench::new();
    bench.write("a.csv", "a,__index_level_0__\n1,3\n5,1\n");
    let said = bench.line("import a.csv a --type index_level_0=INT32");
    assert!(said.err.contains("\"index_level_0\""), "{}", said.err);
    assert_eq!(csv(&bench, "a"), "a,index_level_0\n1,3\n5,1\n");
    let schema = bench.json("schema a");
    assert_eq!(schema["attributes"][1]["datatype"], "INT32");
    bench.line("import a.csv a --append");
    assert_eq!(csv(&bench, "a"), "a,index_level_0\n1,3\n5,1\n1,3\n5,1\n");
    // A dimension may be called so.
    bench.write("d.csv", "__rows,v\n4,1\n2,2\n");
    bench.line("import d.csv d --dims __rows");
    bench.line("import d.csv d --append");
    assert_eq!(bench.count("d"), 4);
    // Labels of such columns are looked for as those of others are.
    bench.write("l.csv", "id,__c\n1,red\n2,blue\n");
    bench.write("more.csv", "id,__c\n3,green\n");
    bench.line("import l.csv l --dims id --enumerate c");
    bench.line("import more.csv l --append");
    assert_eq!(csv(&bench, "l"), "id,c\n1,red\n2,blue\n3,green\n");
}

#[test]
fn labels_that_are_added_at_once_are_all_there() {
    let bench = Bench::new();
    bench.write("a.csv", "id,c\n1,red\n2,blue\n");
    bench.line("import a.csv a --dims id --enumerate c");
    let files = 0..6;
    for file in files.clone() {
        bench.write(
            &format!("{file}.csv"),
            format!("id,c\n{},label {file}\n", 10 + file),
        );
    }
    let imports: Vec<_> = files
        .clone()
        .map(|file| bench.start(&format!("import {file}.csv a --append")))
        .collect();
    for mut import in imports {
        assert!(import.wait().unwrap().success());
    }
    let cells = csv(&bench, "a");
    for file in files {
        let cell = format!("{},label {file}\n", 10 + file);
        assert!(cells.contains(&cell), "{cells}");
    }
    assert!(bench.line("check a --deep").out.contains("all is well"));
}

#[test]
fn more_labels_than_a_type_has_room_for_are_refused_with_a_way_out() {
    let bench = Bench::new();
    let text = |i| format!("{i},label {i}\n");
    bench.write("a.csv", rows("id,c", 0..100, text));
    bench.write("b.csv", rows("id,c", 100..400, text));
    bench.line("import a.csv a --dims id --enumerate c");
    bench.fails("import b.csv a --append", 2, "--type c=UINT32");
    assert_eq!(bench.count("a"), 100);
    bench.line("export a all.csv");
    bench.line("import all.csv c --dims id --enumerate c --type c=UINT32");
    bench.line("import b.csv c --append");
    assert_eq!(bench.count("c"), 400);
    assert_eq!(bench.line("agg c distinct:c").out.trim(), "400");
}

#[test]
fn rows_that_are_added_count_together() {
    let bench = Bench::new();
    let text = |i| format!("{i},{i}.5\n");
    bench.write("a.csv", rows("id,v", 0..10, text));
    let many = rows("id,v", 0..20_000, text);
    bench.write("many.csv", &many);
    bench.line("import a.csv a --dims id --capacity 100");
    // Several fragments, of one commit.
    bench.line("import many.csv a --append --memory 256KiB");
    let fragments = bench.json("info a")["fragments"].as_u64().unwrap();
    assert!(fragments > 2, "{fragments}");
    let commits = std::fs::read_dir(bench.path().join("a/__commits")).unwrap();
    assert_eq!(commits.count(), 2);
    assert_eq!(bench.count("a"), 20_010);
    assert!(bench.line("check a").out.contains("all is well"));
    // What is wrong in the end takes all of it along.
    bench.write("wrong.csv", format!("{many}7,x\n"));
    bench.fails("import wrong.csv a --append --memory 256KiB", 1, "\"x\"");
    assert_eq!(bench.count("a"), 20_010);
    assert!(bench.line("check a").out.contains("all is well"));
    // So in a dense array of several boxes.
    bench.write("d.csv", "x,v\n0,1\n1,1\n");
    bench.line("import d.csv d --dims x --dense --domain x=0:99");
    bench.write("e.csv", "x,v\n10,1\n20,2\n30,3\n");
    bench.line("import e.csv d --append");
    assert_eq!(bench.json("info d")["fragments"], 4);
    let commits = std::fs::read_dir(bench.path().join("d/__commits")).unwrap();
    assert_eq!(commits.count(), 2);
    assert_eq!(
        bench
            .line("cat d --where 'v > 1' --range x=20:30 --step x=10 --format csv")
            .out,
        "v\n2\n3\n"
    );
}

#[test]
fn a_day_on_which_nothing_happened_adds_nothing() {
    let bench = Bench::new();
    bench.write("a.csv", "id,c\n1,red\n2,blue\n");
    bench.line("import a.csv rows");
    bench.line("import a.csv cells --dims id");
    bench.line("import a.csv labels --dims id --enumerate c");
    bench.write("lines.ndjson", "");
    bench.write("blank.ndjson", "\n\n");
    bench.write("list.json", "[]\n");
    bench.write("header.csv", "id,c\n");
    let domain = || bench.json("schema rows")["current_domain"].clone();
    let before = domain();
    for array in ["rows", "cells", "labels"] {
        for file in ["lines.ndjson", "blank.ndjson", "list.json", "header.csv"] {
            let dry = bench.json(&format!("import {file} {array} --append --dry-run"));
            assert_eq!(dry["rows"], 0, "{array} {file}");
            let added = bench.json(&format!("import {file} {array} --append"));
            assert_eq!(added["cells"], 0, "{array} {file}");
        }
        assert_eq!(bench.count(array), 2);
    }
    assert_eq!(domain(), before);
    // A row without values is none.
    bench.write("nothing.ndjson", "{}\n");
    for array in ["rows", "cells"] {
        let added = format!("import nothing.ndjson {array} --append");
        bench.fails(&added, 1, "missing");
        assert_eq!(bench.count(array), 2);
    }
}

#[test]
fn keys_that_no_line_has_are_missing_in_all() {
    let bench = Bench::new();
    bench.write("a.ndjson", "{\"id\":1,\"v\":1.5,\"s\":\"x\"}\n{\"id\":2}\n");
    bench.write("b.ndjson", "{\"id\":3}\n");
    for (array, options) in [("rows", ""), ("cells", "--dims id")] {
        bench.line(&format!("import a.ndjson {array} {options}"));
        bench.line(&format!("import b.ndjson {array} --append"));
        assert_eq!(csv(&bench, array), "id,v,s\n1,1.5,x\n2,,\n3,,\n");
    }
    // What cannot be missing is told, and so is what goes nowhere.
    bench.write("c.ndjson", "{\"ID\":4,\"v\":2}\n");
    bench.fails("import c.ndjson cells --append", 1, "coordinates");
    bench.fails(
        "import c.ndjson rows --append",
        1,
        "column ID of the file goes nowhere",
    );
    bench.fails("import c.ndjson rows --append --strict", 2, "--strict");
    assert_eq!(bench.count("rows"), 3);
    // A key whose attribute has another name is none of the missing ones.
    bench.write("d.ndjson", "{\"__k\":7}\n{}\n");
    bench.line("import d.ndjson d");
    bench.line("import d.ndjson d --append");
    assert_eq!(csv(&bench, "d"), "k\n7\n\n7\n\n");
}

/// As where a process may have 100 files open.
#[cfg(unix)]
#[test]
fn files_are_as_many_as_there_are() {
    use std::io::Write as _;
    let bench = Bench::new();
    for file in 0..120 {
        let text = format!("id,v\n{file},1\n");
        bench.write(&format!("plain{file:03}.csv"), &text);
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        bench.write(&format!("packed{file:03}.csv.gz"), packed.finish().unwrap());
    }
    for kind in ["plain", "packed"] {
        let imported = std::process::Command::new("sh")
            .args(["-c", "ulimit -n 100 && exec \"$0\" \"$@\""])
            .arg(assert_cmd::cargo::cargo_bin("azulejo"))
            .args(["import", &format!("{kind}*.csv*"), kind, "--dims", "id"])
            .current_dir(bench.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&imported.stderr);
        assert!(imported.status.success(), "{kind}: {said}");
        assert_eq!(bench.count(kind), 120);
    }
}

#[test]
fn a_store_of_nothing_is_refused() {
    let bench = Bench::new();
    bench.write("a.csv", "s\nx\ny\n");
    bench.line("import a.csv a");
    bench.fails("export a a.zarr", 2, "would be empty");
    assert!(!bench.path().join("a.zarr").exists());
}

/// Of a program that is built for itself: one that is built with the whole workspace has codecs for
/// the sake of others.
#[test]
fn compressed_columns_are_read() {
    let bench = Bench::new();
    let numbers = Int64Array::from((0i64..1_000).map(|i| i % 7).collect::<Vec<_>>());
    let batch = RecordBatch::try_from_iter([("x", Arc::new(numbers) as ArrayRef)]).unwrap();
    let mut files = Vec::new();
    for (name, codec) in [
        ("snappy", Compression::SNAPPY),
        ("gzip", Compression::GZIP(GzipLevel::default())),
        ("brotli", Compression::BROTLI(BrotliLevel::default())),
        ("lz4", Compression::LZ4),
        ("lz4_raw", Compression::LZ4_RAW),
        #[cfg(feature = "c-codecs")]
        ("zstd", Compression::ZSTD(ZstdLevel::default())),
    ] {
        let properties = WriterProperties::builder().set_compression(codec).build();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        files.push((format!("{name}.parquet"), file));
    }
    for (name, codec) in [
        ("lz4", CompressionType::LZ4_FRAME),
        #[cfg(feature = "c-codecs")]
        ("zstd", CompressionType::ZSTD),
    ] {
        let options = IpcWriteOptions::default();
        let options = options.try_with_compression(Some(codec)).unwrap();
        let mut file = Vec::new();
        let schema = batch.schema();
        let mut writer = FileWriter::try_new_with_options(&mut file, &schema, options).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        drop(writer);
        files.push((format!("{name}.feather"), file));
    }
    for (name, file) in files {
        bench.write(&name, file);
        bench.line(&format!("import {name} {name}.array"));
        assert_eq!(bench.count(&format!("{name}.array")), 1_000, "{name}");
    }
}

#[test]
fn several_files_are_one_document() {
    let bench = Bench::new();
    bench.write("a.csv", "x,v\n1,1\n2,2\n");
    bench.write("b.ndjson", "{\"x\": 3, \"v\": 3}\n");
    let shown = bench.json("import a.csv b.ndjson a --dims x --dry-run");
    assert_eq!(shown["dimensions"][0]["name"], "x");
    let done = bench.json("import a.csv b.ndjson a --dims x");
    assert_eq!(done["cells"], 3);
    assert_eq!(done["fragments"], 2);
    let read = ["a.csv", "b.ndjson"].map(|file| bench.path().join(file).metadata().unwrap().len());
    assert_eq!(done["bytes_read"], read.iter().sum::<u64>());
    let would = bench.json("import a.csv b.ndjson a --append --dry-run");
    assert_eq!(would.as_array().map(Vec::len), Some(2));
    let would = bench.json("import a.csv a --append --dry-run");
    assert_eq!(would["rows"], 2);
    assert_eq!(bench.count("a"), 3);
}

#[test]
fn few_rows_choose_no_filters_for_those_to_come() {
    let bench = Bench::new();
    let few = rows("x,v", 0..5, |i| format!("{i},{}\n", i % 7));
    bench.write("few.csv", few);
    let filters = |line: &str| -> Json {
        let schema = bench.json(&format!("{line} --dry-run"));
        schema["attributes"][0]["filters"]["filters"].clone()
    };
    let usual = filters("import few.csv a --dims x");
    assert_eq!(usual[0]["filter"], "byteshuffle");
    assert_eq!(usual[1]["filter"], "zstd");
    // Who asks for it gets what is best for these.
    assert_ne!(
        filters("import few.csv a --dims x --optimize balanced"),
        usual
    );
}

#[cfg(target_os = "linux")]
#[test]
fn an_export_without_room_names_its_file() {
    let bench = Bench::new();
    bench.write("a.csv", "x,v\n1,1\n");
    bench.line("import a.csv a --dims x");
    for format in ["csv", "parquet", "ndjson"] {
        bench.fails(
            &format!("export a /dev/full --format {format}"),
            1,
            "cannot write /dev/full",
        );
    }
}
