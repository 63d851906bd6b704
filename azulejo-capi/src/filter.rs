//! `tiledb_filter_t` and `tiledb_filter_list_t`.
#![warn(clippy::wildcard_enum_match_arm)]

use crate::boundary::{Bytes, In, Kind, Out, OutBytes, Ptr, capi, capi_free};
use crate::enums::{datatype, datatype_id};
use crate::error::{Failure, Result};
use crate::strings::lock;
use azulejo_format::Datatype;
use azulejo_format::filter::{Filter, Pipeline};
use std::sync::Mutex;

/// `tiledb_filter_t`.
#[derive(Debug)]
pub struct FilterHandle {
    filter: Mutex<Filter>,
    /// What was set for compressors that make nothing of it, which nothing stores.
    reinterpret: Mutex<Option<Datatype>>,
}

impl FilterHandle {
    fn new(filter: Filter) -> Self {
        Self {
            filter: Mutex::new(filter),
            reinterpret: Mutex::new(None),
        }
    }
}

impl Kind for FilterHandle {
    const NAME: &'static str = "filter";
}

/// `tiledb_filter_list_t`.
#[derive(Debug)]
pub struct FilterList {
    pipeline: Mutex<Pipeline>,
}

impl Kind for FilterList {
    const NAME: &'static str = "filter_list";
}

impl FilterList {
    /// A handle on these filters.
    pub fn new(pipeline: Pipeline) -> Self {
        Self {
            pipeline: Mutex::new(pipeline),
        }
    }

    /// The filters as they are now.
    pub fn pipeline(&self) -> Pipeline {
        lock(&self.pipeline).clone()
    }
}

/// A filter of a type with the reference's default options.
fn filter_of(id: i32) -> Result<Filter> {
    let filter = u8::try_from(id).ok().and_then(Filter::of_id);
    // Encryption comes with the key.
    filter
        .filter(|filter| *filter != Filter::Aes256Gcm)
        .ok_or_else(|| Failure::new(format!("{id} is no filter type")))
}

/// Options, by their C numbers.
const LEVEL: i32 = 0;
const BIT_WIDTH_MAX_WINDOW: i32 = 1;
const POSITIVE_DELTA_MAX_WINDOW: i32 = 2;
const FLOAT_BYTE_WIDTH: i32 = 3;
const FLOAT_FACTOR: i32 = 4;
const FLOAT_OFFSET: i32 = 5;
const WEBP_QUALITY: i32 = 6;
const WEBP_INPUT_FORMAT: i32 = 7;
const WEBP_LOSSLESS: i32 = 8;
const REINTERPRET: i32 = 9;

fn unknown_option(filter: &Filter) -> Failure {
    let name = filter.name();
    match filter {
        Filter::None
        | Filter::Bitshuffle
        | Filter::Byteshuffle
        | Filter::ChecksumMd5
        | Filter::ChecksumSha256
        | Filter::Xor => Failure::new(format!(
            "[TileDB::Filter] Error: Filter does not support options ({name})"
        )),
        Filter::Gzip { .. }
        | Filter::Zstd { .. }
        | Filter::Lz4 { .. }
        | Filter::Rle { .. }
        | Filter::Bzip2 { .. }
        | Filter::DoubleDelta { .. }
        | Filter::BitWidthReduction { .. }
        | Filter::PositiveDelta { .. }
        | Filter::Aes256Gcm
        | Filter::Dictionary { .. }
        | Filter::FloatScale { .. }
        | Filter::Webp { .. }
        | Filter::Delta { .. } => Failure::new(format!(
            "[TileDB::Filter] Error: {name} filter error; unknown option"
        )),
    }
}

/// Whether a filter has the option to take values as of another type and makes nothing of it: the
/// reference keeps it for every compressor.
fn has_idle_reinterpret(filter: &Filter) -> bool {
    match filter {
        Filter::Gzip { .. }
        | Filter::Zstd { .. }
        | Filter::Lz4 { .. }
        | Filter::Rle { .. }
        | Filter::Bzip2 { .. }
        | Filter::Dictionary { .. } => true,
        Filter::None
        | Filter::Bitshuffle
        | Filter::Byteshuffle
        | Filter::ChecksumMd5
        | Filter::ChecksumSha256
        | Filter::Xor
        | Filter::DoubleDelta { .. }
        | Filter::Delta { .. }
        | Filter::BitWidthReduction { .. }
        | Filter::PositiveDelta { .. }
        | Filter::Aes256Gcm
        | Filter::FloatScale { .. }
        | Filter::Webp { .. } => false,
    }
}

/// A number of the caller's, in the size of its type.
fn number<const N: usize>(value: &Bytes) -> Result<[u8; N]> {
    value
        .get(N)?
        .first_chunk::<N>()
        .copied()
        .ok_or_else(|| Failure::null("option value"))
}

fn set_option(filter: &mut Filter, option: i32, value: &Bytes) -> Result<()> {
    let unknown = unknown_option(filter);
    match (&mut *filter, option) {
        (
            Filter::Gzip { level }
            | Filter::Zstd { level }
            | Filter::Lz4 { level }
            | Filter::Rle { level }
            | Filter::Bzip2 { level }
            | Filter::DoubleDelta { level, .. }
            | Filter::Dictionary { level }
            | Filter::Delta { level, .. },
            LEVEL,
        ) => *level = i32::from_le_bytes(number(value)?),
        (
            Filter::DoubleDelta { reinterpret, .. } | Filter::Delta { reinterpret, .. },
            REINTERPRET,
        ) => {
            let [id] = number(value)?;
            let given = datatype(id.into())?;
            *reinterpret = (given != Datatype::Any).then_some(given);
        }
        (Filter::BitWidthReduction { max_window }, BIT_WIDTH_MAX_WINDOW)
        | (Filter::PositiveDelta { max_window }, POSITIVE_DELTA_MAX_WINDOW) => {
            *max_window = u32::from_le_bytes(number(value)?);
        }
        (Filter::FloatScale { byte_width, .. }, FLOAT_BYTE_WIDTH) => {
            let given = u64::from_le_bytes(number(value)?);
            if ![1, 2, 4, 8].contains(&given) {
                return Err(
                    "[TileDB::Filter] Error: Float scaling filter error; byte width must be 1, 2, 4 or 8"
                        .into(),
                );
            }
            *byte_width = given;
        }
        (Filter::FloatScale { scale, .. }, FLOAT_FACTOR) => *scale = finite(value)?,
        (Filter::FloatScale { offset, .. }, FLOAT_OFFSET) => *offset = finite(value)?,
        (Filter::Webp { quality, .. }, WEBP_QUALITY) => {
            let given = f32::from_le_bytes(number(value)?);
            if !(0.0..=100.0).contains(&given) {
                return Err(
                    "[TileDB::Filter] Error: WebP quality must be between 0 and 100".into(),
                );
            }
            *quality = given;
        }
        (Filter::Webp { input_format, .. }, WEBP_INPUT_FORMAT) => {
            let [given] = number(value)?;
            if given > 4 {
                return Err(Failure::new(format!(
                    "[TileDB::Filter] Error: {given} is no WebP input format"
                )));
            }
            *input_format = given;
        }
        (Filter::Webp { lossless, .. }, WEBP_LOSSLESS) => {
            let [given] = number(value)?;
            *lossless = given != 0;
        }
        _ => return Err(unknown),
    }
    Ok(())
}

fn finite(value: &Bytes) -> Result<f64> {
    let value = f64::from_le_bytes(number(value)?);
    if value.is_finite() {
        Ok(value)
    } else {
        Err("Float scaling filter error; the value is not finite".into())
    }
}

fn get_option(filter: &Filter, option: i32, out: &OutBytes) -> Result<()> {
    match (filter, option) {
        (
            Filter::Gzip { level }
            | Filter::Zstd { level }
            | Filter::Lz4 { level }
            | Filter::Rle { level }
            | Filter::Bzip2 { level }
            | Filter::DoubleDelta { level, .. }
            | Filter::Dictionary { level }
            | Filter::Delta { level, .. },
            LEVEL,
        ) => out.write(&level.to_le_bytes()),
        (
            Filter::DoubleDelta { reinterpret, .. } | Filter::Delta { reinterpret, .. },
            REINTERPRET,
        ) => {
            let id = datatype_id(reinterpret.unwrap_or(Datatype::Any));
            out.write(&[u8::try_from(id).unwrap_or(0)])
        }
        (Filter::BitWidthReduction { max_window }, BIT_WIDTH_MAX_WINDOW)
        | (Filter::PositiveDelta { max_window }, POSITIVE_DELTA_MAX_WINDOW) => {
            out.write(&max_window.to_le_bytes())
        }
        (Filter::FloatScale { byte_width, .. }, FLOAT_BYTE_WIDTH) => {
            out.write(&byte_width.to_le_bytes())
        }
        (Filter::FloatScale { scale, .. }, FLOAT_FACTOR) => out.write(&scale.to_le_bytes()),
        (Filter::FloatScale { offset, .. }, FLOAT_OFFSET) => out.write(&offset.to_le_bytes()),
        (Filter::Webp { quality, .. }, WEBP_QUALITY) => out.write(&quality.to_le_bytes()),
        (Filter::Webp { input_format, .. }, WEBP_INPUT_FORMAT) => out.write(&[*input_format]),
        (Filter::Webp { lossless, .. }, WEBP_LOSSLESS) => out.write(&[u8::from(*lossless)]),
        _ => Err(unknown_option(filter)),
    }
}

/// Filters that take each other's values, the first those of `datatype`; `field` is what they are
/// set on.
pub fn check_types(filters: &Pipeline, datatype: Datatype, field: &str) -> Result<()> {
    for (filter, taken) in filters.with_input_types(datatype) {
        if !filter.accepts_datatype(taken) {
            return Err(Failure::new(format!(
                "Cannot set filters of {field}; filter {} does not accept values of {taken}",
                filter.name()
            )));
        }
    }
    Ok(())
}

capi! {
    /// A filter of a type, with its default options.
    fn tiledb_filter_alloc(ctx, id: i32, filter: Out<Ptr<FilterHandle>>) {
        filter.give(FilterHandle::new(filter_of(id)?))?;
    }

    /// A filter's type.
    fn tiledb_filter_get_type(ctx, filter: In<FilterHandle>, id: Out<i32>) {
        id.set(lock(&filter.get()?.filter).id().into())?;
    }

    /// Sets an option; the value has the option's own type.
    fn tiledb_filter_set_option(ctx, filter: In<FilterHandle>, option: i32, value: Bytes) {
        let handle = filter.get()?;
        let mut filter = lock(&handle.filter);
        if option == REINTERPRET && has_idle_reinterpret(&filter) {
            let [id] = number(&value)?;
            *lock(&handle.reinterpret) = Some(datatype(id.into())?);
            return Ok(());
        }
        set_option(&mut filter, option, &value)?;
    }

    /// Gets an option; the value has the option's own type.
    fn tiledb_filter_get_option(ctx, filter: In<FilterHandle>, option: i32, value: OutBytes) {
        let handle = filter.get()?;
        let filter = lock(&handle.filter);
        if option == REINTERPRET && has_idle_reinterpret(&filter) {
            let given = lock(&handle.reinterpret).unwrap_or(Datatype::Any);
            value.write(&[u8::try_from(datatype_id(given)).unwrap_or(0)])?;
            return Ok(());
        }
        get_option(&filter, option, &value)?;
    }

    /// An empty list.
    fn tiledb_filter_list_alloc(ctx, list: Out<Ptr<FilterList>>) {
        list.give(FilterList::new(Pipeline::default()))?;
    }

    /// Appends a copy of a filter.
    fn tiledb_filter_list_add_filter(ctx, list: In<FilterList>, filter: In<FilterHandle>) {
        let filter = lock(&filter.get()?.filter).clone();
        let mut pipeline = lock(&list.get()?.pipeline);
        if pipeline.filters.len() >= Pipeline::MAX_FILTERS {
            return Err(Failure::new(format!("a filter list has at most {} filters", Pipeline::MAX_FILTERS)));
        }
        pipeline.filters.push(filter);
    }

    /// Sets about how many bytes are filtered at a time.
    fn tiledb_filter_list_set_max_chunk_size(ctx, list: In<FilterList>, size: u32) {
        lock(&list.get()?.pipeline).max_chunk_size = size;
    }

    /// The number of filters.
    fn tiledb_filter_list_get_nfilters(ctx, list: In<FilterList>, num: Out<u32>) {
        num.set(u32::try_from(lock(&list.get()?.pipeline).filters.len()).unwrap_or(u32::MAX))?;
    }

    /// A copy of a filter.
    fn tiledb_filter_list_get_filter_from_index(ctx, list: In<FilterList>, index: u32, filter: Out<Ptr<FilterHandle>>) {
        let pipeline = list.get()?.pipeline();
        let count = pipeline.filters.len();
        let found = pipeline.filters.into_iter().nth(index as usize);
        let found = found.ok_or_else(|| Failure::new(format!("there is no filter {index} in a list of {count}")))?;
        filter.give(FilterHandle::new(found))?;
    }

    /// About how many bytes are filtered at a time.
    fn tiledb_filter_list_get_max_chunk_size(ctx, list: In<FilterList>, size: Out<u32>) {
        size.set(lock(&list.get()?.pipeline).max_chunk_size)?;
    }
}

capi_free! {
    fn tiledb_filter_free(FilterHandle);
    fn tiledb_filter_list_free(FilterList);
}
