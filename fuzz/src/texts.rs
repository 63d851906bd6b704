//! Text that users type: conditions, and what the command line takes for values, ranges, sizes and
//! times.

use crate::decoders::LIMIT;
use crate::{moment, range_text, size, value};
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::schema::{Attribute, Enumeration};
use azulejo::format::{ArraySchema, CellValNum, Datatype};
use azulejo::read::ReadOptions;
use azulejo::storage::{LocalStorage, MemoryStorage};
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context};
use std::sync::{Arc, LazyLock};

/// The same cells in tiles of three and in one tile: what statistics leave out of the first is
/// looked at in the second.
static ARRAYS: LazyLock<[Array; 2]> =
    LazyLock::new(|| [3, 1000].map(|capacity| array(capacity).expect("an array in memory")));

/// An array with an attribute of every kind that conditions treat in its own way.
fn array(capacity: u64) -> azulejo::Result<Array> {
    let config = Config::new().memory_budget(LIMIT).threads(1);
    let (local, memory) = (LocalStorage::new(), MemoryStorage::new());
    let context = Context::with_storages(config, None, Arc::new(local), Arc::new(memory))?;
    let words = Enumeration::of_strings("words", Datatype::StringUtf8, false, ["red", "green"])
        .expect("two words");
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=999, 10)
        .capacity(capacity)
        .enumeration(words)
        .attribute("i", Datatype::Int32)
        .attribute("f", Datatype::Float64)
        .var_attribute("s", Datatype::StringUtf8)
        .attribute("t", Datatype::DateTimeMilli)
        .attribute("o", Datatype::Bool)
        .attribute("u", Datatype::UInt64)
        .attribute("g", Datatype::Float32)
        .attribute("y", Datatype::DateTimeYear)
        .attribute("z", Datatype::TimeNano)
        .attribute("h", Datatype::Char)
        .var_attribute("b", Datatype::Blob)
        .attribute_with(Attribute::new("n", Datatype::UInt8, CellValNum::ONE).nullable())
        .attribute_with(Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words"))
        .attribute_with(Attribute::new(
            "c",
            Datatype::StringAscii,
            CellValNum::Fixed(3),
        ));
    let handle = context.array("mem://a");
    handle.create(schema.build().expect("a schema"))?;
    let mut writer = handle.writer(WriteOptions::new())?;
    let x: Vec<i64> = (0..9).map(|i| i * 7).collect();
    let bytes = |i: &i64| (i % 5) as u8;
    let cells = ColumnSet::of([
        ColumnBuffers::of_values("i", x.iter().map(|i| *i as i32 - 20).collect()),
        ColumnBuffers::of_values("f", x.iter().map(|i| *i as f64 / 3.0).collect()),
        ColumnBuffers::of_strings("s", x.iter().map(|i| "abc".repeat(*i as usize % 4))),
        ColumnBuffers::of_values("t", x.iter().map(|i| i << 35).collect()),
        ColumnBuffers::of_values("o", x.iter().map(|i| (i % 2) as u8).collect()),
        ColumnBuffers::of_values("u", x.iter().map(|i| u64::MAX - *i as u64).collect()),
        ColumnBuffers::of_values(
            "g",
            x.iter()
                .map(|i| [f32::NAN, 0.5, -0.0][*i as usize % 3])
                .collect(),
        ),
        ColumnBuffers::of_values("y", x.clone()),
        ColumnBuffers::of_values("z", x.iter().map(|i| i << 39).collect()),
        ColumnBuffers::of_values("h", x.iter().map(|i| b'a' + *i as u8).collect()),
        ColumnBuffers::of_lists("b", x.iter().map(|i| vec![*i as u8; *i as usize % 3])),
        ColumnBuffers::of_options("n", x.iter().map(|i| (i % 3 > 0).then(|| bytes(i)))),
        ColumnBuffers::of_values("w", x.iter().map(|i| (i % 2) as u8).collect()),
        ColumnBuffers::of_cells("c", x.iter().flat_map(|i| [bytes(i); 3]).collect(), 3)?,
        ColumnBuffers::of_values("x", x),
    ])?;
    writer.write(&cells)?;
    writer.finish()?;
    handle.open()
}

/// All types.
static TYPES: LazyLock<Vec<Datatype>> = LazyLock::new(|| {
    (0..=u8::MAX)
        .filter_map(|id| Datatype::from_id(id, 1).ok())
        .collect()
});

/// What it is and of which type, then text.
pub fn texts(data: &[u8]) {
    let [what, text @ ..] = data else { return };
    let datatype = TYPES[usize::from(what >> 2) % TYPES.len()];
    let _ = value::text(datatype, text);
    let _ = value::index(text);
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    match what & 3 {
        0 | 1 => condition(text),
        2 => range(datatype, text),
        _ => {
            if let Ok(bytes) = size::parse(text) {
                let _ = (size::text(bytes), size::count(bytes));
            }
            if let Ok((first, last)) = moment::parse_timestamp(text) {
                assert!(first <= last, "{text:?}: {first} to {last}");
                let _ = (moment::timestamp_text(first), moment::timestamp_text(last));
            }
            let _ = moment::parse_clock(text);
        }
    }
}

fn range(datatype: Datatype, text: &str) {
    let Ok(range) = range_text::parse_range(datatype, text) else {
        return;
    };
    for bound in [&range.low, &range.high].into_iter().flatten() {
        let said = value::text(datatype, bound);
        let lump = datatype.is_opaque() || datatype == Datatype::Char;
        let integer = datatype.physical().is_integer() && !lump;
        if integer && bound.len() == datatype.size() {
            let number = dispatch!(datatype.physical(), T => value::integer(T::read(bound)));
            assert!(number.unsigned_abs() <= u64::MAX.into());
            // What is said is read as the same again: `@` where it would be something else.
            let again = value::parse(datatype, &said, value::Bound::Low);
            let is_time = datatype.is_datetime() || datatype.is_time();
            assert!(
                is_time || again.as_ref() == Ok(bound) || datatype == Datatype::Bool,
                "{said:?}"
            );
        }
    }
}

/// A condition leaves the same cells however they lie in tiles, and written again.
fn condition(text: &str) {
    let read = |array: &Array, text: &str| {
        let options = ReadOptions::new().fields(["x"]);
        let options = options.condition(array.condition(text).ok()?);
        let cells = array.read(options).ok()?.read_all().ok()?;
        Some(cells.column("x")?.values::<i64>()?.to_vec())
    };
    let [few, many] = &*ARRAYS;
    let cells = read(few, text);
    assert_eq!(cells, read(many, text), "{text:?}");
    let Ok(condition) = few.condition(text) else {
        return;
    };
    let lookup = |name: &str| few.enumeration(name);
    let Ok(written) = azulejo::condition::format(&condition, few.schema(), &lookup) else {
        return;
    };
    match few.condition(&written) {
        Ok(_) => assert_eq!(read(few, &written), cells, "{text:?}, {written:?}"),
        // It has a pair of parentheses more.
        Err(error) => {
            let said = error.to_string();
            assert!(
                said.contains("nested too deep"),
                "{text:?}, {written:?}: {said}"
            );
        }
    }
}
