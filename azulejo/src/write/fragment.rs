//! The sink of cells: tiles go in, the files of a fragment come out.

use super::commit::WrittenFragment;
use super::filter::{PARALLEL_BYTES, Stage, StoredColumn, Task};
use super::metadata::{Collected, Facts, FileTiles};
use super::stats::TileSummary;
use super::tile_view::TileView;
use crate::array::dense_tiles;
use crate::column::FieldView;
use crate::context::{Context, Location};
use crate::error::{Error, Result};
use crate::storage::{Storage, StorePath, Upload};
use azulejo_format::fragment::{
    Field, FilePart, ProcessedConditions, Slots, data_file_name, shared_file_name,
};
use azulejo_format::path::{FRAGMENT_METADATA_FILE, fragment_path, fragment_version};
use azulejo_format::range::compare;
use azulejo_format::timestamped_name::TimestampedName;
use azulejo_format::{ArraySchema, FormatVersion, NdRectangle};
use rayon::prelude::*;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Unfiltered bytes that are filtered at a time, while those before them are written: bounds what a
/// push holds.
const WAVE_BYTES: usize = 32 << 20;

/// What a new fragment is to be.
#[derive(Debug, Clone)]
pub struct FragmentSpec {
    /// The array's folder.
    pub location: Location,
    /// The schema of the cells.
    pub schema: Arc<ArraySchema>,
    /// File name of that schema in `__schema`; not looked at below v10, where an array has one
    /// schema.
    pub schema_name: String,
    /// The fragment's name. Its version is the fragment's format version, 7 or later.
    pub name: TimestampedName,
    /// The box that was written, for a dense fragment; `None` makes a sparse one. What lies outside
    /// the domain does not count.
    pub dense_domain: Option<NdRectangle>,
    /// Whether each cell has its own timestamp ([`Field::Timestamps`]; since v14).
    pub timestamps: bool,
    /// Whether each cell says when and by which condition it was deleted
    /// ([`Field::DeleteTimestamps`], [`Field::DeleteConditions`]; since v15).
    pub delete_metadata: bool,
    /// Delete commits that are applied already: their file names as
    /// [`crate::array::DeleteCommit::name`], sorted.
    pub processed_conditions: Vec<String>,
}

/// Writes one fragment, tile by tile. Nothing counts as part of the array before
/// [`WrittenFragment::commit`]; a sink that is dropped unfinished removes its files.
#[derive(Debug)]
pub struct FragmentSink {
    context: Context,
    spec: FragmentSpec,
    version: FormatVersion,
    slots: Slots,
    fields: Vec<Field>,
    columns: Vec<StoredColumn>,
    /// Column and part of each file.
    parts: Vec<(usize, FilePart)>,
    files: Vec<DataFile>,
    collected: Collected,
    /// Cells of a full tile.
    tile_cells: u64,
    /// Tiles of a dense fragment.
    dense_tiles: Option<u64>,
    /// Filtered tiles that are written while the next ones are made.
    pending: Vec<Task>,
    /// Buffers of filtered tiles, to be used again.
    spare: Vec<Vec<u8>>,
    /// The last to be dropped: removes what the files leave.
    folder: Folder,
}

/// A data file being written.
#[derive(Debug)]
struct DataFile {
    upload: Box<dyn Upload>,
    tiles: FileTiles,
}

/// The fragment's folder, removed when dropped unless kept.
#[derive(Debug)]
struct Folder {
    storage: Arc<dyn Storage>,
    path: StorePath,
    keep: bool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // What is left of an unfinished fragment is of no use; that it cannot be removed
            // changes nothing.
            let _ = self.storage.delete(std::slice::from_ref(&self.path));
        }
    }
}

impl FragmentSink {
    /// Makes the fragment's folder and starts its files.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a format version that cannot be written;
    /// [`Error::InvalidArgument`] for a fragment that its version or schema does not allow; errors
    /// of the storage.
    pub fn new(context: &Context, mut spec: FragmentSpec) -> Result<Self> {
        let schema = Arc::clone(&spec.schema);
        let invalid = |e| Error::InvalidArgument(format!("fragment {}: {e}", spec.name));
        let version = fragment_version(&spec.name).map_err(invalid)?;
        if !version.is_writable() {
            return Err(Error::Unsupported(format!(
                "arrays of format version {version} cannot be written to as they are: upgrade the array first"
            )));
        }
        let lacks = |what: &str| {
            Err(Error::InvalidArgument(format!(
                "fragments of format version {version} have no {what}"
            )))
        };
        if schema.is_dense() != spec.dense_domain.is_some() {
            let what = if schema.is_dense() {
                "dense arrays have dense"
            } else {
                "sparse arrays have sparse"
            };
            return Err(Error::InvalidArgument(format!(
                "fragment {}: {what} fragments",
                spec.name
            )));
        }
        if spec.timestamps && !version.has_cell_timestamps() {
            return lacks("timestamps of cells");
        }
        if spec.delete_metadata && !version.has_delete_metadata() {
            return lacks("delete metadata");
        }
        if spec.timestamps || spec.delete_metadata {
            // Filters of times that might decrease say so themselves.
            schema.check_times_filters(true).map_err(|error| {
                Error::Unsupported(format!(
                    "fragment {}: the schema cannot keep the times of cells ({error}): upgrade the array first",
                    spec.name
                ))
            })?;
        }
        if let Some(name) = shared_file_name(&schema, version) {
            return Err(Error::Unsupported(format!(
                "fragment {}: two of its files would be named {name} in format version {version}: upgrade the array first",
                spec.name
            )));
        }
        if let Some(domain) = &mut spec.dense_domain {
            crop(domain, &schema);
        }
        let (dense_tiles, tile_cells) = match &spec.dense_domain {
            Some(domain) => {
                let (tiles, cells) = dense_tiles(Some(domain), &schema).map_err(invalid)?;
                (Some(tiles), cells)
            }
            None => (None, schema.capacity),
        };
        let slots = Slots::new(version, &schema, spec.timestamps, spec.delete_metadata);
        let stored = |field: &Field| match field {
            Field::ZippedCoords => false,
            Field::Dimension(_) => dense_tiles.is_none(),
            _ => true,
        };
        let fields: Vec<Field> = slots.fields().filter(stored).collect();
        let columns: Vec<StoredColumn> = fields
            .iter()
            .filter_map(|f| StoredColumn::new(*f, &schema, version))
            .collect();
        let mut parts = Vec::new();
        for (column, field) in columns.iter().enumerate() {
            parts.extend(field.parts().map(|part| (column, part)));
        }
        let storage = Arc::clone(&spec.location.storage);
        let path = spec.location.path.join(&fragment_path(&spec.name, version));
        storage.make_folder(&path)?;
        let folder = Folder {
            storage,
            path,
            keep: false,
        };
        let mut files = Vec::with_capacity(parts.len());
        for &(column, part) in &parts {
            let field = columns.get(column).map(|column| column.field);
            let name = field.and_then(|field| data_file_name(field, part, &schema, version));
            let name =
                name.ok_or_else(|| Error::Internal(format!("field {field:?} has no file")))?;
            let upload = folder.storage.upload(&folder.path.join(&name))?;
            files.push(DataFile {
                upload,
                tiles: FileTiles::default(),
            });
        }
        let collected = Collected::new(&columns, &schema, version, dense_tiles.is_some());
        Ok(Self {
            context: context.clone(),
            spec,
            version,
            slots,
            fields,
            columns,
            parts,
            files,
            collected,
            tile_cells,
            dense_tiles,
            pending: Vec::new(),
            spare: Vec::new(),
            folder,
        })
    }

    /// The fields that a tile has, in the order of [`TileView::fields`]: attributes, dimensions
    /// (sparse), then, where asked for, timestamps and delete metadata.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Cells of a full tile: of every dense one, and of every sparse one but the last.
    #[must_use]
    pub fn tile_cells(&self) -> u64 {
        self.tile_cells
    }

    /// Tiles pushed so far.
    #[must_use]
    pub fn tile_num(&self) -> u64 {
        self.collected.tile_num
    }

    /// Bytes of data files so far.
    #[must_use]
    pub fn stored_size(&self) -> u64 {
        let pending = self.pending.iter().map(|task| match task {
            Task::Filter(task) => task.out.len() as u64,
            Task::Summarize { .. } => 0,
        });
        self.files
            .iter()
            .map(|file| file.tiles.size)
            .chain(pending)
            .sum()
    }

    /// Adds tiles: of a sparse fragment in global order, of a dense one in the tile order of the
    /// space tiles that its domain touches. They are filtered in parallel, so many at once are
    /// faster than one by one.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for tiles of another shape than the fragment's, and for cells
    /// that a filter cannot store; errors of the storage. After an error the sink is of no more
    /// use.
    pub fn push(&mut self, tiles: &[TileView<'_>]) -> Result<()> {
        self.check(tiles)?;
        let Self {
            context,
            spec,
            version,
            columns,
            parts,
            files,
            collected,
            pending,
            spare,
            ..
        } = self;
        let (schema, key) = (&*spec.schema, context.key());
        let stage = Stage {
            schema,
            version: *version,
            key,
            columns,
            files: parts,
            tiles,
        };
        let operation = context.begin();
        let run = |task: &mut Task| operation.check().and_then(|()| stage.run(task));
        for wave in waves(tiles) {
            let mut tasks = stage.plan(&wave.tiles, spare);
            let mut write = || {
                write(files, spare, pending)?;
                write_plain(files, &stage, &wave.tiles)
            };
            if wave.bytes < PARALLEL_BYTES {
                write()?;
                tasks.iter_mut().try_for_each(run)?;
            } else {
                let (written, done) = context.install(|| {
                    rayon::join(write, || {
                        tasks.par_iter_mut().with_max_len(1).try_for_each(run)
                    })
                });
                written?;
                done?;
            }
            collect(collected, columns, tiles, &wave.tiles, &mut tasks)?;
            *pending = tasks;
        }
        Ok(())
    }

    /// Refuses tiles that do not fit.
    fn check(&self, tiles: &[TileView<'_>]) -> Result<()> {
        let wrong = |tile: usize, what: String| {
            let tile = self.collected.tile_num + tile as u64;
            Err(Error::InvalidArgument(format!(
                "tile {tile} of fragment {}: {what}",
                self.spec.name
            )))
        };
        let full = self.tile_cells;
        for (i, tile) in tiles.iter().enumerate() {
            let number = self.collected.tile_num + i as u64;
            let before = match i.checked_sub(1).and_then(|before| tiles.get(before)) {
                Some(before) => before.cell_num,
                None if number == 0 => full,
                None => self.collected.last_tile_cell_num,
            };
            if before != full {
                return wrong(i, "it follows a tile that is not full".into());
            }
            match self.dense_tiles {
                Some(_) if tile.cell_num != full => {
                    return wrong(
                        i,
                        format!("it has {} cells instead of {full}", tile.cell_num),
                    );
                }
                Some(all) if number >= all => return wrong(i, format!("there are only {all}")),
                None if !(1..=full).contains(&tile.cell_num) => {
                    return wrong(
                        i,
                        format!("it has {} cells, it may have 1 to {full}", tile.cell_num),
                    );
                }
                _ => {}
            }
            let Ok(cell_num) = usize::try_from(tile.cell_num) else {
                return wrong(i, "it does not fit into memory".into());
            };
            if tile.fields.len() != self.columns.len() {
                return wrong(
                    i,
                    format!(
                        "{} fields instead of {}",
                        tile.fields.len(),
                        self.columns.len()
                    ),
                );
            }
            for (column, view) in self.columns.iter().zip(&tile.fields) {
                if let Err(what) = column.check(view, cell_num) {
                    return wrong(i, format!("{:?} has {what}", column.field));
                }
            }
            let mut end = 0;
            for range in tile.written.iter().flatten() {
                if range.start < end || range.end < range.start || range.end > tile.cell_num {
                    return wrong(
                        i,
                        "the cells that were written are not in order or not in the tile".into(),
                    );
                }
                end = range.end;
            }
        }
        Ok(())
    }

    /// Says that no two cells have the same coordinates, where the format has a place for it. The
    /// array is one without duplicates, and the cells have timestamps.
    pub fn mark_each_cell_once(&mut self) {
        if self.version.has_deletes() {
            let mark = ProcessedConditions::EACH_CELL_ONCE.to_owned();
            self.spec.processed_conditions.push(mark);
        }
    }

    /// Ends all files and writes the fragment's metadata: everything is on storage, nothing counts
    /// yet.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if tiles are missing (a fragment holds at least one); errors of
    /// the storage.
    pub fn finish(mut self) -> Result<WrittenFragment> {
        let tiles = self.collected.tile_num;
        if self.dense_tiles.is_some_and(|all| all != tiles) || tiles == 0 {
            let all = self.dense_tiles.unwrap_or(1);
            return Err(Error::InvalidArgument(format!(
                "fragment {} has {tiles} tiles, {all} belong there",
                self.spec.name
            )));
        }
        write(&mut self.files, &mut self.spare, &mut self.pending)?;
        let schema = &*self.spec.schema;
        let facts = Facts {
            schema,
            schema_name: &self.spec.schema_name,
            version: self.version,
            slots: self.slots,
            dense_domain: self.spec.dense_domain.as_ref(),
            timestamps: self.spec.timestamps,
            delete_metadata: self.spec.delete_metadata,
            processed_conditions: &self.spec.processed_conditions,
        };
        let (mut uploads, mut files) = (Vec::new(), Vec::new());
        for (part, file) in self.parts.iter().zip(std::mem::take(&mut self.files)) {
            uploads.push(file.upload);
            files.push((*part, file.tiles));
        }
        let path = self.folder.path.join(FRAGMENT_METADATA_FILE);
        let wrong = |e| Error::Internal(format!("{path}: {e}"));
        let mut metadata = self
            .collected
            .finish(&facts, &self.columns, files)
            .map_err(wrong)?;
        let bytes = metadata.encode(schema, self.context.key()).map_err(wrong)?;
        let mut upload = self.folder.storage.upload(&path)?;
        upload.write(&bytes)?;
        uploads.push(upload);
        self.folder.storage.finish_all(uploads)?;
        self.folder.keep = true;
        Ok(WrittenFragment {
            location: self.spec.location,
            folder: self.folder.path.clone(),
            schema_name: self.spec.schema_name,
            name: self.spec.name,
            version: self.version,
            footer: metadata.footer,
            metadata_size: bytes.len() as u64,
        })
    }
}

/// Tiles that are filtered together.
struct Wave {
    tiles: Range<usize>,
    bytes: usize,
}

fn waves(tiles: &[TileView<'_>]) -> Vec<Wave> {
    let mut waves = Vec::new();
    let mut wave = Wave {
        tiles: 0..0,
        bytes: 0,
    };
    for (i, tile) in tiles.iter().enumerate() {
        let bytes: usize = tile.fields.iter().map(FieldView::byte_len).sum();
        if wave.bytes + bytes > WAVE_BYTES && !wave.tiles.is_empty() {
            waves.push(std::mem::replace(
                &mut wave,
                Wave {
                    tiles: i..i,
                    bytes: 0,
                },
            ));
        }
        wave.tiles.end = i + 1;
        wave.bytes += bytes;
    }
    if !wave.tiles.is_empty() {
        waves.push(wave);
    }
    waves
}

/// Appends filtered tiles to their files and gives the buffers back.
fn write(files: &mut [DataFile], spare: &mut Vec<Vec<u8>>, tasks: &mut Vec<Task>) -> Result<()> {
    for task in tasks.drain(..) {
        let Task::Filter(task) = task else { continue };
        let Some(file) = files.get_mut(task.file) else {
            continue;
        };
        let at = file.tiles.size;
        file.upload.write(&task.out)?;
        file.tiles
            .offsets
            .extend(task.starts.iter().map(|start| at + *start as u64));
        file.tiles.size += task.out.len() as u64;
        spare.push(task.out);
    }
    Ok(())
}

/// Appends the tiles of a wave that are stored as they lie.
fn write_plain(files: &mut [DataFile], stage: &Stage<'_>, wave: &Range<usize>) -> Result<()> {
    for (i, file) in files
        .iter_mut()
        .enumerate()
        .filter(|(i, _)| stage.is_plain(*i, wave))
    {
        for tile in wave.clone() {
            file.tiles.offsets.push(file.tiles.size);
            file.tiles.size += stage.write_plain(i, tile, &mut *file.upload)?;
        }
    }
    Ok(())
}

/// Takes the statistics of a wave, by tile.
fn collect(
    collected: &mut Collected,
    columns: &[StoredColumn],
    tiles: &[TileView<'_>],
    wave: &Range<usize>,
    tasks: &mut [Task],
) -> Result<()> {
    let mut by_tile: Vec<Vec<TileSummary>> = vec![Vec::with_capacity(columns.len()); wave.len()];
    // The tasks of a column come before those of the next.
    for task in tasks {
        if let Task::Summarize {
            tiles, summaries, ..
        } = task
        {
            let places = by_tile.iter_mut().skip(tiles.start - wave.start);
            for (place, summary) in places.zip(summaries.drain(..)) {
                place.push(summary);
            }
        }
    }
    for (tile, summaries) in tiles
        .get(wave.clone())
        .unwrap_or_default()
        .iter()
        .zip(&by_tile)
    {
        let pushed = collected.push(columns, tile, summaries);
        pushed.map_err(|e| Error::Internal(format!("statistics of a tile: {e}")))?;
    }
    Ok(())
}

/// Cuts a box to the domain.
fn crop(domain: &mut NdRectangle, schema: &ArraySchema) {
    for (range, dimension) in domain.ranges.iter_mut().zip(&schema.domain.dimensions) {
        let Some(whole) = &dimension.domain else {
            continue;
        };
        if compare(dimension.datatype, &range.start, &whole.start) == Ordering::Less {
            range.start.clone_from(&whole.start);
        }
        if compare(dimension.datatype, &range.end, &whole.end) == Ordering::Greater {
            range.end.clone_from(&whole.end);
        }
    }
}
