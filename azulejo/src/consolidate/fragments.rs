//! Consolidating fragments: rounds of choosing, merging and replacing.
//!
//! Where more fragments overlap than memory holds a tile of each, a round is made in parts: some of
//! them become one first, then those and the others. Each part is a consolidation like any other, so
//! that whatever ends it leaves an array that reads as before.

use super::ArrayFolder;
use super::choose::{Candidates, Chosen};
use super::merge::{Merge, Round};
use super::options::FragmentOptions;
use super::replace::{Replaced, name_of, refuse_named};
use crate::array::{
    Array, ArrayHandle, ArrayLock, Attempts, FragmentSelection, OpenScope, Snapshot, TimeRange,
};
use crate::cancel::Operation;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::Uri;
use crate::write::WrittenFragment;
use std::collections::{BTreeSet, HashSet};

/// One round: what was replaced by what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Merged {
    /// Names of the fragments that were replaced.
    pub old: Vec<String>,
    /// Names of those that took their place: one, several if a size was given, none if not a cell
    /// was left.
    pub new: Vec<String>,
    /// Cells in the new ones.
    pub cells: u64,
    /// Bytes of all their files.
    pub bytes: u64,
}

/// How a round ended.
enum Step {
    /// There is nothing to consolidate.
    Nothing,
    /// Fragments were replaced: all that there were, if the flag says so, by one.
    Done(Merged, bool),
    /// Some of the chosen ones were replaced, as all at once do not fit in memory. What is left of
    /// the round, by name.
    Part(Merged, Vec<String>),
    /// Another process has replaced the chosen fragments first.
    Overtaken,
}

impl ArrayHandle {
    /// Consolidates fragments, in rounds. Returns what each round did, or each part of one where
    /// memory does not hold a tile of each fragment; nothing if there was nothing to do.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for fragments that do not exist or cannot be consolidated without
    /// changing what readers see, and for purging cells that a named snapshot may show;
    /// [`Error::Unsupported`] for an array of a version that is not written: upgrade it first;
    /// errors of reading and writing. An array that an error leaves behind reads as before.
    pub fn consolidate(&self, options: &FragmentOptions) -> Result<Vec<Merged>> {
        let Self { context, uri } = self;

        options.choice.check()?;
        // What the context keeps for later (idle buffers) belongs to the budget too.
        let context = &crate::manifest::without(context).within(options.memory_budget);
        let location = context.locate(&Uri::parse(uri)?)?;
        let operation = context.begin();
        if options.purge_deleted_cells {
            refuse_named(&location)?;
        }
        let mut rounds = Vec::new();
        // Parts of a split result are not consolidated again.
        let mut done: BTreeSet<String> = BTreeSet::new();
        let mut attempts = Attempts::new();
        let mut steps = 0;
        // What is left of a round of which a part is done.
        let mut rest: Option<Vec<String>> = None;
        while steps < options.choice.steps {
            operation.check()?;
            let named = rest.as_deref().unwrap_or(&options.fragments);
            match round(context, uri, &location, options, named, &done, &operation) {
                Ok(Step::Nothing) => break,
                Ok(Step::Overtaken) => {
                    let begun = rest.take().is_some();
                    let are_named = !options.fragments.is_empty();
                    // Whoever was faster has done the work, or part of it: what is left is looked at
                    // anew.
                    if !(begun && are_named) && attempts.another() {
                        continue;
                    }
                    if !are_named {
                        break;
                    }
                    let what =
                        "fragments that were there a moment ago: another process has replaced them";
                    return Err(Error::NotFound {
                        uri: uri.to_owned(),
                        what,
                    });
                }
                Ok(Step::Part(merged, left)) => {
                    rounds.push(merged);
                    rest = Some(left);
                    attempts = Attempts::new();
                }
                Ok(Step::Done(merged, is_whole)) => {
                    if merged.new.len() != 1 {
                        done.extend(merged.new.iter().chain(&merged.old).cloned());
                    }
                    let empty = merged.new.is_empty();
                    rounds.push(merged);
                    rest = None;
                    steps += 1;
                    let is_last = match empty {
                        true => !options.purge_deleted_cells,
                        false => is_whole,
                    };
                    if is_last || !options.fragments.is_empty() {
                        break;
                    }
                    attempts = Attempts::new();
                }
                Err(Error::NotFound { .. }) if attempts.another() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(rounds)
    }
}

fn round(
    context: &Context,
    uri: &str,
    location: &Location,
    options: &FragmentOptions,
    named: &[String],
    done: &BTreeSet<String>,
    operation: &Operation,
) -> Result<Step> {
    let replacements = |folder: &ArrayFolder| folder.files.replacements.len();
    if replacements(&ArrayFolder::at(context, location)?) > 0 {
        let lock = ArrayLock::wait(location)?;
        ArrayFolder::at(context, location)?.finish_replacements(&lock)?;
    }
    let whole = operation.runs(|| context.array(uri).open())?;
    let version = whole.schema().version;
    if !version.is_writable() {
        return Err(Error::Unsupported(format!(
            "{}: fragments of arrays of format version {version} cannot be consolidated; upgrade the array first",
            location.path
        )));
    }
    let candidates = Candidates::new(&whole, options.time, done)?;
    let is_there = |name: &String| whole.fragments().iter().any(|f| f.name() == name);
    let chosen = if named.is_empty() {
        candidates.next(&options.choice)?
    } else if options.fragments != named && !named.iter().all(is_there) {
        return Ok(Step::Overtaken);
    } else {
        Some(candidates.named(named)?)
    };
    // One fragment is as good as its consolidation, unless deleted cells are to go.
    let chosen = match chosen.filter(|chosen| chosen.fragments.len() > 1) {
        None if options.purge_deleted_cells => candidates.with_deleted_cells(named)?,
        chosen => chosen,
    };
    let Some(chosen) = chosen else {
        return Ok(Step::Nothing);
    };
    let uncovered = match options.purge_deleted_cells {
        true => candidates.uncovered(&chosen),
        false => None,
    };
    if let (Some(other), false) = (uncovered, options.fragments.is_empty()) {
        return Err(Error::InvalidArgument(format!(
            "{uri}: cells of fragment {} would come back where deleted ones are purged from the chosen fragments; \
             choose it too",
            other.name()
        )));
    }
    let options = &FragmentOptions {
        purge_deleted_cells: options.purge_deleted_cells && uncovered.is_none(),
        ..options.clone()
    };
    let merging = Merging {
        context,
        uri,
        location,
        options,
        whole: &whole,
        candidates: &candidates,
        operation,
    };
    merging.replace(&chosen, true)
}

/// An array whose fragments are consolidated.
struct Merging<'a> {
    context: &'a Context,
    uri: &'a str,
    location: &'a Location,
    options: &'a FragmentOptions,
    whole: &'a Array,
    candidates: &'a Candidates<'a>,
    operation: &'a Operation,
}

impl Merging<'_> {
    /// Puts one fragment, or several of a size that was given, in the place of the chosen ones; or of
    /// some of them, if they may be merged in parts and memory wants that.
    fn replace(&self, chosen: &Chosen, in_parts: bool) -> Result<Step> {
        let Self {
            context,
            uri,
            location,
            options,
            whole,
            operation,
            ..
        } = *self;
        let version = whole.schema().version;
        let chosen_fragments = || {
            let chosen = chosen.fragments.iter();
            chosen.filter_map(|i| whole.fragments().get(*i))
        };
        let names: HashSet<String> = chosen_fragments().map(|f| f.name().to_owned()).collect();
        let name = name_of(whole, chosen, version);
        let scope = OpenScope {
            fragments: Some(names.clone()),
            schema: Some(chosen.schema.clone()),
            ..OpenScope::default()
        };
        let open =
            || Snapshot::open_scope(context, &Uri::parse(uri)?, TimeRange::ALL, &scope)?.array();
        // All of them in the latest schema are the array that was opened to choose.
        let is_all = chosen.fragments.len() == whole.fragments().len()
            && chosen.schema == whole.schema_name();
        let array = match is_all {
            true => whole.staying(),
            false => operation.runs(open)?,
        };
        if array.fragments().len() != chosen.fragments.len() {
            return Ok(Step::Overtaken);
        }
        let first = name.t_start;
        let sparse = !array.schema().is_dense();
        let deletes = sparse
            && version.has_deletes()
            && !options.purge_deleted_cells
            && (array
                .deletes()
                .iter()
                .any(|delete| delete.timestamp >= first)
                || array
                    .fragments()
                    .iter()
                    .any(|fragment| fragment.has_delete_metadata()));
        let round = Round {
            context,
            array: &array,
            location,
            options,
            version,
            schema_name: &chosen.schema,
            timestamps: sparse && version.may_count_in_part(),
            delete_metadata: deletes,
            operation,
        };
        let written = operation.runs(|| match (sparse, in_parts) {
            (true, true) => round.sparse_if_at_once(&name),
            (true, false) => round.sparse(&name).map(Merge::Written),
            (false, _) => round.dense(&name, &chosen.bounds).map(Merge::Written),
        });
        let written = match written {
            // Files that vanish because another process has replaced and vacuumed their fragments are
            // no fault.
            Err(Error::NotFound { .. }) if open()?.fragments().len() != chosen.fragments.len() => {
                return Ok(Step::Overtaken);
            }
            written => written?,
        };
        let written = match written {
            Merge::Written(written) => written,
            Merge::AtOnce(most) => return self.replace_part(chosen, most),
        };
        let merged = Merged {
            old: chosen_fragments().map(|f| f.name().to_owned()).collect(),
            new: written
                .fragments
                .iter()
                .map(|fragment| fragment.name().to_string())
                .collect(),
            cells: written.cells,
            bytes: written
                .fragments
                .iter()
                .map(WrittenFragment::stored_size)
                .sum(),
        };
        if written.fragments.is_empty() {
            // Not a cell is left, and a fragment cannot be empty: the old ones stay, for readers of
            // earlier times, unless those are not to find deleted cells either.
            if options.purge_deleted_cells {
                let gone = FragmentSelection::Named(&merged.old);
                context.array(uri).delete_fragments(gone)?;
            }
            return Ok(Step::Done(merged, false));
        }
        let is_whole = merged.old.len() == whole.fragments().len() && written.fragments.len() == 1;
        let replaced = Replaced {
            whole,
            old: chosen_fragments()
                .map(|fragment| fragment.timestamped_name())
                .collect(),
            bounds: &chosen.bounds,
            purged: options.purge_deleted_cells,
        };
        Ok(match replaced.by(written)? {
            true => Step::Done(merged, is_whole),
            false => Step::Overtaken,
        })
    }

    /// Puts one fragment in the place of some of the chosen ones, of which at most so many, and at
    /// least two, can be merged at once.
    fn replace_part(&self, chosen: &Chosen, most: usize) -> Result<Step> {
        // The first part takes as few as let all later ones be full: least is written again. Of 100,
        // where 98 can be merged at once, three become one, and then the 98 that there are.
        let few = chosen.fragments.len().saturating_sub(2) % (most - 1) + 2;
        let part = self.candidates.part(chosen, few)?;
        let options = &FragmentOptions {
            max_fragment_size: None,
            // What is deleted in a part may still hide cells of the others.
            purge_deleted_cells: false,
            ..self.options.clone()
        };
        match (Merging { options, ..*self }).replace(&part, false)? {
            Step::Done(merged, _) => {
                let fragments = chosen.fragments.iter();
                let others = fragments.filter(|i| part.fragments.binary_search(i).is_err());
                let others = others.filter_map(|i| Some(self.whole.fragments().get(*i)?.name()));
                let left = others.map(str::to_owned).chain(merged.new.iter().cloned());
                let left = left.collect();
                Ok(Step::Part(merged, left))
            }
            step => Ok(step),
        }
    }
}
