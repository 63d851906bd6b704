//! An enumeration: the values that an attribute's integers stand for. Page: *Enumerations*.

use super::SchemaError;
use crate::datatype::{CellValNum, Datatype};
use crate::error::{DecodeError, Result};
use crate::wire::{ByteReader, ByteWriter};
use std::collections::HashMap;

/// One enumeration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enumeration {
    /// Its name.
    pub name: String,
    /// File name in `__schema/__enumerations` (stored as the enumeration's path name).
    pub file_name: String,
    /// Type of the values.
    pub datatype: Datatype,
    /// Values in an entry.
    pub cell_val_num: CellValNum,
    /// Whether the order of the entries means something.
    pub ordered: bool,
    /// The values' bytes, one after another.
    pub data: Vec<u8>,
    /// Start of each entry in `data`, for var-length entries; empty otherwise.
    pub offsets: Vec<u64>,
}

/// The version of the structure, apart from the schema's.
const VERSION: u32 = 0;
const WHAT: &str = "enumeration";

impl Enumeration {
    /// A new enumeration of values of variable length, such as strings, with a file name of its
    /// own.
    ///
    /// # Errors
    /// An empty name, or a value that is there twice.
    pub fn of_strings<S: AsRef<[u8]>>(
        name: impl Into<String>,
        datatype: Datatype,
        ordered: bool,
        values: impl IntoIterator<Item = S>,
    ) -> Result<Self, SchemaError> {
        let (mut data, mut offsets) = (Vec::new(), Vec::new());
        for value in values {
            offsets.push(data.len() as u64);
            data.extend_from_slice(value.as_ref());
        }
        let enumeration = Self {
            name: name.into(),
            file_name: new_file_name(),
            datatype,
            cell_val_num: CellValNum::Var,
            ordered,
            data,
            offsets,
        };
        enumeration.check()?;
        Ok(enumeration)
    }

    /// A new enumeration of values of fixed size, one after another in `data`, with a file name of
    /// its own.
    ///
    /// # Errors
    /// An empty name, data that is not a whole number of values, or a value that is there twice.
    pub fn of_fixed(
        name: impl Into<String>,
        datatype: Datatype,
        cell_val_num: CellValNum,
        ordered: bool,
        data: Vec<u8>,
    ) -> Result<Self, SchemaError> {
        let enumeration = Self {
            name: name.into(),
            file_name: new_file_name(),
            datatype,
            cell_val_num,
            ordered,
            data,
            offsets: Vec::new(),
        };
        enumeration.check()?;
        Ok(enumeration)
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.cell_size() {
            Some(size) => self.data.len().checked_div(size).unwrap_or(0),
            None => self.offsets.len(),
        }
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of one value; `None` where values vary.
    #[must_use]
    pub fn cell_size(&self) -> Option<usize> {
        self.cell_val_num.cell_size(self.datatype)
    }

    /// The bytes of the value with an index.
    #[must_use]
    pub fn value(&self, index: usize) -> Option<&[u8]> {
        let (start, end) = match self.cell_size() {
            Some(size) => (
                index.checked_mul(size)?,
                index.checked_add(1)?.checked_mul(size)?,
            ),
            None => {
                let start = usize::try_from(*self.offsets.get(index)?).ok()?;
                let next = self.offsets.get(index + 1).map(|end| usize::try_from(*end));
                (start, next.transpose().ok()?.unwrap_or(self.data.len()))
            }
        };
        self.data.get(start..end)
    }

    /// All values, in order.
    pub fn values(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|index| self.value(index))
    }

    /// A table from values to indices.
    #[must_use]
    pub fn index(&self) -> EnumerationIndex<'_> {
        EnumerationIndex {
            indices: self.values().zip(0..).collect(),
        }
    }

    /// This enumeration with more values behind the old ones, under a new file name.
    ///
    /// # Errors
    /// Values of another length than the enumeration's, or that it holds already.
    pub fn extend<S: AsRef<[u8]>>(
        &self,
        values: impl IntoIterator<Item = S>,
    ) -> Result<Self, SchemaError> {
        let mut extended = self.clone();
        extended.file_name = new_file_name();
        for value in values {
            match self.cell_size() {
                None => extended.offsets.push(extended.data.len() as u64),
                Some(size) if size == value.as_ref().len() => {}
                Some(_) => return Err(self.error("is extended by a value of another size")),
            }
            extended.data.extend_from_slice(value.as_ref());
        }
        extended.check()?;
        Ok(extended)
    }

    /// Whether this enumeration is `other`, or `other` with more values behind.
    #[must_use]
    pub fn is_extension_of(&self, other: &Self) -> bool {
        self.name == other.name && self.ordered == other.ordered && self.values_begin_with(other)
    }

    /// Whether the values of `other` stand here where they stand there, whatever follows.
    #[must_use]
    pub fn values_begin_with(&self, other: &Self) -> bool {
        self.datatype == other.datatype
            && self.cell_val_num == other.cell_val_num
            && self.data.starts_with(&other.data)
            && self.offsets.starts_with(&other.offsets)
            // The last old value must not have grown.
            && other.len().checked_sub(1).is_none_or(|last| self.value(last) == other.value(last))
    }

    fn error(&self, reason: &'static str) -> SchemaError {
        SchemaError::Enumeration {
            name: self.name.clone(),
            reason,
        }
    }

    /// Checks what decoding enforces: offsets in order and within the data, no value twice.
    pub fn check(&self) -> Result<(), SchemaError> {
        if self.name.is_empty() {
            return Err(self.error("has no name"));
        }
        if self.file_name.contains(['/', '\\', '\0']) {
            return Err(self.error("has a file name that is not one"));
        }
        match self.cell_size() {
            Some(size) => {
                if size == 0 || !self.data.len().is_multiple_of(size) || !self.offsets.is_empty() {
                    return Err(self.error("is not a whole number of values"));
                }
            }
            None => {
                let len = self.data.len() as u64;
                if !self.offsets.is_sorted() || self.offsets.last().is_some_and(|last| *last > len)
                {
                    return Err(self.error("has offsets out of order"));
                }
                if self.offsets.is_empty() && len > 0 {
                    return Err(self.error("has data and no offsets"));
                }
            }
        }
        if self.index().indices.len() != self.len() {
            return Err(self.error("holds a value twice"));
        }
        Ok(())
    }

    /// Reads an enumeration from the unfiltered payload of its generic tile.
    ///
    /// # Errors
    /// Bytes that are not an enumeration, or one that [`Self::check`] refuses.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let r = &mut ByteReader::new(bytes);
        let at = r.offset();
        let found = r.u32("enumeration version")?;
        if found > VERSION {
            return Err(DecodeError::invalid(
                "enumeration version",
                at,
                format!("{found} is newer than {VERSION}"),
            ));
        }
        let len = r.u32("enumeration name length")?;
        let name = r.text(len.into(), "enumeration name")?;
        let len = r.u32("enumeration file name length")?;
        let file_name = r.text(len.into(), "enumeration file name")?;
        let at = r.offset();
        let datatype = Datatype::from_id(r.u8("enumeration datatype")?, at)?;
        let at = r.offset();
        let cell_val_num = CellValNum::from_id(r.u32("enumeration cell val num")?, at)?;
        let ordered = r.flag("enumeration is ordered")?;
        let len = r.u64("enumeration data length")?;
        let data = r.bytes_u64(len, "enumeration data")?.to_vec();
        let offsets = if cell_val_num.is_var() {
            let at = r.offset();
            let len = r.u64("enumeration offsets length")?;
            if len % 8 != 0 {
                return Err(DecodeError::invalid(
                    "enumeration offsets length",
                    at,
                    "not a multiple of 8",
                ));
            }
            r.u64s(len / 8, "enumeration offsets")?
        } else {
            Vec::new()
        };
        r.finish(WHAT)?;
        let enumeration = Self {
            name,
            file_name,
            datatype,
            cell_val_num,
            ordered,
            data,
            offsets,
        };
        enumeration
            .check()
            .map_err(|error| DecodeError::invalid(WHAT, r.offset(), error.to_string()))?;
        Ok(enumeration)
    }

    /// Writes the enumeration as the payload of a generic tile.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = ByteWriter::new();
        w.u32(VERSION);
        w.text32(&self.name);
        w.text32(&self.file_name);
        w.u8(self.datatype.id());
        w.u32(self.cell_val_num.id());
        w.flag(self.ordered);
        w.u64(self.data.len() as u64);
        w.bytes(&self.data);
        if self.cell_val_num.is_var() {
            w.u64(self.offsets.len() as u64 * 8);
            w.u64s(&self.offsets);
        }
        w.into_bytes()
    }
}

/// A table from the values of an enumeration to their indices.
#[derive(Debug, Clone)]
pub struct EnumerationIndex<'a> {
    indices: HashMap<&'a [u8], u64>,
}

impl EnumerationIndex<'_> {
    /// The index of a value, given by its bytes.
    #[must_use]
    pub fn get(&self, value: &[u8]) -> Option<u64> {
        self.indices.get(value).copied()
    }
}

/// A name in `__schema/__enumerations`, as the reference makes them.
fn new_file_name() -> String {
    format!("__{}_{VERSION}", crate::timestamped_name::new_uuid())
}
