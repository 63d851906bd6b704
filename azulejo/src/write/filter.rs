//! Filtering of tiles, in parallel: cut into tasks of about one size, whatever the sizes of tiles.

use super::stats::{StatsKind, TileSummary, summarize};
use super::tile_view::TileView;
use crate::column::FieldView;
use crate::error::{Error, Result};
use crate::storage::Upload;
use arrow_buffer::ToByteSlice;
use azulejo_format::filter::{EncryptionKey, FilterContext, Pipeline, Scratch};
use azulejo_format::fragment::{Field, FilePart};
use azulejo_format::schema::FieldIndex;
use azulejo_format::tile::{PlainHeaders, encode_chunk_count};
use azulejo_format::{ArraySchema, CellValNum, Datatype, DecodeError, FormatVersion};
use std::cell::RefCell;
use std::ops::Range;

/// Work on fewer bytes than this stays on the calling thread: waking another costs more.
pub(super) const PARALLEL_BYTES: usize = 128 * 1024;
/// Unfiltered bytes of a task: small tiles share one, large ones are cut at chunks.
const TASK_BYTES: usize = 512 * 1024;
/// Tiles of so many bytes that no filter changes are written from where they lie; copying smaller
/// ones together is cheaper.
const PLAIN_BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<(Scratch, Vec<u64>)> = RefCell::new((Scratch::new(), Vec::new()));
}

/// A field of a fragment and how its cells are stored.
#[derive(Debug, Clone)]
pub(super) struct StoredColumn {
    pub field: Field,
    pub stats: StatsKind,
    pub datatype: Datatype,
    pub cell_val_num: CellValNum,
    /// The offsets lie inside the data: the offsets file has nothing to tell.
    pub in_data: bool,
}

impl StoredColumn {
    pub fn new(field: Field, schema: &ArraySchema, version: FormatVersion) -> Option<Self> {
        let (datatype, cell_val_num) = field.layout(schema)?;
        let ctx = FilterContext {
            version,
            datatype,
            cell_val_num,
            key: None,
        };
        let in_data =
            cell_val_num.is_var() && data_filters(field, schema).keeps_offsets_in_data(&ctx);
        Some(Self {
            field,
            stats: StatsKind::of(field, schema),
            datatype,
            cell_val_num,
            in_data,
        })
    }

    /// The files of the field.
    pub fn parts(&self) -> impl Iterator<Item = FilePart> {
        let var = self.cell_val_num.is_var().then_some(FilePart::Var);
        let validity = self.stats.nullable.then_some(FilePart::Validity);
        [FilePart::Data].into_iter().chain(var).chain(validity)
    }

    /// Checks that a view has the field's shape and `cell_num` cells; the order of offsets is
    /// checked with the statistics.
    pub fn check(&self, view: &FieldView<'_>, cell_num: usize) -> Result<(), &'static str> {
        if view.cell_num != cell_num {
            return Err("another number of cells than its tile");
        }
        match (self.stats.cell_size, view.offsets) {
            (None, Some(offsets)) if offsets.len() == cell_num + 1 => {}
            (None, _) => return Err("not one offset more than cells"),
            (Some(_), Some(_)) => return Err("offsets for cells of fixed length"),
            (Some(size), None) if view.cell_size != size => return Err("cells of another size"),
            (Some(size), None) if cell_num.checked_mul(size) != Some(view.data.len()) => {
                return Err("data that do not match its number of cells");
            }
            (Some(_), None) => {}
        }
        match view.validity {
            Some(_) if !self.stats.nullable => Err("validity, but cannot be null"),
            Some(validity) if validity.len() != cell_num => Err("not one validity byte a cell"),
            None if self.stats.nullable => Err("no validity, but can be null"),
            _ => Ok(()),
        }
    }
}

/// The filters of a field's values.
fn data_filters(field: Field, schema: &ArraySchema) -> &Pipeline {
    match field {
        Field::Attribute(i) => schema.filters_of(FieldIndex::Attribute(i)),
        Field::Dimension(i) => schema.filters_of(FieldIndex::Dimension(i)),
        _ => &schema.coords_filters,
    }
}

/// What all tasks share.
#[derive(Clone, Copy)]
pub(super) struct Stage<'t> {
    pub schema: &'t ArraySchema,
    pub version: FormatVersion,
    pub key: Option<&'t EncryptionKey>,
    pub columns: &'t [StoredColumn],
    /// Column and part of each file.
    pub files: &'t [(usize, FilePart)],
    pub tiles: &'t [TileView<'t>],
}

/// A piece of work.
#[derive(Debug)]
pub(super) enum Task {
    /// Consecutive tiles of one file, or chunks of one tile.
    Filter(FilterTask),
    /// Statistics of consecutive tiles of one column.
    Summarize {
        column: usize,
        tiles: Range<usize>,
        summaries: Vec<TileSummary>,
    },
}

#[derive(Debug)]
pub(super) struct FilterTask {
    /// Index of the file.
    pub file: usize,
    pieces: Vec<FilterPiece>,
    /// What the file gets.
    pub out: Vec<u8>,
    /// Of the tiles that begin in here: where, in `out`.
    pub starts: Vec<usize>,
}

/// A tile, or a run of its chunks.
#[derive(Debug)]
enum FilterPiece {
    Whole(usize),
    Run {
        tile: usize,
        /// Where the first chunk starts, then where each ends.
        bounds: Vec<usize>,
        /// All chunks of the tile, if this is its first run.
        first_of: Option<usize>,
    },
}

impl<'t> Stage<'t> {
    /// Cuts the filtering of `tiles` into tasks: those of one file are in the order of its bytes.
    /// `spare` gives buffers.
    pub fn plan(&self, tiles: &Range<usize>, spare: &mut Vec<Vec<u8>>) -> Vec<Task> {
        let mut tasks = Vec::new();
        for file in 0..self.files.len() {
            if !self.is_plain(file, tiles) {
                self.plan_file(file, tiles, spare, &mut tasks);
            }
        }
        for column in 0..self.columns.len() {
            let mut from = tiles.start;
            let mut bytes = 0;
            for tile in tiles.clone() {
                bytes += self.view(tile, column).map_or(0, |view| view.byte_len());
                if bytes >= TASK_BYTES || tile + 1 == tiles.end {
                    tasks.push(Task::Summarize {
                        column,
                        tiles: from..tile + 1,
                        summaries: Vec::new(),
                    });
                    (from, bytes) = (tile + 1, 0);
                }
            }
        }
        tasks
    }

    /// Whether these tiles of a file are written from where they lie, as no filter changes them: no
    /// task makes them.
    pub fn is_plain(&self, file: usize, tiles: &Range<usize>) -> bool {
        let Some((ctx, pipeline, part)) = self.pipeline(file) else {
            return false;
        };
        let is_var = self
            .view_of(file, tiles.start)
            .is_none_or(|view| view.offsets.is_some());
        pipeline.stores_as_is(&ctx)
            && (part == FilePart::Validity || !is_var)
            && self.input_len(file, tiles.start) >= PLAIN_BYTES
    }

    /// Writes a tile that is stored as it lies; returns how many bytes that took.
    pub fn write_plain(&self, file: usize, tile: usize, upload: &mut dyn Upload) -> Result<u64> {
        let (Some((ctx, pipeline, part)), Some(view)) =
            (self.pipeline(file), self.view_of(file, tile))
        else {
            return Ok(0);
        };
        let bytes = if part == FilePart::Validity {
            view.validity.unwrap_or_default()
        } else {
            view.data
        };
        let ends = pipeline.chunk_ends(&ctx, bytes.len(), None);
        let mut chunks = Vec::with_capacity(ends.len());
        let mut start = 0;
        for end in ends {
            chunks.push(bytes.get(start..end).unwrap_or_default());
            start = end;
        }
        let headers = PlainHeaders::of(&chunks).map_err(|source| {
            Error::InvalidArgument(format!(
                "tile {tile} of a field without filters cannot be stored: {source}"
            ))
        })?;
        let pieces = headers.between(&chunks);
        upload.write_pieces(&pieces)?;
        Ok(pieces.iter().map(|piece| piece.len() as u64).sum())
    }

    fn plan_file(
        &self,
        file: usize,
        tiles: &Range<usize>,
        spare: &mut Vec<Vec<u8>>,
        tasks: &mut Vec<Task>,
    ) {
        let mut task = |pieces| {
            let mut out = spare.pop().unwrap_or_default();
            out.clear();
            tasks.push(Task::Filter(FilterTask {
                file,
                pieces,
                out,
                starts: Vec::new(),
            }));
        };
        let (mut pieces, mut bytes) = (Vec::new(), 0);
        for tile in tiles.clone() {
            let len = self.input_len(file, tile);
            if len < 2 * TASK_BYTES || self.is_in_data(file) {
                pieces.push(FilterPiece::Whole(tile));
                bytes += len;
            } else {
                if !pieces.is_empty() {
                    task(std::mem::take(&mut pieces));
                }
                bytes = 0;
                self.runs(file, tile, len)
                    .into_iter()
                    .for_each(|run| task(vec![run]));
            }
            if bytes >= TASK_BYTES {
                task(std::mem::take(&mut pieces));
                bytes = 0;
            }
        }
        if !pieces.is_empty() {
            task(pieces);
        }
    }

    /// Cuts a tile into runs of chunks.
    fn runs(&self, file: usize, tile: usize, len: usize) -> Vec<FilterPiece> {
        let Some((ctx, pipeline, part)) = self.pipeline(file) else {
            return Vec::new();
        };
        let offsets = match part {
            FilePart::Var => self.view_of(file, tile).and_then(|view| view.offsets),
            _ => None,
        };
        let offsets = offsets.and_then(|offsets| offsets.get(..offsets.len() - 1));
        let ends = pipeline.chunk_ends(&ctx, len, offsets);
        let all = ends.len();
        let mut runs = Vec::new();
        let mut bounds = vec![0];
        for (chunk, end) in ends.into_iter().enumerate() {
            bounds.push(end);
            let start = bounds.first().copied().unwrap_or(0);
            if end - start.min(end) >= TASK_BYTES || chunk + 1 == all {
                let first_of = runs.is_empty().then_some(all);
                runs.push(FilterPiece::Run {
                    tile,
                    bounds: std::mem::replace(&mut bounds, vec![end]),
                    first_of,
                });
            }
        }
        runs
    }

    fn view(&self, tile: usize, column: usize) -> Option<&'t FieldView<'t>> {
        self.tiles.get(tile)?.fields.get(column)
    }

    fn view_of(&self, file: usize, tile: usize) -> Option<&'t FieldView<'t>> {
        self.view(tile, self.files.get(file)?.0)
    }

    fn is_in_data(&self, file: usize) -> bool {
        self.files
            .get(file)
            .and_then(|(column, _)| self.columns.get(*column))
            .is_some_and(|c| c.in_data)
    }

    /// Unfiltered bytes of a tile in a file.
    fn input_len(&self, file: usize, tile: usize) -> usize {
        let (Some(view), Some((_, part))) = (self.view_of(file, tile), self.files.get(file)) else {
            return 0;
        };
        match (part, view.offsets) {
            (FilePart::Data, None) => view.data.len(),
            (FilePart::Data, Some(_)) => view.cell_num * 8,
            (FilePart::Var, _) => view.var_data().len(),
            (FilePart::Validity, _) => view.cell_num,
        }
    }

    fn pipeline(&self, file: usize) -> Option<(FilterContext<'t>, &'t Pipeline, FilePart)> {
        let &(column, part) = self.files.get(file)?;
        let column = self.columns.get(column)?;
        let StoredColumn {
            datatype,
            cell_val_num,
            ..
        } = *column;
        let ctx = FilterContext {
            version: self.version,
            datatype,
            cell_val_num,
            key: self.key,
        };
        Some(match part {
            FilePart::Data if cell_val_num.is_var() => {
                (ctx.offsets(), &self.schema.offsets_filters, part)
            }
            FilePart::Validity => (ctx.validity(), &self.schema.validity_filters, part),
            _ => (ctx, data_filters(column.field, self.schema), part),
        })
    }

    /// Does the work; any thread may.
    pub fn run(&self, task: &mut Task) -> Result<()> {
        match task {
            Task::Filter(task) => self.filter(task),
            Task::Summarize {
                column,
                tiles,
                summaries,
            } => {
                let Some(kind) = self.columns.get(*column).map(|c| &c.stats) else {
                    return Ok(());
                };
                for tile in tiles.clone() {
                    let Some(view) = self.view(tile, *column) else {
                        continue;
                    };
                    let all = [0..view.cell_num];
                    let written = self.tiles.get(tile).and_then(|tile| tile.written.as_ref());
                    let written: Option<Vec<Range<usize>>> = written.map(|ranges| {
                        ranges
                            .iter()
                            .map(|r| r.start as usize..r.end as usize)
                            .collect()
                    });
                    summaries.push(summarize(kind, view, written.as_deref().unwrap_or(&all))?);
                }
                Ok(())
            }
        }
    }

    fn filter(&self, task: &mut FilterTask) -> Result<()> {
        let Some((ctx, pipeline, part)) = self.pipeline(task.file) else {
            return Ok(());
        };
        let in_data = self.is_in_data(task.file);
        let FilterTask {
            file,
            pieces,
            out,
            starts,
        } = task;
        let wrong = |tile: usize, source: DecodeError| {
            let field = self
                .files
                .get(*file)
                .and_then(|(c, _)| self.columns.get(*c))
                .map(|c| c.field);
            let name = match field {
                Some(Field::Attribute(i)) => self.schema.name_of(FieldIndex::Attribute(i)),
                Some(Field::Dimension(i)) => self.schema.name_of(FieldIndex::Dimension(i)),
                _ => {
                    return Error::Unsupported(format!(
                        "the schema cannot keep the times of cells ({source}): upgrade the array first"
                    ));
                }
            };
            Error::InvalidArgument(format!(
                "tile {tile} of {name:?} cannot be stored: {source}"
            ))
        };
        SCRATCH.with_borrow_mut(|(scratch, numbers)| {
            for piece in &*pieces {
                let tile = match piece {
                    FilterPiece::Whole(tile) | FilterPiece::Run { tile, .. } => *tile,
                };
                let Some(view) = self.view_of(*file, tile) else {
                    continue;
                };
                let run: (&[usize], Option<usize>) = match piece {
                    FilterPiece::Whole(_) => (&[], None),
                    FilterPiece::Run {
                        bounds, first_of, ..
                    } => (bounds, *first_of),
                };
                let is_whole = matches!(piece, FilterPiece::Whole(_));
                if is_whole || run.1.is_some() {
                    starts.push(out.len());
                }
                let encoded = match (part, view.offsets) {
                    (FilePart::Data, Some(_)) if in_data => {
                        encode_chunk_count(0, out);
                        Ok(())
                    }
                    (FilePart::Data, Some(offsets)) => {
                        let starts = offsets.get(..view.cell_num).unwrap_or_default();
                        let base = starts.first().copied().unwrap_or(0);
                        let (from, to) = match run.0 {
                            [from, .., to] => (from / 8, to / 8),
                            _ => (0, starts.len()),
                        };
                        let starts = starts.get(from..to).unwrap_or_default();
                        let bytes = relative(starts, base, numbers).to_byte_slice();
                        encode(pipeline, &ctx, bytes, from * 8, &run, out, scratch)
                    }
                    (FilePart::Var, Some(offsets)) => {
                        let bytes = view.var_data();
                        let starts = offsets.get(..view.cell_num).unwrap_or_default();
                        if is_whole {
                            let base = starts.first().copied().unwrap_or(0);
                            let starts = relative(starts, base, numbers);
                            pipeline.encode_tile(&ctx, bytes, Some(starts), out, scratch)
                        } else {
                            encode(pipeline, &ctx, bytes, 0, &run, out, scratch)
                        }
                    }
                    (FilePart::Validity, _) => {
                        let bytes = view.validity.unwrap_or_default();
                        encode(pipeline, &ctx, bytes, 0, &run, out, scratch)
                    }
                    _ => encode(pipeline, &ctx, view.data, 0, &run, out, scratch),
                };
                encoded.map_err(|source| wrong(tile, source))?;
            }
            Ok(())
        })
    }
}

/// Encodes a tile without offsets, or the chunks of it that `run` names; `bytes` begin at byte `at`
/// of the tile.
fn encode(
    pipeline: &Pipeline,
    ctx: &FilterContext<'_>,
    bytes: &[u8],
    at: usize,
    run: &(&[usize], Option<usize>),
    out: &mut Vec<u8>,
    scratch: &mut Scratch,
) -> Result<(), DecodeError> {
    let (bounds, first_of) = run;
    if bounds.is_empty() {
        return pipeline.encode_tile(ctx, bytes, None, out, scratch);
    }
    if let Some(chunks) = first_of {
        encode_chunk_count(*chunks, out);
    }
    for (start, end) in bounds.iter().zip(bounds.iter().skip(1)) {
        let chunk = bytes
            .get(start.saturating_sub(at)..end.saturating_sub(at))
            .unwrap_or_default();
        pipeline.encode_chunk(ctx, chunk, None, out, scratch)?;
    }
    Ok(())
}

/// Offsets counted from `base`, in a buffer if they are not already.
fn relative<'b>(offsets: &'b [u64], base: u64, buffer: &'b mut Vec<u64>) -> &'b [u64] {
    if base == 0 {
        return offsets;
    }
    buffer.clear();
    buffer.extend(offsets.iter().map(|offset| offset.wrapping_sub(base)));
    buffer
}

#[cfg(test)]
mod tests;
