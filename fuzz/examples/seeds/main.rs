//! Writes inputs that were thought of, and not taken from arrays or found, into `fuzz/target/seeds`:
//! `cargo run --example seeds`. `cargo xtask fuzz --keep` keeps those that reach more.

mod decoders;
mod texts;

#[cfg(feature = "calls")]
use azulejo_fuzz::calls;
use azulejo_fuzz::{arrays, made};
use std::path::Path;

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/seeds");
    let keep = |target: &str, name: &str, input: &[u8]| {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(format!("seed-{name}")), input).expect("a file");
    };
    for (target, name, bytes) in decoders::all() {
        keep(target, &name, &bytes);
    }
    for (name, bytes) in texts::all() {
        keep("texts", &name, &bytes);
    }
    // Every kind of array with every kind of what came after its first write.
    let mut made = 0;
    for shape in 0..=16u8 {
        for (kind, after) in [
            (0x08, 0x07),
            (0x09, 0x1f),
            (0xe8, 0x23),
            (0x8a, 0x7f),
            (0x40, 0x01),
        ] {
            let filters = shape.wrapping_mul(5) ^ after;
            let recipe = [shape * 15, kind, 0, filters, shape, filters >> 1, after, 0];
            if let Some(files) = made::files(&recipe) {
                made += 1;
                keep("made_array", &format!("{shape}-{kind:x}"), &recipe);
                let folder = arrays::pack_folder(&files);
                if made % 8 == 0 && folder.len() < 8 << 10 {
                    keep("whole_array", &format!("plain-{shape}-{kind:x}"), &folder);
                }
            }
        }
    }
    println!("{made} recipes make an array");
    #[cfg(feature = "calls")]
    for (name, type_of_array) in [("sparse", 1), ("dense", 0)] {
        keep("calls", name, &array(type_of_array));
    }
}

#[cfg(feature = "calls")]
/// Creates an array, writes to it, reads it, looks at its fragments.
fn array(type_of_array: u8) -> Vec<u8> {
    let dense = type_of_array == 0;
    // Names: `a`, `x`, `mem://a`. A handle is counted from the latest one on.
    let (a, x, uri) = (1, 3, 4);
    let mut all: Vec<(&str, Vec<u8>)> = vec![
        ("tiledb_dimension_alloc", vec![0, x, 1, 200, 74, 64]),
        ("tiledb_domain_alloc", vec![0, 64]),
        ("tiledb_domain_add_dimension", vec![0, 0, 1]),
        ("tiledb_attribute_alloc", vec![0, a, 0, 64]),
        ("tiledb_array_schema_alloc", vec![0, type_of_array, 64]),
        ("tiledb_array_schema_set_domain", vec![0, 0, 2]),
        ("tiledb_array_schema_add_attribute", vec![0, 0, 1]),
        (
            "tiledb_array_schema_set_allows_dups",
            vec![0, 0, 1 - u8::from(dense)],
        ),
        ("tiledb_array_schema_check", vec![0, 0]),
        ("tiledb_array_create", vec![0, uri, 0]),
        ("tiledb_array_alloc", vec![0, uri, 64]),
        ("tiledb_array_open", vec![0, 0, 1]),
        ("tiledb_array_put_metadata", vec![0, 0, a, 0, 1, 70]),
        ("tiledb_query_alloc", vec![0, 0, 1, 64]),
        (
            "tiledb_query_set_layout",
            vec![0, 0, if dense { 0 } else { 3 }],
        ),
        ("tiledb_query_set_data_buffer", vec![0, 0, a, 2, 32]),
        ("tiledb_query_set_data_buffer", vec![0, 0, x, 2, 64]),
        ("tiledb_query_submit", vec![0, 0]),
        ("tiledb_query_finalize", vec![0, 0]),
        ("tiledb_array_close", vec![0, 1]),
        ("tiledb_array_open", vec![0, 1, 0]),
        ("tiledb_query_alloc", vec![0, 1, 0, 64]),
        ("tiledb_subarray_alloc", vec![0, 2, 64]),
        ("tiledb_subarray_add_range", vec![0, 0, 0, 64, 69, 0xff]),
        ("tiledb_query_set_subarray_t", vec![0, 1, 0]),
        ("tiledb_query_set_data_buffer", vec![0, 1, a, 2, 40]),
        ("tiledb_query_set_data_buffer", vec![0, 1, x, 2, 80]),
        ("tiledb_query_submit", vec![0, 1]),
        ("tiledb_query_get_status", vec![0, 1, 64]),
        ("tiledb_query_get_est_result_size", vec![0, 1, a, 64]),
        ("tiledb_array_get_metadata_num", vec![0, 3, 64]),
        ("tiledb_fragment_info_alloc", vec![0, uri, 64]),
        ("tiledb_fragment_info_load", vec![0, 0]),
        ("tiledb_fragment_info_get_fragment_num", vec![0, 0, 64]),
        ("tiledb_array_consolidate", vec![0, uri, 0xff]),
        ("tiledb_array_vacuum", vec![0, uri, 0xff]),
    ];
    if dense {
        all.retain(|(name, choices)| *name != "tiledb_query_set_data_buffer" || choices[2] != x);
    }
    all.iter()
        .flat_map(|(name, choices)| calls::encode(name, choices))
        .collect()
}
