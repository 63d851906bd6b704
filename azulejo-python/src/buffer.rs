//! Memory of the engine's as a Python buffer, which numpy looks at without a copy.

use pyo3::exceptions::PyBufferError;
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
