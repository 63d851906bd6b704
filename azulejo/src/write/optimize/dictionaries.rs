//! Dictionaries for texts that repeat, before the filters that these have.

use super::cost;
use super::goal::Goal;
use super::place::Place;
use super::sample::{self, Sample, ValueKind};
use crate::error::Result;
use crate::write::fields_of;
use crate::write::input::FieldShape;
use azulejo_format::ArraySchema;
use azulejo_format::filter::{Filter, FilterContext, Pipeline, Scratch};
use azulejo_format::schema::{FieldIndex, NewArray};
use rayon::prelude::*;

/// Whether a new array has texts, other than those of fields that `keeps` names, for which [`choose`] has
/// something to choose.
///
/// # Errors
/// [`crate::Error::Unsupported`] for types of fields that cannot be written.
pub(super) fn may_repeat(array: &NewArray, keeps: &(dyn Fn(&str) -> bool + Sync)) -> Result<bool> {
    let schema = &array.schema;
    let fields = fields_of(schema);
    let shapes = FieldShape::of_all(schema, &fields)?;
    let mut fields = fields.iter().zip(&shapes);
    Ok(fields.any(|(field, shape)| {
        let place = Place::of(*field);
        place.is_some_and(|place| with_dictionary(schema, place, shape, keeps).is_some())
    }))
}

/// The filters of texts for which a dictionary costs less than none.
pub(super) fn choose(
    schema: &ArraySchema,
    shapes: &[FieldShape],
    sample: &Sample,
    keeps: &(dyn Fn(&str) -> bool + Sync),
) -> Vec<(Place, Pipeline)> {
    let fields = fields_of(schema);
    let fields = fields.par_iter().zip(shapes).enumerate();
    let chosen = fields.map_init(Scratch::new, |scratch, (i, (field, shape))| {
        let place = Place::of(*field)?;
        let (before, after) = with_dictionary(schema, place, shape, keeps)?;
        let part = sample.values(i, shape)?;
        if part.kind != ValueKind::Strings {
            return None;
        }
        let offsets = sample.offsets(i)?;
        let mut cost = |pipeline| {
            let offsets = (&schema.offsets_filters, &offsets);
            cost::with_offsets((pipeline, &part), offsets, Goal::Balanced, scratch)
        };
        (cost(&after)? < cost(before)?).then_some((place, after))
    });
    chosen.flatten().collect()
}

/// The filters of a field, and the same with a dictionary before them, if it is one of texts that can
/// have it and has none.
fn with_dictionary<'s>(
    schema: &'s ArraySchema,
    place: Place,
    shape: &FieldShape,
    keeps: &(dyn Fn(&str) -> bool + Sync),
) -> Option<(&'s Pipeline, Pipeline)> {
    let field = match place {
        Place::Attribute(i) => FieldIndex::Attribute(i),
        Place::Dimension(i) => FieldIndex::Dimension(i),
        Place::Offsets | Place::Validity => return None,
    };
    if !shape.is_var() || keeps(&shape.name) {
        return None;
    }
    let context: FilterContext<'_> = sample::context(schema, shape);
    let before = schema.filters_of(field);
    if before.keeps_offsets_in_data(&context) {
        return None;
    }
    let mut after = before.clone();
    after.filters.insert(0, Filter::Dictionary { level: -1 });
    let fits = after.keeps_offsets_in_data(&context)
        && after.check(shape.datatype, shape.cell_val_num).is_ok();
    fits.then_some((before, after))
}
