//! libwebp.

use super::{NAME, Webp};
use crate::error::{DecodeError, Result};
use libwebp_sys as ffi;
use std::ffi::{c_int, c_void};
use std::ptr;

type Decode = unsafe extern "C" fn(*const u8, usize, *mut u8, usize, c_int) -> *mut u8;
type Lossy = unsafe extern "C" fn(*const u8, c_int, c_int, c_int, f32, *mut *mut u8) -> usize;
type Lossless = unsafe extern "C" fn(*const u8, c_int, c_int, c_int, *mut *mut u8) -> usize;

/// The functions of a colour format.
fn functions(depth: usize, is_bgr: bool) -> (Decode, Lossy, Lossless) {
    match (depth, is_bgr) {
        (3, false) => (
            ffi::WebPDecodeRGBInto,
            ffi::WebPEncodeRGB,
            ffi::WebPEncodeLosslessRGB,
        ),
        (3, true) => (
            ffi::WebPDecodeBGRInto,
            ffi::WebPEncodeBGR,
            ffi::WebPEncodeLosslessBGR,
        ),
        (_, false) => (
            ffi::WebPDecodeRGBAInto,
            ffi::WebPEncodeRGBA,
            ffi::WebPEncodeLosslessRGBA,
        ),
        (_, true) => (
            ffi::WebPDecodeBGRAInto,
            ffi::WebPEncodeBGRA,
            ffi::WebPEncodeLosslessBGRA,
        ),
    }
}

#[expect(unsafe_code, reason = "libwebp is a C library")]
pub(in crate::filter) fn decode(webp: Webp, input: &[u8], out: &mut [u8]) -> Result<()> {
    let depth = webp.depth()?;
    let (decode, _, _) = functions(depth, webp.is_bgr());
    let (mut width, mut height): (c_int, c_int) = (0, 0);
    // SAFETY: pointer and length are those of a slice; the two numbers live through the
    // call.
    let known =
        unsafe { ffi::WebPGetInfo(input.as_ptr(), input.len(), &raw mut width, &raw mut height) };
    if known == 0 {
        return Err(DecodeError::filter(NAME, "the data are no picture"));
    }
    let row_len = usize::try_from(width).unwrap_or(0) * depth;
    let len = row_len.saturating_mul(usize::try_from(height).unwrap_or(0));
    let stride = c_int::try_from(row_len).unwrap_or(0);
    if len != out.len() || len == 0 || stride == 0 {
        let reason = format!("a picture of {width} x {height} for {} bytes", out.len());
        return Err(DecodeError::filter(NAME, reason));
    }
    // SAFETY: both slices outlive the call; the library checks size and stride against the
    // picture, and they were computed from its width and height above.
    let end = unsafe {
        decode(
            input.as_ptr(),
            input.len(),
            out.as_mut_ptr(),
            out.len(),
            stride,
        )
    };
    if end.is_null() {
        Err(DecodeError::filter(NAME, "the picture is damaged"))
    } else {
        Ok(())
    }
}

#[expect(unsafe_code, reason = "libwebp is a C library")]
pub(in crate::filter) fn encode(webp: Webp, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let depth = webp.depth()?;
    let (_, lossy, lossless) = functions(depth, webp.is_bgr());
    let (row_len, rows) = (usize::from(webp.row_len), usize::from(webp.rows));
    let width = row_len / depth;
    let fits = row_len.is_multiple_of(depth) && row_len * rows == input.len();
    if !fits || width == 0 || width > 16383 || rows > 16383 {
        let reason = format!(
            "{} bytes are no picture of {rows} rows of {row_len} bytes",
            input.len()
        );
        return Err(DecodeError::filter(NAME, reason));
    }
    let mut picture: *mut u8 = ptr::null_mut();
    let (width, height, stride) = (width as c_int, rows as c_int, row_len as c_int);
    // SAFETY: `input` holds `rows` rows of `row_len` bytes, each of `width` pixels, as was
    // just checked; the library sets `picture` to memory of its own, or leaves it null and
    // returns 0.
    let len = unsafe {
        if webp.lossless {
            lossless(input.as_ptr(), width, height, stride, &raw mut picture)
        } else {
            lossy(
                input.as_ptr(),
                width,
                height,
                stride,
                webp.quality,
                &raw mut picture,
            )
        }
    };
    if len == 0 || picture.is_null() {
        return Err(DecodeError::filter(NAME, "the picture cannot be encoded"));
    }
    // SAFETY: the library returned `len` bytes at `picture`, to be freed by its own
    // function, once.
    unsafe {
        out.extend_from_slice(std::slice::from_raw_parts(picture, len));
        ffi::WebPFree(picture.cast::<c_void>());
    }
    Ok(())
}
