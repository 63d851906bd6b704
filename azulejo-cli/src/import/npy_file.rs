//! NumPy's `.npy`: one array, which becomes a dense attribute.

use super::ImportError;
use super::arrow::{self, TickRule};
use super::input::Input;
use super::parse;
use super::target::Target;
use super::text::RecordError;
use crate::error::{CliError, Result};
use crate::value;
use arrow_buffer::Buffer;
use azulejo::column::{ColumnBuffers, ColumnBuilder, ColumnType};
use azulejo::format::{CellValNum, Datatype};
use std::fs::File;
use std::io::{BufReader, Read};

/// A header is not longer.
const LONGEST_HEADER: u64 = 1 << 20;
/// NumPy's own limit.
const MOST_AXES: usize = 64;

/// A `.npy` file.
#[derive(Debug)]
pub struct NpyFile<'a> {
    input: &'a Input,
    /// Length of each axis.
    pub shape: Vec<u64>,
    /// Whether the first axis varies fastest.
    pub fortran: bool,
    /// What a cell holds.
    pub datatype: Datatype,
    /// How many values.
    pub cell_val_num: CellValNum,
    element: Element,
    data_start: u64,
}

/// How elements lie in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Element {
    size: usize,
    /// Bytes of what must be turned around; 1 if the order is ours.
    swap: usize,
    /// Half-precision floats, which become FLOAT32.
    half: bool,
}

impl<'a> NpyFile<'a> {
    /// Reads the header and checks that the file holds what it says.
    pub fn open(input: &'a Input) -> Result<Self> {
        let mut file = BufReader::new(input.reader()?);
        let mut start = [0; 8];
        file.read_exact(&mut start)
            .map_err(|_| input.error("the file is no .npy: it is too short"))?;
        if start[..6] != *b"\x93NUMPY" {
            return Err(input.error("the file is no .npy: it does not begin with \\x93NUMPY"));
        }
        let wide = match start[6] {
            1 => false,
            2 | 3 => true,
            other => return Err(input.error(format!("version {other} of .npy is not known"))),
        };
        let mut length = [0; 4];
        let length_size = if wide { 4 } else { 2 };
        let short = || input.error("the file ends in its header");
        file.read_exact(&mut length[..length_size])
            .map_err(|_| short())?;
        let length = u64::from(u32::from_le_bytes(length));
        if length > LONGEST_HEADER {
            return Err(input.error("the header is too long"));
        }
        let mut header = Vec::new();
        file.take(length)
            .read_to_end(&mut header)
            .map_err(|e| input.io_error(e))?;
        if header.len() as u64 != length {
            return Err(short());
        }
        let header = String::from_utf8_lossy(&header).into_owned();
        let header = Header::parse(&header).map_err(|reason| input.error(reason))?;
        let (datatype, cell_val_num, element) =
            element(&header.descr).map_err(|reason| input.error(reason))?;
        let npy = Self {
            input,
            shape: header.shape,
            fortran: header.fortran,
            datatype,
            cell_val_num,
            element,
            data_start: 8 + length_size as u64 + length,
        };
        let need = npy
            .cells()
            .and_then(|cells| cells.checked_mul(npy.element.size as u64));
        let have = input.size - npy.data_start.min(input.size);
        if need != Some(have) {
            let need = need.map_or("more".to_owned(), |n| n.to_string());
            return Err(input.error(format!(
                "the header asks for {need} bytes of data, the file has {have}"
            )));
        }
        Ok(npy)
    }

    /// The number of cells; `None` beyond 64 bits.
    pub fn cells(&self) -> Option<u64> {
        self.shape
            .iter()
            .try_fold(1u64, |cells, &axis| cells.checked_mul(axis))
    }

    /// What a column of its cells is.
    pub fn column_type(&self, name: &str) -> ColumnType {
        ColumnType::new(name, self.datatype).with_cell_val_num(self.cell_val_num)
    }

    /// An error in a row of a part of the file that begins with `first`.
    pub fn error(&self, first: u64, error: RecordError) -> CliError {
        ImportError {
            file: self.input.name.clone(),
            line: None,
            row: Some(first + error.row as u64 + 1),
            column: error.column,
            reason: error.reason,
        }
        .into()
    }

    /// The cells from the first to the last.
    pub fn cells_reader(&self) -> Result<CellReader<'_>> {
        let mut file = self.input.reader()?;
        std::io::copy(&mut (&mut file).take(self.data_start), &mut std::io::sink())
            .map_err(|e| self.input.io_error(e))?;
        Ok(CellReader { npy: self, file })
    }
}

/// Reads cells one after another.
#[derive(Debug)]
pub struct CellReader<'a> {
    npy: &'a NpyFile<'a>,
    file: File,
}

impl CellReader<'_> {
    /// The bytes of the next `cells` cells.
    pub fn read(&mut self, cells: usize) -> Result<Vec<u8>> {
        let element = self.npy.element;
        let bytes = cells * element.size;
        let mut data = Vec::with_capacity(bytes);
        (&mut self.file)
            .take(bytes as u64)
            .read_to_end(&mut data)
            .map_err(|e| self.npy.input.io_error(e))?;
        if data.len() < bytes {
            return Err(self.npy.input.error("the file ends early: did it change?"));
        }
        if element.swap > 1 {
            data.chunks_exact_mut(element.swap)
                .for_each(<[u8]>::reverse);
        }
        if element.half {
            let halves = data
                .chunks_exact(2)
                .map(|h| half(u16::from_le_bytes([h[0], h[1]])));
            data = halves.flat_map(f32::to_le_bytes).collect();
        }
        Ok(data)
    }
}

/// How elements of a file become cells.
#[derive(Debug)]
pub enum Turn {
    /// They have the same bytes.
    Same,
    /// UTF-32 becomes UTF-8.
    Text,
    /// Numbers become numbers of another type, each of which must fit.
    Numbers,
    /// Ticks become ticks of another length, each of which must come out even.
    Ticks(TickRule),
}

impl Turn {
    /// How elements of one type become cells of another; `None` where there is no way. Integers are
    /// moments only where it is `asked` for.
    pub fn of(elements: &ColumnType, cells: &ColumnType, asked: bool) -> Option<Self> {
        let (from, to) = (elements.datatype, cells.datatype);
        if cells.enumeration.is_some() {
            return None;
        }
        if from == Datatype::StringUtf32 && to == Datatype::StringUtf8 && cells.is_var() {
            return Some(Self::Text);
        }
        let lump = |of: Datatype| parse::is_text(of) || parse::is_bytes(of);
        if lump(from) || lump(to) {
            let alike = lump(from) && lump(to) && from.physical() == to.physical();
            let same = alike && !cells.is_var() && elements.cell_size() == cells.cell_size();
            return same.then_some(Self::Same);
        }
        if elements.cell_val_num != cells.cell_val_num {
            return None;
        }
        let number = |of: Datatype| of.is_integer() || of.is_real() || of == Datatype::Bool;
        let ticks = |of: Datatype| of.is_datetime() || of.is_time();
        match (from, to) {
            _ if from == to => Some(Self::Same),
            _ if ticks(from) && ticks(to) => TickRule::between(from, to).map(Self::Ticks),
            _ if number(from) && number(to) => Some(Self::Numbers),
            _ if asked && from.is_integer() && ticks(to) => Some(Self::Numbers),
            (_, Datatype::Int64) if asked && ticks(from) => Some(Self::Same),
            _ => None,
        }
    }
}

/// The elements as cells of a column, of which one that does not fit is an error with its number.
pub fn cells_of(
    elements: &ColumnType,
    target: &Target,
    turn: &Turn,
    data: Vec<u8>,
) -> std::result::Result<ColumnBuffers, RecordError> {
    let column = &target.column;
    let count = data.len() / elements.cell_size().max(1);
    let data = match turn {
        Turn::Text => {
            let mut builder = ColumnBuilder::with_capacity(column.clone(), count, data.len() / 4);
            for element in data.chunks_exact(elements.cell_size()) {
                builder.append_cell(utf8_of(element).as_bytes(), true);
            }
            return Ok(builder.finish());
        }
        Turn::Same => Buffer::from_vec(data),
        Turn::Numbers => numbers_of(elements, target, &data)?,
        Turn::Ticks(rule) => {
            let ticks = data.as_chunks::<8>().0.iter().enumerate();
            let turned = ticks.map(|(at, tick)| {
                let tick = i64::from_le_bytes(*tick);
                rule.apply(tick).ok_or_else(|| {
                    let text = value::tick_text(elements.datatype, tick);
                    wrong(
                        elements,
                        target,
                        at,
                        &format!("{text} is not a value of {}", column.datatype),
                    )
                })
            });
            Buffer::from_vec(turned.collect::<std::result::Result<Vec<i64>, _>>()?)
        }
    };
    let validity = column.nullable.then(|| Buffer::from_vec(vec![1u8; count]));
    Ok(ColumnBuffers {
        column_type: column.clone(),
        cell_num: count,
        data,
        offsets: None,
        validity,
    })
}

/// Numbers of a file as those of a field.
fn numbers_of(
    elements: &ColumnType,
    target: &Target,
    data: &[u8],
) -> std::result::Result<Buffer, RecordError> {
    let column = ColumnType::new(target.column.name.clone(), target.column.datatype);
    let item = Target::new(column, target.source, false);
    let array = arrow::numbers_array(elements.datatype, data);
    let numbers = arrow::column(&array, &item)
        .map_err(|error| wrong(elements, target, error.row, &error.reason))?;
    Ok(numbers.data)
}

/// What is wrong with a value, of which a cell may have several.
fn wrong(elements: &ColumnType, target: &Target, value: usize, reason: &str) -> RecordError {
    let values = elements.cell_size() / elements.datatype.size().max(1);
    RecordError {
        row: value / values.max(1),
        lines: 0,
        column: Some(target.column.name.to_string()),
        reason: reason.to_owned(),
    }
}

/// UTF-32 padded with zeros as UTF-8. What is no character becomes the replacement character.
pub fn utf8_of(element: &[u8]) -> String {
    let points = element
        .chunks_exact(4)
        .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]));
    let mut text: String = points
        .map(|c| char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    text.truncate(text.trim_end_matches('\0').len());
    text
}

/// A half-precision float.
pub fn half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    match exponent {
        0 => sign * fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

/// The type of an element from its name, such as `<f8` or `<M8[ns]`.
fn element(descr: &str) -> Result<(Datatype, CellValNum, Element), String> {
    use Datatype as D;
    let unknown = || format!("elements of type {descr:?} cannot become cells");
    let (order, rest) = descr.split_at_checked(1).ok_or_else(unknown)?;
    let (kind, rest) = rest.split_at_checked(1).ok_or_else(unknown)?;
    let (size, unit) = match rest.split_once('[') {
        Some((size, unit)) => (size, Some(unit.trim_end_matches(']'))),
        None => (rest, None),
    };
    let size: u32 = size
        .parse()
        .ok()
        .filter(|&n| n > 0 && n < 1 << 24)
        .ok_or_else(unknown)?;
    let plain = |datatype| (datatype, CellValNum::ONE, size as usize);
    let (datatype, cell_val_num, part) = match (kind, size) {
        ("b", 1) => plain(D::Bool),
        ("i", 1) => plain(D::Int8),
        ("i", 2) => plain(D::Int16),
        ("i", 4) => plain(D::Int32),
        ("i", 8) => plain(D::Int64),
        ("u", 1) => plain(D::UInt8),
        ("u", 2) => plain(D::UInt16),
        ("u", 4) => plain(D::UInt32),
        ("u", 8) => plain(D::UInt64),
        ("f", 2 | 4) => plain(D::Float32),
        ("f", 8) => plain(D::Float64),
        // Complex numbers are pairs, as other writers of TileDB store them.
        ("c", 8) => (D::Float32, CellValNum::Fixed(2), 4),
        ("c", 16) => (D::Float64, CellValNum::Fixed(2), 8),
        ("M" | "m", 8) => {
            plain(tick_type(kind == "M", unit.unwrap_or_default()).ok_or_else(unknown)?)
        }
        ("S", n) => (D::Char, CellValNum::Fixed(n), 1),
        ("U", n) => (D::StringUtf32, CellValNum::Fixed(n), 4),
        ("V", n) => (D::Blob, CellValNum::Fixed(n), 1),
        _ => return Err(unknown()),
    };
    let bytes = if kind == "U" {
        size as usize * 4
    } else {
        size as usize
    };
    let swap = match order {
        ">" => part,
        "<" | "|" | "=" => 1,
        _ => return Err(unknown()),
    };
    Ok((
        datatype,
        cell_val_num,
        Element {
            size: bytes,
            swap,
            half: (kind, size) == ("f", 2),
        },
    ))
}

/// The type of ticks of a unit as NumPy names it.
pub fn tick_type(date: bool, unit: &str) -> Option<Datatype> {
    let name = match unit {
        "Y" => "YEAR",
        "M" => "MONTH",
        "W" => "WEEK",
        "D" => "DAY",
        "h" => "HR",
        "m" => "MIN",
        "s" => "SEC",
        "ms" => "MS",
        "us" => "US",
        "ns" => "NS",
        "ps" => "PS",
        "fs" => "FS",
        "as" => "AS",
        _ => return None,
    };
    Datatype::from_name(&format!(
        "{}_{name}",
        if date { "DATETIME" } else { "TIME" }
    ))
}

/// The dictionary at the beginning of the file, a Python literal.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    descr: String,
    fortran: bool,
    shape: Vec<u64>,
}

impl Header {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("the header is not understood: {}", text.trim());
        let value = |key: &str| {
            let quoted = [format!("'{key}':"), format!("\"{key}\":")];
            let found = quoted
                .iter()
                .find_map(|key| text.find(key).map(|at| at + key.len()));
            found
                .and_then(|at| text.get(at..))
                .map(str::trim_start)
                .ok_or_else(wrong)
        };
        let descr = value("descr")?;
        if descr.starts_with('[') {
            return Err(
                "its elements have several fields; save each field as a file of its own".to_owned(),
            );
        }
        let quote = descr
            .chars()
            .next()
            .filter(|c| matches!(c, '\'' | '"'))
            .ok_or_else(wrong)?;
        let descr = descr[1..].split(quote).next().ok_or_else(wrong)?.to_owned();
        let fortran = match value("fortran_order")? {
            v if v.starts_with("True") => true,
            v if v.starts_with("False") => false,
            _ => return Err(wrong()),
        };
        let shape = value("shape")?
            .strip_prefix('(')
            .and_then(|s| s.split(')').next())
            .ok_or_else(wrong)?;
        let axes = shape
            .split(',')
            .map(str::trim)
            .filter(|axis| !axis.is_empty());
        let shape: Option<Vec<u64>> = axes
            .map(|axis| axis.trim_end_matches('L').parse().ok())
            .collect();
        let shape = shape
            .filter(|shape| shape.len() <= MOST_AXES)
            .ok_or_else(wrong)?;
        Ok(Self {
            descr,
            fortran,
            shape,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_as_numpy_writes_them() {
        let header =
            Header::parse("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }  \n")
                .unwrap();
        assert_eq!(
            header,
            Header {
                descr: "<f8".into(),
                fortran: false,
                shape: vec![3, 4]
            }
        );
        let header =
            Header::parse("{'shape': (5,), 'fortran_order': True, 'descr': '<M8[ns]'}").unwrap();
        assert_eq!(
            header,
            Header {
                descr: "<M8[ns]".into(),
                fortran: true,
                shape: vec![5]
            }
        );
        assert_eq!(
            Header::parse("{'descr': '|b1', 'fortran_order': False, 'shape': ()}")
                .unwrap()
                .shape,
            [0u64; 0]
        );
        assert!(
            Header::parse("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}")
                .is_err()
        );
        for text in [
            "",
            "{}",
            "{'descr': '<f8', 'fortran_order': 1, 'shape': (1,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
        ] {
            assert!(Header::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn elements_have_types() {
        let kind = |descr: &str| element(descr).map(|(d, n, e)| (d, n, e.size, e.swap)).ok();
        assert_eq!(
            kind("<f8"),
            Some((Datatype::Float64, CellValNum::ONE, 8, 1))
        );
        assert_eq!(kind(">i2"), Some((Datatype::Int16, CellValNum::ONE, 2, 2)));
        assert_eq!(
            kind(">U3"),
            Some((Datatype::StringUtf32, CellValNum::Fixed(3), 12, 4))
        );
        assert_eq!(
            kind(">c16"),
            Some((Datatype::Float64, CellValNum::Fixed(2), 16, 8))
        );
        assert_eq!(
            kind("<m8[s]"),
            Some((Datatype::TimeSecond, CellValNum::ONE, 8, 1))
        );
        assert_eq!(
            kind("|S5"),
            Some((Datatype::Char, CellValNum::Fixed(5), 5, 1))
        );
        for descr in ["", "<", "|O8", "<f16", "<M8", "<M8[fortnight]", "<S0", "x"] {
            assert_eq!(kind(descr), None, "{descr}");
        }
    }

    #[test]
    fn texts_lose_their_padding() {
        let element: Vec<u8> = ['é' as u32, 0, 'b' as u32, 0]
            .iter()
            .flat_map(|c| c.to_le_bytes())
            .collect();
        assert_eq!(utf8_of(&element), "é\0b");
    }

    #[test]
    fn halves_become_floats() {
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x0001, 2f32.powi(-24)),
            (0x7bff, 65504.0),
            (0xfc00, f32::NEG_INFINITY),
        ] {
            assert_eq!(half(bits), value);
        }
        assert!(half(0x7e00).is_nan());
    }
}
