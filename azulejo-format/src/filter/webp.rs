//! WebP: a tile of `UINT8` as a picture. Page: *Filters, WebP*.
//!
//! The metadata are those of [`super::shuffle`], with the length of the WebP file.

use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;

const NAME: &str = "WEBP";

/// The filter's options.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(
    not(feature = "webp"),
    expect(dead_code, reason = "libwebp is left out")
)]
pub(super) struct Webp {
    pub(super) quality: f32,
    pub(super) format: u8,
    pub(super) lossless: bool,
    pub(super) rows: u16,
    pub(super) row_len: u16,
}

impl Webp {
    /// Undoes the filter; the picture must fill `out`.
    pub(super) fn decode(
        self,
        input: &[u8],
        metadata: &mut ByteReader<'_>,
        out: &mut [u8],
    ) -> Result<()> {
        let lens = super::shuffle::part_lens(NAME, metadata, input.len())?;
        if lens.iter().count() != 1 {
            return Err(DecodeError::filter(
                NAME,
                "more than one picture in a chunk",
            ));
        }
        self.decode_picture(input, out)
    }

    /// Appends the picture to `out` and its length to `metadata`.
    pub(super) fn encode(
        self,
        input: &[u8],
        metadata: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.encode_picture(input, out)?;
        super::shuffle::push_one_part(out.len(), metadata);
        Ok(())
    }

    #[cfg(not(feature = "webp"))]
    fn decode_picture(self, _: &[u8], _: &mut [u8]) -> Result<()> {
        Err(UNSUPPORTED)
    }

    #[cfg(not(feature = "webp"))]
    fn encode_picture(self, _: &[u8], _: &mut Vec<u8>) -> Result<()> {
        Err(UNSUPPORTED)
    }
}

#[cfg(not(feature = "webp"))]
const UNSUPPORTED: DecodeError = DecodeError::Unsupported {
    what: "the WEBP filter",
    reason: "build with the feature `webp`",
};

#[cfg(feature = "webp")]
mod library {
    use super::{DecodeError, NAME, Result, Webp};
    use libwebp_sys as ffi;
    use std::ffi::{c_int, c_void};
    use std::ptr;

    type Decode = unsafe extern "C" fn(*const u8, usize, *mut u8, usize, c_int) -> *mut u8;
    type Lossy = unsafe extern "C" fn(*const u8, c_int, c_int, c_int, f32, *mut *mut u8) -> usize;
    type Lossless = unsafe extern "C" fn(*const u8, c_int, c_int, c_int, *mut *mut u8) -> usize;

    /// The functions of a colour format, and its bytes a pixel.
    fn functions(format: u8) -> Result<(Decode, Lossy, Lossless, usize)> {
        Ok(match format {
            1 => (
                ffi::WebPDecodeRGBInto,
                ffi::WebPEncodeRGB,
                ffi::WebPEncodeLosslessRGB,
                3,
            ),
            2 => (
                ffi::WebPDecodeBGRInto,
                ffi::WebPEncodeBGR,
                ffi::WebPEncodeLosslessBGR,
                3,
            ),
            3 => (
                ffi::WebPDecodeRGBAInto,
                ffi::WebPEncodeRGBA,
                ffi::WebPEncodeLosslessRGBA,
                4,
            ),
            4 => (
                ffi::WebPDecodeBGRAInto,
                ffi::WebPEncodeBGRA,
                ffi::WebPEncodeLosslessBGRA,
                4,
            ),
            0 => return Err(DecodeError::filter(NAME, "its input format is not set")),
            id => {
                return Err(DecodeError::filter(
                    NAME,
                    format!("unknown input format {id}"),
                ));
            }
        })
    }

    impl Webp {
        #[expect(unsafe_code, reason = "libwebp is a C library")]
        pub(super) fn decode_picture(self, input: &[u8], out: &mut [u8]) -> Result<()> {
            let (decode, _, _, depth) = functions(self.format)?;
            let (mut width, mut height): (c_int, c_int) = (0, 0);
            // SAFETY: pointer and length are those of a slice; the two numbers live through the
            // call.
            let known = unsafe {
                ffi::WebPGetInfo(input.as_ptr(), input.len(), &raw mut width, &raw mut height)
            };
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
        pub(super) fn encode_picture(self, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
            let (_, lossy, lossless, depth) = functions(self.format)?;
            let (row_len, rows) = (usize::from(self.row_len), usize::from(self.rows));
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
                if self.lossless {
                    lossless(input.as_ptr(), width, height, stride, &raw mut picture)
                } else {
                    lossy(
                        input.as_ptr(),
                        width,
                        height,
                        stride,
                        self.quality,
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
    }
}
