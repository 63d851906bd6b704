//! Dictionaries larger than random arrays have: indices of one, two and four bytes, which Azulejo makes as
//! narrow as the words allow while the reference counts cells.

use super::peer::{self, Peer};
use crate::Outcome;
use crate::support::cells;
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::filter::Filter;
use azulejo::format::schema::Attribute;
use azulejo::format::{ArraySchema, CellValNum, Datatype};
use azulejo::read::{ReadOptions, Reader};
use azulejo::space::Layout;
use azulejo::write::WriteOptions;
use azulejo::{Config, Context};
use serde_json::json;
use std::path::Path;

/// Cells, all of one tile.
const CELLS: usize = 70_000;

/// Words of an attribute, bytes of each at least, and whether some cells are null.
const WORDS: [(usize, usize, bool); 7] = [
    (1, 0, false),
    (256, 5, false),
    (257, 12, true),
    (1_000, 40, false),
    (65_536, 1, true),
    (65_537, 8, false),
    (3, 300, true),
];

/// Writes a tile of such attributes, which both engines must read as it was written.
pub fn run(dir: &Path, peer: &mut Peer) -> Outcome {
    let path = dir.join("dictionaries");
    let uri = path.display().to_string();
    let texts = |error: azulejo::Error| error.to_string();
    let context = Context::new(Config::default(), None).map_err(texts)?;
    let mut schema = ArraySchema::sparse()
        .dimension("x", 0i64..=999_999, 1_000_000)
        .capacity(100_000);
    let mut columns = vec![ColumnBuffers::of_values(
        "x",
        (0..CELLS as i64).collect::<Vec<_>>(),
    )];
    let kinds = [Datatype::StringAscii, Datatype::StringUtf8];
    for (i, (words, len, nullable)) in WORDS.into_iter().enumerate() {
        let name = format!("a{i}");
        let datatype = kinds[i % kinds.len()];
        let mut attribute = Attribute::new(name.as_str(), datatype, CellValNum::Var);
        attribute.nullable = nullable;
        attribute.filters.filters = vec![Filter::Dictionary { level: -1 }];
        if i % 3 != 0 {
            attribute.filters.filters.push(Filter::Zstd { level: 3 });
        }
        schema = schema.attribute_with(attribute);
        let cell = |cell: usize| match words {
            // The least that a dictionary can hold.
            1 => String::new(),
            _ => format!("{:0>len$}", cell * 7_919 % words),
        };
        let cell = |n: usize| (!nullable || !n.is_multiple_of(11)).then(|| cell(n));
        let mut column = match nullable {
            true => ColumnBuffers::of_optional_strings(name, (0..CELLS).map(cell)),
            false => ColumnBuffers::of_strings(name, (0..CELLS).filter_map(cell)),
        };
        column.column_type.datatype = datatype;
        columns.push(column);
    }
    let place = context.array(&uri);
    let new = schema.build().map_err(|error| error.to_string())?;
    place.create(new).map_err(texts)?;
    let set = ColumnSet::of(columns).map_err(texts)?;
    let array = place.open().map_err(texts)?;
    let mut writer = array.writer(WriteOptions::new()).map_err(texts)?;
    writer.write(&set).map_err(texts)?;
    writer.finish().map_err(texts)?;
    let array = place.open().map_err(texts)?;
    let fields = peer::all_fields(array.schema());
    let options = ReadOptions::new()
        .fields(fields.clone())
        .layout(Layout::Global);
    let ours = array
        .read(options)
        .and_then(Reader::read_all)
        .map_err(texts)?;
    let written = cells::of_columns(&set);
    cells::compare(&written, &cells::of_columns(&ours))
        .map_err(|e| format!("Azulejo reads what was not written: {e}"))?;
    let command = json!({
        "cmd": "read", "uri": uri, "key": null, "layout": 2, "t": [0, u64::MAX], "ranges": [[false, []]],
    });
    let theirs = peer.read(array.schema(), &fields, command)?;
    cells::compare(&written, &theirs)
        .map_err(|e| format!("the reference reads what was not written: {e}"))?;
    std::fs::remove_dir_all(&path).map_err(|e| e.to_string())
}
