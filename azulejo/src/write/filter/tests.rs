use super::*;
use azulejo_format::filter::Filter;
use azulejo_format::schema::{Attribute, DataOrder};

fn attribute(
    name: &str,
    datatype: Datatype,
    cell_val_num: CellValNum,
    filters: Vec<Filter>,
) -> Attribute {
    Attribute {
        name: name.into(),
        datatype,
        cell_val_num,
        nullable: name == "n",
        filters: Pipeline {
            filters,
            ..Pipeline::default()
        },
        fill_value: Vec::new(),
        fill_validity: false,
        order: DataOrder::Unordered,
        enumeration: None,
    }
}

/// Fixed, nullable and var-length cells, and strings that keep their offsets.
fn schema() -> ArraySchema {
    let mut schema = ArraySchema::dense()
        .dimension("x", 0i64..=9, 10)
        .attribute("a", Datatype::Int32)
        .build()
        .expect("a schema")
        .schema;
    let zstd = || Filter::Zstd { level: 1 };
    schema.attributes = vec![
        attribute(
            "n",
            Datatype::UInt64,
            CellValNum::ONE,
            vec![Filter::Byteshuffle, zstd()],
        ),
        attribute("p", Datatype::UInt8, CellValNum::Fixed(3), Vec::new()),
        attribute("v", Datatype::Int32, CellValNum::Var, vec![zstd()]),
        attribute(
            "r",
            Datatype::StringAscii,
            CellValNum::Var,
            vec![Filter::Rle { level: -1 }],
        ),
    ];
    schema.offsets_filters.filters = vec![Filter::PositiveDelta { max_window: 1024 }, zstd()];
    schema
}

/// The cells of one tile.
struct Cells {
    cell_num: usize,
    numbers: Vec<u8>,
    validity: Vec<u8>,
    triples: Vec<u8>,
    lists: Vec<u8>,
    list_offsets: Vec<u64>,
    strings: Vec<u8>,
    string_offsets: Vec<u64>,
}

impl Cells {
    /// Offsets begin at `base`, behind bytes of others.
    fn new(cell_num: usize, base: usize) -> Self {
        let ends = |len: fn(usize) -> usize| {
            let mut end = base as u64;
            let mut offsets = vec![end];
            for cell in 0..cell_num {
                end += len(cell) as u64;
                offsets.push(end);
            }
            offsets
        };
        let bytes = |len: usize| (0..len).map(|i| (i / 5 % 251) as u8).collect::<Vec<u8>>();
        let list_offsets = ends(|cell| cell % 4 * 4);
        let string_offsets = ends(|cell| cell / 100 % 3);
        let at_end = |offsets: &[u64]| offsets.last().map_or(0, |end| *end as usize);
        Self {
            cell_num,
            numbers: bytes(cell_num * 8),
            validity: (0..cell_num).map(|i| u8::from(i % 7 != 0)).collect(),
            triples: bytes(cell_num * 3),
            lists: bytes(at_end(&list_offsets) + 9),
            list_offsets,
            strings: vec![b'x'; at_end(&string_offsets)],
            string_offsets,
        }
    }

    fn view(&self) -> TileView<'_> {
        let view = |data, offsets, validity, cell_size| FieldView {
            cell_num: self.cell_num,
            data,
            offsets,
            validity,
            cell_size,
        };
        TileView {
            cell_num: self.cell_num as u64,
            fields: vec![
                view(&self.numbers, None, Some(&self.validity), 8),
                view(&self.triples, None, None, 3),
                view(&self.lists, Some(&self.list_offsets), None, 0),
                view(&self.strings, Some(&self.string_offsets), None, 0),
            ],
            written: None,
        }
    }

    /// The file of a column and part, as the format crate encodes it alone.
    fn encoded(&self, stage: &Stage<'_>, file: usize, out: &mut Vec<u8>) {
        let (ctx, pipeline, part) = stage.pipeline(file).unwrap();
        let view = &self.view().fields[stage.files[file].0];
        let starts = view.offsets.map(|offsets| {
            offsets[..self.cell_num]
                .iter()
                .map(|offset| offset - offsets[0])
                .collect::<Vec<u64>>()
        });
        let scratch = &mut Scratch::new();
        match (part, &starts) {
            (FilePart::Data, Some(_)) if stage.is_in_data(file) => encode_chunk_count(0, out),
            (FilePart::Data, Some(starts)) => {
                let bytes: Vec<u8> = starts
                    .iter()
                    .flat_map(|start| start.to_le_bytes())
                    .collect();
                pipeline
                    .encode_tile(&ctx, &bytes, None, out, scratch)
                    .unwrap();
            }
            (FilePart::Var, starts) => {
                pipeline
                    .encode_tile(&ctx, view.var_data(), starts.as_deref(), out, scratch)
                    .unwrap();
            }
            (FilePart::Validity, _) => {
                pipeline
                    .encode_tile(&ctx, &self.validity, None, out, scratch)
                    .unwrap();
            }
            _ => pipeline
                .encode_tile(&ctx, view.data, None, out, scratch)
                .unwrap(),
        }
    }
}

#[derive(Debug, Default)]
struct Body(Vec<u8>);

impl Upload for Body {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

#[test]
fn tasks_of_any_cut_give_the_files_of_tiles_encoded_one_by_one() {
    let schema = schema();
    let version = schema.version;
    let columns: Vec<StoredColumn> = (0..4)
        .map(|i| StoredColumn::new(Field::Attribute(i), &schema, version).unwrap())
        .collect();
    let mut files = Vec::new();
    for (i, column) in columns.iter().enumerate() {
        files.extend(column.parts().map(|part| (i, part)));
    }
    assert_eq!(files.len(), 7);
    // Tiles that share a task, and tiles that are cut.
    let cells: Vec<Cells> = [(140_000, 0), (10, 3), (270_000, 70_000), (1, 0), (9, 5)]
        .map(|(n, base)| Cells::new(n, base))
        .into();
    let tiles: Vec<TileView<'_>> = cells.iter().map(Cells::view).collect();
    let stage = Stage {
        schema: &schema,
        version,
        key: None,
        columns: &columns,
        files: &files,
        tiles: &tiles,
    };
    let mut spare = vec![vec![9; 100]];
    let mut tasks = stage.plan(&(0..tiles.len()), &mut spare);
    assert!(spare.is_empty());
    // In any order.
    tasks
        .iter_mut()
        .rev()
        .for_each(|task| stage.run(task).unwrap());
    let mut found = vec![(Vec::new(), Vec::new()); files.len()];
    let (mut summaries, mut counts) = (0, vec![0; files.len()]);
    for task in &tasks {
        match task {
            Task::Filter(task) => {
                let (bytes, starts) = &mut found[task.file];
                starts.extend(task.starts.iter().map(|start| bytes.len() + start));
                bytes.extend_from_slice(&task.out);
                counts[task.file] += 1;
            }
            Task::Summarize {
                summaries: more, ..
            } => summaries += more.len(),
        }
    }
    // What no filter changes is written from where it lies.
    let all = 0..tiles.len();
    let plain: Vec<usize> = (0..files.len())
        .filter(|file| stage.is_plain(*file, &all))
        .collect();
    assert_eq!(
        plain.iter().map(|file| files[*file]).collect::<Vec<_>>(),
        [(1, FilePart::Data)]
    );
    for file in plain {
        assert_eq!(counts[file], 0);
        let (bytes, starts) = &mut found[file];
        for tile in all.clone() {
            let mut body = Body::default();
            let len = stage.write_plain(file, tile, &mut body).unwrap();
            assert_eq!(len, body.0.len() as u64);
            starts.push(bytes.len());
            bytes.extend(body.0);
        }
    }
    // Small tiles are not.
    assert!(
        !stage.is_plain(
            files
                .iter()
                .position(|file| *file == (1, FilePart::Data))
                .unwrap(),
            &(1..2)
        )
    );
    assert_eq!(summaries, columns.len() * tiles.len());
    assert!(
        counts[0] > 3 && counts[6] <= tiles.len(),
        "{counts:?} tasks a file"
    );
    for (file, (bytes, starts)) in found.iter().enumerate() {
        let (mut expected, mut expected_starts) = (Vec::new(), Vec::new());
        for cells in &cells {
            expected_starts.push(expected.len());
            cells.encoded(&stage, file, &mut expected);
        }
        assert_eq!(starts, &expected_starts, "{:?}", files[file]);
        assert!(bytes == &expected, "{:?}: other bytes", files[file]);
    }
}

#[test]
fn views_of_another_shape_are_refused() {
    let schema = schema();
    let column = |i| StoredColumn::new(Field::Attribute(i), &schema, schema.version).unwrap();
    let cells = Cells::new(10, 0);
    let views = cells.view().fields;
    for (i, view) in views.iter().enumerate() {
        assert_eq!(column(i).check(view, 10), Ok(()));
        assert!(column(i).check(view, 11).is_err());
        // Both of the last vary in length.
        let other = [1, 0, 1, 0][i];
        assert!(column(other).check(view, 10).is_err());
    }
    let short = FieldView {
        validity: Some(&cells.validity[1..]),
        ..views[0]
    };
    assert!(column(0).check(&short, 10).is_err());
    assert!(
        column(0)
            .check(
                &FieldView {
                    validity: None,
                    ..views[0]
                },
                10
            )
            .is_err()
    );
    assert!(
        column(1)
            .check(
                &FieldView {
                    data: &cells.triples[1..],
                    ..views[1]
                },
                10
            )
            .is_err()
    );
    assert!(
        column(2)
            .check(
                &FieldView {
                    offsets: Some(&cells.list_offsets[1..]),
                    ..views[2]
                },
                10
            )
            .is_err()
    );
}
