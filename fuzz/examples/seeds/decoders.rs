//! Inputs of the decoders: what the encoders make, in every kind that there is.

use azulejo::format::commit::{Delete, Update, UpdateValue};
use azulejo::format::condition::{Comparison, Condition, FieldRef};
use azulejo::format::filter::{Filter, FilterContext, Pipeline, Scratch};
use azulejo::format::fragment::{
    ConsolidatedFooter, ConsolidatedFragmentMetadata, Footer, LocatedFooter,
};
use azulejo::format::metadata::{self, MetadataEntry, MetadataValue};
use azulejo::format::schema::{
    Attribute, DataOrder, Dimension, DimensionLabel, Enumeration, Layout,
};
use azulejo::format::tile::{GenericTile, GenericTileHeader};
use azulejo::format::wire::ByteWriter;
use azulejo::format::{ArraySchema, CellValNum, Datatype, FormatVersion, Range};
use azulejo::manifest::Manifest;
use azulejo::storage::Entry;
use azulejo_fuzz::decoders::KEY;
use azulejo_fuzz::made;
use bytes::Bytes;

/// A target, a name and bytes.
pub type Seed = (&'static str, String, Vec<u8>);

/// All of them.
#[must_use]
pub fn all() -> Vec<Seed> {
    let mut seeds = filters();
    seeds.extend(generic_tiles());
    seeds.extend(schemas());
    seeds.extend(conditions());
    seeds.extend(fragment_metadata());
    seeds.extend(tiles_of_chunks());
    seeds.extend(manifests());
    seeds.extend(small_files());
    seeds
}

fn version(number: u32) -> FormatVersion {
    FormatVersion::new(number, "seeds").expect("a version")
}

/// Said with a version: that a tile is encrypted.
const ENCRYPTED: u32 = 128;

/// Every filter with options that do something.
fn every_filter() -> Vec<Filter> {
    let mut all = Filter::ALL.to_vec();
    all.retain(|filter| !matches!(filter, Filter::FloatScale { .. } | Filter::Webp { .. }));
    all.extend([1, 2, 4, 8].map(|byte_width| Filter::FloatScale {
        scale: 0.5,
        offset: 1.0,
        byte_width,
    }));
    let lossless = [true, false];
    all.extend(lossless.map(|lossless| Filter::Webp {
        quality: 50.0,
        input_format: if lossless { 3 } else { 1 },
        lossless,
        y_extent: 4,
        x_extent: 12,
    }));
    all.extend([
        Filter::Delta {
            level: 0,
            reinterpret: Some(Datatype::UInt16),
        },
        Filter::DoubleDelta {
            level: 0,
            reinterpret: Some(Datatype::Int32),
        },
    ]);
    all
}

/// Cells that every filter can do something with: runs, increasing values, small differences.
fn cells() -> Vec<u8> {
    (0..48u8).flat_map(|i| [i / 5, 0, 0, 0]).collect()
}

fn filters() -> Vec<Seed> {
    let types = [
        (Datatype::UInt8, CellValNum::ONE),
        (Datatype::Int32, CellValNum::ONE),
        (Datatype::UInt64, CellValNum::ONE),
        (Datatype::Float64, CellValNum::ONE),
        (Datatype::Int16, CellValNum::Fixed(2)),
        (Datatype::Int8, CellValNum::ONE),
        (Datatype::UInt16, CellValNum::ONE),
        (Datatype::UInt32, CellValNum::ONE),
        (Datatype::Int64, CellValNum::ONE),
        (Datatype::Float32, CellValNum::ONE),
        (Datatype::DateTimeDay, CellValNum::ONE),
        (Datatype::Blob, CellValNum::ONE),
        (Datatype::StringAscii, CellValNum::Var),
        (Datatype::StringUtf8, CellValNum::Var),
    ];
    let mut seeds = Vec::new();
    for (i, filter) in every_filter().into_iter().enumerate() {
        for (datatype, cell_val_num) in types {
            for (number, max_chunk_size) in [(22, 64), (12, 0), (4, 64), (22 | ENCRYPTED, 64)] {
                let pipeline = Pipeline {
                    max_chunk_size,
                    filters: vec![filter.clone()],
                };
                let name = format!("{i}-{datatype:?}-{number}");
                seeds.extend(
                    filtered(&pipeline, number, datatype, cell_val_num)
                        .map(|bytes| ("filters", name, bytes)),
                );
            }
        }
    }
    // Pictures have a whole chunk; cells of three bytes; long runs of one text.
    for input_format in 1..=4 {
        for lossless in [true, false] {
            let pipeline = Pipeline {
                max_chunk_size: 65_536,
                filters: vec![Filter::Webp {
                    quality: 50.0,
                    input_format,
                    lossless,
                    y_extent: 16,
                    x_extent: 12,
                }],
            };
            let name = format!("picture-{input_format}-{lossless}");
            let bytes = filtered(&pipeline, 22, Datatype::UInt8, CellValNum::ONE);
            seeds.extend(bytes.map(|bytes| ("filters", name, bytes)));
        }
    }
    for filter in [
        Filter::Rle { level: 0 },
        Filter::Byteshuffle,
        Filter::Bitshuffle,
    ] {
        let pipeline = Pipeline {
            max_chunk_size: 96,
            filters: vec![filter],
        };
        let name = format!("threes-{:?}", pipeline.filters[0].id());
        let bytes = filtered(&pipeline, 22, Datatype::UInt8, CellValNum::Fixed(3));
        seeds.extend(bytes.map(|bytes| ("filters", name, bytes)));
    }
    // Behind one another.
    let chains: [Vec<Filter>; 4] = [
        vec![Filter::Byteshuffle, Filter::Zstd { level: 1 }],
        vec![
            Filter::BitWidthReduction { max_window: 16 },
            Filter::ChecksumMd5,
        ],
        vec![
            Filter::PositiveDelta { max_window: 32 },
            Filter::Gzip { level: 1 },
            Filter::ChecksumSha256,
        ],
        vec![Filter::Bitshuffle, Filter::Lz4 { level: 1 }],
    ];
    let more = [
        vec![
            Filter::BitWidthReduction { max_window: 8 },
            Filter::Zstd { level: 1 },
        ],
        vec![Filter::Rle { level: 0 }, Filter::Gzip { level: 1 }],
        vec![Filter::Dictionary { level: 0 }, Filter::Zstd { level: 1 }],
        vec![Filter::Byteshuffle, Filter::Byteshuffle],
        vec![
            Filter::FloatScale {
                scale: 1.0,
                offset: 0.0,
                byte_width: 1,
            },
            Filter::BitWidthReduction { max_window: 8 },
            Filter::PositiveDelta { max_window: 8 },
            Filter::DoubleDelta {
                level: 0,
                reinterpret: None,
            },
        ],
        vec![
            Filter::ChecksumMd5,
            Filter::ChecksumSha256,
            Filter::Bzip2 { level: 1 },
        ],
        vec![Filter::None, Filter::Xor, Filter::Lz4 { level: 1 }],
        vec![
            Filter::None,
            Filter::Webp {
                quality: 50.0,
                input_format: 3,
                lossless: true,
                y_extent: 4,
                x_extent: 12,
            },
        ],
        vec![Filter::Xor, Filter::Xor],
        vec![Filter::Bitshuffle, Filter::PositiveDelta { max_window: 8 }],
    ];
    for (i, filters) in more.into_iter().enumerate() {
        for (datatype, values) in [
            (Datatype::UInt32, CellValNum::ONE),
            (Datatype::Float64, CellValNum::ONE),
            (Datatype::StringAscii, CellValNum::Var),
        ] {
            let pipeline = Pipeline {
                max_chunk_size: 100,
                filters: filters.clone(),
            };
            seeds.extend(
                filtered(&pipeline, 22, datatype, values)
                    .map(|bytes| ("filters", format!("more-{i}-{datatype:?}"), bytes)),
            );
        }
    }
    for (i, filters) in chains.into_iter().enumerate() {
        let pipeline = Pipeline {
            max_chunk_size: 100,
            filters,
        };
        seeds.extend(
            filtered(&pipeline, 22, Datatype::UInt32, CellValNum::ONE)
                .map(|bytes| ("filters", format!("chain-{i}"), bytes)),
        );
    }
    seeds
}

/// A tile as the `filters` target takes it; `None` where the filters do not take the type.
fn filtered(
    pipeline: &Pipeline,
    number: u32,
    datatype: Datatype,
    cell_val_num: CellValNum,
) -> Option<Vec<u8>> {
    let key = (number & ENCRYPTED > 0).then_some(&KEY);
    let version = version(number & !ENCRYPTED);
    let context = FilterContext {
        version,
        datatype,
        cell_val_num,
        key,
    };
    let cells = cells();
    let offsets: Vec<u64> = (0..16).map(|i| i * 12).collect();
    let offsets = cell_val_num.is_var().then_some(offsets.as_slice());
    let mut stored = Vec::new();
    let encoded = pipeline.encode_tile(&context, &cells, offsets, &mut stored, &mut Scratch::new());
    encoded.ok()?;
    let mut w = ByteWriter::new();
    w.u8(number as u8);
    w.u8(datatype.id());
    w.u8(match cell_val_num {
        CellValNum::Var => 0,
        CellValNum::Fixed(values) => values as u8,
    });
    pipeline.encode(&mut w, version);
    w.bytes(&stored);
    Some(w.into_bytes())
}

/// Generic tiles with other filters than the usual one.
fn generic_tiles() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (i, filter) in every_filter().into_iter().enumerate() {
        let data = cells();
        let mut header = GenericTileHeader::new(version(22), data.len() as u64, false);
        header.filters = Pipeline {
            max_chunk_size: 64,
            filters: vec![filter],
        };
        let context = FilterContext {
            version: header.version,
            datatype: Datatype::Char,
            cell_val_num: CellValNum::ONE,
            key: None,
        };
        let (mut stored, mut scratch) = (Vec::new(), Scratch::new());
        let filters = &header.filters;
        if filters
            .encode_tile(&context, &data, None, &mut stored, &mut scratch)
            .is_err()
        {
            continue;
        }
        header.persisted_size = stored.len() as u64;
        let mut w = ByteWriter::new();
        header.encode(&mut w);
        w.bytes(&stored);
        seeds.push(("generic_tile", format!("filter-{i}"), w.into_bytes()));
    }
    for number in [22, 10, 5, 2] {
        for key in [None, Some(&KEY)] {
            if let Ok(bytes) = GenericTile::encode(&cells(), version(number), key) {
                let name = format!("usual-{number}-{}", key.is_some());
                seeds.push(("generic_tile", name, bytes));
            }
        }
    }
    seeds
}

/// Schemas with all that a schema may have, in several versions.
fn schemas() -> Vec<Seed> {
    let mut seeds = Vec::new();
    let types = (0..=u8::MAX).filter_map(|id| Datatype::from_id(id, 1).ok());
    let mut wide = ArraySchema::sparse().dimension("d", 0i64..=99, 10);
    for datatype in types {
        for (kind, values) in [("one", CellValNum::ONE), ("var", CellValNum::Var)] {
            let mut attribute = Attribute::new(format!("{datatype:?} {kind}"), datatype, values);
            attribute.nullable = kind == "var";
            let all = Filter::ALL;
            attribute.filters.filters = vec![all[usize::from(datatype.id()) % all.len()].clone()];
            if ArraySchema::sparse()
                .dimension("d", 0i64..=99, 10)
                .attribute_with(attribute.clone())
                .build()
                .is_ok()
            {
                wide = wide.attribute_with(attribute);
            }
        }
    }
    let words = |ordered| {
        Enumeration::of_strings("words", Datatype::StringUtf8, ordered, ["red", "", "green"])
            .expect("words")
    };
    let labelled = ArraySchema::dense()
        .dimension("x", 0i32..=99, 10)
        .dimension("y", 0i32..=9, 3)
        .attribute("a", Datatype::Int32)
        .label(0, "name", DataOrder::Increasing, Datatype::Float64)
        .label(1, "text", DataOrder::Unordered, Datatype::StringAscii)
        .current_domain([Range::of(0i32, 9), Range::of(1i32, 3)]);
    let enumerated = ArraySchema::sparse()
        .string_dimension("s")
        .dimension_with(Dimension::new("f", -1.0f64..=1.0))
        .cell_order(Layout::Hilbert)
        .enumeration(words(true))
        .attribute_with(Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words"));
    let small = |dense: bool| {
        let kind = if dense {
            ArraySchema::dense()
        } else {
            ArraySchema::sparse()
        };
        let mut ordered = Attribute::new("a", Datatype::Float32, CellValNum::ONE);
        ordered.order = DataOrder::Increasing;
        let mut filtered = Attribute::new("f", Datatype::Int64, CellValNum::Fixed(2));
        filtered.filters.filters = vec![
            Filter::Delta {
                level: 3,
                reinterpret: Some(Datatype::Int32),
            },
            Filter::FloatScale {
                scale: 0.5,
                offset: 1.0,
                byte_width: 2,
            },
            Filter::PositiveDelta { max_window: 7 },
            Filter::BitWidthReduction { max_window: 9 },
            Filter::Zstd { level: 5 },
        ];
        kind.dimension("x", 0i32..=99, 10)
            .dimension("y", -5i32..=5, 2)
            .attribute_with(ordered)
            .attribute_with(filtered)
            .var_attribute("v", Datatype::StringAscii)
    };
    for (name, builder) in [
        ("wide", wide),
        ("labels", labelled),
        ("words", enumerated),
        ("dense", small(true)),
        ("sparse", small(false)),
    ] {
        for number in (1..=22).rev() {
            // The wide one is long: in few versions.
            if name == "wide" && ![22, 20, 18, 17].contains(&number) {
                continue;
            }
            let Ok(array) = builder.clone().version(version(number)).build() else {
                continue;
            };
            seeds.push(("schema", format!("{name}-{number}"), array.schema.encode()));
        }
    }
    let plain = small(false).build().expect("a schema").schema.encode();
    // Behind version, duplicates, type, orders and capacity stand the filters of coordinates.
    let mut many = plain[..20].to_vec();
    many.extend(257u32.to_le_bytes());
    many.extend([0; 257 * 5]);
    seeds.push(("schema", "many-filters".into(), many));
    let mut global = plain;
    global[7] = Layout::Global as u8;
    seeds.push(("schema", "global-order".into(), global));
    let mut with_label = small(true).build().expect("a schema").schema;
    with_label.dimension_labels.push(DimensionLabel {
        dimension: 1,
        order: DataOrder::Decreasing,
        name: "label".into(),
        relative: true,
        uri: "__labels/l0".into(),
        attribute: "a".into(),
        datatype: Datatype::Float64,
        cell_val_num: CellValNum::ONE,
        external: false,
    });
    let mut picture = Attribute::new("p", Datatype::UInt8, CellValNum::ONE);
    picture.filters.filters = vec![Filter::Webp {
        quality: 50.0,
        input_format: 3,
        lossless: true,
        y_extent: 4,
        x_extent: 12,
    }];
    with_label.attributes.push(picture);
    seeds.push(("schema", "label-and-picture".into(), with_label.encode()));
    for ordered in [true, false] {
        seeds.push((
            "schema",
            format!("words-{ordered}"),
            words(ordered).encode(),
        ));
    }
    let data = [1i32, 5, 7]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect::<Vec<_>>();
    let numbers = Enumeration::of_fixed("numbers", Datatype::Int32, CellValNum::ONE, false, data);
    let numbers = numbers.expect("three numbers").encode();
    seeds.push(("schema", "numbers".into(), numbers));
    for (name, empty) in [
        (
            "none",
            Enumeration::of_strings("none", Datatype::StringAscii, true, [""; 0]),
        ),
        (
            "pairs",
            Enumeration::of_fixed(
                "pairs",
                Datatype::UInt8,
                CellValNum::Fixed(2),
                true,
                vec![1, 2, 3, 4],
            ),
        ),
    ] {
        seeds.extend(
            empty
                .ok()
                .map(|e| ("schema", format!("enumeration-{name}"), e.encode())),
        );
    }
    let entry = |key: &str, value| MetadataEntry {
        key: key.into(),
        value,
    };
    let entries = [
        entry(
            "number",
            Some(MetadataValue::new(Datatype::Int32, [1, 0, 0, 0])),
        ),
        entry(
            "text",
            Some(MetadataValue::new(Datatype::StringUtf8, *b"text")),
        ),
        entry("none", Some(MetadataValue::new(Datatype::Int8, []))),
        entry("gone", None),
    ];
    seeds.push(("schema", "keys".into(), metadata::encode(&entries)));
    seeds
}

/// Conditions of every kind, by themselves, in deletes and in updates.
fn conditions() -> Vec<Seed> {
    use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
    let leaf = |op| Condition::compare("a", op, 3i32.to_le_bytes());
    let all = [
        leaf(Lt).and(leaf(Le)).or(leaf(Gt).and(leaf(Ge))),
        leaf(Eq).or(leaf(Ne)).or(Condition::is_null("b")),
        Condition::is_in("s", ["x", "", "long"]),
        Condition::Not(Box::new(Condition::is_in("s", ["x"]))),
        Condition::Not(Box::new(leaf(Eq).and(leaf(Lt)))),
        leaf(Comparison::AlwaysTrue).or(leaf(Comparison::AlwaysFalse)),
        Condition::Not(Box::new(Condition::is_null("b"))),
        Condition::is_in("s", [""; 0]),
        Condition::Not(Box::new(leaf(Ge).or(leaf(Ne)))),
    ];
    let mut deep = leaf(Lt);
    for _ in 0..300 {
        deep = Condition::Or(vec![deep]);
    }
    let mut seeds = vec![("schema", "condition-deep".to_owned(), deep.encode())];
    // Nothing but a set: fields of any name.
    for negated in [false, true] {
        let set = Condition::In {
            field: FieldRef::raw("s"),
            negated,
            values: ["x", "", "long"].into_iter().collect(),
        };
        seeds.push(("schema", format!("set-{negated}"), set.encode()));
    }
    for (i, condition) in all.into_iter().enumerate() {
        seeds.push(("schema", format!("condition-{i}"), condition.encode()));
        let delete = Delete::of(condition.clone()).encode();
        seeds.push(("small_files", format!("delete-{i}"), delete));
        let value = UpdateValue {
            field: "a".into(),
            value: vec![1, 2, 3, 4],
        };
        let update = Update {
            kept: condition,
            values: vec![value],
        };
        seeds.push(("small_files", format!("update-{i}"), update.encode()));
    }
    seeds
}

/// Each section of fragments' metadata, and footers, behind their schema.
fn fragment_metadata() -> Vec<Seed> {
    // Every version, dense and sparse, with text and without, once and consolidated.
    let recipes = (0..8u8).flat_map(|version| {
        [
            [0x00, 0x08 | version << 5, 0, 0x0b, 0, 0, 0x07, 0],
            [0x01, 0x08 | version << 5, 0, 0x0a, 0, 0, 0x01, 0],
            [0x06, 0x08 | version << 5, 0, 0x0c, 0, 0, 0x0f, 0],
        ]
    });
    let mut seeds = Vec::new();
    for (i, recipe) in recipes.enumerate() {
        let Some(files) = made::files(&recipe) else {
            continue;
        };
        let schema = files.iter().find_map(|(name, content)| {
            let name = name.strip_prefix("__schema/")?;
            let tile = GenericTile::decode(content, None, 1 << 20).ok()?;
            (!name.contains('/')).then_some(tile.data)
        });
        let Some(payload) = schema else { continue };
        let Ok(schema) = ArraySchema::decode(&payload) else {
            continue;
        };
        let metadata = files
            .iter()
            .find(|(name, _)| name.ends_with("__fragment_metadata.tdb"));
        let Some((_, content)) = metadata else {
            continue;
        };
        let located = Footer::locate(content, content.len() as u64, schema.version, Some(&schema));
        let Ok(LocatedFooter::Found { offset, bytes }) = located else {
            continue;
        };
        let mut parts = vec![bytes.to_vec()];
        let mut at = 0;
        while at < offset as usize {
            let Ok(section) = GenericTile::decode(&content[at..], None, 1 << 20) else {
                break;
            };
            at += section.consumed;
            parts.push(section.data);
        }
        // The whole file, and its footer among others.
        parts.push(content.clone());
        let name = "__1_2_0123456789abcdef0123456789abcdef_22";
        let footer = ConsolidatedFooter {
            fragment: name,
            footer: bytes,
        };
        let footers = ConsolidatedFragmentMetadata {
            footers: vec![footer],
        };
        parts.push(footers.encode());
        parts.sort();
        parts.dedup();
        for (number, part) in parts.iter().enumerate() {
            let mut w = ByteWriter::new();
            w.u32(payload.len() as u32);
            w.bytes(&payload);
            w.bytes(part);
            seeds.push(("fragment_metadata", format!("{i}-{number}"), w.into_bytes()));
        }
    }
    seeds
}

/// Stored tiles of the cells of two bytes that the target takes, behind how they are read.
fn tiles_of_chunks() -> Vec<Seed> {
    let mut seeds = Vec::new();
    let pipelines: [Vec<Filter>; 4] = [
        vec![],
        vec![Filter::ChecksumMd5],
        vec![Filter::BitWidthReduction { max_window: 8 }],
        vec![Filter::Byteshuffle, Filter::Zstd { level: 1 }],
    ];
    for (i, filters) in pipelines.into_iter().enumerate() {
        for (max_chunk_size, len) in [(16, 50), (0, 50), (6, 18), (16, 0)] {
            let pipeline = Pipeline {
                max_chunk_size,
                filters: filters.clone(),
            };
            let context = FilterContext {
                version: version(22),
                datatype: Datatype::UInt16,
                cell_val_num: CellValNum::ONE,
                key: None,
            };
            let (mut stored, mut scratch) = (Vec::new(), Scratch::new());
            let cells: Vec<u8> = (0..len).collect();
            let encoded = pipeline.encode_tile(&context, &cells, None, &mut stored, &mut scratch);
            encoded.expect("a tile");
            for (ahead, wanted) in [(0, 0xff), (40, 0b0100_1001), (12, 0)] {
                let name = format!("{i}-{max_chunk_size}-{len}-{ahead}");
                let bytes = [&[ahead, wanted], stored.as_slice()].concat();
                seeds.push(("tile_chunks", name, bytes));
            }
        }
    }
    seeds
}

/// What manifests hold, as they are stored and without their checksum; some of it wrong.
fn manifests() -> Vec<Seed> {
    let entry = |name: &str, is_dir: bool, size| Entry {
        name: name.into(),
        is_dir,
        size,
    };
    let root = vec![entry("__commits", true, None), entry("x", false, Some(3))];
    let manifest =
        |folders: Vec<(&str, Vec<Entry>)>, contents: Vec<(&str, &'static [u8])>| Manifest {
            made: 1,
            folders: folders
                .into_iter()
                .map(|(path, all)| (path.to_owned(), all))
                .collect(),
            contents: contents
                .into_iter()
                .map(|(path, bytes)| (path.to_owned(), Bytes::from_static(bytes)))
                .collect(),
        };
    let commits = || vec![entry("a", false, None), entry("b", false, Some(0))];
    let all = [
        manifest(vec![("", root.clone()), ("__commits", commits())], vec![]),
        manifest(
            vec![("", root.clone()), ("__commits", commits())],
            vec![("__commits/b", b""), ("x", b"abc")],
        ),
        // Leads elsewhere; has no root; names no file; has a size that is wrong.
        manifest(vec![("", root.clone()), ("a/../b", commits())], vec![]),
        manifest(vec![("a", commits())], vec![]),
        manifest(vec![("", vec![entry("..", true, None)])], vec![]),
        manifest(vec![("", vec![entry("a/b", true, None)])], vec![]),
        manifest(
            vec![("", vec![entry("b", true, None), entry("a", true, None)])],
            vec![],
        ),
        manifest(vec![("", root.clone())], vec![("y", b"abc")]),
        manifest(vec![("", root)], vec![("x", b"abcd")]),
    ];
    let mut seeds = Vec::new();
    for (i, manifest) in all.iter().enumerate() {
        let stored = manifest.encode().expect("it can be encoded");
        let tile = GenericTile::decode(&stored, None, 1 << 20).expect("a tile");
        seeds.push(("manifest", format!("{i}"), stored));
        seeds.push(("manifest", format!("{i}-plain"), tile.data.clone()));
        if i == 1 {
            // As earlier releases and later ones would say, sorted wrongly, and without a checksum.
            for (at, byte) in [(0, b'x'), (4, 3), (4, 0), (4, 1), (24, 9)] {
                let mut data = tile.data.clone();
                data[at] = byte;
                seeds.push(("manifest", format!("{i}-{at}-{byte}"), data));
            }
            let bare = GenericTile::encode(&tile.data, version(22), None).expect("a tile");
            seeds.push(("manifest", "bare".into(), bare));
        }
    }
    seeds
}

/// Names of every style, and groups.
fn small_files() -> Vec<Seed> {
    const ID: &str = "0123456789abcdef0123456789abcdef";
    let names = [
        format!("__1_2_{ID}_22"),
        format!("__1_2_{ID}_22.wrt"),
        format!("__1_2_{ID}"),
        format!("__{ID}_7"),
        format!("__{ID}_1_2"),
        format!("__1_{ID}"),
        format!("__2_1_{ID}_22"),
        "__1_2_x_22".to_owned(),
        "__1__2".to_owned(),
        "__18446744073709551616_1_a_1".to_owned(),
        "x".to_owned(),
        format!("__1_2_{ID}_22.con"),
        format!("file:///a/b/__fragments/__1_2_{ID}_22\n"),
    ];
    let names = names.iter().enumerate();
    names
        .map(|(i, name)| {
            (
                "small_files",
                format!("name-{i}"),
                name.clone().into_bytes(),
            )
        })
        .collect()
}
