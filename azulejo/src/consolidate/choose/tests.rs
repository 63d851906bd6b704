//! Which fragments are chosen. The reference chooses the same of the same fragments, save where a
//! case says otherwise.

use super::*;
use crate::Config;
use crate::column::{ColumnBuffers, ColumnSet};
use crate::consolidate::{FragmentOptions, Mode, VacuumOptions};
use crate::context::Context;
use crate::write::WriteOptions;
use azulejo_format::schema::{Attribute, SchemaEvolution};
use azulejo_format::{CellValNum, Datatype, NdRectangle as Box, Range as Bounds};

/// A fragment: its first and last coordinate. Written one after the other at the times 1, 2, ...
type Span = (i64, i64);

fn array(dense: bool, spans: &[Span]) -> Array {
    let context = Context::new(Config::new().threads(1), None).unwrap();
    let new = if dense {
        ArraySchema::dense()
    } else {
        ArraySchema::sparse()
    };
    let new = new
        .dimension("x", 0i64..=99_999, 10)
        .attribute("a", Datatype::Int64);
    context
        .array("mem://array")
        .create_at(new.build().unwrap(), 1)
        .unwrap();
    for (&(first, last), time) in spans.iter().zip(1..) {
        let cells: Vec<i64> = (first..=last).collect();
        // Values that no filter makes small.
        let noise = cells
            .iter()
            .map(|x| (x + time * 977).wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64));
        let mut columns = vec![ColumnBuffers::of_values("a", noise.collect::<Vec<_>>())];
        let mut options = WriteOptions::new().timestamp(time as u64);
        if dense {
            options = options.subarray(Box {
                ranges: vec![Bounds::of(first, last)],
            });
        } else {
            columns.push(ColumnBuffers::of_values("x", cells));
        }
        let mut writer = context.array("mem://array").writer(options).unwrap();
        writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
        writer.finish().unwrap();
    }
    context.array("mem://array").open().unwrap()
}

fn chosen(array: &Array, time: TimeRange, choice: &Choice) -> Vec<usize> {
    let candidates = Candidates::new(array, time, &BTreeSet::new()).unwrap();
    candidates
        .next(choice)
        .unwrap()
        .map(|chosen| chosen.fragments)
        .unwrap_or_default()
}

fn sizes(min: u32, max: u32) -> Choice {
    Choice {
        min_fragments: min,
        max_fragments: max,
        ..Choice::default()
    }
}

#[test]
fn runs_of_dense_fragments() {
    let all = Choice::default();
    let two = sizes(2, u32::MAX);
    let cases: &[(&[Span], Choice, &[usize], &str)] = &[
        (
            &[(0, 9), (10, 19), (20, 29)],
            all.clone(),
            &[0, 1, 2],
            "side by side",
        ),
        (
            &[(20, 29), (0, 9), (10, 19)],
            two.clone(),
            &[1, 2],
            "the first two leave a gap",
        ),
        (
            &[(0, 9), (30, 39)],
            all.clone(),
            &[],
            "the box around them has twice their cells",
        ),
        (
            &[(0, 9), (30, 39)],
            Choice {
                amplification: 2.0,
                ..all.clone()
            },
            &[0, 1],
            "which is allowed",
        ),
        (
            &[(0, 9), (30, 39)],
            Choice {
                amplification: 1.9,
                ..all.clone()
            },
            &[],
            "which is not quite",
        ),
        (&[(0, 4), (5, 9)], all.clone(), &[0, 1], "parts of one tile"),
        (
            &[(0, 4), (17, 19)],
            all.clone(),
            &[0, 1],
            "whole tiles count",
        ),
        (
            &[(0, 99), (50, 59), (0, 9)],
            all.clone(),
            &[0, 1, 2],
            "one within the other",
        ),
        (
            &[(0, 9), (10, 19), (500, 509), (510, 519)],
            all.clone(),
            &[],
            "not all, so none",
        ),
        (
            &[(0, 9), (10, 19), (500, 509), (510, 519)],
            two.clone(),
            &[0, 1],
            "of two runs the first",
        ),
        (
            &[(0, 9), (500, 509), (510, 519), (520, 529)],
            two.clone(),
            &[1, 2, 3],
            "the longest run",
        ),
        (
            &[(0, 9), (10, 19), (20, 29), (30, 39)],
            sizes(2, 3),
            &[0, 1, 2],
            "no more than three",
        ),
        (
            &[(0, 9), (10, 19), (20, 29), (30, 39)],
            sizes(5, 9),
            &[0, 1, 2, 3],
            "all, where there are fewer",
        ),
        (&[(0, 9)], two.clone(), &[], "one alone"),
        (&[], two, &[], "none at all"),
    ];
    for (spans, choice, expected, what) in cases {
        assert_eq!(
            chosen(&array(true, spans), TimeRange::ALL, choice),
            *expected,
            "{what}"
        );
    }
}

#[test]
fn runs_of_sparse_fragments() {
    let all = Choice::default();
    let ratio = |size_ratio| Choice {
        size_ratio,
        ..sizes(2, u32::MAX)
    };
    let cases: &[(&[Span], Choice, &[usize], &str)] = &[
        (
            &[(0, 9), (5000, 5009), (90, 99)],
            all,
            &[0, 1, 2],
            "boxes do not matter",
        ),
        (
            &[(0, 999), (0, 999), (0, 9), (0, 9)],
            sizes(2, 2),
            &[2, 3],
            "the smaller of two runs",
        ),
        (
            &[(0, 99), (0, 99), (0, 89), (0, 89)],
            sizes(2, 2),
            &[0, 1],
            "unless it is hardly smaller",
        ),
        (
            &[(0, 999), (0, 9), (0, 9), (0, 999)],
            ratio(0.5),
            &[1, 2],
            "neighbours of about one size",
        ),
        (
            &[(0, 999), (0, 9), (0, 999)],
            ratio(0.5),
            &[],
            "no such neighbours",
        ),
        (
            &[(0, 999), (0, 9), (0, 999)],
            ratio(0.0),
            &[0, 1, 2],
            "any sizes",
        ),
        (
            &[(0, 9), (0, 9), (0, 9)],
            ratio(0.9),
            &[0, 1, 2],
            "equal sizes",
        ),
    ];
    for (spans, choice, expected, what) in cases {
        assert_eq!(
            chosen(&array(false, spans), TimeRange::ALL, choice),
            *expected,
            "{what}"
        );
    }
}

#[test]
fn only_within_a_time_and_not_twice() {
    let array = array(false, &[(0, 9), (10, 19), (20, 29), (30, 39)]);
    let within = |start, end| chosen(&array, TimeRange { start, end }, &Choice::default());
    assert_eq!(within(2, 3), [1, 2]);
    assert_eq!(within(2, 99), [1, 2, 3]);
    assert_eq!(within(5, 99), [0usize; 0]);
    let done = BTreeSet::from([array.fragments()[1].name().to_owned()]);
    let candidates = Candidates::new(&array, TimeRange::ALL, &done).unwrap();
    assert_eq!(candidates.members, [0, 2, 3]);
}

#[test]
fn named_fragments() {
    let named = |dense, spans: &[Span], which: &[usize]| {
        let array = array(dense, spans);
        let names: Vec<String> = which
            .iter()
            .map(|i| format!("mem://array/__fragments/{}/", array.fragments()[*i].name()))
            .collect();
        let candidates = Candidates::new(&array, TimeRange::ALL, &BTreeSet::new()).unwrap();
        candidates
            .named(&names)
            .map(|chosen| chosen.fragments)
            .map_err(|e| e.to_string())
    };
    assert_eq!(
        named(false, &[(0, 9), (5, 19), (0, 9)], &[2, 0]),
        Ok(vec![0, 2])
    );
    // The amplification is not asked.
    assert_eq!(
        named(true, &[(0, 9), (900, 909), (500, 509)], &[0, 2]),
        Ok(vec![0, 2])
    );
    let refused = named(true, &[(0, 9), (5, 14), (0, 29)], &[0, 2]).unwrap_err();
    assert!(refused.contains("lies between"), "{refused}");
    // One before them may be hidden by cells that none of them wrote.
    let refused = named(true, &[(10, 19), (0, 9), (20, 29)], &[1, 2]).unwrap_err();
    assert!(refused.contains("overlaps the box"), "{refused}");
    let array = array(false, &[(0, 9)]);
    let candidates = Candidates::new(&array, TimeRange::ALL, &BTreeSet::new()).unwrap();
    let refused = candidates
        .named(&["__1_1_zz_22".into()])
        .unwrap_err()
        .to_string();
    assert!(refused.contains("__1_1_zz_22"), "{refused}");
}

#[test]
fn choices_that_make_no_sense() {
    let wrong = [
        sizes(3, 2),
        Choice {
            size_ratio: 1.5,
            ..Choice::default()
        },
        Choice {
            size_ratio: f64::NAN,
            ..Choice::default()
        },
        Choice {
            amplification: -1.0,
            ..Choice::default()
        },
        Choice {
            amplification: f64::NAN,
            ..Choice::default()
        },
    ];
    for choice in wrong {
        assert!(choice.check().is_err(), "{choice:?}");
    }
    assert!(Choice::default().check().is_ok());
}

#[test]
fn what_reaches_beyond_the_time_of_the_array_stays() {
    let array = array(false, &[(0, 9), (5, 19), (3, 4)]);
    let handle = array.context().array("mem://array");
    let both = FragmentOptions::new().time(TimeRange { start: 1, end: 2 });
    handle.consolidate(&both).unwrap();
    for (end, expected) in [(1, 0), (2, 1), (3, 2)] {
        let array = handle.open_at(TimeRange { start: 0, end }).unwrap();
        let merged = array.fragments().iter().find(|f| f.has_timestamps());
        let candidates = Candidates::new(&array, TimeRange::ALL, &BTreeSet::new()).unwrap();
        assert_eq!(candidates.members.len(), expected, "until {end}");
        let named = candidates.named(&[merged.unwrap().name().to_owned()]);
        assert_eq!(named.is_err(), end == 1, "until {end}");
    }
}

/// An attribute that was dropped stays with the fragments that have it, also where a vacuum was faster than
/// whoever looks at the fragments.
#[test]
fn schemas_are_told_apart_where_fragments_were_looked_at_again() {
    // So many that opening does not read their ends beside the schemas.
    let array = array(
        false,
        &[
            (0, 0),
            (1, 1),
            (2, 2),
            (3, 3),
            (4, 4),
            (5, 5),
            (6, 6),
            (7, 7),
        ],
    );
    let handle = array.context().array("mem://array");
    let other = SchemaEvolution {
        drop_attributes: vec!["a".to_owned()],
        add_attributes: vec![Attribute::new("b", Datatype::Int64, CellValNum::ONE)],
        ..SchemaEvolution::default()
    };
    handle.evolve(&other, Some(10)).unwrap();
    let columns = ["x", "b"].map(|name| ColumnBuffers::of_values(name, vec![30i64]));
    let options = WriteOptions::new().timestamp(20);
    let mut writer = handle.writer(options).unwrap();
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    writer.finish().unwrap();
    let (all, choice) = (TimeRange::ALL, Choice::new());
    assert_eq!(
        chosen(&handle.open().unwrap(), all, &choice),
        [0, 1, 2, 3, 4, 5, 6, 7]
    );
    let snapshot = handle.snapshot().unwrap();
    let names = array.fragments().iter().map(|f| f.name().to_owned());
    let two = FragmentOptions::new().fragments(names.take(2));
    assert_eq!(handle.consolidate(&two).unwrap().len(), 1);
    let done = handle.vacuum(Mode::Fragments, VacuumOptions::default());
    done.unwrap();
    let again = snapshot.array().unwrap();
    assert_eq!(again.fragments().len(), 8);
    assert_eq!(chosen(&again, all, &choice), [0, 1, 2, 3, 4, 5, 6]);
}

/// Cells between fragments that nobody wrote would count as written.
#[test]
fn boxes_with_gaps_are_left_alone_if_they_are_to() {
    let all = TimeRange::ALL;
    // Both lie in one tile, whose cells 3 and 4 nobody wrote.
    let gap = array(true, &[(0, 2), (5, 7)]);
    assert_eq!(chosen(&gap, all, &Choice::new()), [0, 1]);
    assert_eq!(chosen(&gap, all, &Choice::new().no_gaps()), [0usize; 0]);
    let some = array(true, &[(0, 4), (5, 7), (3, 9), (10, 12), (14, 15)]);
    let choice = Choice::new().fragments(2, u32::MAX).no_gaps();
    assert_eq!(chosen(&some, all, &choice), [0, 1, 2, 3]);
}

#[test]
fn boxes_that_make_one_leave_no_gap() {
    let schema = ArraySchema::dense()
        .dimension("x", 0i64..=(1 << 57) - 1, 1 << 10)
        .dimension("y", 0i64..=99, 10)
        .attribute("a", Datatype::Int64)
        .build()
        .unwrap()
        .schema;
    let of = |x: (i64, i64), y: (i64, i64)| Box {
        ranges: vec![Bounds::of(x.0, x.1), Bounds::of(y.0, y.1)],
    };
    let first = of((10, 19), (10, 19));
    // More cells than reals can count.
    let far = 1 << 56;
    for (other, gap) in [
        (of((10, 19), (10, 19)), false),
        (of((12, 13), (10, 12)), false),
        (of((0, 99), (10, 99)), false),
        (of((20, 29), (10, 19)), false),
        (of((0, 12), (10, 19)), false),
        (of((10, 19), (0, 9)), false),
        (of((21, 29), (10, 19)), true),
        (of((20, 29), (10, 18)), true),
        (of((15, 24), (15, 24)), true),
        (of((0, 99), (12, 13)), true),
        (of((20, far), (10, 19)), false),
        (of((21, far), (10, 19)), true),
    ] {
        assert_eq!(
            leaves_gap(&schema, Some(&first), Some(&other)),
            gap,
            "{other:?}"
        );
        assert_eq!(
            leaves_gap(&schema, Some(&other), Some(&first)),
            gap,
            "{other:?}"
        );
    }
}
