//! What a scan is, as bytes. They come from another machine, and may be wrong.

use crate::aggregate::Wanted;
use crate::columns::TableColumns;
use crate::error::{Result, external};
use crate::scan::ArrayScan;
use crate::selection::Selection;
use crate::table::TableOptions;
use azulejo::array::PinnedSnapshot;
use azulejo::condition::{Comparison, Condition, FieldRef, ValueSet};
use azulejo::format::DecodeError;
use azulejo::format::condition::Form;
use azulejo::format::condition::MAX_DEPTH;
use azulejo::format::wire::{ByteReader, ByteWriter};
use azulejo::{Context, Subarray};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::error::DataFusionError;
use std::sync::Arc;

const WHAT: &str = "scan of an array";

type Decoded<T> = std::result::Result<T, DecodeError>;

/// Bytes that are no plan, as an error of DataFusion's.
pub fn wrong(error: DecodeError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// What a scan is without its array.
#[derive(Debug)]
pub struct ScanParts {
    /// Where the array lies.
    pub uri: String,
    pinned: PinnedSnapshot,
    /// The columns that come out.
    pub schema: SchemaRef,
    unwritten: bool,
    /// Whether CHAR is bytes.
    bytes: bool,
    /// Their indices among the table's.
    pub projection: Vec<usize>,
    selection: Selection,
    parts: Vec<Subarray>,
    /// How many partitions there are.
    pub partitions: usize,
    is_part: bool,
    /// How many rows are wanted, if not all.
    pub limit: Option<usize>,
    /// The dimensions by which partitions are sorted.
    pub order: Vec<usize>,
}

impl ScanParts {
    /// Those of a scan. Filters that change while it runs stay behind: they only leave out rows that
    /// others leave out too.
    pub fn of(scan: &ArrayScan) -> Self {
        Self {
            uri: scan.array().uri().to_string(),
            pinned: scan.array().pin(),
            schema: Arc::clone(scan.output()),
            unwritten: scan.unwritten(),
            bytes: scan.columns().bytes(),
            projection: scan.projection().to_vec(),
            selection: scan.selection().clone(),
            parts: scan.parts().to_vec(),
            partitions: scan.partitions(),
            is_part: scan.is_part(),
            limit: scan.limit(),
            order: scan.order().to_vec(),
        }
    }

    /// The scan; its array is opened.
    ///
    /// # Errors
    /// Those of opening it, and columns that are not those of the other side.
    pub fn open(&self, context: &Context) -> Result<ArrayScan> {
        let array = context.array(&self.uri).open_pinned(&self.pinned);
        let array = array.map_err(external)?;
        let columns = Arc::new(TableColumns::of(&array, self.bytes)?);
        let mut options = TableOptions::new();
        options.unwritten = self.unwritten;
        let scan = ArrayScan::new(
            array,
            &options,
            columns,
            self.projection.clone(),
            self.selection.clone(),
            Vec::new(),
        )?;
        if scan.output() != &self.schema {
            return Err(DataFusionError::Execution(format!(
                "{}: its columns are others than those that were asked for",
                self.uri
            )));
        }
        let scan = scan.limited(self.limit).ordered(self.order.clone());
        Ok(match self.is_part {
            true => scan.with_parts(self.parts.clone(), self.partitions),
            false => scan
                .with_all_parts(self.parts.clone())
                .of_partitions(self.partitions),
        })
    }

    /// Writes them.
    ///
    /// # Errors
    /// Columns that have no bytes.
    pub fn write(&self, w: &mut ByteWriter) -> Result<()> {
        w.text64(&self.uri);
        write_block(w, &self.pinned.encode());
        let mut schema = Vec::new();
        StreamWriter::try_new(&mut schema, &self.schema)?.finish()?;
        write_block(w, &schema);
        w.flag(self.unwritten);
        w.flag(self.bytes);
        write_indices(w, &self.projection);
        match &self.selection {
            Selection::Nothing => w.flag(false),
            Selection::Cells {
                subarray,
                condition,
            } => {
                w.flag(true);
                write_block(w, &subarray.encode());
                w.flag(condition.is_some());
                if let Some(condition) = condition {
                    write_condition(w, condition);
                }
            }
        }
        w.u64(self.parts.len() as u64);
        for part in &self.parts {
            write_block(w, &part.encode());
        }
        w.u64(self.partitions as u64);
        w.flag(self.is_part);
        w.flag(self.limit.is_some());
        w.u64(self.limit.unwrap_or_default() as u64);
        write_indices(w, &self.order);
        Ok(())
    }

    /// Reads them; their array is not looked at.
    ///
    /// # Errors
    /// Bytes that are no scan.
    pub fn read(r: &mut ByteReader<'_>) -> Result<Self> {
        let (mut read, schema) = Self::decoded(r).map_err(wrong)?;
        read.schema = StreamReader::try_new(schema, None)?.schema();
        Ok(read)
    }

    /// All but the columns, and the bytes of these.
    fn decoded<'a>(r: &mut ByteReader<'a>) -> Decoded<(Self, &'a [u8])> {
        let len = r.u64(WHAT)?;
        let uri = r.text(len, WHAT)?;
        let pinned = PinnedSnapshot::decode(read_block(r)?)?;
        let schema = read_block(r)?;
        let unwritten = r.flag(WHAT)?;
        let bytes = r.flag(WHAT)?;
        let projection = read_indices(r)?;
        let selection = if r.flag(WHAT)? {
            let subarray = Subarray::decode(read_block(r)?)?;
            let condition = match r.flag(WHAT)? {
                true => Some(read_condition(r, MAX_DEPTH)?),
                false => None,
            };
            Selection::Cells {
                subarray,
                condition,
            }
        } else {
            Selection::Nothing
        };
        let count = r.u64(WHAT)?;
        let count = r.check_count(count, 8, WHAT)?;
        let parts = (0..count).map(|_| Subarray::decode(read_block(r)?));
        let parts = parts.collect::<Decoded<Vec<_>>>()?;
        let partitions = index(r)?;
        let is_part = r.flag(WHAT)?;
        let limited = r.flag(WHAT)?;
        let limit = index(r)?;
        let read = Self {
            uri,
            pinned,
            schema: Arc::new(Schema::empty()),
            unwritten,
            bytes,
            projection,
            selection,
            parts,
            partitions,
            is_part,
            limit: limited.then_some(limit),
            order: read_indices(r)?,
        };
        Ok((read, schema))
    }
}

/// Writes what aggregates are wanted.
pub fn write_wanted(w: &mut ByteWriter, wanted: &[Wanted]) {
    w.u64(wanted.len() as u64);
    for want in wanted {
        let (kind, field, real) = match want {
            Wanted::Rows => (0, "", false),
            Wanted::Values(field) => (1, field.as_str(), false),
            Wanted::Sum(field) => (2, field.as_str(), false),
            Wanted::Least(field, real) => (3, field.as_str(), *real),
            Wanted::Greatest(field, real) => (4, field.as_str(), *real),
        };
        w.u8(kind);
        w.text32(field);
        w.flag(real);
    }
}

/// Reads what aggregates are wanted.
pub fn read_wanted(r: &mut ByteReader<'_>) -> Decoded<Vec<Wanted>> {
    let count = r.u64(WHAT)?;
    let count = r.check_count(count, 6, WHAT)?;
    let read = |r: &mut ByteReader<'_>| {
        let kind = r.u8(WHAT)?;
        let field = read_name(r)?;
        let real = r.flag(WHAT)?;
        Ok(match kind {
            0 => Wanted::Rows,
            1 => Wanted::Values(field),
            2 => Wanted::Sum(field),
            3 => Wanted::Least(field, real),
            4 => Wanted::Greatest(field, real),
            _ => return Err(r.invalid(WHAT, "an unknown aggregate")),
        })
    };
    (0..count).map(|_| read(r)).collect()
}

fn write_block(w: &mut ByteWriter, bytes: &[u8]) {
    w.u64(bytes.len() as u64);
    w.bytes(bytes);
}

fn read_block<'a>(r: &mut ByteReader<'a>) -> Decoded<&'a [u8]> {
    let len = r.u64(WHAT)?;
    r.bytes_u64(len, WHAT)
}

fn index(r: &mut ByteReader<'_>) -> Decoded<usize> {
    let number = r.u64(WHAT)?;
    usize::try_from(number).map_err(|_| r.invalid(WHAT, "a number beyond this machine's"))
}

fn write_indices(w: &mut ByteWriter, indices: &[usize]) {
    w.u64(indices.len() as u64);
    for index in indices {
        w.u64(*index as u64);
    }
}

fn read_indices(r: &mut ByteReader<'_>) -> Decoded<Vec<usize>> {
    let count = r.u64(WHAT)?;
    let count = r.check_count(count, 8, WHAT)?;
    (0..count).map(|_| index(r)).collect()
}

fn read_name(r: &mut ByteReader<'_>) -> Decoded<String> {
    let len = r.u32(WHAT)?;
    r.text(len.into(), WHAT)
}

const COMPARE: u8 = 0;
const IS_NULL: u8 = 1;
const IN: u8 = 2;
const AND: u8 = 3;
const OR: u8 = 4;
const NOT: u8 = 5;
const MATCH_NAN: u8 = 6;
const MATCH_LIKE: u8 = 7;

/// Writes a condition as it is in memory: what deletes store does not tell null from the empty
/// string, nor labels from indices.
fn write_condition(w: &mut ByteWriter, condition: &Condition) {
    let field = |w: &mut ByteWriter, field: &FieldRef| {
        w.text32(&field.name);
        w.flag(field.raw);
    };
    let list = |w: &mut ByteWriter, children: &[Condition]| {
        w.u64(children.len() as u64);
        for child in children {
            write_condition(w, child);
        }
    };
    match condition {
        Condition::Compare {
            field: of,
            op,
            value,
        } => {
            w.u8(COMPARE);
            field(w, of);
            w.u8(*op as u8);
            write_block(w, value);
        }
        Condition::IsNull { field: of, negated } => {
            w.u8(IS_NULL);
            field(w, of);
            w.flag(*negated);
        }
        Condition::In {
            field: of,
            negated,
            values,
        } => {
            w.u8(IN);
            field(w, of);
            w.flag(*negated);
            w.u64(values.len() as u64);
            for value in values.iter() {
                write_block(w, value);
            }
        }
        Condition::Match {
            field: of,
            negated,
            form,
        } => {
            let (kind, pattern) = match form {
                Form::Nan => (MATCH_NAN, &[][..]),
                Form::Like(pattern) => (MATCH_LIKE, pattern.as_slice()),
            };
            w.u8(kind);
            field(w, of);
            w.flag(*negated);
            write_block(w, pattern);
        }
        Condition::And(children) => {
            w.u8(AND);
            list(w, children);
        }
        Condition::Or(children) => {
            w.u8(OR);
            list(w, children);
        }
        Condition::Not(child) => {
            w.u8(NOT);
            write_condition(w, child);
        }
    }
}

fn read_condition(r: &mut ByteReader<'_>, depth: usize) -> Decoded<Condition> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(r.invalid(WHAT, "a condition that is nested too deep"));
    };
    let field = |r: &mut ByteReader<'_>| {
        let name = read_name(r)?;
        let raw = r.flag(WHAT)?;
        Ok::<_, DecodeError>(FieldRef { name, raw })
    };
    let list = |r: &mut ByteReader<'_>| {
        let count = r.u64(WHAT)?;
        let count = r.check_count(count, 2, WHAT)?;
        (0..count)
            .map(|_| read_condition(r, depth))
            .collect::<Decoded<Vec<_>>>()
    };
    let kind = r.u8(WHAT)?;
    Ok(match kind {
        COMPARE => {
            let field = field(r)?;
            let op = comparison(r)?;
            let value = read_block(r)?.to_vec();
            Condition::Compare { field, op, value }
        }
        IS_NULL => {
            let field = field(r)?;
            let negated = r.flag(WHAT)?;
            Condition::IsNull { field, negated }
        }
        IN => {
            let field = field(r)?;
            let negated = r.flag(WHAT)?;
            let count = r.u64(WHAT)?;
            let count = r.check_count(count, 8, WHAT)?;
            let values = (0..count).map(|_| read_block(r));
            Condition::In {
                field,
                negated,
                values: values.collect::<Decoded<ValueSet>>()?,
            }
        }
        MATCH_NAN | MATCH_LIKE => {
            let field = field(r)?;
            let negated = r.flag(WHAT)?;
            let pattern = read_block(r)?;
            Condition::Match {
                field,
                negated,
                form: match kind {
                    MATCH_NAN => Form::Nan,
                    _ => Form::Like(pattern.to_vec()),
                },
            }
        }
        AND => Condition::And(list(r)?),
        OR => Condition::Or(list(r)?),
        NOT => Condition::Not(Box::new(read_condition(r, depth)?)),
        _ => return Err(r.invalid(WHAT, "an unknown kind of condition")),
    })
}

fn comparison(r: &mut ByteReader<'_>) -> Decoded<Comparison> {
    let all = [
        Comparison::Lt,
        Comparison::Le,
        Comparison::Gt,
        Comparison::Ge,
        Comparison::Eq,
        Comparison::Ne,
        Comparison::AlwaysTrue,
        Comparison::AlwaysFalse,
    ];
    let id = r.u8(WHAT)?;
    let found = all.into_iter().find(|op| *op as u8 == id);
    found.ok_or_else(|| r.invalid(WHAT, "an unknown comparison"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_come_back_as_they_were() {
        let leaf = |op| Condition::compare("a", op, vec![1, 2]);
        let condition = Condition::And(vec![
            Condition::Or(vec![leaf(Comparison::Lt), !leaf(Comparison::AlwaysFalse)]),
            Condition::is_null("b"),
            Condition::compare("s", Comparison::Eq, Vec::new()),
            Condition::is_in("s", ["", "x", "yz"]),
            Condition::compare(FieldRef::raw("e"), Comparison::Ne, vec![3]),
        ]);
        let mut w = ByteWriter::new();
        write_condition(&mut w, &condition);
        let bytes = w.into_bytes();
        let mut r = ByteReader::new(&bytes);
        let read = read_condition(&mut r, MAX_DEPTH).expect("a condition");
        assert_eq!(read, condition);
        r.finish(WHAT).expect("nothing is left");
        for len in 0..bytes.len() {
            let mut r = ByteReader::new(bytes.get(..len).unwrap_or_default());
            assert!(read_condition(&mut r, MAX_DEPTH).is_err());
        }
        // Negation upon negation does not reach the end of the stack.
        let deep = vec![NOT; 1 << 20];
        assert!(read_condition(&mut ByteReader::new(&deep), MAX_DEPTH).is_err());
    }
}
