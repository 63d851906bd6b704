//! `tiledb_enumeration_t`.

use crate::attribute::cell_val_num;
use crate::boundary::{Bytes, In, Kind, Opaque, Out, Pointer, Ptr, Text, capi, capi_free};
use crate::enums::{datatype, datatype_id};
use crate::error::{Failure, Result};
use crate::strings::{Keep, StringHandle};
use azulejo_format::schema::Enumeration;
use azulejo_format::{CellValNum, Datatype};
use std::sync::{Arc, OnceLock};

/// `tiledb_enumeration_t`.
#[derive(Debug)]
pub struct EnumerationHandle {
    enumeration: Arc<Enumeration>,
    keep: Keep,
    /// The indices in the order of their values. Made when a value is first looked for: callers
    /// look for many, one at a time.
    sorted: OnceLock<Vec<usize>>,
}

impl Kind for EnumerationHandle {
    const NAME: &'static str = "enumeration";
}

impl EnumerationHandle {
    /// A handle on an enumeration.
    pub fn new(enumeration: Arc<Enumeration>) -> Self {
        Self {
            enumeration,
            keep: Keep::default(),
            sorted: OnceLock::new(),
        }
    }

    /// The enumeration.
    pub fn enumeration(&self) -> &Arc<Enumeration> {
        &self.enumeration
    }

    /// The index of a value, given by its bytes.
    fn index_of(&self, value: &[u8]) -> Option<usize> {
        let enumeration = &self.enumeration;
        let sorted = self.sorted.get_or_init(|| {
            let mut indices: Vec<usize> = (0..enumeration.len()).collect();
            indices.sort_unstable_by_key(|index| enumeration.value(*index));
            indices
        });
        let at = sorted
            .binary_search_by(|index| enumeration.value(*index).cmp(&Some(value)))
            .ok()?;
        sorted.get(at).copied()
    }
}

/// Cuts the caller's data into values.
fn values<'a>(
    num: CellValNum,
    cell: usize,
    data: &'a [u8],
    offsets: &Bytes,
    size: u64,
) -> Result<Vec<&'a [u8]>> {
    if num.is_var() {
        if offsets.is_null() && !data.is_empty() {
            return Err("Var-sized enumeration values require a non-null offsets pointer.".into());
        }
        if !size.is_multiple_of(8) {
            return Err("the size of the offsets of an enumeration is no multiple of 8".into());
        }
        let starts = offsets.get_u64s(size / 8)?;
        let ends = starts.iter().skip(1).copied().chain([data.len() as u64]);
        return starts
            .iter()
            .zip(ends)
            .map(|(start, end)| {
                let range = usize::try_from(*start).ok().zip(usize::try_from(end).ok());
                range
                    .and_then(|(start, end)| data.get(start..end))
                    .ok_or_else(|| {
                        Failure::new("the offsets of an enumeration leave its data or go back")
                    })
            })
            .collect();
    }
    if !offsets.is_null() && size > 0 {
        return Err("Fixed length value type defined but offsets size is non-zero.".into());
    }
    if cell == 0 || !data.len().is_multiple_of(cell) {
        return Err("Invalid data size is not a multiple of the cell size.".into());
    }
    Ok(data.chunks_exact(cell).collect())
}

/// The bytes of the caller's values; null if there are none.
fn bytes_of(data: &Bytes, size: u64) -> Result<&[u8]> {
    if data.is_null() != (size == 0) {
        return Err("an enumeration's data and its size do not go together".into());
    }
    data.get64(size)
}

fn new_enumeration(
    name: &str,
    datatype: Datatype,
    num: CellValNum,
    ordered: bool,
    data: &Bytes,
    data_size: u64,
    offsets: &Bytes,
    offsets_size: u64,
) -> Result<Enumeration> {
    // The empty text alone has no bytes, and may come from somewhere all the same.
    let data: &[u8] = match num.is_var() && data_size == 0 && offsets_size > 0 {
        true => &[],
        false => bytes_of(data, data_size)?,
    };
    let cell = num.cell_size(datatype).unwrap_or(0);
    let values = values(num, cell, data, offsets, offsets_size)?;
    Ok(match num {
        CellValNum::Var => Enumeration::of_strings(name, datatype, ordered, values)?,
        CellValNum::Fixed(_) => Enumeration::of_fixed(name, datatype, num, ordered, data.to_vec())?,
    })
}

capi! {
    /// An enumeration. `data` holds its values; `offsets` (`uint64_t`) where each starts, if they
    /// vary in length.
    fn tiledb_enumeration_alloc(
        ctx, name: Text, id: i32, num: u32, ordered: i32, data: Bytes, data_size: u64, offsets: Bytes, offsets_size: u64,
        enumeration: Out<Ptr<EnumerationHandle>>
    ) {
        let made = new_enumeration(
            name.get()?, datatype(id)?, cell_val_num(num)?, ordered != 0, &data, data_size, &offsets, offsets_size,
        )?;
        enumeration.give(EnumerationHandle::new(Arc::new(made)))?;
    }

    /// An enumeration with more values behind those that it has; there may be none where they are of
    /// fixed size.
    fn tiledb_enumeration_extend(
        ctx, old: In<EnumerationHandle>, data: Bytes, data_size: u64, offsets: Bytes, offsets_size: u64,
        new: Out<Ptr<EnumerationHandle>>
    ) {
        let old = &old.get()?.enumeration;
        let is_var = old.cell_val_num.is_var();
        if (!offsets.is_null(), offsets_size > 0) != (is_var, is_var) {
            return Err("Values that vary in length are given with offsets, those of fixed size without.".into());
        }
        let bytes = bytes_of(&data, data_size)?;
        let cell = old.cell_size().unwrap_or(0);
        let values = values(old.cell_val_num, cell, bytes, &offsets, offsets_size)?;
        new.give(EnumerationHandle::new(Arc::new(old.extend(values)?)))?;
    }

    /// The name.
    fn tiledb_enumeration_get_name(ctx, enumeration: In<EnumerationHandle>, name: Out<Ptr<StringHandle>>) {
        name.give(StringHandle::new(enumeration.get()?.enumeration.name.clone()))?;
    }

    /// The type of values.
    fn tiledb_enumeration_get_type(ctx, enumeration: In<EnumerationHandle>, id: Out<i32>) {
        id.set(datatype_id(enumeration.get()?.enumeration.datatype))?;
    }

    /// The number of values in an entry.
    fn tiledb_enumeration_get_cell_val_num(ctx, enumeration: In<EnumerationHandle>, num: Out<u32>) {
        num.set(enumeration.get()?.enumeration.cell_val_num.id())?;
    }

    /// Whether the order of the entries means something.
    fn tiledb_enumeration_get_ordered(ctx, enumeration: In<EnumerationHandle>, ordered: Out<i32>) {
        ordered.set(enumeration.get()?.enumeration.ordered.into())?;
    }

    /// The entries' bytes, which live as long as the handle.
    fn tiledb_enumeration_get_data(ctx, enumeration: In<EnumerationHandle>, data: Out<Pointer>, size: Out<u64>) {
        let handle = enumeration.get()?;
        let bytes = &handle.enumeration.data;
        data.set(if bytes.is_empty() { Pointer::default() } else { handle.keep.bytes(bytes) })?;
        size.set(bytes.len() as u64)?;
    }

    /// Where each entry starts (`uint64_t`); null for entries of fixed size.
    fn tiledb_enumeration_get_offsets(ctx, enumeration: In<EnumerationHandle>, offsets: Out<Pointer>, size: Out<u64>) {
        let handle = enumeration.get()?;
        let bytes: Vec<u8> = handle.enumeration.offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        offsets.set(if bytes.is_empty() { Pointer::default() } else { handle.keep.bytes(&bytes) })?;
        size.set(bytes.len() as u64)?;
    }

    /// Whether an entry exists, and its index; `UINT64_MAX` if it does not.
    fn tiledb_enumeration_get_value_index(
        ctx, enumeration: In<EnumerationHandle>, value: Bytes, size: u64, exist: Out<i32>, index: Out<u64>
    ) {
        let found = enumeration.get()?.index_of(value.get64(size)?);
        exist.set(found.is_some().into())?;
        index.set(found.map_or(u64::MAX, |index| index as u64))?;
    }

    /// The enumeration as text for people.
    fn tiledb_enumeration_dump_str(ctx, enumeration: In<EnumerationHandle>, out: Out<Ptr<StringHandle>>) {
        out.give(StringHandle::new(crate::dump::enumeration(&enumeration.get()?.enumeration)))?;
    }

    /// The enumeration as text for people, to a `FILE*`. A name that libtiledb had until 2.29.
    fn tiledb_enumeration_dump(ctx, enumeration: In<EnumerationHandle>, out: Opaque) {
        out.put_text(&crate::dump::enumeration(&enumeration.get()?.enumeration))?;
    }
}

capi_free! {
    fn tiledb_enumeration_free(EnumerationHandle);
}
