//! `min` and `max` of reals in groups.
//!
//! DataFusion 55 compares reals in groups by an order that has no place for NaN: whatever comes behind
//! one is taken for the least and the greatest so far, and of infinities alone the end of the numbers is
//! left. Without groups they go by the total order. So they do here: as whole numbers in that order.

use crate::error::Result;
use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Float16Type, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type,
};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, Expr, GroupsAccumulator,
    ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs,
};
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};

/// `min` and `max`.
pub fn all() -> Vec<AggregateUDF> {
    vec![MIN.clone(), MAX.clone()]
}

static MIN: LazyLock<AggregateUDF> = LazyLock::new(|| Extreme { of: min_udaf() }.into());

static MAX: LazyLock<AggregateUDF> = LazyLock::new(|| Extreme { of: max_udaf() }.into());

/// The least of the values that an expression has.
pub fn min(value: Expr) -> Expr {
    MIN.call(vec![value])
}

/// The greatest one.
pub fn max(value: Expr) -> Expr {
    MAX.call(vec![value])
}

/// DataFusion's own function, but for reals in groups.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    of: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.of.name()
    }

    fn signature(&self) -> &Signature {
        self.of.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.of.return_type(arg_types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.of.accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.of.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match args.return_field.data_type() {
            DataType::Float16 => in_order::<Float16Type>(&self.of, &args),
            DataType::Float32 => in_order::<Float32Type>(&self.of, &args),
            DataType::Float64 => in_order::<Float64Type>(&self.of, &args),
            _ => self.of.create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.of.create_sliding_accumulator(args)
    }

    fn is_descending(&self) -> Option<bool> {
        self.of.is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.of.order_sensitivity()
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.of.coerce_types(arg_types)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.of.reverse_udf()
    }

    fn value_from_stats(&self, statistics: &StatisticsArgs) -> Option<ScalarValue> {
        self.of.value_from_stats(statistics)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.of.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.of.inner().set_monotonicity(data_type)
    }
}

/// Reals, and the whole numbers that are as wide.
trait Real: ArrowPrimitiveType {
    type Whole: ArrowPrimitiveType;

    /// A whole number that stands for a real: their orders are the same.
    fn to_whole(real: Self::Native) -> <Self::Whole as ArrowPrimitiveType>::Native;

    /// The real that a whole number stands for.
    fn to_real(whole: <Self::Whole as ArrowPrimitiveType>::Native) -> Self::Native;
}

macro_rules! real {
    ($real:ty, $whole:ty, $native:ty) => {
        impl Real for $real {
            type Whole = $whole;

            fn to_whole(real: Self::Native) -> $native {
                // Where the sign is set, all other bits turn around.
                let bits = real.to_bits().cast_signed();
                bits ^ ((bits >> (<$native>::BITS - 1)) & <$native>::MAX)
            }

            fn to_real(whole: $native) -> Self::Native {
                // They turn back as they turn.
                let bits = whole ^ ((whole >> (<$native>::BITS - 1)) & <$native>::MAX);
                <Self as ArrowPrimitiveType>::Native::from_bits(bits.cast_unsigned())
            }
        }
    };
}

real!(Float16Type, Int16Type, i16);
real!(Float32Type, Int32Type, i32);
real!(Float64Type, Int64Type, i64);

/// Reals as whole numbers.
fn whole_of<R: Real>(reals: &ArrayRef) -> Result<ArrayRef> {
    let reals = reals.as_primitive_opt::<R>();
    let reals = reals.ok_or_else(|| DataFusionError::Internal("reals that are none".into()))?;
    Ok(Arc::new(reals.unary::<_, R::Whole>(R::to_whole)))
}

/// The reals that whole numbers stand for.
fn reals_of<R: Real>(whole: &ArrayRef) -> Result<ArrayRef> {
    let whole = whole.as_primitive_opt::<R::Whole>();
    let whole =
        whole.ok_or_else(|| DataFusionError::Internal("whole numbers that are none".into()))?;
    Ok(Arc::new(whole.unary::<_, R>(R::to_real)))
}

/// The extremes of groups of reals, by their total order.
fn in_order<R: Real>(
    of: &AggregateUDF,
    args: &AccumulatorArgs,
) -> Result<Box<dyn GroupsAccumulator>> {
    let field = Field::new(args.return_field.name(), R::Whole::DATA_TYPE, true);
    let of = of.create_groups_accumulator(AccumulatorArgs {
        return_field: Arc::new(field),
        ..*args
    })?;
    let reals = PhantomData::<fn() -> R>;
    Ok(Box::new(InOrder { of, reals }))
}

/// As [`in_order`] gives them.
struct InOrder<R> {
    /// Those of whole numbers.
    of: Box<dyn GroupsAccumulator>,
    reals: PhantomData<fn() -> R>,
}

impl<R: Real> InOrder<R> {
    fn whole(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        values.iter().map(whole_of::<R>).collect()
    }

    fn reals(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        values.iter().map(reals_of::<R>).collect()
    }
}

impl<R: Real> GroupsAccumulator for InOrder<R> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let values = Self::whole(values)?;
        self.of
            .update_batch(&values, group_indices, opt_filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let whole = self.of.evaluate(emit_to)?;
        reals_of::<R>(&whole)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let whole = self.of.state(emit_to)?;
        Self::reals(&whole)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        let values = Self::whole(values)?;
        self.of
            .merge_batch(&values, group_indices, total_num_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let state = self
            .of
            .convert_to_state(&Self::whole(values)?, opt_filter)?;
        Self::reals(&state)
    }

    fn size(&self) -> usize {
        self.of.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Array, Float32Array, Float64Array};
    use datafusion::arrow::compute::cast;

    /// Reals in their order, as an array.
    fn stand_for<R: Real>(reals: &ArrayRef) {
        let whole = whole_of::<R>(reals).expect("whole numbers");
        assert!(whole.as_primitive::<R::Whole>().values().is_sorted());
        let back = reals_of::<R>(&whole).expect("reals");
        assert_eq!(back.to_data().buffers(), reals.to_data().buffers());
    }

    #[test]
    fn whole_numbers_stand_for_reals_in_their_order() {
        let reals = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            2.0,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        let wide: ArrayRef = Arc::new(Float64Array::from(reals.to_vec()));
        stand_for::<Float64Type>(&wide);
        let narrow = [f32::NEG_INFINITY, -1.5, 0.0, 2.0, f32::INFINITY, f32::NAN];
        let narrow: ArrayRef = Arc::new(Float32Array::from(narrow.to_vec()));
        stand_for::<Float32Type>(&narrow);
        let half = cast(&narrow, &DataType::Float16).expect("half as wide");
        stand_for::<Float16Type>(&half);
    }
}
