//! GeoTIFF in and out: files as GDAL writes them (`make_geotiff.py`), and back.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use std::path::Path;
use support::Bench;

/// A folder with the files in it.
fn files() -> Bench {
    let bench = Bench::new();
    let packed = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/geotiff.tar.gz"));
    let packed = packed.unwrap();
    let unpacked = flate2::read::GzDecoder::new(&packed[..]);
    tar::Archive::new(unpacked).unpack(bench.path()).unwrap();
    bench
}

/// The cells of a dataset, by bands, rows and columns.
fn cells(bench: &Bench, uri: &str) -> Vec<f64> {
    bench.line(&format!("export {uri}/band_data {uri}.npy --force"));
    let bytes = std::fs::read(bench.path().join(format!("{uri}.npy"))).unwrap();
    let text = String::from_utf8_lossy(&bytes[..128]).into_owned();
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let kind = text.split("'descr': '").nth(1).unwrap();
    let (order, kind) = kind.split_at(1);
    assert!(order == "<" || order == "|", "{text}");
    let number = |b: &[u8]| -> f64 {
        match &kind[..2] {
            "u1" => f64::from(b[0]),
            "i1" => f64::from(b[0] as i8),
            "u2" => f64::from(u16::from_le_bytes(b.try_into().unwrap())),
            "i2" => f64::from(i16::from_le_bytes(b.try_into().unwrap())),
            "u4" => f64::from(u32::from_le_bytes(b.try_into().unwrap())),
            "i4" => f64::from(i32::from_le_bytes(b.try_into().unwrap())),
            "u8" => u64::from_le_bytes(b.try_into().unwrap()) as f64,
            "i8" => i64::from_le_bytes(b.try_into().unwrap()) as f64,
            "f4" => f64::from(f32::from_le_bytes(b.try_into().unwrap())),
            _ => f64::from_le_bytes(b.try_into().unwrap()),
        }
    };
    let size: usize = kind[1..2].parse().unwrap();
    bytes[start..].chunks_exact(size).map(number).collect()
}

/// What the files hold.
fn expected(bands: usize, half: bool, bits: u32) -> Vec<f64> {
    let mut out = Vec::new();
    for band in 0..bands {
        for row in 0..45 {
            for column in 0..53 {
                let number = ((7 * band + 53 * row + column) % 100) & ((1usize << bits) - 1);
                out.push(number as f64 + if half { 0.5 } else { 0.0 });
            }
        }
    }
    out
}

#[test]
fn every_type_and_compression_gives_the_same_cells() {
    let bench = files();
    let mut names: Vec<String> = std::fs::read_dir(bench.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let kinds = ["uint", "int", "float"];
    let special = ["uint8-jpeg.tif", "uint8-palette.tif"];
    let usual = |name: &&String| {
        kinds.iter().any(|kind| name.starts_with(kind)) && !special.contains(&name.as_str())
    };
    let names: Vec<&String> = names.iter().filter(usual).collect();
    assert!(names.len() >= 75, "{}", names.len());
    for (at, name) in names.into_iter().enumerate() {
        bench.line(&format!("import {name} r{at}"));
        let bits = name
            .split("-bits")
            .nth(1)
            .map(|rest| rest.trim_end_matches(".tif"));
        let bits = bits.map_or(30, |bits| bits.parse().unwrap());
        let bands = match name.as_str() {
            name if name.contains("-four") => 4,
            name if name.contains("-seven") => 7,
            _ => 2,
        };
        let half = name.starts_with("float");
        let bits = if half { 30 } else { bits };
        assert!(
            cells(&bench, &format!("r{at}")) == expected(bands, half, bits),
            "{name}"
        );
        // And back: our own file is read again as the same.
        if at % 5 == 0 || bands > 2 || bits < 30 {
            bench.line(&format!("export r{at} back.tif --force"));
            bench.line(&format!("import back.tif b{at}"));
            assert!(
                cells(&bench, &format!("b{at}")) == expected(bands, half, bits),
                "{name}"
            );
        }
    }
}

fn key(bench: &Bench, variable: &str, key: &str) -> String {
    let (_, name) = variable.rsplit_once('/').unwrap();
    let said = bench.line(&format!("meta {variable} __tiledb_attr.{name}.{key}"));
    said.out.trim().to_owned()
}

#[test]
fn rasters_are_laid_out_as_xarray_has_them() {
    let bench = files();
    bench.line("import int16.tif a");
    let schema = bench.json("schema a/band_data");
    let dims: Vec<&str> = (schema["dimensions"].as_array().unwrap().iter())
        .map(|d| d["name"].as_str().unwrap())
        .collect();
    assert_eq!(dims, ["band", "y", "x"]);
    let x = bench.line("cat a/x --limit 2").out;
    assert!(x.contains("300.05") && x.contains("300.15"), "{x}");
    let y = bench.line("cat a/y --limit 2").out;
    assert!(y.contains("5000.9") && y.contains("5000.7"), "{y}");
    assert_eq!(
        key(&bench, "a/spatial_ref", "GeoTransform"),
        "300.0 0.1 0.0 5001.0 0.0 -0.2"
    );
    assert_eq!(key(&bench, "a/spatial_ref", "spatial_ref"), "EPSG:32632");
    assert_eq!(key(&bench, "a/band_data", "grid_mapping"), "spatial_ref");
    bench.line("check a/band_data --deep");
    bench.fails("import int16.tif a", 2, "is there already");
    bench.fails("import int16.tif b --dims y,x", 2, "--dims");
    bench.fails("import int16.tif a --append", 2, "append_dim");
    let plan = bench.line("import int16.tif b --dry-run").out;
    assert!(plan.contains("band, y, x"), "{plan}");
    assert!(!bench.path().join("b").exists());
    // Small memory, the same cells.
    bench.line("import uint16-seven.tif small --memory 1MB");
    assert!(cells(&bench, "small") == expected(7, false, 30));
    bench.line("export small small.tif --memory 1MB");
    bench.line("import small.tif again");
    assert!(cells(&bench, "again") == expected(7, false, 30));
}

#[test]
fn what_is_unusual_is_kept_too() {
    let bench = files();
    for (name, bands) in [
        ("turned", 1),
        ("uint8-palette", 1),
        ("points", 1),
        ("sparse", 1),
    ] {
        let said = bench.line(&format!("import {name}.tif {name}"));
        bench.line(&format!("export {name} {name}.2.tif"));
        bench.line(&format!("import {name}.2.tif {name}2"));
        let (found, again) = (cells(&bench, name), cells(&bench, &format!("{name}2")));
        assert!(found == again, "{name}");
        let mut wanted = expected(bands, name == "points", 30);
        if name == "sparse" {
            for row in 16..32 {
                wanted[row * 53 + 16..row * 53 + 32].fill(-1.0);
            }
        }
        assert!(found == wanted, "{name}");
        if name == "turned" {
            assert!(said.err.contains("no straight axes"), "{}", said.err);
            assert!(!bench.path().join("turned/x").exists());
        }
    }
    for name in ["turned", "points"] {
        let keys = ["GeoTransform", "geo_key_directory"];
        for each in keys {
            let variable = format!("{name}/spatial_ref");
            let again = format!("{name}2/spatial_ref");
            assert_eq!(
                key(&bench, &variable, each),
                key(&bench, &again, each),
                "{name}"
            );
        }
    }
    for each in [
        "AREA_OR_POINT",
        "TIFFTAG_SOFTWARE",
        "GDAL_METADATA",
        "scale_factor",
        "add_offset",
    ] {
        let (variable, again) = ("points/band_data", "points2/band_data");
        assert_eq!(
            key(&bench, variable, each),
            key(&bench, again, each),
            "{each}"
        );
    }
    assert_eq!(key(&bench, "points/band_data", "AREA_OR_POINT"), "Point");
    assert_eq!(key(&bench, "points/band_data", "scale_factor"), "0.5");
    assert_eq!(key(&bench, "sparse/band_data", "_FillValue"), "-1");
    let colours = key(&bench, "uint8-palette/band_data", "color_map");
    assert_eq!(
        colours,
        key(&bench, "uint8-palette2/band_data", "color_map")
    );
    // The tile that was never written is none of the array's either.
    let packed = bench.json("fragments sparse/band_data");
    assert!(!packed.as_array().unwrap().is_empty());
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    let bench = files();
    bench.fails("import uint8-jpeg.tif a", 1, "JPEG");
    bench.fails("import complex64.tif a", 1, "complex numbers");
    bench.write("empty.tif", "");
    bench.fails("import empty.tif a", 1, "no TIFF");
    let whole = std::fs::read(bench.path().join("int16-deflate.tif")).unwrap();
    bench.write("half.tif", &whole[..whole.len() / 2]);
    bench.fails("import half.tif a", 1, "half.tif");
    assert!(!bench.path().join("a").exists());
    bench.line("import int16.tif a");
    bench.fails("export a x.tif --range x=0:3", 2, "no selection");
    bench.fails("export a/x x.tif", 2, "rows and columns");
    assert!(!bench.path().join("x.tif").exists());
}

#[test]
fn arrays_without_a_place_are_exported_too() {
    let bench = files();
    bench.line("import int16.tif a");
    let said = bench.line("export a/band_data plain.tif");
    assert!(said.err.contains("where it lies"), "{}", said.err);
    bench.line("import plain.tif b");
    assert!(cells(&bench, "b") == expected(2, false, 30));
    let x = bench.line("cat b/x --limit 1").out;
    assert!(x.contains("0.5"), "{x}");
    // What lies beside another raster is nobody's to remove.
    bench.write("other.tif.aux.xml", "<PAMDataset/>");
    bench.fails(
        "export a/band_data other.tif",
        2,
        "other.tif.aux.xml exists",
    );
    assert!(!bench.path().join("other.tif").exists());
    assert!(bench.path().join("other.tif.aux.xml").exists());
    bench.line("export a/band_data other.tif --force");
    assert!(!bench.path().join("other.tif.aux.xml").exists());
}
