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
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator,
    ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs,
};
use std::sync::Arc;

/// `min` and `max`.
pub fn all() -> Vec<AggregateUDF> {
    [min_udaf(), max_udaf()]
        .map(|of| AggregateUDF::from(Extreme { of }))
        .into()
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
        let width = match args.return_field.data_type() {
            DataType::Float16 => Width::Half,
            DataType::Float32 => Width::Single,
            DataType::Float64 => Width::Double,
            _ => return self.of.create_groups_accumulator(args),
        };
        let field = Field::new(args.return_field.name(), width.whole(), true);
        let of = self.of.create_groups_accumulator(AccumulatorArgs {
            return_field: Arc::new(field),
            ..args
        })?;
        Ok(Box::new(InOrder { of, width }))
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

/// How wide reals are.
#[derive(Debug, Clone, Copy)]
enum Width {
    Half,
    Single,
    Double,
}

impl Width {
    /// The type of whole numbers that are as wide.
    fn whole(self) -> DataType {
        match self {
            Self::Half => DataType::Int16,
            Self::Single => DataType::Int32,
            Self::Double => DataType::Int64,
        }
    }

    /// Reals as whole numbers in their total order.
    fn to_whole(self, reals: &ArrayRef) -> Result<ArrayRef> {
        let whole: Option<ArrayRef> = match self {
            Self::Half => reals.as_primitive_opt::<Float16Type>().map(|reals| {
                let whole = reals.unary::<_, Int16Type>(|real| turned16(real.to_bits()));
                Arc::new(whole) as ArrayRef
            }),
            Self::Single => reals.as_primitive_opt::<Float32Type>().map(|reals| {
                let whole = reals.unary::<_, Int32Type>(|real| turned32(real.to_bits()));
                Arc::new(whole) as ArrayRef
            }),
            Self::Double => reals.as_primitive_opt::<Float64Type>().map(|reals| {
                let whole = reals.unary::<_, Int64Type>(|real| turned64(real.to_bits()));
                Arc::new(whole) as ArrayRef
            }),
        };
        whole.ok_or_else(|| DataFusionError::Internal("reals that are none".into()))
    }

    /// The reals that whole numbers stand for.
    fn to_reals(self, whole: &ArrayRef) -> Result<ArrayRef> {
        let reals: Option<ArrayRef> = match self {
            Self::Half => whole.as_primitive_opt::<Int16Type>().map(|whole| {
                let real =
                    |whole: i16| Half::from_bits(turned16(whole.cast_unsigned()).cast_unsigned());
                Arc::new(whole.unary::<_, Float16Type>(real)) as ArrayRef
            }),
            Self::Single => whole.as_primitive_opt::<Int32Type>().map(|whole| {
                let real =
                    |whole: i32| f32::from_bits(turned32(whole.cast_unsigned()).cast_unsigned());
                Arc::new(whole.unary::<_, Float32Type>(real)) as ArrayRef
            }),
            Self::Double => whole.as_primitive_opt::<Int64Type>().map(|whole| {
                let real =
                    |whole: i64| f64::from_bits(turned64(whole.cast_unsigned()).cast_unsigned());
                Arc::new(whole.unary::<_, Float64Type>(real)) as ArrayRef
            }),
        };
        reals.ok_or_else(|| DataFusionError::Internal("whole numbers that are none".into()))
    }
}

type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// As [`turned32`].
fn turned16(bits: u16) -> i16 {
    let bits = bits.cast_signed();
    bits ^ ((bits >> 15) & i16::MAX)
}

/// Bits of which, where the sign is set, all others turn around: so the order of whole numbers is that
/// of reals, and back.
fn turned32(bits: u32) -> i32 {
    let bits = bits.cast_signed();
    bits ^ ((bits >> 31) & i32::MAX)
}

/// As [`turned32`].
fn turned64(bits: u64) -> i64 {
    let bits = bits.cast_signed();
    bits ^ ((bits >> 63) & i64::MAX)
}

/// The extremes of groups of reals, by their total order.
struct InOrder {
    /// Those of whole numbers.
    of: Box<dyn GroupsAccumulator>,
    width: Width,
}

impl InOrder {
    fn whole(&self, values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        values.iter().map(|one| self.width.to_whole(one)).collect()
    }

    fn reals(&self, values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        values.iter().map(|one| self.width.to_reals(one)).collect()
    }
}

impl GroupsAccumulator for InOrder {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let values = self.whole(values)?;
        self.of
            .update_batch(&values, group_indices, opt_filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let whole = self.of.evaluate(emit_to)?;
        self.width.to_reals(&whole)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let whole = self.of.state(emit_to)?;
        self.reals(&whole)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        let values = self.whole(values)?;
        self.of
            .merge_batch(&values, group_indices, total_num_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let state = self.of.convert_to_state(&self.whole(values)?, opt_filter)?;
        self.reals(&state)
    }

    fn size(&self) -> usize {
        self.of.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Float32Array, Float64Array};

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
        let whole = Width::Double.to_whole(&wide).expect("whole numbers");
        assert!(whole.as_primitive::<Int64Type>().values().is_sorted());
        let back = Width::Double.to_reals(&whole).expect("reals");
        let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
        let back = back.as_primitive::<Float64Type>().values();
        assert!(back.iter().zip(&reals).all(same));

        let reals = [f32::NEG_INFINITY, -1.5, 0.0, 2.0, f32::INFINITY, f32::NAN];
        let narrow: ArrayRef = Arc::new(Float32Array::from(reals.to_vec()));
        let whole = Width::Single.to_whole(&narrow).expect("whole numbers");
        assert!(whole.as_primitive::<Int32Type>().values().is_sorted());
        let back = Width::Single.to_reals(&whole).expect("reals");
        let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits();
        let back = back.as_primitive::<Float32Type>().values();
        assert!(back.iter().zip(&reals).all(same));
    }
}
