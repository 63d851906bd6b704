use super::*;
use crate::fragment::sample::damage;

fn leaf(name: &str, op: Comparison) -> Condition {
    Condition::compare(FieldRef::raw(name), op, 5i32.to_le_bytes())
}

#[test]
fn round_trip_and_damage() {
    let condition = leaf("a", Comparison::Lt)
        .and(Condition::compare(
            FieldRef::raw("s"),
            Comparison::Ne,
            "text",
        ))
        .or(Condition::is_in(FieldRef::raw("s"), ["x", "", "yy"]))
        .or(!Condition::is_in(
            FieldRef::raw("n"),
            [1u64.to_le_bytes(), 2u64.to_le_bytes()],
        ))
        .or(Condition::compare(
            FieldRef::raw(""),
            Comparison::AlwaysFalse,
            [],
        ));
    let bytes = condition.encode();
    assert_eq!(Condition::decode(&bytes).unwrap(), condition);
    damage(&bytes, Condition::decode);
}

#[test]
fn the_stored_form_is_the_documented_one() {
    let bytes = leaf("ab", Comparison::Ge)
        .and(leaf("c", Comparison::Eq))
        .encode();
    let expected = [
        &[0, 0][..],
        &2u64.to_le_bytes(),
        &[1, 3, 2, 0, 0, 0],
        b"ab",
        &[4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0],
        &[1, 4, 1, 0, 0, 0],
        b"c",
        &[4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0],
    ];
    assert_eq!(bytes, expected.concat());
    let set = Condition::is_in(FieldRef::raw("s"), ["x", "yy"]).encode();
    let expected = [
        &[1, 6, 1, 0, 0, 0][..],
        b"s",
        &3u64.to_le_bytes(),
        b"xyy",
        &16u64.to_le_bytes(),
        &0u64.to_le_bytes(),
        &1u64.to_le_bytes(),
    ];
    assert_eq!(set, expected.concat());
}

#[test]
fn null_tests_are_stored_as_empty_values() {
    let bytes = (!Condition::is_null("n")).pushed_down().encode();
    assert_eq!(
        Condition::decode(&bytes).unwrap(),
        Condition::compare(FieldRef::raw("n"), Comparison::Ne, [])
    );
}

#[test]
fn nesting_is_limited() {
    let nested =
        |depth: usize| (0..depth).fold(leaf("a", Comparison::Eq), |c, _| Condition::And(vec![c]));
    let deepest = nested(MAX_DEPTH);
    assert_eq!(Condition::decode(&deepest.encode()).unwrap(), deepest);
    assert!(Condition::decode(&nested(MAX_DEPTH + 1).encode()).is_err());
    let bomb = [0, 0, 1, 0, 0, 0, 0, 0, 0, 0].repeat(100_000);
    assert!(Condition::decode(&bomb).is_err());
}

#[test]
fn negations_move_to_the_leaves() {
    let (a, b) = (leaf("a", Comparison::Lt), leaf("b", Comparison::Eq));
    let set = Condition::is_in(FieldRef::raw("s"), ["x"]);
    let negated = !(a.and(!b).or(set).or(Condition::is_null("n")));
    let expected = leaf("a", Comparison::Ge).or(leaf("b", Comparison::Eq));
    let not_in = Condition::In {
        field: FieldRef::raw("s"),
        negated: true,
        values: ["x"].into_iter().collect(),
    };
    let not_null = Condition::IsNull {
        field: "n".into(),
        negated: true,
    };
    assert_eq!(
        negated.pushed_down(),
        Condition::And(vec![expected, not_in, not_null])
    );
    assert_eq!(!!leaf("a", Comparison::Le), leaf("a", Comparison::Le));
}

#[test]
fn combinations_of_one_kind_stay_flat() {
    let leaves = || ["a", "b", "c"].map(|name| leaf(name, Comparison::Gt));
    let [a, b, c] = leaves();
    assert_eq!(a.and(b.and(c)), Condition::And(leaves().to_vec()));
    let [a, b, c] = leaves();
    assert_eq!(a.or(b).or(c), Condition::Or(leaves().to_vec()));
    let names: Vec<String> = Condition::Or(leaves().to_vec())
        .fields()
        .iter()
        .map(|f| f.name.clone())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn sets_give_their_members() {
    let set: ValueSet = ["x", "", "yy"].into_iter().collect();
    assert_eq!(set.iter().collect::<Vec<_>>(), [&b"x"[..], b"", b"yy"]);
    assert_eq!((set.len(), set.is_empty()), (3, false));
    assert_eq!(ValueSet::default().iter().count(), 0);
}

#[test]
fn unknown_ids_are_refused() {
    let bytes = leaf("a", Comparison::Eq).encode();
    for (at, id) in [(0, 2), (1, 8), (1, 252)] {
        let mut changed = bytes.clone();
        changed[at] = id;
        assert!(
            matches!(
                Condition::decode(&changed),
                Err(DecodeError::UnknownId { .. })
            ),
            "{at} {id}"
        );
    }
    assert!(Condition::decode(&[0, 3, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    let not_of_none = [0, 2, 0, 0, 0, 0, 0, 0, 0, 0];
    assert!(Condition::decode(&not_of_none).is_err());
}
