//! NumPy's `.npy` format, version 1.0: one attribute of a dense array.

use crate::error::{CliError, Result};
use azulejo::ColumnBuffers;
use azulejo::column::ColumnType;
use azulejo::format::{CellValNum, Datatype, Physical};
use std::io::Write;

/// A `.npy` file being written.
#[derive(Debug)]
pub struct NpyWriter<W: Write> {
    out: W,
    column: ColumnType,
    cells_left: u64,
}

impl<W: Write> NpyWriter<W> {
    /// Begins a file for cells of `column` in an array of the given shape; `columns_first` if the
    /// first dimension varies fastest.
    pub fn new(
        mut out: W,
        column: &ColumnType,
        shape: &[u64],
        columns_first: bool,
    ) -> Result<Self> {
        let descr = descr(column)?;
        let mut shape = shape.to_vec();
        let cells_left = shape
            .iter()
            .try_fold(1u64, |n, &d| n.checked_mul(d))
            .ok_or_else(|| {
                CliError::Format("the selection has more cells than a file can hold".into())
            })?;
        if let (CellValNum::Fixed(n @ 2..), false) = (column.cell_val_num, is_lump(column.datatype))
        {
            if columns_first {
                return Err(CliError::usage(format!(
                    "{:?} has {n} values a cell: .npy cannot keep them together in column-major order; leave --order out",
                    column.name
                )));
            }
            shape.push(u64::from(n));
        }
        out.write_all(&header(&descr, &shape, columns_first))?;
        Ok(Self {
            out,
            column: column.clone(),
            cells_left,
        })
    }

    /// Writes the cells of a batch. Null floats become NaN and null datetimes NaT; other types have
    /// no null.
    pub fn write(&mut self, cells: &ColumnBuffers) -> Result<()> {
        let Some(left) = self.cells_left.checked_sub(cells.cell_num as u64) else {
            return Err(CliError::Format(
                "the read gave more cells than the selection has".into(),
            ));
        };
        self.cells_left = left;
        let nulls = cells
            .validity
            .as_ref()
            .is_some_and(|validity| validity.contains(&0));
        if !nulls {
            return Ok(self.out.write_all(&cells.data)?);
        }
        let datatype = self.column.datatype;
        let null: Vec<u8> = match datatype.physical() {
            Physical::F32 => f32::NAN.to_le_bytes().to_vec(),
            Physical::F64 => f64::NAN.to_le_bytes().to_vec(),
            Physical::I64 if datatype.is_datetime() || datatype.is_time() => {
                i64::MIN.to_le_bytes().to_vec()
            }
            _ => {
                return Err(CliError::Format(format!(
                    "{:?} holds nulls, and NumPy's {datatype} has none; export to .parquet or .arrow",
                    self.column.name
                )));
            }
        };
        let view = cells.view();
        let mut out = Vec::with_capacity(cells.data.len());
        for cell in 0..cells.cell_num {
            if view.is_valid(cell) {
                out.extend_from_slice(view.cell(cell));
            } else {
                out.extend(null.iter().cycle().take(view.cell_size));
            }
        }
        Ok(self.out.write_all(&out)?)
    }

    /// Checks that all cells came.
    pub fn finish(mut self) -> Result<()> {
        if self.cells_left > 0 {
            return Err(CliError::Format(format!(
                "the read gave {} cells too few",
                self.cells_left
            )));
        }
        Ok(self.out.flush()?)
    }
}

/// Whether a cell of several values is one NumPy element.
fn is_lump(datatype: Datatype) -> bool {
    datatype.is_string() || datatype.is_byte() || matches!(datatype, Datatype::Char | Datatype::Any)
}

/// NumPy's name of the element type.
fn descr(column: &ColumnType) -> Result<String> {
    let name = &column.name;
    let datatype = column.datatype;
    let CellValNum::Fixed(n) = column.cell_val_num else {
        return Err(CliError::usage(format!(
            "{name:?} has cells of different lengths, which .npy does not have; export to .parquet or .arrow"
        )));
    };
    if column.enumeration.is_some() {
        return Err(CliError::usage(format!(
            "{name:?} is enumerated, which .npy does not know: --raw exports the indices, .parquet and .arrow the labels"
        )));
    }
    if is_lump(datatype) {
        return Ok(match datatype {
            Datatype::StringUtf32 | Datatype::StringUcs4 => format!("<U{n}"),
            // Opaque bytes may end in zeros, which NumPy strips from an S.
            Datatype::Blob | Datatype::GeomWkb | Datatype::Any => format!("|V{n}"),
            _ => format!("|S{}", u64::from(n) * datatype.size() as u64),
        });
    }
    if let Some(unit) = crate::value::unit(datatype) {
        let unit = match unit {
            "YEAR" => "Y",
            "MONTH" => "M",
            "WEEK" => "W",
            "DAY" => "D",
            "HR" => "h",
            "MIN" => "m",
            "SEC" => "s",
            "MS" => "ms",
            "US" => "us",
            "NS" => "ns",
            "PS" => "ps",
            "FS" => "fs",
            _ => "as",
        };
        return Ok(format!(
            "<{}8[{unit}]",
            if datatype.is_datetime() { 'M' } else { 'm' }
        ));
    }
    let descr = match datatype.physical() {
        Physical::U8 if datatype == Datatype::Bool => "|b1",
        Physical::I8 => "|i1",
        Physical::U8 => "|u1",
        Physical::I16 => "<i2",
        Physical::I32 => "<i4",
        Physical::I64 => "<i8",
        Physical::U16 => "<u2",
        Physical::U32 => "<u4",
        Physical::U64 => "<u8",
        Physical::F32 => "<f4",
        Physical::F64 => "<f8",
    };
    Ok(descr.to_owned())
}

fn header(descr: &str, shape: &[u64], columns_first: bool) -> Vec<u8> {
    let order = if columns_first { "True" } else { "False" };
    let numbers: Vec<String> = shape.iter().map(u64::to_string).collect();
    let comma = if numbers.len() == 1 { "," } else { "" };
    let mut text = format!(
        "{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({}{comma}), }}",
        numbers.join(", ")
    );
    // Magic, version and length take 10 bytes; the data begins at a multiple of 64.
    let padding = 63 - (10 + text.len()) % 64;
    text.push_str(&" ".repeat(padding));
    text.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo::column::ColumnBuilder;

    fn column(column_type: ColumnType, cells: &[Option<&[u8]>]) -> ColumnBuffers {
        let size = column_type.cell_size();
        let mut builder = ColumnBuilder::new(column_type);
        for cell in cells {
            builder.append_cell(cell.unwrap_or(&vec![0; size]), cell.is_some());
        }
        builder.finish()
    }

    fn write(cells: &ColumnBuffers, shape: &[u64], columns_first: bool) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let mut writer = NpyWriter::new(&mut out, &cells.column_type, shape, columns_first)?;
        writer.write(cells)?;
        writer.finish()?;
        Ok(out)
    }

    #[test]
    fn the_header_is_aligned_and_the_data_follows() {
        let cells = column(
            ColumnType::new("a", Datatype::Int16),
            &[Some(&[1, 0]), Some(&[2, 0])],
        );
        let out = write(&cells, &[1, 2], false).unwrap();
        assert_eq!(out.len(), 128 + 4);
        assert!(out.starts_with(
            b"\x93NUMPY\x01\x00\x76\x00{'descr': '<i2', 'fortran_order': False, 'shape': (1, 2), }"
        ));
        assert_eq!(&out[127..], [b'\n', 1, 0, 2, 0]);
        assert!(
            String::from_utf8_lossy(&write(&cells, &[2], true).unwrap())
                .contains("True, 'shape': (2,), }")
        );
    }

    #[test]
    fn the_number_of_cells_must_match() {
        let cells = column(
            ColumnType::new("a", Datatype::UInt8),
            &[Some(&[1]), Some(&[2])],
        );
        assert!(write(&cells, &[3], false).is_err());
        assert!(write(&cells, &[1], false).is_err());
    }

    #[test]
    fn nulls_are_nan_or_refused() {
        let floats = column(
            ColumnType::new("a", Datatype::Float32).with_nulls(),
            &[None],
        );
        assert!(
            write(&floats, &[1], false)
                .unwrap()
                .ends_with(&f32::NAN.to_le_bytes())
        );
        let days = column(
            ColumnType::new("a", Datatype::DateTimeDay).with_nulls(),
            &[None],
        );
        let out = write(&days, &[1], false).unwrap();
        assert!(
            out.ends_with(&i64::MIN.to_le_bytes())
                && String::from_utf8_lossy(&out).contains("'<M8[D]'")
        );
        let numbers = column(ColumnType::new("a", Datatype::Int32).with_nulls(), &[None]);
        assert!(
            write(&numbers, &[1], false)
                .unwrap_err()
                .to_string()
                .contains("parquet")
        );
    }

    #[test]
    fn types_that_numpy_lacks_are_refused() {
        assert!(
            descr(&ColumnType::new("a", Datatype::Int32).with_cell_val_num(CellValNum::Var))
                .is_err()
        );
        assert_eq!(
            descr(&ColumnType::new("a", Datatype::Char).with_cell_val_num(CellValNum::Fixed(5)))
                .unwrap(),
            "|S5"
        );
        let pair = ColumnType::new("a", Datatype::Int32).with_cell_val_num(CellValNum::Fixed(2));
        assert!(NpyWriter::new(Vec::new(), &pair, &[3], true).is_err());
        let mut out = Vec::new();
        NpyWriter::new(&mut out, &pair, &[3], false).unwrap();
        assert!(String::from_utf8_lossy(&out).contains("(3, 2)"));
    }
}
