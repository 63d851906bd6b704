//! Random arrays and writes, and what a naive model says that they hold afterwards.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use azulejo::Context;
use azulejo::column::{ColumnBuffers, ColumnBuilder, ColumnSet, ColumnType};
use azulejo::format::datatype::{Native, Physical, dispatch};
use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::schema::{Attribute, Dimension, Layout, NewArray};
use azulejo::format::{ArraySchema, CellValNum, Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::write::{Duplicates, WriteLayout, WriteOptions, Writer};
use std::collections::BTreeMap;

pub use super::random::Random;

/// A cell of one field: bytes, or nothing for null.
pub type Cell = Option<Vec<u8>>;
/// A cell of all fields.
pub type Row = Vec<Cell>;

/// A random array.
pub struct Case {
    pub new: NewArray,
    /// Types of the dimensions (sparse), then of the attributes.
    pub fields: Vec<ColumnType>,
    /// Cells along each dimension (dense).
    shape: Vec<usize>,
    /// Dense: all cells of the domain in row-major order. Sparse with duplicates: all cells.
    rows: Vec<Row>,
    /// Sparse without duplicates, by coordinates.
    cells: BTreeMap<Vec<Cell>, Row>,
    random: Random,
}

const DENSE_TYPES: [Datatype; 12] = [
    Datatype::Int8,
    Datatype::UInt8,
    Datatype::Int16,
    Datatype::UInt16,
    Datatype::Int32,
    Datatype::UInt32,
    Datatype::Int64,
    Datatype::UInt64,
    Datatype::DateTimeDay,
    Datatype::DateTimeNano,
    Datatype::TimeSecond,
    Datatype::DateTimeYear,
];

fn value<T: Native>(number: i128) -> Vec<u8> {
    let mut bytes = vec![0; T::SIZE];
    let wide = number.to_le_bytes();
    if T::PHYSICAL.is_integer() {
        bytes.copy_from_slice(&wide[..T::SIZE]);
    } else if T::SIZE == 4 {
        bytes.copy_from_slice(&(number as f32 / 4.0).to_le_bytes());
    } else {
        bytes.copy_from_slice(&(number as f64 / 4.0).to_le_bytes());
    }
    bytes
}

fn number(datatype: Datatype, n: i128) -> Vec<u8> {
    dispatch!(datatype.physical(), T => value::<T>(n))
}

/// Least and greatest number of a type (floats: some number).
fn limits(datatype: Datatype) -> (i128, i128) {
    match datatype.physical() {
        Physical::I8 => (i8::MIN.into(), i8::MAX.into()),
        Physical::I16 => (i16::MIN.into(), i16::MAX.into()),
        Physical::I32 => (i32::MIN.into(), i32::MAX.into()),
        Physical::I64 => (i64::MIN.into(), i64::MAX.into()),
        Physical::U8 => (0, u8::MAX.into()),
        Physical::U16 => (0, u16::MAX.into()),
        Physical::U32 => (0, u32::MAX.into()),
        Physical::U64 => (0, u64::MAX.into()),
        Physical::F32 | Physical::F64 => (-1_000, 1_000),
    }
}

fn dimension(
    random: &mut Random,
    i: usize,
    datatype: Datatype,
    dense: bool,
) -> (Dimension, usize, i128) {
    let (least, most) = limits(datatype);
    // Without an extent the one tile of a single real number would be empty, which is refused.
    let least_len = if datatype.is_real() { 2 } else { 1 };
    let len = (random.below(if dense { 14 } else { 60 }) as i128 + 1).max(least_len);
    let extent = (random.below(len as usize) + 1) as i128;
    // Tiles that reach past the domain must not pass the end of the type.
    let (len, low) = match random.below(4) {
        // The reference keeps the last tile's worth of numbers at the end of the type free.
        0 => {
            let len = (len / extent).max(1) * extent;
            (len, most - len + 1 - if dense { 0 } else { 1 } - extent)
        }
        1 => (len, least),
        _ if least < 0 => (len, -(random.below(30) as i128)),
        _ => (len, random.below(50) as i128),
    };
    let low = low.max(least);
    let name = if i == 0 && random.chance(5) {
        String::new()
    } else {
        format!("d{i}")
    };
    let mut dimension = Dimension::new(name, 0i8..=1).datatype(datatype);
    dimension.domain = Some(Range::new(
        number(datatype, low),
        number(datatype, low + len - 1),
    ));
    dimension.tile_extent = (dense || random.chance(80)).then(|| number(datatype, extent));
    (dimension, len as usize, low)
}

fn attribute(random: &mut Random, i: usize) -> Attribute {
    let mut datatype = Datatype::ALL[random.below(Datatype::ALL.len())];
    if datatype == Datatype::Any {
        datatype = Datatype::Blob;
    }
    let mut cells = match random.below(6) {
        0 | 1 => CellValNum::Var,
        2 => CellValNum::Fixed(random.below(4) as u32 + 2),
        _ => CellValNum::ONE,
    };
    if datatype == Datatype::Any {
        cells = CellValNum::Var;
    }
    let mut attribute = Attribute::new(format!("a{i}"), datatype, cells);
    if random.chance(30) {
        attribute = attribute.nullable();
    }
    let filter = match random.below(5) {
        0 => Some(Filter::Zstd { level: 1 }),
        1 => Some(Filter::Lz4 { level: 1 }),
        2 => Some(Filter::Byteshuffle),
        3 => Some(Filter::ChecksumSha256),
        _ => None,
    };
    attribute.filters(Pipeline {
        filters: filter.into_iter().collect(),
        ..Pipeline::default()
    })
}

/// A random cell of a type.
pub fn cell(random: &mut Random, kind: &ColumnType) -> Cell {
    if kind.nullable && random.chance(25) {
        return None;
    }
    let values = match kind.cell_val_num {
        CellValNum::Fixed(n) => n as usize,
        CellValNum::Var => random.below(5),
    };
    let mut bytes = Vec::new();
    for _ in 0..values {
        let datatype = kind.datatype;
        let (least, most) = limits(datatype);
        if datatype == Datatype::Bool {
            bytes.push(random.below(2) as u8);
        } else if datatype.size() == 1 && !datatype.is_integer() {
            bytes.push(b'a' + random.below(26) as u8);
        } else if datatype.is_real() {
            let special = [
                f64::NAN,
                -0.0,
                0.0,
                f64::INFINITY,
                f64::NEG_INFINITY,
                1e300,
                -2.5,
            ];
            let real = if random.chance(20) {
                random.pick(&special)
            } else {
                random.below(100) as f64 / 8.0
            };
            if datatype.size() == 4 {
                bytes.extend((real as f32).to_le_bytes());
            } else {
                bytes.extend(real.to_le_bytes());
            }
        } else if random.chance(10) {
            bytes.extend(number(
                datatype,
                if random.chance(50) { least } else { most },
            ));
        } else {
            bytes.extend(number(datatype, random.below(100) as i128 + least.max(-50)));
        }
    }
    Some(bytes)
}

/// Columns from rows of cells.
pub fn columns(kinds: &[ColumnType], rows: &[Row]) -> ColumnSet {
    let column = |(i, kind): (usize, &ColumnType)| -> ColumnBuffers {
        let mut column = ColumnBuilder::new(kind.clone());
        for row in rows {
            let null = vec![0xee; kind.cell_size()];
            column.append_cell(row[i].as_deref().unwrap_or(&null), row[i].is_some());
        }
        column.finish()
    };
    ColumnSet {
        cell_num: rows.len(),
        columns: kinds.iter().enumerate().map(column).collect(),
    }
}

/// Rows of cells from columns.
pub fn rows(set: &ColumnSet) -> Vec<Row> {
    let mut rows = vec![Row::new(); set.cell_num];
    for column in &set.columns {
        for (row, cell) in rows.iter_mut().zip(column.cells()) {
            row.push(cell.map(<[u8]>::to_vec));
        }
    }
    rows
}

impl Case {
    /// The array of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let random = &mut random;
        let dense = random.chance(50);
        let dims = random.below(3) + 1;
        let (mut dimensions, mut shape, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        let shared = random.pick(&DENSE_TYPES);
        for i in 0..dims {
            let datatype = match random.below(5) {
                _ if dense => shared,
                0 => Datatype::StringAscii,
                1 => random.pick(&[Datatype::Float32, Datatype::Float64]),
                _ => random.pick(&DENSE_TYPES),
            };
            if datatype == Datatype::StringAscii {
                dimensions.push(Dimension::string(format!("d{i}")));
                shape.push((0, 0));
            } else {
                let (dimension, len, low) = dimension(random, i, datatype, dense);
                shape.push((len, low));
                dimensions.push(dimension);
            }
        }
        let attributes: Vec<Attribute> = (0..random.below(4) + usize::from(dense))
            .map(|i| attribute(random, i))
            .collect();
        let orders = [Layout::RowMajor, Layout::ColMajor];
        let mut builder = if dense {
            ArraySchema::dense()
        } else {
            ArraySchema::sparse()
        };
        for dimension in &dimensions {
            builder = builder.dimension_with(dimension.clone());
        }
        for attribute in &attributes {
            builder = builder.attribute_with(attribute.clone());
        }
        let cell_order = if !dense && random.chance(25) {
            Layout::Hilbert
        } else {
            random.pick(&orders)
        };
        let builder = builder
            .tile_order(random.pick(&orders))
            .cell_order(cell_order)
            .capacity(random.below(20) as u64 + 1)
            .allows_duplicates(!dense && random.chance(30));
        let new = builder.build().expect("a schema that keeps the rules");
        if !dense {
            for dimension in &new.schema.domain.dimensions {
                let kind = ColumnType::new(dimension.name.as_str(), dimension.datatype);
                kinds.push(kind.with_cell_val_num(dimension.cell_val_num));
            }
        }
        for attribute in &new.schema.attributes {
            let kind = ColumnType::new(attribute.name.as_str(), attribute.datatype);
            let kind = kind.with_cell_val_num(attribute.cell_val_num);
            kinds.push(if attribute.nullable {
                kind.with_nulls()
            } else {
                kind
            });
        }
        let shape: Vec<usize> = shape.into_iter().map(|(len, _)| len).collect();
        let rows = if dense {
            let fill: Row = new
                .schema
                .attributes
                .iter()
                .map(|a| (!a.nullable || a.fill_validity).then(|| a.fill_value.clone()))
                .collect();
            vec![fill; shape.iter().product()]
        } else {
            Vec::new()
        };
        let random = Random(random.next());
        Self {
            new,
            fields: kinds,
            shape,
            rows,
            cells: BTreeMap::new(),
            random,
        }
    }

    fn schema(&self) -> &ArraySchema {
        &self.new.schema
    }

    /// Makes a random write, in the array and in the model.
    pub fn write(&mut self, context: &Context, uri: &str, timestamp: u64) {
        let mut options = WriteOptions::new().timestamp(timestamp);
        if self.random.chance(25) {
            options = options.max_fragment_size(self.random.below(2_000) as u64);
        }
        if self.schema().is_dense() {
            self.write_dense(context, uri, options);
        } else {
            self.write_sparse(context, uri, options);
        }
    }

    fn write_dense(&mut self, context: &Context, uri: &str, options: WriteOptions) {
        let layout = self
            .random
            .pick(&[WriteLayout::Row, WriteLayout::Col, WriteLayout::Global]);
        let dimensions = self.schema().domain.dimensions.clone();
        let mut bounds = Vec::new();
        for (dimension, &len) in dimensions.iter().zip(&self.shape) {
            let a = self.random.below(len);
            let b = self.random.below(len);
            let (mut low, mut high) = (a.min(b), a.max(b));
            if self.random.chance(30) {
                (low, high) = (0, len - 1);
            }
            if layout == WriteLayout::Global {
                let extent = usize::try_from(dimension.axis().unwrap().extent()).unwrap();
                low = low / extent * extent;
                high = high / extent * extent + extent - 1;
                if high >= len {
                    // Whole tiles only.
                    high = len / extent * extent;
                    if high == 0 {
                        return;
                    }
                    high -= 1;
                    low = low.min(high / extent * extent);
                }
            }
            bounds.push((low, high));
        }
        let coordinate =
            |d: usize, offset: usize| dimensions[d].axis().unwrap().coordinate(offset as u64);
        let ranges = bounds.iter().enumerate();
        let ranges =
            ranges.map(|(d, (low, high))| Range::new(coordinate(d, *low), coordinate(d, *high)));
        let options = options.layout(layout).subarray(NdRectangle {
            ranges: ranges.collect(),
        });
        // The box's cells in the order of the write.
        let mut places: Vec<Vec<usize>> = vec![Vec::new()];
        for (low, high) in &bounds {
            places = places
                .iter()
                .flat_map(|p| (*low..=*high).map(move |i| [p.as_slice(), &[i]].concat()))
                .collect();
        }
        let extents: Vec<usize> = dimensions
            .iter()
            .map(|d| usize::try_from(d.axis().unwrap().extent()).unwrap())
            .collect();
        let (tile_order, cell_order) = (self.schema().tile_order, self.schema().cell_order);
        let by = |place: &[usize], order: Layout| -> Vec<usize> {
            let mut key = place.to_vec();
            if order == Layout::ColMajor {
                key.reverse();
            }
            key
        };
        places.sort_by_key(|place| match layout {
            WriteLayout::Col => by(place, Layout::ColMajor),
            WriteLayout::Global => {
                let tile: Vec<usize> = place.iter().zip(&extents).map(|(p, e)| p / e).collect();
                [by(&tile, tile_order), by(place, cell_order)].concat()
            }
            _ => by(place, Layout::RowMajor),
        });
        let rows: Vec<Row> = places
            .iter()
            .map(|_| {
                self.fields
                    .iter()
                    .map(|kind| cell(&mut self.random, kind))
                    .collect()
            })
            .collect();
        let set = columns(&self.fields, &rows);
        let mut writer = context.array(uri).writer(options).unwrap();
        if layout == WriteLayout::Global {
            self.in_pieces(&mut writer, &set);
        } else {
            writer.write(&set).unwrap();
        }
        assert!(!writer.finish().unwrap().is_empty());
        for (place, row) in places.iter().zip(rows) {
            let at = place
                .iter()
                .zip(&self.shape)
                .fold(0, |at, (p, len)| at * len + p);
            self.rows[at] = row;
        }
    }

    fn in_pieces(&mut self, writer: &mut Writer, set: &ColumnSet) {
        let mut start = 0;
        while start < set.cell_num {
            let end = (start + self.random.below(40)).min(set.cell_num);
            writer.write(&set.slice(start..end)).unwrap();
            start = end;
        }
    }

    fn coordinates(&mut self) -> Row {
        let dimensions = self.new.schema.domain.dimensions.clone();
        let mut row = Row::new();
        for (dimension, &len) in dimensions.iter().zip(&self.shape) {
            row.push(Some(match &dimension.domain {
                None => (0..self.random.below(4))
                    .map(|_| b'a' + self.random.below(3) as u8)
                    .collect(),
                Some(range) => {
                    let offset = self.random.below(len);
                    match dimension.axis() {
                        Some(axis) => axis.coordinate(offset as u64),
                        None if dimension.datatype.size() == 4 => (range.bounds::<f32>().0
                            + offset as f32 / 4.0)
                            .to_le_bytes()
                            .to_vec(),
                        None => (range.bounds::<f64>().0 + offset as f64 / 4.0)
                            .to_le_bytes()
                            .to_vec(),
                    }
                }
            }));
        }
        row
    }

    fn write_sparse(&mut self, context: &Context, uri: &str, options: WriteOptions) {
        let count = if self.random.chance(10) {
            self.random.below(2)
        } else {
            self.random.below(120)
        };
        let dims = self.shape.len();
        let mut rows = Vec::new();
        for _ in 0..count {
            let mut row = self.coordinates();
            for i in dims..self.fields.len() {
                let kind = self.fields[i].clone();
                row.push(cell(&mut self.random, &kind));
            }
            rows.push(row);
        }
        let dups = self.schema().allows_dups;
        let dedup = !dups && self.random.chance(50);
        let mut kept: BTreeMap<Vec<Cell>, Row> = BTreeMap::new();
        if !dups {
            if !dedup {
                let mut seen = BTreeMap::new();
                rows.retain(|row| seen.insert(row[..dims].to_vec(), ()).is_none());
            }
            for row in &rows {
                kept.entry(row[..dims].to_vec())
                    .or_insert_with(|| row.clone());
            }
        }
        let mut options = if dedup {
            options.duplicates(Duplicates::Dedup)
        } else {
            options
        };
        let mut set = columns(&self.fields, &rows);
        if self.random.chance(50) {
            options = options.layout(WriteLayout::Global);
            set = self.sorted(context, &set);
            let mut writer = context.array(uri).writer(options).unwrap();
            self.in_pieces(&mut writer, &set);
            assert_eq!(writer.finish().unwrap().is_empty(), rows.is_empty());
        } else {
            let mut writer = context.array(uri).writer(options).unwrap();
            writer.write(&set).unwrap();
            assert_eq!(writer.finish().unwrap().is_empty(), rows.is_empty());
        }
        self.rows.extend(rows);
        self.cells.extend(kept);
    }

    /// The cells in the array's order, as a scratch array that allows duplicates gives them back.
    fn sorted(&mut self, context: &Context, set: &ColumnSet) -> ColumnSet {
        let uri = format!("mem://sorted-{}", self.random.next());
        let mut new = self.new.clone();
        new.schema.allows_dups = true;
        context.array(&uri).create(new).unwrap();
        let mut writer = context.array(&uri).writer(WriteOptions::new()).unwrap();
        writer.write(set).unwrap();
        writer.finish().unwrap();
        let array = context.array(&uri).open().unwrap();
        let fields: Vec<String> = self.fields.iter().map(|f| f.name.to_string()).collect();
        let options = ReadOptions::new().layout(Layout::Global).fields(fields);
        let mut sorted = array.read(options).unwrap().read_all().unwrap();
        for (column, kind) in sorted.columns.iter_mut().zip(&self.fields) {
            column.column_type = kind.clone();
        }
        sorted
    }

    /// What the array holds now: dense arrays in row-major order, sparse ones in any.
    pub fn expected(&self) -> Vec<Row> {
        let sparse = !self.schema().is_dense() && !self.schema().allows_dups;
        if sparse {
            self.cells.values().cloned().collect()
        } else {
            self.rows.clone()
        }
    }

    /// Reads the array and compares.
    pub fn check(&self, context: &Context, uri: &str) {
        let array = context.array(uri).open().unwrap();
        let fields: Vec<String> = self.fields.iter().map(|f| f.name.to_string()).collect();
        if fields.is_empty() {
            return;
        }
        let read = array
            .read(ReadOptions::new().fields(fields))
            .unwrap()
            .read_all()
            .unwrap();
        let (mut found, mut expected) = (rows(&read), self.expected());
        if !self.schema().is_dense() {
            found.sort();
            expected.sort();
        }
        assert_eq!(found.len(), expected.len());
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "cell {i} of {:?}", self.schema());
        }
    }
}
