//! Statements: from text to plans, which of them may run, and what stands for them in tickets.

use super::running::{Asked, status};
use super::session::SharedSession;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, Union, WriteOp};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Value, ValueWithSpan, VisitMut, VisitorMut};
use datafusion::sql::sqlparser::tokenizer::Location;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use tonic::Status;

/// Bytes of parameters that a ticket takes.
const LONGEST_PARAMETERS: usize = 1 << 20;
/// Rows of parameters that one statement takes.
const MOST_ROWS: usize = 4096;
/// Why nothing changes.
const READ_ONLY: &str = "this server is read-only";

/// What makes plans of texts.
#[derive(Clone)]
pub struct Statements {
    session: SharedSession,
    writable: bool,
    /// Bytes of a statement.
    longest: usize,
}

impl Statements {
    pub fn new(session: SharedSession, writable: bool, longest: usize) -> Self {
        Self {
            session,
            writable,
            longest,
        }
    }

    /// The plan of a statement, if it may run here.
    pub async fn plan(&self, text: &str, asked: &Asked) -> Result<LogicalPlan, Status> {
        if text.len() > self.longest {
            return Err(Status::invalid_argument(format!(
                "the statement has {} bytes, of which this server reads {} at most: many rows can be sent as parameters, or in bulk",
                text.len(),
                self.longest
            )));
        }
        let asked = asked.clone();
        let statements = crate::statements_while(text, move || asked.still());
        let mut statements = statements.map_err(|error| status(&error))?;
        let (Some(mut statement), true) = (statements.pop_front(), statements.is_empty()) else {
            return Err(Status::invalid_argument("send one statement at a time"));
        };
        number_parameters(&mut statement);
        let state = self.session.state();
        let plan = crate::default_values::plan(&state, statement).await;
        let plan = plan.map_err(|error| status(&error))?;
        self.allow(&plan)?;
        Ok(plan)
    }

    /// Whether rows may be written at all.
    pub fn allow_changes(&self) -> Result<(), Status> {
        match self.writable {
            true => Ok(()),
            false => Err(Status::permission_denied(READ_ONLY)),
        }
    }

    /// Queries, and changes of rows where they are allowed: nothing that makes tables, changes the
    /// session or names places.
    fn allow(&self, plan: &LogicalPlan) -> Result<(), Status> {
        let allowed = |dml| {
            SQLOptions::new()
                .with_allow_ddl(false)
                .with_allow_statements(false)
                .with_allow_dml(dml)
                .verify_plan(plan)
        };
        match allowed(false) {
            Ok(()) => Ok(()),
            Err(_) if self.writable && is_change(plan) => {
                allowed(true).map_err(|error| Status::permission_denied(error.strip_backtrace()))
            }
            Err(error) => Err(Status::permission_denied(format!(
                "{}: {}",
                error.strip_backtrace(),
                match self.writable {
                    true => "only queries and changes of rows run here",
                    false => READ_ONLY,
                }
            ))),
        }
    }

    /// The plan of what a ticket stands for.
    pub async fn plan_of(&self, bound: &Bound, asked: &Asked) -> Result<LogicalPlan, Status> {
        let plan = self.plan(&bound.text, asked).await?;
        match &bound.parameters {
            None => Ok(plan),
            Some(rows) if rows.num_rows() == 1 => bind(&plan, rows, 0),
            Some(rows) => Err(Status::invalid_argument(format!(
                "a query takes one row of parameters, and not {}",
                rows.num_rows()
            ))),
        }
    }

    /// The plans that make the changes of a statement for all rows of parameters: of an `INSERT`
    /// it is one, which all rows go through together.
    pub async fn changes_of(
        &self,
        bound: &Bound,
        asked: &Asked,
    ) -> Result<Vec<LogicalPlan>, Status> {
        let plan = self.plan(&bound.text, asked).await?;
        let Some(rows) = &bound.parameters else {
            return Ok(vec![plan]);
        };
        if rows.num_rows() > MOST_ROWS {
            return Err(Status::invalid_argument(format!(
                "{} rows of parameters: send at most {MOST_ROWS} at a time",
                rows.num_rows()
            )));
        }
        let each = (0..rows.num_rows()).map(|row| bind(&plan, rows, row));
        let mut each = each.collect::<Result<Vec<_>, _>>()?;
        if each.len() < 2 || !matches!(&plan, LogicalPlan::Dml(change) if is_insert(change)) {
            return Ok(each);
        }
        let inputs = each.drain(..).filter_map(|plan| match plan {
            LogicalPlan::Dml(change) => Some(change.input),
            _ => None,
        });
        let union = Union::try_new_with_loose_types(inputs.collect());
        let union = union.map_err(|error| status(&error))?;
        let LogicalPlan::Dml(change) = plan else {
            return Err(Status::internal("an INSERT that is none"));
        };
        let input = Arc::new(LogicalPlan::Union(union));
        let change = DmlStatement::new(change.table_name, change.target, change.op, input);
        Ok(vec![LogicalPlan::Dml(change)])
    }
}

fn is_insert(change: &DmlStatement) -> bool {
    matches!(change.op, WriteOp::Insert(_))
}

/// Whether a plan changes rows and does no more: `EXPLAIN ANALYZE` would show a change that it
/// makes, and a `COPY` writes where it likes.
fn is_change(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Dml(change) = plan else {
        return false;
    };
    let op = matches!(
        change.op,
        WriteOp::Insert(_) | WriteOp::Delete | WriteOp::Update | WriteOp::Truncate
    );
    let queries = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_statements(false)
        .with_allow_dml(false);
    op && queries.verify_plan(&change.input).is_ok()
}

/// Numbers parameters that are written as `?`, as they stand in the text: `$1`, `$2` and so on.
fn number_parameters(statement: &mut Statement) {
    let mut places = Vec::new();
    each_unnumbered(statement, &mut |_, place| places.push(place));
    // Clauses need not stand in a text as they do in the tree.
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|visited| places.get(*visited));
    let mut names = vec![String::new(); order.len()];
    for (number, visited) in order.into_iter().enumerate() {
        if let Some(name) = names.get_mut(visited) {
            *name = format!("${}", number + 1);
        }
    }
    let mut names = names.into_iter();
    each_unnumbered(statement, &mut |parameter, _| {
        if let Some(name) = names.next() {
            *parameter = name;
        }
    });
}

/// Shows the parameters that are written as `?`, always in one order, and where each begins.
fn each_unnumbered(statement: &mut Statement, show: &mut impl FnMut(&mut String, Location)) {
    struct Unnumbered<'a, F>(&'a mut F);
    impl<F: FnMut(&mut String, Location)> VisitorMut for Unnumbered<'_, F> {
        type Break = ();
        fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
            if let Value::Placeholder(name) = &mut value.value
                && name == "?"
            {
                self.0(name, value.span.start);
            }
            ControlFlow::Continue(())
        }
    }
    match statement {
        Statement::Statement(statement) => {
            let _ = statement.visit(&mut Unnumbered(show));
        }
        Statement::Explain(explain) => each_unnumbered(&mut explain.statement, show),
        _ => {}
    }
}

/// The parameters of a plan, in the order of their numbers or names; what types they have is null
/// where the plan does not tell.
pub fn parameters(plan: &LogicalPlan) -> Result<Schema, Status> {
    let fields = plan.get_parameter_fields();
    let mut fields: Vec<(String, Option<FieldRef>)> = fields
        .map_err(|error| status(&error))?
        .into_iter()
        .collect();
    fields.sort_by_key(|(id, _)| (number_of(id).unwrap_or(usize::MAX), id.clone()));
    let fields = fields.into_iter().map(|(id, field)| {
        let kind = field.map_or(DataType::Null, |field| field.data_type().clone());
        Field::new(id, kind, true)
    });
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// The place of a parameter: that of `$2` is 1.
fn number_of(id: &str) -> Option<usize> {
    id.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

/// Puts a row of values in the places of a plan's parameters.
fn bind(plan: &LogicalPlan, rows: &RecordBatch, row: usize) -> Result<LogicalPlan, Status> {
    let stored = stored(plan).map_err(|error| status(&error))?;
    let mut values = HashMap::new();
    for field in parameters(plan)?.fields() {
        let id = field.name();
        let name = id.strip_prefix('$').unwrap_or(id);
        let column = match number_of(id) {
            Some(place) => rows.columns().get(place),
            None => rows.column_by_name(name),
        };
        let column = column
            .ok_or_else(|| Status::invalid_argument(format!("there is no value for {id}")))?;
        let value = ScalarValue::try_from_array(column, row);
        let value = value.and_then(|value| match field.data_type() {
            DataType::Null => Ok(value),
            kind => match exactly(&value, kind)? {
                Some(value) => Ok(value),
                None if stored.contains(id) => {
                    Err(DataFusionError::Plan(format!("{id}: {value} is no {kind}")))
                }
                // Plans make both sides of a comparison one type that holds them.
                None => Ok(value),
            },
        });
        values.insert(name.to_owned(), value.map_err(|error| status(&error))?);
    }
    let bound = plan.clone().with_param_values(ParamValues::from(values));
    bound.map_err(|error| status(&error))
}

/// A value as one of a type, of reals the nearest one; `None` where it would become another value.
fn exactly(value: &ScalarValue, kind: &DataType) -> Result<Option<ScalarValue>, DataFusionError> {
    let own = value.data_type();
    // What else there is, such as text, is read as SQL reads it.
    let counts = own.is_numeric() || own.is_temporal();
    if value.is_null() || kind.is_floating() || !counts {
        return value.cast_to(kind).map(Some);
    }
    let cast = value.cast_to(kind).ok();
    Ok(cast.filter(|cast| cast.cast_to(&own).is_ok_and(|back| back == *value)))
}

/// The parameters that a change stores as they are: they stand alone where rows are made.
fn stored(plan: &LogicalPlan) -> Result<HashSet<String>, DataFusionError> {
    let mut stored = HashSet::new();
    let LogicalPlan::Dml(change) = plan else {
        return Ok(stored);
    };
    change.input.apply(|plan| {
        // Rows with DEFAULT among their values lie apart.
        let makes_rows = matches!(
            plan,
            LogicalPlan::Projection(_) | LogicalPlan::Values(_) | LogicalPlan::Union(_)
        );
        if !makes_rows {
            return Ok(TreeNodeRecursion::Jump);
        }
        plan.apply_expressions(|expr| {
            let expr = match expr {
                Expr::Alias(alias) => alias.expr.as_ref(),
                expr => expr,
            };
            if let Expr::Placeholder(parameter) = expr {
                stored.insert(parameter.id.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(stored)
}

/// A statement and its parameters, of which tickets and handles are made.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    pub text: String,
    pub parameters: Option<RecordBatch>,
}

impl Bound {
    /// A statement whose parameters, if it has any, are not known.
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            parameters: None,
        }
    }

    pub fn encode(&self) -> Result<Vec<u8>, Status> {
        let len = u32::try_from(self.text.len());
        let len = len.map_err(|_| Status::invalid_argument("the statement is too long"))?;
        let mut bytes = len.to_le_bytes().to_vec();
        bytes.extend_from_slice(self.text.as_bytes());
        let Some(rows) = &self.parameters else {
            return Ok(bytes);
        };
        let begin = bytes.len();
        let write = |bytes: &mut Vec<u8>| {
            let mut writer = StreamWriter::try_new(bytes, &rows.schema())?;
            writer.write(rows)?;
            writer.finish()
        };
        write(&mut bytes).map_err(|error: ArrowError| Status::internal(error.to_string()))?;
        match bytes.len() - begin <= LONGEST_PARAMETERS {
            true => Ok(bytes),
            false => Err(Status::invalid_argument(format!(
                "the parameters of a query may have {LONGEST_PARAMETERS} bytes"
            ))),
        }
    }

    /// What a client sends: perhaps nothing that was encoded here.
    pub fn decode(bytes: &[u8]) -> Result<Self, Status> {
        let wrong = || Status::invalid_argument("this is no statement of this server's");
        let (len, rest) = bytes.split_first_chunk::<4>().ok_or_else(wrong)?;
        let len = usize::try_from(u32::from_le_bytes(*len)).map_err(|_| wrong())?;
        let (text, rows) = rest.split_at_checked(len).ok_or_else(wrong)?;
        let text = str::from_utf8(text).map_err(|_| wrong())?.to_owned();
        let read = || {
            let mut batches = StreamReader::try_new(rows, None)?;
            batches.next().transpose()
        };
        let parameters = match rows.is_empty() {
            true => None,
            false => read().map_err(|_: ArrowError| wrong())?,
        };
        Ok(Self { text, parameters })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};

    #[test]
    fn parameters_are_numbered_as_they_stand_in_the_text() {
        for (text, expected) in [
            (
                "SELECT ? FROM t WHERE a = ?",
                "SELECT $1 FROM t WHERE a = $2",
            ),
            (
                "SELECT a FROM t OFFSET ? LIMIT ?",
                "SELECT a FROM t LIMIT $2 OFFSET $1",
            ),
            (
                "SELECT a FROM t LIMIT ? OFFSET ?",
                "SELECT a FROM t LIMIT $1 OFFSET $2",
            ),
            (
                "FROM generate_series(?, 9)\n SELECT ?",
                "FROM generate_series($1, 9) SELECT $2",
            ),
            (
                "EXPLAIN SELECT ? AS \"?\", '?' OFFSET ?\nLIMIT ?",
                "EXPLAIN SELECT $1 AS \"?\", '?' LIMIT $3 OFFSET $2",
            ),
        ] {
            let mut statements = crate::statements(text).expect(text);
            let mut statement = statements.pop_front().expect(text);
            number_parameters(&mut statement);
            assert_eq!(statement.to_string(), expected);
        }
    }

    #[test]
    fn tickets_come_back_as_they_were() {
        let columns: [(&str, ArrayRef); 2] = [
            ("a", Arc::new(Int64Array::from(vec![7]))),
            ("b", Arc::new(StringArray::from(vec![None::<&str>]))),
        ];
        let with = Bound {
            text: "SELECT 'ä', $1".into(),
            parameters: Some(RecordBatch::try_from_iter(columns).expect("a batch")),
        };
        for bound in [Bound::new("SELECT 1"), Bound::new(""), with] {
            let bytes = bound.encode().expect("bytes");
            assert_eq!(Bound::decode(&bytes).expect("a ticket"), bound);
            let text = 4 + bound.text.len();
            for len in 0..text {
                assert!(Bound::decode(bytes.get(..len).unwrap_or_default()).is_err());
            }
        }
        assert!(Bound::decode(&[255; 64]).is_err());
    }
}
