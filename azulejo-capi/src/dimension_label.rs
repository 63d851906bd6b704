//! `tiledb_dimension_label_t`.

use crate::boundary::{In, Kind, Out, Str, capi, capi_free};
use crate::enums::datatype_id;
use crate::strings::Keep;
use azulejo_format::schema::DimensionLabel;

/// `tiledb_dimension_label_t`.
#[derive(Debug)]
pub struct LabelHandle {
    label: DimensionLabel,
    keep: Keep,
}

impl Kind for LabelHandle {
    const NAME: &'static str = "dimension_label";
}

impl LabelHandle {
    /// A handle on a label.
    pub fn new(label: DimensionLabel) -> Self {
        Self {
            label,
            keep: Keep::default(),
        }
    }
}

capi! {
    /// The index of the labelled dimension.
    fn tiledb_dimension_label_get_dimension_index(ctx, label: In<LabelHandle>, index: Out<u32>) {
        index.set(label.get()?.label.dimension)?;
    }

    /// The attribute of the label's array that holds the values.
    fn tiledb_dimension_label_get_label_attr_name(ctx, label: In<LabelHandle>, name: Out<Str>) {
        let label = label.get()?;
        name.set(label.keep.text(&label.label.attribute))?;
    }

    /// The number of values in a label.
    fn tiledb_dimension_label_get_label_cell_val_num(ctx, label: In<LabelHandle>, num: Out<u32>) {
        num.set(label.get()?.label.cell_val_num.id())?;
    }

    /// The order of the labels.
    fn tiledb_dimension_label_get_label_order(ctx, label: In<LabelHandle>, order: Out<i32>) {
        order.set(label.get()?.label.order as i32)?;
    }

    /// The type of the labels.
    fn tiledb_dimension_label_get_label_type(ctx, label: In<LabelHandle>, id: Out<i32>) {
        id.set(datatype_id(label.get()?.label.datatype))?;
    }

    /// The label's name.
    fn tiledb_dimension_label_get_name(ctx, label: In<LabelHandle>, name: Out<Str>) {
        let label = label.get()?;
        name.set(label.keep.text(&label.label.name))?;
    }

    /// Where the label's array lies, relative to the array or whole.
    fn tiledb_dimension_label_get_uri(ctx, label: In<LabelHandle>, uri: Out<Str>) {
        let label = label.get()?;
        uri.set(label.keep.text(&label.label.uri))?;
    }
}

capi_free! {
    fn tiledb_dimension_label_free(LabelHandle);
}
