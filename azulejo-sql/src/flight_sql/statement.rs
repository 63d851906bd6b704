//! Statements: from text to plans, which of them may run, and what stands for them in tickets.

use super::running::status;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::{DmlStatement, LogicalPlan, Union, WriteOp};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Value, ValueWithSpan, VisitMut, VisitorMut};
use std::collections::HashMap;
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
    session: SessionContext,
    writable: bool,
}

impl Statements {
    pub fn new(session: SessionContext, writable: bool) -> Self {
        Self { session, writable }
    }

    /// The plan of a statement, if it may run here.
    pub async fn plan(&self, text: &str) -> Result<LogicalPlan, Status> {
        let mut statements = crate::statements(text).map_err(|error| status(&error))?;
        let (Some(mut statement), true) = (statements.pop_front(), statements.is_empty()) else {
            return Err(Status::invalid_argument("send one statement at a time"));
        };
        number_parameters(&mut statement, &mut 0);
        let plan = self.session.state().statement_to_plan(statement).await;
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
    pub async fn plan_of(&self, bound: &Bound) -> Result<LogicalPlan, Status> {
        let plan = self.plan(&bound.text).await?;
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
    pub async fn changes_of(&self, bound: &Bound) -> Result<Vec<LogicalPlan>, Status> {
        let plan = self.plan(&bound.text).await?;
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

/// Numbers parameters that are written as `?`: `$1`, `$2` and so on.
fn number_parameters(statement: &mut Statement, last: &mut usize) {
    struct Numbers<'a>(&'a mut usize);
    impl VisitorMut for Numbers<'_> {
        type Break = ();
        fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
            if let Value::Placeholder(name) = &mut value.value
                && name == "?"
            {
                *self.0 += 1;
                *name = format!("${}", self.0);
            }
            ControlFlow::Continue(())
        }
    }
    match statement {
        Statement::Statement(statement) => {
            let _ = statement.visit(&mut Numbers(last));
        }
        Statement::Explain(explain) => number_parameters(&mut explain.statement, last),
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
            kind => value.cast_to(kind),
        });
        values.insert(name.to_owned(), value.map_err(|error| status(&error))?);
    }
    let bound = plan.clone().with_param_values(ParamValues::from(values));
    bound.map_err(|error| status(&error))
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
