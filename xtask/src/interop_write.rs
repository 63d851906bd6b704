//! `cargo xtask interop write`: Azulejo writes random arrays and the reference reads them; then both take turns on one array.

mod fixtures;
mod model;
mod peer;
mod random;

use crate::support::cells::{self, Cells};
use crate::{Outcome, root};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{self, FragmentOptions, Mode, VacuumOptions};
use azulejo::format::filter::EncryptionKey;
use azulejo::format::schema::{Attribute, FieldIndex, SchemaEvolution};
use azulejo::format::{ArraySchema, Datatype, NdRectangle};
use azulejo::read::{ReadOptions, Reader};
use azulejo::space::{DimSelection, Layout};
use azulejo::write::Duplicates;
use azulejo::{Array, Config, Context, Subarray, TimeRange, WriteLayout, WriteOptions, Writer};
use model::Model;
use peer::{Peer, hex};
use random::Rng;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Seeds that once failed, kept as regression cases with what they showed: always run first.
const REGRESSIONS: &[(Kind, u64, &str)] = &[];

const KEY: &str = "0123456789abcdeF0123456789abcdeF";
/// Entries of each enumeration that the generator makes.
const LABELS: [&str; 4] = ["blue", "g", "red", "white"];

/// What happens to an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Azulejo writes all of it.
    Alone,
    /// Azulejo appends to an array that an old release of TileDB wrote, from the fixtures.
    Append,
    /// Both engines write, delete, evolve, consolidate and vacuum.
    Turns,
}

/// Options: `--seed N`, `--count N` (arrays of Azulejo's alone), `--turns N` (arrays on which both take turns).
pub fn run(options: &[&str]) -> Outcome {
    let value = |name: &str, default: u64| -> Result<u64, String> {
        match options.iter().position(|o| *o == name) {
            None => Ok(default),
            Some(i) => options
                .get(i + 1)
                .and_then(|v| v.parse().ok())
                .ok_or_else(|| format!("{name} wants a number")),
        }
    };
    // A new seed every day, as for `interop read`.
    let today = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_secs() / 86_400) * 10_000;
    let (seed, count, turns) = (value("--seed", today)?, value("--count", 300)?, value("--turns", 60)?);
    let dir = root().join("target").join("interop-write").join(seed.to_string());
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
    let mut peer = Peer::new(&dir)?;
    let mut failed = 0;
    for (kind, regression, what) in REGRESSIONS {
        println!("regression: {what}");
        failed += usize::from(!one(&dir, &mut peer, *kind, *regression));
    }
    for (kind, number) in [(Kind::Alone, count), (Kind::Append, count / 3), (Kind::Turns, turns)] {
        let bad = (seed..seed + number).filter(|seed| !one(&dir, &mut peer, kind, *seed)).count();
        println!(
            "interop write, {kind:?}, seeds {seed} to {}: {bad} of {number} failed",
            (seed + number).saturating_sub(1)
        );
        failed += bad;
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} written arrays read differently")) }
}

/// Runs a seed; a failure is printed, and its array kept.
fn one(dir: &Path, peer: &mut Peer, kind: Kind, seed: u64) -> bool {
    let mut session = match Session::new(dir, kind, seed) {
        Ok(session) => session,
        Err(text) => {
            println!("{kind:?} seed {seed}: {text}");
            return false;
        }
    };
    let run = std::panic::AssertUnwindSafe(|| session.run(peer, kind));
    let outcome = std::panic::catch_unwind(run).unwrap_or_else(|_| Err("panicked".into()));
    match outcome {
        Ok(()) => {
            let _ = std::fs::remove_dir_all(&session.path);
            true
        }
        Err(text)
            if text.ends_with(peer::WRITE_CRASH) || (!session.ours && text.contains("the reference ")) =>
        {
            // It does not always read what it has written itself.
            println!("{kind:?} seed {seed}: {text}: passed over");
            true
        }
        Err(text) => {
            let short: String = text.chars().take(500).collect();
            println!("{kind:?} seed {seed}: {short}\n    {}\n    {}", session.what(), session.log.join(", "));
            false
        }
    }
}

/// An array and what is known of it.
struct Session {
    rng: Rng,
    path: PathBuf,
    uri: String,
    key: Option<&'static str>,
    context: Context,
    schema: Arc<ArraySchema>,
    model: Model,
    clock: u64,
    /// When something was written, deleted or evolved.
    times: Vec<u64>,
    log: Vec<String>,
    /// Names of attributes that are in every fragment.
    original: Vec<String>,
    /// Whether any cells are of our writing.
    ours: bool,
}

impl Session {
    fn new(dir: &Path, kind: Kind, seed: u64) -> Result<Self, String> {
        let mut rng = Rng::new(seed ^ if kind == Kind::Turns { 0x7075_7274 } else { 0 });
        let path = dir.join(format!("{kind:?}{seed}"));
        let _ = std::fs::remove_dir_all(&path);
        let uri = path.to_string_lossy().into_owned();
        if kind == Kind::Append {
            return Self::of_fixture(rng, path, uri);
        }
        let new = random::schema(&mut rng, kind == Kind::Turns);
        let key = rng.chance(10).then_some(KEY);
        let bytes = key
            .map(|key| EncryptionKey::from_slice(key.as_bytes()))
            .transpose()
            .map_err(|e| e.to_string())?;
        let context =
            Context::new(Config { threads: 2, ..Config::default() }, bytes).map_err(|e| e.to_string())?;
        let clock = 1000 + rng.below(100_000);
        let schema = Arc::new(new.schema.clone());
        Array::create_at(&context, &uri, new, clock).map_err(|e| e.to_string())?;
        let original = schema.attributes.iter().map(|a| a.name.clone()).collect();
        let model = Model::default();
        Ok(Self {
            rng,
            path,
            uri,
            key,
            context,
            schema,
            model,
            clock,
            times: Vec::new(),
            log: Vec::new(),
            original,
            ours: false,
        })
    }

    /// An array of an old release, with what is in it.
    fn of_fixture(mut rng: Rng, path: PathBuf, uri: String) -> Result<Self, String> {
        let context =
            Context::new(Config { threads: 2, ..Config::default() }, None).map_err(|e| e.to_string())?;
        let names = fixtures::names();
        // Some cannot be opened without a key, are too old, or too large for a naive model.
        for _ in 0..200 {
            let name = rng.pick(&names).clone();
            fixtures::unpack(&name, &path)?;
            let Ok(array) = Array::open(&context, &uri) else { continue };
            let schema = Arc::clone(array.schema());
            if !schema.version.is_writable() || !fixtures::is_suitable(&schema) {
                continue;
            }
            let all = Reader::new(&array, ReadOptions::new().fields(peer::all_fields(&schema)));
            let Ok(all) = all.and_then(Reader::read_all) else { continue };
            let cells = cells::of_columns(&all);
            let (dimensions, attributes) = cells.split_at(schema.domain.ndim());
            let at = |i: usize| dimensions.iter().map(|c| c.values[i].clone().unwrap_or_default()).collect();
            let coordinates = (0..all.cell_num).map(at).collect();
            let columns = attributes.iter().map(|c| (c.name.clone(), c.values.clone())).collect();
            let fragments = array.fragments().iter().map(|f| f.timestamped_name().t_end);
            let clock = fragments.max().unwrap_or(0).max(azulejo::array::clock::now()) + 1;
            let mut model = Model::default();
            model.add(clock, coordinates, &columns);
            let log = vec![format!("{name} at {clock}")];
            let (times, original) = (vec![clock], Vec::new());
            return Ok(Self {
                rng,
                path,
                uri,
                key: None,
                context,
                schema,
                model,
                clock,
                times,
                log,
                original,
                ours: true,
            });
        }
        Err("no fixture that can be appended to".into())
    }

    fn what(&self) -> String {
        let s = &self.schema;
        let dims: Vec<String> = s.domain.dimensions.iter().map(|d| format!("{:?}", d.datatype)).collect();
        let attributes: Vec<String> = s
            .attributes
            .iter()
            .map(|a| {
                format!(
                    "{} {:?} {:?}{} {:?}",
                    a.name,
                    a.datatype,
                    a.cell_val_num,
                    if a.nullable { "?" } else { "" },
                    a.filters.filters
                )
            })
            .collect();
        format!(
            "v{} {}{} {:?} {:?} {dims:?} {attributes:?}{}",
            s.version,
            if s.is_dense() { "dense" } else { "sparse" },
            if s.allows_dups { " dups" } else { "" },
            s.cell_order,
            s.tile_order,
            if self.key.is_some() { " encrypted" } else { "" }
        )
    }

    fn run(&mut self, peer: &mut Peer, kind: Kind) -> Outcome {
        let steps = if kind == Kind::Turns { 4 + self.rng.below(6) } else { 1 + self.rng.below(4) };
        for _ in 0..steps {
            if kind != Kind::Turns {
                self.write(None)?;
            } else {
                self.turn(peer)?;
            }
            for time in self.times.clone() {
                let last = Some(&time) == self.times.last();
                if kind == Kind::Turns || last {
                    self.verify(peer, time).map_err(|e| format!("at {time}: {e}"))?;
                }
            }
        }
        for time in self.times.clone() {
            self.verify(peer, time).map_err(|e| format!("in the end, at {time}: {e}"))?;
        }
        (0..3).try_for_each(|_| self.query(peer))
    }

    /// How many entries each enumeration has at least.
    fn labels(&self) -> u64 {
        if self.original.is_empty() { 1 } else { LABELS.len() as u64 }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1 + self.rng.below(20);
        self.times.push(self.clock);
        self.clock
    }

    fn command(&self, cmd: &str) -> Value {
        json!({"cmd": cmd, "uri": self.uri, "key": self.key})
    }

    /// A random write, by the reference if it is given.
    fn write(&mut self, peer: Option<&mut Peer>) -> Outcome {
        let time = self.tick();
        let who = if peer.is_some() { "theirs" } else { "ours" };
        self.ours |= peer.is_none();
        if self.schema.is_dense() {
            self.write_box(peer, time, who)
        } else {
            self.write_cells(peer, time, who)
        }
    }

    fn write_box(&mut self, peer: Option<&mut Peer>, time: u64, who: &str) -> Outcome {
        let schema = Arc::clone(&self.schema);
        let layout = match self.rng.below(4) {
            0 if peer.is_none() => WriteLayout::Global,
            1 => WriteLayout::Col,
            _ => WriteLayout::Row,
        };
        let bounds = model::random_box(&mut self.rng, &schema, layout == WriteLayout::Global)?;
        // The domain may end within a tile, which cannot be written in global order.
        let whole = model::is_of_whole_tiles(&schema, &bounds)?;
        let layout = if layout == WriteLayout::Global && !whole { WriteLayout::Row } else { layout };
        let coordinates = model::box_cells(&schema, &bounds, layout)?;
        let labels = self.labels();
        let columns = random::columns(&mut self.rng, &schema, coordinates.len(), labels);
        let ranges = NdRectangle { ranges: model::box_ranges(&schema, &bounds)? };
        self.log.push(format!("{who} {layout:?} {bounds:?} at {time}"));
        if let Some(peer) = peer {
            let mut command = self.command("write");
            command["layout"] = i32::from(layout == WriteLayout::Col).into();
            command["t"] = time.into();
            command["box"] = ranges.ranges.iter().map(|r| json!([hex(&r.start), hex(&r.end)])).collect();
            command["columns"] =
                columns.iter().map(|(name, cells)| column_json(&schema, name, cells)).collect();
            peer.tell(&command)?;
        } else {
            let mut options = WriteOptions::new().layout(layout).timestamp(time).subarray(ranges);
            if self.rng.chance(15) {
                options = options.max_fragment_size(200 + self.rng.below(2000));
            }
            let mut writer = Writer::open(&self.context, &self.uri, options).map_err(|e| e.to_string())?;
            let set = random::column_set(&writer.column_types(&[]), &columns)?;
            if layout == WriteLayout::Global {
                let cut = self.rng.below(set.cell_num as u64 + 1) as usize;
                for part in [0..cut, cut..set.cell_num] {
                    writer.write(&set.slice(part)).map_err(|e| format!("write: {e}"))?;
                }
            } else {
                writer.write(&set).map_err(|e| format!("write: {e}"))?;
            }
            writer.finish().map_err(|e| format!("finish: {e}"))?;
        }
        self.model.add(time, coordinates, &columns);
        Ok(())
    }

    fn write_cells(&mut self, peer: Option<&mut Peer>, time: u64, who: &str) -> Outcome {
        let schema = Arc::clone(&self.schema);
        let count = *self.rng.pick(&[1, 3, 20, 60, 60, 300]);
        let mut coordinates: Vec<Vec<Vec<u8>>> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..count {
            let known = if self.rng.chance(20) { self.model.any(&mut self.rng) } else { None };
            let at = known.unwrap_or_else(|| {
                schema.domain.dimensions.iter().map(|d| random::coordinate(&mut self.rng, d)).collect()
            });
            if schema.allows_dups || seen.insert(at.clone()) {
                coordinates.push(at);
            }
        }
        let labels = self.labels();
        let columns = random::columns(&mut self.rng, &schema, coordinates.len(), labels);
        let mut all = columns.clone();
        for (d, dimension) in schema.domain.dimensions.iter().enumerate() {
            all.insert(dimension.name.clone(), coordinates.iter().map(|at| Some(at[d].clone())).collect());
        }
        if let Some(peer) = peer {
            self.log.push(format!("{who} {} cells at {time}", coordinates.len()));
            let mut command = self.command("write");
            command["layout"] = 3.into();
            command["t"] = time.into();
            command["columns"] = all.iter().map(|(name, cells)| column_json(&schema, name, cells)).collect();
            peer.tell(&command)?;
        } else {
            let global = self.rng.chance(35);
            self.log.push(format!(
                "{who} {} cells{} at {time}",
                coordinates.len(),
                if global { " in global order" } else { "" }
            ));
            let layout = if global { WriteLayout::Global } else { WriteLayout::Unordered };
            let mut options = WriteOptions::new().layout(layout).timestamp(time);
            if self.rng.chance(15) {
                options = options.max_fragment_size(200 + self.rng.below(2000));
            }
            if self.rng.chance(20) {
                options = options.duplicates(Duplicates::Dedup);
            }
            let mut writer = Writer::open(&self.context, &self.uri, options).map_err(|e| e.to_string())?;
            let set = random::column_set(&writer.column_types(&[]), &all)?;
            if global {
                let sorted = sorted(&schema, &set)?;
                let cut = self.rng.below(sorted.cell_num as u64 + 1) as usize;
                for part in [0..cut, cut..sorted.cell_num] {
                    writer.write(&sorted.slice(part)).map_err(|e| format!("write: {e}"))?;
                }
            } else {
                writer.write(&set).map_err(|e| format!("write: {e}"))?;
            }
            writer.finish().map_err(|e| format!("finish: {e}"))?;
        }
        self.model.add(time, coordinates, &columns);
        Ok(())
    }

    /// One step by either engine.
    fn turn(&mut self, peer: &mut Peer) -> Outcome {
        let theirs = self.rng.chance(50);
        let who = if theirs { "theirs" } else { "ours" };
        let text = |e: azulejo::Error| e.to_string();
        let first = self.times.is_empty();
        match if first { 0 } else { self.rng.below(12) } {
            0..5 => return self.write(theirs.then_some(peer)),
            5 if !self.schema.is_dense() && self.schema.version.has_deletes() => {
                let Some((condition, tree)) = self.condition() else { return Ok(()) };
                let time = self.tick();
                self.log.push(format!("{who} delete {tree} at {time}"));
                if theirs {
                    let mut command = self.command("delete");
                    command["tree"] = tree;
                    command["t"] = time.into();
                    if let Err(refused) = peer.ask(&command)? {
                        self.log.push(format!("refused: {refused}"));
                        return Ok(());
                    }
                } else {
                    Array::delete_cells(&self.context, &self.uri, &condition, Some(time)).map_err(text)?;
                }
                self.model.forget();
            }
            6 if self.key.is_none() => return self.evolve(theirs.then_some(peer), who),
            7..9 => {
                let purge = self.rng.chance(30);
                self.log.push(format!("{who} consolidate{}", if purge { " purging" } else { "" }));
                if theirs {
                    let mut command = self.command("consolidate");
                    command["mode"] = "fragments".into();
                    command["purge"] = if purge { "true" } else { "false" }.into();
                    if let Err(refused) = peer.ask(&command)? {
                        self.log.push(format!("refused: {refused}"));
                    }
                } else {
                    let options =
                        FragmentOptions { purge_deleted_cells: purge, ..FragmentOptions::default() };
                    self.ours = true;
                    consolidate::fragments(&self.context, &self.uri, &options).map_err(text)?;
                }
            }
            9 => {
                let mode = *self.rng.pick(&[Mode::Commits, Mode::FragmentMetadata]);
                self.log.push(format!("{who} consolidate {}", mode.name()));
                if theirs {
                    let mut command = self.command("consolidate");
                    command["mode"] = reference_name(mode).into();
                    if let Err(refused) = peer.ask(&command)? {
                        self.log.push(format!("refused: {refused}"));
                    }
                } else if mode == Mode::Commits {
                    if !self.schema.version.has_subdirectories() {
                        return Ok(());
                    }
                    consolidate::commits(&self.context, &self.uri).map_err(text)?;
                } else {
                    consolidate::fragment_metadata(&self.context, &self.uri).map_err(text)?;
                }
            }
            _ => {
                let mode = *self.rng.pick(&[
                    Mode::Fragments,
                    Mode::Fragments,
                    Mode::Commits,
                    Mode::FragmentMetadata,
                ]);
                self.log.push(format!("{who} vacuum {}", mode.name()));
                if theirs {
                    let mut command = self.command("vacuum");
                    command["mode"] = reference_name(mode).into();
                    if let Err(refused) = peer.ask(&command)? {
                        self.log.push(format!("refused: {refused}"));
                    }
                } else {
                    consolidate::vacuum(&self.context, &self.uri, mode, VacuumOptions::default())
                        .map_err(text)?;
                }
            }
        }
        // Times within a fragment that took the place of others may show other cells than before.
        self.model.settle();
        Ok(())
    }

    fn evolve(&mut self, peer: Option<&mut Peer>, who: &str) -> Outcome {
        let time = self.tick();
        let drop = self.schema.attributes.len() > 1 && self.rng.chance(40);
        let mut evolution = SchemaEvolution::default();
        let mut command = self.command("evolve");
        command["t"] = time.into();
        if drop {
            let name = self.schema.attributes[0].name.clone();
            self.original.retain(|n| *n != name);
            command["drop"] = name.clone().into();
            evolution.drop_attributes.push(name);
        } else {
            let name = format!("n{time}");
            let mut attribute = random::attribute(&mut self.rng, &name);
            attribute = Attribute { filters: Default::default(), ..attribute };
            let mut scratch = (*self.schema).clone();
            scratch.attributes.push(attribute.clone());
            let mut field = peer::field_json(&scratch, &name);
            field["fill"] = hex(&attribute.fill_value).into();
            command["add"] = field;
            evolution.add_attributes.push(attribute);
        }
        self.log.push(format!("{who} evolve, {} at {time}", if drop { "drop" } else { "add" }));
        match peer {
            Some(peer) => {
                if let Err(refused) = peer.ask(&command)? {
                    self.log.push(format!("refused: {refused}"));
                }
            }
            None => {
                Array::evolve(&self.context, &self.uri, &evolution, Some(time)).map_err(|e| e.to_string())?;
            }
        }
        self.model.forget();
        self.schema = Arc::clone(self.open(time)?.schema());
        Ok(())
    }

    /// A comparison that both engines understand alike, of a field that is in every fragment.
    fn condition(&mut self) -> Option<(Condition, Value)> {
        let schema = Arc::clone(&self.schema);
        let plain =
            |datatype: Datatype| datatype.is_integer() || datatype.is_datetime() || datatype.is_time();
        let fields: Vec<FieldIndex> = schema
            .fields()
            .filter(|f| {
                let Some((datatype, num)) = schema.type_of(*f) else { return false };
                let known = schema.attribute_of(*f).is_none_or(|a| self.original.contains(&a.name));
                let one = num == azulejo::format::CellValNum::ONE && plain(datatype);
                known
                    && (one || (num.is_var() && datatype == Datatype::StringAscii))
                    && datatype != Datatype::Bool
            })
            .collect();
        if fields.is_empty() {
            return None;
        }
        let field = *self.rng.pick(&fields);
        let name = schema.name_of(field).to_owned();
        let attribute = schema.attribute_of(field);
        let mut ops = vec![("==", Comparison::Eq), ("!=", Comparison::Ne)];
        let enumerated = attribute.is_some_and(|a| a.enumeration.is_some());
        if !enumerated {
            ops.extend([
                ("<", Comparison::Lt),
                ("<=", Comparison::Le),
                (">", Comparison::Gt),
                (">=", Comparison::Ge),
            ]);
        }
        let mut value = || match (attribute, field) {
            (Some(_), _) if enumerated => self.rng.pick(&LABELS).as_bytes().to_vec(),
            (Some(attribute), _) => random::value(&mut self.rng, attribute),
            (None, FieldIndex::Dimension(d)) => {
                random::coordinate(&mut self.rng, &schema.domain.dimensions[d])
            }
            (None, FieldIndex::Attribute(_)) => Vec::new(),
        };
        let values = [value(), value()];
        if values.iter().any(|v| v.is_empty() || v.len() > 200) {
            return None;
        }
        if self.rng.chance(25) && values[0] != values[1] {
            let negated = self.rng.chance(50);
            let tree = json!(["in", name, negated, [hex(&values[0]), hex(&values[1])]]);
            let condition = Condition::In { field: name.into(), negated, values: values.iter().collect() };
            return Some((condition, tree));
        }
        let (op, comparison) = *self.rng.pick(&ops);
        let tree = json!(["cmp", name, op, hex(&values[0])]);
        let [value, _] = values;
        Some((Condition::compare(name, comparison, value), tree))
    }

    fn open(&self, time: u64) -> Result<Array, String> {
        Array::open_at(&self.context, &self.uri, TimeRange::until(time)).map_err(|e| e.to_string())
    }

    /// Both engines and the model have the same cells at a time.
    fn verify(&mut self, peer: &mut Peer, time: u64) -> Outcome {
        let array = self.open(time)?;
        let schema = Arc::clone(array.schema());
        let fields = peer::all_fields(&schema);
        let layout = if schema.is_dense() {
            Layout::RowMajor
        } else {
            *self.rng.pick(&[Layout::RowMajor, Layout::Global])
        };
        let options = ReadOptions::new().fields(fields.clone()).layout(layout);
        let ours =
            Reader::new(&array, options).and_then(Reader::read_all).map_err(|e| format!("our read: {e}"))?;
        let ours = cells::of_columns(&ours);
        let mut command = self.command("read");
        command["layout"] = if layout == Layout::Global { 2 } else { 0 }.into();
        command["t"] = json!([0, time]);
        command["ranges"] = whole(&schema);
        let theirs = peer.read(&schema, &fields, command)?;
        if let Some(expected) = self.model.cells(&schema, &fields, time, Some(&time) == self.times.last())? {
            let same = if schema.is_dense() { cells::compare } else { cells::compare_unordered };
            same(&expected, &theirs).map_err(|e| format!("the reference reads what was not written: {e}"))?;
            same(&expected, &ours).map_err(|e| format!("Azulejo reads what was not written: {e}"))?;
        }
        same_cells(&schema, &theirs, &ours)
    }

    /// Both engines answer a query alike: ranges and a condition, which statistics prune by.
    fn query(&mut self, peer: &mut Peer) -> Outcome {
        let time = self.clock;
        let array = self.open(time)?;
        let schema = Arc::clone(array.schema());
        let fields = peer::all_fields(&schema);
        let mut selection = Vec::new();
        let mut ranges = Vec::new();
        for dimension in &schema.domain.dimensions {
            let (a, b) =
                (random::coordinate(&mut self.rng, dimension), random::coordinate(&mut self.rng, dimension));
            let backwards = azulejo::format::range::compare(dimension.datatype, &a, &b).is_gt();
            let (low, high) = if backwards { (b, a) } else { (a, b) };
            if low.is_empty() {
                selection.push(DimSelection::All);
                ranges.push(json!([true, []]));
            } else {
                ranges.push(json!([dimension.cell_val_num.is_var(), [[hex(&low), hex(&high)]]]));
                selection.push(DimSelection::Ranges(vec![azulejo::format::Range::new(low, high)]));
            }
        }
        let mut options = ReadOptions::new()
            .fields(fields.clone())
            .layout(Layout::RowMajor)
            .subarray(Subarray::Box(selection));
        let mut command = self.command("read");
        command["layout"] = 0.into();
        command["t"] = json!([0, time]);
        command["ranges"] = ranges.into();
        // Dense reads: tests of nullable fields and of strings apart, see docs/differences.md.
        if let Some((condition, tree)) = self.condition().filter(|_| !schema.is_dense()) {
            options = options.condition(condition);
            command["tree"] = tree;
        }
        let text = format!("query {} {}", command["ranges"], command["tree"]);
        let ours =
            Reader::new(&array, options).and_then(Reader::read_all).map_err(|e| format!("{text}: {e}"))?;
        let theirs = peer.read(&schema, &fields, command)?;
        same_cells(&schema, &theirs, &cells::of_columns(&ours)).map_err(|e| format!("{text}: {e}"))
    }
}

fn same_cells(schema: &ArraySchema, theirs: &[Cells], ours: &[Cells]) -> Outcome {
    let compare = if schema.allows_dups { cells::compare_unordered } else { cells::compare };
    compare(theirs, ours).map_err(|e| format!("Azulejo differs from the reference: {e}"))
}

/// The ranges of the whole domain for dense arrays, none for sparse ones.
fn whole(schema: &ArraySchema) -> Value {
    let one = |d: &azulejo::format::schema::Dimension| match &d.domain {
        Some(domain) if schema.is_dense() => json!([false, [[hex(&domain.start), hex(&domain.end)]]]),
        _ => json!([d.cell_val_num.is_var(), []]),
    };
    schema.domain.dimensions.iter().map(one).collect()
}

fn column_json(schema: &ArraySchema, name: &str, cells: &[Option<Vec<u8>>]) -> Value {
    let cells: Vec<Option<String>> = cells.iter().map(|cell| cell.as_deref().map(hex)).collect();
    json!([peer::field_json(schema, name), cells])
}

/// What the reference calls a mode.
fn reference_name(mode: Mode) -> &'static str {
    match mode {
        Mode::FragmentMetadata => "fragment_meta",
        Mode::Commits => "commits",
        _ => "fragments",
    }
}

/// Cells in the global order of a schema: by way of a scratch array.
fn sorted(schema: &ArraySchema, set: &azulejo::ColumnSet) -> Result<azulejo::ColumnSet, String> {
    let text = |e: azulejo::Error| format!("scratch: {e}");
    let context = Context::new(Config::default(), None).map_err(text)?;
    let mut plain = schema.clone();
    for attribute in &mut plain.attributes {
        attribute.enumeration = None;
    }
    plain.enumerations.clear();
    Array::create(&context, "mem://scratch", azulejo::format::schema::NewArray::from(plain)).map_err(text)?;
    let mut writer = Writer::open(&context, "mem://scratch", WriteOptions::new()).map_err(text)?;
    writer.write(set).map_err(text)?;
    writer.finish().map_err(text)?;
    let array = Array::open(&context, "mem://scratch").map_err(text)?;
    let names: Vec<String> = set.columns.iter().map(|c| c.column_type.name.to_string()).collect();
    let options = ReadOptions::new().fields(names).layout(Layout::Global);
    Reader::new(&array, options).and_then(Reader::read_all).map_err(text)
}

/// The attribute that a field is.
trait AttributeOf {
    fn attribute_of(&self, field: FieldIndex) -> Option<&Attribute>;
}

impl AttributeOf for ArraySchema {
    fn attribute_of(&self, field: FieldIndex) -> Option<&Attribute> {
        match field {
            FieldIndex::Attribute(a) => self.attribute(a),
            FieldIndex::Dimension(_) => None,
        }
    }
}
