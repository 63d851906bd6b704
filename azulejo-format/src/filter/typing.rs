//! Which types filters take, and which they hand on.

use super::{Filter, FilterContext, Pipeline};
use crate::datatype::{CellValNum, Datatype};
use crate::error::{DecodeError, Result};
use crate::version::FormatVersion;

impl Filter {
    /// Whether this is one of the compressors, which also compress the metadata of the filters
    /// before them.
    #[must_use]
    pub const fn is_compressor(&self) -> bool {
        matches!(
            self,
            Self::Gzip { .. }
                | Self::Zstd { .. }
                | Self::Lz4 { .. }
                | Self::Rle { .. }
                | Self::Bzip2 { .. }
                | Self::DoubleDelta { .. }
                | Self::Dictionary { .. }
                | Self::Delta { .. }
        )
    }

    /// The type of the values that this filter hands on when it takes values of `input`.
    #[must_use]
    pub fn output_datatype(&self, input: Datatype) -> Datatype {
        match self {
            Self::DoubleDelta { reinterpret, .. } | Self::Delta { reinterpret, .. } => {
                reinterpret.unwrap_or(input)
            }
            Self::FloatScale { byte_width, .. } => match byte_width {
                1 => Datatype::Int8,
                2 => Datatype::Int16,
                4 => Datatype::Int32,
                _ => Datatype::Int64,
            },
            Self::Xor => match input.size() {
                1 => Datatype::Int8,
                2 => Datatype::Int16,
                4 => Datatype::Int32,
                _ => Datatype::Int64,
            },
            Self::Aes256Gcm => Datatype::Blob,
            Self::None
            | Self::Gzip { .. }
            | Self::Zstd { .. }
            | Self::Lz4 { .. }
            | Self::Rle { .. }
            | Self::Bzip2 { .. }
            | Self::BitWidthReduction { .. }
            | Self::Bitshuffle
            | Self::Byteshuffle
            | Self::PositiveDelta { .. }
            | Self::ChecksumMd5
            | Self::ChecksumSha256
            | Self::Dictionary { .. }
            | Self::Webp { .. } => input,
        }
    }

    /// Whether what is read is what was written, bit for bit.
    #[must_use]
    pub const fn keeps_values(&self) -> bool {
        match self {
            Self::FloatScale { .. } => false,
            // Under pixels that are fully transparent, libwebp changes the colour all the same.
            Self::Webp {
                lossless,
                input_format,
                ..
            } => *lossless && matches!(*input_format, 1 | 2),
            Self::None
            | Self::Gzip { .. }
            | Self::Zstd { .. }
            | Self::Lz4 { .. }
            | Self::Rle { .. }
            | Self::Bzip2 { .. }
            | Self::DoubleDelta { .. }
            | Self::BitWidthReduction { .. }
            | Self::Bitshuffle
            | Self::Byteshuffle
            | Self::PositiveDelta { .. }
            | Self::Aes256Gcm
            | Self::ChecksumMd5
            | Self::ChecksumSha256
            | Self::Dictionary { .. }
            | Self::Xor
            | Self::Delta { .. } => true,
        }
    }

    /// Whether this filter takes values of `input`.
    #[must_use]
    pub fn accepts_datatype(&self, input: Datatype) -> bool {
        match self {
            Self::DoubleDelta { reinterpret, .. } | Self::Delta { reinterpret, .. } => {
                let taken = reinterpret.unwrap_or(input);
                !taken.is_real() && input.size().is_multiple_of(taken.size())
            }
            Self::BitWidthReduction { .. } | Self::PositiveDelta { .. } => {
                let is_number = input.is_integer() || input == Datatype::Bool;
                is_number || input.is_datetime() || input.is_time() || input.is_byte()
            }
            Self::FloatScale { .. } => matches!(input.size(), 4 | 8),
            Self::Webp { .. } => input == Datatype::UInt8,
            Self::None
            | Self::Gzip { .. }
            | Self::Zstd { .. }
            | Self::Lz4 { .. }
            | Self::Rle { .. }
            | Self::Bzip2 { .. }
            | Self::Bitshuffle
            | Self::Byteshuffle
            | Self::Aes256Gcm
            | Self::ChecksumMd5
            | Self::ChecksumSha256
            | Self::Dictionary { .. }
            | Self::Xor => true,
        }
    }

    /// Why this filter cannot be one of whole numbers that the engine stores beside cells; `ascend`
    /// says whether those that it takes never decrease.
    fn misfit_of_numbers(&self, ascend: bool) -> Option<&'static str> {
        match self {
            Self::FloatScale { .. } => Some("it changes whole numbers"),
            Self::Webp { .. } => Some("it makes pictures"),
            Self::Dictionary { .. } => Some("it takes text only"),
            Self::PositiveDelta { .. } => {
                (!ascend).then_some("it takes values that do not decrease")
            }
            Self::None
            | Self::Gzip { .. }
            | Self::Zstd { .. }
            | Self::Lz4 { .. }
            | Self::Rle { .. }
            | Self::Bzip2 { .. }
            | Self::DoubleDelta { .. }
            | Self::BitWidthReduction { .. }
            | Self::Bitshuffle
            | Self::Byteshuffle
            | Self::Aes256Gcm
            | Self::ChecksumMd5
            | Self::ChecksumSha256
            | Self::Xor
            | Self::Delta { .. } => None,
        }
    }

    /// Why this filter cannot be asked for at place `i` of a pipeline, whatever type it takes;
    /// `strings` says whether the cells are variable-length strings.
    fn misfit(&self, i: usize, strings: bool) -> Option<String> {
        match self {
            // Not even after itself: the reference writes such a chain and cannot read it. A
            // dictionary of other cells can be asked for, as in the reference, and written in
            // neither.
            Self::Rle { .. } | Self::Dictionary { .. } => (strings && i > 0)
                .then(|| "it must be the first filter of variable-length strings".into()),
            Self::FloatScale {
                scale,
                offset,
                byte_width,
            } => {
                if !matches!(byte_width, 1 | 2 | 4 | 8) {
                    return Some(format!("byte width {byte_width} is not 1, 2, 4 or 8"));
                }
                let usable = scale.is_normal() && offset.is_finite();
                (!usable).then(|| format!("scale {scale} or offset {offset} is no usable number"))
            }
            Self::Webp { .. } => (i > 0).then(|| "it must be the first filter".into()),
            Self::Aes256Gcm => Some("it comes with the key and cannot be asked for".into()),
            Self::None
            | Self::Gzip { .. }
            | Self::Zstd { .. }
            | Self::Lz4 { .. }
            | Self::Bzip2 { .. }
            | Self::DoubleDelta { .. }
            | Self::BitWidthReduction { .. }
            | Self::Bitshuffle
            | Self::Byteshuffle
            | Self::PositiveDelta { .. }
            | Self::ChecksumMd5
            | Self::ChecksumSha256
            | Self::Xor
            | Self::Delta { .. } => None,
        }
    }
}

impl Pipeline {
    /// Whether what is read is what was written, bit for bit. Statistics are taken from values
    /// before the filters, so that only here they are those of the cells that readers see.
    #[must_use]
    pub fn keeps_values(&self) -> bool {
        self.filters.iter().all(Filter::keeps_values)
    }

    /// How far what is read may lie from a real number of this size that was written: 0 where
    /// [`Self::keeps_values`]; `None` where that is not known.
    #[must_use]
    pub fn moves_by(&self, datatype: Datatype, size: f64) -> Option<f64> {
        // More than what numbers are rounded by on the way.
        let rounding = if datatype.size() == 4 { 1e-6 } else { 1e-14 };
        let mut sum = 0.0;
        for filter in &self.filters {
            if let Filter::FloatScale { scale, offset, .. } = filter {
                sum += scale.abs() + (size.abs() + offset.abs()) * rounding;
            } else if !filter.keeps_values() {
                return None;
            }
        }
        Some(sum).filter(|sum| sum.is_finite())
    }

    /// The filters, each with the type of the values that it takes, where the first takes those of
    /// `datatype`.
    pub fn with_input_types(
        &self,
        datatype: Datatype,
    ) -> impl Iterator<Item = (&Filter, Datatype)> {
        self.filters.iter().scan(datatype, |next, filter| {
            let taken = *next;
            *next = filter.output_datatype(taken);
            Some((filter, taken))
        })
    }

    /// Checks that the filters fit a field's type and each other, as a schema that is about to be
    /// created must.
    ///
    /// Stored schemas are not held to this: early versions were more permissive.
    pub fn check(&self, datatype: Datatype, cell_val_num: CellValNum) -> Result<()> {
        self.check_length()?;
        let utf8_var = cell_val_num.is_var()
            && matches!(datatype, Datatype::StringAscii | Datatype::StringUtf8);
        for (i, (filter, taken)) in self.with_input_types(datatype).enumerate() {
            if !filter.accepts_datatype(taken) {
                let reason = format!("it does not accept values of {taken}");
                return Err(DecodeError::filter(filter.name(), reason));
            }
            if let Some(reason) = filter.misfit(i, utf8_var) {
                return Err(DecodeError::filter(filter.name(), reason));
            }
        }
        Ok(())
    }

    /// Checks that there are no more filters than a stored pipeline can have.
    pub fn check_length(&self) -> Result<()> {
        let count = self.filters.len();
        if count > Self::MAX_FILTERS {
            let reason = format!("{count} filters, more than {}", Self::MAX_FILTERS);
            return Err(DecodeError::invalid("filter pipeline", 0, reason));
        }
        Ok(())
    }

    /// Checks that the filters take whole numbers of `datatype` as the engine stores them beside cells
    /// (their times, offsets and validity), whatever they are, and give them back; `ascend` says
    /// whether they never decrease.
    pub fn check_numbers(&self, datatype: Datatype, ascend: bool) -> Result<()> {
        self.check(datatype, CellValNum::ONE)?;
        let mut ascend = ascend;
        for filter in &self.filters {
            if let Some(reason) = filter.misfit_of_numbers(ascend) {
                return Err(DecodeError::filter(filter.name(), reason));
            }
            ascend &= matches!(
                filter,
                Filter::None | Filter::ChecksumMd5 | Filter::ChecksumSha256
            );
        }
        Ok(())
    }

    /// Whether the offsets of variable-length cells lie inside the data tile, because the first
    /// filter encodes strings as such. The offsets file then holds a tile without chunks.
    #[must_use]
    pub fn keeps_offsets_in_data(&self, ctx: &FilterContext<'_>) -> bool {
        ctx.cell_val_num.is_var() && self.encodes_strings(ctx.datatype, ctx.version)
    }

    fn encodes_strings(&self, datatype: Datatype, version: FormatVersion) -> bool {
        let has = |wanted: fn(&Filter) -> bool| self.filters.iter().any(wanted);
        let rle = || has(|f| matches!(f, Filter::Rle { .. }));
        let dictionary = || has(|f| matches!(f, Filter::Dictionary { .. }));
        if datatype == Datatype::StringAscii {
            version.rle_ascii_keeps_offsets() && rle()
                || version.dictionary_ascii_keeps_offsets() && dictionary()
        } else {
            datatype == Datatype::StringUtf8
                && version.utf8_keeps_offsets()
                && (rle() || dictionary())
        }
    }
}
