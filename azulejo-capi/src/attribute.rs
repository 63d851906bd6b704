//! `tiledb_attribute_t`.

use crate::boundary::{Bytes, In, Kind, Opaque, Out, Pointer, Ptr, Str, Text, capi, capi_free};
use crate::enums::{datatype, datatype_id};
use crate::error::{Failure, Result};
use crate::filter::FilterList;
use crate::strings::{Keep, StringHandle, lock};
use azulejo_format::schema::Attribute;
use azulejo_format::{CellValNum, Datatype};
use std::sync::{Arc, Mutex};

/// An attribute as its handles and schemas share it: what is set through one shows in the others.
pub type SharedAttribute = Arc<Mutex<Attribute>>;

/// `tiledb_attribute_t`.
#[derive(Debug)]
pub struct AttributeHandle {
    attribute: SharedAttribute,
    keep: Keep,
}

impl Kind for AttributeHandle {
    const NAME: &'static str = "attribute";
}

impl AttributeHandle {
    /// A handle on an attribute.
    pub fn new(attribute: SharedAttribute) -> Self {
        Self {
            attribute,
            keep: Keep::default(),
        }
    }

    /// The attribute itself.
    pub fn shared(&self) -> SharedAttribute {
        Arc::clone(&self.attribute)
    }

    /// The attribute as it is now.
    pub fn attribute(&self) -> Attribute {
        lock(&self.attribute).clone()
    }
}

/// Values in a cell from C's number.
pub fn cell_val_num(id: u32) -> Result<CellValNum> {
    CellValNum::from_id(id, 0).map_err(|_| Failure::new("a cell cannot have 0 values"))
}

/// The error of a fill value asked for or set in the way for the other nullability.
fn wrong_nullability(attribute: &Attribute) -> Failure {
    let not = if attribute.nullable { "" } else { " not" };
    Failure::new(format!(
        "Attribute '{}': cannot use this function for a fill value, as it is{not} nullable",
        attribute.name
    ))
}

fn set_fill(attribute: &mut Attribute, value: &Bytes, size: u64) -> Result<()> {
    if value.is_null() || size == 0 {
        return Err(Failure::new(format!(
            "Attribute '{}': the fill value is empty",
            attribute.name
        )));
    }
    if attribute
        .cell_size()
        .is_some_and(|cell| cell as u64 != size)
    {
        return Err(Failure::new(format!(
            "Attribute '{}': a fill value of {size} bytes is not the size of a cell",
            attribute.name
        )));
    }
    attribute.fill_value = value.get64(size)?.to_vec();
    Ok(())
}

/// The usual fill value, as after every change of what cells are.
fn reset_fill(attribute: &mut Attribute) {
    let usual = Attribute::new("", attribute.datatype, attribute.cell_val_num);
    attribute.fill_value = usual.fill_value;
    attribute.fill_validity = false;
}

capi! {
    /// An attribute with one value a cell (`ANY`: any number) that is not nullable, without
    /// filters.
    fn tiledb_attribute_alloc(ctx, name: Text, id: i32, attr: Out<Ptr<AttributeHandle>>) {
        let datatype = datatype(id)?;
        let num = if datatype == Datatype::Any { CellValNum::Var } else { CellValNum::ONE };
        let attribute = Attribute::new(name.get()?, datatype, num);
        attr.give(AttributeHandle::new(Arc::new(Mutex::new(attribute))))?;
    }

    /// Whether cells can be null.
    fn tiledb_attribute_set_nullable(ctx, attr: In<AttributeHandle>, nullable: u8) {
        lock(&attr.get()?.attribute).nullable = nullable != 0;
    }

    /// The filters of the attribute's data: a copy of the list.
    fn tiledb_attribute_set_filter_list(ctx, attr: In<AttributeHandle>, list: In<FilterList>) {
        let (attr, filters) = (attr.get()?, list.get()?.pipeline());
        let mut attribute = lock(&attr.attribute);
        crate::filter::check_types(&filters, attribute.datatype, &format!("attribute '{}'", attribute.name))?;
        attribute.filters = filters;
    }

    /// The number of values in a cell; `UINT32_MAX` for any number.
    fn tiledb_attribute_set_cell_val_num(ctx, attr: In<AttributeHandle>, num: u32) {
        let mut attribute = lock(&attr.get()?.attribute);
        if attribute.datatype == Datatype::Any && num != CellValNum::VAR_ID {
            return Err(Failure::new(format!("Attribute '{}': ANY has any number of values in a cell", attribute.name)));
        }
        attribute.cell_val_num = cell_val_num(num)?;
        reset_fill(&mut attribute);
    }

    /// The name; it lives as long as the handle.
    fn tiledb_attribute_get_name(ctx, attr: In<AttributeHandle>, name: Out<Str>) {
        let attr = attr.get()?;
        name.set(attr.keep.text(&lock(&attr.attribute).name))?;
    }

    /// The type of values.
    fn tiledb_attribute_get_type(ctx, attr: In<AttributeHandle>, id: Out<i32>) {
        id.set(datatype_id(lock(&attr.get()?.attribute).datatype))?;
    }

    /// Whether cells can be null.
    fn tiledb_attribute_get_nullable(ctx, attr: In<AttributeHandle>, nullable: Out<u8>) {
        nullable.set(lock(&attr.get()?.attribute).nullable.into())?;
    }

    /// A copy of the filters.
    fn tiledb_attribute_get_filter_list(ctx, attr: In<AttributeHandle>, list: Out<Ptr<FilterList>>) {
        list.give(FilterList::new(attr.get()?.attribute().filters))?;
    }

    /// The number of values in a cell.
    fn tiledb_attribute_get_cell_val_num(ctx, attr: In<AttributeHandle>, num: Out<u32>) {
        num.set(lock(&attr.get()?.attribute).cell_val_num.id())?;
    }

    /// Bytes of a cell; `UINT64_MAX` where they vary.
    fn tiledb_attribute_get_cell_size(ctx, attr: In<AttributeHandle>, size: Out<u64>) {
        let cell_size = lock(&attr.get()?.attribute).cell_size();
        size.set(cell_size.map_or(u64::MAX, |size| size as u64))?;
    }

    /// What unwritten cells read as.
    fn tiledb_attribute_set_fill_value(ctx, attr: In<AttributeHandle>, value: Bytes, size: u64) {
        let mut attribute = lock(&attr.get()?.attribute);
        if attribute.nullable {
            return Err(wrong_nullability(&attribute));
        }
        set_fill(&mut attribute, &value, size)?;
    }

    /// What unwritten cells read as; the bytes live as long as the handle.
    fn tiledb_attribute_get_fill_value(ctx, attr: In<AttributeHandle>, value: Out<Pointer>, size: Out<u64>) {
        let attr = attr.get()?;
        let attribute = lock(&attr.attribute);
        if attribute.nullable {
            return Err(wrong_nullability(&attribute));
        }
        value.set(attr.keep.bytes(&attribute.fill_value))?;
        size.set(attribute.fill_value.len() as u64)?;
    }

    /// What unwritten cells of a nullable attribute read as.
    fn tiledb_attribute_set_fill_value_nullable(ctx, attr: In<AttributeHandle>, value: Bytes, size: u64, valid: u8) {
        let mut attribute = lock(&attr.get()?.attribute);
        if !attribute.nullable {
            return Err(wrong_nullability(&attribute));
        }
        set_fill(&mut attribute, &value, size)?;
        attribute.fill_validity = valid != 0;
    }

    /// What unwritten cells of a nullable attribute read as; the bytes live as long as the handle.
    fn tiledb_attribute_get_fill_value_nullable(
        ctx, attr: In<AttributeHandle>, value: Out<Pointer>, size: Out<u64>, valid: Out<u8>
    ) {
        let attr = attr.get()?;
        let attribute = lock(&attr.attribute);
        if !attribute.nullable {
            return Err(wrong_nullability(&attribute));
        }
        value.set(attr.keep.bytes(&attribute.fill_value))?;
        size.set(attribute.fill_value.len() as u64)?;
        valid.set(attribute.fill_validity.into())?;
    }

    /// The enumeration that the values index; null for none.
    fn tiledb_attribute_set_enumeration_name(ctx, attr: In<AttributeHandle>, name: Text) {
        let name = name.opt()?.filter(|name| !name.is_empty());
        lock(&attr.get()?.attribute).enumeration = name.map(str::to_owned);
    }

    /// The enumeration that the values index; null if there is none.
    fn tiledb_attribute_get_enumeration_name(ctx, attr: In<AttributeHandle>, name: Out<Ptr<StringHandle>>) {
        match attr.get()?.attribute().enumeration {
            Some(found) => name.give(StringHandle::new(found))?,
            None => name.set(Ptr::default())?,
        }
    }

    /// The attribute as text for people.
    fn tiledb_attribute_dump_str(ctx, attr: In<AttributeHandle>, out: Out<Ptr<StringHandle>>) {
        out.give(StringHandle::new(crate::dump::attribute(&attr.get()?.attribute())))?;
    }

    /// The attribute as text for people, to a `FILE*`. A name that libtiledb had until 2.29.
    fn tiledb_attribute_dump(ctx, attr: In<AttributeHandle>, out: Opaque) {
        out.put_text(&crate::dump::attribute(&attr.get()?.attribute()))?;
    }
}

capi_free! {
    fn tiledb_attribute_free(AttributeHandle);
}
