//! Min, max, sum and null count of tiles and of whole fragments (since v11).
//!
//! Pages: *Fragment, Tile Mins Maxes*, *Tile Sums*, *Tile Null Count*, *Tile Fragment Min Max Sum
//! Null Count*. The first of them shows another layout than the one on disk: the lengths in bytes
//! of the fixed and of the var buffer come first.

use super::tile_index::{decode_u64s, encode_u64s};
use super::{Field, Slots};
use crate::datatype::{CellValNum, Datatype, Physical};
use crate::error::{DecodeError, Result};
use crate::schema::ArraySchema;
use crate::version::FormatVersion;
use crate::wire::{ByteReader, ByteWriter};

/// How far the stored min and max of a field's tiles can be relied on.
///
/// Null cells never count; in a tile of only nulls the values mean nothing, so compare the null
/// count with the number of cells first. A dense tile that reaches out of its fragment's non-empty
/// domain holds cells that were not written: below v16 they may count (which widens the bounds),
/// later they do not. So its bounds can rule it out, but only tiles inside the non-empty domain
/// have bounds that are cell values, and sums and null counts to answer from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatsTrust {
    /// There are none, or wrong ones, or those of other values than readers see, because a filter
    /// does not keep values.
    Untrusted,
    /// Fully.
    Exact,
    /// Only in tiles whose stored sum is a number within (-`f64::MAX`, `f64::MAX`): NaN cells make
    /// the min or the max that of the cells behind them, and show in the sum.
    IfSumIsFinite,
    /// As bounds of the text before the first zero byte: values are compared like C strings, byte
    /// by byte, unsigned.
    UpToZeroByte,
}

impl StatsTrust {
    /// The trust that a fragment's tile min and max of `field` deserve. `dense` is the fragment's.
    #[must_use]
    pub fn of(field: Field, schema: &ArraySchema, version: FormatVersion, dense: bool) -> Self {
        let Some((datatype, cell_val_num)) = field.layout(schema) else {
            return Self::Untrusted;
        };
        match field {
            Field::Attribute(i) if version.has_tile_stats() => {
                let attribute = schema.attributes.get(i);
                if attribute.is_none_or(|a| !a.filters.keeps_values()) {
                    return Self::Untrusted;
                }
            }
            Field::Timestamps | Field::DeleteTimestamps | Field::DeleteConditions
                if version.has_delete_metadata() =>
            {
                return Self::Exact;
            }
            Field::Attribute(_)
            | Field::Dimension(_)
            | Field::ZippedCoords
            | Field::Timestamps
            | Field::DeleteTimestamps
            | Field::DeleteConditions => return Self::Untrusted,
        }
        if !has_min_max(datatype, cell_val_num)
            || dense && has_wrong_dense_stats(field, schema, version)
        {
            Self::Untrusted
        } else if is_text(datatype) {
            Self::UpToZeroByte
        } else if datatype.is_real() {
            Self::IfSumIsFinite
        } else {
            Self::Exact
        }
    }

    /// Whether the stored null counts of `field` are right. Writers count nothing in var-length
    /// fields without min and max, nor in fixed-length strings of other encodings than ASCII, and
    /// count cells of dense tiles several times where they keep no min and max of fixed-size cells.
    #[must_use]
    pub fn in_null_counts(
        field: Field,
        schema: &ArraySchema,
        version: FormatVersion,
        dense: bool,
    ) -> bool {
        let Some((datatype, cell_val_num)) = field.layout(schema) else {
            return false;
        };
        if !version.has_tile_stats() || !field.is_nullable(schema) {
            return false;
        }
        if dense {
            has_min_max(datatype, cell_val_num) && !has_wrong_dense_stats(field, schema, version)
        } else {
            let uncounted =
                cell_val_num.is_var() || datatype.is_string() || datatype == Datatype::Any;
            has_min_max(datatype, cell_val_num) || !uncounted
        }
    }
}

const fn is_text(datatype: Datatype) -> bool {
    matches!(datatype, Datatype::Char | Datatype::StringAscii)
}

/// Whether writers of dense fragments stored wrong statistics of a field: of text, they remember
/// where in a growing buffer the least string stood, and store what they find there in the end;
/// early ones were wrong about nullable text of any length.
fn has_wrong_dense_stats(field: Field, schema: &ArraySchema, version: FormatVersion) -> bool {
    field
        .layout(schema)
        .is_some_and(|(datatype, cell_val_num)| {
            is_text(datatype)
                && (cell_val_num.is_var()
                    || field.is_nullable(schema) && !version.trusts_dense_nullable_string_stats())
        })
}

/// Whether tiles of an attribute of this type have a stored min and max. Dimensions have R-trees
/// instead.
#[must_use]
pub fn has_min_max(datatype: Datatype, cell_val_num: CellValNum) -> bool {
    is_text(datatype)
        || (cell_val_num == CellValNum::ONE
            && !datatype.is_string()
            && !datatype.is_byte()
            && datatype != Datatype::Any)
}

/// What kind of number the stored sums of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SumKind {
    /// Of signed integers, dates and times.
    Signed,
    /// Of unsigned integers and booleans.
    Unsigned,
    /// Of reals.
    Real,
}

impl SumKind {
    /// The kind for fields of this type; `None` if they have no sums.
    #[must_use]
    pub fn of(datatype: Datatype, cell_val_num: CellValNum) -> Option<Self> {
        if cell_val_num != CellValNum::ONE
            || datatype.is_string()
            || datatype.is_byte()
            || datatype == Datatype::Any
        {
            return None;
        }
        Some(match datatype.physical() {
            Physical::I8 | Physical::I16 | Physical::I32 | Physical::I64 => Self::Signed,
            Physical::U8 | Physical::U16 | Physical::U32 | Physical::U64 => Self::Unsigned,
            Physical::F32 | Physical::F64 => Self::Real,
        })
    }

    /// The sum with these eight bytes.
    #[must_use]
    pub const fn sum(self, bits: u64) -> TileSum {
        match self {
            Self::Signed => TileSum::Signed(bits.cast_signed()),
            Self::Unsigned => TileSum::Unsigned(bits),
            Self::Real => TileSum::Real(f64::from_bits(bits)),
        }
    }
}

/// A sum over non-null cells; one that overflows stays at the type's limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TileSum {
    /// Of signed integers, dates and times.
    Signed(i64),
    /// Of unsigned integers and booleans.
    Unsigned(u64),
    /// Of reals.
    Real(f64),
}

impl TileSum {
    /// The sum's eight bytes as a number.
    #[must_use]
    pub const fn bits(self) -> u64 {
        match self {
            Self::Signed(sum) => sum.cast_unsigned(),
            Self::Unsigned(sum) => sum,
            Self::Real(sum) => sum.to_bits(),
        }
    }

    /// Whether the sum stopped at its type's limit, or may have: then it is not the sum.
    #[must_use]
    pub fn may_have_overflowed(self) -> bool {
        match self {
            Self::Signed(sum) => sum == i64::MIN || sum == i64::MAX,
            Self::Unsigned(sum) => sum == u64::MAX,
            Self::Real(sum) => sum.is_nan() || sum.abs() >= f64::MAX,
        }
    }
}

/// The least or the greatest value of each tile of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TileBounds {
    /// One cell a tile.
    Fixed {
        /// Bytes of a cell.
        cell_size: usize,
        /// The values.
        values: Vec<u8>,
    },
    /// One string a tile.
    Var {
        /// Where each begins in `values`, never decreasing.
        offsets: Vec<u64>,
        /// The strings.
        values: Vec<u8>,
    },
}

impl TileBounds {
    /// Decodes the unfiltered section of a field with cells of this shape ([`Field::layout`]).
    pub fn decode(payload: &[u8], datatype: Datatype, cell_val_num: CellValNum) -> Result<Self> {
        let mut r = ByteReader::new(payload);
        let fixed_len = r.u64("tile min/max length")?;
        let var_len = r.u64("tile min/max var length")?;
        let at = r.offset();
        let fixed = r.bytes_u64(fixed_len, "tile min/max values")?;
        let var = r.bytes_u64(var_len, "tile min/max var values")?;
        r.finish("tile min/max")?;
        let Some(cell_size) = cell_val_num.cell_size(datatype) else {
            let (offsets, rest) = fixed.as_chunks::<8>();
            let offsets: Vec<u64> = offsets.iter().map(|b| u64::from_le_bytes(*b)).collect();
            let ends = offsets.iter().skip(1).chain([&var_len]);
            if !rest.is_empty() || offsets.iter().zip(ends).any(|(start, end)| start > end) {
                return Err(DecodeError::invalid(
                    "tile min/max values",
                    at,
                    "not a list of offsets",
                ));
            }
            return Ok(Self::Var {
                offsets,
                values: var.to_vec(),
            });
        };
        if !fixed.len().is_multiple_of(cell_size) || !var.is_empty() {
            return Err(DecodeError::invalid(
                "tile min/max values",
                at,
                "not a whole number of cells",
            ));
        }
        Ok(Self::Fixed {
            cell_size,
            values: fixed.to_vec(),
        })
    }

    /// Encodes the section, unfiltered.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = ByteWriter::new();
        match self {
            Self::Fixed { values, .. } => {
                w.u64(values.len() as u64);
                w.u64(0);
                w.bytes(values);
            }
            Self::Var { offsets, values } => {
                w.u64(8 * offsets.len() as u64);
                w.u64(values.len() as u64);
                w.u64s(offsets);
                w.bytes(values);
            }
        }
        w.into_bytes()
    }

    /// How many tiles have a value; 0 for fields without.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Fixed { cell_size, values } => values.len().checked_div(*cell_size).unwrap_or(0),
            Self::Var { offsets, .. } => offsets.len(),
        }
    }

    /// Whether no tile has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a tile.
    #[must_use]
    pub fn get(&self, tile: usize) -> Option<&[u8]> {
        match self {
            Self::Fixed { cell_size, values } => {
                let start = tile.checked_mul(*cell_size)?;
                values.get(start..start.checked_add(*cell_size)?)
            }
            Self::Var { offsets, values } => {
                let start = usize::try_from(*offsets.get(tile)?).ok()?;
                let end = match offsets.get(tile + 1) {
                    Some(end) => usize::try_from(*end).ok()?,
                    None => values.len(),
                };
                values.get(start..end)
            }
        }
    }
}

/// The sum of each tile of a field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TileSums {
    /// The eight bytes of each sum; see [`SumKind::sum`].
    pub bits: Vec<u64>,
}

impl TileSums {
    /// Decodes the unfiltered section.
    pub fn decode(payload: &[u8]) -> Result<Self> {
        Ok(Self {
            bits: decode_u64s(payload, "tile sums")?,
        })
    }

    /// Encodes the section, unfiltered.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode_u64s(&self.bits)
    }

    /// The sum of a tile.
    #[must_use]
    pub fn get(&self, tile: usize, kind: SumKind) -> Option<TileSum> {
        self.bits.get(tile).map(|bits| kind.sum(*bits))
    }
}

/// The number of null cells in each tile of a nullable attribute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TileNullCounts {
    /// By tile.
    pub counts: Vec<u64>,
}

impl TileNullCounts {
    /// Decodes the unfiltered section.
    pub fn decode(payload: &[u8]) -> Result<Self> {
        Ok(Self {
            counts: decode_u64s(payload, "tile null counts")?,
        })
    }

    /// Encodes the section, unfiltered.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode_u64s(&self.counts)
    }
}

/// Statistics of one field in a whole fragment, as trustworthy as those of its tiles that they are
/// made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldStats {
    /// The least value; empty if there is none.
    pub min: Vec<u8>,
    /// The greatest value; empty if there is none.
    pub max: Vec<u8>,
    /// The eight bytes of the sum; see [`SumKind::sum`].
    pub sum_bits: u64,
    /// The number of nulls.
    pub null_count: u64,
}

/// Statistics of all fields of a fragment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FragmentStats {
    /// By slot.
    pub fields: Vec<FieldStats>,
}

impl FragmentStats {
    /// Decodes the unfiltered section.
    pub fn decode(payload: &[u8], slots: Slots) -> Result<Self> {
        let mut r = ByteReader::new(payload);
        let num = r.check_count(slots.len() as u64, 32, "fragment statistics")?;
        let mut fields = Vec::with_capacity(num);
        for _ in 0..num {
            let len = r.u64("fragment min length")?;
            let min = r.bytes_u64(len, "fragment min")?.to_vec();
            let len = r.u64("fragment max length")?;
            let max = r.bytes_u64(len, "fragment max")?.to_vec();
            let sum_bits = r.u64("fragment sum")?;
            let null_count = r.u64("fragment null count")?;
            fields.push(FieldStats {
                min,
                max,
                sum_bits,
                null_count,
            });
        }
        r.finish("fragment statistics")?;
        Ok(Self { fields })
    }

    /// Encodes the section, unfiltered.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = ByteWriter::new();
        for field in &self.fields {
            w.u64(field.min.len() as u64);
            w.bytes(&field.min);
            w.u64(field.max.len() as u64);
            w.bytes(&field.max);
            w.u64(field.sum_bits);
            w.u64(field.null_count);
        }
        w.into_bytes()
    }

    /// The statistics of a field.
    #[must_use]
    pub fn get(&self, field: Field, slots: Slots) -> Option<&FieldStats> {
        self.fields.get(slots.of(field)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Filter;
    use crate::fragment::sample::{attribute, damage, schema};

    #[test]
    fn bounds_round_trip_and_damage() {
        let fixed = TileBounds::Fixed {
            cell_size: 4,
            values: vec![1, 0, 0, 0, 2, 0, 0, 0],
        };
        let bytes = fixed.encode();
        let decode = |bytes: &[u8]| TileBounds::decode(bytes, Datatype::Int32, CellValNum::ONE);
        assert_eq!(decode(&bytes).unwrap(), fixed);
        assert_eq!(
            (fixed.len(), fixed.get(1), fixed.get(2)),
            (2, Some(&[2, 0, 0, 0][..]), None)
        );
        damage(&bytes, decode);

        let var = TileBounds::Var {
            offsets: vec![0, 3, 3],
            values: b"abcde".to_vec(),
        };
        let bytes = var.encode();
        let decode =
            |bytes: &[u8]| TileBounds::decode(bytes, Datatype::StringAscii, CellValNum::Var);
        assert_eq!(decode(&bytes).unwrap(), var);
        assert_eq!(
            (var.len(), var.get(0), var.get(1)),
            (3, Some(&b"abc"[..]), Some(&b""[..]))
        );
        assert_eq!((var.get(2), var.get(3)), (Some(&b"de"[..]), None));
        damage(&bytes, decode);
    }

    #[test]
    fn bounds_of_other_cells_are_refused() {
        let three = TileBounds::Fixed {
            cell_size: 3,
            values: vec![1; 3],
        }
        .encode();
        assert!(TileBounds::decode(&three, Datatype::Int32, CellValNum::ONE).is_err());
        assert!(TileBounds::decode(&three, Datatype::Char, CellValNum::Var).is_err());
        let decreasing = TileBounds::Var {
            offsets: vec![2, 1],
            values: vec![1; 3],
        }
        .encode();
        assert!(TileBounds::decode(&decreasing, Datatype::Char, CellValNum::Var).is_err());
    }

    #[test]
    fn sums_counts_and_fragment_statistics_round_trip() {
        let sums = TileSums {
            bits: vec![1, (-2.5f64).to_bits()],
        };
        assert_eq!(TileSums::decode(&sums.encode()).unwrap(), sums);
        assert_eq!(sums.get(1, SumKind::Real), Some(TileSum::Real(-2.5)));
        assert_eq!(SumKind::Signed.sum(u64::MAX), TileSum::Signed(-1));
        damage(&sums.encode(), TileSums::decode);
        let counts = TileNullCounts { counts: vec![0, 7] };
        assert_eq!(TileNullCounts::decode(&counts.encode()).unwrap(), counts);

        let version = FormatVersion::CURRENT;
        let slots = Slots::new(version, &schema(version, &[Datatype::Int32]), false, false);
        let field = |i: u8| FieldStats {
            min: vec![i; usize::from(i)],
            max: vec![9; 3],
            sum_bits: 4,
            null_count: i.into(),
        };
        let stats = FragmentStats {
            fields: (0..5).map(field).collect(),
        };
        let bytes = stats.encode();
        assert_eq!(FragmentStats::decode(&bytes, slots).unwrap(), stats);
        assert_eq!(
            stats.get(Field::Attribute(2), slots).map(|s| s.null_count),
            Some(2)
        );
        damage(&bytes, |bytes| FragmentStats::decode(bytes, slots));
    }

    #[test]
    fn sums_that_hit_their_limit_are_none() {
        let overflowed = [
            TileSum::Signed(i64::MIN),
            TileSum::Unsigned(u64::MAX),
            TileSum::Real(f64::MAX),
            TileSum::Real(f64::NAN),
        ];
        assert!(overflowed.into_iter().all(TileSum::may_have_overflowed));
        assert!(!TileSum::Unsigned(i64::MAX as u64).may_have_overflowed());
        for kind in [SumKind::Signed, SumKind::Unsigned, SumKind::Real] {
            assert_eq!(kind.sum(12345).bits(), 12345);
        }
    }

    #[test]
    fn trust_depends_on_type_version_and_density() {
        let trust = |version, datatype, cell_val_num, nullable, dense| {
            let version = FormatVersion::new(version, "test").unwrap();
            let mut schema = schema(version, &[Datatype::Int32]);
            schema.attributes[0] = attribute("x", datatype, cell_val_num, nullable);
            StatsTrust::of(Field::Attribute(0), &schema, version, dense)
        };
        let (one, two, var) = (CellValNum::ONE, CellValNum::Fixed(2), CellValNum::Var);
        use Datatype::{Blob, Bool, Char, DateTimeDay, Float32, Int8, StringAscii, StringUtf8};
        assert_eq!(trust(10, Int8, one, false, true), StatsTrust::Untrusted);
        assert_eq!(trust(11, Int8, one, true, true), StatsTrust::Exact);
        assert_eq!(trust(22, DateTimeDay, one, true, true), StatsTrust::Exact);
        assert_eq!(trust(22, Bool, one, true, true), StatsTrust::Exact);
        assert_eq!(trust(22, Int8, two, false, false), StatsTrust::Untrusted);
        assert_eq!(trust(22, Int8, var, false, false), StatsTrust::Untrusted);
        assert_eq!(
            trust(22, Float32, one, false, false),
            StatsTrust::IfSumIsFinite
        );
        assert_eq!(
            trust(22, StringUtf8, var, false, false),
            StatsTrust::Untrusted
        );
        assert_eq!(trust(22, Blob, one, false, false), StatsTrust::Untrusted);
        assert_eq!(
            trust(22, StringAscii, var, true, false),
            StatsTrust::UpToZeroByte
        );
        assert_eq!(
            trust(22, StringAscii, var, false, true),
            StatsTrust::Untrusted
        );
        assert_eq!(trust(20, Char, two, true, true), StatsTrust::Untrusted);
        assert_eq!(trust(20, Char, two, true, false), StatsTrust::UpToZeroByte);
        assert_eq!(trust(20, Char, two, false, true), StatsTrust::UpToZeroByte);
        assert_eq!(trust(21, Char, two, true, true), StatsTrust::UpToZeroByte);

        let counted = |version, datatype, cell_val_num, dense| {
            let version = FormatVersion::new(version, "test").unwrap();
            let mut schema = schema(version, &[Datatype::Int32]);
            schema.attributes[0] = attribute("x", datatype, cell_val_num, true);
            StatsTrust::in_null_counts(Field::Attribute(0), &schema, version, dense)
        };
        assert!(counted(11, Int8, one, true) && counted(11, StringAscii, var, false));
        assert!(counted(22, Int8, two, false) && !counted(22, StringUtf8, two, false));
        assert!(!counted(22, Int8, two, true) && !counted(22, StringUtf8, var, false));
        assert!(!counted(22, StringAscii, var, true) && !counted(10, Int8, one, false));
    }

    #[test]
    fn filters_that_change_values_leave_no_trust_but_in_null_counts() {
        let webp = |lossless, input_format| Filter::Webp {
            quality: 100.0,
            input_format,
            lossless,
            y_extent: 3,
            x_extent: 9,
        };
        let scale = Filter::FloatScale {
            scale: 0.5,
            offset: 0.0,
            byte_width: 4,
        };
        for (filter, datatype, keeps) in [
            (scale, Datatype::Float64, false),
            (webp(false, 1), Datatype::UInt8, false),
            (webp(true, 1), Datatype::UInt8, true),
            (webp(true, 2), Datatype::UInt8, true),
            (webp(true, 3), Datatype::UInt8, false),
            (webp(true, 4), Datatype::UInt8, false),
            (Filter::Byteshuffle, Datatype::Float64, true),
        ] {
            let mut schema = schema(FormatVersion::CURRENT, &[Datatype::Int32]);
            let mut tested = attribute("x", datatype, CellValNum::ONE, true);
            tested.filters.filters = vec![Filter::Byteshuffle, filter];
            schema.attributes[0] = tested;
            let field = Field::Attribute(0);
            for dense in [false, true] {
                let version = FormatVersion::CURRENT;
                let trust = StatsTrust::of(field, &schema, version, dense);
                assert_eq!(trust != StatsTrust::Untrusted, keeps, "{schema:?}");
                assert!(StatsTrust::in_null_counts(field, &schema, version, dense));
            }
        }
    }

    #[test]
    fn cells_own_timestamps_have_bounds() {
        let trust = |version, field| {
            let version = FormatVersion::new(version, "test").unwrap();
            StatsTrust::of(field, &schema(version, &[Datatype::Int32]), version, false)
        };
        assert_eq!(trust(15, Field::Timestamps), StatsTrust::Exact);
        assert_eq!(trust(22, Field::DeleteTimestamps), StatsTrust::Exact);
        assert_eq!(trust(14, Field::Timestamps), StatsTrust::Untrusted);
        assert_eq!(trust(22, Field::Dimension(0)), StatsTrust::Untrusted);
        assert_eq!(trust(22, Field::Attribute(9)), StatsTrust::Untrusted);
    }
}
