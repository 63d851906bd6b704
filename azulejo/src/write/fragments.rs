//! The fragments of one write: usually one, several where a size limit asks for it, which then
//! count at once.

use super::commit::commit_together;
use super::{FragmentSink, FragmentSpec, TileView, WrittenFragment};
use crate::array::check_still_there;
use crate::cancel::Operation;
use crate::column::FieldView;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use azulejo_format::timestamped_name::TimestampedName;
use azulejo_format::{ArraySchema, NdRectangle};
use std::collections::VecDeque;
use std::sync::Arc;

/// Where fragments go.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// The array's folder.
    pub location: Location,
    pub schema: Arc<ArraySchema>,
    /// File name of the schema.
    pub schema_name: String,
}

/// A part of a dense write that becomes a fragment of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DensePart {
    pub domain: NdRectangle,
    /// Tiles that it touches.
    pub tiles: u64,
}

/// When to begin another fragment.
#[derive(Debug)]
pub(super) enum Split {
    /// Sparse: before its data exceeds this many bytes.
    Size(u64),
    /// Dense: after each part's tiles.
    Parts(VecDeque<DensePart>),
}

/// Fragments in the making. Dropped, it leaves nothing.
#[derive(Debug)]
pub(super) struct Fragments {
    context: Context,
    target: Target,
    timestamps: (u64, u64),
    /// Whether somebody else makes them count.
    uncommitted: bool,
    split: Split,
    sink: Option<FragmentSink>,
    /// Dense: tiles that the current fragment still wants.
    missing: u64,
    done: Vec<WrittenFragment>,
    operation: Operation,
}

impl Fragments {
    pub fn new(
        context: &Context,
        target: &Target,
        timestamps: (u64, u64),
        uncommitted: bool,
        split: Split,
    ) -> Self {
        let (context, target, operation) = (context.clone(), target.clone(), context.begin());
        Self {
            context,
            target,
            timestamps,
            uncommitted,
            split,
            sink: None,
            missing: 0,
            done: Vec::new(),
            operation,
        }
    }

    /// Adds tiles in the order that they are stored in.
    pub fn push(&mut self, tiles: &[TileView<'_>]) -> Result<()> {
        self.operation.clone().runs(|| self.push_tiles(tiles))
    }

    fn push_tiles(&mut self, mut tiles: &[TileView<'_>]) -> Result<()> {
        while !tiles.is_empty() {
            self.operation.check()?;
            let count = self.room(tiles)?;
            let Some((now, later)) = tiles.split_at_checked(count) else {
                break;
            };
            let Some(sink) = &mut self.sink else {
                return Err(Error::Internal("tiles have no fragment to go to".into()));
            };
            sink.push(now)?;
            self.missing = self.missing.saturating_sub(count as u64);
            tiles = later;
        }
        Ok(())
    }

    /// How many of the tiles, at least one, the current fragment takes; begins a new one where that
    /// takes none.
    fn room(&mut self, tiles: &[TileView<'_>]) -> Result<usize> {
        let dense =
            match &mut self.split {
                Split::Parts(parts) if self.missing == 0 => {
                    let part = parts.pop_front();
                    Some(part.ok_or_else(|| {
                        Error::Internal("a write has more tiles than its box".into())
                    })?)
                }
                _ => None,
            };
        if let Some(part) = dense {
            self.missing = part.tiles;
            self.begin(Some(part.domain))?;
        }
        let limit = match &self.split {
            Split::Parts(_) => {
                return Ok(
                    usize::try_from(self.missing).map_or(tiles.len(), |n| n.min(tiles.len()))
                );
            }
            Split::Size(limit) => *limit,
        };
        if limit == u64::MAX {
            if self.sink.is_none() {
                self.begin(None)?;
            }
            return Ok(tiles.len());
        }
        // What a tile takes before filters is the most that it takes after them, give or take chunk
        // headers.
        let size =
            |tile: &TileView<'_>| tile.fields.iter().map(FieldView::byte_len).sum::<usize>() as u64;
        let mut stored = self.sink.as_ref().map_or(0, FragmentSink::stored_size);
        if stored > 0
            && tiles
                .first()
                .is_some_and(|tile| stored.saturating_add(size(tile)) > limit)
        {
            self.end()?;
            stored = 0;
        }
        if self.sink.is_none() {
            self.begin(None)?;
        }
        let fitting = tiles.iter().take_while(|tile| {
            stored = stored.saturating_add(size(tile));
            stored <= limit
        });
        Ok(fitting.count().max(1))
    }

    fn begin(&mut self, dense_domain: Option<NdRectangle>) -> Result<()> {
        self.end()?;
        let (first, last) = self.timestamps;
        let Target {
            location,
            schema,
            schema_name,
        } = self.target.clone();
        let name = TimestampedName::versioned(first, last, schema.version.number());
        let spec = FragmentSpec {
            location,
            schema,
            schema_name,
            name,
            dense_domain,
            timestamps: false,
            delete_metadata: false,
            processed_conditions: Vec::new(),
        };
        self.sink = Some(FragmentSink::new(&self.context, spec)?);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        if let Some(sink) = self.sink.take() {
            self.done.push(sink.finish()?);
        }
        Ok(())
    }

    /// Makes the fragments count, unless somebody else is to do that, and returns their names.
    pub fn finish(mut self) -> Result<Vec<TimestampedName>> {
        self.operation.clone().runs(|| self.end())?;
        self.operation.check()?;
        if self.done.len() > 1 {
            self.done
                .iter()
                .try_for_each(WrittenFragment::check_whole)?;
        }
        if self.uncommitted {
            // Another process commits them, and does not know what is new here, nor of which array
            // they are.
            let Target {
                location,
                schema_name,
                ..
            } = &self.target;
            location.storage.settle(&location.path)?;
            check_still_there(location, Some(schema_name))?;
            let done = std::mem::take(&mut self.done).into_iter();
            return Ok(done.map(|fragment| fragment.name().clone()).collect());
        }
        let mut done = std::mem::take(&mut self.done);
        let names = || done.iter().map(|fragment| fragment.name().clone());
        let version = self.target.schema.version;
        if done.len() < 2 || !version.has_subdirectories() {
            return done.drain(..).map(WrittenFragment::commit).collect();
        }
        // One file commits them all: readers see the whole write or nothing of it.
        let names: Vec<TimestampedName> = names().collect();
        let folders: Vec<_> = done.iter().map(|f| f.folder().clone()).collect();
        let Target {
            location,
            schema_name,
            ..
        } = &self.target;
        commit_together(location, schema_name, &names, version, &folders)?;
        Ok(names)
    }
}

impl Drop for Fragments {
    fn drop(&mut self) {
        for fragment in self.done.drain(..) {
            // What cannot be removed now is an orphan that readers pass by.
            let _ = fragment.discard();
        }
    }
}
