//! Which orders a scan can have.

use super::ArrayScan;
use crate::columns::Place;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use std::sync::Arc;

/// What plans are told of partitions that are sorted by dimensions, of which the projection's columns
/// come out: nulls, which days are declared to have, come last.
pub fn sorted_by(
    dimensions: &[usize],
    projection: &[usize],
    schema: &SchemaRef,
) -> EquivalenceProperties {
    let order = dimensions.iter().map_while(|dimension| {
        let output = projection.iter().position(|column| column == dimension)?;
        let column = Arc::new(Column::new(schema.fields().get(output)?.name(), output));
        Some(PhysicalSortExpr::new(column, NULLS_LAST))
    });
    let order: Vec<PhysicalSortExpr> = order.collect();
    let orders = (!order.is_empty()).then_some(order);
    EquivalenceProperties::new_with_orderings(Arc::clone(schema), orders)
}

/// The order that scans have. A plan takes one order of a column, so that others are not said, though
/// dimensions have no nulls.
const NULLS_LAST: SortOptions = SortOptions {
    descending: false,
    nulls_first: false,
};

impl ArrayScan {
    /// The dimensions that an order is by, if the array can be read in it: the first ones, or the
    /// last ones backwards, ascending.
    pub(super) fn dimensions_of(&self, order: &[PhysicalSortExpr]) -> Option<Vec<usize>> {
        let dimension = |sort: &PhysicalSortExpr| {
            let column = sort.expr.downcast_ref::<Column>()?;
            let d = self.dimension_at(column.index())?;
            let ours = PhysicalSortExpr::new(Arc::clone(&sort.expr), NULLS_LAST);
            (ours.satisfy_expr(sort, &self.schema) && self.orders_alike(d)).then_some(d)
        };
        let dimensions = order.iter().map(dimension).collect::<Option<Vec<_>>>()?;
        let ndim = self.array.schema().domain.ndim();
        let rows = dimensions.iter().copied().eq(0..dimensions.len());
        let columns = dimensions
            .iter()
            .copied()
            .eq((0..ndim).rev().take(dimensions.len()));
        (!dimensions.is_empty() && (rows || columns)).then_some(dimensions)
    }

    /// Whether an order is by a dimension first, descending.
    pub(super) fn descends(&self, order: &[PhysicalSortExpr]) -> bool {
        order.first().is_some_and(|sort| {
            let column = sort.expr.downcast_ref::<Column>();
            sort.options.descending
                && column.is_some_and(|column| self.dimension_at(column.index()).is_some())
        })
    }

    /// The dimension that an output column is.
    fn dimension_at(&self, output: usize) -> Option<usize> {
        match self.columns.get(*self.projection.get(output)?)?.place {
            Place::Dimension(d) => Some(d),
            Place::Attribute(_) => None,
        }
    }

    /// Whether Arrow orders the coordinates of a dimension as the engine does.
    fn orders_alike(&self, d: usize) -> bool {
        let dimension = self.array.schema().domain.dimensions.get(d);
        dimension.is_some_and(|dimension| self.columns.shows_each(d, dimension))
    }
}
