//! Which tiles `tile_of` and `extent_of` ask for.
//!
//! The column that they are given is followed down to the array that it comes from. Fields of schemas
//! could carry their tiles, but then two dimensions with other tiles would be columns of two kinds to
//! unions and recursive queries.

use crate::columns::Tiles;
use crate::error::Result;
use crate::expressions::tell_where_asked;
use crate::functions::{OF_TILES, no_tiles};
use crate::table::ArrayTable;
use datafusion::common::Column;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, lit};
use datafusion::optimizer::AnalyzerRule;

/// Tells functions of tiles where the domain of their dimension begins and how wide its tiles are.
#[derive(Debug, Default)]
pub struct TileRule;

impl AnalyzerRule for TileRule {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let below = |plan: &LogicalPlan| -> Vec<LogicalPlan> {
            match plan {
                // Its filters are about its own columns.
                LogicalPlan::TableScan(_) => vec![plan.clone()],
                plan => plan.inputs().into_iter().cloned().collect(),
            }
        };
        tell_where_asked(plan, asks, below, |expr, below| tell(expr, below))
    }

    fn name(&self) -> &str {
        "tiles_of_dimensions"
    }
}

/// Whether a function was not told yet which tiles it asks for.
fn is_of_tiles(call: &ScalarFunction) -> bool {
    OF_TILES.contains(&call.func.name()) && call.args.len() == 1
}

fn asks(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if is_of_tiles(call))
}

/// A function of tiles with the tiles of its dimension; other expressions as they are.
fn tell(expr: Expr, below: &[LogicalPlan]) -> Result<Transformed<Expr>> {
    let mut call = match expr {
        Expr::ScalarFunction(call) if is_of_tiles(&call) => call,
        expr => return Ok(Transformed::no(expr)),
    };
    let tiles = match call.args.first().cloned().map(Expr::unalias) {
        Some(Expr::Column(column)) => below.iter().find_map(|plan| tiles_of(plan, &column)),
        _ => None,
    };
    let tiles = tiles.ok_or_else(|| no_tiles(call.func.name()))?;
    call.args.extend([lit(tiles.start), lit(tiles.extent)]);
    let ScalarFunction { func, args } = call;
    let told = ScalarFunction::new_udf(func, args);
    Ok(Transformed::yes(Expr::ScalarFunction(told)))
}

/// The tiles of the dimension that a column of a plan is.
fn tiles_of(plan: &LogicalPlan, column: &Column) -> Option<Tiles> {
    let index = plan.schema().maybe_index_of_column(column)?;
    // The column of an input at the same place.
    let same = |input: &LogicalPlan| {
        let (qualifier, field) = input.schema().iter().nth(index)?;
        tiles_of(input, &Column::new(qualifier.cloned(), field.name()))
    };
    let of_expr = |expr: &Expr, input: &LogicalPlan| match expr.clone().unalias() {
        Expr::Column(inner) => tiles_of(input, &inner),
        _ => None,
    };
    match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source).ok()?;
            let table = provider.downcast_ref::<ArrayTable>()?;
            let columns = table.columns();
            columns.get(columns.index_of(&column.name)?)?.tiles.clone()
        }
        LogicalPlan::Projection(projection) => {
            of_expr(projection.expr.get(index)?, &projection.input)
        }
        LogicalPlan::Aggregate(aggregate) => {
            of_expr(aggregate.group_expr.get(index)?, &aggregate.input)
        }
        LogicalPlan::SubqueryAlias(alias) => same(&alias.input),
        LogicalPlan::Distinct(Distinct::All(input)) => same(input),
        LogicalPlan::Union(union) => {
            let mut inputs = union.inputs.iter().map(|input| same(input));
            let first = inputs.next()??;
            inputs
                .all(|tiles| tiles.as_ref() == Some(&first))
                .then_some(first)
        }
        LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Join(_) => {
            let inputs = plan.inputs();
            inputs.iter().find_map(|input| tiles_of(input, column))
        }
        _ => None,
    }
}
