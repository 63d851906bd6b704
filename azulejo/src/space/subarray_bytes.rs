//! A subarray as bytes, for readers on other machines.

use super::{DimSelection, PointColumn, Points, Subarray};
use azulejo_format::wire::{ByteReader, ByteWriter};
use azulejo_format::{DecodeError, Range};

const WHAT: &str = "subarray";

impl Subarray {
    /// As bytes.
    ///
    /// ```
    /// use azulejo::{Subarray, format::Range};
    /// let subarray = Subarray::ranges([Range::of(1i32, 5), Range::of(0i32, 9)]);
    /// assert_eq!(Subarray::decode(&subarray.encode())?, subarray);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = ByteWriter::new();
        match self {
            Self::Box(selections) => {
                w.u8(0);
                w.u64(selections.len() as u64);
                for selection in selections {
                    write_selection(&mut w, selection);
                }
            }
            Self::Points(points) => {
                w.u8(1);
                w.u64(points.coordinates.len() as u64);
                for column in &points.coordinates {
                    write_bytes(&mut w, &column.data);
                    w.flag(column.offsets.is_some());
                    if let Some(offsets) = &column.offsets {
                        w.u64(offsets.len() as u64);
                        w.u64s(offsets);
                    }
                }
            }
        }
        w.into_bytes()
    }

    /// From the bytes that [`Self::encode`] made. Whether it fits an array is seen when it is read.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut r = ByteReader::new(bytes);
        let is_points = r.flag(WHAT)?;
        let count = r.u64(WHAT)?;
        let count = r.check_count(count, 1, WHAT)?;
        let subarray = if is_points {
            let columns = (0..count).map(|_| read_column(&mut r));
            Self::Points(Points {
                coordinates: columns.collect::<Result<_, _>>()?,
            })
        } else {
            let selections = (0..count).map(|_| read_selection(&mut r));
            Self::Box(selections.collect::<Result<_, _>>()?)
        };
        r.finish(WHAT)?;
        Ok(subarray)
    }
}

fn write_bytes(w: &mut ByteWriter, bytes: &[u8]) {
    w.u64(bytes.len() as u64);
    w.bytes(bytes);
}

fn read_bytes(r: &mut ByteReader<'_>) -> Result<Vec<u8>, DecodeError> {
    let len = r.u64(WHAT)?;
    Ok(r.bytes_u64(len, WHAT)?.to_vec())
}

fn write_range(w: &mut ByteWriter, range: &Range) {
    write_bytes(w, &range.start);
    write_bytes(w, &range.end);
}

fn read_range(r: &mut ByteReader<'_>) -> Result<Range, DecodeError> {
    Ok(Range::new(read_bytes(r)?, read_bytes(r)?))
}

fn write_selection(w: &mut ByteWriter, selection: &DimSelection) {
    match selection {
        DimSelection::All => w.u8(0),
        DimSelection::Ranges(ranges) => {
            w.u8(1);
            w.u64(ranges.len() as u64);
            for range in ranges {
                write_range(w, range);
            }
        }
        DimSelection::Strided { range, step } => {
            w.u8(2);
            write_range(w, range);
            w.u64(*step);
        }
    }
}

fn read_selection(r: &mut ByteReader<'_>) -> Result<DimSelection, DecodeError> {
    match r.u8(WHAT)? {
        0 => Ok(DimSelection::All),
        1 => {
            let count = r.u64(WHAT)?;
            let count = r.check_count(count, 16, WHAT)?;
            let ranges = (0..count)
                .map(|_| read_range(r))
                .collect::<Result<_, _>>()?;
            Ok(DimSelection::Ranges(ranges))
        }
        2 => Ok(DimSelection::Strided {
            range: read_range(r)?,
            step: r.u64(WHAT)?,
        }),
        _ => Err(r.invalid(WHAT, "it has a selection of an unknown kind")),
    }
}

fn read_column(r: &mut ByteReader<'_>) -> Result<PointColumn, DecodeError> {
    let data = read_bytes(r)?;
    let offsets = match r.flag(WHAT)? {
        true => {
            let count = r.u64(WHAT)?;
            Some(r.u64s(count, WHAT)?)
        }
        false => None,
    };
    Ok(PointColumn { data, offsets })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_travels_and_damage_is_an_error() {
        let strided = DimSelection::Strided {
            range: Range::of(3i16, 9),
            step: 2,
        };
        let ranges = DimSelection::Ranges(vec![Range::new("a", ""), Range::new("", "")]);
        let points = Points {
            coordinates: vec![
                PointColumn {
                    data: vec![1, 2, 3],
                    offsets: Some(vec![0, 1, 3]),
                },
                PointColumn {
                    data: vec![0; 8],
                    offsets: None,
                },
            ],
        };
        for subarray in [
            Subarray::all(),
            Subarray::Box(vec![DimSelection::All, strided, ranges]),
            Subarray::Points(points),
        ] {
            let bytes = subarray.encode();
            assert_eq!(Subarray::decode(&bytes).unwrap(), subarray);
            for len in 0..bytes.len() {
                assert!(Subarray::decode(&bytes[..len]).is_err(), "{len}");
            }
            for (i, _) in bytes.iter().enumerate() {
                let mut damaged = bytes.clone();
                damaged[i] ^= 0xff;
                let _ = Subarray::decode(&damaged);
            }
        }
    }
}
