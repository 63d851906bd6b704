//! `tiledb_buffer_t` and `tiledb_buffer_list_t`: what serialization fills and reads.

use crate::boundary::{In, Kind, Opaque, Out, Pointer, Ptr, capi, capi_free};
use crate::enums::{datatype, datatype_id};
use crate::error::{Failure, Result};
use crate::strings::lock;
use azulejo_format::Datatype;
use std::sync::{Arc, Mutex};

/// `tiledb_buffer_t`.
#[derive(Debug)]
pub struct Buffer {
    state: Mutex<BufferState>,
}

/// A buffer's type and where its bytes are: the caller's own, or ours.
#[derive(Debug)]
struct BufferState {
    datatype: Datatype,
    data: usize,
    size: u64,
    own: Option<Arc<[u8]>>,
}

impl Kind for Buffer {
    const NAME: &'static str = "buffer";
}

/// `tiledb_buffer_list_t`.
#[derive(Debug)]
pub struct BufferList {
    parts: Vec<Arc<[u8]>>,
}

impl Kind for BufferList {
    const NAME: &'static str = "buffer_list";
}

impl Buffer {
    fn new(own: Option<Arc<[u8]>>) -> Self {
        let state = BufferState {
            datatype: Datatype::UInt8,
            data: 0,
            size: 0,
            own,
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// A buffer with these bytes.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self::new(Some(bytes.into()))
    }

    /// Puts bytes in the place of those that the buffer has.
    pub fn fill(&self, bytes: Vec<u8>) {
        let mut state = lock(&self.state);
        (state.own, state.data, state.size) = (Some(bytes.into()), 0, 0);
    }

    /// The bytes as they are now.
    pub fn bytes(&self) -> Result<Arc<[u8]>> {
        let state = lock(&self.state);
        match &state.own {
            Some(own) => Ok(Arc::clone(own)),
            None => {
                let pointer = Pointer(state.data as *const _);
                Ok(crate::boundary::bytes_of(pointer).get64(state.size)?.into())
            }
        }
    }
}

impl BufferList {
    /// A list of buffers with these bytes.
    pub fn of(parts: Vec<Vec<u8>>) -> Self {
        Self {
            parts: parts.into_iter().map(Arc::from).collect(),
        }
    }
}

capi! {
    /// A buffer without bytes.
    fn tiledb_buffer_alloc(ctx, buffer: Out<Ptr<Buffer>>) {
        buffer.give(Buffer::new(None))?;
    }

    /// The type of a buffer's values.
    fn tiledb_buffer_get_type(ctx, buffer: In<Buffer>, out: Out<i32>) {
        out.set(datatype_id(lock(&buffer.get()?.state).datatype))?;
    }

    /// Sets the type of a buffer's values.
    fn tiledb_buffer_set_type(ctx, buffer: In<Buffer>, id: i32) {
        lock(&buffer.get()?.state).datatype = datatype(id)?;
    }

    /// Where a buffer's bytes are, and how many.
    fn tiledb_buffer_get_data(ctx, buffer: In<Buffer>, data: Out<Pointer>, size: Out<u64>) {
        let state = lock(&buffer.get()?.state);
        match &state.own {
            Some(own) => {
                data.set(Pointer(own.as_ptr().cast()))?;
                size.set(own.len() as u64)?;
            }
            None => {
                data.set(Pointer(state.data as *const _))?;
                size.set(state.size)?;
            }
        }
    }

    /// Points a buffer at the caller's bytes, which are not copied.
    fn tiledb_buffer_set_data(ctx, buffer: In<Buffer>, data: Opaque, size: u64) {
        let mut state = lock(&buffer.get()?.state);
        state.own = None;
        state.data = data.0 as usize;
        state.size = size;
    }

    /// A list without buffers.
    fn tiledb_buffer_list_alloc(ctx, list: Out<Ptr<BufferList>>) {
        list.give(BufferList::of(Vec::new()))?;
    }

    /// The number of buffers.
    fn tiledb_buffer_list_get_num_buffers(ctx, list: In<BufferList>, num: Out<u64>) {
        num.set(list.get()?.parts.len() as u64)?;
    }

    /// A buffer of a list, whose bytes it shares.
    fn tiledb_buffer_list_get_buffer(ctx, list: In<BufferList>, index: u64, buffer: Out<Ptr<Buffer>>) {
        let parts = &list.get()?.parts;
        let found = usize::try_from(index).ok().and_then(|index| parts.get(index));
        let found = found.ok_or_else(|| Failure::new(format!("there is no buffer {index} in the list")))?;
        buffer.give(Buffer::new(Some(Arc::clone(found))))?;
    }

    /// Bytes of all buffers.
    fn tiledb_buffer_list_get_total_size(ctx, list: In<BufferList>, size: Out<u64>) {
        size.set(list.get()?.parts.iter().map(|part| part.len() as u64).sum())?;
    }

    /// The bytes of all buffers as one.
    fn tiledb_buffer_list_flatten(ctx, list: In<BufferList>, buffer: Out<Ptr<Buffer>>) {
        buffer.give(Buffer::of(list.get()?.parts.concat()))?;
    }
}

capi_free! {
    fn tiledb_buffer_free(Buffer);
    fn tiledb_buffer_list_free(BufferList);
}
