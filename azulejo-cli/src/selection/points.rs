//! A list of coordinates in a CSV file.

use crate::error::{CliError, Result};
use crate::value::{self, Bound};
use azulejo::format::ArraySchema;
use azulejo::space::{PointColumn, Points};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Reads the points of a file. If the first line names every dimension, columns are found by name;
/// otherwise all lines are points, with the dimensions in the schema's order.
pub fn read(schema: &ArraySchema, file: &Path) -> Result<Points> {
    let input: Box<dyn Read> = match file == Path::new("-") {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(File::open(file).map_err(|e| CliError::io("read", file, e))?),
    };
    parse(schema, input).map_err(|e| match e {
        CliError::Usage(reason) => {
            CliError::usage(format!("--points {}: {reason}", file.display()))
        }
        other => other,
    })
}

fn parse(schema: &ArraySchema, input: impl Read) -> Result<Points> {
    let dimensions = &schema.domain.dimensions;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(input);
    let mut columns: Vec<PointColumn> = dimensions
        .iter()
        .map(|d| PointColumn {
            data: Vec::new(),
            offsets: d.cell_val_num.is_var().then(|| vec![0]),
        })
        .collect();
    let mut places: Vec<usize> = (0..dimensions.len()).collect();
    for (number, record) in reader.records().enumerate() {
        let record = record.map_err(|e| CliError::usage(e.to_string()))?;
        let line = number + 1;
        if number == 0 {
            let named: Option<Vec<usize>> = dimensions
                .iter()
                .map(|d| record.iter().position(|cell| cell.trim() == d.name))
                .collect();
            if let Some(named) = named {
                places = named;
                continue;
            }
        }
        for ((dimension, column), &place) in dimensions.iter().zip(&mut columns).zip(&places) {
            let cell = record.get(place).ok_or_else(|| {
                CliError::usage(format!(
                    "line {line} has no value for dimension {:?}",
                    dimension.name
                ))
            })?;
            let bytes = value::parse(dimension.datatype, cell, Bound::Low).map_err(|reason| {
                CliError::usage(format!(
                    "line {line}, dimension {:?}: {reason}",
                    dimension.name
                ))
            })?;
            column.data.extend(bytes);
            if let Some(offsets) = &mut column.offsets {
                offsets.push(column.data.len() as u64);
            }
        }
    }
    Ok(Points {
        coordinates: columns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo::format::filter::Pipeline;
    use azulejo::format::schema::{ArrayType, CurrentDomain, Dimension, Domain, Layout};
    use azulejo::format::{CellValNum, Datatype, FormatVersion, Range};

    fn schema() -> ArraySchema {
        let dimension = |name: &str, datatype, cell_val_num, domain| Dimension {
            name: String::from(name),
            datatype,
            cell_val_num,
            filters: Pipeline::default(),
            domain,
            tile_extent: None,
        };
        ArraySchema {
            version: FormatVersion::CURRENT,
            array_type: ArrayType::Sparse,
            allows_dups: false,
            tile_order: Layout::RowMajor,
            cell_order: Layout::RowMajor,
            capacity: 10,
            coords_filters: Pipeline::default(),
            offsets_filters: Pipeline::default(),
            validity_filters: Pipeline::default(),
            domain: Domain {
                dimensions: vec![
                    dimension(
                        "x",
                        Datatype::Int16,
                        CellValNum::ONE,
                        Some(Range::of(-10i16, 10)),
                    ),
                    dimension("s", Datatype::StringAscii, CellValNum::Var, None),
                ],
            },
            attributes: vec![],
            dimension_labels: vec![],
            enumerations: vec![],
            current_domain: CurrentDomain::Empty,
        }
    }

    fn read(text: &str) -> Result<Points> {
        parse(&schema(), text.as_bytes())
    }

    #[test]
    fn columns_are_found_by_name_or_by_place() {
        let expected = Points {
            coordinates: vec![
                PointColumn {
                    data: vec![0xff, 0xff, 2, 0],
                    offsets: None,
                },
                PointColumn {
                    data: b"abc".to_vec(),
                    offsets: Some(vec![0, 2, 3]),
                },
            ],
        };
        assert_eq!(read("-1,ab\n2,c\n").unwrap(), expected);
        assert_eq!(read("note,s,x\n?,ab,-1\n?,c,2\n").unwrap(), expected);
        assert!(read("").unwrap().coordinates[0].data.is_empty());
    }

    #[test]
    fn bad_lines_are_named() {
        assert!(
            read("1,a\nx,b\n")
                .unwrap_err()
                .to_string()
                .contains("line 2")
        );
        assert!(read("1\n").unwrap_err().to_string().contains("\"s\""));
        assert!(read("40000,a\n").is_err());
    }
}
