//! Tables as they were: `t TIMESTAMP AS OF '2024-05-01'`, and the table function
//! `azulejo('uri', at => '2024-05-01')`, which also opens arrays that have no name yet.
//!
//! DataFusion plans neither: it refuses named arguments, and passes over a version in silence,
//! which would show today's rows. So relations go through this planner first.

use crate::error::{Result, external};
use crate::metadata_tables;
use crate::table::{ArrayTable, TableOptions};
use crate::table_key::{self, TableKey};
use crate::time_rule::far::with_seconds;
use azulejo::Context;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::common::{DFSchema, ScalarValue, TableReference};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableSource};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::create_physical_expr;
use datafusion::physical_expr::execution_props::ExecutionProps;
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, FunctionArg, FunctionArgExpr, FunctionArgOperator, Ident, ObjectName,
    TableAlias, TableFactor, TableFunctionArgs, TableVersion, Value,
};
use std::sync::Arc;

/// The table functions: arrays, and what there is to know about them.
const FUNCTIONS: [&str; 4] = [
    "azulejo",
    "azulejo_fragments",
    "azulejo_tiles",
    "azulejo_history",
];

/// Plans relations that name an array, or a table as it was at a time.
#[derive(Debug)]
pub struct ArrayRelations {
    context: Context,
    /// Whether a query may name URIs.
    opens: bool,
}

impl ArrayRelations {
    /// A planner that opens arrays through a context.
    pub fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
            opens: true,
        }
    }

    /// A planner for tables that have names already: it opens no other arrays.
    pub fn of_tables(context: &Context) -> Self {
        Self {
            context: context.clone(),
            opens: false,
        }
    }
}

impl RelationPlanner for ArrayRelations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        planner: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table {
            name,
            alias,
            args,
            version,
            ..
        } = &relation
        else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let time = match version {
            Some(version) => Some(moment_of(version, planner)?),
            None => None,
        };
        let function = single(name).map(|ident| planner.normalize_ident(ident.clone()));
        let function = function.filter(|name| args.is_some() && FUNCTIONS.contains(&name.as_str()));
        if let (Some(function), Some(args)) = (function, args) {
            if !self.opens {
                return Err(DataFusionError::Plan(format!(
                    "{function}: only tables that are shown here can be read"
                )));
            }
            let call = Call::of(args, planner)?;
            let table = call.table(&self.context, &function, time)?;
            return planned(&function, table, alias.as_ref());
        }
        let uri = single(name).filter(|ident| self.opens && ident.quote_style == Some('\''));
        if let Some(uri) = uri {
            let options = TableOptions {
                time: time.map(azulejo::TimeRange::until),
                ..TableOptions::new()
            };
            let place = self.context.array(&uri.value);
            return match place.snapshot() {
                Ok(_) => {
                    let table = Arc::new(ArrayTable::open(place, options)?);
                    planned(&uri.value, table, alias.as_ref())
                }
                // A file of another kind, which others may know.
                Err(azulejo::Error::NotFound { .. }) if time.is_none() => {
                    Ok(RelationPlanning::Original(Box::new(relation)))
                }
                Err(error) => Err(external(error)),
            };
        }
        let Some(time) = time else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let reference = planner.object_name_to_table_reference(name.clone())?;
        let source = table_of(relation.clone(), planner)?.ok_or_else(|| {
            DataFusionError::Plan(format!(
                "{reference} is a query of this statement: only arrays can be seen as they were"
            ))
        })?;
        let provider = source_as_provider(&source)?;
        let Some(table) = provider.downcast_ref::<ArrayTable>() else {
            return Err(DataFusionError::Plan(format!(
                "{reference} is no array: only arrays can be seen as they were"
            )));
        };
        let options = TableOptions {
            time: Some(azulejo::TimeRange::until(time)),
            ..*table.options()
        };
        let then = table.with_options(options)?;
        let plan = LogicalPlanBuilder::scan(reference, provider_as_source(Arc::new(then)), None)?;
        let plan = PlannedRelation::new(plan.build()?, alias.clone());
        Ok(RelationPlanning::Planned(Box::new(plan)))
    }
}

/// The table that a relation names at the place where it stands, as it is now; `None` where its name
/// is that of a query in front, which hides tables.
fn table_of(
    relation: TableFactor,
    planner: &mut dyn RelationPlannerContext,
) -> Result<Option<Arc<dyn TableSource>>> {
    let TableFactor::Table { name, .. } = &relation else {
        return Ok(None);
    };
    let reference = planner.object_name_to_table_reference(name.clone())?;
    let mut now = relation;
    if let TableFactor::Table { alias, version, .. } = &mut now {
        (*alias, *version) = (None, None);
    }
    Ok(match planner.plan(now)? {
        LogicalPlan::TableScan(scan) if scan.table_name == reference => Some(scan.source),
        _ => None,
    })
}

/// The only part of a name.
fn single(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident(),
        _ => None,
    }
}

fn planned(
    name: &str,
    table: Arc<dyn TableProvider>,
    alias: Option<&TableAlias>,
) -> Result<RelationPlanning> {
    let reference = TableReference::bare(name);
    let plan = LogicalPlanBuilder::scan(reference, provider_as_source(table), None)?;
    let plan = PlannedRelation::new(plan.build()?, alias.cloned());
    Ok(RelationPlanning::Planned(Box::new(plan)))
}

/// The moment that a version names.
fn moment_of(version: &TableVersion, planner: &mut dyn RelationPlannerContext) -> Result<u64> {
    match version {
        TableVersion::TimestampAsOf(expr) | TableVersion::ForSystemTimeAsOf(expr) => {
            moment(&constant(expr, planner)?)
        }
        version => Err(DataFusionError::Plan(format!(
            "{version}: write TIMESTAMP AS OF and a time"
        ))),
    }
}

/// The value of an expression without columns.
fn constant(expr: &SqlExpr, planner: &mut dyn RelationPlannerContext) -> Result<ScalarValue> {
    let schema = DFSchema::empty();
    let expr = match expr {
        // As it stands in the text: planning might take it for something else.
        SqlExpr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => {
                Expr::Literal(ScalarValue::from(text.as_str()), None)
            }
            _ => planner.sql_to_expr(expr.clone(), &schema)?,
        },
        expr => planner.sql_to_expr(expr.clone(), &schema)?,
    };
    // `now()` is a moment that plans know before they are made.
    let now = SimplifyContext::builder().with_current_time().build();
    let expr = ExprSimplifier::new(now).simplify(expr)?;
    let context = PhysicalPlanningContext::default();
    let physical = create_physical_expr(&expr, &schema, &ExecutionProps::new(), &context)?;
    let empty = Arc::new(datafusion::arrow::datatypes::Schema::empty());
    let row = datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(1));
    let row = datafusion::arrow::array::RecordBatch::try_new_with_options(empty, vec![], &row)?;
    match physical.evaluate(&row)? {
        datafusion::logical_expr::ColumnarValue::Scalar(value) => Ok(value),
        datafusion::logical_expr::ColumnarValue::Array(values) => {
            ScalarValue::try_from_array(&values, 0)
        }
    }
}

/// Text in quotes, which no message repeats: planning would, where it is something else.
fn secret<'a>(name: &str, expr: &'a SqlExpr) -> Result<&'a str> {
    let text = match expr {
        SqlExpr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    };
    text.ok_or_else(|| DataFusionError::Plan(format!("{name}: write it in single quotes")))
}

/// Milliseconds since 1970: of a time, of text that is one, or of a whole number as it is.
pub fn moment(value: &ScalarValue) -> Result<u64> {
    let value = match value.data_type().is_integer() {
        true => value.cast_to(&DataType::Int64)?,
        false => {
            let time = DataType::Timestamp(TimeUnit::Millisecond, Some("+00:00".into()));
            match value.try_as_str().flatten().and_then(with_seconds) {
                Some(text) => ScalarValue::from(text).cast_to(&time)?,
                None => value.cast_to(&time)?,
            }
        }
    };
    match value {
        ScalarValue::Int64(Some(v)) | ScalarValue::TimestampMillisecond(Some(v), _) if v >= 0 => {
            Ok(v.cast_unsigned())
        }
        value => Err(DataFusionError::Plan(format!(
            "{value} is no time since 1970"
        ))),
    }
}

/// A truth value, or text that is one.
pub fn truth(name: &str, value: &ScalarValue) -> Result<bool> {
    match (value, value.try_as_str().flatten()) {
        (ScalarValue::Boolean(Some(truth)), _) => Ok(*truth),
        (_, Some("true")) => Ok(true),
        (_, Some("false")) => Ok(false),
        _ => Err(DataFusionError::Plan(format!(
            "{name} must be true or false, not {value}"
        ))),
    }
}

/// The arguments of a table function.
struct Call {
    uri: String,
    at: Option<u64>,
    unwritten: bool,
    bytes: bool,
    key: TableKey,
}

impl Call {
    fn of(args: &TableFunctionArgs, planner: &mut dyn RelationPlannerContext) -> Result<Self> {
        let mut uri = None;
        let (mut at, mut key) = (None, TableKey::default());
        let (mut unwritten, mut bytes) = (false, false);
        for arg in &args.args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) if uri.is_none() => {
                    let value = constant(expr, planner)?;
                    uri = value.try_as_str().flatten().map(str::to_owned);
                }
                FunctionArg::Named {
                    name,
                    arg: FunctionArgExpr::Expr(expr),
                    operator:
                        FunctionArgOperator::RightArrow
                        | FunctionArgOperator::Assignment
                        | FunctionArgOperator::Equals
                        | FunctionArgOperator::Colon,
                } => {
                    let name = name.value.to_ascii_lowercase();
                    if table_key::NAMES.contains(&name.as_str()) {
                        key.set(&name, secret(&name, expr)?)?;
                        continue;
                    }
                    let value = constant(expr, planner)?;
                    match name.as_str() {
                        "at" => at = Some(moment(&value)?),
                        "unwritten" => unwritten = truth("unwritten", &value)?,
                        "bytes" => bytes = truth("bytes", &value)?,
                        other => {
                            return Err(DataFusionError::Plan(format!(
                                "there is no argument {other:?}: there are at, unwritten, bytes, key and key_file"
                            )));
                        }
                    }
                }
                // What stands there may be a key.
                _ => {
                    return Err(DataFusionError::Plan(
                        "arguments are a URI, then NAME => VALUE".into(),
                    ));
                }
            }
        }
        let uri = uri.ok_or_else(|| {
            DataFusionError::Plan("the first argument must be the URI of an array".into())
        })?;
        Ok(Self {
            uri,
            at,
            unwritten,
            bytes,
            key,
        })
    }

    fn table(
        &self,
        context: &Context,
        function: &str,
        version: Option<u64>,
    ) -> Result<Arc<dyn TableProvider>> {
        let time = match (self.at, version) {
            (Some(_), Some(_)) => {
                return Err(DataFusionError::Plan("a time is given twice".into()));
            }
            (at, version) => at.or(version),
        };
        let options = TableOptions {
            time: time.map(azulejo::TimeRange::until),
            unwritten: self.unwritten,
            bytes: self.bytes,
        };
        let context = self.key.clone().context(context);
        let table = ArrayTable::open(context.array(&self.uri), options)?;
        match function {
            "azulejo" => Ok(Arc::new(table)),
            "azulejo_fragments" => metadata_tables::fragments(table.array()),
            "azulejo_tiles" => metadata_tables::tiles(table.array()),
            _ => metadata_tables::history(table.array()),
        }
    }
}
