//! `tiledb_filestore_*`: files as dense arrays of bytes.

use crate::boundary::{Bytes, Out, OutBytes, Ptr, Text, capi};
use crate::error::{Failure, Result};
use crate::schema::SchemaHandle;
use crate::vfs::refuse_folder;
use azulejo::Array;
use azulejo::array::Snapshot;
use azulejo::column::{ColumnBuffers, ColumnMut, ColumnSet, ColumnType, ColumnView};
use azulejo::read::ReadOptions;
use azulejo::space::Subarray;
use azulejo::storage::{ReadRange, ReadRequest, Uri};
use azulejo::write::{WriteLayout, WriteOptions};
use azulejo_format::metadata::MetadataValue;
use azulejo_format::{Datatype, NdRectangle, Range};

const DIMENSION: &str = "position";
const ATTRIBUTE: &str = "contents";
const SIZE: &str = "file_size";
const DEFAULT_EXTENT: u64 = 1024;
/// Bytes that are held at a time, about.
const CHUNK: u64 = 16 << 20;

/// A tile extent that suits a file, as the reference chooses it.
fn tile_extent(file_size: u64) -> u64 {
    const MIB: u64 = 1 << 20;
    match file_size {
        size if size > 1024 * MIB => 100 * MIB,
        size if size > 100 * MIB => MIB,
        size if size > MIB => MIB / 4,
        _ => DEFAULT_EXTENT,
    }
}

fn mime(id: i32) -> Result<&'static str> {
    match id {
        0 => Ok("application/octet-stream"),
        1 => Ok("image/tiff"),
        2 => Ok("application/pdf"),
        _ => Err("Invalid mime type".into()),
    }
}

/// Stores what is known of a file beside its bytes.
fn describe(
    engine: &azulejo::Context,
    uri: &str,
    size: u64,
    mime: &str,
    name: &str,
    time: u64,
) -> Result<()> {
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) => (stem, extension),
        None => (name, ""),
    };
    let text = |value: &str| MetadataValue::new(Datatype::StringUtf8, value.as_bytes());
    let mut writer = engine.array(uri).change_metadata()?.at(time);
    writer.put(
        SIZE,
        MetadataValue::new(Datatype::UInt64, size.to_le_bytes()),
    )?;
    writer.put("mime_encoding", text("binary"))?;
    writer.put("mime_type", text(mime))?;
    writer.put("original_file_name", text(stem))?;
    writer.put("file_extension", text(extension))?;
    Ok(writer.commit()?)
}

/// The type of the bytes of a file in its array: BLOB, or UINT8 in arrays of old.
fn contents(array: &Array) -> ColumnType {
    let attribute = array
        .schema()
        .attributes
        .iter()
        .find(|a| a.name == ATTRIBUTE);
    ColumnType::new(ATTRIBUTE, attribute.map_or(Datatype::Blob, |a| a.datatype))
}

/// Writes `size` bytes, which `read` brings from an offset on, piece by piece.
fn import(
    engine: &azulejo::Context,
    uri: &str,
    size: u64,
    time: u64,
    read: &mut dyn FnMut(u64, usize) -> Result<Vec<u8>>,
) -> Result<()> {
    let array = engine.array(uri).open()?;
    let dimension = array
        .schema()
        .dimension(0)
        .filter(|d| d.datatype == Datatype::UInt64 && d.name == DIMENSION);
    let extent = dimension
        .and_then(|d| d.tile_extent.as_ref())
        .and_then(|bytes| bytes.first_chunk::<8>());
    let extent = extent
        .map(|bytes| u64::from_le_bytes(*bytes))
        .filter(|extent| *extent > 0);
    let extent = extent.ok_or_else(|| Failure::new(format!("{uri} is no filestore array")))?;
    let whole = size.div_ceil(extent).saturating_mul(extent);
    let options = WriteOptions::new()
        .layout(WriteLayout::Global)
        .timestamp(time)
        .subarray(NdRectangle {
            ranges: vec![Range::of(0u64, whole - 1)],
        });
    let mut writer = array.writer(options)?;
    let step = (CHUNK / extent).max(1) * extent;
    let mut at = 0;
    while at < whole {
        let cells = usize::try_from(step.min(whole - at)).unwrap_or(0);
        let wanted = usize::try_from(size.saturating_sub(at))
            .unwrap_or(usize::MAX)
            .min(cells);
        let mut bytes = read(at, wanted)?;
        // The last tile is written whole.
        bytes.resize(cells, 0);
        let column = ColumnBuffers::of_raw(contents(&array), bytes, None, None)?;
        writer.write(&ColumnSet::of([column])?)?;
        at += cells as u64;
    }
    writer.finish()?;
    Ok(())
}

fn size_of(array: &Snapshot) -> Result<u64> {
    let value = array
        .metadata()?
        .get(SIZE)
        .and_then(|value| value.data.first_chunk::<8>());
    let value = value.ok_or_else(|| {
        Failure::new("the filestore array has no file size: nothing was imported")
    })?;
    Ok(u64::from_le_bytes(*value))
}

/// Reads bytes of a file into memory.
fn export(array: &Array, offset: u64, out: &mut [u8]) -> Result<()> {
    let Some(last) = (out.len() as u64).checked_sub(1) else {
        return Ok(());
    };
    let last = offset
        .checked_add(last)
        .ok_or_else(|| Failure::new("a read beyond the end of the file"))?;
    let options = ReadOptions::new()
        .fields([ATTRIBUTE])
        .subarray(Subarray::ranges([Range::of(offset, last)]));
    let mut reader = array.read(options)?;
    let progress = reader.read_into(&mut [ColumnMut {
        data: out,
        offsets: None,
        validity: None,
    }])?;
    if progress.complete {
        Ok(())
    } else {
        Err("the filestore array is shorter than its metadata say".into())
    }
}

capi! {
    /// A schema that suits a file; `uri` may be null for a file that is not known yet.
    fn tiledb_filestore_schema_create(ctx, uri: Text, schema: Out<Ptr<SchemaHandle>>) {
        let extent = match uri.opt()? {
            Some(uri) => {
                let location = ctx.engine()?.locate(&Uri::parse(uri)?)?;
                tile_extent(location.storage.size(&location.path)?)
            }
            None => DEFAULT_EXTENT,
        };
        schema.give(SchemaHandle::of_bytes(DIMENSION, ATTRIBUTE, extent))?;
    }

    /// Writes a file into a filestore array.
    fn tiledb_filestore_uri_import(ctx, array_uri: Text, file_uri: Text, mime_type: i32) {
        let (uri, file, mime) = (array_uri.get()?, file_uri.get()?, mime(mime_type)?);
        let engine = ctx.engine()?;
        let location = engine.locate(&Uri::parse(file)?)?;
        let size = location.storage.size(&location.path)?;
        if size == 0 {
            return Ok(());
        }
        let time = azulejo::clock::next_timestamp();
        import(&engine, uri, size, time, &mut |at, len| {
            let range = ReadRange::Bytes(at..at + len as u64);
            let read = location.storage.read(&[ReadRequest { path: location.path.clone(), range }])?;
            Ok(read.first().map(|bytes| bytes.to_vec()).unwrap_or_default())
        })?;
        describe(&engine, uri, size, mime, location.path.name(), time)?;
    }

    /// Writes the file of a filestore array.
    fn tiledb_filestore_uri_export(ctx, file_uri: Text, array_uri: Text) {
        let engine = ctx.engine()?;
        let array = engine.array(array_uri.get()?).open()?;
        let size = size_of(&array)?;
        let location = engine.locate(&Uri::parse(file_uri.get()?)?)?;
        refuse_folder(&location)?;
        location.storage.delete(std::slice::from_ref(&location.path))?;
        let mut upload = location.storage.upload(&location.path)?;
        let mut at = 0;
        while at < size {
            let mut bytes = vec![0; usize::try_from(CHUNK.min(size - at)).unwrap_or(0)];
            export(&array, at, &mut bytes)?;
            upload.write(&bytes)?;
            at += bytes.len() as u64;
        }
        upload.finish()?;
    }

    /// Writes bytes into a filestore array.
    fn tiledb_filestore_buffer_import(ctx, array_uri: Text, buf: Bytes, size: usize, mime_type: i32) {
        let (uri, bytes, mime) = (array_uri.get()?, buf.get(size)?, mime(mime_type)?);
        if bytes.is_empty() {
            return Ok(());
        }
        let engine = ctx.engine()?;
        let time = azulejo::clock::next_timestamp();
        let array = engine.array(uri).open()?;
        // As in the reference, these cells and no others: the array ends where the file does.
        let range = Range::of(0u64, bytes.len() as u64 - 1);
        let options = WriteOptions::new()
            .layout(WriteLayout::Row)
            .timestamp(time)
            .subarray(NdRectangle { ranges: vec![range] });
        let mut writer = array.writer(options)?;
        writer.write_views(&[ColumnView::new(contents(&array), bytes, None, None)?])?;
        writer.finish()?;
        describe(&engine, uri, bytes.len() as u64, mime, "", time)?;
    }

    /// Reads bytes of a filestore array.
    fn tiledb_filestore_buffer_export(ctx, array_uri: Text, offset: usize, buf: OutBytes, size: usize) {
        let array = ctx.engine()?.array(array_uri.get()?).open()?;
        let total = size_of(&array)?;
        if (offset as u64).checked_add(size as u64).is_none_or(|end| end > total) {
            return Err(Failure::new(format!(
                "The number of bytes requested is bigger than the array size: {size} at {offset} of {total}"
            )));
        }
        export(&array, offset as u64, buf.slice(size)?)?;
    }

    /// Bytes of the file in a filestore array.
    fn tiledb_filestore_size(ctx, array_uri: Text, size: Out<usize>) {
        let array = ctx.engine()?.array(array_uri.get()?).snapshot()?;
        size.set(usize::try_from(size_of(&array)?).map_err(|_| Failure::new("the file is too large for this machine"))?)?;
    }
}
