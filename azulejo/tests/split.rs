//! Selections divided among readers, and snapshots that travel.

use azulejo::array::PinnedSnapshot;
use azulejo::format::{ArraySchema, Datatype, Range};
use azulejo::space::{DimSelection, Layout};
use azulejo::{
    Array, ArrayHandle, ColumnBuffers, ColumnSet, Config, Context, Error, ReadOptions, Subarray,
    TimeRange, WriteOptions,
};

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// Numbers that only look like chance.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

fn write(place: &ArrayHandle, options: WriteOptions, columns: Vec<ColumnBuffers>) -> TestResult {
    let mut writer = place.writer(options)?;
    writer.write(&ColumnSet::of(columns)?)?;
    writer.finish()?;
    Ok(())
}

/// The cells of a selection as text, sorted.
fn cells(array: &Array, subarray: Subarray, fields: &[&str]) -> azulejo::Result<Vec<String>> {
    let options = ReadOptions::new()
        .subarray(subarray)
        .fields(fields.iter().copied())
        .layout(Layout::Unordered)
        .matching_only();
    let read = array.read(options)?.read_all()?;
    let mut cells: Vec<String> = (0..read.cell_num)
        .map(|i| {
            let cell = read
                .columns
                .iter()
                .map(|c| format!("{:?}", c.view().cell(i)));
            cell.collect::<Vec<_>>().join(" ")
        })
        .collect();
    cells.sort();
    Ok(cells)
}

/// Parts must bring each cell once, whatever their number.
fn check(array: &Array, subarray: &Subarray, fields: &[&str], least: usize) -> TestResult {
    let whole = cells(array, subarray.clone(), fields)?;
    for parts in [1, 2, 3, 8, 100] {
        let split = array.split(subarray, parts)?;
        assert!(!split.is_empty() && split.len() <= parts);
        assert!(
            split.len() >= least.min(parts),
            "{} of {parts}",
            split.len()
        );
        let mut together = Vec::new();
        for part in split {
            let part = Subarray::decode(&part.encode())?;
            together.extend(cells(array, part, fields)?);
        }
        together.sort();
        assert_eq!(together, whole, "{parts} parts of {subarray:?}");
    }
    Ok(())
}

#[test]
fn dense_parts_hold_all_cells_once() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let place = context.array("mem://dense");
    let schema = ArraySchema::dense()
        .dimension("y", -20i32..=39, 7)
        .dimension("x", 0i32..=49, 10)
        .attribute("a", Datatype::Int32)
        .build()?;
    place.create(schema)?;
    for (time, (rows, columns)) in [((-20, 9), (0, 49)), ((5, 39), (13, 40))]
        .into_iter()
        .enumerate()
    {
        let bounds = vec![Range::of(rows.0, rows.1), Range::of(columns.0, columns.1)];
        let num = (rows.1 - rows.0 + 1) * (columns.1 - columns.0 + 1);
        let values: Vec<i32> = (0..num).map(|i| i + time as i32 * 10_000).collect();
        let options = WriteOptions::new().subarray(azulejo::format::NdRectangle { ranges: bounds });
        write(&place, options, vec![ColumnBuffers::of_values("a", values)])?;
    }
    let array = place.open()?;
    let strided = DimSelection::Strided {
        range: Range::of(-19i32, 33),
        step: 3,
    };
    let two = DimSelection::Ranges(vec![Range::of(-20i32, -3), Range::of(8i32, 30)]);
    let narrow = DimSelection::Ranges(vec![Range::of(-20i32, -18)]);
    for (subarray, least) in [
        (Subarray::all(), 8),
        (Subarray::Box(vec![strided]), 3),
        (Subarray::Box(vec![two]), 3),
        (Subarray::Box(vec![narrow]), 3),
        (
            Subarray::ranges([Range::of(0i32, 0), Range::of(0i32, 3)]),
            1,
        ),
    ] {
        check(&array, &subarray, &["y", "x", "a"], least)?;
    }
    Ok(())
}

#[test]
fn sparse_parts_hold_all_versions_of_a_cell() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let mut numbers = Numbers(7);
    for (name, duplicates) in [("once", false), ("often", true)] {
        let place = context.array(&format!("mem://{name}"));
        let schema = ArraySchema::sparse()
            .dimension("f", -1e6f64..=1e6, 1e5)
            .dimension("t", 0i64..=9_999, 100)
            .string_dimension("s")
            .attribute("a", Datatype::Int64)
            .capacity(16)
            .allows_duplicates(duplicates)
            .build()?;
        place.create(schema)?;
        for _ in 0..4 {
            let mut draw =
                |end: u64| -> Vec<u64> { (0..400).map(|_| numbers.below(end)).collect() };
            let (f, t, s, a) = (draw(40), draw(3), draw(5), draw(1 << 40));
            let strings = s.iter().map(|s| "abcde"[..*s as usize].to_owned());
            let mut columns = vec![
                ColumnBuffers::of_values(
                    "f",
                    f.iter().map(|f| *f as f64 - 20.0).collect::<Vec<_>>(),
                ),
                ColumnBuffers::of_values("t", t.iter().map(|t| *t as i64 * 50).collect::<Vec<_>>()),
                ColumnBuffers::of_strings(
                    "s",
                    strings.collect::<Vec<_>>().iter().map(String::as_str),
                ),
            ];
            columns.push(ColumnBuffers::of_values(
                "a",
                a.iter().map(|a| *a as i64).collect::<Vec<_>>(),
            ));
            let options = WriteOptions::new().duplicates(azulejo::write::Duplicates::Dedup);
            let options = if duplicates {
                WriteOptions::new()
            } else {
                options
            };
            write(&place, options, columns)?;
        }
        let array = place.open()?;
        let fields = ["f", "t", "s", "a"];
        check(&array, &Subarray::all(), &fields, 2)?;
        let part = DimSelection::Ranges(vec![Range::of(-20.0f64, -0.0), Range::of(5.0f64, 7.0)]);
        check(&array, &Subarray::Box(vec![part]), &fields, 1)?;
        let strings = DimSelection::Ranges(vec![Range::new("", ""), Range::new("ab", "")]);
        let all = DimSelection::All;
        check(
            &array,
            &Subarray::Box(vec![all.clone(), all, strings]),
            &fields,
            1,
        )?;
    }
    Ok(())
}

#[test]
fn strings_are_cut_between_neighbours() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let place = context.array("mem://strings");
    let schema = ArraySchema::sparse()
        .string_dimension("s")
        .attribute("a", Datatype::Int64);
    place.create(schema.capacity(10).build()?)?;
    let mut names: Vec<String> = (0..300)
        .map(|i| format!("{}{}", i % 7, "\0".repeat(i % 3)))
        .collect();
    names.push(String::new());
    names.sort();
    names.dedup();
    let more: Vec<String> = (0..200).map(|i| format!("k{i:03}")).collect();
    names.extend(more);
    let a: Vec<i64> = (0..names.len() as i64).collect();
    let columns = vec![
        ColumnBuffers::of_strings("s", names.iter().map(String::as_str)),
        ColumnBuffers::of_values("a", a),
    ];
    write(&place, WriteOptions::new(), columns)?;
    check(&place.open()?, &Subarray::all(), &["s", "a"], 3)
}

#[test]
fn a_pinned_snapshot_shows_the_same_cells_or_says_what_is_gone() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let place = context.array("mem://pinned");
    let schema = ArraySchema::sparse().dimension("x", 0i64..=99, 10);
    place.create(schema.attribute("a", Datatype::Int64).build()?)?;
    let add = |time: u64, x: i64| {
        let columns = vec![
            ColumnBuffers::of_values("x", vec![x]),
            ColumnBuffers::of_values("a", vec![time as i64]),
        ];
        write(&place, WriteOptions::new().timestamp(time), columns)
    };
    add(10, 1)?;
    add(20, 2)?;
    add(30, 3)?;
    let condition = place.open()?.condition("a = 20")?;
    place.delete_cells(&condition, Some(40))?;
    // Commits tell the same before anybody has looked at the fragments.
    let snapshot = place.snapshot()?;
    let unread = snapshot.pin_unread();
    let array = snapshot.array()?;
    assert_eq!(unread, Some(array.pin()));
    assert_eq!(snapshot.pin_unread(), unread);
    let pinned = PinnedSnapshot::decode(&array.pin().encode())?;
    let seen = cells(&array, Subarray::all(), &["x", "a"])?;
    assert_eq!(seen.len(), 2);
    // A backdated write and a later delete change what a time shows, not what is pinned.
    add(15, 4)?;
    place.delete_cells(&place.open()?.condition("a = 30")?, Some(35))?;
    let again = place.open_pinned(&pinned)?;
    assert_eq!(cells(&again, Subarray::all(), &["x", "a"])?, seen);
    // So does a consolidation, until a vacuum takes the fragments away.
    place.consolidate(&Default::default())?;
    let again = place.open_pinned(&pinned)?;
    assert_eq!(cells(&again, Subarray::all(), &["x", "a"])?, seen);
    // Of a time that lies within the merged fragment, the fragment tells whether it counts.
    let part = place.snapshot_at(TimeRange::until(20))?;
    assert_eq!(part.pin_unread(), None);
    assert_eq!(part.array()?.fragments().len(), 1);
    assert_eq!(part.pin_unread(), Some(part.array()?.pin()));
    place.vacuum(azulejo::consolidate::Mode::Fragments, Default::default())?;
    match place.open_pinned(&pinned) {
        Err(Error::NotFound { uri, what }) => {
            assert!(
                uri.contains("__10_10_") && what.contains("pinned"),
                "{uri} {what}"
            );
        }
        other => panic!("{other:?}"),
    }
    for (i, _) in pinned.encode().iter().enumerate() {
        assert!(PinnedSnapshot::decode(&pinned.encode()[..i]).is_err());
    }
    Ok(())
}
