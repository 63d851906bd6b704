//! Whether several versions of a cell follow each other in what a consolidation writes.

use crate::column::FieldView;
use crate::write::TileView;
use azulejo_format::datatype::{Native, Physical, dispatch};
use azulejo_format::fragment::Field;
use azulejo_format::{ArraySchema, CellValNum};

/// Looks for cells of equal coordinates in tiles that come in global order, where such cells are
/// neighbours.
#[derive(Debug)]
pub(super) struct Versions {
    dimensions: Vec<ComparedField>,
    /// The coordinates of the last cell, by dimension.
    last: Vec<Vec<u8>>,
    found: bool,
}

/// Where a tile has the coordinates of a dimension.
#[derive(Debug)]
struct ComparedField {
    /// Index of the field.
    field: usize,
    /// `None`: strings, which are equal byte by byte.
    number: Option<Physical>,
}

impl Versions {
    /// Tiles have these fields, in this order.
    pub fn new(fields: &[Field], schema: &ArraySchema) -> Self {
        let fields = fields.iter().enumerate();
        let dimensions = fields.filter_map(|(field, which)| match which {
            Field::Dimension(_) => {
                let (datatype, values) = which.layout(schema)?;
                let number = (values != CellValNum::Var).then(|| datatype.physical());
                Some(ComparedField { field, number })
            }
            _ => None,
        });
        Self {
            dimensions: dimensions.collect(),
            last: Vec::new(),
            found: schema.allows_dups,
        }
    }

    /// Takes note of the next tile.
    pub fn look_at(&mut self, tile: &TileView<'_>) {
        let cells = usize::try_from(tile.cell_num).unwrap_or(usize::MAX);
        if self.found || cells == 0 {
            return;
        }
        // One byte a cell but the first: whether it may have the coordinates of the one before it.
        let mut same = vec![1u8; cells - 1];
        let mut first_same = !self.last.is_empty();
        let mut last = Vec::with_capacity(self.dimensions.len());
        for (d, coordinates) in self.dimensions.iter().enumerate() {
            let Some(view) = tile.fields.get(coordinates.field) else {
                self.found = true;
                return;
            };
            if same.contains(&1) {
                coordinates.compare(view, &mut same);
            }
            first_same &=
                (self.last.get(d)).is_some_and(|last| coordinates.equal(last, view.cell(0)));
            last.push(view.cell(cells - 1).to_vec());
        }
        self.found = first_same || same.contains(&1);
        self.last = last;
    }

    /// Whether no two cells so far have the same coordinates.
    pub fn each_cell_once(&self) -> bool {
        !self.found
    }
}

impl ComparedField {
    fn equal(&self, a: &[u8], b: &[u8]) -> bool {
        match self.number {
            Some(number) => dispatch!(number, T => T::read(a) == T::read(b)),
            None => a == b,
        }
    }

    /// Clears the cells that differ from the one before them.
    fn compare(&self, view: &FieldView<'_>, same: &mut [u8]) {
        match self.number {
            Some(number) => dispatch!(number, T => compare::<T>(view.data, same)),
            None => {
                for (at, same) in same.iter_mut().enumerate().filter(|(_, same)| **same != 0) {
                    *same = u8::from(view.cell(at) == view.cell(at + 1));
                }
            }
        }
    }
}

fn compare<T: Native>(data: &[u8], same: &mut [u8]) {
    let before = data.chunks_exact(T::SIZE);
    let after = before.clone().skip(1);
    for (same, (a, b)) in same.iter_mut().zip(before.zip(after)) {
        *same &= u8::from(T::read(a) == T::read(b));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::ColumnBuffers;
    use azulejo_format::Datatype;

    const FIELDS: [Field; 3] = [
        Field::Attribute(0),
        Field::Dimension(0),
        Field::Dimension(1),
    ];

    /// Whether each cell of these tiles is there once.
    fn each_once(tiles: &[&[(f64, &str)]]) -> bool {
        let schema = ArraySchema::sparse()
            .dimension("x", -9.0f64..=9.0, 1.0)
            .string_dimension("s")
            .attribute("a", Datatype::Int8)
            .build()
            .unwrap();
        let mut versions = Versions::new(&FIELDS, &schema.schema);
        for cells in tiles {
            let a = ColumnBuffers::of_values("a", vec![7i8; cells.len()]);
            let x = ColumnBuffers::of_values("x", cells.iter().map(|cell| cell.0).collect());
            let s = ColumnBuffers::of_strings("s", cells.iter().map(|cell| cell.1));
            versions.look_at(&TileView {
                cell_num: cells.len() as u64,
                fields: [&a, &x, &s].map(|column| column.view()).into(),
                written: None,
            });
        }
        versions.each_cell_once()
    }

    #[test]
    fn equal_neighbours_are_found_within_tiles_and_across_them() {
        assert!(each_once(&[
            &[(1.0, "a"), (1.0, "b"), (2.0, "b")],
            &[(2.0, "c")]
        ]));
        assert!(each_once(&[
            &[(1.0, "")],
            &[],
            &[(1.0, "a")],
            &[(2.0, "a")]
        ]));
        assert!(!each_once(&[&[(0.0, "a"), (1.0, "b"), (1.0, "b")]]));
        assert!(!each_once(&[&[(1.0, "b"), (1.0, "b")], &[(2.0, "a")]]));
        assert!(!each_once(&[&[(1.0, "a"), (1.0, "")], &[(1.0, "")]]));
        assert!(!each_once(&[&[(1.0, "a")], &[], &[(1.0, "a")]]));
    }

    #[test]
    fn zeros_of_both_signs_are_one_coordinate() {
        assert!(!each_once(&[&[(-0.0, "a"), (0.0, "a")]]));
        assert!(!each_once(&[&[(-0.0, "a")], &[(0.0, "a")]]));
    }
}
