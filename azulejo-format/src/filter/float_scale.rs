//! Float scale: floats as integers, `round((value - offset) / scale)`. Page: *Filters, Float
//! Scale*.
//!
//! The metadata are those of [`super::shuffle`], with the lengths of the integers.

use super::integer::{Integer, grow, places, values};
use super::shuffle::{part_lens, push_one_part};
use crate::datatype::Native;
use crate::error::{DecodeError, Result};
use crate::wire::ByteReader;

const NAME: &str = "SCALE_FLOAT";

/// The filter's options and the size of the floats (4 or 8).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FloatScale {
    pub(super) scale: f64,
    pub(super) offset: f64,
    pub(super) byte_width: u64,
    pub(super) float_size: usize,
}

/// The two float types.
trait Float: Native {
    /// As the reference rounds: the division in the type of the values.
    fn scaled(self, scale: f64, offset: f64) -> f64;
    fn of_integer(value: i64) -> f64;
    fn from_f64(value: f64) -> Self;
}

impl Float for f32 {
    fn scaled(self, scale: f64, offset: f64) -> f64 {
        f64::from((self - offset as f32) / scale as f32).round()
    }
    fn of_integer(value: i64) -> f64 {
        f64::from(value as f32)
    }
    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

impl Float for f64 {
    fn scaled(self, scale: f64, offset: f64) -> f64 {
        ((self - offset) / scale).round()
    }
    fn of_integer(value: i64) -> f64 {
        value as f64
    }
    fn from_f64(value: f64) -> Self {
        value
    }
}

/// Calls a function of a float and an integer type; an error for other widths.
macro_rules! dispatch_widths {
    ($options:expr, $F:ident, $I:ident => $call:expr) => {{
        macro_rules! widths {
            ($f:ident) => {
                match $options.byte_width {
                    1 => {
                        type $F = $f;
                        type $I = i8;
                        $call
                    }
                    2 => {
                        type $F = $f;
                        type $I = i16;
                        $call
                    }
                    4 => {
                        type $F = $f;
                        type $I = i32;
                        $call
                    }
                    8 => {
                        type $F = $f;
                        type $I = i64;
                        $call
                    }
                    width => Err(DecodeError::filter(
                        NAME,
                        format!("integers of {width} bytes"),
                    )),
                }
            };
        }
        match $options.float_size {
            4 => widths!(f32),
            8 => widths!(f64),
            size => Err(DecodeError::filter(
                NAME,
                format!("values of {size} bytes are no floats"),
            )),
        }
    }};
}

impl FloatScale {
    /// Bytes of the floats that `len` bytes of integers stand for.
    pub(super) fn decoded_len(self, len: usize) -> Result<usize> {
        let width = usize::try_from(self.byte_width)
            .unwrap_or(usize::MAX)
            .max(1);
        if !len.is_multiple_of(width) {
            return Err(DecodeError::filter(
                NAME,
                format!("{len} bytes are no integers of {width}"),
            ));
        }
        Ok((len / width).saturating_mul(self.float_size))
    }

    /// Undoes the filter; `out` is [`Self::decoded_len`] long.
    pub(super) fn decode(
        self,
        input: &[u8],
        metadata: &mut ByteReader<'_>,
        out: &mut [u8],
    ) -> Result<()> {
        // Whole integers in every part, so that the parts can be taken as one.
        let lens = part_lens(NAME, metadata, input.len())?;
        if lens
            .iter()
            .any(|len| !(len as u64).is_multiple_of(self.byte_width.max(1)))
        {
            return Err(DecodeError::filter(
                NAME,
                format!("a part of no whole {}-byte integers", self.byte_width),
            ));
        }
        dispatch_widths!(self, F, I => self.undo::<F, I>(input, out))
    }

    fn undo<F: Float, I: Integer>(self, input: &[u8], out: &mut [u8]) -> Result<()> {
        for (place, value) in places::<F>(out).zip(values::<I>(input)) {
            F::from_f64(self.scale * F::of_integer(value.to_i64()) + self.offset).write(place);
        }
        Ok(())
    }

    /// Appends the integers to `out` and their length to `metadata`.
    pub(super) fn encode(
        self,
        input: &[u8],
        metadata: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if !input.len().is_multiple_of(self.float_size.max(1)) {
            return Err(DecodeError::filter(
                NAME,
                format!("{} bytes are no whole floats", input.len()),
            ));
        }
        dispatch_widths!(self, F, I => self.apply::<F, I>(input, out))?;
        push_one_part(out.len(), metadata);
        Ok(())
    }

    fn apply<F: Float, I: Integer>(self, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let integers = grow(out, input.len() / F::SIZE * I::SIZE);
        for (place, value) in places::<I>(integers).zip(values::<F>(input)) {
            I::from_i64(truncated::<I>(value.scaled(self.scale, self.offset))).write(place);
        }
        Ok(())
    }
}

/// A rounded float as an integer. What does not fit becomes what x86-64 makes of it, as in the
/// files that the reference writes: the lowest number of 64 bits, or of 32 bits for all narrower
/// types, cut to size.
fn truncated<I: Integer>(value: f64) -> i64 {
    if I::SIZE == 8 {
        let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
        return if fits { value as i64 } else { i64::MIN };
    }
    let fits = (-2_147_483_648.0..2_147_483_648.0).contains(&value);
    i64::from(if fits { value as i32 } else { i32::MIN })
}
