//! One of our processes: changes and looks, until its time is over.

use super::model::{self, BLOCKS, Blocks, EXTRA, Kind, WORKERS, block_of};
use crate::Outcome;
use azulejo::array::FragmentSelection;
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{Choice, FragmentOptions, Mode, VacuumOptions};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{Attribute, SchemaEvolution};
use azulejo::format::{CellValNum, Datatype};
use azulejo::{Config, Context, Error, TimeRange};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A generator of numbers: the same for the same seed, on every machine.
pub struct Numbers(pub u64);

impl Numbers {
    /// A number below `end`.
    fn below(&mut self, end: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        i64::try_from(self.0 >> 11).unwrap_or(0) % end
    }
}

/// What a worker knows.
struct Worker {
    context: Context,
    folder: String,
    number: i64,
    numbers: Numbers,
    version: i64,
    /// What lies in this worker's blocks.
    own: BTreeMap<Kind, Blocks>,
    /// The versions of others' blocks when they were last seen: they never fall.
    others: BTreeMap<Kind, Blocks>,
    /// How often each thing was done, and each error came.
    counts: BTreeMap<String, u64>,
}

/// Runs a worker: `NUMBER SECONDS SEED FOLDER`. Says every second what memory it holds, and at the
/// end what it has written, in lines of JSON.
pub fn run(options: &[&str]) -> Outcome {
    let [number, seconds, seed, folder] = options else {
        return Err("a worker wants four words".into());
    };
    let wrong = |e: std::num::ParseIntError| e.to_string();
    let number: i64 = number.parse().map_err(wrong)?;
    let seconds = Duration::from_secs(seconds.parse().map_err(wrong)?);
    let seed: u64 = seed.parse().map_err(wrong)?;
    let config = Config::new().threads(2);
    let mut worker = Worker {
        context: Context::new(config, None).map_err(|e| e.to_string())?,
        folder: (*folder).to_owned(),
        number,
        numbers: Numbers(
            (seed * 4 + number.unsigned_abs()).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        ),
        version: 0,
        own: Kind::ALL.map(|kind| (kind, Blocks::new())).into(),
        others: Kind::ALL.map(|kind| (kind, Blocks::new())).into(),
        counts: BTreeMap::new(),
    };
    let begun = Instant::now();
    let mut said = Instant::now();
    while begun.elapsed() < seconds {
        worker.step()?;
        if said.elapsed() >= Duration::from_secs(1) {
            said = Instant::now();
            println!("{}", serde_json::json!({ "kib": resident_kib() }));
        }
    }
    let own = worker
        .own
        .iter()
        .map(|(kind, blocks)| (kind.name(), blocks));
    let own: BTreeMap<_, _> = own.collect();
    println!(
        "{}",
        serde_json::json!({ "own": own, "counts": worker.counts })
    );
    Ok(())
}

/// Memory that this process holds, where the system says it.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// An error's text without what differs from one time to the next.
fn kind_of(error: &Error) -> String {
    let text = error.to_string();
    let words = text.split_whitespace().map(|word| {
        if word.contains('/') || word.contains("__") {
            "NAME"
        } else {
            word
        }
    });
    let words: Vec<_> = words.collect();
    words.join(" ").replace(|c: char| c.is_ascii_digit(), "")
}

impl Worker {
    fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    /// Counts what was done; an error that a race explains is counted too, any other one ends the
    /// run.
    fn outcome<T>(
        &mut self,
        what: &str,
        result: azulejo::Result<T>,
        lost: fn(&Error) -> bool,
    ) -> Result<Option<T>, String> {
        match result {
            Ok(done) => {
                self.count(what);
                Ok(Some(done))
            }
            Err(error) if lost(&error) => {
                self.count(format!("{what}: {}", kind_of(&error)));
                Ok(None)
            }
            Err(error) => Err(format!("worker {}: {what}: {error}", self.number)),
        }
    }

    fn step(&mut self) -> Outcome {
        let kind = Kind::ALL[usize::try_from(self.numbers.below(3)).unwrap_or(0)];
        match self.numbers.below(100) {
            0..40 => self.write(kind)?,
            40..50 => self.delete(kind)?,
            50..54 => self.delete_fragments(kind)?,
            54..60 => self.metadata(kind)?,
            60..62 => self.evolve(kind)?,
            62..74 => self.consolidate(kind)?,
            74..82 => self.vacuum(kind)?,
            _ => {}
        }
        self.look(kind)
    }

    /// A block of this worker, and what lies there.
    fn choose(&mut self, kind: Kind) -> (i64, Option<i64>) {
        let block = block_of(self.number, self.numbers.below(BLOCKS));
        (block, self.own[&kind].get(&block).copied())
    }

    fn set(&mut self, kind: Kind, block: i64, version: Option<i64>) {
        let own = self.own.entry(kind).or_default();
        match version {
            Some(version) => drop(own.insert(block, version)),
            None => drop(own.remove(&block)),
        }
    }

    fn write(&mut self, kind: Kind) -> Outcome {
        let (block, there) = self.choose(kind);
        // Where duplicates are allowed, a second version would lie beside the first.
        if kind == Kind::Duplicates && there.is_some() {
            return self.delete_block(kind, block);
        }
        self.version += 1;
        let result = model::write(&self.context, &self.folder, kind, block, self.version);
        self.outcome("write", result, |_| false)?;
        self.set(kind, block, Some(self.version));
        Ok(())
    }

    fn delete(&mut self, kind: Kind) -> Outcome {
        let (block, there) = self.choose(kind);
        match (kind, there) {
            (Kind::Dense, _) | (_, None) => Ok(()),
            (_, Some(_)) => self.delete_block(kind, block),
        }
    }

    fn delete_block(&mut self, kind: Kind, block: i64) -> Outcome {
        let condition = Condition::compare("b", Comparison::Eq, block.to_le_bytes());
        let array = self.context.array(&kind.uri(&self.folder));
        let result = array.delete_cells(&condition, None);
        self.outcome("delete cells", result, |_| false)?;
        self.set(kind, block, None);
        Ok(())
    }

    /// Writes a block where there is none, and deletes its fragment, unless that was merged into
    /// another one meanwhile.
    fn delete_fragments(&mut self, kind: Kind) -> Outcome {
        let (block, there) = self.choose(kind);
        if there.is_some() {
            return Ok(());
        }
        self.version += 1;
        let result = model::write(&self.context, &self.folder, kind, block, self.version);
        let names = self
            .outcome("write", result, |_| false)?
            .unwrap_or_default();
        let array = self.context.array(&kind.uri(&self.folder));
        let result = array.delete_fragments(FragmentSelection::Named(&names));
        let lost =
            |error: &Error| matches!(error, Error::InvalidArgument(_) | Error::NotFound { .. });
        let deleted = self.outcome("delete fragments", result, lost)?;
        // A fragment that was replaced is gone without its cells.
        let found = model::read(&self.context, &self.folder, kind);
        let found = found.map_err(|e| self.wrong(kind, "read after deleting", e))?;
        let version = found.get(&block).copied();
        if version.is_some_and(|version| version != self.version) {
            return Err(format!(
                "{}: block {block} has version {version:?}",
                kind.name()
            ));
        }
        if version.is_none() && deleted.is_none() {
            return Err(format!(
                "{}: block {block} is gone, but was not deleted",
                kind.name()
            ));
        }
        self.set(kind, block, version);
        Ok(())
    }

    fn metadata(&mut self, kind: Kind) -> Outcome {
        self.version += 1;
        let (key, value) = (
            format!("worker {}", self.number),
            self.version.to_le_bytes(),
        );
        let array = self.context.array(&kind.uri(&self.folder));
        let put = || {
            let mut writer = array.change_metadata()?;
            writer.put(&key, MetadataValue::new(Datatype::Int64, value))?;
            writer.commit()
        };
        let result = put();
        self.outcome("metadata", result, |_| false)?;
        let array = self.context.array(&kind.uri(&self.folder));
        let found = array
            .open()
            .and_then(|array| Ok(array.metadata()?.get(&key).cloned()));
        let found = self.outcome("read metadata", found, |_| false)?.flatten();
        match found {
            Some(found) if found.data == value => Ok(()),
            found => Err(format!(
                "{}: {key:?} is {found:?}, not {value:?}",
                kind.name()
            )),
        }
    }

    fn evolve(&mut self, kind: Kind) -> Outcome {
        let array = self.context.array(&kind.uri(&self.folder));
        let has = array
            .open()
            .map(|array| array.schema().attributes.iter().any(|a| a.name == EXTRA));
        let mut evolution = SchemaEvolution::default();
        match has.map_err(|e| e.to_string())? {
            true => evolution.drop_attributes.push(EXTRA.into()),
            false => evolution.add_attributes.push(Attribute::new(
                EXTRA,
                Datatype::Int64,
                CellValNum::ONE,
            )),
        }
        let result = array.evolve(&evolution, None);
        // Another process was first.
        let lost =
            |error: &Error| matches!(error, Error::SchemaMismatch(_) | Error::InvalidArgument(_));
        self.outcome("evolve", result, lost).map(drop)
    }

    fn consolidate(&mut self, kind: Kind) -> Outcome {
        let array = self.context.array(&kind.uri(&self.folder));
        let lost =
            |error: &Error| matches!(error, Error::InvalidArgument(_) | Error::NotFound { .. });
        match self.numbers.below(6) {
            0 => {
                let result = array.consolidate_commits().map(drop);
                self.outcome("consolidate commits", result, |_| false)
                    .map(drop)
            }
            1 => {
                let result = array.consolidate_fragment_metadata().map(drop);
                self.outcome("consolidate footers", result, |_| false)
                    .map(drop)
            }
            2 => {
                let result = array.consolidate_metadata(TimeRange::ALL).map(drop);
                self.outcome("consolidate metadata", result, |_| false)
                    .map(drop)
            }
            3 => {
                let result = array.consolidate(&FragmentOptions::new()).map(drop);
                self.outcome("consolidate all fragments", result, lost)
                    .map(drop)
            }
            _ => {
                let choice = Choice::new().fragments(2, 8);
                let result = array.consolidate(&FragmentOptions::new().choice(choice));
                self.outcome("consolidate some fragments", result.map(drop), lost)
                    .map(drop)
            }
        }
    }

    fn vacuum(&mut self, kind: Kind) -> Outcome {
        let array = self.context.array(&kind.uri(&self.folder));
        let (mode, name) = match self.numbers.below(5) {
            0 => (Mode::Commits, "vacuum commits"),
            1 => (Mode::FragmentMetadata, "vacuum footers"),
            2 => (Mode::ArrayMetadata, "vacuum metadata"),
            _ => (Mode::Fragments, "vacuum fragments"),
        };
        let result = array.vacuum(mode, VacuumOptions::default()).map(drop);
        self.outcome(name, result, |_| false).map(drop)
    }

    fn wrong(&self, kind: Kind, what: &str, error: Result<Error, String>) -> String {
        let text = error.map_or_else(|cells| cells, |error| format!("error: {error}"));
        format!("worker {}: {}: {what}: {text}", self.number, kind.name())
    }

    /// Reads all: own blocks are exactly as written, those of others whole and never older than
    /// they were.
    fn look(&mut self, kind: Kind) -> Outcome {
        let found = model::read(&self.context, &self.folder, kind);
        let mut found = found.map_err(|e| self.wrong(kind, "read", e))?;
        self.count("read");
        let others = found.clone().into_iter();
        let others: Blocks = others.filter(|(b, _)| b % WORKERS != self.number).collect();
        found.retain(|block, _| block % WORKERS == self.number);
        let differing = model::differences(&found, &self.own[&kind]);
        if !differing.is_empty() {
            let text = differing.join("; ");
            return Err(format!("worker {}: {}: {text}", self.number, kind.name()));
        }
        let seen = self.others.entry(kind).or_default();
        for (block, version) in others {
            let before = seen.insert(block, version);
            if before.is_some_and(|before| before > version) {
                let name = kind.name();
                return Err(format!(
                    "worker {}: {name}: block {block} went from {before:?} to {version}",
                    self.number
                ));
            }
        }
        Ok(())
    }
}
