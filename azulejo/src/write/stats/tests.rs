use super::*;
use azulejo_format::fragment::FieldStats;
use proptest::prelude::*;

fn kind(datatype: Datatype, cell_val_num: CellValNum, nullable: bool) -> StatsKind {
    StatsKind {
        nullable,
        ..StatsKind::of_cells(datatype, cell_val_num)
    }
}

fn fixed<'a>(data: &'a [u8], validity: Option<&'a [u8]>, cell_size: usize) -> FieldView<'a> {
    FieldView {
        cell_num: data.len() / cell_size,
        data,
        offsets: None,
        validity,
        cell_size,
    }
}

fn bytes<T: Native>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|value| bytes_of(*value)).collect()
}

fn of<T: Native>(datatype: Datatype, values: &[T]) -> (T, T, TileSum) {
    let kind = kind(datatype, CellValNum::ONE, false);
    let data = bytes(values);
    let summary = summarize(&kind, &fixed(&data, None, T::SIZE), &[0..values.len()]).unwrap();
    (
        T::read(&summary.min),
        T::read(&summary.max),
        kind.sum.unwrap().sum(summary.sum_bits),
    )
}

#[test]
fn integers_have_bounds_and_a_sum_that_stops_at_its_limits() {
    assert_eq!(
        of(Datatype::Int8, &[3i8, -100, 100]),
        (-100, 100, TileSum::Signed(3))
    );
    assert_eq!(
        of(Datatype::Bool, &[1u8, 0, 1]),
        (0, 1, TileSum::Unsigned(2))
    );
    assert_eq!(
        of(Datatype::DateTimeDay, &[7i64]),
        (7, 7, TileSum::Signed(7))
    );
    let max = i64::MAX;
    assert_eq!(
        of(Datatype::Int64, &[max, -1, 1]),
        (-1, max, TileSum::Signed(max))
    );
    // Once over the limit, what follows does not count.
    assert_eq!(of(Datatype::Int64, &[max, 1, -5]).2, TileSum::Signed(max));
    assert_eq!(
        of(Datatype::Int64, &[i64::MIN, -1, 5]).2,
        TileSum::Signed(i64::MIN)
    );
    assert_eq!(
        of(Datatype::UInt64, &[u64::MAX, 1]).2,
        TileSum::Unsigned(u64::MAX)
    );
    assert_eq!(
        of(Datatype::UInt64, &[u64::MAX - 1, 1]).2,
        TileSum::Unsigned(u64::MAX)
    );
}

#[test]
fn boxes_hold_all_that_is_a_number() {
    let kind = StatsKind {
        is_dimension: true,
        min_max: false,
        ..kind(Datatype::Float64, CellValNum::ONE, false)
    };
    let sides = |values: &[f64]| {
        let data = bytes(values);
        let parts = [0..1, 1..values.len()];
        let summary = summarize(&kind, &fixed(&data, None, 8), &parts).unwrap();
        (f64::read(&summary.min), f64::read(&summary.max))
    };
    let nan = f64::NAN;
    assert_eq!(sides(&[2.0, 1.0, nan, 5.0, 6.0]), (1.0, 6.0));
    assert_eq!(sides(&[nan, 3.0, 2.0]), (2.0, 3.0));
    assert_eq!(sides(&[3.0, 4.0, nan]), (3.0, 4.0));
    assert!(sides(&[nan, nan]).0.is_nan());
}

#[test]
fn of_reals_the_last_of_equals_counts_and_nan_stands_until_the_next() {
    let sign = |values: &[f64]| {
        let (min, max, _) = of(Datatype::Float64, values);
        (min.is_sign_negative(), max.is_sign_negative())
    };
    assert_eq!(sign(&[0.0, -0.0]), (true, true));
    assert_eq!(sign(&[-0.0, 0.0]), (false, false));
    let (min, max, sum) = of(Datatype::Float32, &[1f32, f32::NAN, 3.0, 2.0]);
    assert_eq!((min, max), (2.0, 3.0));
    assert!(matches!(sum, TileSum::Real(sum) if sum.is_nan()));
    assert!(of(Datatype::Float64, &[1.0, f64::NAN]).0.is_nan());
    // Infinity is beyond the type's numbers, where the search for the least starts.
    assert_eq!(of(Datatype::Float64, &[f64::INFINITY]).0, f64::MAX);
    assert_eq!(
        of(Datatype::Float64, &[f64::MAX, f64::MAX, -5.0]).2,
        TileSum::Real(f64::MAX)
    );
    assert_eq!(
        of(Datatype::Float64, &[f64::MIN, f64::MIN, 5.0]).2,
        TileSum::Real(f64::MIN)
    );
    // The box of a dimension takes the first of equals.
    let dimension = StatsKind {
        is_dimension: true,
        min_max: false,
        ..kind(Datatype::Float64, CellValNum::ONE, false)
    };
    let data = bytes(&[-0.0, 0.0, -1.0, 0.0f64]);
    let summary = summarize(&dimension, &fixed(&data, None, 8), &[0..4]).unwrap();
    assert_eq!(
        (f64::read(&summary.min), summary.max),
        (-1.0, bytes_of(-0.0f64))
    );
}

#[test]
fn nulls_and_unwritten_cells_do_not_count() {
    let kind = kind(Datatype::Int32, CellValNum::ONE, true);
    let data = bytes(&[1i32, -9, 5, 7, 100]);
    let view = fixed(&data, Some(&[1, 0, 1, 1, 0]), 4);
    let summary = summarize(&kind, &view, &[0..2, 3..5]).unwrap();
    assert_eq!((i32::read(&summary.min), i32::read(&summary.max)), (1, 7));
    assert_eq!((summary.sum_bits, summary.null_count), (8, 2));
    // Only nulls: the ends of the search, which are stored as zeros where the tile has no other
    // cells.
    let none = summarize(&kind, &view, &[1..2]).unwrap();
    assert_eq!(
        (i32::read(&none.min), i32::read(&none.max), none.null_count),
        (i32::MAX, i32::MIN, 1)
    );
}

#[test]
fn texts_compare_like_c_strings() {
    let three = kind(Datatype::StringAscii, CellValNum::Fixed(3), false);
    let of = |data: &[u8]| summarize(&three, &fixed(data, None, 3), &[0..data.len() / 3]).unwrap();
    assert_eq!(of(b"abcabda\0z").min, b"a\0z");
    assert_eq!(of(b"abcabda\0z").max, b"abd");
    // What is behind a zero byte does not count: the first stays.
    assert_eq!(
        (of(b"a\0za\0a").min, of(b"a\0aa\0z").max),
        (b"a\0z".to_vec(), b"a\0a".to_vec())
    );
    // Bytes compare unsigned.
    assert_eq!(of(b"\xffaaaaa").max, b"\xffaa");
    let nulls = StatsKind {
        nullable: true,
        ..three
    };
    let summary = summarize(&nulls, &fixed(b"abcdef", Some(&[0, 0]), 3), &[0..2]).unwrap();
    assert_eq!(
        (summary.min, summary.max, summary.null_count),
        (vec![0; 3], vec![0; 3], 2)
    );

    let var = kind(Datatype::Char, CellValNum::Var, false);
    let view = |offsets: &'static [u64]| FieldView {
        cell_num: offsets.len() - 1,
        data: b"__bab\0c",
        offsets: Some(offsets),
        validity: None,
        cell_size: 0,
    };
    // "ba", "b", "": offsets may start anywhere.
    let summary = summarize(&var, &view(&[2, 4, 5, 5]), &[0..3]).unwrap();
    assert_eq!((summary.min, summary.max), (Vec::new(), b"ba".to_vec()));
    // "b\0c" and "b": equal up to the zero, so the size counts.
    let summary = summarize(&var, &view(&[4, 7]), &[0..1]).unwrap();
    assert_eq!(summary.min, b"b\0c");
    assert_eq!(c_compare_var(b"b\0c", b"b"), Ordering::Greater);
    for bad in [&[3, 2][..], &[0, 8], &[0, u64::MAX, 1]] {
        assert!(
            summarize(&var, &view(bad), &[0..bad.len() - 1]).is_err(),
            "{bad:?}"
        );
    }
}

#[test]
fn single_chars_have_sums_by_tile_only() {
    let kind = kind(Datatype::Char, CellValNum::ONE, false);
    let summary = summarize(&kind, &fixed(b"\x01\xff\x05", None, 1), &[0..3]).unwrap();
    assert_eq!(
        (summary.sum_bits, &summary.min, &summary.max),
        (5, &vec![1], &vec![0xff])
    );
    let mut fragment = FragmentSummary::new();
    fragment.add(&kind, &summary, 3);
    assert_eq!(fragment.finish(&kind).sum_bits, 0);
}

#[test]
fn fields_without_statistics_have_null_counts_all_the_same() {
    for (datatype, cells) in [
        (Datatype::StringUtf16, CellValNum::ONE),
        (Datatype::Blob, CellValNum::ONE),
    ] {
        let kind = kind(datatype, cells, true);
        let size = datatype.size();
        let data = vec![1; 3 * size];
        let summary = summarize(&kind, &fixed(&data, Some(&[0, 1, 0]), size), &[0..3]).unwrap();
        assert_eq!(
            summary,
            TileSummary {
                null_count: 2,
                ..TileSummary::default()
            }
        );
    }
}

#[test]
fn fragments_sum_up_their_tiles() {
    let tile = |min: i32, max: i32, sum: i64, nulls: u64| TileSummary {
        min: bytes_of(min),
        max: bytes_of(max),
        sum_bits: sum.cast_unsigned(),
        null_count: nulls,
    };
    let kind = kind(Datatype::Int32, CellValNum::ONE, true);
    let mut fragment = FragmentSummary::new();
    // A tile of only nulls says nothing.
    fragment.add(&kind, &tile(-99, 99, 9, 4), 4);
    fragment.add(&kind, &tile(1, 5, i64::MAX, 1), 4);
    fragment.add(&kind, &tile(-3, 2, 1, 0), 4);
    fragment.add(&kind, &tile(0, 0, -7, 0), 4);
    let found = fragment.finish(&kind);
    let sum_bits = i64::MAX.cast_unsigned();
    assert_eq!(
        found,
        FieldStats {
            min: bytes_of(-3i32),
            max: bytes_of(5i32),
            sum_bits,
            null_count: 5
        }
    );
    let empty = FragmentSummary::new().finish(&kind);
    assert_eq!(
        (empty.min, empty.max),
        (bytes_of(i32::MAX), bytes_of(i32::MIN))
    );
}

/// As the reference does it, value by value.
fn naive(values: &[(i64, bool)], start: i64) -> (i64, i64, i64) {
    let (mut min, mut max, mut sum, mut stopped) = (i64::MAX, i64::MIN, start, false);
    for (value, _) in values.iter().filter(|(_, valid)| *valid) {
        (min, max) = (min.min(*value), max.max(*value));
        if stopped {
            continue;
        }
        match sum.checked_add(*value) {
            Some(next) => sum = next,
            None => (sum, stopped) = (if *value < 0 { i64::MIN } else { i64::MAX }, true),
        }
    }
    (min, max, sum)
}

proptest! {
    #[test]
    fn fused_loops_agree_with_a_naive_one(
        values in proptest::collection::vec((prop_oneof![any::<i64>(), -9i64..9], any::<bool>()), 1..200),
        nullable in any::<bool>(),
    ) {
        let kind = kind(Datatype::Int64, CellValNum::ONE, nullable);
        let data: Vec<u8> = values.iter().flat_map(|(v, _)| v.to_le_bytes()).collect();
        let validity: Vec<u8> = values.iter().map(|(_, valid)| u8::from(*valid)).collect();
        let view = fixed(&data, nullable.then_some(&validity[..]), 8);
        let summary = summarize(&kind, &view, &[0..values.len()]).unwrap();
        let all: Vec<_> = values.iter().map(|(v, valid)| (*v, *valid || !nullable)).collect();
        let found = (i64::read(&summary.min), i64::read(&summary.max), summary.sum_bits.cast_signed());
        prop_assert_eq!(found, naive(&all, 0));
        let nulls = all.iter().filter(|(_, valid)| !valid).count() as u64;
        prop_assert_eq!(summary.null_count, nulls);
    }
}
