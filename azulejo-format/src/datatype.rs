//! Logical datatypes, their physical types, and the one dispatch from a type id to Rust code.

mod dispatch;

pub use dispatch::{Native, dispatch};

use crate::error::{DecodeError, Result};

/// How a value lies in memory: ten little-endian machine types under the logical ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named after the Rust types")]
pub enum Physical {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl Physical {
    /// Bytes of one value.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Whether values are integers.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        !matches!(self, Self::F32 | Self::F64)
    }

    /// The least and greatest of all reals, as they are stored; `None` of integers.
    #[must_use]
    pub fn infinities(self) -> Option<(Vec<u8>, Vec<u8>)> {
        let [low, high] = match self {
            Self::F32 => [f32::NEG_INFINITY, f32::INFINITY].map(|real| real.to_le_bytes().to_vec()),
            Self::F64 => [f64::NEG_INFINITY, f64::INFINITY].map(|real| real.to_le_bytes().to_vec()),
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => return None,
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => return None,
        };
        Some((low, high))
    }
}

macro_rules! datatypes {
    ($($variant:ident = $id:literal, $name:literal, $physical:ident;)*) => {
        /// A logical datatype, by its id on disk (0 to 43).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "TileDB's own names")]
        pub enum Datatype { $($variant = $id,)* }

        impl Datatype {
            /// Every datatype, by id.
            pub const ALL: [Self; 44] = [$(Self::$variant,)*];

            /// The name that TileDB prints, such as `STRING_ASCII`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// How a value lies in memory.
            #[must_use]
            pub const fn physical(self) -> Physical {
                match self { $(Self::$variant => Physical::$physical,)* }
            }
        }
    };
}

datatypes! {
    Int32 = 0, "INT32", I32;
    Int64 = 1, "INT64", I64;
    Float32 = 2, "FLOAT32", F32;
    Float64 = 3, "FLOAT64", F64;
    Char = 4, "CHAR", I8;
    Int8 = 5, "INT8", I8;
    UInt8 = 6, "UINT8", U8;
    Int16 = 7, "INT16", I16;
    UInt16 = 8, "UINT16", U16;
    UInt32 = 9, "UINT32", U32;
    UInt64 = 10, "UINT64", U64;
    StringAscii = 11, "STRING_ASCII", U8;
    StringUtf8 = 12, "STRING_UTF8", U8;
    StringUtf16 = 13, "STRING_UTF16", U16;
    StringUtf32 = 14, "STRING_UTF32", U32;
    StringUcs2 = 15, "STRING_UCS2", U16;
    StringUcs4 = 16, "STRING_UCS4", U32;
    Any = 17, "ANY", U8;
    DateTimeYear = 18, "DATETIME_YEAR", I64;
    DateTimeMonth = 19, "DATETIME_MONTH", I64;
    DateTimeWeek = 20, "DATETIME_WEEK", I64;
    DateTimeDay = 21, "DATETIME_DAY", I64;
    DateTimeHour = 22, "DATETIME_HR", I64;
    DateTimeMinute = 23, "DATETIME_MIN", I64;
    DateTimeSecond = 24, "DATETIME_SEC", I64;
    DateTimeMilli = 25, "DATETIME_MS", I64;
    DateTimeMicro = 26, "DATETIME_US", I64;
    DateTimeNano = 27, "DATETIME_NS", I64;
    DateTimePico = 28, "DATETIME_PS", I64;
    DateTimeFemto = 29, "DATETIME_FS", I64;
    DateTimeAtto = 30, "DATETIME_AS", I64;
    TimeHour = 31, "TIME_HR", I64;
    TimeMinute = 32, "TIME_MIN", I64;
    TimeSecond = 33, "TIME_SEC", I64;
    TimeMilli = 34, "TIME_MS", I64;
    TimeMicro = 35, "TIME_US", I64;
    TimeNano = 36, "TIME_NS", I64;
    TimePico = 37, "TIME_PS", I64;
    TimeFemto = 38, "TIME_FS", I64;
    TimeAtto = 39, "TIME_AS", I64;
    Blob = 40, "BLOB", U8;
    Bool = 41, "BOOL", U8;
    GeomWkb = 42, "GEOM_WKB", U8;
    GeomWkt = 43, "GEOM_WKT", U8;
}

impl Datatype {
    /// The largest value of an integer type; 0 for other types.
    #[must_use]
    pub const fn max_integer(self) -> u64 {
        match self.physical() {
            Physical::I8 => i8::MAX.cast_unsigned() as u64,
            Physical::U8 => u8::MAX as u64,
            Physical::I16 => i16::MAX.cast_unsigned() as u64,
            Physical::U16 => u16::MAX as u64,
            Physical::I32 => i32::MAX.cast_unsigned() as u64,
            Physical::U32 => u32::MAX as u64,
            Physical::I64 => i64::MAX.cast_unsigned(),
            Physical::U64 => u64::MAX,
            Physical::F32 | Physical::F64 => 0,
        }
    }

    /// The datatype with an id read at `offset`.
    pub fn from_id(id: u8, offset: usize) -> Result<Self> {
        Self::ALL
            .get(usize::from(id))
            .copied()
            .ok_or(DecodeError::UnknownId {
                what: "datatype",
                id: id.into(),
                offset,
            })
    }

    /// The datatype with a name as printed by [`Self::name`], in any letter case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|t| t.name().eq_ignore_ascii_case(name))
    }

    /// The id on disk.
    #[must_use]
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// Bytes of one value.
    #[must_use]
    pub const fn size(self) -> usize {
        self.physical().size()
    }

    /// Whether this is a `DATETIME_*` type: ticks since 1970-01-01.
    #[must_use]
    pub const fn is_datetime(self) -> bool {
        matches!(self.id(), 18..=30)
    }

    /// Whether this is a `TIME_*` type: ticks of a day or a duration.
    #[must_use]
    pub const fn is_time(self) -> bool {
        matches!(self.id(), 31..=39)
    }

    /// Whether this is one of the six `STRING_*` types.
    #[must_use]
    pub const fn is_string(self) -> bool {
        matches!(self.id(), 11..=16)
    }

    /// Whether this is a number of the integer kind (datetimes and times apart, `BOOL` apart).
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(self.id(), 0 | 1 | 5..=10)
    }

    /// Whether this is `FLOAT32` or `FLOAT64`.
    #[must_use]
    pub const fn is_real(self) -> bool {
        matches!(self, Self::Float32 | Self::Float64)
    }

    /// Whether values are opaque bytes: `BLOB`, `GEOM_WKB`, `GEOM_WKT`.
    #[must_use]
    pub const fn is_byte(self) -> bool {
        matches!(self, Self::Blob | Self::GeomWkb | Self::GeomWkt)
    }

    /// Whether single bytes of this type make text.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(
            self,
            Self::Char | Self::StringAscii | Self::StringUtf8 | Self::GeomWkt
        )
    }

    /// Whether a cell is shown as a whole rather than as one number or several.
    #[must_use]
    pub const fn is_opaque(self) -> bool {
        self.is_string() || self.is_byte() || matches!(self, Self::Any)
    }

    /// The value that unwritten cells read as unless the attribute says otherwise, one value long.
    #[must_use]
    pub fn default_fill(self) -> Vec<u8> {
        // TileDB's empty char is `std::numeric_limits<char>::min()`, on platforms where char is
        // signed.
        if self == Self::Char {
            return i8::MIN.to_le_bytes().to_vec();
        }
        if self.is_string() || self.is_byte() || matches!(self, Self::Any | Self::Bool) {
            return vec![0; self.size()];
        }
        match self.physical() {
            Physical::I8 => i8::MIN.to_le_bytes().to_vec(),
            Physical::I16 => i16::MIN.to_le_bytes().to_vec(),
            Physical::I32 => i32::MIN.to_le_bytes().to_vec(),
            Physical::I64 => i64::MIN.to_le_bytes().to_vec(),
            Physical::U8 | Physical::U16 | Physical::U32 | Physical::U64 => {
                vec![0xff; self.size()]
            }
            Physical::F32 => f32::NAN.to_le_bytes().to_vec(),
            Physical::F64 => f64::NAN.to_le_bytes().to_vec(),
        }
    }
}

impl std::fmt::Display for Datatype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// How many values make a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CellValNum {
    /// This many in every cell; at least 1.
    Fixed(u32),
    /// Any number, given by offsets.
    Var,
}

impl CellValNum {
    /// One value a cell.
    pub const ONE: Self = Self::Fixed(1);
    /// The number that stands for [`CellValNum::Var`] on disk.
    pub const VAR_ID: u32 = u32::MAX;

    /// From the number on disk, read at `offset`.
    pub fn from_id(id: u32, offset: usize) -> Result<Self> {
        match id {
            0 => Err(DecodeError::invalid(
                "cell val num",
                offset,
                "a cell cannot have 0 values",
            )),
            Self::VAR_ID => Ok(Self::Var),
            n => Ok(Self::Fixed(n)),
        }
    }

    /// The number on disk.
    #[must_use]
    pub const fn id(self) -> u32 {
        match self {
            Self::Fixed(n) => n,
            Self::Var => Self::VAR_ID,
        }
    }

    /// Whether cells vary in length.
    #[must_use]
    pub const fn is_var(self) -> bool {
        matches!(self, Self::Var)
    }

    /// Bytes of one cell of `datatype`; `None` where cells vary.
    #[must_use]
    pub fn cell_size(self, datatype: Datatype) -> Option<usize> {
        match self {
            Self::Fixed(n) => Some((n as usize).saturating_mul(datatype.size())),
            Self::Var => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_are_a_bijection() {
        for (id, datatype) in (0u8..).zip(Datatype::ALL) {
            assert_eq!(datatype.id(), id);
            assert_eq!(Datatype::from_id(id, 0).unwrap(), datatype);
            assert_eq!(
                Datatype::from_name(&datatype.name().to_lowercase()),
                Some(datatype)
            );
            assert_eq!(datatype.default_fill().len(), datatype.size());
        }
        assert!(matches!(
            Datatype::from_id(44, 9),
            Err(DecodeError::UnknownId {
                id: 44,
                offset: 9,
                ..
            })
        ));
    }
}
