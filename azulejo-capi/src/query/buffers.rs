//! The caller's buffers: memory that a query writes into (or reads from) at each submission.

use crate::error::{Failure, Result};
use azulejo::column::{ColumnBuffers, ColumnMut};
use azulejo_format::Datatype;
use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;

/// Memory of the caller's and the place where its size is kept: what there is room for before a
/// submission, what was written after it.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    data: *mut u8,
    size: *mut u64,
    /// What `size` said when the buffer was set.
    capacity: usize,
}

// SAFETY: the C API asks callers to leave buffers alone while a query is submitted, from whatever
// thread that is; the query's lock orders submissions.
unsafe impl Send for Place {}

impl Place {
    /// Memory at `data` whose size `size` holds.
    pub fn new(data: *mut u8, size: *mut u64) -> Result<Self> {
        if size.is_null() {
            return Err("Cannot set buffer; the buffer size is null".into());
        }
        // SAFETY: C passes a place that holds the size.
        let capacity = unsafe { size.read_unaligned() };
        let capacity = usize::try_from(capacity)
            .map_err(|_| Failure::new("a buffer size does not fit this machine"))?;
        if data.is_null() && capacity > 0 {
            return Err("Cannot set buffer; the buffer is null, its size is not 0".into());
        }
        Ok(Self {
            data,
            size,
            capacity,
        })
    }

    /// The same size, with its bytes in other memory.
    pub fn moved_to(&self, memory: &OwnMemory) -> Self {
        Self {
            data: memory.data(),
            ..*self
        }
    }

    /// The address of the memory.
    pub fn data(&self) -> *mut u8 {
        self.data
    }

    /// The address of the size.
    pub fn size(&self) -> *mut u64 {
        self.size
    }

    /// Bytes that there are.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Says how much was written.
    pub fn set_size(&self, bytes: usize) {
        // SAFETY: the place for the size stays while the query has the buffer.
        unsafe { self.size.write_unaligned(bytes as u64) };
    }

    /// What the size says now.
    pub fn current(&self) -> u64 {
        // SAFETY: as in `set_size`.
        unsafe { self.size.read_unaligned() }
    }

    /// The memory, to be written.
    #[expect(
        clippy::mut_from_ref,
        reason = "the memory is the caller's, not the place's"
    )]
    pub fn bytes_mut(&self) -> &mut [u8] {
        if self.capacity == 0 || self.data.is_null() {
            return &mut [];
        }
        // SAFETY: the memory stays while the query has the buffer, and nobody else uses it during a
        // submission.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.capacity) }
    }

    /// The memory, to be read: as many bytes as the size says now. That may be more than when the
    /// buffer was set: a write sets it once and says before each submission how much there is.
    pub fn bytes(&self) -> &[u8] {
        self.first(usize::MAX)
    }

    /// The memory, to be read, at most `max` bytes of it.
    fn first(&self, max: usize) -> &[u8] {
        let len = usize::try_from(self.current()).unwrap_or(0).min(max);
        if len == 0 || self.data.is_null() {
            return &[];
        }
        // SAFETY: as in `bytes_mut`.
        unsafe { std::slice::from_raw_parts(self.data, len) }
    }
}

/// Memory of a query's own, for one that came with a message: a size, and perhaps bytes behind it.
#[derive(Debug)]
pub struct OwnMemory {
    words: *mut [u64],
}

// SAFETY: nobody else has the memory; places that lead there are used under the query's lock.
unsafe impl Send for OwnMemory {}

impl OwnMemory {
    /// Room for a size and `len` bytes.
    ///
    /// # Errors
    /// If there is no such memory: how much is wanted, others say.
    pub fn zeroed(len: usize) -> Result<Self> {
        let count = len.div_ceil(8) + 1;
        let none = || Failure::new(format!("there is no memory for a buffer of {len} bytes"));
        let layout = Layout::array::<u64>(count).map_err(|_| none())?;
        // SAFETY: the layout has at least one word.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(none)?;
        Ok(Self {
            words: std::ptr::slice_from_raw_parts_mut(memory.as_ptr().cast(), count),
        })
    }

    /// Bytes, and the place of them.
    pub fn holding(bytes: &[u8]) -> Result<(Self, Place)> {
        let own = Self::zeroed(bytes.len())?;
        let place = Place {
            data: own.data(),
            size: own.words.cast(),
            capacity: bytes.len(),
        };
        place.set_size(bytes.len());
        place.bytes_mut().copy_from_slice(bytes);
        Ok((own, place))
    }

    /// A size alone, and a place that has no memory yet.
    pub fn for_size(size: u64) -> Result<(Self, Place)> {
        let capacity = usize::try_from(size)
            .ok()
            .filter(|size| isize::try_from(*size).is_ok())
            .ok_or_else(|| Failure::new("a buffer size does not fit this machine"))?;
        let own = Self::zeroed(0)?;
        let place = Place {
            data: std::ptr::null_mut(),
            size: own.words.cast(),
            capacity,
        };
        place.set_size(capacity);
        Ok((own, place))
    }

    /// The bytes behind the size.
    fn data(&self) -> *mut u8 {
        // SAFETY: there is at least one word, and the address behind the last is one of the memory.
        unsafe { self.words.cast::<u64>().add(1).cast() }
    }

    /// Whether buffers of a field have their size or bytes here.
    pub fn is_of(&self, buffers: &FieldBuffers) -> bool {
        let places = [buffers.data, buffers.offsets, buffers.validity];
        places
            .into_iter()
            .flatten()
            .any(|place| place.size == self.words.cast() || place.data == self.data())
    }
}

impl Drop for OwnMemory {
    fn drop(&mut self) {
        // SAFETY: it was allocated with the layout of a box of words, and this is its only owner.
        drop(unsafe { Box::from_raw(self.words) });
    }
}

/// The buffers of one field.
#[derive(Debug, Clone)]
pub struct FieldBuffers {
    /// The field.
    pub name: String,
    /// Values.
    pub data: Option<Place>,
    /// Starts of var-length cells.
    pub offsets: Option<Place>,
    /// A byte a cell.
    pub validity: Option<Place>,
}

impl FieldBuffers {
    /// Bytes that the sizes say.
    pub fn current(&self) -> u64 {
        let places = [self.data, self.offsets, self.validity]
            .into_iter()
            .flatten();
        places
            .map(|place| place.current())
            .fold(0, u64::saturating_add)
    }

    /// Whether something was written.
    pub fn has_results(&self) -> bool {
        let places = [self.data, self.offsets].into_iter().flatten();
        places.into_iter().any(|place| place.current() > 0)
    }

    /// Says that nothing was written.
    pub fn clear(&self) {
        for place in [self.data, self.offsets, self.validity]
            .into_iter()
            .flatten()
        {
            place.set_size(0);
        }
    }
}

/// What offsets look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetsFormat {
    /// 4 bytes instead of 8.
    pub narrow: bool,
    /// They count values instead of bytes.
    pub elements: bool,
    /// One more at the end: where the next cell would start.
    pub extra: bool,
}

impl OffsetsFormat {
    /// Bytes of one.
    pub fn width(self) -> usize {
        if self.narrow { 4 } else { 8 }
    }

    /// What an offset in bytes is counted in.
    fn unit(self, datatype: Datatype) -> u64 {
        if self.elements {
            datatype.size() as u64
        } else {
            1
        }
    }

    /// Reads a caller's offsets as bytes, and the extra one. `cells`: how many there are, if other
    /// buffers tell.
    ///
    /// Sizes of buffers to write from count 8 bytes for each offset, also where these have 4, as in
    /// the reference; a size that counts 4 is understood where the number of cells is known. What is
    /// less than an offset behind the last one is none.
    pub fn read(
        self,
        place: &Place,
        cells: Option<usize>,
        datatype: Datatype,
    ) -> Result<(Vec<u64>, Option<u64>)> {
        let bytes = if self.narrow {
            let size = usize::try_from(place.current()).unwrap_or(0);
            let wanted = cells.map(|cells| cells + usize::from(self.extra));
            let count = wanted
                .filter(|wanted| size / 8 >= *wanted || size == wanted * 4)
                .unwrap_or(size / 8);
            place.first(count * 4)
        } else {
            place.bytes()
        };
        let unit = self.unit(datatype);
        // The engine wants one more than there are cells.
        let mut offsets: Vec<u64> = Vec::with_capacity(bytes.len() / self.width() + 1);
        if self.narrow {
            offsets.extend(
                bytes
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|b| u64::from(u32::from_le_bytes(*b))),
            );
        } else {
            offsets.extend(
                bytes
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .map(|b| u64::from_le_bytes(*b)),
            );
        }
        if unit > 1 {
            for offset in &mut offsets {
                *offset = offset
                    .checked_mul(unit)
                    .ok_or_else(|| Failure::new("an offset is too large"))?;
            }
        }
        let end = if self.extra { offsets.pop() } else { None };
        Ok((offsets, end))
    }
}

/// Where the offsets of one field go during a read.
#[derive(Debug)]
pub struct OffsetsTarget {
    place: Place,
    format: OffsetsFormat,
    datatype: Datatype,
    /// Used where they cannot be written in place.
    scratch: Vec<u64>,
    room: usize,
}

impl OffsetsTarget {
    /// The target of a field of values of `datatype`.
    pub fn new(place: Place, format: OffsetsFormat, datatype: Datatype) -> Self {
        let slots = place.capacity() / format.width();
        // Without room for the extra one there is room for no cell.
        let room = slots.saturating_sub(usize::from(format.extra));
        let direct = !format.narrow && place.data().cast::<u64>().is_aligned();
        let scratch = if direct { Vec::new() } else { vec![0; room] };
        Self {
            place,
            format,
            datatype,
            scratch,
            room,
        }
    }

    /// The numbers to be written.
    pub fn slots(&mut self) -> &mut [u64] {
        if !self.scratch.is_empty() || self.room == 0 {
            return &mut self.scratch;
        }
        let bytes = self.place.bytes_mut();
        // SAFETY: any bytes are numbers; the split keeps what is not aligned apart, and there is
        // none (see `new`).
        let (_, numbers, _) = unsafe { bytes.align_to_mut::<u64>() };
        numbers.get_mut(..self.room).unwrap_or_default()
    }

    /// Turns what was written for `cells` cells with `data` bytes into the caller's format; sets
    /// the size. Without cells there is no extra element either.
    pub fn finish(&mut self, cells: usize, data: usize) {
        if cells == 0 {
            return self.place.set_size(0);
        }
        let unit = self.format.unit(self.datatype);
        let extra = self.format.extra;
        let count = cells + usize::from(extra);
        if self.format.narrow || !self.scratch.is_empty() {
            let ends = extra.then_some(data as u64);
            let numbers = self
                .scratch
                .iter()
                .take(cells)
                .copied()
                .chain(ends)
                .map(|offset| offset / unit);
            let out = self.place.bytes_mut();
            if self.format.narrow {
                for (slot, number) in out.as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
                    *slot = u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
                }
            } else {
                for (slot, number) in out.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
                    *slot = number.to_le_bytes();
                }
            }
        } else {
            let chunks = self.place.bytes_mut().as_chunks_mut::<8>().0;
            if unit > 1 {
                for slot in chunks.iter_mut().take(cells) {
                    *slot = (u64::from_le_bytes(*slot) / unit).to_le_bytes();
                }
            }
            if extra && let Some(slot) = chunks.get_mut(cells) {
                *slot = (data as u64 / unit).to_le_bytes();
            }
        }
        self.place.set_size(count * self.format.width());
    }
}

/// Borrows buffers for a read of one field.
pub fn column_mut<'a>(
    buffers: &'a FieldBuffers,
    offsets: Option<&'a mut OffsetsTarget>,
) -> Result<ColumnMut<'a>> {
    let data = buffers.data.as_ref().ok_or_else(|| {
        Failure::new(format!(
            "Cannot read field '{}'; Data buffer was not set",
            buffers.name
        ))
    })?;
    Ok(ColumnMut {
        data: data.bytes_mut(),
        offsets: offsets.map(OffsetsTarget::slots),
        validity: buffers.validity.as_ref().map(Place::bytes_mut),
    })
}

/// Copies the cells of a column from cell `from` on, as many as there is room for: how many. Where
/// there is room for none the sizes are 0.
pub fn copy(
    column: &ColumnBuffers,
    from: usize,
    buffers: &FieldBuffers,
    format: OffsetsFormat,
) -> Result<usize> {
    let view = column.view();
    let datatype = column.column_type.datatype;
    let fail = |what: &str| {
        Failure::new(format!(
            "Cannot read field '{}'; {what} buffer was not set",
            buffers.name
        ))
    };
    let data = buffers.data.as_ref().ok_or_else(|| fail("Data"))?;
    let mut target = match (view.offsets, &buffers.offsets) {
        (Some(_), Some(place)) => Some(OffsetsTarget::new(*place, format, datatype)),
        (Some(_), None) => return Err(fail("Offsets")),
        (None, _) => None,
    };
    let mut cells = view.cell_num.saturating_sub(from);
    if let Some(target) = &mut target {
        cells = cells.min(target.slots().len());
    }
    if let Some(place) = buffers.validity {
        cells = cells.min(place.capacity());
    }
    let starts = view.offsets.map(|o| o.get(from..).unwrap_or_default());
    let first = starts.and_then(|s| s.first().copied()).unwrap_or(0);
    let bytes = match starts {
        Some(starts) => {
            // One more than the cells whose ends the memory reaches.
            let room = data.capacity() as u64;
            let within = starts.partition_point(|start| start - first <= room);
            cells = cells.min(within.saturating_sub(1));
            let end = starts.get(cells).copied().unwrap_or(first);
            view.data.get(first as usize..end as usize)
        }
        None => {
            cells = cells.min(data.capacity() / view.cell_size.max(1));
            view.data
                .get(from * view.cell_size..(from + cells) * view.cell_size)
        }
    };
    if cells == 0 {
        buffers.clear();
        return Ok(0);
    }
    let bytes = bytes.unwrap_or_default();
    if let Some(slice) = data.bytes_mut().get_mut(..bytes.len()) {
        slice.copy_from_slice(bytes);
    }
    data.set_size(bytes.len());
    if let (Some(target), Some(starts)) = (&mut target, starts) {
        for (slot, start) in target.slots().iter_mut().zip(starts).take(cells) {
            *slot = start - first;
        }
        target.finish(cells, bytes.len());
    }
    if let Some(place) = buffers.validity {
        let out = place.bytes_mut().get_mut(..cells).unwrap_or_default();
        match view.validity {
            Some(validity) => {
                out.copy_from_slice(validity.get(from..from + cells).unwrap_or_default());
            }
            None => out.fill(1),
        }
        place.set_size(cells);
    }
    Ok(cells)
}
