//! Labelling a dimension of an array that is there.

use super::ArrayHandle;
use super::create::put_schema;
use super::evolve::{next_name, put_next};
use super::head::Head;
use super::tile_object::clean_up_unseen;
use crate::column::{ColumnBuffers, ColumnSet};
use crate::context::Location;
use crate::error::{Error, Result};
use crate::storage::Uri;
use crate::write::{WriteLayout, WriteOptions};
use azulejo_format::NdRectangle;
use azulejo_format::path::{RootFolder, schema_path};
use azulejo_format::schema::{ArraySchema, DataOrder, DimensionLabel};

/// A label for a dimension: a value for each of its coordinates.
#[derive(Debug, Clone)]
pub struct NewLabel {
    /// The index of the dimension.
    pub dimension: u32,
    /// The order of the values.
    pub order: DataOrder,
    /// The values from the low end of the dimension's domain to the high one: numbers, or text of
    /// the type `STRING_ASCII`. The column's name is the label's.
    pub values: ColumnBuffers,
}

impl NewLabel {
    /// What a schema says of it, if its array lies in a folder of this name.
    #[must_use]
    pub fn reference(&self, folder: &str) -> DimensionLabel {
        let column = &self.values.column_type;
        let name: &str = &column.name;
        DimensionLabel::within(self.dimension, name, self.order, column.datatype, folder)
    }
}

impl ArrayHandle {
    /// Gives a dimension of a dense array a label, from `timestamp` on (milliseconds since
    /// 1970-01-01 UTC; now unless given). Opened at a time before, the array does not have it.
    ///
    /// The label's values are stored first, where nobody looks for them; the schema that names them
    /// makes them visible. It is of format version 22 (or newer, if the array is).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for sparse arrays, a name that is taken, values that are not as
    /// many as the dimension has coordinates, and a timestamp that is not after the schema's.
    pub fn add_label(&self, label: &NewLabel, timestamp: Option<u64>) -> Result<()> {
        let Self { context, uri } = self;

        let (lock, head) = Head::locked(context, uri)?;
        let bad = |reason: &dyn std::fmt::Display| {
            let name = &label.values.column_type.name;
            Error::InvalidArgument(format!("cannot label {}: {name}: {reason}", head.uri))
        };
        let bounds = bounds(&head.schema, label).map_err(|reason| bad(&reason))?;
        let mut folder = free_folder(&head.location)?;
        if lock.is_claim() {
            // Who takes this process for dead may find the same folder free, and each would take the
            // other's files for its own.
            folder = format!("{folder}_{}", uuid::Uuid::new_v4().simple());
        }
        let reference = label.reference(&folder);
        let (next, own) = (head.schema)
            .labelled(reference.clone())
            .map_err(|error| bad(&error))?;
        let name = next_name(&head, timestamp)?;
        let place = Location {
            storage: head.location.storage.clone(),
            path: head.location.path.join(&reference.uri),
        };
        let write = || -> Result<()> {
            put_schema(context, &place, &own, &name)?;
            let mut values = label.values.clone();
            values.column_type.name = reference.attribute.as_str().into();
            let array = context.array(&Uri::from_path(place.path.clone()).to_string());
            let options = WriteOptions::new().timestamp(name.t_end);
            let mut writer = array.writer(options.layout(WriteLayout::Row))?;
            writer.write_box(&bounds, &ColumnSet::of([values])?)?;
            writer.finish()?;
            lock.confirm(&head.location)?;
            put_next(context, &head, &next, &name)
        };
        write().inspect_err(|error| {
            let schema = head.location.path.join(&schema_path(&name, next.version));
            let parts = std::slice::from_ref(&place.path);
            clean_up_unseen(&*head.location.storage, &schema, parts, error);
        })
    }
}

/// The coordinates that are labelled: all of the dimension's.
fn bounds(schema: &ArraySchema, label: &NewLabel) -> std::result::Result<NdRectangle, String> {
    if !schema.is_dense() {
        return Err("sparse arrays have no labels".to_owned());
    }
    let dimension = schema
        .dimension(label.dimension as usize)
        .ok_or_else(|| format!("there is no dimension {}", label.dimension))?;
    let domain = dimension.domain.clone();
    let axis = dimension.axis();
    let length = axis.and_then(|axis| u64::try_from(axis.cells()).ok());
    let own = label.values.cell_num as u64;
    match (domain, length) {
        (Some(domain), Some(length)) if length == own => Ok(NdRectangle {
            ranges: vec![domain],
        }),
        (_, length) => Err(format!(
            "{own} values are not one for each coordinate of {:?}, which has {}",
            dimension.name,
            length.map_or("too many".to_owned(), |length| length.to_string())
        )),
    }
}

/// A name that no label's folder has; one may be there that a killed process has left.
fn free_folder(array: &Location) -> Result<String> {
    let labels = array.path.join(RootFolder::Labels.name());
    let taken = array.storage.list(&labels)?;
    let number = (0..=taken.len()).find(|number| {
        let name = format!("l{number}");
        !taken.iter().any(|entry| entry.name == name)
    });
    Ok(format!("l{}", number.unwrap_or(taken.len())))
}
