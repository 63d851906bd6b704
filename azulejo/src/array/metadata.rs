//! Key-values of arrays and groups, and what else is kept in timestamped files with vacuum files
//! among them.

use super::TimeRange;
use super::directory::{DetailFiles, NamedEntry};
use super::objects::{decode_at, generic_tile, read_objects_as};
use super::timeline::select_details;
use crate::context::{Context, Location};
use crate::error::Result;
use crate::storage::Waiting;
use azulejo_format::commit::VacuumList;
use azulejo_format::metadata::{self as format, Metadata};
use bytes::Bytes;

/// Sums up the metadata files that count at `time`.
pub(crate) async fn read_metadata(
    context: &Context,
    location: &Location,
    files: &DetailFiles,
    time: TimeRange,
    waiting: Waiting,
) -> Result<Metadata> {
    let details = read_details(context, location, files, time, waiting).await?;
    let decode =
        |(path, payload): &(String, Vec<u8>)| decode_at(location, path, format::decode(payload));
    let files: Vec<_> = details.iter().map(decode).collect::<Result<_>>()?;
    Ok(format::merge(files))
}

/// Reads the files of `__meta` or `__group` that count at `time`, oldest first.
pub(crate) async fn read_details(
    context: &Context,
    location: &Location,
    files: &DetailFiles,
    time: TimeRange,
    waiting: Waiting,
) -> Result<Vec<(String, Vec<u8>)>> {
    let vacuums = files.vacuums.iter().map(|entry| entry.path.as_str());
    let lists = read_objects_as(context, location, vacuums, waiting).await?;
    let vacuums = files.vacuums.iter().zip(&lists).map(|(entry, bytes)| {
        Ok((
            entry,
            decode_at(location, &entry.path, VacuumList::decode(bytes))?,
        ))
    });
    let vacuums: Vec<_> = vacuums.collect::<Result<_>>()?;
    let selected = select_details(&files.files, &vacuums, time);
    let paths = selected.iter().map(|entry| entry.path.as_str());
    let read = read_objects_as(context, location, paths, waiting).await?;
    let payload = |(entry, bytes): (&NamedEntry, &Bytes)| {
        Ok((
            entry.path.clone(),
            generic_tile(context, location, &entry.path, bytes)?,
        ))
    };
    selected.into_iter().zip(&read).map(payload).collect()
}
