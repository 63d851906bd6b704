//! Operations that change what lies on a storage, what they need, and what a user sees afterwards.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

use azulejo::array::FragmentSelection;
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{Attribute, DataOrder, Enumeration, NewArray, SchemaEvolution};
use azulejo::format::{ArraySchema, CellValNum, Datatype};
use azulejo::group::{NewMember, ObjectType};
use azulejo::read::ReadOptions;
use azulejo::storage::Storage;
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, Error, Result, TimeRange};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A context of one thread on two storages.
pub fn context(local: impl Storage + 'static, memory: Arc<dyn Storage>) -> Context {
    let config = Config::new().threads(1);
    Context::with_storages(config, None, Arc::new(local), memory).unwrap()
}

/// What an operation works on: a context, and what the names of its objects begin with.
pub struct Place<'a> {
    pub context: &'a Context,
    pub root: &'a str,
}

impl Place<'_> {
    pub fn at(&self, name: &str) -> String {
        format!("{}{name}", self.root)
    }

    pub fn write(&self, x: i64, time: u64) -> Result<()> {
        let array = self.context.array(&self.at("array"));
        let mut writer = array.writer(WriteOptions::new().timestamp(time))?;
        let columns = [
            ColumnBuffers::of_values("x", vec![x]),
            ColumnBuffers::of_values("a", vec![7i32]),
        ];
        writer.write(&ColumnSet::of(columns).unwrap())?;
        writer.finish().map(drop)
    }

    pub fn write_dense(&self, from: i32, time: u64) -> Result<()> {
        let array = self.context.array(&self.at("array"));
        let mut writer = array.writer(WriteOptions::new().timestamp(time))?;
        let columns = [ColumnBuffers::of_values(
            "a",
            (from..from + 20).collect::<Vec<i32>>(),
        )];
        writer.write(&ColumnSet::of(columns).unwrap())?;
        writer.finish().map(drop)
    }

    pub fn put(&self, key: &str, time: u64) -> Result<()> {
        let array = self.context.array(&self.at("array"));
        let mut writer = array.change_metadata()?.at(time);
        writer.put(key, MetadataValue::new(Datatype::Int8, [1]))?;
        writer.commit()
    }

    pub fn put_on_group(&self, key: &str, time: u64) -> Result<()> {
        let group = self.context.group(&self.at("group"));
        let mut writer = group.change_metadata()?.at(time);
        writer.put(key, MetadataValue::new(Datatype::Int8, [1]))?;
        writer.commit()
    }

    pub fn vacuum(&self, mode: Mode) -> Result<()> {
        let array = self.context.array(&self.at("array"));
        array.vacuum(mode, VacuumOptions::default()).map(drop)
    }
}

fn words() -> Enumeration {
    Enumeration::of_strings("words", Datatype::StringUtf8, true, ["a", "b"]).unwrap()
}

fn labelled() -> NewArray {
    ArraySchema::dense()
        .dimension("x", 0i32..=99, 10)
        .enumeration(words())
        .attribute_with(Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words"))
        .label(0, "name", DataOrder::Increasing, Datatype::Float64)
        .build()
        .unwrap()
}

/// What there is before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    Nothing,
    Sparse,
    Duplicates,
    /// Fragments and key-values were merged, not vacuumed; a fragment came afterwards.
    Merged,
    /// All commits are in one file, whose twins are there.
    OneCommit,
    Dense,
    /// Two of its key-values were merged, not vacuumed; one came afterwards.
    Group,
}

const ARRAYS: [Before; 5] = [
    Before::Sparse,
    Before::Duplicates,
    Before::Merged,
    Before::OneCommit,
    Before::Dense,
];

/// Makes what there is before.
pub fn prepare(before: Before, place: &Place<'_>) {
    let array = place.context.array(&place.at("array"));
    match before {
        Before::Nothing => return,
        Before::Group => {
            place.context.group(&place.at("group")).create().unwrap();
            let mut editor = place.context.group(&place.at("group")).edit().unwrap();
            editor
                .add(NewMember::at("mem://z").named("z").typed(ObjectType::Array))
                .unwrap();
            editor.commit().unwrap();
            for time in [10, 20] {
                place.put_on_group(&format!("k{time}"), time).unwrap();
            }
            let group = place.context.group(&place.at("group"));
            group.consolidate_metadata(TimeRange::ALL).unwrap();
            return place.put_on_group("k30", 30).unwrap();
        }
        Before::Dense => {
            let schema = ArraySchema::dense()
                .dimension("x", 0i64..=19, 10)
                .attribute("a", Datatype::Int32);
            array.create_at(schema.build().unwrap(), 1).unwrap();
            for time in [10, 20] {
                place.write_dense(time, time as u64).unwrap();
            }
            return;
        }
        Before::Sparse | Before::Duplicates | Before::Merged | Before::OneCommit => {}
    }
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=99, 10)
        .attribute("a", Datatype::Int32)
        .allows_duplicates(before == Before::Duplicates);
    array.create_at(schema.build().unwrap(), 1).unwrap();
    for (x, time) in [(1, 10), (2, 20), (3, 30)] {
        place.write(x, time).unwrap();
        place.put(&format!("k{x}"), time).unwrap();
    }
    if before == Before::Merged {
        array.consolidate(&FragmentOptions::default()).unwrap();
        array.consolidate_metadata(TimeRange::ALL).unwrap();
        place.write(4, 40).unwrap();
    }
    if before == Before::OneCommit {
        array.consolidate_commits().unwrap();
        array.consolidate_fragment_metadata().unwrap();
    }
}

/// A name, what it can be done on, and what is done.
pub type Operation = (
    &'static str,
    &'static [Before],
    fn(&Place<'_>) -> Result<()>,
);

const SPARSE: &[Before] = &[
    Before::Sparse,
    Before::Duplicates,
    Before::Merged,
    Before::OneCommit,
];

pub const OPERATIONS: &[Operation] = &[
    ("create", &[Before::Nothing], |place| {
        let array = place.context.array(&place.at("new/deep/array"));
        array.create_at(labelled(), 1)
    }),
    ("create group", &[Before::Nothing], |place| {
        place.context.group(&place.at("group")).create()
    }),
    ("append", SPARSE, |place| place.write(50, 50)),
    ("write dense", &[Before::Dense], |place| {
        place.write_dense(50, 50)
    }),
    ("delete cells", SPARSE, |place| {
        let condition = Condition::compare("x", Comparison::Lt, 2i64.to_le_bytes());
        let array = place.context.array(&place.at("array"));
        array.delete_cells(&condition, Some(60)).map(drop)
    }),
    ("delete fragments", &ARRAYS, |place| {
        let within = FragmentSelection::Within(TimeRange { start: 15, end: 35 });
        let array = place.context.array(&place.at("array"));
        array.delete_fragments(within).map(drop)
    }),
    ("evolve", &ARRAYS, |place| {
        let evolution = SchemaEvolution {
            add_enumerations: vec![words()],
            add_attributes: vec![
                Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words"),
            ],
            ..SchemaEvolution::default()
        };
        let array = place.context.array(&place.at("array"));
        array.evolve(&evolution, Some(70))
    }),
    ("metadata", &ARRAYS, |place| place.put("new", 80)),
    ("consolidate fragments", &ARRAYS, |place| {
        let array = place.context.array(&place.at("array"));
        array.consolidate(&FragmentOptions::default()).map(drop)
    }),
    ("consolidate commits", &ARRAYS, |place| {
        let array = place.context.array(&place.at("array"));
        array.consolidate_commits().map(drop)
    }),
    ("consolidate footers", &ARRAYS, |place| {
        let array = place.context.array(&place.at("array"));
        array.consolidate_fragment_metadata().map(drop)
    }),
    ("consolidate metadata", SPARSE, |place| {
        let array = place.context.array(&place.at("array"));
        array.consolidate_metadata(TimeRange::ALL).map(drop)
    }),
    ("vacuum fragments", &ARRAYS, |place| {
        place.vacuum(Mode::Fragments)
    }),
    ("vacuum commits", &ARRAYS, |place| {
        place.vacuum(Mode::Commits)
    }),
    ("vacuum footers", &ARRAYS, |place| {
        place.vacuum(Mode::FragmentMetadata)
    }),
    ("vacuum metadata", &ARRAYS, |place| {
        place.vacuum(Mode::ArrayMetadata)
    }),
    ("move", &ARRAYS, |place| {
        let array = place.context.object(&place.at("array"));
        array.rename_to(&place.at("new/moved"))
    }),
    ("copy", &ARRAYS, |place| {
        let array = place.context.object(&place.at("array"));
        array.copy_to(&place.at("new/moved"))
    }),
    ("delete array", &ARRAYS, |place| {
        let array = place.context.object(&place.at("array"));
        array.delete(false).map(drop)
    }),
    ("edit group", &[Before::Group], |place| {
        let mut editor = place.context.group(&place.at("group")).edit()?;
        editor.add(NewMember::at("mem://a").named("a").typed(ObjectType::Array))?;
        editor.remove("z")?;
        editor.commit()
    }),
    ("group metadata", &[Before::Group], |place| {
        place.put_on_group("new", 80)
    }),
    ("consolidate group metadata", &[Before::Group], |place| {
        let group = place.context.group(&place.at("group"));
        group.consolidate_metadata(TimeRange::ALL).map(drop)
    }),
    ("vacuum group metadata", &[Before::Group], |place| {
        let group = place.context.group(&place.at("group"));
        group.vacuum_metadata(VacuumOptions::default()).map(drop)
    }),
    ("delete group", &[Before::Group], |place| {
        let group = place.context.object(&place.at("group"));
        group.delete(false).map(drop)
    }),
];

/// What a user sees of all that there may be.
pub fn look(context: &Context) -> Vec<String> {
    let mut seen = Vec::new();
    for uri in ["mem://array", "mem://new/deep/array", "mem://new/moved"] {
        let array = context.array(uri);
        let now = match array.open() {
            Ok(now) => now,
            Err(Error::NotFound { .. }) => continue,
            Err(error) => {
                seen.push(format!("{uri}: {error}"));
                continue;
            }
        };
        let names = now.schema().attributes.iter().map(|a| a.name.as_str());
        let names: BTreeSet<&str> = names.collect();
        let keys = now
            .metadata()
            .map(|all| all.keys().map(|k| k.to_owned()).collect::<Vec<_>>());
        let labels = now.schema().dimension_labels.len();
        let words = now.enumerations().map(|all| all.len());
        seen.push(format!("{uri}: {names:?} {keys:?} {words:?}"));
        if labels > 0 {
            seen.push(format!("{:?}", now.open_label("name").map(drop)));
        }
        let field = if now.schema().is_dense() { "a" } else { "x" };
        if labels > 0 {
            continue;
        }
        for time in [TimeRange::until(25), TimeRange::ALL] {
            let cells = array.open_at(time).and_then(|array| {
                let cells = array.read(ReadOptions::new().fields([field]))?.read_all()?;
                let column = cells.column(field).unwrap();
                let cells = if field == "x" {
                    column.values::<i64>().unwrap().to_vec()
                } else {
                    column
                        .values::<i32>()
                        .unwrap()
                        .iter()
                        .map(|v| i64::from(*v))
                        .collect()
                };
                Ok(cells)
            });
            seen.push(match cells {
                Ok(mut cells) => {
                    cells.sort_unstable();
                    format!("{cells:?}")
                }
                Err(error) => format!("cannot be read: {error}"),
            });
        }
    }
    match context.group("mem://group").open() {
        Ok(group) => {
            let members = group.members().iter().map(|member| member.location.clone());
            let keys = group
                .metadata()
                .map(|all| all.keys().map(|k| k.to_owned()).collect::<Vec<_>>());
            seen.push(format!("group {:?} {keys:?}", members.collect::<Vec<_>>()));
        }
        Err(Error::NotFound { .. }) => {}
        Err(error) => seen.push(format!("group: {error}")),
    }
    seen
}
