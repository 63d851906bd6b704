//! A GeoTIFF of a dense array of rows and columns, with bands before them or without; of a group, of
//! the variable that is one, with the coordinates and the `spatial_ref` beside it.

mod georeference;
mod tags;

use super::place::Place;
use crate::args::ExportArgs;
use crate::error::{CliError, Result};
use crate::geotiff::{Georeference, Layout, Writer, beside};
use crate::import::dataset::{ATTRIBUTE, budget};
use crate::interrupt;
use crate::output::out::Packing;
use crate::output::temp_file::TempFile;
use crate::picture::only_column;
use crate::selection::names_of;
use crate::session::Session;
use azulejo::format::metadata::{Metadata, MetadataValue};
use azulejo::format::schema::{Attribute, Layout as CellLayout, TileAxis, shown_names};
use azulejo::format::{CellValNum, Physical, Range};
use azulejo::group::ObjectType;
use azulejo::read::ReadOptions;
use azulejo::space::{DimSelection, Subarray};
use azulejo::{Array, ColumnSet};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::{BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// Rows and columns of tiles, unless the raster is smaller.
const TILE: u64 = 256;

/// What is exported.
struct Raster {
    array: Array,
    attribute: Attribute,
    /// The attributes of the variable.
    keys: Metadata,
    /// Bands (if there are any), rows, columns: first coordinate and number.
    axes: Vec<(TileAxis, u64, u64)>,
    place: Georeference,
    /// Its coordinate system, where the file cannot name it.
    unnamed: Option<String>,
    /// What the file cannot say.
    notes: Vec<String>,
}

/// What belongs beside a file of this machine: its coordinate system in WKT, or nothing.
pub struct Beside {
    path: PathBuf,
    wkt: Option<String>,
}

impl Beside {
    /// Puts it there, in the place of what stood beside an earlier file.
    pub fn publish(self) -> Result<()> {
        let Some(wkt) = self.wkt else {
            return match std::fs::remove_file(&self.path) {
                Err(e) if e.kind() != ErrorKind::NotFound => {
                    Err(CliError::io("remove", &self.path, e))
                }
                _ => Ok(()),
            };
        };
        let file = TempFile::new(&self.path)?;
        let mut writer = file.writer()?;
        let written = writer.write_all(beside::text_of(&wkt).as_bytes());
        written
            .and_then(|()| writer.flush())
            .map_err(|e| CliError::io("write", &self.path, e))?;
        file.publish().map(|_| ())
    }
}

/// Writes the file; the number of cells, and what belongs beside it once it is there.
pub fn write(
    session: &Session,
    args: &ExportArgs,
    place: &Place,
    packing: Option<Packing>,
) -> Result<(u64, Option<Beside>)> {
    let cells = &args.selection.cells;
    let part = cells.condition.is_some() || cells.points.is_some() || !cells.range.is_empty();
    let part = part || !cells.step.is_empty() || !cells.nearest.is_empty();
    if part || args.selection.limit.is_some() || args.skip_damaged {
        return Err(CliError::usage(
            "a GeoTIFF holds all cells: it has no selection",
        ));
    }
    let has_side = matches!(place, Place::Local(_)) && packing.is_none();
    let beside = beside::path_of(&args.file);
    if has_side && !args.force && beside.symlink_metadata().is_ok() {
        return Err(CliError::usage(format!(
            "{} exists, and would be taken for what belongs to the new file; --force replaces it",
            beside.display()
        )));
    }
    let mut raster = Raster::find(session, args)?;
    let layout = raster.layout()?;
    let wkt = raster.unnamed.take().filter(|text| {
        let written = has_side && beside::is_wkt(text);
        raster.notes.push(match written {
            true => format!(
                "its coordinate system has no EPSG code: it stands beside the file, in {}",
                beside::path_of(&args.file).display()
            ),
            false => "its coordinate system has no EPSG code: the file does not say which it is"
                .to_owned(),
        });
        written
    });
    for note in &raster.notes {
        session.output.note(note);
    }
    let tags = tags::of(&raster, layout.bands);
    // Where its tiles lie is known last and stands first.
    let failed = |e| CliError::io("write", &args.file, e);
    let beside = tempfile::tempfile().map_err(failed)?;
    let out = BufWriter::with_capacity(1 << 20, beside);
    let mut writer = Writer::new(out, layout).map_err(failed)?;
    raster.each_row(session, layout, |tiles| {
        let stored = session.context.install(|| {
            let stored = tiles.into_par_iter().map(|tile| layout.encode(tile));
            stored.collect::<std::io::Result<Vec<_>>>()
        });
        for tile in stored.map_err(failed)? {
            writer.tile(&tile).map_err(failed)?;
        }
        Ok(())
    })?;
    let out = writer.finish(tags).map_err(failed)?;
    let mut beside = out.into_inner().map_err(|e| failed(e.into_error()))?;
    beside.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut whole = place.out(packing)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        interrupt::check()?;
        match beside.read(&mut buffer).map_err(failed)? {
            0 => break,
            n => whole.write_all(buffer.get(..n).unwrap_or_default())?,
        }
    }
    whole.flush()?;
    whole.finish()?;
    let path = beside::path_of(&args.file);
    let beside = has_side.then_some(Beside { path, wkt });
    Ok((layout.bands * layout.height * layout.width, beside))
}

impl Raster {
    fn find(session: &Session, args: &ExportArgs) -> Result<Self> {
        let wished = args.selection.attrs.as_deref();
        let is_in = |names: &[String], name: &str| names.iter().any(|wished| wished == name);
        let wanted = |array: &Array, name: &str| {
            wished.is_none_or(|wished| is_in(&names_of(array.schema(), wished), name))
        };
        let uri = &args.uri;
        if session.context.object(uri).object_type()? != Some(ObjectType::Group) {
            let array = session.open(uri, &args.time)?;
            let found = candidates(&array)
                .into_iter()
                .filter(|a| wanted(&array, &a.name));
            let attribute = only(uri, found.map(|a| (a.name.clone(), a)).collect())?;
            return Self::new(array, attribute, &BTreeMap::new());
        }
        let group = session
            .context
            .group(uri)
            .open_at(args.time.range(&session.context, uri)?)?;
        let (mut members, mut found) = (BTreeMap::new(), Vec::new());
        for member in group.members() {
            if member.object_type == Some(ObjectType::Group) {
                continue;
            }
            let array = session.open(&member.location, &args.time)?;
            for attribute in candidates(&array) {
                let by_key = wished.is_some_and(|wished| is_in(wished, member.key()));
                if by_key || wanted(&array, &attribute.name) {
                    found.push((member.key().to_owned(), (array.clone(), attribute)));
                }
            }
            members.insert(member.key().to_owned(), array);
        }
        let (array, attribute) = only(uri, found)?;
        Self::new(array, attribute, &members)
    }

    fn new(array: Array, attribute: Attribute, members: &BTreeMap<String, Array>) -> Result<Self> {
        let keys = attributes(&array, &attribute.name)?;
        let written = array.non_empty_domain()?;
        let mut axes = Vec::new();
        for (at, dimension) in array.schema().domain.dimensions.iter().enumerate() {
            let none = || CliError::usage(format!("dimension {:?} has no range", dimension.name));
            let axis = dimension.axis().ok_or_else(none)?;
            let range = |all: Option<&azulejo::format::NdRectangle>| {
                let range = all.and_then(|all| all.ranges.get(at));
                range.and_then(|range| axis.offsets_of(range))
            };
            let current = range(array.current_domain());
            let (first, last) = current
                .or_else(|| range(written.as_ref()))
                .ok_or_else(none)?;
            axes.push((axis, first, last - first + 1));
        }
        let spatial = keys.get("grid_mapping").and_then(MetadataValue::as_text);
        let spatial = spatial.unwrap_or("spatial_ref").to_owned();
        let spatial = match members.get(&spatial) {
            Some(member) => attributes(member, &spatial)?,
            None => Metadata::new(),
        };
        let (mut place, unnamed) = georeference::of(&spatial, &keys);
        let mut notes = Vec::new();
        let dimensions = &array.schema().domain.dimensions;
        let names: Vec<&str> = dimensions.iter().rev().map(|d| d.name.as_str()).collect();
        let line = |name: Option<&&str>| match name.and_then(|name| members.get(*name)) {
            Some(member) => georeference::line_of(member),
            None => Ok(None),
        };
        let (x, y) = (line(names.first())?, line(names.get(1))?);
        place.settle(x, y);
        if place.transform.is_none() && place.tiepoints.is_empty() {
            let none =
                "there are no evenly spaced coordinates: the file does not say where it lies";
            notes.push(none.to_owned());
        }
        Ok(Self {
            array,
            attribute,
            keys,
            axes,
            place,
            unnamed,
            notes,
        })
    }

    fn layout(&self) -> Result<Layout> {
        let mut axes = self.axes.iter().rev().map(|(_, _, size)| *size);
        let (width, height) = (axes.next().unwrap_or(1), axes.next().unwrap_or(1));
        let bands = axes.next().unwrap_or(1);
        if width > i32::MAX as u64 || height > i32::MAX as u64 || bands > u16::MAX.into() {
            return Err(CliError::usage(format!(
                "{bands} bands of {height} rows and {width} columns are more than a TIFF holds"
            )));
        }
        let datatype = self.attribute.datatype;
        let format = match datatype.physical() {
            Physical::U8 | Physical::U16 | Physical::U32 | Physical::U64 => 1,
            Physical::I8 | Physical::I16 | Physical::I32 | Physical::I64 => 2,
            Physical::F32 | Physical::F64 => 3,
        };
        let tile = width.max(height).next_multiple_of(16).min(TILE);
        let size = datatype.size();
        Ok(Layout {
            height,
            width,
            bands,
            size,
            format,
            tile,
        })
    }

    /// Gives the tiles of each row of tiles (of parts of it, where it is long), band after band.
    fn each_row(
        &self,
        session: &Session,
        layout: Layout,
        mut put: impl FnMut(Vec<Vec<u8>>) -> Result<()>,
    ) -> Result<()> {
        let (down, across) = layout.grid();
        let most = (budget(session) / 4) as usize / layout.tile_bytes().max(1);
        let at_once = (most as u64).clamp(1, across.max(1));
        let cells = layout.bands * layout.height * layout.width;
        let progress = session.progress(Some(cells));
        let mut done = 0;
        for band in 0..layout.bands {
            for row in 0..down {
                let first = row * layout.tile;
                let rows = (first, layout.tile.min(layout.height - first));
                for part in 0..across.div_ceil(at_once) {
                    interrupt::check()?;
                    let first = part * at_once * layout.tile;
                    let columns = (first, (at_once * layout.tile).min(layout.width - first));
                    let cells = self.read([(band, 1), rows, columns])?;
                    put(tiles(&cells, layout, rows.1, columns.1))?;
                    done += rows.1 * columns.1;
                    progress.advance(done, cells.len() as u64, "exporting");
                }
            }
        }
        Ok(())
    }

    /// The cells of a box, row by row.
    fn read(&self, part: [(u64, u64); 3]) -> Result<Vec<u8>> {
        let part = part.get(3 - self.axes.len()..).unwrap_or_default();
        let ranges = self
            .axes
            .iter()
            .zip(part)
            .map(|((axis, low, _), (first, size))| {
                let first = low + first;
                let range = Range::new(axis.coordinate(first), axis.coordinate(first + size - 1));
                DimSelection::Ranges(vec![range])
            });
        let options = ReadOptions::new()
            .subarray(Subarray::Box(ranges.collect()))
            .fields([self.attribute.name.clone()])
            .layout(CellLayout::RowMajor);
        let expected = part.iter().map(|(_, n)| *n as usize).product::<usize>();
        column(
            &self.array,
            options,
            expected * self.attribute.datatype.size(),
        )
    }
}

/// The one that is meant.
fn only<T>(uri: &str, found: Vec<(String, T)>) -> Result<T> {
    let names = shown_names(found.iter().map(|(name, _)| name.as_str()));
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some((_, one)), None) => Ok(one),
        (None, _) => Err(CliError::usage(format!(
            "{uri}: there is no dense array of rows and columns of numbers, with or without bands before them"
        ))),
        (Some(_), Some(_)) => Err(CliError::usage(format!(
            "GeoTIFF takes one variable; choose it with --attrs: {names}"
        ))),
    }
}

/// Attributes that can be exported.
fn candidates(array: &Array) -> Vec<Attribute> {
    let schema = array.schema();
    if !schema.is_dense() || !matches!(schema.domain.dimensions.len(), 2 | 3) {
        return Vec::new();
    }
    let plain = |a: &&Attribute| {
        let number = (a.datatype.is_integer() || a.datatype.is_real()) && a.enumeration.is_none();
        number && a.cell_val_num == CellValNum::ONE && !a.nullable
    };
    schema.attributes.iter().filter(plain).cloned().collect()
}

/// The attributes of a variable.
fn attributes(array: &Array, name: &str) -> Result<Metadata> {
    let prefix = format!("{ATTRIBUTE}{name}.");
    let keys = array.metadata()?.iter();
    let own = keys.filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?, value)));
    Ok(own
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect())
}

/// All cells that a query gives, `size` bytes.
fn column(array: &Array, options: ReadOptions, size: usize) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(size);
    for batch in array.read(options)? {
        let batch: ColumnSet = batch?;
        out.extend_from_slice(&only_column(batch)?.data);
    }
    match out.len() == size {
        true => Ok(out),
        false => Err(CliError::Format(format!(
            "the read gave {} bytes instead of {size}",
            out.len()
        ))),
    }
}

/// Rows of cells cut into tiles, which are filled up with zeros.
fn tiles(cells: &[u8], layout: Layout, rows: u64, columns: u64) -> Vec<Vec<u8>> {
    let row = (columns as usize) * layout.size;
    let tile_row = layout.tile as usize * layout.size;
    let count = columns.div_ceil(layout.tile) as usize;
    let mut out = vec![vec![0; layout.tile_bytes()]; count];
    for (at, row) in cells
        .chunks_exact(row.max(1))
        .take(rows as usize)
        .enumerate()
    {
        for (tile, part) in out.iter_mut().zip(row.chunks(tile_row.max(1))) {
            let from = at * tile_row;
            if let Some(place) = tile.get_mut(from..from + part.len()) {
                place.copy_from_slice(part);
            }
        }
    }
    out
}
