//! From a condition tree to one that fits a schema: names resolved, labels as indices, no
//! negations.

use super::like::{Pattern, successor};
use super::{Comparison, Condition, FieldRef, Form};
use crate::error::{Error, Result};
use azulejo_format::condition::ValueSet;
use azulejo_format::schema::{CellType, Enumeration, shown_names};
use azulejo_format::{ArraySchema, CellValNum, Datatype, Physical};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Finds an enumeration by its name, loading it if need be.
pub type EnumerationLookup<'a> = &'a dyn Fn(&str) -> Result<Arc<Enumeration>>;

/// A condition bound to a schema.
#[derive(Debug, Clone)]
pub(super) struct BoundTree {
    /// Names of the fields that leaves look at.
    pub fields: Vec<Arc<str>>,
    /// What these fields were when it was bound.
    pub types: Vec<CellType>,
    pub root: Node,
    /// With the meaning of SQL: the schema whose fill values cells have that a fragment lacks.
    pub sql: Option<Arc<ArraySchema>>,
}

/// A bound tree. `And` and `Or` have at least two children, none of them constant.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// The same for every cell.
    Constant(bool),
    /// A test of one field.
    Leaf(Leaf),
    /// All children hold.
    And(Vec<Node>),
    /// At least one child holds.
    Or(Vec<Node>),
}

/// A test of one field. A null cell fails every test but [`Test::Null`].
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leaf {
    /// Index into [`BoundTree::fields`].
    pub field: usize,
    /// The question.
    pub test: Test,
}

/// The question that a leaf asks of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    /// Is the cell null?
    Null,
    /// Is the cell not null?
    NotNull,
    /// Compares the first value of a cell as a number.
    Number {
        /// How the number lies in memory.
        physical: Physical,
        /// Never `AlwaysTrue` or `AlwaysFalse`.
        op: Comparison,
        /// The number, little-endian.
        value: Vec<u8>,
        /// Whether the cell has more values, which do not count.
        first_of_many: bool,
        /// Whether reals have SQL's order: see [`Meaning::Sql`].
        ///
        /// [`Meaning::Sql`]: super::Meaning::Sql
        total: bool,
    },
    /// Compares a cell as a string of bytes.
    Bytes {
        /// Never `AlwaysTrue` or `AlwaysFalse`.
        op: Comparison,
        /// The string.
        value: Vec<u8>,
    },
    /// Is a real not a number?
    Nan {
        /// How the real lies in memory.
        physical: Physical,
        /// Whether numbers are asked for.
        negated: bool,
    },
    /// Does text have a pattern?
    Like {
        /// The pattern.
        pattern: Pattern,
        /// Whether other text is asked for.
        negated: bool,
    },
    /// Looks a cell's bytes up in a set.
    Set {
        /// The members.
        members: SetMembers,
        /// Whether cells outside the set are asked for.
        negated: bool,
        /// For single numbers: how they lie in memory.
        physical: Option<Physical>,
    },
}

/// The members of a set, for quick lookup.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SetMembers {
    /// Cells of 1, 2, 4 or 8 bytes, as little-endian numbers: few ones, to be tried in turn.
    Few {
        /// The members.
        values: Vec<u64>,
        /// Bytes of each.
        size: usize,
    },
    /// The same, many.
    Many {
        /// The members, ascending.
        values: Vec<u64>,
        /// Bytes of each.
        size: usize,
    },
    /// Cells of any other length: few ones, to be tried in turn.
    FewStrings(Vec<Box<[u8]>>),
    /// The same, many.
    Strings(HashSet<Box<[u8]>>),
}

/// Sets up to this size are tried member by member, which vectorises.
const FEW: usize = 8;

impl SetMembers {
    fn new(values: Vec<&[u8]>, cell_size: Option<usize>) -> Self {
        match cell_size {
            Some(size @ (1 | 2 | 4 | 8)) => {
                let mut numbers: Vec<u64> = values
                    .iter()
                    .filter(|v| v.len() == size)
                    .map(|v| little_endian(v))
                    .collect();
                numbers.sort_unstable();
                numbers.dedup();
                if numbers.len() <= FEW {
                    Self::Few {
                        values: numbers,
                        size,
                    }
                } else {
                    Self::Many {
                        values: numbers,
                        size,
                    }
                }
            }
            _ => {
                let values: HashSet<Box<[u8]>> = values.into_iter().map(Into::into).collect();
                if values.len() <= FEW {
                    Self::FewStrings(values.into_iter().collect())
                } else {
                    Self::Strings(values)
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Few { values, .. } => values.is_empty(),
            Self::Many { values, .. } => values.is_empty(),
            Self::FewStrings(values) => values.is_empty(),
            Self::Strings(values) => values.is_empty(),
        }
    }
}

/// Up to eight bytes as a number.
pub(super) fn little_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .take(8)
        .rev()
        .fold(0, |n, b| n << 8 | u64::from(*b))
}

/// A field as the schema has it.
struct ConditionField<'a> {
    datatype: Datatype,
    cell_val_num: CellValNum,
    nullable: bool,
    enumeration: Option<&'a str>,
}

impl<'a> ConditionField<'a> {
    fn find(schema: &'a ArraySchema, name: &str) -> Option<Self> {
        if let Some(a) = schema.attributes.iter().find(|a| a.name == name) {
            return Some(Self {
                datatype: a.datatype,
                cell_val_num: a.cell_val_num,
                nullable: a.nullable,
                enumeration: a.enumeration.as_deref(),
            });
        }
        let d = schema.domain.dimensions.iter().find(|d| d.name == name)?;
        Some(Self {
            datatype: d.datatype,
            cell_val_num: d.cell_val_num,
            nullable: false,
            enumeration: None,
        })
    }
}

/// Whether cells of a type compare as strings of bytes: the kinds that the reference compares so.
pub(super) const fn is_text(datatype: Datatype) -> bool {
    matches!(
        datatype,
        Datatype::Char | Datatype::StringAscii | Datatype::StringUtf8
    )
}

struct Binder<'a> {
    schema: &'a ArraySchema,
    enumerations: EnumerationLookup<'a>,
    fields: Vec<Arc<str>>,
    types: Vec<CellType>,
    places: HashMap<String, usize>,
    loaded: HashMap<String, Arc<Enumeration>>,
}

pub(super) fn bind(
    condition: &Condition,
    schema: &ArraySchema,
    enumerations: EnumerationLookup<'_>,
    negated: bool,
) -> Result<BoundTree> {
    let mut binder = Binder {
        schema,
        enumerations,
        fields: Vec::new(),
        types: Vec::new(),
        places: HashMap::new(),
        loaded: HashMap::new(),
    };
    let root = binder.node(condition, negated)?;
    Ok(compact(&binder.fields, &binder.types, root))
}

/// The condition over the fields that its tree still uses.
pub(super) fn compact(fields: &[Arc<str>], types: &[CellType], mut root: Node) -> BoundTree {
    let mut places = vec![None; fields.len()];
    let mut bound = BoundTree {
        fields: Vec::new(),
        types: Vec::new(),
        root: Node::Constant(false),
        sql: None,
    };
    root.visit(&mut |leaf| {
        let old = leaf.field;
        leaf.field = *places[old].get_or_insert_with(|| {
            bound.fields.push(Arc::clone(&fields[old]));
            bound.types.push(types[old]);
            bound.fields.len() - 1
        });
    });
    bound.root = root;
    bound
}

impl BoundTree {
    /// Of each field, whether a fragment of this schema has its cells. A field that was dropped and
    /// added again with another type, or other labels, counts as absent: so it reads, too.
    pub(super) fn present<'a>(
        &'a self,
        fragment: &'a ArraySchema,
        relabelled: &'a [String],
    ) -> impl Iterator<Item = bool> + 'a {
        let fields = self.fields.iter().zip(&self.types);
        fields.map(|(name, known)| {
            let stored = fragment.cell_type(name);
            stored.is_some_and(|stored| known.is_stored_as(&stored))
                && relabelled.iter().all(|a| **a != **name)
        })
    }
}

pub(super) fn for_fragment(
    bound: &BoundTree,
    fragment: &ArraySchema,
    relabelled: &[String],
) -> BoundTree {
    let present: Vec<bool> = bound.present(fragment, relabelled).collect();
    let root = bound
        .root
        .settled(&|leaf| match present.get(leaf.field).copied() {
            Some(true) => never_null(bound, leaf),
            _ => Some(false),
        });
    compact(&bound.fields, &bound.types, root)
}

/// The answer of a test that every cell of its field meets, or none: see [`Binder::always`] and
/// [`Binder::never`].
pub(super) fn never_null(bound: &BoundTree, leaf: &Leaf) -> Option<bool> {
    if let Test::Set {
        members,
        negated: false,
        ..
    } = &leaf.test
        && members.is_empty()
    {
        return Some(false);
    }
    let nullable = bound.types.get(leaf.field)?.nullable;
    (matches!(leaf.test, Test::NotNull) && !nullable).then_some(true)
}

/// The condition where all tests of some fields hold.
pub(super) fn keeping(bound: &BoundTree, fields: &[String]) -> BoundTree {
    let root = bound.root.settled(&|leaf| {
        let name = bound.fields.get(leaf.field)?;
        fields.iter().any(|field| **field == **name).then_some(true)
    });
    compact(&bound.fields, &bound.types, root)
}

impl Node {
    pub(super) fn visit(&mut self, act: &mut impl FnMut(&mut Leaf)) {
        match self {
            Self::Constant(_) => {}
            Self::Leaf(leaf) => act(leaf),
            Self::And(children) | Self::Or(children) => {
                for child in children {
                    child.visit(act);
                }
            }
        }
    }

    /// The tree with the answers of those tests that have one for all cells.
    pub(super) fn settled(&self, answer: &impl Fn(&Leaf) -> Option<bool>) -> Self {
        match self {
            Self::Leaf(leaf) => answer(leaf).map_or_else(|| self.clone(), Self::Constant),
            Self::And(children) => Self::all(children.iter().map(|c| c.settled(answer))),
            Self::Or(children) => Self::any(children.iter().map(|c| c.settled(answer))),
            Self::Constant(_) => self.clone(),
        }
    }

    fn all(children: impl IntoIterator<Item = Self>) -> Self {
        let mut kept = Vec::new();
        for child in children {
            match child {
                Self::Constant(true) => {}
                Self::Constant(false) => return child,
                Self::And(inner) => kept.extend(inner),
                child => kept.push(child),
            }
        }
        Self::combine(kept, true, Self::And)
    }

    fn any(children: impl IntoIterator<Item = Self>) -> Self {
        let mut kept = Vec::new();
        for child in children {
            match child {
                Self::Constant(false) => {}
                Self::Constant(true) => return child,
                Self::Or(inner) => kept.extend(inner),
                child => kept.push(child),
            }
        }
        Self::combine(kept, false, Self::Or)
    }

    /// Cheap tests come first: they may settle all cells.
    fn combine(mut children: Vec<Self>, neutral: bool, make: fn(Vec<Self>) -> Self) -> Self {
        children.sort_by_key(Self::cost);
        match children.len() {
            0 => Self::Constant(neutral),
            1 => children.pop().unwrap_or(Self::Constant(neutral)),
            _ => make(children),
        }
    }

    fn cost(&self) -> u32 {
        match self {
            Self::Constant(_) => 0,
            Self::Leaf(leaf) => match &leaf.test {
                Test::Null | Test::NotNull => 1,
                Test::Number { .. } | Test::Nan { .. } => 2,
                Test::Set {
                    members: SetMembers::Few { .. },
                    ..
                } => 3,
                Test::Bytes { .. } => 8,
                Test::Set { .. } => 10,
                Test::Like { .. } => 20,
            },
            Self::And(children) | Self::Or(children) => children.iter().map(Self::cost).sum(),
        }
    }
}

impl<'a> Binder<'a> {
    fn node(&mut self, condition: &Condition, negate: bool) -> Result<Node> {
        match condition {
            Condition::And(children) | Condition::Or(children) => {
                let nodes = children
                    .iter()
                    .map(|c| self.node(c, negate))
                    .collect::<Result<Vec<_>>>()?;
                let and = matches!(condition, Condition::And(_)) != negate;
                Ok(if and {
                    Node::all(nodes)
                } else {
                    Node::any(nodes)
                })
            }
            Condition::Not(child) => self.node(child, !negate),
            Condition::IsNull { field, negated } => {
                let target = self.target(field)?;
                Ok(self.null_test(field, &target, negated != &negate))
            }
            Condition::Compare { field, op, value } => {
                let op = if negate { op.negated() } else { *op };
                self.compare(field, op, value)
            }
            Condition::In {
                field,
                negated,
                values,
            } => self.set(field, values, negated != &negate),
            Condition::Match {
                field,
                negated,
                form,
            } => self.form(field, form, negated != &negate),
        }
    }

    fn target(&self, field: &FieldRef) -> Result<ConditionField<'a>> {
        ConditionField::find(self.schema, &field.name)
            .ok_or_else(|| unknown_field(self.schema, &field.name))
    }

    fn leaf(&mut self, field: &FieldRef, target: &ConditionField<'_>, test: Test) -> Node {
        let next = self.fields.len();
        let place = *self.places.entry(field.name.clone()).or_insert(next);
        if place == next {
            self.fields.push(field.name.as_str().into());
            self.types.push(CellType {
                datatype: target.datatype,
                cell_val_num: target.cell_val_num,
                nullable: target.nullable,
            });
        }
        Node::Leaf(Leaf { field: place, test })
    }

    /// What every cell that is not null answers alike. Where none can be null it is a test all the same, as
    /// cells of a fragment that lacks the field meet none; [`for_fragment`] settles it for the others.
    fn always(&mut self, field: &FieldRef, target: &ConditionField<'_>, answer: bool) -> Node {
        match answer {
            true => self.leaf(field, target, Test::NotNull),
            false => Node::Constant(false),
        }
    }

    /// What no cell meets; [`for_fragment`] settles it. Of a delete it is a test of what labels meant
    /// then, which cells under others do not take.
    fn never(&mut self, field: &FieldRef, target: &ConditionField<'_>) -> Node {
        let test = Test::Set {
            members: SetMembers::FewStrings(Vec::new()),
            negated: false,
            physical: None,
        };
        self.leaf(field, target, test)
    }

    fn null_test(&mut self, field: &FieldRef, target: &ConditionField<'_>, negated: bool) -> Node {
        match negated {
            true => self.always(field, target, true),
            false if target.nullable => self.leaf(field, target, Test::Null),
            false => Node::Constant(false),
        }
    }

    fn compare(&mut self, field: &FieldRef, op: Comparison, value: &[u8]) -> Result<Node> {
        let target = self.target(field)?;
        match op {
            Comparison::AlwaysTrue => return Ok(self.always(field, &target, true)),
            Comparison::AlwaysFalse if field.raw => return Ok(self.never(field, &target)),
            Comparison::AlwaysFalse => return Ok(Node::Constant(false)),
            _ => {}
        }
        let equality = matches!(op, Comparison::Eq | Comparison::Ne);
        if let Some(enumeration) = self.enumeration(field, &target)? {
            if !equality && !enumeration.ordered {
                return Err(Error::SchemaMismatch(format!(
                    "{} has labels without an order: compare them with =, != or in",
                    field.name
                )));
            }
            let index = enumeration
                .values()
                .zip(0u64..)
                .find(|(label, _)| *label == value);
            return match index.map(|(_, index)| index) {
                Some(index) => self.number(field, &target, op, &index_bytes(index, &target)),
                None => Ok(self.always(field, &target, op == Comparison::Ne)),
            };
        }
        // Stored conditions write null tests as comparisons with nothing, which is a value for
        // strings only.
        if value.is_empty() && equality && !is_text(target.datatype) {
            return Ok(self.null_test(field, &target, op == Comparison::Ne));
        }
        check_comparable(field, &target)?;
        // One fixed-length CHAR compares as a signed number, several by the first of them: so does
        // the reference.
        if is_text(target.datatype)
            && (target.cell_val_num.is_var() || target.datatype != Datatype::Char)
        {
            return Ok(self.leaf(
                field,
                &target,
                Test::Bytes {
                    op,
                    value: value.to_vec(),
                },
            ));
        }
        self.number(field, &target, op, value)
    }

    fn number(
        &mut self,
        field: &FieldRef,
        target: &ConditionField<'_>,
        op: Comparison,
        value: &[u8],
    ) -> Result<Node> {
        let physical = target.datatype.physical();
        let mut value = value.to_vec();
        if target.datatype == Datatype::Char {
            value.resize(1, 0);
        }
        if value.len() != physical.size() {
            return Err(Error::SchemaMismatch(format!(
                "{} is compared with a value of {} bytes, but its type {} has {}",
                field.name,
                value.len(),
                target.datatype,
                physical.size()
            )));
        }
        let first_of_many = target.cell_val_num != CellValNum::ONE;
        Ok(self.leaf(
            field,
            target,
            Test::Number {
                physical,
                op,
                value,
                first_of_many,
                total: false,
            },
        ))
    }

    fn form(&mut self, field: &FieldRef, form: &Form, negated: bool) -> Result<Node> {
        let target = self.target(field)?;
        let enumerated = target.enumeration.is_some() && !field.raw;
        match form {
            Form::Nan => {
                if enumerated || !target.datatype.is_real() {
                    return Err(Error::SchemaMismatch(format!(
                        "{} ({}) holds no reals, which alone can be NaN",
                        field.name, target.datatype
                    )));
                }
                check_comparable(field, &target)?;
                let physical = target.datatype.physical();
                Ok(self.leaf(field, &target, Test::Nan { physical, negated }))
            }
            Form::Like(pattern) => {
                if enumerated || !is_text(target.datatype) {
                    return Err(Error::SchemaMismatch(format!(
                        "{} ({}) holds no text, which alone can be `like` a pattern",
                        field.name, target.datatype
                    )));
                }
                let pattern = Pattern::parse(pattern, target.datatype, target.cell_val_num);
                let prefix = pattern.prefix();
                let like = self.leaf(field, &target, Test::Like { pattern, negated });
                // One fixed-length CHAR has no order as text.
                let ordered = target.cell_val_num.is_var() || target.datatype != Datatype::Char;
                if negated || prefix.is_empty() || !ordered {
                    return Ok(like);
                }
                // Bounds that tiles can be passed over by.
                let mut all = vec![self.compare(field, Comparison::Ge, &prefix)?];
                if let Some(end) = successor(&prefix) {
                    all.push(self.compare(field, Comparison::Lt, &end)?);
                }
                all.push(like);
                Ok(Node::all(all))
            }
        }
    }

    fn set(&mut self, field: &FieldRef, values: &ValueSet, negated: bool) -> Result<Node> {
        let target = self.target(field)?;
        let indices: Vec<Vec<u8>>;
        let enumerated = self.enumeration(field, &target)?;
        let members: Vec<&[u8]> = match &enumerated {
            Some(enumeration) => {
                let labels = enumeration.index();
                let found = values.iter().filter_map(|v| labels.get(v));
                indices = found.map(|index| index_bytes(index, &target)).collect();
                indices.iter().map(Vec::as_slice).collect()
            }
            None => {
                check_comparable(field, &target)?;
                values.iter().collect()
            }
        };
        let cell_size = target.cell_val_num.cell_size(target.datatype);
        if let Some(size) = cell_size
            && !is_text(target.datatype)
            && let Some(member) = members.iter().find(|m| m.len() != size)
        {
            return Err(Error::SchemaMismatch(format!(
                "{} is compared with a value of {} bytes, but its type {} has {size}",
                field.name,
                member.len(),
                target.datatype
            )));
        }
        let members = SetMembers::new(members, cell_size);
        if members.is_empty() {
            return Ok(match field.raw && !negated {
                true => self.never(field, &target),
                false => self.always(field, &target, negated),
            });
        }
        let number = target.cell_val_num == CellValNum::ONE && !is_text(target.datatype);
        let physical = number.then(|| target.datatype.physical());
        Ok(self.leaf(
            field,
            &target,
            Test::Set {
                members,
                negated,
                physical,
            },
        ))
    }

    /// The enumeration whose labels the values of a test are.
    fn enumeration(
        &mut self,
        field: &FieldRef,
        target: &ConditionField<'_>,
    ) -> Result<Option<Arc<Enumeration>>> {
        let Some(name) = target.enumeration.filter(|_| !field.raw) else {
            return Ok(None);
        };
        if let Some(known) = self.loaded.get(name) {
            return Ok(Some(Arc::clone(known)));
        }
        let enumeration = (self.enumerations)(name)?;
        self.loaded.insert(name.into(), Arc::clone(&enumeration));
        Ok(Some(enumeration))
    }
}

/// The error for a name that is no field, with the names that are.
pub(crate) fn unknown_field(schema: &ArraySchema, name: &str) -> Error {
    let dimensions = schema.domain.dimensions.iter().map(|d| d.name.as_str());
    let attributes = schema.attributes.iter().map(|a| a.name.as_str());
    Error::SchemaMismatch(format!(
        "there is no field {name:?}; the array has {}",
        shown_names(dimensions.chain(attributes))
    ))
}

fn check_comparable(field: &FieldRef, target: &ConditionField<'_>) -> Result<()> {
    let why = if is_text(target.datatype) {
        return Ok(());
    } else if target.datatype.is_string()
        || target.datatype.is_byte()
        || target.datatype == Datatype::Any
    {
        "can only be tested for null"
    } else if target.cell_val_num != CellValNum::ONE {
        "has several values a cell and can only be tested for null"
    } else {
        return Ok(());
    };
    Err(Error::SchemaMismatch(format!(
        "{} ({}) {why}",
        field.name, target.datatype
    )))
}

/// The bytes of an index as a value of the attribute.
fn index_bytes(index: u64, target: &ConditionField<'_>) -> Vec<u8> {
    let bytes = index.to_le_bytes();
    bytes
        .get(..target.datatype.size())
        .unwrap_or(&bytes)
        .to_vec()
}
