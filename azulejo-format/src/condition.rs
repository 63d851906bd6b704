//! Query conditions: trees of comparisons over fields, and their stored form in delete and update
//! commits.
//!
//! Values are raw bytes; they get a type when the engine binds the tree to a schema. Page: *Delete
//! Commit File*.

use crate::error::{DecodeError, Result};
use crate::wire::{ByteReader, ByteWriter};
use std::ops::Not;

/// How deep trees may be nested: far more than any writer nests them, far less than a stack bears.
pub const MAX_DEPTH: usize = 256;

/// What a comparison asks. The id on disk is in parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Comparison {
    /// Less than the value (0).
    Lt = 0,
    /// At most the value (1).
    Le = 1,
    /// Greater than the value (2).
    Gt = 2,
    /// At least the value (3).
    Ge = 3,
    /// Equal to the value (4).
    Eq = 4,
    /// Not equal to the value (5).
    Ne = 5,
    /// True for every cell (253): what is left of a comparison with a label that an enumeration
    /// lacks.
    AlwaysTrue = 253,
    /// True for no cell (254).
    AlwaysFalse = 254,
}

impl Comparison {
    const fn from_id(id: u8) -> Option<Self> {
        Some(match id {
            0 => Self::Lt,
            1 => Self::Le,
            2 => Self::Gt,
            3 => Self::Ge,
            4 => Self::Eq,
            5 => Self::Ne,
            253 => Self::AlwaysTrue,
            254 => Self::AlwaysFalse,
            _ => return None,
        })
    }

    /// The comparison that holds where this one does not (for cells that are neither null nor NaN).
    #[must_use]
    pub const fn negated(self) -> Self {
        match self {
            Self::Lt => Self::Ge,
            Self::Le => Self::Gt,
            Self::Gt => Self::Le,
            Self::Ge => Self::Lt,
            Self::Eq => Self::Ne,
            Self::Ne => Self::Eq,
            Self::AlwaysTrue => Self::AlwaysFalse,
            Self::AlwaysFalse => Self::AlwaysTrue,
        }
    }
}

/// The field that a leaf of a condition looks at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldRef {
    /// Name of an attribute or dimension.
    pub name: String,
    /// Whether values of an enumerated attribute are its stored indices, not labels. Not stored:
    /// what is stored are always indices, so that decoded conditions have it set, and labels must
    /// become indices before one is encoded.
    pub raw: bool,
}

impl FieldRef {
    /// The values of a field as they are stored: indices, where it is enumerated.
    pub fn raw(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            raw: true,
        }
    }
}

impl<S: Into<String>> From<S> for FieldRef {
    fn from(name: S) -> Self {
        Self {
            name: name.into(),
            raw: false,
        }
    }
}

/// The members of an IN or NOT IN.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ValueSet {
    data: Vec<u8>,
    /// Where each member starts in `data`, never decreasing.
    offsets: Vec<u64>,
}

impl ValueSet {
    /// The members' bytes, in stored order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self
            .offsets
            .iter()
            .skip(1)
            .copied()
            .chain([self.data.len() as u64]);
        self.offsets.iter().zip(ends).map(|(start, end)| {
            let range = usize::try_from(*start).ok().zip(usize::try_from(end).ok());
            range
                .and_then(|(start, end)| self.data.get(start..end))
                .unwrap_or(&[])
        })
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }
}

impl<B: AsRef<[u8]>> FromIterator<B> for ValueSet {
    fn from_iter<I: IntoIterator<Item = B>>(values: I) -> Self {
        let mut set = Self::default();
        for value in values {
            set.offsets.push(set.data.len() as u64);
            set.data.extend_from_slice(value.as_ref());
        }
        set
    }
}

/// A form of values that comparisons do not say.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Form {
    /// A real that is not a number.
    Nan,
    /// Text of this pattern: `%` stands for any characters, `_` for one; a backslash takes the
    /// character behind it as it is.
    Like(Vec<u8>),
}

/// A condition that each cell meets or not. Delete commits store the cells to keep: see
/// [`Delete`](crate::commit::Delete).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Compares a field with a value.
    Compare {
        /// The field.
        field: FieldRef,
        /// The question.
        op: Comparison,
        /// The value's bytes: one cell of the field's type, or a string.
        value: Vec<u8>,
    },
    /// Whether a field is null (or not null, if `negated`).
    ///
    /// Stored as EQ (or NE) with an empty value, just like a comparison with the empty string, and
    /// decodes as that [`Condition::Compare`]. What it meant shows only in the schema: for a
    /// fixed-size field it is a null test (the reference refuses to open such an array), for
    /// strings the reference takes it as the comparison.
    IsNull {
        /// The field.
        field: FieldRef,
        /// Asks for cells that are not null.
        negated: bool,
    },
    /// Whether a field's value is in a set (or not, if `negated`).
    In {
        /// The field.
        field: FieldRef,
        /// Asks for cells outside the set.
        negated: bool,
        /// The set.
        values: ValueSet,
    },
    /// Whether a field's value has a form (or not, if `negated`). No stored condition can ask for
    /// it: see [`Condition::unstorable`].
    Match {
        /// The field.
        field: FieldRef,
        /// Asks for values of another form.
        negated: bool,
        /// The form.
        form: Form,
    },
    /// All of these hold.
    And(Vec<Condition>),
    /// At least one of these holds.
    Or(Vec<Condition>),
    /// This does not hold. TileDB's own writers store negated leaves instead.
    Not(Box<Condition>),
}

impl Condition {
    /// Compares a field with a value's bytes.
    pub fn compare(field: impl Into<FieldRef>, op: Comparison, value: impl Into<Vec<u8>>) -> Self {
        Self::Compare {
            field: field.into(),
            op,
            value: value.into(),
        }
    }

    /// The field is one of these values.
    pub fn is_in<B: AsRef<[u8]>>(
        field: impl Into<FieldRef>,
        values: impl IntoIterator<Item = B>,
    ) -> Self {
        Self::In {
            field: field.into(),
            negated: false,
            values: values.into_iter().collect(),
        }
    }

    /// The field is null.
    pub fn is_null(field: impl Into<FieldRef>) -> Self {
        Self::IsNull {
            field: field.into(),
            negated: false,
        }
    }

    /// Both hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::And(mut all), Self::And(others)) => {
                all.extend(others);
                Self::And(all)
            }
            (Self::And(mut all), other) => {
                all.push(other);
                Self::And(all)
            }
            (this, Self::And(mut all)) => {
                all.insert(0, this);
                Self::And(all)
            }
            (this, other) => Self::And(vec![this, other]),
        }
    }

    /// At least one holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Or(mut any), Self::Or(others)) => {
                any.extend(others);
                Self::Or(any)
            }
            (Self::Or(mut any), other) => {
                any.push(other);
                Self::Or(any)
            }
            (this, Self::Or(mut any)) => {
                any.insert(0, this);
                Self::Or(any)
            }
            (this, other) => Self::Or(vec![this, other]),
        }
    }

    /// The tree without [`Condition::Not`]: negations are pushed down to the leaves, as TileDB does
    /// it when a condition is made. Null and NaN cells meet neither a comparison nor its negation
    /// (NE apart).
    #[must_use]
    pub fn pushed_down(self) -> Self {
        self.push(false)
    }

    fn push(self, negate: bool) -> Self {
        match self {
            Self::Compare { field, op, value } if negate => Self::Compare {
                field,
                op: op.negated(),
                value,
            },
            Self::IsNull { field, negated } => Self::IsNull {
                field,
                negated: negated != negate,
            },
            Self::In {
                field,
                negated,
                values,
            } => Self::In {
                field,
                negated: negated != negate,
                values,
            },
            Self::Match {
                field,
                negated,
                form,
            } => Self::Match {
                field,
                negated: negated != negate,
                form,
            },
            Self::And(children) => {
                let children = children
                    .into_iter()
                    .map(|child| child.push(negate))
                    .collect();
                if negate {
                    Self::Or(children)
                } else {
                    Self::And(children)
                }
            }
            Self::Or(children) => {
                let children = children
                    .into_iter()
                    .map(|child| child.push(negate))
                    .collect();
                if negate {
                    Self::And(children)
                } else {
                    Self::Or(children)
                }
            }
            Self::Not(child) => child.push(!negate),
            leaf @ Self::Compare { .. } => leaf,
        }
    }

    /// The same condition, in which values of enumerated attributes are taken as indices.
    #[must_use]
    pub fn taken_raw(mut self) -> Self {
        let mut todo = vec![&mut self];
        while let Some(condition) = todo.pop() {
            match condition {
                Self::Compare { field, .. }
                | Self::IsNull { field, .. }
                | Self::In { field, .. }
                | Self::Match { field, .. } => {
                    field.raw = true;
                }
                Self::And(children) | Self::Or(children) => todo.extend(children),
                Self::Not(child) => todo.push(child),
            }
        }
        self
    }

    /// The fields that the condition looks at, in the order of the leaves, repeated as they are.
    pub fn fields(&self) -> Vec<&FieldRef> {
        let mut fields = Vec::new();
        let mut todo = vec![self];
        while let Some(condition) = todo.pop() {
            match condition {
                Self::Compare { field, .. }
                | Self::IsNull { field, .. }
                | Self::In { field, .. }
                | Self::Match { field, .. } => {
                    fields.push(field);
                }
                Self::And(children) | Self::Or(children) => todo.extend(children.iter().rev()),
                Self::Not(child) => todo.push(child),
            }
        }
        fields
    }

    /// The first field that is tested in a way which has no stored form.
    #[must_use]
    pub fn unstorable(&self) -> Option<&FieldRef> {
        match self {
            Self::Match { field, .. } => Some(field),
            Self::And(children) | Self::Or(children) => children.iter().find_map(Self::unstorable),
            Self::Not(child) => child.unstorable(),
            Self::Compare { .. } | Self::IsNull { .. } | Self::In { .. } => None,
        }
    }

    /// Decodes the stored form, all of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = ByteReader::new(bytes);
        let condition = Self::read(&mut r)?;
        r.finish("condition")?;
        Ok(condition)
    }

    /// Reads the stored form.
    pub fn read(r: &mut ByteReader<'_>) -> Result<Self> {
        Self::read_nested(r, MAX_DEPTH)
    }

    fn read_nested(r: &mut ByteReader<'_>, depth: usize) -> Result<Self> {
        let at = r.offset();
        match r.u8("condition node type")? {
            EXPRESSION => {
                let Some(depth) = depth.checked_sub(1) else {
                    return Err(DecodeError::invalid("condition", at, "nested too deep"));
                };
                let at = r.offset();
                let op = r.u8("condition combination")?;
                let num = r.u64("number of child conditions")?;
                // The smallest child is a combination of nothing.
                let num = r.check_count(num, 10, "child conditions")?;
                let mut children = Vec::new();
                for _ in 0..num {
                    children.push(Self::read_nested(r, depth)?);
                }
                match (op, children.len()) {
                    (AND, _) => Ok(Self::And(children)),
                    (OR, _) => Ok(Self::Or(children)),
                    (NOT, 1) => children
                        .pop()
                        .map(|child| Self::Not(Box::new(child)))
                        .ok_or_else(|| DecodeError::invalid("condition", at, "NOT of nothing")),
                    (NOT, n) => Err(DecodeError::invalid(
                        "condition",
                        at,
                        format!("NOT of {n} conditions"),
                    )),
                    (id, _) => Err(DecodeError::UnknownId {
                        what: "condition combination",
                        id: id.into(),
                        offset: at,
                    }),
                }
            }
            VALUE => {
                let at = r.offset();
                let op = r.u8("condition operator")?;
                let len = r.u32("condition field name length")?;
                let field = FieldRef::raw(r.text(len.into(), "condition field name")?);
                let len = r.u64("condition value length")?;
                let value = r.bytes_u64(len, "condition value")?.to_vec();
                match op {
                    IN | NOT_IN => {
                        let values = read_set(r, value)?;
                        Ok(Self::In {
                            field,
                            negated: op == NOT_IN,
                            values,
                        })
                    }
                    _ => match Comparison::from_id(op) {
                        Some(op) => Ok(Self::Compare { field, op, value }),
                        None => Err(DecodeError::UnknownId {
                            what: "condition operator",
                            id: op.into(),
                            offset: at,
                        }),
                    },
                }
            }
            id => Err(DecodeError::UnknownId {
                what: "condition node type",
                id: id.into(),
                offset: at,
            }),
        }
    }

    /// Encodes the stored form. What is [unstorable](Self::unstorable) gets an operator that every
    /// reader refuses.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = ByteWriter::new();
        self.write(&mut w);
        w.into_bytes()
    }

    /// Writes the stored form.
    pub fn write(&self, w: &mut ByteWriter) {
        match self {
            Self::Compare { field, op, value } => write_leaf(w, *op as u8, field, value),
            Self::IsNull { field, negated } => {
                let op = if *negated {
                    Comparison::Ne
                } else {
                    Comparison::Eq
                };
                write_leaf(w, op as u8, field, &[]);
            }
            Self::In {
                field,
                negated,
                values,
            } => {
                write_leaf(w, if *negated { NOT_IN } else { IN }, field, &values.data);
                w.u64(8 * values.offsets.len() as u64);
                w.u64s(&values.offsets);
            }
            Self::Match { field, .. } => write_leaf(w, UNKNOWN, field, &[]),
            Self::And(children) => write_children(w, AND, children),
            Self::Or(children) => write_children(w, OR, children),
            Self::Not(child) => write_children(w, NOT, std::slice::from_ref(child)),
        }
    }
}

impl Not for Condition {
    type Output = Self;

    /// The opposite condition.
    fn not(self) -> Self {
        if let Self::Not(child) = self {
            return *child;
        }
        Self::Not(Box::new(self))
    }
}

const EXPRESSION: u8 = 0;
const VALUE: u8 = 1;
const AND: u8 = 0;
const OR: u8 = 1;
const NOT: u8 = 2;
const IN: u8 = 6;
const NOT_IN: u8 = 7;
const UNKNOWN: u8 = 252;

fn read_set(r: &mut ByteReader<'_>, data: Vec<u8>) -> Result<ValueSet> {
    let len = r.u64("condition offsets length")?;
    let at = r.offset();
    if !len.is_multiple_of(8) {
        return Err(DecodeError::invalid(
            "condition offsets",
            at,
            "not a whole number of offsets",
        ));
    }
    let offsets = r.u64s(len / 8, "condition offsets")?;
    let end = data.len() as u64;
    let ends = offsets.iter().skip(1).chain([&end]);
    if offsets.iter().zip(ends).any(|(start, end)| start > end) {
        return Err(DecodeError::invalid(
            "condition offsets",
            at,
            "they decrease or lie outside the values",
        ));
    }
    Ok(ValueSet { data, offsets })
}

fn write_leaf(w: &mut ByteWriter, op: u8, field: &FieldRef, value: &[u8]) {
    w.u8(VALUE);
    w.u8(op);
    w.text32(&field.name);
    w.u64(value.len() as u64);
    w.bytes(value);
}

fn write_children<C: std::borrow::Borrow<Condition>>(w: &mut ByteWriter, op: u8, children: &[C]) {
    w.u8(EXPRESSION);
    w.u8(op);
    w.u64(children.len() as u64);
    for child in children {
        child.borrow().write(w);
    }
}

#[cfg(test)]
mod tests;
