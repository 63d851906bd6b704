//! The reference's side: its C API, with buffers that are made once and reused.

use super::library::{Handle, TileDb, call};
use super::phases::{Buffers, Engine, Order, Phase, checksum, columns};
use std::ffi::{CString, c_char, c_int, c_void};
use std::time::Instant;

/// An array opened by the reference.
pub struct Reference {
    lib: TileDb,
    uri: CString,
    array: Handle,
    /// Name, bytes of a cell, memory, and how much of it the reference filled.
    fields: Vec<(CString, usize, Vec<u8>, u64)>,
}

impl Reference {
    pub fn new(name: &str, uri: &str, buffers: Buffers) -> Result<Self, String> {
        let lib = TileDb::load()?;
        let fields = (columns(name).iter().zip(buffers))
            .map(|((_, size), (name, data))| {
                Ok((
                    CString::new(name).map_err(|e| e.to_string())?,
                    *size,
                    data,
                    0,
                ))
            })
            .collect::<Result<_, String>>()?;
        let uri = CString::new(uri).map_err(|e| e.to_string())?;
        let mut this = Self {
            lib,
            uri,
            array: std::ptr::null_mut(),
            fields,
        };
        this.open()?;
        Ok(this)
    }

    fn open(&mut self) -> Result<(), String> {
        let lib = &self.lib;
        if !self.array.is_null() {
            call!(lib, "tiledb_array_close", (Handle), self.array)?;
            lib.free("tiledb_array_free", self.array);
        }
        let mut array: Handle = std::ptr::null_mut();
        call!(
            lib,
            "tiledb_array_alloc",
            (*const c_char, *mut Handle),
            self.uri.as_ptr(),
            &raw mut array
        )?;
        call!(lib, "tiledb_array_open", (Handle, c_int), array, 0)?;
        self.array = array;
        Ok(())
    }
}

impl Engine for Reference {
    fn run(&mut self, phase: &Phase) -> Result<(u64, u64, f64), String> {
        if phase.reopen {
            self.open()?;
        }
        let (mut cells, mut sum, mut summing) = (0, 0_u64, 0.0);
        let array = self.array;
        for bounds in &phase.boxes {
            let lib = &self.lib;
            let mut query: Handle = std::ptr::null_mut();
            call!(
                lib,
                "tiledb_query_alloc",
                (Handle, c_int, *mut Handle),
                array,
                0,
                &raw mut query
            )?;
            let order = match phase.order {
                Order::Row => 0,
                Order::Col => 1,
                Order::Global => 2,
                Order::Unordered => 3,
            };
            call!(
                lib,
                "tiledb_query_set_layout",
                (Handle, c_int),
                query,
                order
            )?;
            let mut subarray: Handle = std::ptr::null_mut();
            call!(
                lib,
                "tiledb_subarray_alloc",
                (Handle, *mut Handle),
                array,
                &raw mut subarray
            )?;
            for (d, [lo, hi]) in (0_u32..).zip(bounds) {
                let (lo, hi) = (lo.to_le_bytes(), hi.to_le_bytes());
                call!(
                    lib,
                    "tiledb_subarray_add_range",
                    (Handle, u32, *const c_void, *const c_void, *const c_void),
                    subarray,
                    d,
                    lo.as_ptr().cast(),
                    hi.as_ptr().cast(),
                    std::ptr::null()
                )?;
            }
            call!(
                lib,
                "tiledb_query_set_subarray_t",
                (Handle, Handle),
                query,
                subarray
            )?;
            let mut condition: Handle = std::ptr::null_mut();
            if let Some(below) = phase.below {
                let value = below.to_le_bytes();
                call!(
                    lib,
                    "tiledb_query_condition_alloc",
                    (*mut Handle),
                    &raw mut condition
                )?;
                call!(
                    lib,
                    "tiledb_query_condition_init",
                    (Handle, *const c_char, *const c_void, u64, c_int),
                    condition,
                    c"b".as_ptr(),
                    value.as_ptr().cast(),
                    4,
                    0
                )?;
                call!(
                    lib,
                    "tiledb_query_set_condition",
                    (Handle, Handle),
                    query,
                    condition
                )?;
            }
            loop {
                for (name, _, data, size) in &mut self.fields {
                    *size = data.len() as u64;
                    call!(
                        lib,
                        "tiledb_query_set_data_buffer",
                        (Handle, *const c_char, *mut c_void, *mut u64),
                        query,
                        name.as_ptr(),
                        data.as_mut_ptr().cast(),
                        &raw mut *size
                    )?;
                }
                call!(lib, "tiledb_query_submit", (Handle), query)?;
                let mut status: c_int = 0;
                call!(
                    lib,
                    "tiledb_query_get_status",
                    (Handle, *mut c_int),
                    query,
                    &raw mut status
                )?;
                let start = Instant::now();
                for (_, _, data, size) in &self.fields {
                    sum = sum.wrapping_add(checksum(&data[..*size as usize]));
                }
                cells += self
                    .fields
                    .first()
                    .map_or(0, |(_, cell, _, size)| size / *cell as u64);
                summing += start.elapsed().as_secs_f64();
                if status == 1 {
                    break;
                }
            }
            self.lib.free("tiledb_query_free", query);
            self.lib.free("tiledb_subarray_free", subarray);
            if !condition.is_null() {
                self.lib.free("tiledb_query_condition_free", condition);
            }
        }
        Ok((cells, sum, summing))
    }
}
