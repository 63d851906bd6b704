//! Azulejo: TileDB's multi-dimensional array engine, written afresh in Rust.
//!
//! An **array** has dimensions, which say where a cell lies, and attributes, which say what it
//! holds. A *dense* array has a cell at every place of its domain, like a raster or a matrix; a
//! *sparse* one has cells where somebody wrote them, like a table with a primary key or a cloud of
//! points. Both are cut into **tiles**, the unit that is filtered (compressed, encrypted, checked)
//! and read.
//!
//! Nothing is ever changed in place. Each write adds a **fragment** with a timestamp, and readers
//! lay the fragments over one another: the later cell wins. So an array can be opened as it was at
//! any time, writers need no locks, and a crash leaves either all of a write or nothing of it.
//! Consolidation makes many fragments few, a vacuum removes what it has replaced. All of this is
//! kept on disk, in memory or in an object store, in the format of the [TileDB
//! specification](https://github.com/TileDB-Inc/TileDB/tree/main/format_spec), so that other
//! programs read what this crate writes and the other way round.
//!
//! # Places
//!
//! A [`Context`] holds what queries share: settings, threads, the key. From it comes a handle for
//! each place: [`Context::array`], [`Context::group`], and [`Context::object`] for either. Making a
//! handle reads nothing; what can be done with it stands on [`ArrayHandle`], [`GroupHandle`] and
//! [`ObjectHandle`].
//!
//! ```
//! use azulejo::format::{ArraySchema, Datatype};
//! use azulejo::{Config, Context};
//!
//! let context = Context::new(Config::default(), None)?;
//! let stations = context.array("mem://stations");
//! stations.create(
//!     ArraySchema::sparse()
//!         .dimension("id", 0i64..=9_999, 1_000)
//!         .attribute("name", Datatype::StringUtf8)
//!         .attribute("height", Datatype::Float64)
//!         .build()?,
//! )?;
//! assert_eq!(stations.open()?.schema().attributes.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A place is a path, or a URI: `file://`, `mem://`, and with the feature `object-store` also
//! `s3://`, `gs://`, `azure://` and `http://`.
//!
//! # Writing
//!
//! A [`Writer`] takes columns: one for each attribute and, in sparse arrays, for each dimension, as
//! [`ColumnSet`]s or (feature `arrow`) as record batches.
//!
//! ```
//! # use azulejo::format::{ArraySchema, Datatype};
//! # use azulejo::{Config, Context};
//! # let context = Context::new(Config::default(), None)?;
//! # let stations = context.array("mem://stations");
//! # stations.create(ArraySchema::sparse().dimension("id", 0i64..=9_999, 1_000)
//! #     .attribute("name", Datatype::StringUtf8).attribute("height", Datatype::Float64).build()?)?;
//! use azulejo::{ColumnBuffers, ColumnSet, WriteOptions};
//!
//! let mut writer = stations.writer(WriteOptions::new())?;
//! writer.write(&ColumnSet::of([
//!     ColumnBuffers::of_values("id", vec![7i64, 3]),
//!     ColumnBuffers::of_strings("name", ["Zugspitze", "Helgoland"]),
//!     ColumnBuffers::of_values("height", vec![2_956.0, 4.0]),
//! ])?)?;
//! writer.finish()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reading
//!
//! [`Array::read`] takes a selection ([`Subarray`]), fields, a condition, an order and a memory
//! budget, and gives a [`Reader`]: an iterator of batches, each within the budget.
//! [`Reader::read_all`] puts them together; `Reader::record_batches` makes Arrow of them;
//! [`Reader::read_into`] fills memory of the caller's.
//!
//! ```
//! # use azulejo::format::{ArraySchema, Datatype};
//! # use azulejo::{ColumnBuffers, ColumnSet, Config, Context, WriteOptions};
//! # let context = Context::new(Config::default(), None)?;
//! # let stations = context.array("mem://stations");
//! # stations.create(ArraySchema::sparse().dimension("id", 0i64..=9_999, 1_000)
//! #     .attribute("name", Datatype::StringUtf8).attribute("height", Datatype::Float64).build()?)?;
//! # let mut writer = stations.writer(WriteOptions::new())?;
//! # writer.write(&ColumnSet::of([
//! #     ColumnBuffers::of_values("id", vec![7i64, 3]),
//! #     ColumnBuffers::of_strings("name", ["Zugspitze", "Helgoland"]),
//! #     ColumnBuffers::of_values("height", vec![2_956.0, 4.0]),
//! # ])?)?;
//! # writer.finish()?;
//! use azulejo::ReadOptions;
//!
//! let array = stations.open()?;
//! let high = array.condition("height > 1000")?;
//! let options = ReadOptions::new().fields(["name"]).condition(high);
//! let cells = array.read(options)?.read_all()?;
//! let names: Vec<_> = cells.columns[0].strings().flatten().collect();
//! assert_eq!(names, [Ok("Zugspitze")]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An [`Array`] is an immutable snapshot: cheap to clone, to share between threads, and deaf to
//! what others write meanwhile. Counts, sums and the like come from [`Array::aggregate`], often
//! without reading a cell. With the feature `stream`, `ArrayHandle::open_async` and
//! `Array::read_stream` do the same for an executor: nothing blocks while a storage answers.
//!
//! # Time travel
//!
//! ```
//! # use azulejo::format::{ArraySchema, Datatype};
//! # use azulejo::{ColumnBuffers, ColumnSet, Config, Context, ReadOptions, TimeRange, WriteOptions};
//! # let context = Context::new(Config::default(), None)?;
//! let place = context.array("mem://levels");
//! let schema = ArraySchema::dense()
//!     .dimension("x", 0i32..=2, 3)
//!     .attribute("level", Datatype::Int32)
//!     .build()?;
//! place.create_at(schema, 1)?;
//! for (time, level) in [(10, 1), (20, 2)] {
//!     let mut writer = place.writer(WriteOptions::new().timestamp(time))?;
//!     writer.write(&ColumnSet::of([ColumnBuffers::of_values("level", vec![level; 3])])?)?;
//!     writer.finish()?;
//! }
//! let level = |time| -> azulejo::Result<Vec<i32>> {
//!     let array = place.open_at(TimeRange::until(time))?;
//!     let cells = array.read(ReadOptions::new())?.read_all()?;
//!     Ok(cells.columns[0].values().unwrap_or_default().to_vec())
//! };
//! assert_eq!(level(15)?, [1, 1, 1]);
//! assert_eq!(level(25)?, [2, 2, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Times are milliseconds since 1970-01-01 UTC.
//!
//! # Errors
//!
//! One [`Error`] for everything, told apart by what the caller can do: create what is
//! [`NotFound`](Error::NotFound), give a key for [`Encryption`](Error::Encryption), more memory for
//! [`Budget`](Error::Budget), restore what is [`Corrupt`](Error::Corrupt). Whatever lies on disk is
//! taken for hostile: damaged files are errors that name the file, never panics or wrong cells.
//!
//! ```
//! # use azulejo::{Config, Context, Error};
//! # let context = Context::new(Config::default(), None)?;
//! let missing = context.array("mem://nothing").open();
//! assert!(matches!(missing, Err(Error::NotFound { .. })));
//! # Ok::<(), Error>(())
//! ```
//!
//! # Features
//!
//! | feature | default | what it brings |
//! |---|---|---|
//! | `arrow` | yes | record batches in and out without copying values, in [`crate::arrow`] |
//! | `c-codecs` | yes | Zstandard and zlib through their libraries in C |
//! | `webp` | yes | the filter for pictures, through libwebp |
//! | `pure-rust` | | the same codecs in Rust, where those in C are left out: no C compiler is needed. Pictures are read only, and so are frames of Zstandard before 0.8, from 0.5 on |
//! | `ndarray` | | dense results as `ndarray` views |
//! | `json` | | schemas, filters and values as JSON, in `azulejo::json` |
//! | `stream` | | [`Array`]s opened and read asynchronously, as streams of batches, on any executor |
//! | `object-store` | | S3, GCS, Azure and plain HTTP |
//! | `testing` | | the suite that every [`storage::Storage`] must pass, and a clock for tests |
#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod array;
mod buffer_pool;
mod cancel;
pub mod check;
pub mod clock;
pub mod column;
pub mod condition;
pub mod config;
pub mod consolidate;
pub mod context;
pub mod error;
pub mod fragment_info;
pub mod group;
#[cfg(feature = "json")]
pub mod json;
pub mod label;
mod large_pages;
pub mod manifest;
pub mod object;
mod object_type;
mod on_behalf;
mod per_process;
mod platform;
pub mod read;
pub mod snapshots;
pub mod space;
pub mod storage;
mod sync;
mod tile_cache;
pub mod write;

/// Arrow in and out: how columns become arrays of Arrow's and the other way round.
///
/// [`Reader::record_batches`] gives what is read as record batches, [`Writer::importer`] turns
/// record batches into what a writer takes, and [`ArrowFields`](arrow::ArrowFields) makes a new
/// array's attributes from an Arrow schema. The crates of Arrow that these types come from are here
/// too, so that a program need not name their version.
///
/// | TileDB | Arrow | raw |
/// |---|---|---|
/// | integers, reals | the same | the same |
/// | `BOOL` | Boolean (copied into bits) | UInt8 |
/// | `STRING_ASCII`, `STRING_UTF8`, `CHAR`, `GEOM_WKT` | LargeUtf8 | LargeBinary, FixedSizeBinary; `STRING_UTF8` of varying length: LargeUtf8 |
/// | `BLOB`, `ANY`, `GEOM_WKB`, other strings | LargeBinary, FixedSizeBinary | the same |
/// | several numbers a cell | FixedSizeList, var-length LargeList | the same |
/// | `DATETIME_SEC`, `_MS`, `_US`, `_NS` | Timestamp of the unit, without time zone | Int64 |
/// | `DATETIME_DAY` | Date32 (converted) | Int64 |
/// | `DATETIME_YEAR`, `_MONTH`, `_WEEK`, `_HR`, `_MIN` | Timestamp(s) (converted) | Int64 |
/// | `TIME_SEC`, `_MS`, `_US`, `_NS` | Duration of the unit | Int64 |
/// | `TIME_HR`, `_MIN` | Duration(s) (converted) | Int64 |
/// | datetimes and times in `PS`, `FS`, `AS` | Int64 ticks | Int64 |
/// | enumerated attributes | Dictionary with the labels | the index's type |
///
/// Converted values that Arrow's type cannot hold (the least tick, which is no time, and those far
/// away) become null, and so do indices without a label; such columns are nullable in Arrow
/// whatever they are in TileDB. The type of a column follows from the schema alone, never from the
/// values: text that is not UTF-8 is an error, which names the column and the cell; the raw form
/// takes it. With [`ArrowOptions::views`](arrow::ArrowOptions::views) LargeUtf8 is Utf8View, and LargeBinary BinaryView.
/// With [`ArrowOptions::null_times`](arrow::ArrowOptions::null_times) what is no time is null in all units.
///
/// Every field carries its TileDB type as metadata: `tiledb_type`, `tiledb_cell_val_num` and, where
/// there is one, `tiledb_enumeration`; `tiledb_nullable` is `false` where times are nullable in Arrow only.
#[cfg(feature = "arrow")]
pub mod arrow {
    #[doc(inline)]
    pub use crate::column::arrow::{ArrowConverter, ArrowFields, ArrowImporter, ArrowOptions};
    #[cfg(feature = "stream")]
    pub use crate::read::RecordBatchStream;
    pub use crate::read::RecordBatches;
    pub use arrow_array;
    pub use arrow_buffer;
    pub use arrow_schema;
}

/// Parts of the engine that this project's own programs look at, and that change without notice:
/// the C library estimates sizes of results by the grid of tiles, and tests write arrays anew, tile
/// by tile, in every format version.
#[doc(hidden)]
pub mod internal {
    pub use crate::buffer_pool::{BufferPool, PoolBuffer};
    pub use crate::column::tile::Tile;
    pub use crate::read::decode::{Cells, TileRequest};
    pub use crate::read::load::load_tiles;
    pub use crate::space::tile_grid::{FragmentGrid, TileGrid};
    pub use crate::write::commit::WrittenFragment;
    pub use crate::write::fragment::{FragmentSink, FragmentSpec};
    pub use crate::write::tile_view::TileView;
}

pub use array::{Array, ArrayHandle, TimeRange};
pub use azulejo_format as format;
pub use cancel::CancelHandle;
pub use column::{ColumnBuffers, ColumnSet};
pub use config::Config;
pub use context::{Context, Progress};
pub use error::{Error, Result};
pub use group::GroupHandle;
pub use object::ObjectHandle;
pub use read::{ReadOptions, Reader};
pub use space::Subarray;
pub use write::{WriteLayout, WriteOptions, Writer};
