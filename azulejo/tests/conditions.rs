//! Conditions and aggregates over every packed array, against what reading all cells tells.

mod support;

use azulejo::column::{ColumnBuffers, ColumnMut};
use azulejo::condition::{Comparison, Condition, FieldRef};
use azulejo::format::Datatype;
use azulejo::format::fragment::Field;
use azulejo::format::range::compare;
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use azulejo::read::{ReadOptions, Reader};
use azulejo::space::Layout;
use azulejo::storage::Storage;
use azulejo::{Array, ColumnSet, Config};
use serde_json::Value;
use std::cmp::Ordering;
use std::sync::Arc;
use support::{check, pack};

/// Cells beyond which an array is left out: the point is variety.
const MAX_CELLS: usize = 3_000;

#[test]
fn conditions_and_aggregates_agree_with_all_cells() {
    let files = pack::files();
    let memory = pack::memory(&files, "made/");
    let keys: Value = serde_json::from_slice(&files["keys.json"]).expect("keys");
    let (mut conditions, mut aggregates, mut failures) = (0, 0, Vec::new());
    // Every second one: neighbours are much alike.
    for name in files
        .keys()
        .filter_map(|p| p.strip_prefix("expected/")?.strip_suffix(".json"))
        .step_by(2)
    {
        let json: Value =
            serde_json::from_slice(&files[&format!("expected/{name}.json")]).expect("JSON");
        if json["kind"] == "group" || json["readable"] == false {
            continue;
        }
        let key = check::key_of(name, &keys).expect("a key");
        let context = pack::context(
            Config::default(),
            key,
            Arc::clone(&memory) as Arc<dyn Storage>,
        );
        let Ok(array) = context.array(&format!("mem://{name}")).open() else {
            continue;
        };
        match one_array(&array) {
            Ok((c, a)) => {
                conditions += c;
                aggregates += a;
            }
            Err(text) => failures.push(format!(
                "{name}: {}",
                text.chars().take(400).collect::<String>()
            )),
        }
    }
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(conditions > 1_000, "only {conditions} conditions");
    assert!(aggregates > 1_000, "only {aggregates} aggregates");
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Checks one array; the numbers of conditions and aggregates that were tried.
fn one_array(array: &Array) -> Result<(usize, usize), String> {
    let dense = array.schema().is_dense();
    let layout = if dense {
        Layout::RowMajor
    } else {
        Layout::Unordered
    };
    let bounds = array.non_empty_domain().map_err(text)?;
    let Some(bounds) = bounds else {
        return Ok((0, 0));
    };
    let selection = bounds
        .ranges
        .into_iter()
        .map(|r| azulejo::space::DimSelection::Ranges(vec![r]))
        .collect();
    let options = ReadOptions::new()
        .layout(layout)
        .subarray(azulejo::Subarray::Box(selection));
    let cells = options.subarray.cell_num(array.schema());
    if dense && cells.is_none_or(|n| n > MAX_CELLS as u128) {
        return Ok((0, 0));
    }
    let read = |options: ReadOptions| array.read(options).and_then(Reader::read_all);
    let all = read(options.clone()).map_err(text)?;
    if all.cell_num == 0 || all.cell_num > MAX_CELLS {
        return Ok((0, 0));
    }
    let (mut conditions, mut aggregates) = (0, 0);
    for column in &all.columns {
        let kind = &column.column_type;
        let attribute = array
            .schema()
            .attributes
            .iter()
            .find(|a| a.name == *kind.name);
        // Where fragments lack the field its cells read as fill values, but fail conditions.
        let everywhere = array.fragments().iter().all(|fragment| {
            let field = fragment.field(&kind.name);
            matches!(field, Some(Field::Dimension(_)))
                || field.and_then(|f| f.layout(fragment.schema()))
                    == Some((kind.datatype, kind.cell_val_num))
        });
        if !everywhere {
            continue;
        }
        for (i, (condition, met)) in cases(column).into_iter().enumerate() {
            let found = read(options.clone().condition(condition.clone())).map_err(text)?;
            conditions += 1;
            let same = if dense {
                masked_alike(&all, &found, &met)
            } else {
                filtered_alike(&all, &found, &met)
            };
            if !same {
                let expected = met.iter().filter(|m| **m).count();
                return Err(format!(
                    "{condition:?}: expected {expected} of {} cells, found {}",
                    all.cell_num, found.cell_num
                ));
            }
            if dense && i % 3 == 0 {
                into_alike(array, options.clone().condition(condition.clone()), &found)
                    .map_err(text)?;
            }
            if i % 5 == 0 {
                aggregates += check_aggregates(array, &options, column, Some((&condition, &met)))?;
            }
        }
        if attribute.is_some() {
            aggregates += check_aggregates(array, &options, column, None)?;
        }
    }
    Ok((conditions, aggregates))
}

/// Reads the fixed-length columns again into buffers of a few cells, which go another way.
fn into_alike(array: &Array, options: ReadOptions, found: &ColumnSet) -> azulejo::Result<()> {
    let fixed: Vec<&ColumnBuffers> = found
        .columns
        .iter()
        .filter(|c| !c.column_type.is_var())
        .collect();
    let names: Vec<String> = fixed
        .iter()
        .map(|column| column.column_type.name.to_string())
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let mut reader = array.read(options.fields(names))?;
    let room = found.cell_num / 3 + 1;
    let (mut done, mut complete) = (0, false);
    while !complete {
        let buffer = |column: &&ColumnBuffers| {
            (
                vec![7; room * column.column_type.cell_size()],
                vec![7; room],
            )
        };
        let mut buffers: Vec<_> = fixed.iter().map(buffer).collect();
        let mut columns: Vec<ColumnMut<'_>> = buffers
            .iter_mut()
            .zip(&fixed)
            .map(|((data, validity), column)| {
                let validity = column
                    .column_type
                    .nullable
                    .then_some(validity.as_mut_slice());
                ColumnMut {
                    data,
                    offsets: None,
                    validity,
                }
            })
            .collect();
        let progress = reader.read_into(&mut columns)?;
        for (column, (data, validity)) in fixed.iter().zip(&buffers) {
            let view = column.view();
            for i in 0..progress.cells {
                let bytes = &data[i * view.cell_size..(i + 1) * view.cell_size];
                assert_eq!(bytes, view.cell(done + i), "{}", column.column_type.name);
                assert!(
                    !column.column_type.nullable || (validity[i] != 0) == view.is_valid(done + i)
                );
            }
        }
        done += progress.cells;
        complete = progress.complete;
    }
    assert_eq!(done, found.cell_num);
    Ok(())
}

/// Conditions on a column with values taken from it, and which of its cells meet them.
fn cases(column: &ColumnBuffers) -> Vec<(Condition, Vec<bool>)> {
    let kind = &column.column_type;
    let field = || FieldRef {
        name: kind.name.to_string(),
        raw: true,
    };
    let mut cases = Vec::new();
    if kind.nullable {
        for negated in [false, true] {
            let met = column.cells().map(|c| c.is_none() != negated).collect();
            cases.push((
                Condition::IsNull {
                    field: field(),
                    negated,
                },
                met,
            ));
        }
    }
    let text = matches!(kind.datatype, Datatype::StringAscii | Datatype::StringUtf8);
    let number = kind.cell_val_num == azulejo::format::CellValNum::ONE
        && !kind.datatype.is_string()
        && !kind.datatype.is_byte()
        && !matches!(kind.datatype, Datatype::Any | Datatype::Char);
    if !text && !number {
        return cases;
    }
    let values: Vec<&[u8]> = column.cells().flatten().collect();
    let Some(value) = values.get(values.len() / 2).map(|v| v.to_vec()) else {
        return cases;
    };
    for op in [
        Comparison::Lt,
        Comparison::Ge,
        Comparison::Eq,
        Comparison::Ne,
    ] {
        let holds = |cell: Option<&[u8]>| {
            let Some(cell) = cell else { return false };
            let order = order(kind.datatype, cell, &value);
            match op {
                Comparison::Lt => order == Some(Ordering::Less),
                Comparison::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
                Comparison::Eq => order == Some(Ordering::Equal),
                _ => order != Some(Ordering::Equal),
            }
        };
        cases.push((
            Condition::compare(field(), op, value.clone()),
            column.cells().map(holds).collect(),
        ));
    }
    let members: Vec<Vec<u8>> = values
        .iter()
        .step_by(values.len() / 3 + 1)
        .map(|v| v.to_vec())
        .collect();
    for negated in [false, true] {
        let holds =
            |cell: Option<&[u8]>| cell.is_some_and(|c| members.iter().any(|m| m == c) != negated);
        let condition = Condition::In {
            field: field(),
            negated,
            values: members.iter().collect(),
        };
        cases.push((condition, column.cells().map(holds).collect()));
    }
    cases
}

fn order(datatype: Datatype, a: &[u8], b: &[u8]) -> Option<Ordering> {
    let nan = |v: &[u8]| match datatype {
        Datatype::Float32 => v.try_into().is_ok_and(|v| f32::from_le_bytes(v).is_nan()),
        Datatype::Float64 => v.try_into().is_ok_and(|v| f64::from_le_bytes(v).is_nan()),
        _ => false,
    };
    if nan(a) || nan(b) {
        None
    } else {
        Some(compare(datatype, a, b))
    }
}

type Row<'a> = Vec<Option<&'a [u8]>>;

fn rows(set: &ColumnSet) -> Vec<Row<'_>> {
    let mut rows = vec![Vec::new(); set.cell_num];
    for column in &set.columns {
        for (row, cell) in rows.iter_mut().zip(column.cells()) {
            row.push(cell);
        }
    }
    rows
}

/// The rows of a sparse array that meet a condition, and no others.
fn filtered_alike(all: &ColumnSet, found: &ColumnSet, met: &[bool]) -> bool {
    let mut expected: Vec<_> = rows(all)
        .into_iter()
        .zip(met)
        .filter(|(_, m)| **m)
        .map(|(r, _)| r)
        .collect();
    let mut found = rows(found);
    expected.sort();
    found.sort();
    expected == found
}

/// The cells of a dense array that meet a condition in their places; the others may be anything
/// that is alike.
fn masked_alike(all: &ColumnSet, found: &ColumnSet, met: &[bool]) -> bool {
    let (all, found) = (rows(all), rows(found));
    let mut fill: Option<&Row<'_>> = None;
    all.len() == found.len()
        && all.iter().zip(&found).zip(met).all(|((all, found), met)| {
            if *met {
                all == found
            } else {
                fill.replace(found).is_none_or(|fill| fill == found)
            }
        })
}

/// Aggregates of a column against the plainest way to compute them; how many were tried.
fn check_aggregates(
    array: &Array,
    options: &ReadOptions,
    column: &ColumnBuffers,
    condition: Option<(&Condition, &[bool])>,
) -> Result<usize, String> {
    let name = || column.column_type.name.to_string();
    let (datatype, dense) = (column.column_type.datatype, array.schema().is_dense());
    let mut tried = 0;
    for aggregate in [
        Aggregate::Count,
        Aggregate::NullCount(name()),
        Aggregate::Min(name()),
        Aggregate::Max(name()),
        Aggregate::Sum(name()),
        Aggregate::Mean(name()),
    ] {
        let compute = |condition: Option<&Condition>| {
            let options = options.clone();
            let options = match condition {
                Some(condition) => options.condition(condition.clone()),
                None => options,
            };
            array.aggregate(options, std::slice::from_ref(&aggregate))
        };
        let Ok(found) = compute(condition.map(|(c, _)| c)) else {
            continue;
        };
        tried += 1;
        let found = &found[0];
        if dense {
            // Which cells were written only the engine knows: metadata and cells must agree.
            if condition.is_none() && aggregate != Aggregate::Count {
                let always = Condition::And(vec![]);
                let cells = &compute(Some(&always)).map_err(text)?[0];
                if !alike(found, cells) {
                    return Err(format!(
                        "{aggregate}: {found:?} from metadata, {cells:?} from cells"
                    ));
                }
            }
            continue;
        }
        let counts = |i: usize| condition.is_none_or(|(_, met)| met[i]);
        let cells = || {
            column
                .cells()
                .enumerate()
                .filter(|(i, _)| counts(*i))
                .map(|(_, c)| c)
        };
        let values: Vec<&[u8]> = cells().flatten().collect();
        let bound = |order: Ordering| {
            let numbers = values.iter().filter(|v| compare_self(datatype, v));
            let best = numbers.reduce(|a, b| {
                if compare(datatype, b, a) == order {
                    b
                } else {
                    a
                }
            });
            best.or(values.first())
                .map_or(AggregateValue::Null, |v| AggregateValue::Cell {
                    datatype,
                    bytes: v.to_vec(),
                })
        };
        let expected = match aggregate {
            Aggregate::Count => AggregateValue::Unsigned(cells().count() as u64),
            Aggregate::NullCount(_) => {
                AggregateValue::Unsigned(cells().filter(Option::is_none).count() as u64)
            }
            // Strings of signed characters have an order of their own.
            Aggregate::Min(_) | Aggregate::Max(_) if datatype == Datatype::Char => continue,
            Aggregate::Min(_) => bound(Ordering::Less),
            Aggregate::Max(_) => bound(Ordering::Greater),
            _ => continue,
        };
        if !alike(found, &expected) {
            return Err(format!(
                "{aggregate} where {condition:?}: {found:?}, not {expected:?}"
            ));
        }
    }
    Ok(tried)
}

/// Whether a value is a number.
fn compare_self(datatype: Datatype, value: &[u8]) -> bool {
    order(datatype, value, value).is_some()
}

/// Equal, or equal up to rounding; zeros of both signs and all NaN are alike.
fn alike(a: &AggregateValue, b: &AggregateValue) -> bool {
    match (a, b) {
        (AggregateValue::Real(a), AggregateValue::Real(b)) => {
            a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
        }
        (AggregateValue::Cell { datatype, bytes: a }, AggregateValue::Cell { bytes: b, .. }) => {
            compare(*datatype, a, b) == Ordering::Equal
        }
        _ => a == b,
    }
}

/// Of text only what lies before its first zero byte is in the metadata: the greatest one is found
/// wherever it lies, in tiles of one cell and of several.
#[test]
fn the_greatest_text_is_found_behind_zero_bytes() {
    use azulejo::format::ArraySchema;
    use azulejo::{Context, WriteOptions};
    let texts = [
        "a\0z", "a", "ab", "", "\0", "b\0", "b", "b\0a", "a\0\0", "ab\0zz", "a\u{1}", "b\0\u{1}",
    ];
    let mut state = 7u64;
    for (round, capacity) in (0..200u64).flat_map(|round| [(round, 1), (round, 3)]) {
        let words: Vec<&str> = (0..1 + round % 9)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                texts[(state >> 33) as usize % texts.len()]
            })
            .collect();
        for dense in [false, true] {
            let context = Context::new(Config::default(), None).expect("a context");
            let place = context.array("mem://words");
            let last = words.len() as i64 - 1;
            let schema = match dense {
                true => {
                    ArraySchema::dense().dimension("i", 0..=last, (capacity as i64).min(last + 1))
                }
                false => ArraySchema::sparse()
                    .dimension("i", 0..=last, 1)
                    .capacity(capacity),
            };
            let schema = schema.attribute("s", Datatype::StringAscii).build();
            place.create(schema.expect("a schema")).expect("an array");
            let column = ColumnBuffers::of_strings("s", words.iter().copied());
            let ids = ColumnBuffers::of_values("i", (0..=last).collect::<Vec<_>>());
            let mut writer = place.writer(WriteOptions::new()).expect("a writer");
            let cells = match dense {
                true => ColumnSet::of([column]),
                false => ColumnSet::of([ids, column]),
            };
            writer.write(&cells.expect("cells")).expect("a write");
            writer.finish().expect("a fragment");
            let array = place.open().expect("the array");
            let found = array
                .aggregate(
                    ReadOptions::new(),
                    &[Aggregate::Max("s".into()), Aggregate::Min("s".into())],
                )
                .expect("aggregates");
            for (found, best) in found.iter().zip([words.iter().max(), words.iter().min()]) {
                let AggregateValue::Cell { bytes, .. } = found else {
                    panic!("{found:?}");
                };
                let best = best.map(|best| best.as_bytes());
                assert_eq!(
                    Some(bytes.as_slice()),
                    best,
                    "{words:?}, {capacity}, dense {dense}"
                );
            }
        }
    }
}
