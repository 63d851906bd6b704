//! Functions that arrays ask for: which tile a coordinate lies in, how wide tiles are, and which
//! part of a regular grid a number falls into.

use crate::error::Result;
use datafusion::arrow::array::{
    ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, UInt64Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Float64Type,
};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use std::str::FromStr;
use std::sync::Arc;

/// All functions.
pub fn all() -> Vec<ScalarUDF> {
    let of_tiles = OF_TILES.map(|name| ScalarUDF::from(TileFunction::new(name)));
    let others = [Bucket::new().into()];
    let all = of_tiles.into_iter().chain(others);
    let stored = crate::stored::functions();
    let exact = crate::exact_rule::functions();
    all.chain(stored).chain(exact).collect()
}

/// `tile_of(dimension)`, the number of the tile that a coordinate lies in, counted from the
/// domain's start; `extent_of(dimension)`, the width of tiles. `tile_rule` adds these two numbers as
/// text.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TileFunction {
    name: &'static str,
    signature: Signature,
}

impl TileFunction {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            signature: Signature::one_of(
                vec![TypeSignature::Any(1), TypeSignature::Any(3)],
                Volatility::Immutable,
            ),
        }
    }

    /// The domain's start and the extent of the dimension that the first argument is.
    fn tiles<T: FromStr + PartialOrd + Default>(&self, args: &[ColumnarValue]) -> Result<(T, T)> {
        let known = |index: usize| match args.get(index)? {
            ColumnarValue::Scalar(text) => text.try_as_str()??.parse().ok(),
            ColumnarValue::Array(_) => None,
        };
        match (known(1), known(2)) {
            (Some(start), Some(extent)) if extent > T::default() => Ok((start, extent)),
            _ => Err(no_tiles(self.name)),
        }
    }
}

/// The functions that ask for tiles, by their names.
pub const OF_TILES: [&str; 2] = ["tile_of", "extent_of"];

/// That a function was not given a dimension.
pub fn no_tiles(function: &str) -> DataFusionError {
    DataFusionError::Plan(format!(
        "{function}: its argument must be a dimension with tiles"
    ))
}

impl ScalarUDFImpl for TileFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(match self.name {
            "tile_of" => DataType::Int64,
            _ => DataType::Float64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (start, extent) = self.tiles::<f64>(&args.args)?;
        if self.name == "extent_of" {
            return Ok(ColumnarValue::Scalar(ScalarValue::Float64(Some(extent))));
        }
        let argument = args
            .args
            .first()
            .ok_or_else(|| DataFusionError::Internal("a function without its argument".into()))?;
        let values = argument.to_array(args.number_rows)?;
        let tiles: Int64Array = match values.data_type() {
            DataType::Float32 | DataType::Float64 => {
                let values = cast(&values, &DataType::Float64)?;
                let tile = |value: f64| ((value - start) / extent).floor() as i64;
                values.as_primitive::<Float64Type>().unary(tile)
            }
            // Starts and extents beyond 2^53 are not whole in a double.
            _ => {
                let (start, extent) = self.tiles::<i128>(&args.args)?;
                let tile = |value: i128| i64::try_from((value - start).div_euclid(extent)).ok();
                let values = whole(&values)?;
                values.iter().map(|value| tile(value?)).collect()
            }
        };
        Ok(ColumnarValue::Array(Arc::new(tiles)))
    }
}

/// Whole numbers, or ticks of time, in 128 bits, which hold those of all types.
fn whole(values: &ArrayRef) -> Result<Decimal128Array> {
    let values = match values.data_type() {
        DataType::Date32 => cast(values, &DataType::Int32)?,
        kind if kind.is_integer() => Arc::clone(values),
        _ => cast(values, &DataType::Int64)?,
    };
    let values = cast(&values, &DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0))?;
    Ok(values.as_primitive::<Decimal128Type>().clone())
}

/// `bucket(number, width)`: the greatest multiple of the width that is not above the number.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bucket {
    signature: Signature,
}

impl Bucket {
    fn new() -> Self {
        Self {
            signature: Signature::any(2, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Bucket {
    fn name(&self) -> &str {
        "bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            // A bucket begins between 0 and the number, if that is not below 0.
            [DataType::UInt64, b] if b.is_integer() => Ok(DataType::UInt64),
            [a, b] if a.is_integer() && b.is_integer() => Ok(DataType::Int64),
            [a, b] if a.is_numeric() && b.is_numeric() => Ok(DataType::Float64),
            _ => Err(DataFusionError::Plan(
                "bucket takes a number and a width; date_bin is the function for times".into(),
            )),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [values, widths] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("bucket has two arguments".into()));
        };
        let (rows, data_type) = (args.number_rows, args.return_field.data_type());
        let (values, widths) = (values.to_array(rows)?, widths.to_array(rows)?);
        let array: ArrayRef = if data_type.is_integer() {
            let (values, widths) = (whole(&values)?, whole(&widths)?);
            let pairs = values.iter().zip(&widths);
            let buckets = pairs.map(|(value, width)| {
                let (value, width) = (value?, width.filter(|width| *width > 0)?);
                Some(value.div_euclid(width) * width)
            });
            match data_type {
                DataType::UInt64 => Arc::new(
                    buckets
                        .map(|bucket| u64::try_from(bucket?).ok())
                        .collect::<UInt64Array>(),
                ),
                _ => Arc::new(
                    buckets
                        .map(|bucket| i64::try_from(bucket?).ok())
                        .collect::<Int64Array>(),
                ),
            }
        } else {
            let values = cast(&values, &DataType::Float64)?;
            let widths = cast(&widths, &DataType::Float64)?;
            let pairs = values.as_primitive::<Float64Type>().iter();
            let pairs = pairs.zip(widths.as_primitive::<Float64Type>());
            let bucket = |(value, width): (Option<f64>, Option<f64>)| {
                let (value, width) = (value?, width.filter(|width| *width > 0.0)?);
                Some((value / width).floor() * width)
            };
            Arc::new(pairs.map(bucket).collect::<Float64Array>())
        };
        Ok(ColumnarValue::Array(array))
    }
}
