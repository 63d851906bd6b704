use super::*;
use crate::datatype::Datatype;
use crate::fragment::sample::{damage, schema};

fn versions() -> impl Iterator<Item = FormatVersion> {
    FormatVersion::all().filter(|version| version.has_footer())
}

/// Domains that occur in `version`, with a non-empty domain in each.
fn cases(version: FormatVersion) -> Vec<(ArraySchema, NdRectangle)> {
    let numbers = schema(version, &[Datatype::Int32, Datatype::Int32]);
    let box_ = NdRectangle {
        ranges: vec![Range::of(-3i32, 9), Range::of(0i32, 2)],
    };
    let mut cases = vec![(numbers, box_)];
    if version.has_separate_dimensions() {
        let mixed = schema(version, &[Datatype::StringAscii, Datatype::Float64]);
        cases.push((
            mixed,
            NdRectangle {
                ranges: vec![Range::new("", "zürich"), Range::of(-0.5, 1e9)],
            },
        ));
    }
    cases
}

fn footer(
    version: FormatVersion,
    schema: &ArraySchema,
    domain: Option<NdRectangle>,
    more: bool,
) -> Footer {
    let has_timestamps = more && version.has_cell_timestamps();
    let has_delete_metadata = more && version.has_delete_metadata();
    let slots = Slots::new(version, schema, has_timestamps, has_delete_metadata);
    let mut next = 0;
    let mut list = |present: bool, len: usize| -> Numbers {
        let len = if present { len } else { 0 };
        (0..len)
            .map(|_| {
                next += 7;
                next
            })
            .collect()
    };
    let (all, var) = (slots.len(), slots.var_len(version));
    let (nullable, stats) = (version.has_nullable(), version.has_tile_stats());
    let file_sizes = list(true, all);
    let file_var_sizes = list(true, var);
    let file_validity_sizes = list(nullable, all);
    let sections = SectionOffsets {
        rtree: 0,
        tile_offsets: list(true, all),
        tile_var_offsets: list(true, var),
        tile_var_sizes: list(true, var),
        tile_validity_offsets: list(nullable, all),
        tile_mins: list(stats, all),
        tile_maxs: list(stats, all),
        tile_sums: list(stats, all),
        tile_null_counts: list(stats, all),
        fragment_stats: list(stats, 1).first().copied(),
        processed_conditions: list(version.has_deletes(), 1).first().copied(),
    };
    let dims = schema.domain.dimensions.len();
    let bounds = OptionalSection::TileGlobalOrderBounds {
        mins: list(true, dims).to_vec(),
        maxs: list(true, dims).to_vec(),
    };
    let unknown = OptionalSection::Unknown {
        id: 77,
        data: vec![1, 2, 3],
    };
    let optional = version.has_optional_sections() && more;
    Footer {
        version,
        schema_name: version
            .has_schema_evolution()
            .then(|| "__1_1_0123456789abcdef".into()),
        dense: false,
        non_empty_domain: domain,
        sparse_tile_num: 3,
        last_tile_cell_num: 42,
        has_timestamps,
        has_delete_metadata,
        slots,
        file_sizes,
        file_var_sizes,
        file_validity_sizes,
        sections,
        optional_sections: if optional {
            vec![unknown, bounds]
        } else {
            Vec::new()
        },
        offset: None,
    }
}

#[test]
fn the_usual_length_is_that_of_footers_with_bounds_of_one_size() {
    for version in versions() {
        let (schema, domain) = cases(version).swap_remove(0);
        let footer = footer(version, &schema, Some(domain), false);
        let bytes = footer.encode(&schema).unwrap();
        let len = bytes.len() + Footer::encode_trailer(version, &schema, bytes.len() as u64).len();
        let name_len = footer.schema_name.as_ref().map_or(0, String::len);
        let usual = Footer::usual_len(version, &schema, name_len, false);
        let spare = if version.has_optional_sections() {
            12 + 16 * 2
        } else {
            0
        };
        assert_eq!(usual, len as u64 + spare, "{version}");
        let consolidated = Footer::usual_len(version, &schema, name_len, true);
        assert_eq!(
            consolidated > usual,
            version.has_cell_timestamps(),
            "{version}"
        );
    }
}

#[test]
fn round_trips_in_all_versions() {
    for version in versions() {
        for (schema, domain) in cases(version) {
            for more in [false, true] {
                let footer = footer(version, &schema, Some(domain.clone()), more);
                let bytes = footer.encode(&schema).unwrap();
                assert_eq!(Footer::decode(&bytes, &schema, None).unwrap(), footer);
                assert_eq!(
                    Footer::peek_schema_name(&bytes).unwrap(),
                    footer.schema_name.as_deref()
                );
            }
        }
    }
}

#[test]
fn an_empty_domain_round_trips() {
    for version in versions() {
        for (schema, _) in cases(version) {
            let footer = footer(version, &schema, None, false);
            let bytes = footer.encode(&schema).unwrap();
            assert_eq!(Footer::decode(&bytes, &schema, None).unwrap(), footer);
        }
    }
}

#[test]
fn damaged_footers_are_refused_or_read() {
    for version in versions() {
        for (schema, domain) in cases(version) {
            let footer = footer(version, &schema, Some(domain), true);
            let mut bytes = footer.encode(&schema).unwrap();
            if version.may_lack_fragment_stats() {
                // Its last field may be missing, so one prefix is whole.
                bytes.truncate(bytes.len() - 8);
            }
            damage(&bytes, |bytes| Footer::decode(bytes, &schema, None));
            bytes.extend([0; 9]);
            assert!(Footer::decode(&bytes, &schema, None).is_err());
        }
    }
}

#[test]
fn it_is_found_at_the_end_of_the_file() {
    for version in versions() {
        for (schema, domain) in cases(version) {
            let footer = footer(version, &schema, Some(domain), true);
            let bytes = footer.encode(&schema).unwrap();
            let mut file = vec![0xee; 5000];
            file.extend_from_slice(&bytes);
            file.extend(Footer::encode_trailer(version, &schema, bytes.len() as u64));
            let size = file.len() as u64;
            let found = LocatedFooter::Found {
                offset: 5000,
                bytes: &bytes,
            };
            let locate = |tail: &'_ [u8]| match Footer::locate(tail, size, version, Some(&schema))
                .unwrap()
            {
                LocatedFooter::Found { offset, bytes } => Ok((offset, bytes.to_vec())),
                LocatedFooter::NeedMore(more) => Err(more),
            };
            assert_eq!(locate(&file), Ok((5000, bytes.clone())));
            let mut tail = 0;
            let mut reads = 0;
            while let Err(more) = locate(&file[file.len() - tail..]) {
                assert!(more as usize > tail && more <= size);
                tail = more as usize;
                reads += 1;
            }
            assert!(reads <= 2);
            assert_eq!(tail, file.len() - 5000);
            if version.has_schema_evolution() {
                assert_eq!(Footer::locate(&file, size, version, None).unwrap(), found);
            } else {
                assert!(Footer::locate(&file, size, version, None).is_err());
            }
            let mut decoded = Footer::decode(&bytes, &schema, None).unwrap();
            assert_eq!(decoded.section_range(Section::RTree).unwrap().start, 0);
            decoded.set_file_size(size, &schema).unwrap();
            assert_eq!(decoded.offset, Some(5000));
        }
    }
}

#[test]
fn a_length_that_exceeds_the_file_is_an_error() {
    let version = FormatVersion::CURRENT;
    for len in [0u64, 9, 100, u64::MAX, u64::MAX - 8] {
        let file = [&[0u8; 8][..], &len.to_le_bytes()].concat();
        let located = Footer::locate(&file, 16, version, None);
        assert_eq!(located.is_ok(), len == 0, "{len}: {located:?}");
    }
    assert!(Footer::locate(&[], 0, version, None).is_err());
    assert!(Footer::locate(&[0; 4], 4, version, None).is_err());
    assert_eq!(
        Footer::locate(&[], 100, version, None),
        Ok(LocatedFooter::NeedMore(8))
    );
}

#[test]
fn sections_end_where_the_next_begins() {
    let version = FormatVersion::CURRENT;
    let (schema, domain) = cases(version).remove(0);
    let mut footer = footer(version, &schema, Some(domain), true);
    let last = footer.sections.processed_conditions.unwrap();
    let range = |footer: &Footer, section| {
        let range = footer.section_range(section);
        assert_eq!(footer.section_ranges().get(section), range);
        range.map(|r| (r.start, r.end))
    };
    let first = footer.sections.tile_offsets[0];
    assert_eq!(range(&footer, Section::RTree), Some((0, Some(first))));
    assert_eq!(
        range(&footer, Section::TileOffsets(Field::Attribute(0))),
        Some((first, Some(first + 7)))
    );
    assert_eq!(
        range(&footer, Section::ProcessedConditions),
        Some((last, None))
    );
    assert_eq!(range(&footer, Section::TileMins(Field::Attribute(3))), None);
    assert_eq!(range(&footer, Section::GlobalOrderMins(0)), None);
    let len = footer.encode(&schema).unwrap().len() as u64;
    footer.set_file_size(last + 5 + len + 8, &schema).unwrap();
    assert_eq!(
        range(&footer, Section::ProcessedConditions),
        Some((last, Some(last + 5)))
    );
    assert!(footer.set_file_size(last - 1 + len + 8, &schema).is_err());
    assert!(footer.set_file_size(3, &schema).is_err());
}

#[test]
fn cells_of_tiles() {
    let version = FormatVersion::CURRENT;
    let (schema, domain) = cases(version).remove(0);
    let mut footer = footer(version, &schema, Some(domain), false);
    let tiles = |footer: &Footer| {
        (0..4)
            .map(|t| footer.sparse_tile_cell_num(t, 100))
            .collect::<Vec<_>>()
    };
    assert_eq!(tiles(&footer), [100, 100, 42, 0]);
    assert_eq!(footer.sparse_cell_num(100), 242);
    footer.last_tile_cell_num = 0;
    assert_eq!(footer.sparse_cell_num(100), 300);
    footer.sparse_tile_num = 0;
    assert_eq!(footer.sparse_cell_num(100), 0);
    footer.sparse_tile_num = u64::MAX;
    assert_eq!(footer.sparse_cell_num(u64::MAX), u64::MAX);
    assert_eq!(footer.sparse_tile_cell_num(u64::MAX, 1), 0);
}
