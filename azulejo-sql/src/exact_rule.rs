//! Whole numbers that a change computes: within their type, or the change ends with an error.
//!
//! DataFusion begins again at the other end of a type: `UPDATE t SET a = a * a` made 1 of 2147483647. In
//! queries that is left as it is, as comparisons with what is computed are known to its optimizer there.

use crate::error::Result;
use crate::expressions::tell_where_asked;
use datafusion::arrow::compute::kernels::numeric::{add, mul, sub};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, DmlStatement, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, WriteOp, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;
use std::sync::{Arc, LazyLock};

/// Computes whole numbers of changes exactly.
#[derive(Debug, Default)]
pub struct ExactRule;

impl AnalyzerRule for ExactRule {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let planned = plan.transform_down(|plan| {
            let change = match plan {
                LogicalPlan::Dml(change) => change,
                plan => return Ok(Transformed::no(plan)),
            };
            if !matches!(change.op, WriteOp::Insert(_) | WriteOp::Update) {
                return Ok(Transformed::no(LogicalPlan::Dml(change)));
            }
            let rows = change.input.as_ref().clone();
            let rows = tell_where_asked(
                rows,
                |expr| match expr {
                    Expr::BinaryExpr(pair) => of(pair.op).is_some(),
                    expr => matches!(expr, Expr::Negative(_)),
                },
                |plan| merge_schema(&plan.inputs()),
                |expr, schema| match exactly(&expr, schema) {
                    Some(told) => Ok(Transformed::yes(told)),
                    None => Ok(Transformed::no(expr)),
                },
            )?;
            let change =
                DmlStatement::new(change.table_name, change.target, change.op, Arc::new(rows));
            let change = LogicalPlan::Dml(change);
            Ok(Transformed::new(change, true, TreeNodeRecursion::Jump))
        });
        Ok(planned?.data)
    }

    fn name(&self) -> &str {
        "whole_numbers_of_changes"
    }
}

/// What is computed of whole numbers of one type, by a function that stays within it.
fn exactly(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let (function, args) = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let kind = left.get_type(schema).ok()?;
            if !kind.is_integer() || right.get_type(schema).ok()? != kind {
                return None;
            }
            (
                of(*op)?,
                vec![left.as_ref().clone(), right.as_ref().clone()],
            )
        }
        // The least number of a type has no other one across from it.
        Expr::Negative(value) => {
            let kind = value.get_type(schema).ok()?;
            if !kind.is_integer() {
                return None;
            }
            let zero = lit(ScalarValue::new_zero(&kind).ok()?);
            (of(Operator::Minus)?, vec![zero, value.as_ref().clone()])
        }
        _ => return None,
    };
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(
        function, args,
    )))
}

/// What plans call.
static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 3]> = LazyLock::new(|| functions().map(Arc::new));

/// The functions that add, subtract and multiply whole numbers, and say where the result is none of their
/// type.
pub fn functions() -> [ScalarUDF; 3] {
    [Operator::Plus, Operator::Minus, Operator::Multiply].map(|op| {
        ScalarUDF::from(Exact {
            op,
            signature: Signature::any(2, Volatility::Immutable),
        })
    })
}

/// That of an operator.
fn of(op: Operator) -> Option<Arc<ScalarUDF>> {
    let [plus, minus, times] = &*FUNCTIONS;
    match op {
        Operator::Plus => Some(Arc::clone(plus)),
        Operator::Minus => Some(Arc::clone(minus)),
        Operator::Multiply => Some(Arc::clone(times)),
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Exact {
    op: Operator,
    signature: Signature,
}

impl ScalarUDFImpl for Exact {
    fn name(&self) -> &str {
        match self.op {
            Operator::Plus => "exact_plus",
            Operator::Minus => "exact_minus",
            _ => "exact_times",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [left, right] if left == right && left.is_integer() => Ok(left.clone()),
            _ => Err(DataFusionError::Plan(format!(
                "{} takes two whole numbers of one type",
                self.name()
            ))),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types = args
            .arg_fields
            .iter()
            .map(|field| field.data_type().clone());
        let kind = self.return_type(&types.collect::<Vec<_>>())?;
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), kind, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return Err(DataFusionError::Internal(format!(
                "{} without its arguments",
                self.name()
            )));
        };
        match self.op {
            Operator::Plus => apply(left, right, add),
            Operator::Minus => apply(left, right, sub),
            _ => apply(left, right, mul),
        }
    }
}
