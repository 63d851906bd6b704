use super::*;
use crate::datatype::Datatype;
use crate::fragment::sample::schema;
use crate::fragment::{FieldStats, RTreeBuilder, Slots};
use crate::range::{NdRectangle, Range};

const LIMIT: u64 = 1 << 20;
const TILES: usize = 12;

fn sample(version: FormatVersion, schema: &ArraySchema) -> FragmentMetadata {
    let (timestamps, deletes) = (version.has_cell_timestamps(), version.has_delete_metadata());
    let slots = Slots::new(version, schema, timestamps, deletes);
    let all = slots.len();
    let mut rtree = RTreeBuilder::new(&schema.domain);
    for tile in 0..TILES as i64 {
        rtree
            .push(&[
                Range::of(tile, tile + 2).as_ref(),
                Range::new("a", "b").as_ref(),
            ])
            .unwrap();
    }
    let fields: Vec<FieldMetadata> = slots
        .fields()
        .enumerate()
        .map(|(slot, field)| {
            let mut metadata = FieldMetadata::empty(field, schema);
            let offsets = |step: u64, size| {
                TileOffsets::new((0..TILES as u64).map(|i| i * step).collect(), size)
            };
            metadata.offsets = offsets(slot as u64, 500).unwrap();
            metadata.var_offsets = offsets(3, 501).unwrap();
            metadata.var_sizes = TileSizes {
                sizes: vec![9; TILES],
            };
            if version.has_nullable() {
                metadata.validity_offsets = offsets(4, 502).unwrap();
            }
            if version.has_tile_stats() {
                metadata.sums = TileSums {
                    bits: vec![5; TILES],
                };
                metadata.null_counts = TileNullCounts {
                    counts: vec![slot as u64; TILES],
                };
                if let TileBounds::Fixed { cell_size, values } = &mut metadata.mins {
                    values.resize(TILES * *cell_size, 1);
                }
            }
            metadata
        })
        .collect();
    let stats = |slot: usize| FieldStats {
        min: vec![slot as u8],
        max: vec![],
        sum_bits: 1,
        null_count: 2,
    };
    let has_stats = version.has_fragment_stats() && !version.may_lack_fragment_stats();
    let bounds = TileBounds::Var {
        offsets: vec![0; TILES],
        values: b"x".to_vec(),
    };
    let fixed = TileBounds::Fixed {
        cell_size: 8,
        values: vec![3; 8 * TILES],
    };
    let optional = version.has_optional_sections();
    FragmentMetadata {
        footer: Footer {
            version,
            schema_name: version
                .has_schema_evolution()
                .then(|| "__1_1_ab".to_owned()),
            dense: false,
            non_empty_domain: Some(NdRectangle {
                ranges: vec![Range::of(0i64, 13), Range::new("a", "b")],
            }),
            sparse_tile_num: TILES as u64,
            last_tile_cell_num: 7,
            has_timestamps: timestamps,
            has_delete_metadata: deletes,
            slots,
            file_sizes: vec![500; all].into(),
            file_var_sizes: vec![501; all].into(),
            file_validity_sizes: vec![502; if version.has_nullable() { all } else { 0 }].into(),
            sections: SectionOffsets::default(),
            optional_sections: if optional {
                vec![OptionalSection::TileGlobalOrderBounds {
                    mins: Vec::new(),
                    maxs: Vec::new(),
                }]
            } else {
                Vec::new()
            },
            offset: None,
        },
        rtree: rtree.build(),
        fields,
        stats: FragmentStats {
            fields: if has_stats {
                (0..all).map(stats).collect()
            } else {
                Vec::new()
            },
        },
        processed_conditions: ProcessedConditions {
            names: if version.has_deletes() {
                vec!["__commits/__1_1_ab_22.del".into()]
            } else {
                Vec::new()
            },
        },
        global_order: if optional {
            vec![(fixed.clone(), fixed), (bounds.clone(), bounds)]
        } else {
            Vec::new()
        },
    }
}

fn versions() -> impl Iterator<Item = FormatVersion> {
    FormatVersion::all().filter(|version| version.has_separate_dimensions())
}

#[test]
fn what_is_written_reads_back_in_all_versions() {
    let key = EncryptionKey::new([7; 32]);
    for version in versions() {
        let schema = schema(version, &[Datatype::Int64, Datatype::StringAscii]);
        for key in [None, Some(&key)] {
            let mut metadata = sample(version, &schema);
            let file = metadata.encode(&schema, key).unwrap();
            let decoded = FragmentMetadata::decode(&file, version, &schema, key, LIMIT).unwrap();
            assert_eq!(decoded, metadata, "{version}");
            // Without a key it is determined.
            let again = metadata.encode(&schema, key).unwrap();
            assert_eq!(file == again, key.is_none());
        }
    }
}

#[test]
fn sections_lie_in_the_order_of_writers() {
    let version = FormatVersion::CURRENT;
    let schema = schema(version, &[Datatype::Int64, Datatype::StringAscii]);
    let mut metadata = sample(version, &schema);
    let file = metadata.encode(&schema, None).unwrap();
    let s = &metadata.footer.sections;
    let lists: [&[u64]; 9] = [
        &[s.rtree],
        &s.tile_offsets,
        &s.tile_var_offsets,
        &s.tile_var_sizes,
        &s.tile_validity_offsets,
        &s.tile_mins,
        &s.tile_maxs,
        &s.tile_sums,
        &s.tile_null_counts,
    ];
    let mut offsets: Vec<u64> = lists.into_iter().flatten().copied().collect();
    offsets.extend(
        s.fragment_stats
            .iter()
            .chain(&s.processed_conditions)
            .chain(&metadata.footer.offset),
    );
    assert_eq!(offsets[0], 0);
    assert!(offsets.is_sorted_by(|a, b| a < b), "{offsets:?}");
    // Each section ends where the next begins.
    for pair in offsets.windows(2) {
        let tile = GenericTile::decode(&file[pair[0] as usize..], None, LIMIT).unwrap();
        assert_eq!(tile.consumed as u64, pair[1] - pair[0]);
    }
}

#[test]
fn lists_that_lack_fields_are_refused() {
    let version = FormatVersion::CURRENT;
    let schema = schema(version, &[Datatype::Int64, Datatype::StringAscii]);
    let mut metadata = sample(version, &schema);
    metadata.fields.pop();
    assert!(metadata.encode(&schema, None).is_err());
}

#[test]
fn damage_is_an_error_or_a_value() {
    let version = FormatVersion::CURRENT;
    let schema = schema(version, &[Datatype::Int64, Datatype::StringAscii]);
    let file = sample(version, &schema).encode(&schema, None).unwrap();
    let decode = |bytes: &[u8]| FragmentMetadata::decode(bytes, version, &schema, None, LIMIT);
    for len in (0..file.len()).step_by(7) {
        let _ = decode(&file[..len]);
    }
    let mut changed = file.clone();
    for i in 0..file.len() {
        changed[i] ^= 0x80;
        let _ = decode(&changed);
        changed[i] ^= 0x80;
    }
}
