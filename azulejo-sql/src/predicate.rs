//! What filters ask of an array: comparisons of columns with stored bytes, whatever expression they
//! came from.
//!
//! A predicate holds for exactly the rows for which the SQL expression is true. Negations are pushed
//! down to the comparisons, which null values fail as they are and negated: so rows for which the
//! expression is null are left out, as SQL has it.

use crate::columns::{Place, Stored, TableColumn, TableColumns};
use azulejo::condition::{Comparison, Condition};
use azulejo::format::Physical;
use datafusion::common::ScalarValue;

/// What must hold for a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    /// Nothing more, or what no row meets.
    Constant(bool),
    /// A comparison with a value as the array stores it.
    Compare {
        /// The column's index.
        column: usize,
        /// How.
        op: Comparison,
        /// The value's bytes.
        value: Vec<u8>,
    },
    /// Whether a value is one of some.
    In {
        /// The column's index.
        column: usize,
        /// The values' bytes.
        values: Vec<Vec<u8>>,
        /// Whether it must be none of them.
        negated: bool,
    },
    /// Whether a value is null.
    IsNull {
        /// The column's index.
        column: usize,
        /// Whether it must not be.
        negated: bool,
    },
    /// All of them.
    And(Vec<Predicate>),
    /// One of them.
    Or(Vec<Predicate>),
}

/// A literal on the scale of stored values.
enum Literal {
    /// Null: no comparison with it is true.
    Null,
    /// A value that a cell may have.
    Value(Vec<u8>),
    /// It lies between two ticks: the one below it.
    Above(i64),
}

impl Predicate {
    /// All of some.
    pub fn all(predicates: impl IntoIterator<Item = Self>) -> Self {
        let mut kept = Vec::new();
        for predicate in predicates {
            match predicate {
                Self::Constant(true) => {}
                Self::Constant(false) => return Self::Constant(false),
                Self::And(inner) => kept.extend(inner),
                predicate => kept.push(predicate),
            }
        }
        match kept.len() {
            0 => Self::Constant(true),
            1 => kept.remove(0),
            _ => Self::And(kept),
        }
    }

    /// One of some.
    pub fn any(predicates: impl IntoIterator<Item = Self>) -> Self {
        let mut kept = Vec::new();
        for predicate in predicates {
            match predicate {
                Self::Constant(false) => {}
                Self::Constant(true) => return Self::Constant(true),
                Self::Or(inner) => kept.extend(inner),
                predicate => kept.push(predicate),
            }
        }
        match kept.len() {
            0 => Self::Constant(false),
            1 => kept.remove(0),
            _ => Self::Or(kept),
        }
    }

    /// A column compared with a literal; `None` where the array cannot tell exactly.
    pub fn compare(
        columns: &TableColumns,
        index: usize,
        op: Comparison,
        literal: &ScalarValue,
    ) -> Option<Self> {
        let column = columns.get(index)?;
        let compared = |op, value| Self::Compare {
            column: index,
            op,
            value,
        };
        let equality = matches!(op, Comparison::Eq | Comparison::Ne);
        // Indices without a label are null in Arrow: they are neither equal nor unequal.
        if column.stored == Stored::Labels && op != Comparison::Eq {
            return None;
        }
        if column.stored == Stored::Bool && !equality {
            return None;
        }
        let value = match literal_of(columns, index, literal)? {
            Literal::Null => return Some(Self::Constant(false)),
            Literal::Value(value) => value,
            Literal::Above(tick) => {
                let (op, tick) = match op {
                    Comparison::Lt | Comparison::Le => (Comparison::Le, tick),
                    Comparison::Gt | Comparison::Ge => (Comparison::Ge, tick + 1),
                    Comparison::Eq => return Some(Self::Constant(false)),
                    _ => return Some(Self::shown(column, index)),
                };
                let compared = compared(op, tick.to_le_bytes().to_vec());
                return Some(Self::all([compared, Self::shown(column, index)]));
            }
        };
        if column.stored == Stored::Bool {
            let truth = (op == Comparison::Eq) == (value != [0]);
            return Some(Self::truth(index, truth));
        }
        let compared = compared(op, value);
        Some(match op {
            Comparison::Eq => compared,
            _ => Self::all([compared, Self::shown(column, index)]),
        })
    }

    /// A column of truth values that must be true, or false.
    pub fn truth(column: usize, truth: bool) -> Self {
        Self::Compare {
            column,
            op: if truth {
                Comparison::Ne
            } else {
                Comparison::Eq
            },
            value: vec![0],
        }
    }

    /// A column that must be one of some literals, or none.
    pub fn is_in<'a>(
        columns: &TableColumns,
        index: usize,
        literals: impl IntoIterator<Item = &'a ScalarValue>,
        negated: bool,
    ) -> Option<Self> {
        let column = columns.get(index)?;
        let literals: Vec<&ScalarValue> = literals.into_iter().collect();
        let as_set = match &column.stored {
            Stored::Number(physical) => physical.is_integer(),
            Stored::Text | Stored::Padded(_) => true,
            Stored::Labels => !negated,
            Stored::Ticks { scale, .. } => *scale == 1,
            Stored::Bool | Stored::Other => false,
        };
        if !as_set {
            let op = if negated {
                Comparison::Ne
            } else {
                Comparison::Eq
            };
            let each = literals
                .iter()
                .map(|l| Self::compare(columns, index, op, l));
            let each = each.collect::<Option<Vec<_>>>()?;
            return Some(if negated {
                Self::all(each)
            } else {
                Self::any(each)
            });
        }
        let mut values = Vec::with_capacity(literals.len());
        for literal in literals {
            match literal_of(columns, index, literal)? {
                // `x not in (1, null)` is never true.
                Literal::Null if negated => return Some(Self::Constant(false)),
                Literal::Null | Literal::Above(_) => {}
                Literal::Value(value) => values.push(value),
            }
        }
        if values.is_empty() && !negated {
            return Some(Self::Constant(false));
        }
        let set = Self::In {
            column: index,
            values,
            negated,
        };
        Some(match negated {
            true => Self::all([set, Self::shown(column, index)]),
            false => set,
        })
    }

    /// Whether a column is null; `None` where Arrow has nulls that the array has not.
    pub fn is_null(columns: &TableColumns, index: usize, negated: bool) -> Option<Self> {
        let column = columns.get(index)?;
        let field = columns.schema().fields().get(index)?;
        if !field.is_nullable() {
            return Some(Self::Constant(negated));
        }
        let shows_all = column.column_type.enumeration.is_none()
            && !matches!(column.stored, Stored::Ticks { .. })
            && !matches!(
                column.column_type.datatype,
                azulejo::format::Datatype::DateTimeYear | azulejo::format::Datatype::DateTimeMonth
            );
        shows_all.then_some(Self::IsNull {
            column: index,
            negated,
        })
    }

    /// A column of text that must begin with a prefix.
    pub fn starts_with(columns: &TableColumns, index: usize, prefix: &str) -> Option<Self> {
        if columns.get(index)?.stored != Stored::Text {
            return None;
        }
        let compare = |op, value: &[u8]| Self::Compare {
            column: index,
            op,
            value: value.to_vec(),
        };
        // The first string behind all those with the prefix.
        let mut behind = prefix.as_bytes().to_vec();
        while behind.pop_if(|byte| *byte == u8::MAX).is_some() {}
        let end = behind.last_mut().map(|byte| *byte += 1);
        let end = end.map(|()| compare(Comparison::Lt, &behind));
        let start = compare(Comparison::Ge, prefix.as_bytes());
        Some(Self::all([start].into_iter().chain(end)))
    }

    /// That Arrow can show the value of a column, where it cannot show all.
    fn shown(column: &TableColumn, index: usize) -> Self {
        let Stored::Ticks { shown, .. } = column.stored else {
            return Self::Constant(true);
        };
        let bound = |op, tick: i64| Self::Compare {
            column: index,
            op,
            value: tick.to_le_bytes().to_vec(),
        };
        Self::And(vec![
            bound(Comparison::Ge, shown.0),
            bound(Comparison::Le, shown.1),
        ])
    }

    /// The predicate as a condition of the engine; constants must be folded away.
    pub fn to_condition(&self, columns: &TableColumns) -> Option<Condition> {
        let name = |index: usize| columns.get(index).map(|c| c.name().to_owned());
        let list = |of: &[Self]| -> Option<Vec<Condition>> {
            of.iter().map(|p| p.to_condition(columns)).collect()
        };
        Some(match self {
            Self::Constant(_) => return None,
            Self::Compare { column, op, value } => {
                Condition::compare(name(*column)?, *op, value.as_slice())
            }
            Self::In {
                column,
                values,
                negated,
            } => Condition::In {
                field: name(*column)?.into(),
                negated: *negated,
                values: values.iter().collect(),
            },
            Self::IsNull { column, negated } => Condition::IsNull {
                field: name(*column)?.into(),
                negated: *negated,
            },
            Self::And(all) => Condition::And(list(all)?),
            Self::Or(any) => Condition::Or(list(any)?),
        })
    }

    /// The dimension that the predicate is about, if it is about one dimension and nothing else.
    pub fn dimension(&self, columns: &TableColumns) -> Option<usize> {
        match self {
            Self::Constant(_) | Self::IsNull { .. } => None,
            Self::Compare { column, .. } | Self::In { column, .. } => {
                match columns.get(*column)?.place {
                    Place::Dimension(d) => Some(d),
                    Place::Attribute(_) => None,
                }
            }
            Self::And(of) | Self::Or(of) => {
                let mut dimensions = of.iter().map(|p| p.dimension(columns));
                let first = dimensions.next().flatten()?;
                dimensions.all(|d| d == Some(first)).then_some(first)
            }
        }
    }
}

/// A literal as the array stores it; `None` if its type is not the column's.
fn literal_of(columns: &TableColumns, index: usize, literal: &ScalarValue) -> Option<Literal> {
    let column = columns.get(index)?;
    let literal = match literal {
        ScalarValue::Dictionary(_, value) => value,
        literal => literal,
    };
    if literal.is_null() {
        return Some(Literal::Null);
    }
    let value = |bytes: &[u8]| Some(Literal::Value(bytes.to_vec()));
    let text = match literal {
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => Some(text.as_bytes()),
        _ => None,
    };
    match &column.stored {
        Stored::Text | Stored::Labels => value(text?),
        Stored::Padded(size) => {
            // No cell shows more than it has room for, nor zeros at the end.
            let text = text.filter(|text| text.len() <= *size && text.last() != Some(&0))?;
            let mut padded = text.to_vec();
            padded.resize(*size, 0);
            value(&padded)
        }
        Stored::Bool => match literal {
            ScalarValue::Boolean(Some(truth)) => value(&[u8::from(*truth)]),
            _ => None,
        },
        Stored::Number(physical) if literal.data_type() == *columns.data_type(index)? => {
            value(&number(*physical, literal)?)
        }
        Stored::Ticks { scale, .. } if literal.data_type() == *columns.data_type(index)? => {
            let units = ticks(literal)?;
            match units.rem_euclid(*scale) {
                0 => value(&(units / scale).to_le_bytes()),
                _ => Some(Literal::Above(units.div_euclid(*scale))),
            }
        }
        Stored::Number(_) | Stored::Ticks { .. } | Stored::Other => None,
    }
}

/// The bytes of a number; none of NaN, which conditions do not hold.
fn number(physical: Physical, literal: &ScalarValue) -> Option<Vec<u8>> {
    let bytes = match literal {
        ScalarValue::Int8(Some(v)) => v.to_le_bytes().to_vec(),
        ScalarValue::Int16(Some(v)) => v.to_le_bytes().to_vec(),
        ScalarValue::Int32(Some(v)) => v.to_le_bytes().to_vec(),
        ScalarValue::Int64(Some(v)) => v.to_le_bytes().to_vec(),
        ScalarValue::UInt8(Some(v)) => v.to_le_bytes().to_vec(),
        ScalarValue::UInt16(Some(v)) => v.to_le_bytes().to_vec(),
        ScalarValue::UInt32(Some(v)) => v.to_le_bytes().to_vec(),
        ScalarValue::UInt64(Some(v)) => v.to_le_bytes().to_vec(),
        ScalarValue::Float32(Some(v)) if !v.is_nan() => v.to_le_bytes().to_vec(),
        ScalarValue::Float64(Some(v)) if !v.is_nan() => v.to_le_bytes().to_vec(),
        literal => ticks(literal)?.to_le_bytes().to_vec(),
    };
    (bytes.len() == physical.size()).then_some(bytes)
}

/// The number of units that a point in time, or a duration, is.
fn ticks(literal: &ScalarValue) -> Option<i64> {
    match literal {
        ScalarValue::Date32(Some(days)) => Some(i64::from(*days)),
        ScalarValue::TimestampSecond(Some(v), None)
        | ScalarValue::TimestampMillisecond(Some(v), None)
        | ScalarValue::TimestampMicrosecond(Some(v), None)
        | ScalarValue::TimestampNanosecond(Some(v), None)
        | ScalarValue::DurationSecond(Some(v))
        | ScalarValue::DurationMillisecond(Some(v))
        | ScalarValue::DurationMicrosecond(Some(v))
        | ScalarValue::DurationNanosecond(Some(v)) => Some(*v),
        _ => None,
    }
}
