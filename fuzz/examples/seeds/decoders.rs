//! Inputs of the decoders: what the encoders make, in every kind that there is.

use azulejo::format::commit::{Delete, Update, UpdateValue};
use azulejo::format::condition::{Comparison, Condition};
use azulejo::format::filter::{Filter, FilterContext, Pipeline, Scratch};
use azulejo::format::fragment::{Footer, LocatedFooter};
use azulejo::format::metadata::{self, MetadataEntry, MetadataValue};
use azulejo::format::schema::{Attribute, DataOrder, Dimension, Enumeration, Layout};
use azulejo::format::tile::{GenericTile, GenericTileHeader};
use azulejo::format::wire::ByteWriter;
use azulejo::format::{ArraySchema, CellValNum, Datatype, FormatVersion, Range};
use azulejo_fuzz::made;

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
    seeds
}

fn version(number: u32) -> FormatVersion {
    FormatVersion::new(number, "seeds").expect("a version")
}

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
        (Datatype::StringAscii, CellValNum::Var),
        (Datatype::StringUtf8, CellValNum::Var),
    ];
    let mut seeds = Vec::new();
    for (i, filter) in every_filter().into_iter().enumerate() {
        for (datatype, cell_val_num) in types {
            for (number, max_chunk_size) in [(22, 64), (12, 0)] {
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
    let version = version(number);
    let context = FilterContext {
        version,
        datatype,
        cell_val_num,
        key: None,
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
    for (name, builder) in [("wide", wide), ("labels", labelled), ("words", enumerated)] {
        for number in [22, 20, 18, 17, 12, 7, 5] {
            let Ok(array) = builder.clone().version(version(number)).build() else {
                continue;
            };
            seeds.push(("schema", format!("{name}-{number}"), array.schema.encode()));
        }
    }
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
    ];
    let mut seeds = Vec::new();
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
    let recipes: [[u8; made::RECIPE_LEN]; 8] = [
        [0x00, 0x08, 0, 0x0b, 0, 0, 0x07, 0],
        [0x01, 0x08, 0, 0x0b, 0, 0, 0x01, 0],
        [0x06, 0x08, 0, 0x0b, 0, 0, 0x0f, 0],
        [0x03, 0x28, 0, 0x0b, 0, 0, 0x01, 0],
        [0x0a, 0x68, 0, 0x0a, 0, 0, 0x01, 0],
        [0x02, 0xa8, 0, 0x0b, 0, 0, 0x01, 0],
        [0x01, 0xc8, 0, 0x0c, 0, 0, 0x01, 0],
        [0x04, 0xe8, 0, 0x0b, 0, 0, 0x01, 0],
    ];
    let mut seeds = Vec::new();
    for (i, recipe) in recipes.iter().enumerate() {
        let Some(files) = made::files(recipe) else {
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
