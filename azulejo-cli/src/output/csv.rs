//! Comma-separated values, or tab-separated ones. A null is nothing at all, an empty string is `""`.

use crate::error::Result;
use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::SchemaRef;
use std::fmt::Write as _;
use std::io::Write;

/// A CSV file being written.
#[derive(Debug)]
pub struct CsvWriter<W: Write> {
    out: W,
    /// What separates values.
    mark: char,
}

impl<W: Write> CsvWriter<W> {
    /// Begins with the line of names.
    pub fn new(out: W, schema: &SchemaRef) -> Result<Self> {
        Self::separated(out, schema, ',')
    }

    /// As [`Self::new`], with another mark between values.
    pub fn separated(mut out: W, schema: &SchemaRef, mark: char) -> Result<Self> {
        let mut line = String::new();
        for (at, field) in schema.fields().iter().enumerate() {
            if at > 0 {
                line.push(mark);
            }
            push_quoted(&mut line, field.name(), mark);
        }
        line.push('\n');
        out.write_all(line.as_bytes())?;
        Ok(Self { out, mark })
    }

    /// Writes a line a cell.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        // What cannot be written is an error and no text among the values.
        let options = FormatOptions::new().with_display_error(false);
        let columns = batch
            .columns()
            .iter()
            .map(|column| {
                let formatter = ArrayFormatter::try_new(column, &options)?;
                Ok((column.logical_nulls(), formatter))
            })
            .collect::<Result<Vec<_>>>()?;
        let mut lines = String::new();
        let mut value = String::new();
        for row in 0..batch.num_rows() {
            for (at, (nulls, formatter)) in columns.iter().enumerate() {
                if at > 0 {
                    lines.push(self.mark);
                }
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    continue;
                }
                value.clear();
                if write!(value, "{}", formatter.value(row)).is_err() {
                    // The formatter knows why, the trait does not say it.
                    value = formatter.value(row).try_to_string()?;
                }
                push_quoted(&mut lines, &value, self.mark);
            }
            lines.push('\n');
            if lines.len() >= 1 << 16 {
                self.out.write_all(lines.as_bytes())?;
                lines.clear();
            }
        }
        Ok(self.out.write_all(lines.as_bytes())?)
    }

    /// Everything goes out.
    pub fn finish(mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }
}

fn push_quoted(line: &mut String, value: &str, mark: char) {
    let plain = !value.is_empty()
        && !value.starts_with(' ')
        && !value.ends_with(' ')
        && !value.contains(['"', mark, '\n', '\r']);
    if plain {
        line.push_str(value);
        return;
    }
    line.push('"');
    for c in value.chars() {
        if c == '"' {
            line.push('"');
        }
        line.push(c);
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Float64Array, Int32Array, LargeStringArray};
    use std::sync::Arc;

    #[test]
    fn nulls_and_empty_strings_differ() {
        let columns: Vec<(&str, ArrayRef)> = vec![
            (
                "a",
                Arc::new(Int32Array::from(vec![Some(-1), None, Some(3), Some(4)])),
            ),
            (
                "b,c",
                Arc::new(LargeStringArray::from(vec![
                    Some(""),
                    None,
                    Some("x \"y\""),
                    Some("l1\nl2"),
                ])),
            ),
            (
                "d",
                Arc::new(Float64Array::from(vec![0.1, f64::NAN, 1e300, -0.0])),
            ),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut out = Vec::new();
        let mut writer = CsvWriter::new(&mut out, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let expected =
            "a,\"b,c\",d\n-1,\"\",0.1\n,,NaN\n3,\"x \"\"y\"\"\",1e300\n4,\"l1\nl2\",-0.0\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
