//! What both engines read.

use super::peer::{self, Peer, hex};
use super::random;
use super::session::{LABELS, Session};
use crate::Outcome;
use crate::support::cells::{self, Cells};
use azulejo::Subarray;
use azulejo::condition::{Comparison, Condition};
use azulejo::format::schema::{Attribute, FieldIndex};
use azulejo::format::{ArraySchema, Datatype};
use azulejo::read::{ReadOptions, Reader};
use azulejo::space::{DimSelection, Layout};
use serde_json::{Value, json};
use std::sync::Arc;

impl Session {
    /// A comparison that both engines understand alike, of a field that is in every fragment.
    pub fn condition(&mut self) -> Option<(Condition, Value)> {
        self.comparison(true)
    }

    /// A tree of comparisons, of attributes too that were added later: what Azulejo stores of it, the
    /// reference must understand as well.
    pub fn conditions(&mut self) -> Option<Condition> {
        let (mut all, _) = self.comparison(false)?;
        for _ in 0..self.rng.below(4) {
            let Some((next, _)) = self.comparison(false) else {
                continue;
            };
            let (left, right) = match self.rng.chance(50) {
                true => (all, next),
                false => (next, all),
            };
            all = match self.rng.chance(60) {
                true => left.and(right),
                false => left.or(right),
            };
        }
        Some(all)
    }

    /// Of a field that is in every fragment, if `everywhere`.
    fn comparison(&mut self, everywhere: bool) -> Option<(Condition, Value)> {
        let schema = Arc::clone(&self.schema);
        let plain = |datatype: Datatype| {
            datatype.is_integer() || datatype.is_datetime() || datatype.is_time()
        };
        let fields: Vec<FieldIndex> = schema
            .fields()
            .filter(|f| {
                let Some((datatype, num)) = schema.type_of(*f) else {
                    return false;
                };
                let known = schema
                    .attribute_of(*f)
                    .is_none_or(|a| !everywhere || self.original.contains(&a.name));
                let one = num == azulejo::format::CellValNum::ONE && plain(datatype);
                known
                    && (one || (num.is_var() && datatype == Datatype::StringAscii))
                    && datatype != Datatype::Bool
            })
            .collect();
        if fields.is_empty() {
            return None;
        }
        let field = *self.rng.pick(&fields);
        let name = schema.name_of(field).to_owned();
        let attribute = schema.attribute_of(field);
        let mut ops = vec![("==", Comparison::Eq), ("!=", Comparison::Ne)];
        let enumerated = attribute.is_some_and(|a| a.enumeration.is_some());
        if !enumerated {
            ops.extend([
                ("<", Comparison::Lt),
                ("<=", Comparison::Le),
                (">", Comparison::Gt),
                (">=", Comparison::Ge),
            ]);
        }
        let mut value = || match (attribute, field) {
            (Some(_), _) if enumerated => self.rng.pick(&LABELS).as_bytes().to_vec(),
            (Some(attribute), _) => random::value(&mut self.rng, attribute),
            (None, FieldIndex::Dimension(d)) => {
                random::coordinate(&mut self.rng, &schema.domain.dimensions[d])
            }
            (None, FieldIndex::Attribute(_)) => Vec::new(),
        };
        let values = [value(), value()];
        if values.iter().any(|v| v.is_empty() || v.len() > 200) {
            return None;
        }
        if self.rng.chance(25) && values[0] != values[1] {
            let negated = self.rng.chance(50);
            let tree = json!(["in", name, negated, [hex(&values[0]), hex(&values[1])]]);
            let condition = Condition::In {
                field: name.into(),
                negated,
                values: values.iter().collect(),
            };
            return Some((condition, tree));
        }
        let (op, comparison) = *self.rng.pick(&ops);
        let tree = json!(["cmp", name, op, hex(&values[0])]);
        let [value, _] = values;
        Some((Condition::compare(name, comparison, value), tree))
    }

    /// Both engines and the model have the same cells at a time.
    pub fn verify(&mut self, peer: &mut Peer, time: u64) -> Outcome {
        let array = self.open(time)?;
        let schema = Arc::clone(array.schema());
        let fields = peer::all_fields(&schema);
        let layout = if schema.is_dense() {
            Layout::RowMajor
        } else {
            *self.rng.pick(&[Layout::RowMajor, Layout::Global])
        };
        let options = ReadOptions::new().fields(fields.clone()).layout(layout);
        let ours = array
            .read(options)
            .and_then(Reader::read_all)
            .map_err(|e| format!("our read: {e}"))?;
        let ours = cells::of_columns(&ours);
        let mut command = self.command("read");
        command["layout"] = if layout == Layout::Global { 2 } else { 0 }.into();
        command["t"] = json!([0, time]);
        command["ranges"] = whole(&schema);
        let theirs = peer.read(&schema, &fields, command)?;
        if let Some(expected) =
            self.model
                .cells(&schema, &fields, time, Some(&time) == self.times.last())?
        {
            let same = if schema.is_dense() {
                cells::compare
            } else {
                cells::compare_unordered
            };
            same(&expected, &theirs)
                .map_err(|e| format!("the reference reads what was not written: {e}"))?;
            same(&expected, &ours)
                .map_err(|e| format!("Azulejo reads what was not written: {e}"))?;
        }
        same_cells(&schema, &theirs, &ours)
    }

    /// Both engines answer a query alike: ranges and a condition, which statistics prune by.
    pub fn query(&mut self, peer: &mut Peer) -> Outcome {
        let time = self.clock;
        let array = self.open(time)?;
        let schema = Arc::clone(array.schema());
        let fields = peer::all_fields(&schema);
        let mut selection = Vec::new();
        let mut ranges = Vec::new();
        for dimension in &schema.domain.dimensions {
            let (a, b) = (
                random::coordinate(&mut self.rng, dimension),
                random::coordinate(&mut self.rng, dimension),
            );
            let backwards = azulejo::format::range::compare(dimension.datatype, &a, &b).is_gt();
            let (low, high) = if backwards { (b, a) } else { (a, b) };
            // The reference loses cells of tiles that hold an empty coordinate, its own too.
            if low.is_empty()
                || (dimension.cell_val_num.is_var() && self.model.has_empty_coordinate())
            {
                selection.push(DimSelection::All);
                ranges.push(json!([true, []]));
            } else {
                ranges.push(json!([
                    dimension.cell_val_num.is_var(),
                    [[hex(&low), hex(&high)]]
                ]));
                selection.push(DimSelection::Ranges(vec![azulejo::format::Range::new(
                    low, high,
                )]));
            }
        }
        let mut options = ReadOptions::new()
            .fields(fields.clone())
            .layout(Layout::RowMajor)
            .subarray(Subarray::Box(selection));
        let mut command = self.command("read");
        command["layout"] = 0.into();
        command["t"] = json!([0, time]);
        command["ranges"] = ranges.into();
        // Dense reads: tests of nullable fields and of strings apart, see docs/differences.md.
        if let Some((condition, tree)) = self.condition().filter(|_| !schema.is_dense()) {
            options = options.condition(condition);
            command["tree"] = tree;
        }
        let text = format!("query {} {}", command["ranges"], command["tree"]);
        let ours = array
            .read(options)
            .and_then(Reader::read_all)
            .map_err(|e| format!("{text}: {e}"))?;
        let theirs = peer.read(&schema, &fields, command)?;
        same_cells(&schema, &theirs, &cells::of_columns(&ours)).map_err(|e| format!("{text}: {e}"))
    }

    /// The reference answers aggregates from the statistics that we have written, tile by tile.
    pub fn aggregate(&mut self, peer: &mut Peer) -> Outcome {
        let time = self.clock;
        let array = self.open(time)?;
        let schema = Arc::clone(array.schema());
        // Of dense arrays it counts cells that nobody has written, or not.
        if schema.is_dense() {
            return Ok(());
        }
        let number = |datatype: Datatype| {
            (datatype.is_integer() || datatype.is_real()) && datatype != Datatype::Bool
        };
        let fields: Vec<FieldIndex> = schema
            .fields()
            .filter(|f| {
                let attribute = schema.attribute_of(*f);
                let plain = attribute
                    .is_none_or(|a| self.original.contains(&a.name) && a.enumeration.is_none());
                plain
                    && schema.type_of(*f).is_some_and(|(datatype, num)| {
                        num == azulejo::format::CellValNum::ONE && number(datatype)
                    })
            })
            .collect();
        if fields.is_empty() {
            return Ok(());
        }
        let field = *self.rng.pick(&fields);
        let (name, datatype) = (
            schema.name_of(field).to_owned(),
            schema.type_of(field).map(|t| t.0),
        );
        let datatype = datatype.unwrap_or(Datatype::Int8);
        let mut ops = vec!["count", "sum", "min", "max"];
        if schema.is_nullable(field) {
            ops.push("null_count");
        }
        let options = ReadOptions::new().fields([name.clone()]);
        let ours = array
            .read(options)
            .and_then(Reader::read_all)
            .map_err(|e| e.to_string())?;
        let ours = cells::of_columns(&ours);
        let cells = &ours.first().ok_or("no column")?.values;
        let mut command = self.command("aggregate");
        command["field"] = peer::field_json(&schema, &name);
        command["ops"] = json!(ops);
        command["t"] = json!([0, time]);
        // As with reads: a process whose memory an earlier write has ruined may crash, a crash
        // counts if it comes again.
        let found = peer.ask(&command).or_else(|_| peer.ask(&command))?;
        let found = found.map_err(|e| format!("the reference refused \"aggregate\": {e}"))?;
        for op in ops {
            let Some(expected) = expected(op, datatype, cells) else {
                continue;
            };
            let theirs = found["found"][op].as_str().map(unhex);
            // -0.0 and 0.0, and sums in another order.
            let close = datatype.is_real()
                && matches!((&theirs, &expected), (Some(a), Some(b)) if (real(a) - real(b)).abs() <= real(b).abs() * 1e-9);
            if theirs != expected && !close {
                return Err(format!(
                    "the aggregate {op} of {name}: {theirs:?} instead of {expected:?}"
                ));
            }
        }
        Ok(())
    }
}

fn unhex(digits: &str) -> Vec<u8> {
    let digit = |i: usize| {
        digits
            .get(i..i + 2)
            .and_then(|d| u8::from_str_radix(d, 16).ok())
    };
    (0..digits.len()).step_by(2).filter_map(digit).collect()
}

/// A real number of 8 or 4 bytes; NaN for anything else.
fn real(bytes: &[u8]) -> f64 {
    let narrow = || {
        bytes
            .try_into()
            .map_or(f64::NAN, |four| f64::from(f32::from_le_bytes(four)))
    };
    bytes
        .try_into()
        .map_or_else(|_| narrow(), f64::from_le_bytes)
}

/// What the reference must answer, as the digits of its buffers; `None` where it may answer
/// anything.
fn expected(op: &str, datatype: Datatype, cells: &[Option<Vec<u8>>]) -> Option<Option<Vec<u8>>> {
    let values = || cells.iter().flatten();
    let none = values().next().is_none();
    let extreme = |least: bool| {
        let compare = |a: &&Vec<u8>, b: &&Vec<u8>| azulejo::format::range::compare(datatype, a, b);
        let found = if least {
            values().min_by(compare)
        } else {
            values().max_by(compare)
        };
        found.cloned()
    };
    match op {
        "count" => Some(Some((cells.len() as u64).to_le_bytes().to_vec())),
        "null_count" => {
            let nulls = cells.iter().filter(|cell| cell.is_none()).count();
            Some(Some((nulls as u64).to_le_bytes().to_vec()))
        }
        // Without a value it says null or 0.
        _ if none => None,
        // What comes of NaN depends on the order of cells and tiles.
        "min" | "max" if datatype.is_real() && values().any(|bytes| real(bytes).is_nan()) => None,
        "min" => Some(extreme(true)),
        "max" => Some(extreme(false)),
        _ if datatype.is_real() => {
            let sum: f64 = values().map(|bytes| real(bytes)).sum();
            sum.is_finite().then(|| Some(sum.to_le_bytes().to_vec()))
        }
        _ => {
            let sum: i128 = values().map(|bytes| random::number(datatype, bytes)).sum();
            let eight = i64::try_from(sum)
                .map(|sum| sum as u64)
                .or_else(|_| u64::try_from(sum));
            // An overflow on the way is one, whatever comes after it.
            let size: i128 = values()
                .map(|bytes| random::number(datatype, bytes).abs())
                .sum();
            eight
                .ok()
                .filter(|_| size < i128::from(i64::MAX))
                .map(|sum| Some(sum.to_le_bytes().to_vec()))
        }
    }
}

fn same_cells(schema: &ArraySchema, theirs: &[Cells], ours: &[Cells]) -> Outcome {
    let compare = if schema.allows_dups {
        cells::compare_unordered
    } else {
        cells::compare
    };
    compare(theirs, ours).map_err(|e| format!("Azulejo differs from the reference: {e}"))
}

/// The ranges of the whole domain for dense arrays, none for sparse ones.
fn whole(schema: &ArraySchema) -> Value {
    let one = |d: &azulejo::format::schema::Dimension| match &d.domain {
        Some(domain) if schema.is_dense() => {
            json!([false, [[hex(&domain.start), hex(&domain.end)]]])
        }
        _ => json!([d.cell_val_num.is_var(), []]),
    };
    schema.domain.dimensions.iter().map(one).collect()
}

/// The attribute that a field is.
trait AttributeOf {
    fn attribute_of(&self, field: FieldIndex) -> Option<&Attribute>;
}

impl AttributeOf for ArraySchema {
    fn attribute_of(&self, field: FieldIndex) -> Option<&Attribute> {
        match field {
            FieldIndex::Attribute(a) => self.attribute(a),
            FieldIndex::Dimension(_) => None,
        }
    }
}
