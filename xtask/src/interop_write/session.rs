//! An array, what is known of it, and what happens to it.

use super::model::Model;
use super::peer::{self, Peer};
use super::random::{self, Rng};
use super::{Kind, fixtures};
use crate::Outcome;
use crate::support::cells;
use azulejo::format::ArraySchema;
use azulejo::format::filter::EncryptionKey;
use azulejo::read::{ReadOptions, Reader};
use azulejo::{Array, Config, Context, TimeRange};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KEY: &str = "0123456789abcdeF0123456789abcdeF";
/// Entries of each enumeration that the generator makes.
pub const LABELS: [&str; 4] = ["blue", "g", "red", "white"];

/// An array and what is known of it.
pub struct Session {
    pub rng: Rng,
    pub path: PathBuf,
    pub uri: String,
    pub key: Option<&'static str>,
    pub context: Context,
    pub schema: Arc<ArraySchema>,
    pub model: Model,
    pub clock: u64,
    /// When something was written, deleted or evolved.
    pub times: Vec<u64>,
    pub log: Vec<String>,
    /// Names of attributes that are in every fragment.
    pub original: Vec<String>,
    /// Whether any cells are of our writing.
    pub ours: bool,
    /// Attributes that deletes look at: once one is dropped, the reference cannot read the array any
    /// more, a documented difference.
    pub deleted_by: Vec<String>,
}

fn context(key: Option<&str>) -> Result<Context, String> {
    let bytes = key
        .map(|key| EncryptionKey::from_slice(key.as_bytes()))
        .transpose();
    let config = Config::new().threads(2);
    Context::new(config, bytes.map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

impl Session {
    pub fn new(dir: &Path, kind: Kind, seed: u64) -> Result<Self, String> {
        let mut rng = Rng::new(seed ^ if kind == Kind::Turns { 0x7075_7274 } else { 0 });
        let path = dir.join(format!("{kind:?}{seed}"));
        let _ = std::fs::remove_dir_all(&path);
        let uri = path.to_string_lossy().into_owned();
        if kind == Kind::Append {
            return Self::of_fixture(rng, path, uri);
        }
        let new = random::schema(&mut rng, kind == Kind::Turns);
        let key = rng.chance(10).then_some(KEY);
        let context = context(key)?;
        let clock = 1000 + rng.below(100_000);
        let schema = Arc::new(new.schema.clone());
        context
            .array(&uri)
            .create_at(new, clock)
            .map_err(|e| e.to_string())?;
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
            deleted_by: Vec::new(),
        })
    }

    /// An array of an old release, with what is in it.
    fn of_fixture(mut rng: Rng, path: PathBuf, uri: String) -> Result<Self, String> {
        let names = fixtures::names();
        // Some are too old, or too large for a naive model; few are encrypted.
        for _ in 0..5000 {
            let encrypted = rng.chance(10);
            let name = rng.pick(&names).clone();
            let key = fixtures::is_encrypted(&name).then_some(KEY);
            if encrypted != key.is_some() {
                continue;
            }
            fixtures::unpack(&name, &path)?;
            let context = context(key)?;
            let Ok(array) = context.array(&uri).open() else {
                continue;
            };
            let schema = Arc::clone(array.schema());
            if !schema.version.is_writable() || !fixtures::is_suitable(&schema) {
                continue;
            }
            let all = array.read(ReadOptions::new().fields(peer::all_fields(&schema)));
            let Ok(all) = all.and_then(Reader::read_all) else {
                continue;
            };
            let cells = cells::of_columns(&all);
            let (dimensions, attributes) = cells.split_at(schema.domain.ndim());
            let at = |i: usize| {
                dimensions
                    .iter()
                    .map(|c| c.values[i].clone().unwrap_or_default())
                    .collect()
            };
            let coordinates = (0..all.cell_num).map(at).collect();
            let columns = attributes
                .iter()
                .map(|c| (c.name.clone(), c.values.clone()))
                .collect();
            let fragments = array.fragments().iter().map(|f| f.timestamped_name().t_end);
            let clock = fragments.max().unwrap_or(0).max(azulejo::clock::now()) + 1;
            let mut model = Model::default();
            model.add(clock, coordinates, &columns);
            let log = vec![format!("{name} at {clock}")];
            let (times, original) = (vec![clock], Vec::new());
            return Ok(Self {
                rng,
                path,
                uri,
                key,
                context,
                schema,
                model,
                clock,
                times,
                log,
                original,
                ours: true,
                deleted_by: Vec::new(),
            });
        }
        Err("no fixture that can be appended to".into())
    }

    pub fn what(&self) -> String {
        let s = &self.schema;
        let dims: Vec<String> = s
            .domain
            .dimensions
            .iter()
            .map(|d| format!("{:?}", d.datatype))
            .collect();
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

    pub fn run(&mut self, peer: &mut Peer, kind: Kind) -> Outcome {
        let steps = if kind == Kind::Turns {
            4 + self.rng.below(6)
        } else {
            1 + self.rng.below(4)
        };
        for _ in 0..steps {
            if kind != Kind::Turns {
                self.write(None)?;
            } else {
                self.turn(peer)?;
            }
            for time in self.times.clone() {
                let last = Some(&time) == self.times.last();
                if kind == Kind::Turns || last {
                    self.verify(peer, time)
                        .map_err(|e| format!("at {time}: {e}"))?;
                }
            }
        }
        for time in self.times.clone() {
            self.verify(peer, time)
                .map_err(|e| format!("in the end, at {time}: {e}"))?;
        }
        (0..3).try_for_each(|_| self.query(peer))?;
        (0..2).try_for_each(|_| self.aggregate(peer))
    }

    /// How many entries each enumeration has at least.
    pub fn labels(&self) -> u64 {
        if self.original.is_empty() {
            1
        } else {
            LABELS.len() as u64
        }
    }

    pub fn tick(&mut self) -> u64 {
        self.clock += 1 + self.rng.below(20);
        self.times.push(self.clock);
        self.clock
    }

    pub fn command(&self, cmd: &str) -> Value {
        json!({"cmd": cmd, "uri": self.uri, "key": self.key})
    }

    pub fn open(&self, time: u64) -> Result<Array, String> {
        self.context
            .array(&self.uri)
            .open_at(TimeRange::until(time))
            .map_err(|e| e.to_string())
    }
}
