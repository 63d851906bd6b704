//! Which orders a scan can have.

use super::ArrayScan;
use crate::columns::Place;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use std::sync::Arc;

/// Ways to write one order, at most: each column that is declared to have nulls has two.
const WAYS: usize = 16;

/// What plans are told of partitions that are sorted by dimensions, of which the projection's columns
/// come out.
///
/// No dimension that partitions are sorted by has nulls, though days are declared to: wherever an
/// order has its nulls, first or last, is the same order.
pub fn sorted_by(
    dimensions: &[usize],
    projection: &[usize],
    schema: &SchemaRef,
) -> EquivalenceProperties {
    let mut ways: Vec<Vec<PhysicalSortExpr>> = vec![Vec::new()];
    for dimension in dimensions {
        let output = projection.iter().position(|column| column == dimension);
        let Some((output, field)) =
            output.and_then(|output| Some((output, schema.fields().get(output)?)))
        else {
            break;
        };
        let column = Arc::new(Column::new(field.name(), output));
        let nulls_first: &[bool] = match field.is_nullable() && ways.len() < WAYS {
            true => &[false, true],
            false => &[false],
        };
        let longer = ways.iter().flat_map(|way| {
            nulls_first.iter().map(|nulls_first| {
                let options = SortOptions::new(false, *nulls_first);
                let sort = PhysicalSortExpr::new(Arc::clone(&column) as _, options);
                way.iter().cloned().chain([sort]).collect::<Vec<_>>()
            })
        });
        ways = longer.collect();
    }
    ways.retain(|way| !way.is_empty());
    EquivalenceProperties::new_with_orderings(Arc::clone(schema), ways)
}

impl ArrayScan {
    /// The dimensions that an order is by, if the array can be read in it: the first ones, or the
    /// last ones backwards, ascending.
    pub(super) fn dimensions_of(&self, order: &[PhysicalSortExpr]) -> Option<Vec<usize>> {
        let dimension = |sort: &PhysicalSortExpr| {
            let column = sort.expr.downcast_ref::<Column>()?;
            let d = self.dimension_at(column.index())?;
            (!sort.options.descending && self.orders_alike(d)).then_some(d)
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
