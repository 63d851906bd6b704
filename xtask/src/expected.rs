//! The expected files of the corpus: Parquet with the cells, JSON with everything else.

use crate::support::cells::Cells;
use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef, RecordBatchReader as _};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// The cells of an expected Parquet file.
pub fn parquet_cells(bytes: bytes::Bytes) -> Result<Vec<Cells>, String> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes)
        .and_then(|b| b.with_batch_size(1 << 16).build())
        .map_err(|e| e.to_string())?;
    let names: Vec<String> = reader
        .schema()
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .collect();
    let mut columns: Vec<Cells> = names
        .into_iter()
        .map(|name| Cells {
            name,
            values: Vec::new(),
        })
        .collect();
    for batch in reader {
        let batch = batch.map_err(|e| e.to_string())?;
        for (column, array) in columns.iter_mut().zip(batch.columns()) {
            for i in 0..array.len() {
                column.values.push(if array.is_null(i) {
                    None
                } else {
                    Some(cell_bytes(array, i)?)
                });
            }
        }
    }
    Ok(columns)
}

/// The raw little-endian bytes of one Arrow value, nested ones included.
fn cell_bytes(array: &ArrayRef, i: usize) -> Result<Vec<u8>, String> {
    Ok(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(i).as_bytes().to_vec(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(i).as_bytes().to_vec(),
        DataType::Binary => array.as_binary::<i32>().value(i).to_vec(),
        DataType::LargeBinary => array.as_binary::<i64>().value(i).to_vec(),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(i).to_vec(),
        DataType::FixedSizeList(..) => all_bytes(&array.as_fixed_size_list().value(i))?,
        DataType::List(_) => all_bytes(&array.as_list::<i32>().value(i))?,
        DataType::LargeList(_) => all_bytes(&array.as_list::<i64>().value(i))?,
        ty => {
            let size = ty
                .primitive_width()
                .ok_or_else(|| format!("unexpected Arrow type {ty}"))?;
            let data = array.to_data();
            let start = (data.offset() + i) * size;
            data.buffers()[0].as_slice()[start..start + size].to_vec()
        }
    })
}

fn all_bytes(values: &ArrayRef) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for i in 0..values.len() {
        out.extend(cell_bytes(values, i)?);
    }
    Ok(out)
}
