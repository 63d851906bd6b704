//! Cells as plain bytes: the common ground of Azulejo's columns and the reference's expected files.

use azulejo::column::ColumnSet;

/// One field: each cell's bytes, or nothing for null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cells {
    /// The field.
    pub name: String,
    /// Its cells.
    pub values: Vec<Option<Vec<u8>>>,
}

/// Azulejo's result as cells.
#[must_use]
pub fn of_columns(set: &ColumnSet) -> Vec<Cells> {
    set.columns
        .iter()
        .map(|c| {
            let ty = &c.column_type;
            let size = ty.cell_val_num.cell_size(ty.datatype).unwrap_or(0);
            let offsets: Option<&[u64]> = c.offsets.as_ref().map(|o| o.typed_data());
            let values = (0..c.cell_num)
                .map(|i| {
                    if c.validity.as_ref().is_some_and(|v| v[i] == 0) {
                        return None;
                    }
                    let range = match offsets {
                        Some(o) => o[i] as usize..o[i + 1] as usize,
                        None => i * size..(i + 1) * size,
                    };
                    Some(c.data[range].to_vec())
                })
                .collect();
            Cells {
                name: ty.name.to_string(),
                values,
            }
        })
        .collect()
}

/// The first difference in cells that must come in the same order.
pub fn compare(expected: &[Cells], found: &[Cells]) -> Result<(), String> {
    for e in expected {
        let f = found
            .iter()
            .find(|f| f.name == e.name)
            .ok_or_else(|| format!("field {:?} is missing", e.name))?;
        if e.values.len() != f.values.len() {
            return Err(format!(
                "field {:?}: {} cells instead of {}",
                e.name,
                f.values.len(),
                e.values.len()
            ));
        }
        if let Some(i) = (0..e.values.len()).find(|&i| e.values[i] != f.values[i]) {
            return Err(format!(
                "field {:?}, cell {i}: {:?} instead of {:?}",
                e.name, f.values[i], e.values[i]
            ));
        }
    }
    if expected.len() != found.len() {
        return Err(format!(
            "{} fields instead of {}",
            found.len(),
            expected.len()
        ));
    }
    Ok(())
}

/// The first difference in cells that may come in any order: rows are sorted on both sides.
pub fn compare_unordered(expected: &[Cells], found: &[Cells]) -> Result<(), String> {
    let order: Vec<&str> = expected.iter().map(|c| c.name.as_str()).collect();
    let mut aligned = Vec::new();
    for name in &order {
        let cells = found
            .iter()
            .find(|f| f.name == *name)
            .ok_or_else(|| format!("field {name:?} is missing"))?;
        aligned.push(cells.clone());
    }
    compare(&sorted(expected), &sorted(&aligned))
}

fn sorted(cells: &[Cells]) -> Vec<Cells> {
    let rows = cells.first().map_or(0, |c| c.values.len());
    if cells.iter().any(|c| c.values.len() != rows) {
        return cells.to_vec();
    }
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by(|&a, &b| {
        cells
            .iter()
            .map(|c| &c.values[a])
            .cmp(cells.iter().map(|c| &c.values[b]))
    });
    cells
        .iter()
        .map(|c| Cells {
            name: c.name.clone(),
            values: order.iter().map(|&i| c.values[i].clone()).collect(),
        })
        .collect()
}

/// Cells as bytes, for fixtures: counts and lengths as `u32`, `u32::MAX` for null; the mirror of
/// [`decode`].
#[must_use]
pub fn encode(cells: &[Cells]) -> Vec<u8> {
    let mut out = Vec::new();
    let number = |out: &mut Vec<u8>, n: usize| out.extend((n as u32).to_le_bytes());
    number(&mut out, cells.len());
    for column in cells {
        number(&mut out, column.name.len());
        out.extend(column.name.as_bytes());
        number(&mut out, column.values.len());
        for value in &column.values {
            number(&mut out, value.as_ref().map_or(u32::MAX as usize, Vec::len));
        }
        for value in column.values.iter().flatten() {
            out.extend(value);
        }
    }
    out
}

/// The mirror of [`encode`].
#[must_use]
pub fn decode(mut bytes: &[u8]) -> Vec<Cells> {
    fn take<'a>(bytes: &mut &'a [u8], n: usize) -> &'a [u8] {
        let (head, tail) = bytes.split_at(n);
        *bytes = tail;
        head
    }
    fn number(bytes: &mut &[u8]) -> usize {
        let b = take(bytes, 4);
        u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize
    }
    let columns = number(&mut bytes);
    (0..columns)
        .map(|_| {
            let len = number(&mut bytes);
            let name = String::from_utf8_lossy(take(&mut bytes, len)).into_owned();
            let count = number(&mut bytes);
            let lengths: Vec<usize> = (0..count).map(|_| number(&mut bytes)).collect();
            let values = lengths
                .into_iter()
                .map(|n| {
                    if n == u32::MAX as usize {
                        None
                    } else {
                        Some(take(&mut bytes, n).to_vec())
                    }
                })
                .collect();
            Cells { name, values }
        })
        .collect()
}
