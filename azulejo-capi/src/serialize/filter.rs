//! Filters.

use super::rest_capnp::{filter, filter_pipeline};
use super::words::count;
use crate::error::{Failure, Result};
use azulejo_format::Datatype;
use azulejo_format::filter::{Filter, Pipeline};

/// Writes a pipeline.
pub fn write_pipeline(pipeline: &Pipeline, to: filter_pipeline::Builder<'_>) -> Result<()> {
    if pipeline.filters.is_empty() {
        return Ok(());
    }
    let mut list = to.init_filters(count(&pipeline.filters)?);
    for (index, filter) in (0u32..).zip(&pipeline.filters) {
        write_filter(filter, list.reborrow().get(index));
    }
    Ok(())
}

fn write_filter(from: &Filter, mut to: filter::Builder<'_>) {
    to.set_type(from.name());
    match from {
        Filter::Gzip { level }
        | Filter::Zstd { level }
        | Filter::Lz4 { level }
        | Filter::Rle { level }
        | Filter::Bzip2 { level }
        | Filter::Dictionary { level } => to.init_data().set_int32(*level),
        Filter::BitWidthReduction { max_window } | Filter::PositiveDelta { max_window } => {
            to.init_data().set_uint32(*max_window);
        }
        Filter::Delta { reinterpret, .. } | Filter::DoubleDelta { reinterpret, .. } => {
            let datatype = reinterpret.unwrap_or(Datatype::Any);
            to.init_data().set_uint8(datatype.id());
        }
        Filter::FloatScale {
            scale,
            offset,
            byte_width,
        } => {
            let mut options = to.init_float_scale_config();
            options.set_scale(*scale);
            options.set_offset(*offset);
            options.set_byte_width(*byte_width);
        }
        Filter::Webp {
            quality,
            input_format,
            lossless,
            y_extent,
            x_extent,
        } => {
            let mut options = to.init_webp_config();
            options.set_quality(*quality);
            options.set_format(*input_format);
            options.set_lossless(*lossless);
            options.set_extent_x(*x_extent);
            options.set_extent_y(*y_extent);
        }
        Filter::None
        | Filter::Bitshuffle
        | Filter::Byteshuffle
        | Filter::Aes256Gcm
        | Filter::ChecksumMd5
        | Filter::ChecksumSha256
        | Filter::Xor => {}
    }
}

/// Reads a pipeline.
pub fn read_pipeline(from: filter_pipeline::Reader<'_>) -> Result<Pipeline> {
    let mut pipeline = Pipeline::default();
    if !from.has_filters() {
        return Ok(pipeline);
    }
    let list = from.get_filters()?;
    if list.len() as usize > Pipeline::MAX_FILTERS {
        return Err("Cannot deserialize; a pipeline has too many filters".into());
    }
    for filter in list {
        pipeline.filters.push(read_filter(filter)?);
    }
    Ok(pipeline)
}

fn read_filter(from: filter::Reader<'_>) -> Result<Filter> {
    use filter::data::Which;
    let name = from.get_type()?.to_str()?;
    let found = Filter::ALL.into_iter().find(|f| f.name() == name);
    let mut to = found
        .ok_or_else(|| Failure::new(format!("Cannot deserialize; {name:?} is no filter type")))?;
    let data = from.get_data().which();
    match &mut to {
        Filter::Gzip { level }
        | Filter::Zstd { level }
        | Filter::Lz4 { level }
        | Filter::Rle { level }
        | Filter::Bzip2 { level }
        | Filter::Dictionary { level } => {
            *level = if let Ok(Which::Int32(level)) = data {
                level
            } else {
                0
            };
        }
        Filter::BitWidthReduction { max_window } | Filter::PositiveDelta { max_window } => {
            *max_window = if let Ok(Which::Uint32(window)) = data {
                window
            } else {
                0
            };
        }
        Filter::Delta { reinterpret, .. } | Filter::DoubleDelta { reinterpret, .. } => {
            let id = if let Ok(Which::Uint8(id)) = data {
                id
            } else {
                Datatype::Any.id()
            };
            let datatype = crate::enums::datatype(id.into())?;
            *reinterpret = (datatype != Datatype::Any).then_some(datatype);
        }
        Filter::FloatScale {
            scale,
            offset,
            byte_width,
        } if from.has_float_scale_config() => {
            let options = from.get_float_scale_config()?;
            (*scale, *offset) = (options.get_scale(), options.get_offset());
            *byte_width = options.get_byte_width();
        }
        Filter::Webp {
            quality,
            input_format,
            lossless,
            y_extent,
            x_extent,
        } if from.has_webp_config() => {
            let options = from.get_webp_config()?;
            (*quality, *input_format) = (options.get_quality(), options.get_format());
            *lossless = options.get_lossless();
            (*y_extent, *x_extent) = (options.get_extent_y(), options.get_extent_x());
        }
        // Options that a message leaves out stay as they are.
        Filter::FloatScale { .. }
        | Filter::Webp { .. }
        | Filter::None
        | Filter::Bitshuffle
        | Filter::Byteshuffle
        | Filter::Aes256Gcm
        | Filter::ChecksumMd5
        | Filter::ChecksumSha256
        | Filter::Xor => {}
    }
    Ok(to)
}
