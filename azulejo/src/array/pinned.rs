//! A snapshot that travels: what an array was when it was opened, by names.
//!
//! A time is not enough to see the same cells elsewhere: a writer may still commit with an older
//! timestamp, and a vacuum may take away what a consolidation has replaced.

use super::open::OpenScope;
use super::{Array, ArrayHandle, Snapshot, TimeRange};
use crate::error::{Error, Result};
use crate::storage::{Uri, Waiting, block_on};
use azulejo_format::DecodeError;
use azulejo_format::wire::{ByteReader, ByteWriter};
use std::collections::HashSet;

/// The names of what makes an open [`Array`]: from these it is opened again, by another process or
/// on another machine, with the very same cells.
///
/// ```
/// # use azulejo::format::{ArraySchema, Datatype};
/// # use azulejo::array::PinnedSnapshot;
/// # use azulejo::{ColumnBuffers, ColumnSet, Config, Context, WriteOptions};
/// # let context = Context::new(Config::default(), None)?;
/// # let place = context.array("mem://pinned");
/// # place.create(ArraySchema::sparse().dimension("x", 0i64..=9, 10)
/// #     .attribute("a", Datatype::Int64).build()?)?;
/// # let write = |x: i64| -> azulejo::Result<()> {
/// #     let mut writer = place.writer(WriteOptions::new())?;
/// #     writer.write(&ColumnSet::of([
/// #         ColumnBuffers::of_values("x", vec![x]), ColumnBuffers::of_values("a", vec![x])])?)?;
/// #     writer.finish().map(|_| ())
/// # };
/// write(1)?;
/// let bytes = place.open()?.pin().encode();
/// write(2)?;
/// let then = place.open_pinned(&PinnedSnapshot::decode(&bytes)?)?;
/// assert_eq!(then.fragments().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedSnapshot {
    /// The time that the array was opened at.
    pub time_range: TimeRange,
    /// File name of the schema that counts.
    pub schema: String,
    /// Folder names of the fragments that count, oldest first.
    pub fragments: Vec<String>,
    /// Names of the deletes that count, oldest first.
    pub deletes: Vec<String>,
}

/// The first bytes of an encoded snapshot.
const MARK: &[u8; 8] = b"azulejo1";

impl Array {
    /// What it takes to open the array elsewhere with the same cells.
    #[must_use]
    pub fn pin(&self) -> PinnedSnapshot {
        self.pin_of(self.contents.names())
    }
}

impl Snapshot {
    /// As [`Array::pin`], of fragments that may not have been looked at yet: neither are they looked
    /// at now, nor is any other thread waited for, so that a fork's child may ask. `None` if the
    /// fragments would have to tell which of them count, or if a thread is looking at them.
    #[must_use]
    pub fn pin_unread(&self) -> Option<PinnedSnapshot> {
        Some(self.pin_of(self.names()?))
    }

    fn pin_of(&self, (fragments, deletes): (Vec<String>, Vec<String>)) -> PinnedSnapshot {
        PinnedSnapshot {
            time_range: self.time_range(),
            schema: self.schema_name().to_owned(),
            fragments,
            deletes,
        }
    }
}

impl ArrayHandle {
    /// Opens the array with exactly the schema, fragments and deletes of a snapshot.
    ///
    /// # Errors
    /// [`Error::NotFound`] that names what a vacuum or somebody else has taken away since; those of
    /// [`Self::open`].
    pub fn open_pinned(&self, pinned: &PinnedSnapshot) -> Result<Array> {
        let names = |list: &[String]| Some(list.iter().cloned().collect::<HashSet<_>>());
        let scope = OpenScope {
            fragments: names(&pinned.fragments),
            deletes: names(&pinned.deletes),
            schema: Some(pinned.schema.clone()),
            superseded: true,
            ..OpenScope::default()
        };
        let uri = Uri::parse(&self.uri)?;
        let opening = Snapshot::open_as(
            &self.context,
            &uri,
            pinned.time_range,
            &scope,
            Waiting::Blocks,
        );
        let array = block_on(opening)?.array()?;
        let found: HashSet<&str> = array.fragments().iter().map(|f| f.name()).collect();
        let deletes: HashSet<&str> = array.deletes().iter().map(|d| d.name.as_str()).collect();
        let gone = |list: &[String], found: &HashSet<&str>, what| {
            let name = list.iter().find(|name| !found.contains(name.as_str()));
            name.map(|name| Error::NotFound {
                uri: array.location().path.join(name).to_string(),
                what,
            })
        };
        let missing = gone(&pinned.fragments, &found, "a fragment of a pinned snapshot")
            .or_else(|| gone(&pinned.deletes, &deletes, "a delete of a pinned snapshot"));
        match missing {
            Some(error) => Err(error),
            None => Ok(array),
        }
    }
}

impl PinnedSnapshot {
    /// As bytes, which carry no key and no credential.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = ByteWriter::new();
        w.bytes(MARK);
        w.u64(self.time_range.start);
        w.u64(self.time_range.end);
        w.text32(&self.schema);
        for list in [&self.fragments, &self.deletes] {
            w.u64(list.len() as u64);
            for name in list {
                w.text32(name);
            }
        }
        w.into_bytes()
    }

    /// From the bytes that [`Self::encode`] made.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        const WHAT: &str = "pinned snapshot";
        let mut r = ByteReader::new(bytes);
        if r.bytes(MARK.len(), WHAT)? != MARK {
            return Err(DecodeError::invalid(WHAT, 0, "it is of another version"));
        }
        let time_range = TimeRange {
            start: r.u64(WHAT)?,
            end: r.u64(WHAT)?,
        };
        let schema = text(&mut r)?;
        let list = |r: &mut ByteReader<'_>| {
            let count = r.u64(WHAT)?;
            let count = r.check_count(count, 4, WHAT)?;
            (0..count).map(|_| text(r)).collect::<Result<Vec<_>, _>>()
        };
        let (fragments, deletes) = (list(&mut r)?, list(&mut r)?);
        r.finish(WHAT)?;
        Ok(Self {
            time_range,
            schema,
            fragments,
            deletes,
        })
    }
}

fn text(r: &mut ByteReader<'_>) -> Result<String, DecodeError> {
    let len = r.u32("pinned snapshot")?;
    r.text(len.into(), "pinned snapshot")
}
