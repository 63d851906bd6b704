//! What is read into a caller's memory is what a read gives of its own, whatever has room there:
//! all cells, some, or fewer bytes than their values may have.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use azulejo::column::{ColumnBuilder, ColumnMut, ColumnSet, ColumnType};
use azulejo::format::condition::{Comparison, Condition};
use azulejo::format::schema::{ArraySchema, Attribute, NewArray};
use azulejo::format::{CellValNum, Datatype};
use azulejo::read::{ReadOptions, Reader};
use azulejo::space::Layout;
use azulejo::write::WriteOptions;
use azulejo::{Array, Context, Error};

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

const FIELDS: [&str; 6] = ["x", "name", "s", "t", "a", "n"];

fn schema(numbers: &mut Numbers) -> NewArray {
    let text = |name: &str| Attribute::new(name, Datatype::StringUtf8, CellValNum::Var);
    ArraySchema::sparse()
        .dimension("x", 0i64..=199, 20)
        .string_dimension("name")
        .attribute_with(text("s"))
        .attribute_with(text("t").nullable())
        .attribute("a", Datatype::Int64)
        .attribute_with(Attribute::new("n", Datatype::Int32, CellValNum::Fixed(2)).nullable())
        .capacity(1 + numbers.next(40))
        .allows_duplicates(numbers.next(2) == 0)
        .build()
        .unwrap()
}

/// Cells at different places, in no order.
fn cells(schema: &ArraySchema, numbers: &mut Numbers, first: i64) -> ColumnSet {
    let mut columns: Vec<ColumnBuilder> = FIELDS
        .iter()
        .map(|name| {
            let field = schema.field(name).unwrap();
            let (datatype, cell_val_num) = schema.type_of(field).unwrap();
            let kind = ColumnType::new(*name, datatype).with_cell_val_num(cell_val_num);
            ColumnBuilder::new(if schema.is_nullable(field) {
                kind.with_nulls()
            } else {
                kind
            })
        })
        .collect();
    for cell in 0..numbers.next(150) as i64 {
        let text = |numbers: &mut Numbers| "äbcdefgh".repeat(numbers.next(4) as usize).into_bytes();
        let cells: [(Vec<u8>, bool); 6] = [
            ((cell * 7 % 200).to_le_bytes().to_vec(), true),
            (format!("{}", numbers.next(1000)).into_bytes(), true),
            (text(numbers), true),
            (text(numbers), numbers.next(3) > 0),
            ((first + cell).to_le_bytes().to_vec(), true),
            (
                numbers.next(u64::MAX).to_le_bytes().to_vec(),
                numbers.next(3) > 0,
            ),
        ];
        for (column, (bytes, valid)) in columns.iter_mut().zip(&cells) {
            column.append_cell(bytes, *valid);
        }
    }
    ColumnSet::of(columns.into_iter().map(ColumnBuilder::finish)).unwrap()
}

type Row = Vec<(Vec<u8>, bool)>;

fn rows(set: &ColumnSet) -> Vec<Row> {
    let cell = |i: usize| {
        let views = set.columns.iter().map(|column| column.view());
        views
            .map(|view| (view.cell(i).to_vec(), view.is_valid(i)))
            .collect()
    };
    (0..set.cell_num).map(cell).collect()
}

/// All cells, by way of buffers for so many cells with so many bytes of var-length values each.
fn given(array: &Array, options: &ReadOptions, room: usize, bytes: usize) -> Vec<Row> {
    let mut reader = array.read(options.clone()).unwrap();
    let mut rows = Vec::new();
    let (mut room, mut bytes) = (room, bytes);
    loop {
        let types: Vec<ColumnType> = reader.column_types().cloned().collect();
        let size = |kind: &ColumnType| {
            if kind.is_var() {
                bytes
            } else {
                room * kind.cell_size()
            }
        };
        let mut data: Vec<Vec<u8>> = types.iter().map(|kind| vec![0xAA; size(kind)]).collect();
        let mut starts = vec![vec![u64::MAX; room]; types.len()];
        let mut validity = vec![vec![7u8; room]; types.len()];
        let memory = data.iter_mut().zip(starts.iter_mut().zip(&mut validity));
        let mut columns: Vec<ColumnMut<'_>> = types
            .iter()
            .zip(memory)
            .map(|(kind, (data, (starts, validity)))| ColumnMut {
                data,
                offsets: kind.is_var().then_some(starts.as_mut_slice()),
                validity: kind.nullable.then_some(validity.as_mut_slice()),
            })
            .collect();
        let progress = match reader.read_into(&mut columns) {
            Err(Error::BufferTooSmall { .. }) => {
                (room, bytes) = (room + 1, bytes * 2 + 1);
                continue;
            }
            progress => progress.unwrap(),
        };
        for cell in 0..progress.cells {
            let mut row = Row::new();
            for (i, kind) in types.iter().enumerate() {
                let written = progress.written[i];
                let place = if kind.is_var() {
                    assert_eq!(written.offsets, progress.cells * 8);
                    let end = starts[i][..progress.cells]
                        .get(cell + 1)
                        .map_or(written.data, |end| *end as usize);
                    starts[i][cell] as usize..end
                } else {
                    cell * kind.cell_size()..(cell + 1) * kind.cell_size()
                };
                assert!(
                    place.end <= written.data
                        && written.validity == progress.cells * usize::from(kind.nullable)
                );
                row.push((
                    data[i][place].to_vec(),
                    !kind.nullable || validity[i][cell] == 1,
                ));
            }
            rows.push(row);
        }
        if progress.complete {
            return rows;
        }
        assert!(progress.cells > 0);
    }
}

#[test]
fn memory_of_the_callers_gets_the_same_cells() {
    let context = Context::new(azulejo::Config::default(), None).unwrap();
    let mut numbers = Numbers(7);
    let (mut seen, mut several) = (0, 0);
    for round in 0..60 {
        let uri = format!("mem://given/{round}");
        context.array(&uri).create(schema(&mut numbers)).unwrap();
        let schema = context.array(&uri).open().unwrap().schema().clone();
        for fragment in 0..1 + numbers.next(4) as i64 {
            let mut writer = context.array(&uri).writer(WriteOptions::new()).unwrap();
            writer
                .write(&cells(&schema, &mut numbers, fragment * 1000))
                .unwrap();
            writer.finish().unwrap();
        }
        let array = context.array(&uri).open().unwrap();
        let layout = [
            Layout::RowMajor,
            Layout::Unordered,
            Layout::Global,
            Layout::ColMajor,
        ][round % 4];
        let mut options = ReadOptions::new().fields(FIELDS).layout(layout);
        if numbers.next(3) == 0 {
            options = options.condition(Condition::compare(
                "a",
                Comparison::Lt,
                1050i64.to_le_bytes(),
            ));
        }
        // Most reads take several batches.
        let tight = options.clone().memory_budget(20_000);
        if !matches!(
            array.read(tight.clone()).and_then(Reader::read_all),
            Err(Error::Budget { .. })
        ) {
            options = tight;
            several += 1;
        }
        let mut wanted = rows(&array.read(options.clone()).unwrap().read_all().unwrap());
        seen += wanted.len();
        for (room, bytes) in [
            (1000, 40_000),
            (1000, 700),
            (wanted.len().max(1), 40_000),
            (30, 40_000),
            (1, 1),
            (7, 90),
        ] {
            let mut found = given(&array, &options, room, bytes);
            if layout == Layout::Unordered {
                found.sort();
                wanted.sort();
            }
            assert!(
                found == wanted,
                "round {round}: {layout:?}, {room} cells, {bytes} bytes"
            );
        }
    }
    assert!(
        seen > 3000 && several > 30,
        "{seen} cells, {several} reads with a tight budget"
    );
}
