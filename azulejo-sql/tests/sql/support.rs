//! Random arrays, and the same rows without them.

use azulejo::arrow::ArrowOptions;
use azulejo::column::{ColumnBuilder, ColumnType};
use azulejo::format::filter::Pipeline;
use azulejo::format::schema::{Attribute, Dimension, Enumeration, SchemaEvolution};
use azulejo::format::{ArraySchema, CellValNum, Datatype, NdRectangle, Range};
use azulejo::space::Layout;
use azulejo::write::Duplicates;
use azulejo::{ArrayHandle, ColumnBuffers, ColumnSet, ReadOptions, WriteOptions};
use azulejo_sql::{ArrayTable, sql};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// What tests give back.
pub type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Numbers that only look like chance.
#[derive(Debug, Clone)]
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }

    /// One of some.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    /// Once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The words that text values are.
pub const WORDS: [&str; 9] = ["", "a", "a\0", "ab", "abc", "b", "ba", "zebra", "Zürich"];

/// Reals that comparisons treat in their own ways.
pub const REALS: [f64; 10] = [
    0.0,
    -0.0,
    1.5,
    -1.5,
    5.0,
    1e300,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    -f64::NAN,
];

/// Numbers whose sums leave 64 bits, and which no signed number is.
pub const UNSIGNED: [u64; 6] = [0, 1, 7, 1 << 63, u64::MAX - 1, u64::MAX];

fn attribute(name: &str, datatype: Datatype, nullable: bool) -> Attribute {
    let number = if datatype.is_string() {
        CellValNum::Var
    } else {
        CellValNum::ONE
    };
    let mut attribute = Attribute::new(name, datatype, number);
    attribute.nullable = nullable;
    attribute
}

/// Makes an array at a place, dense or sparse, of some fragments.
pub fn make(place: &ArrayHandle, numbers: &mut Numbers) -> TestResult {
    let dense = numbers.once_in(2);
    let (i32s, days) = (Datatype::Int32, Datatype::DateTimeDay);
    let mut builder = if dense {
        let builder = ArraySchema::dense().dimension("x", -10i32..=20, 4);
        match numbers.below(3) {
            0 => builder,
            _ => builder.dimension("y", 0i32..=12, 5),
        }
    } else {
        let builder = ArraySchema::sparse();
        let builder = match numbers.below(5) {
            0 => builder.dimension("x", -10i32..=20, 4),
            1 => builder.dimension("x", -100.0f64..=100.0, 10.0),
            2 => builder.string_dimension("x"),
            3 => builder.dimension_with(Dimension {
                name: "x".into(),
                datatype: days,
                cell_val_num: CellValNum::ONE,
                filters: Pipeline::default(),
                domain: Some(Range::of(0i64, 60)),
                tile_extent: Some(7i64.to_le_bytes().to_vec()),
            }),
            _ => builder.dimension("x", 0u8..=60, 7),
        };
        let builder = builder.capacity(1 + numbers.below(9));
        match numbers.below(3) {
            0 => builder,
            1 => builder.string_dimension("y"),
            _ => builder.dimension("y", 0i64..=12, 5),
        }
        .allows_duplicates(numbers.once_in(2))
    };
    let labels = Enumeration::of_strings(
        "labels",
        Datatype::StringUtf8,
        false,
        ["red", "green", "blue"],
    )?;
    builder = builder
        .attribute_with(attribute("i", i32s, true))
        .attribute_with(attribute("f", Datatype::Float64, numbers.once_in(2)))
        .attribute_with(attribute("s", Datatype::StringUtf8, numbers.once_in(2)))
        .attribute_with(attribute("b", Datatype::Bool, numbers.once_in(2)))
        .attribute_with(attribute("t", Datatype::DateTimeMilli, numbers.once_in(2)))
        .attribute_with(attribute("d", Datatype::DateTimeDay, numbers.once_in(2)))
        .attribute_with(attribute("h", Datatype::DateTimeHour, false))
        .attribute_with(attribute("u", Datatype::UInt64, numbers.once_in(2)))
        .enumeration(labels);
    let mut label = attribute("e", Datatype::UInt8, numbers.once_in(2));
    label.enumeration = Some("labels".into());
    builder = builder.attribute_with(label);
    place.create(builder.build()?)?;
    for round in 0..numbers.below(4) {
        if round == 1 && numbers.once_in(2) {
            let mut later = attribute("late", i32s, false);
            later.fill_value = 7i32.to_le_bytes().to_vec();
            let evolution = SchemaEvolution {
                add_attributes: vec![later],
                ..SchemaEvolution::default()
            };
            place.evolve(&evolution, None)?;
        }
        write(place, numbers)?;
        if !dense && numbers.once_in(4) {
            let condition = place.open()?.condition("i > 3")?;
            place.delete_cells(&condition, None)?;
        }
    }
    if numbers.once_in(4) {
        place.consolidate(&Default::default())?;
    }
    Ok(())
}

/// Writes a fragment of random cells.
fn write(place: &ArrayHandle, numbers: &mut Numbers) -> TestResult {
    let snapshot = place.snapshot()?;
    let schema = snapshot.schema();
    let mut options = WriteOptions::new();
    let mut columns = Vec::new();
    let cells = if schema.is_dense() {
        let mut ranges = Vec::new();
        let mut cells = 1;
        for dimension in &schema.domain.dimensions {
            let (low, high) = dimension.domain.as_ref().expect("a domain").bounds::<i32>();
            let start = low + numbers.below((high - low) as u64) as i32;
            let end = start + numbers.below((high - start + 1) as u64) as i32;
            ranges.push(Range::of(start, end));
            cells *= (end - start + 1) as usize;
        }
        options = options.subarray(NdRectangle { ranges });
        cells
    } else {
        if !schema.allows_dups {
            options = options.duplicates(Duplicates::Dedup);
        }
        let cells = numbers.below(60) as usize;
        for dimension in &schema.domain.dimensions {
            let column = ColumnType::new(dimension.name.as_str(), dimension.datatype)
                .with_cell_val_num(dimension.cell_val_num);
            columns.push(column_of(column, cells, numbers));
        }
        cells
    };
    for attribute in &schema.attributes {
        let mut column = ColumnType::new(attribute.name.as_str(), attribute.datatype)
            .with_cell_val_num(attribute.cell_val_num);
        column.nullable = attribute.nullable;
        columns.push(column_of(column, cells, numbers));
    }
    if cells == 0 {
        return Ok(());
    }
    let mut writer = place.writer(options)?;
    writer.write(&ColumnSet::of(columns)?)?;
    writer.finish()?;
    Ok(())
}

/// The variable that names where answers are kept for an engine that is not DataFusion.
pub const KEEP: &str = "AZULEJO_SQL_KEEP";

/// A real as all engines have it: what others order is one NaN, and one zero.
fn real(value: f64) -> f64 {
    match std::env::var_os(KEEP) {
        Some(_) if value.is_nan() => f64::NAN,
        Some(_) => value + 0.0,
        None => value,
    }
}

fn column_of(column: ColumnType, cells: usize, numbers: &mut Numbers) -> ColumnBuffers {
    let (name, datatype, nullable) = (column.name.clone(), column.datatype, column.nullable);
    let mut builder = ColumnBuilder::new(column);
    for _ in 0..cells {
        let bytes = match (&*name, datatype) {
            ("x", Datatype::Float64) => (numbers.below(60) as f64 / 2.0 - 10.0)
                .to_le_bytes()
                .to_vec(),
            (_, Datatype::Float64) => real(*numbers.pick(&REALS)).to_le_bytes().to_vec(),
            ("x", Datatype::Int32) => (numbers.below(31) as i32 - 10).to_le_bytes().to_vec(),
            (_, Datatype::Int32) => (numbers.below(12) as i32 - 4).to_le_bytes().to_vec(),
            ("y", Datatype::Int64) => (numbers.below(13) as i64).to_le_bytes().to_vec(),
            ("x", Datatype::DateTimeDay) => (numbers.below(61) as i64).to_le_bytes().to_vec(),
            // Some days and hours are beyond what Arrow can show.
            (_, Datatype::DateTimeDay | Datatype::DateTimeHour) => match numbers.below(9) {
                0 => i64::MIN.to_le_bytes().to_vec(),
                1 => (i64::MAX / 2).to_le_bytes().to_vec(),
                n => (n as i64 - 4).to_le_bytes().to_vec(),
            },
            (_, Datatype::DateTimeMilli) => (numbers.below(9) as i64 * 250).to_le_bytes().to_vec(),
            ("u", _) => numbers.pick(&UNSIGNED).to_le_bytes().to_vec(),
            ("e", _) => vec![numbers.below(4) as u8],
            (_, Datatype::Bool) => vec![numbers.below(2) as u8],
            (_, Datatype::UInt8) => vec![numbers.below(61) as u8],
            ("x" | "y", _) => numbers.pick(&WORDS[..8]).as_bytes().to_vec(),
            _ => numbers.pick(&WORDS).as_bytes().to_vec(),
        };
        builder.append_cell(&bytes, !nullable || !numbers.once_in(4));
    }
    builder.finish()
}

/// The rows of an array's table, read without SQL.
pub fn rows_of(table: &ArrayTable) -> TestResult<MemTable> {
    use datafusion::catalog::TableProvider;
    let names: Vec<String> = table
        .schema()
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .collect();
    let options = ReadOptions::new()
        .fields(names)
        .layout(Layout::Unordered)
        .matching_only();
    let read = table.array().read(options)?.read_all()?;
    let batch = read.to_record_batch(ArrowOptions::new().views(true).trimmed(true))?;
    let batch = RecordBatch::try_new(table.schema(), batch.columns().to_vec())?;
    Ok(MemTable::try_new(table.schema(), vec![vec![batch]])?)
}

/// The rows of a result as text, in the order that they came in.
pub fn text(batches: &[RecordBatch]) -> TestResult<Vec<String>> {
    let options = FormatOptions::default().with_null("∅");
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch
            .columns()
            .iter()
            .map(|c| ArrayFormatter::try_new(c, &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = columns.iter().map(|c| c.value(row).to_string()).collect();
            rows.push(cells.join("|"));
        }
    }
    Ok(rows)
}

/// The rows of a text's last statement.
pub async fn rows(session: &SessionContext, statement: &str) -> TestResult<Vec<String>> {
    match sql(session, statement).await? {
        Some(frame) => text(&frame.collect().await?),
        None => Ok(Vec::new()),
    }
}

/// The error of a statement.
pub async fn refused(session: &SessionContext, statement: &str) -> String {
    match rows(session, statement).await {
        Ok(rows) => panic!("{statement} gave {rows:?}"),
        Err(error) => error.to_string(),
    }
}

/// What each of some statements gave, all of them begun at once.
pub async fn at_once(
    session: &SessionContext,
    statements: impl IntoIterator<Item = String>,
) -> TestResult<Vec<Result<Vec<String>, String>>> {
    let running = statements.into_iter().map(|statement| {
        let session = session.clone();
        tokio::spawn(async move {
            let found = rows(&session, &statement).await;
            found.map_err(|error| error.to_string())
        })
    });
    let mut found = Vec::new();
    for task in running.collect::<Vec<_>>() {
        found.push(task.await?);
    }
    Ok(found)
}

/// All rows of a query, sorted unless it says in which order they come.
pub async fn answer(session: &SessionContext, query: &str) -> Result<Vec<String>, String> {
    let mut found = rows(session, query).await.map_err(|e| e.to_string())?;
    let order = query.rsplit_once("ORDER BY");
    // Of a window, an aggregate or a subquery.
    if order.is_none_or(|(_, after)| after.contains(')')) {
        found.sort();
    }
    Ok(found)
}

/// Whether arrays answer a query, and then as the same tables in memory do; an error where one of the
/// two says something else.
pub async fn beside_memory(
    arrays: &SessionContext,
    memory: &SessionContext,
    query: &str,
) -> Result<bool, String> {
    match (answer(arrays, query).await, answer(memory, query).await) {
        (Ok(found), Ok(expected)) if found == expected => Ok(true),
        // What DataFusion cannot do at all is no matter of arrays.
        (Err(_), Err(_)) => Ok(false),
        (found, expected) => Err(format!("{query}\n  {found:?}\n  {expected:?}")),
    }
}

/// The plan of a statement.
pub async fn plan(session: &SessionContext, statement: &str) -> TestResult<String> {
    Ok(rows(session, &format!("EXPLAIN FORMAT INDENT {statement}"))
        .await?
        .join("\n"))
}

/// A handle that is shared.
pub fn shared(table: ArrayTable) -> Arc<ArrayTable> {
    Arc::new(table)
}
