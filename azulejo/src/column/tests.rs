use super::*;
use proptest::prelude::*;

fn kind(var: bool, nullable: bool) -> ColumnType {
    let cells = if var {
        CellValNum::Var
    } else {
        CellValNum::Fixed(3)
    };
    let kind = ColumnType::new("a", Datatype::UInt8).with_cell_val_num(cells);
    if nullable { kind.with_nulls() } else { kind }
}

fn column(kind: ColumnType, cells: &[Option<Vec<u8>>]) -> ColumnBuffers {
    let mut column = ColumnBuilder::new(kind);
    for cell in cells {
        column.append_cell(cell.as_deref().unwrap_or(&[0; 3]), cell.is_some());
    }
    column.finish()
}

fn owned(column: &ColumnBuffers) -> Vec<Option<Vec<u8>>> {
    column.cells().map(|c| c.map(<[u8]>::to_vec)).collect()
}

proptest! {
    #[test]
    fn cells_go_in_and_come_out(
        var in any::<bool>(),
        nullable in any::<bool>(),
        mut cells in proptest::collection::vec(
            proptest::option::of(proptest::collection::vec(any::<u8>(), 0..5)), 0..20),
        cut in (0usize..22, 0usize..22),
    ) {
        for cell in &mut cells {
            match cell {
                None if !nullable => *cell = Some(vec![1; 3]),
                Some(bytes) if !var => bytes.resize(3, 9),
                _ => {}
            }
        }
        let kind = kind(var, nullable);
        let whole = column(kind.clone(), &cells);
        whole.validate().unwrap();
        prop_assert_eq!(owned(&whole), cells.clone());
        // Slices, and slices of slices.
        let (start, end) = (cut.0.min(cut.1), cut.0.max(cut.1));
        let slice = whole.slice(start..end);
        slice.validate().unwrap();
        let expected = cells.get(start.min(cells.len())..end.min(cells.len())).unwrap();
        prop_assert_eq!(owned(&slice), expected);
        prop_assert_eq!(owned(&slice.slice(1..3)), expected.get(1.min(expected.len())..3.min(expected.len())).unwrap());
        // Joined again.
        let parts = [whole.slice(0..start), slice, whole.slice(end..usize::MAX)];
        let joined = ColumnBuffers::concat(&parts.iter().collect::<Vec<_>>()).unwrap();
        joined.validate().unwrap();
        prop_assert_eq!(owned(&joined), cells.clone());
        prop_assert_eq!(joined.memory_size(), whole.memory_size());
        // Runs of equal cells.
        let mut builder = ColumnBuilder::new(kind);
        builder.append_view(&whole.view(), 0..cells.len()).unwrap();
        builder.append_repeated(&[7; 3], true, 4);
        let longer = builder.finish();
        longer.validate().unwrap();
        prop_assert_eq!(owned(&longer)[cells.len()..].to_vec(), vec![Some(vec![7; 3]); 4]);
    }
}

#[test]
fn typed_access_asks_for_the_right_type() {
    let mut column = ColumnBuilder::new(ColumnType::new("a", Datatype::DateTimeDay));
    column.append_cell(&5i64.to_le_bytes(), true);
    let column = column.finish();
    assert_eq!(column.values::<i64>(), Some(&[5][..]));
    assert_eq!(column.values::<u64>(), None);
    assert_eq!(column.values::<i32>(), None);
}

#[test]
fn views_that_lack_cells_are_refused() {
    let view = FieldView {
        cell_num: 2,
        data: &[1, 2, 3],
        offsets: None,
        validity: None,
        cell_size: 3,
    };
    let mut builder = ColumnBuilder::new(kind(false, false));
    assert!(builder.append_view(&view, 0..2).is_err());
    assert!(builder.append_view(&view, 0..1).is_ok());
    let offsets = [0, 9];
    let view = FieldView {
        offsets: Some(&offsets),
        ..view
    };
    assert!(
        ColumnBuilder::new(kind(true, false))
            .append_view(&view, 0..1)
            .is_err()
    );
    let backwards = [2, 1];
    let view = FieldView {
        offsets: Some(&backwards),
        ..view
    };
    assert!(
        ColumnBuilder::new(kind(true, false))
            .append_view(&view, 0..1)
            .is_err()
    );
    assert!(builder.append_view(&view, 0..1).is_err());
}
