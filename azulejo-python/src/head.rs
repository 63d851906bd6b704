//! What a variable of a dataset is made of, short of all else that a schema's document has.

use azulejo::Error;
use azulejo::array::Snapshot;
use azulejo::format::schema::{Attribute, Dimension};
use azulejo::format::{CellValNum, Range};
use azulejo::json::{number_json, pipeline_json, value_json};
use pyo3::prelude::*;
use serde_json::{Number, Value as Json};

/// A whole number or a real.
#[derive(IntoPyObject)]
enum Bound {
    Signed(i64),
    Unsigned(u64),
    Real(f64),
}

/// A dimension: name, tile extent, first and last coordinate of the current domain, else of the
/// domain. Those of text have no numbers.
#[derive(IntoPyObject)]
struct Axis(String, Option<Bound>, Option<Bound>, Option<Bound>);

/// An attribute: name, datatype, values a cell unless they vary, whether they stand for labels, as
/// JSON the fill value and the filters, and whether cells may be null.
#[derive(IntoPyObject)]
struct Values(
    String,
    &'static str,
    Option<u32>,
    bool,
    String,
    String,
    bool,
);

/// Whether an array is sparse, whether it has a current domain, its dimensions and attributes.
#[derive(IntoPyObject)]
pub struct Head(bool, bool, Vec<Axis>, Vec<Values>);

impl Head {
    pub fn of(snapshot: &Snapshot) -> Result<Self, Error> {
        let schema = snapshot.schema();
        let current = snapshot.current_domain();
        let axes = schema.domain.dimensions.iter().enumerate();
        let axes = axes.map(|(i, dimension)| {
            let current = current.and_then(|domain| domain.ranges.get(i));
            axis(dimension, current.or(dimension.domain.as_ref()))
        });
        Ok(Self(
            !schema.is_dense(),
            current.is_some(),
            axes.collect(),
            schema
                .attributes
                .iter()
                .map(values)
                .collect::<Result<_, _>>()?,
        ))
    }

    /// Whether it takes a look at fragments to tell how large the array is.
    pub fn grows_unseen(snapshot: &Snapshot) -> bool {
        snapshot.schema().is_dense() && snapshot.current_domain().is_none()
    }
}

fn axis(dimension: &Dimension, domain: Option<&Range>) -> Axis {
    let one = |bytes: &[u8]| match dimension.cell_val_num {
        CellValNum::Var => None,
        CellValNum::Fixed(_) => bound(&number_json(dimension.datatype.physical(), bytes)),
    };
    Axis(
        dimension.name.clone(),
        dimension.tile_extent.as_deref().and_then(one),
        domain.and_then(|range| one(&range.start)),
        domain.and_then(|range| one(&range.end)),
    )
}

fn bound(number: &Json) -> Option<Bound> {
    let number: &Number = number.as_number()?;
    let signed = number.as_i64().map(Bound::Signed);
    let unsigned = || number.as_u64().map(Bound::Unsigned);
    signed
        .or_else(unsigned)
        .or_else(|| number.as_f64().map(Bound::Real))
}

fn values(attribute: &Attribute) -> Result<Values, Error> {
    let Attribute {
        name,
        datatype,
        cell_val_num,
        fill_value,
        nullable,
        ..
    } = attribute;
    Ok(Values(
        name.clone(),
        datatype.name(),
        match cell_val_num {
            CellValNum::Var => None,
            CellValNum::Fixed(values) => Some(*values),
        },
        attribute.enumeration.is_some(),
        value_json(*datatype, *cell_val_num, fill_value).to_string(),
        pipeline_json(&attribute.filters)?.to_string(),
        *nullable,
    ))
}
