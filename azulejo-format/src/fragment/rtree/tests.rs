use super::*;
use crate::fragment::sample::{damage, domain};
use crate::range::Range;
use proptest::prelude::*;

const MIXED: [Datatype; 3] = [Datatype::Int32, Datatype::StringAscii, Datatype::Float64];

fn tree(datatypes: &[Datatype], tiles: &[Vec<Range>]) -> RTree {
    let mut builder = RTreeBuilder::new(&domain(datatypes));
    for tile in tiles {
        let ranges: Vec<RangeRef<'_>> = tile.iter().map(Range::as_ref).collect();
        builder.push(&ranges).unwrap();
    }
    builder.build()
}

fn text(value: u8) -> Vec<u8> {
    vec![b'a'; usize::from(value % 5)]
        .into_iter()
        .chain([b'a' + value % 20])
        .collect()
}

fn number_range() -> impl Strategy<Value = Range> {
    (-50i32..50, 0i32..20).prop_map(|(start, len)| Range::of(start, start + len))
}

fn text_range() -> impl Strategy<Value = Range> {
    (0u8..40, 0u8..40).prop_map(|(a, b)| {
        let (a, b) = (text(a), text(b));
        if a <= b {
            Range::new(a, b)
        } else {
            Range::new(b, a)
        }
    })
}

fn real_range() -> impl Strategy<Value = Range> {
    (-9.0..9.0, 0.0..5.0).prop_map(|(start, len): (f64, f64)| Range::of(start, start + len))
}

fn boxes(max: usize) -> impl Strategy<Value = Vec<Vec<Range>>> {
    let one = (number_range(), text_range(), real_range()).prop_map(|(a, b, c)| vec![a, b, c]);
    prop::collection::vec(one, 0..max)
}

proptest! {
    #[test]
    fn a_search_finds_what_looking_at_every_tile_finds(
        tiles in boxes(250),
        numbers in prop::option::of(prop::collection::vec(number_range(), 0..5)),
        texts in prop::option::of(prop::collection::vec(text_range(), 0..4)),
        reals in prop::option::of(prop::collection::vec(real_range(), 0..3)),
    ) {
        let tree = tree(&MIXED, &tiles);
        let selection = [numbers, texts, reals];
        let ranges = selection.each_ref().map(|ranges| match ranges {
            Some(ranges) => DimensionRanges::Ranges(ranges),
            None => DimensionRanges::All,
        });
        let mut expected = Vec::new();
        for (tile, mbr) in tiles.iter().enumerate() {
            let dimensions = || mbr.iter().zip(&selection).zip(MIXED);
            let overlaps = dimensions().all(|((mbr, ranges), datatype)| {
                let overlaps = |r: &Range| r.as_ref().overlaps(mbr.as_ref(), datatype);
                ranges.as_ref().is_none_or(|ranges| ranges.iter().any(overlaps))
            });
            let covered = dimensions().all(|((mbr, ranges), datatype)| {
                let covers = |r: &Range| r.as_ref().contains(mbr.as_ref(), datatype);
                ranges.as_ref().is_none_or(|ranges| ranges.iter().any(covers))
            });
            if overlaps {
                expected.push(TileOverlap { tile, covered });
            }
        }
        prop_assert_eq!(tree.overlapping_tiles(&ranges), expected);
    }

    #[test]
    fn what_is_built_round_trips(tiles in boxes(130)) {
        let tree = tree(&MIXED, &tiles);
        let bytes = tree.encode(FormatVersion::CURRENT);
        let decoded = RTree::decode(&bytes, FormatVersion::CURRENT, &domain(&MIXED)).unwrap();
        prop_assert_eq!(&decoded, &tree);
        prop_assert_eq!(tree.tile_num(), tiles.len());
        prop_assert_eq!(tree.level_len(0), usize::from(!tiles.is_empty()));
        for (tile, mbr) in tiles.iter().enumerate() {
            prop_assert_eq!(&tree.mbr(tile).unwrap().ranges, mbr);
        }
    }
}

#[test]
fn strings_without_an_upper_bound_reach_to_the_end() {
    let datatypes = [Datatype::StringAscii];
    let tiles: Vec<Vec<Range>> = ["a", "k", "x"]
        .map(|s| vec![Range::new(s, format!("{s}z"))])
        .to_vec();
    let tree = tree(&datatypes, &tiles);
    let found = |start: &str, end: &str| {
        let ranges = [Range::new(start, end), Range::new("b", "c")];
        let found = tree.overlapping_tiles(&[DimensionRanges::Ranges(&ranges)]);
        found
            .iter()
            .map(|t| (t.tile, t.covered))
            .collect::<Vec<_>>()
    };
    assert_eq!(found("k", ""), [(1, true), (2, true)]);
    assert_eq!(found("", ""), [(0, true), (1, true), (2, true)]);
    assert_eq!(found("", "b"), [(0, true)]);
    assert_eq!(found("kk", "x"), [(1, false), (2, false)]);
}

#[test]
fn a_selection_of_nothing_finds_nothing() {
    let tree = tree(&[Datatype::Int32], &[vec![Range::of(0, 9)]]);
    assert_eq!(tree.overlapping_tiles(&[DimensionRanges::Ranges(&[])]), []);
    let all = vec![TileOverlap {
        tile: 0,
        covered: true,
    }];
    assert_eq!(tree.overlapping_tiles(&[]), all);
    assert_eq!(tree.overlapping_tiles(&[DimensionRanges::All]), all);
    for tile in [1, usize::MAX / 2 + 1, usize::MAX] {
        assert_eq!(tree.tile_range(tile, 0), None);
    }
    assert_eq!(
        RTree::empty(&domain(&[Datatype::Int32])).overlapping_tiles(&[]),
        []
    );
}

#[test]
fn every_version_round_trips_and_survives_damage() {
    for version in FormatVersion::all() {
        let datatypes = if version.has_separate_dimensions() {
            &MIXED[..]
        } else {
            &[Datatype::Int32; 2]
        };
        let range = |i: i32, datatype: &Datatype| {
            if *datatype == Datatype::Int32 {
                Range::of(i, i + 2)
            } else if *datatype == Datatype::Float64 {
                Range::of(f64::from(i), f64::from(i) + 0.5)
            } else {
                Range::new(text(i as u8), b"zz".to_vec())
            }
        };
        let tiles: Vec<Vec<Range>> = (0..23)
            .map(|i| {
                datatypes
                    .iter()
                    .map(|datatype| range(i, datatype))
                    .collect()
            })
            .collect();
        let tree = tree(datatypes, &tiles);
        assert_eq!(
            (tree.height(), tree.level_len(0), tree.level_len(1)),
            (3, 1, 3)
        );
        assert_eq!(tree.range(0, 0, 0).unwrap(), Range::of(0, 24).as_ref());
        assert_eq!(tree.bounding_box().unwrap().ranges[0], Range::of(0, 24));
        let bytes = tree.encode(version);
        let decode = |bytes: &[u8]| RTree::decode(bytes, version, &domain(datatypes));
        assert_eq!(decode(&bytes).unwrap(), tree);
        damage(&bytes, |bytes| {
            let tree = decode(bytes)?;
            let ranges = vec![Range::of(1, 2)];
            let _ = tree.overlapping_tiles(&[DimensionRanges::Ranges(&ranges)]);
            Ok::<_, DecodeError>(tree)
        });
    }
}

#[test]
fn boxes_of_another_shape_are_refused() {
    let mut builder = RTreeBuilder::new(&domain(&[Datatype::Int32]));
    assert!(builder.push(&[]).is_err());
    assert!(builder.push(&[Range::of(0i64, 1).as_ref()]).is_err());
    assert!(builder.push(&[Range::of(0i32, 1).as_ref()]).is_ok());
}

#[test]
fn levels_that_do_not_fit_are_refused() {
    let tiles: Vec<Vec<Range>> = (0..11).map(|i| vec![Range::of(i, i)]).collect();
    let bytes = tree(&[Datatype::Int32], &tiles).encode(FormatVersion::CURRENT);
    let domain = domain(&[Datatype::Int32]);
    for fanout in [0u32, 1, 5, 11, u32::MAX] {
        let changed = [&fanout.to_le_bytes(), &bytes[4..]].concat();
        let decoded = RTree::decode(&changed, FormatVersion::CURRENT, &domain);
        assert!(decoded.is_err(), "{fanout}");
    }
}

#[test]
fn a_tree_has_no_empty_levels() {
    let domain = domain(&[Datatype::Int32]);
    let payload = |levels: u32| {
        let mut payload = [10u32, levels].map(u32::to_le_bytes).concat();
        payload.extend(vec![0; 8 * levels as usize]);
        payload
    };
    let decoded = |levels| RTree::decode(&payload(levels), FormatVersion::CURRENT, &domain);
    assert_eq!(decoded(1).unwrap().tile_num(), 0);
    assert!(decoded(2).is_err());
    assert!(decoded(1000).is_err());
}
