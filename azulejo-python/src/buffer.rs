//! Memory of the engine's as a Python buffer, which numpy looks at without a copy.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CString, c_int, c_void};

/// Bytes of a result. Whoever looks at them keeps them alive.
#[pyclass(frozen)]
#[derive(Debug)]
pub struct Buffer {
    bytes: arrow_buffer::Buffer,
    /// Nobody else has the memory: it may be written to.
    owned: bool,
}

impl Buffer {
    /// A buffer over a result's memory.
    pub fn new(bytes: arrow_buffer::Buffer) -> Self {
        let owned = bytes.strong_count() == 1;
        Self { bytes, owned }
    }
}

#[pymethods]
impl Buffer {
    fn __len__(&self) -> usize {
        self.bytes.len()
    }

    #[expect(
        unsafe_code,
        reason = "Python's buffer protocol; no other way lends memory to numpy without a copy"
    )]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        let this = slf.get();
        let writable = flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE;
        if writable && !this.owned {
            return Err(PyBufferError::new_err(
                "these bytes are shared and cannot be written to",
            ));
        }
        let format = match flags & ffi::PyBUF_FORMAT == ffi::PyBUF_FORMAT {
            true => CString::new("B")
                .map_err(|_| PyBufferError::new_err("a format"))?
                .into_raw(),
            false => std::ptr::null_mut(),
        };
        // SAFETY: `view` is not null and Python's to fill. The memory belongs to `slf`, which the
        // view owns a reference to, so it outlives the view and does not move. Only memory that
        // nobody else has (`owned`) is lent for writing.
        unsafe {
            (*view).buf = this.bytes.as_ptr() as *mut c_void;
            (*view).len = this.bytes.len() as isize;
            (*view).readonly = c_int::from(!this.owned);
            (*view).itemsize = 1;
            (*view).format = format;
            (*view).ndim = 1;
            (*view).shape = match flags & ffi::PyBUF_ND == ffi::PyBUF_ND {
                true => &raw mut (*view).len,
                false => std::ptr::null_mut(),
            };
            (*view).strides = match flags & ffi::PyBUF_STRIDES == ffi::PyBUF_STRIDES {
                true => &raw mut (*view).itemsize,
                false => std::ptr::null_mut(),
            };
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = std::ptr::null_mut();
            (*view).obj = slf.into_ptr();
        }
        Ok(())
    }

    #[expect(unsafe_code, reason = "the other half of the buffer protocol")]
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: the format is what `__getbuffer__` made, or null.
        unsafe {
            if !(*view).format.is_null() {
                drop(CString::from_raw((*view).format));
            }
        }
    }
}

/// A buffer's memory, as long as nobody writes to it.
#[expect(
    unsafe_code,
    reason = "numpy's memory is written from without a copy; the buffer protocol says that it lies there until released"
)]
pub fn slice<T: pyo3::buffer::Element>(buffer: &PyBuffer<T>) -> PyResult<&[T]> {
    if !buffer.is_c_contiguous() {
        return Err(PyValueError::new_err(
            "the values do not lie one after another",
        ));
    }
    let items = buffer.item_count();
    if items == 0 {
        return Ok(&[]);
    }
    // SAFETY: the exporter keeps `items` values at this address until the buffer is released, which
    // the borrow outlives not; PyBuffer has checked type and alignment. As with numpy's own
    // functions that release the GIL, a program that changes an array while another thread writes
    // it gets some mixture of the values.
    Ok(unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<T>(), items) })
}

/// A buffer's memory to be written to.
#[expect(
    unsafe_code,
    clippy::mut_from_ref,
    reason = "numpy's memory is read into without a copy, as `slice` reads from it"
)]
pub fn slice_mut<T: pyo3::buffer::Element>(buffer: &PyBuffer<T>) -> PyResult<&mut [T]> {
    if buffer.readonly() {
        return Err(PyValueError::new_err("this memory cannot be written to"));
    }
    if !buffer.is_c_contiguous() {
        return Err(PyValueError::new_err(
            "the memory does not lie in one piece",
        ));
    }
    let items = buffer.item_count();
    if items == 0 {
        return Ok(&mut []);
    }
    // SAFETY: as in `slice`, and the exporter lets us write. The package takes each array for one
    // field only, so that no two of these overlap.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.buf_ptr().cast::<T>(), items) })
}
