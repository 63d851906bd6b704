//! Lists, labels and text of every kind beside the same rows in a Parquet file, which are made
//! without an array.

use super::support::{Numbers, TestResult, plan, rows};
use azulejo::column::{ColumnBuilder, ColumnType};
use azulejo::format::schema::{Attribute, Enumeration};
use azulejo::format::{ArraySchema, CellValNum, Datatype};
use azulejo::{ArrayHandle, ColumnBuffers, ColumnSet, Config, Context, WriteOptions};
use azulejo_sql::{session, table};
use datafusion::arrow::array::{
    ArrayRef, DictionaryArray, FixedSizeListBuilder, Float32Builder, Int16Builder, Int64Array,
    LargeListBuilder, LargeStringArray, RecordBatch, StringArray, UInt8Array,
};
use datafusion::parquet::arrow::ArrowWriter;
use std::path::Path;
use std::sync::Arc;

const LABELS: [&str; 4] = ["red", "green", "", "blue"];
const WORDS: [&str; 5] = ["", "a", "ab", "Zürich", "zebra"];

/// A row: `id`, a label or none, a list or none, three numbers, a word or none.
struct Row {
    id: i64,
    label: Option<u8>,
    list: Option<Vec<i16>>,
    three: [f32; 3],
    word: Option<&'static str>,
}

fn made(cells: usize) -> Vec<Row> {
    let mut numbers = Numbers(19);
    let row = |i: usize| Row {
        id: i as i64 * 3 - 200,
        label: (!numbers.once_in(5)).then(|| numbers.below(4) as u8),
        // An array keeps no empty list: a cell has a number or is null.
        list: (!numbers.once_in(4)).then(|| {
            let len = 1 + numbers.below(4);
            (0..len).map(|_| numbers.below(7) as i16 - 3).collect()
        }),
        three: [
            numbers.below(9) as f32 / 2.0,
            -0.0,
            [1.0, f32::NAN][numbers.below(2) as usize],
        ],
        word: (!numbers.once_in(6)).then(|| *numbers.pick(&WORDS)),
    };
    (0..cells).map(row).collect()
}

fn write(place: &ArrayHandle, cells: &[Row]) -> TestResult {
    let labels = Enumeration::of_strings("labels", Datatype::StringUtf8, false, LABELS)?;
    let nullable = |name, datatype, number| {
        let mut attribute = Attribute::new(name, datatype, number);
        attribute.nullable = true;
        attribute
    };
    let mut label = nullable("label", Datatype::UInt8, CellValNum::ONE);
    label.enumeration = Some("labels".into());
    let three = CellValNum::Fixed(3);
    let schema = ArraySchema::sparse()
        .dimension("id", -1_000i64..=9_999, 100)
        .enumeration(labels)
        .attribute_with(label)
        .attribute_with(nullable("list", Datatype::Int16, CellValNum::Var))
        .attribute_with(Attribute::new("three", Datatype::Float32, three))
        .attribute_with(nullable("word", Datatype::StringUtf8, CellValNum::Var))
        .capacity(50);
    place.create(schema.build()?)?;
    let column = |name: &str,
                  datatype,
                  number: CellValNum,
                  nullable,
                  cell: &dyn Fn(&Row) -> (Vec<u8>, bool)| {
        let mut kind = ColumnType::new(name, datatype).with_cell_val_num(number);
        kind.nullable = nullable;
        let mut builder = ColumnBuilder::new(kind);
        for row in cells {
            let (bytes, valid) = cell(row);
            builder.append_cell(&bytes, valid);
        }
        builder.finish()
    };
    let mut writer = place.writer(WriteOptions::new())?;
    writer.write(&ColumnSet::of([
        ColumnBuffers::of_values("id", cells.iter().map(|row| row.id).collect::<Vec<_>>()),
        column("label", Datatype::UInt8, CellValNum::ONE, true, &|row| {
            (vec![row.label.unwrap_or(0)], row.label.is_some())
        }),
        column("list", Datatype::Int16, CellValNum::Var, true, &|row| {
            let numbers = row.list.iter().flatten();
            (
                numbers.flat_map(|n| n.to_le_bytes()).collect(),
                row.list.is_some(),
            )
        }),
        column("three", Datatype::Float32, three, false, &|row| {
            (
                row.three.iter().flat_map(|n| n.to_le_bytes()).collect(),
                true,
            )
        }),
        column(
            "word",
            Datatype::StringUtf8,
            CellValNum::Var,
            true,
            &|row| {
                (
                    row.word.unwrap_or("").as_bytes().to_vec(),
                    row.word.is_some(),
                )
            },
        ),
    ])?)?;
    writer.finish()?;
    Ok(())
}

/// The rows as Arrow's own builders make them.
fn parquet(file: &Path, cells: &[Row]) -> TestResult {
    let labels = Arc::new(StringArray::from_iter_values(LABELS));
    let indices: UInt8Array = cells.iter().map(|row| row.label).collect();
    let mut lists = LargeListBuilder::new(Int16Builder::new());
    let mut threes = FixedSizeListBuilder::new(Float32Builder::new(), 3);
    for row in cells {
        lists.append_option(row.list.as_ref().map(|list| list.iter().copied().map(Some)));
        threes.values().append_slice(&row.three);
        threes.append(true);
    }
    let columns: [(&str, ArrayRef); 5] = [
        (
            "id",
            Arc::new(cells.iter().map(|row| row.id).collect::<Int64Array>()),
        ),
        (
            "label",
            Arc::new(DictionaryArray::try_new(indices, labels)?),
        ),
        ("list", Arc::new(lists.finish())),
        ("three", Arc::new(threes.finish())),
        (
            "word",
            Arc::new(
                cells
                    .iter()
                    .map(|row| row.word)
                    .collect::<LargeStringArray>(),
            ),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns)?;
    let mut writer = ArrowWriter::try_new(std::fs::File::create(file)?, batch.schema(), None)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

/// What is asked of `t`, by words that mean the same in both.
const QUERIES: [&str; 30] = [
    "SELECT * FROM t",
    "SELECT label, count(*), min(id), max(word) FROM t GROUP BY label",
    "SELECT id FROM t WHERE label = 'red'",
    "SELECT id FROM t WHERE label <> 'red'",
    "SELECT id FROM t WHERE label = ''",
    "SELECT id FROM t WHERE label = 'no such label'",
    "SELECT id FROM t WHERE label IN ('blue', 'green', 'other')",
    "SELECT id FROM t WHERE label NOT IN ('blue', 'green')",
    "SELECT id FROM t WHERE label NOT IN ('blue', NULL)",
    "SELECT id FROM t WHERE label IS NULL OR word IS NULL",
    "SELECT id FROM t WHERE label > 'blue' AND label < 'red'",
    "SELECT id FROM t WHERE label LIKE 'g%' OR label LIKE '%u%'",
    "SELECT id FROM t WHERE label = word",
    "SELECT upper(label), length(label) FROM t WHERE id < 0",
    "SELECT DISTINCT label, word FROM t",
    "SELECT id, coalesce(label, 'none') FROM t ORDER BY label, id",
    "SELECT a.id, b.id FROM t AS a JOIN t AS b ON a.label = b.label AND a.id = b.id + 3",
    "SELECT min(CAST(label AS VARCHAR)), max(CAST(label AS VARCHAR)), count(label), count(DISTINCT label) FROM t",
    "SELECT id, list[1], list[2], list[-1] FROM t",
    "SELECT id, array_length(list), cardinality(list) FROM t WHERE list IS NOT NULL",
    "SELECT id FROM t WHERE list IS NULL",
    "SELECT id FROM t WHERE array_has(list, 2)",
    "SELECT id FROM t WHERE list[1] = 2 AND id > 0",
    "SELECT id, unnest(list) FROM t WHERE id BETWEEN -50 AND 50",
    "SELECT n, count(*) FROM (SELECT unnest(list) AS n FROM t) AS u GROUP BY n",
    "SELECT list, count(*) FROM t GROUP BY list",
    "SELECT id FROM t WHERE list = make_array(2, 1)",
    "SELECT id, three[1] + 1, three[2], three[3] FROM t WHERE three[1] > 2",
    "SELECT three, count(*) FROM t GROUP BY three",
    "SELECT id, array_to_string(list, ',') || coalesce(word, '?') FROM t ORDER BY id LIMIT 40",
];

#[tokio::test]
async fn lists_and_labels_answer_as_those_of_parquet() -> TestResult {
    let folder = tempfile::tempdir()?;
    let cells = made(300);
    let context = Context::new(Config::default(), None)?;
    let place = context.array("mem://lists");
    write(&place, &cells)?;
    let file = folder.path().join("rows.parquet");
    parquet(&file, &cells)?;
    let (ours, theirs) = (session(&context), session(&context));
    let external = format!("STORED AS PARQUET LOCATION '{}'", file.display());
    rows(&theirs, &format!("CREATE EXTERNAL TABLE t {external}")).await?;
    ours.register_table("t", table(&place)?)?;
    let same = async |query: &str| -> TestResult {
        let (mut found, mut wanted) = (rows(&ours, query).await?, rows(&theirs, query).await?);
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "{query}");
        Ok(())
    };
    let mut without = 0;
    for query in QUERIES {
        same(query)
            .await
            .map_err(|error| format!("{query}: {error}"))?;
        without += usize::from(rows(&ours, query).await?.is_empty());
    }
    // No such label, none beside a null, and no list that is that one.
    assert!(without <= 3, "queries without rows compare little");
    // Labels are looked for by their indices, in the array.
    let shown = plan(&ours, "SELECT id FROM t WHERE label IN ('blue', 'red')").await?;
    assert!(
        shown.contains("condition=[") && !shown.contains("FilterExec"),
        "{shown}"
    );

    // Both in one query, and rows that go from one to the other.
    rows(&ours, &format!("CREATE EXTERNAL TABLE p {external}")).await?;
    let both =
        "SELECT count(*) FROM t JOIN p ON t.id = p.id AND t.label = p.label AND t.list = p.list";
    let known = cells
        .iter()
        .filter(|row| row.label.is_some() && row.list.is_some());
    assert_eq!(rows(&ours, both).await?, [known.count().to_string()]);
    let apart = "(SELECT * FROM t EXCEPT SELECT * FROM p) UNION ALL (SELECT * FROM p EXCEPT SELECT * FROM t)";
    assert!(rows(&ours, apart).await?.is_empty());
    rows(&ours, "DELETE FROM t WHERE id >= 100").await?;
    rows(&ours, "INSERT INTO t SELECT * FROM p WHERE id >= 100").await?;
    assert!(rows(&ours, apart).await?.is_empty());
    rows(&ours, "UPDATE t SET label = 'green' WHERE label = 'red'").await?;
    let red = "SELECT count(*) FROM t WHERE label = 'red'";
    assert_eq!(rows(&ours, red).await?, ["0"]);
    Ok(())
}

/// DataFusion takes labels that are whole numbers for numbers where it joins by them.
#[tokio::test]
async fn labels_that_are_numbers_are_joined() -> TestResult {
    let context = Context::new(Config::default(), None)?;
    let place = context.array("mem://numbers");
    let labels = [10i64, -5, 7].map(i64::to_le_bytes).concat();
    let numbers = Enumeration {
        datatype: Datatype::Int64,
        cell_val_num: CellValNum::ONE,
        data: labels,
        offsets: Vec::new(),
        ..Enumeration::of_strings("numbers", Datatype::StringUtf8, false, ["a"])?
    };
    let attribute = Attribute::new("n", Datatype::Int8, CellValNum::ONE).enumerated("numbers");
    let schema = ArraySchema::sparse()
        .dimension("id", 0i64..=99, 10)
        .attribute_with(attribute)
        .enumeration(numbers)
        .build()?;
    place.create(schema)?;
    let mut writer = place.writer(WriteOptions::new())?;
    writer.write(&ColumnSet::of([
        ColumnBuffers::of_values("id", (0..9i64).collect::<Vec<_>>()),
        ColumnBuffers::of_values("n", (0..9i8).map(|id| id % 3).collect::<Vec<_>>()),
    ])?)?;
    writer.finish()?;
    let session = session(&context);
    session.register_table("t", table(&place)?)?;
    for (query, expected) in [
        ("SELECT count(*) FROM t AS a JOIN t AS b ON a.n = b.n", "27"),
        ("SELECT count(*) FROM t JOIN (SELECT 7 AS s) ON n = s", "3"),
        (
            "SELECT sum(id) FROM t WHERE n IN (SELECT n FROM t WHERE id < 2)",
            "21",
        ),
        (
            "SELECT sum(id) FROM t WHERE n NOT IN (SELECT n FROM t WHERE id < 2)",
            "15",
        ),
        ("SELECT count(*) FROM t FULL JOIN t AS b USING (n)", "27"),
    ] {
        assert_eq!(rows(&session, query).await?, [expected], "{query}");
    }
    Ok(())
}
