//! The metadata of an array, of either version, as one description.

use super::Result;
use super::codec::{BytesCodec, Pipeline, bytes_codecs_v3, compressor_v2, filter_v2};
use super::element::Element;
use crate::error::FileError;
use serde_json::{Map, Value as Json};

/// The most axes.
pub const MOST_AXES: usize = 32;
/// Coordinates that can be counted with room for a tile more.
const MOST_COORDINATES: u64 = 1 << 62;
/// The most chunks of a shard.
const MOST_IN_SHARD: u64 = 1 << 22;

/// An array.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayMetadata {
    /// 2 or 3.
    pub version: u8,
    /// Coordinates along each axis.
    pub shape: Vec<u64>,
    /// Coordinates of a chunk along each axis: of the chunks in shards, where there are some.
    pub chunk: Vec<u64>,
    /// The chunks of shards, if chunks lie in shards.
    pub shard: Option<Shard>,
    /// What it holds.
    pub element: Element,
    /// What cells of missing chunks hold; `None` if it is not said.
    pub fill: Option<Vec<u8>>,
    /// Names of the axes.
    pub dims: Option<Vec<String>>,
    /// Attributes, without what other fields here say.
    pub attributes: Map<String, Json>,
    /// Which axis of a chunk is each axis of the bytes of one.
    pub order: Vec<usize>,
    /// How a chunk's bytes are stored.
    pub pipeline: Pipeline,
    /// The names of chunks.
    pub keys: Keys,
}

/// Chunks that lie in files of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// Chunks along each axis.
    pub chunks: Vec<u64>,
    /// Whether the index is at the end of a file.
    pub index_at_end: bool,
    /// Whether a checksum follows the index.
    pub checked: bool,
}

/// How chunks are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// Whether names begin with `c`.
    pub prefixed: bool,
    /// Between numbers: `.` or `/`.
    pub separator: char,
}

impl Keys {
    /// The name of a chunk (or shard) by its place along the axes.
    pub fn name(self, place: &[u64]) -> String {
        let mut name = String::new();
        if self.prefixed {
            name.push('c');
        }
        for (at, number) in place.iter().enumerate() {
            if at > 0 || self.prefixed {
                name.push(self.separator);
            }
            name.push_str(&number.to_string());
        }
        if place.is_empty() && !self.prefixed {
            name.push('0');
        }
        name
    }

    /// The place along so many axes that a name is of, if it is one.
    pub fn place(self, name: &str, axes: usize) -> Option<Vec<u64>> {
        let numbers = match self.prefixed {
            true => name.strip_prefix('c')?.trim_start_matches(self.separator),
            false => name,
        };
        let place: Vec<u64> = match axes {
            0 => Vec::new(),
            _ => {
                let numbers = numbers.split(self.separator);
                let numbers: Option<_> = numbers.map(|number| number.parse().ok()).collect();
                numbers?
            }
        };
        (place.len() == axes && self.name(&place) == name).then_some(place)
    }
}

/// What lies under a key; null if there is nothing.
pub fn member_of<'a>(json: &'a Json, key: &str) -> &'a Json {
    json.get(key).unwrap_or(&Json::Null)
}

fn lengths(json: &Json, what: &str) -> Result<Vec<u64>> {
    let items = json.as_array().map(|items| items.iter().map(Json::as_u64));
    items
        .and_then(Iterator::collect::<Option<Vec<u64>>>)
        .filter(|items| items.len() <= MOST_AXES)
        .ok_or_else(|| FileError::new(format!("{what} is no list of at most {MOST_AXES} lengths")))
}

/// Checks what the rest counts on: cells of a chunk and of an array can be counted.
fn check(shape: &[u64], chunk: &[u64]) -> Result<()> {
    if shape.len() != chunk.len() {
        return Err(FileError::new(
            "shape and chunks have different numbers of axes",
        ));
    }
    if chunk.contains(&0) {
        return Err(FileError::new("a chunk has no cells"));
    }
    let countable = |lengths: &[u64]| {
        let cells = lengths
            .iter()
            .try_fold(1u64, |cells, n| cells.checked_mul((*n).max(1)));
        cells.is_some_and(|cells| cells < MOST_COORDINATES)
    };
    match countable(shape) && countable(chunk) {
        true => Ok(()),
        false => Err(FileError::new("it has more cells than can be counted")),
    }
}

fn fill_of(element: Element, json: &Json) -> Result<Option<Vec<u8>>> {
    if json.is_null() {
        return Ok(None);
    }
    match element.value(json) {
        Some(value) => Ok(Some(value)),
        None => Err(FileError::new(format!(
            "the fill value {json} is none of the type of its elements"
        ))),
    }
}

/// Names of axes, if there are names for all.
fn names(json: &Json, axes: usize) -> Option<Vec<String>> {
    let names = json.as_array()?.iter().map(|name| name.as_str());
    let names: Option<Vec<String>> = names.map(|name| name.map(str::to_owned)).collect();
    names.filter(|names| names.len() == axes)
}

impl ArrayMetadata {
    /// Reads `.zarray`, beside which `attributes` lay.
    pub fn of_v2(json: &Json, mut attributes: Map<String, Json>) -> Result<Self> {
        if member_of(json, "zarr_format").as_u64() != Some(2) {
            return Err(FileError::new(".zarray is not of version 2"));
        }
        let shape = lengths(member_of(json, "shape"), "shape")?;
        let chunk = lengths(member_of(json, "chunks"), "chunks")?;
        check(&shape, &chunk)?;
        let filters = match member_of(json, "filters") {
            Json::Null => &[][..],
            Json::Array(filters) => filters.as_slice(),
            _ => return Err(FileError::new("filters is no list")),
        };
        let id = |json: &Json| {
            member_of(json, "id")
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let mut objects = None;
        let mut codecs = Vec::new();
        for (at, filter) in filters.iter().enumerate() {
            match id(filter).as_str() {
                name @ ("vlen-utf8" | "vlen-bytes") if at == 0 => objects = Some(name.to_owned()),
                _ => codecs.push(filter_v2(filter)?),
            }
        }
        let compressor = member_of(json, "compressor");
        if !compressor.is_null() {
            codecs.push(compressor_v2(compressor)?);
        }
        let element = Element::of_v2(member_of(json, "dtype"), objects.as_deref())?;
        let axes = 0..shape.len();
        let order = match member_of(json, "order").as_str() {
            Some("F") => axes.rev().collect(),
            Some("C") | None => axes.collect(),
            Some(other) => return Err(FileError::new(format!("order {other:?} is not known"))),
        };
        let separator = match member_of(json, "dimension_separator").as_str() {
            None | Some(".") => '.',
            Some("/") => '/',
            Some(other) => {
                return Err(FileError::new(format!(
                    "dimension_separator {other:?} is not known"
                )));
            }
        };
        let dims = attributes.remove("_ARRAY_DIMENSIONS");
        Ok(Self {
            version: 2,
            dims: dims.and_then(|dims| names(&dims, shape.len())),
            shape,
            chunk,
            shard: None,
            element,
            fill: fill_of(element, member_of(json, "fill_value"))?,
            attributes,
            order,
            pipeline: Pipeline { codecs },
            keys: Keys {
                prefixed: false,
                separator,
            },
        })
    }

    /// Reads `zarr.json` of an array with these attributes.
    pub fn of_v3(json: &Json, attributes: Map<String, Json>) -> Result<Self> {
        let shape = lengths(member_of(json, "shape"), "shape")?;
        let grid = member_of(json, "chunk_grid");
        if member_of(grid, "name").as_str() != Some("regular") {
            let name = member_of(grid, "name");
            return Err(FileError::new(format!(
                "a chunk grid {name} is not supported"
            )));
        }
        let configuration = member_of(grid, "configuration");
        let chunk = lengths(member_of(configuration, "chunk_shape"), "chunk_shape")?;
        check(&shape, &chunk)?;
        if let Some(Json::Array(transformers)) = json.get("storage_transformers")
            && !transformers.is_empty()
        {
            return Err(FileError::new("storage transformers are not supported"));
        }
        for (key, value) in json.as_object().into_iter().flatten() {
            let known = [
                "zarr_format",
                "node_type",
                "shape",
                "data_type",
                "chunk_grid",
                "chunk_key_encoding",
                "fill_value",
                "codecs",
                "attributes",
                "dimension_names",
                "storage_transformers",
                "consolidated_metadata",
            ];
            let ignorable = member_of(value, "must_understand").as_bool() == Some(false);
            if !known.contains(&key.as_str()) && !ignorable {
                return Err(FileError::new(format!(
                    "zarr.json says {key:?}, which is not supported"
                )));
            }
        }
        let mut element = Element::of_v3(member_of(json, "data_type"))?;
        let fill = fill_of(element, member_of(json, "fill_value"))?;
        let codecs = member_of(json, "codecs").as_array();
        let codecs = codecs.ok_or_else(|| FileError::new("there is no list of codecs"))?;
        let whole = Chain::read(codecs, shape.len(), &mut element)?;
        let (inner, chunk, shard) = match whole {
            Chain::Plain { order, pipeline } => ((order, pipeline), chunk, None),
            Chain::Sharded { configuration } => {
                let (inner, small, shard) = sharded(configuration, &chunk, &mut element)?;
                (inner, small, Some(shard))
            }
        };
        let (order, pipeline) = inner;
        let encoding = member_of(json, "chunk_key_encoding");
        let (name, encoding) = match encoding {
            Json::String(name) => (name.as_str(), &Json::Null),
            encoding => (
                member_of(encoding, "name").as_str().unwrap_or_default(),
                member_of(encoding, "configuration"),
            ),
        };
        let prefixed = match name {
            "default" => true,
            "v2" => false,
            _ => {
                return Err(FileError::new(format!(
                    "chunk key encoding {name:?} is not supported"
                )));
            }
        };
        let separator = match (member_of(encoding, "separator").as_str(), prefixed) {
            (Some("/"), _) | (None, true) => '/',
            (Some("."), _) | (None, false) => '.',
            (Some(other), _) => {
                return Err(FileError::new(format!("separator {other:?} is not known")));
            }
        };
        Ok(Self {
            version: 3,
            dims: names(member_of(json, "dimension_names"), shape.len()),
            shape,
            chunk,
            shard,
            element,
            fill,
            attributes,
            order,
            pipeline,
            keys: Keys {
                prefixed,
                separator,
            },
        })
    }

    /// The cells of a chunk.
    pub fn chunk_cells(&self) -> u64 {
        self.chunk.iter().product()
    }

    /// Chunks along each axis; one for each, of arrays without cells none.
    pub fn chunk_counts(&self) -> Vec<u64> {
        let axes = self.shape.iter().zip(&self.chunk);
        axes.map(|(size, chunk)| size.div_ceil(*chunk)).collect()
    }
}

/// A list of codecs of version 3.
enum Chain<'a> {
    Plain {
        order: Vec<usize>,
        pipeline: Pipeline,
    },
    Sharded {
        configuration: &'a Json,
    },
}

impl<'a> Chain<'a> {
    fn read(codecs: &'a [Json], axes: usize, element: &mut Element) -> Result<Self> {
        let mut order: Vec<usize> = (0..axes).collect();
        let mut transposed = false;
        for (at, codec) in codecs.iter().enumerate() {
            let (name, configuration) = named(codec);
            match name {
                "transpose" => {
                    let wished =
                        lengths(member_of(configuration, "order"), "the transpose's order")?;
                    let mut next = Vec::new();
                    for axis in &wished {
                        let axis = usize::try_from(*axis).ok().and_then(|a| order.get(a));
                        next.extend(axis);
                    }
                    let mut sorted = next.clone();
                    sorted.sort_unstable();
                    if sorted != (0..axes).collect::<Vec<_>>() {
                        return Err(FileError::new("the transpose's order is none of the axes"));
                    }
                    order = next;
                    transposed = true;
                }
                "bytes" => {
                    if element.size == 0 {
                        return Err(FileError::new(
                            "text cannot be stored by the codec \"bytes\"",
                        ));
                    }
                    match member_of(configuration, "endian").as_str() {
                        Some("big") => element.swap_bytes(),
                        Some("little") | None => {}
                        Some(other) => {
                            return Err(FileError::new(format!("endian {other:?} is not known")));
                        }
                    }
                    let codecs = bytes_codecs_v3(&codecs[at + 1..])?;
                    let pipeline = Pipeline { codecs };
                    return Ok(Self::Plain { order, pipeline });
                }
                "vlen-utf8" | "vlen-bytes" => {
                    if element.size != 0 {
                        return Err(FileError::new(format!("{name} stores no such elements")));
                    }
                    let codecs = bytes_codecs_v3(&codecs[at + 1..])?;
                    let pipeline = Pipeline { codecs };
                    return Ok(Self::Plain { order, pipeline });
                }
                "sharding_indexed" => {
                    if transposed || at + 1 < codecs.len() {
                        return Err(FileError::new("codecs around shards are not supported"));
                    }
                    return Ok(Self::Sharded { configuration });
                }
                _ => {
                    return Err(FileError::new(format!(
                        "the codec {name:?} is not supported"
                    )));
                }
            }
        }
        Err(FileError::new("no codec turns elements into bytes"))
    }
}

type Inner = (Vec<usize>, Pipeline);

/// How chunks lie in shards of this shape.
fn sharded(
    configuration: &Json,
    outer: &[u64],
    element: &mut Element,
) -> Result<(Inner, Vec<u64>, Shard)> {
    let small = lengths(
        member_of(configuration, "chunk_shape"),
        "chunk_shape of shards",
    )?;
    check(outer, &small)?;
    if outer
        .iter()
        .zip(&small)
        .any(|(outer, small)| outer % small != 0)
    {
        return Err(FileError::new("chunks do not fill their shard"));
    }
    let chunks: Vec<u64> = outer.iter().zip(&small).map(|(o, s)| o / s).collect();
    if chunks.iter().product::<u64>() > MOST_IN_SHARD {
        return Err(FileError::new("a shard has too many chunks"));
    }
    let codecs = member_of(configuration, "codecs").as_array();
    let codecs = codecs.ok_or_else(|| FileError::new("a shard has no codecs"))?;
    let Chain::Plain { order, pipeline } = Chain::read(codecs, outer.len(), element)? else {
        return Err(FileError::new("shards in shards are not supported"));
    };
    let index = member_of(configuration, "index_codecs").as_array();
    let index = index.ok_or_else(|| FileError::new("a shard has no codecs of its index"))?;
    let unknown = || FileError::new("the codecs of a shard's index are not supported");
    let (bytes, rest) = index.split_first().ok_or_else(unknown)?;
    let (name, own) = named(bytes);
    if name != "bytes" || member_of(own, "endian").as_str() == Some("big") {
        return Err(unknown());
    }
    let checked = match &bytes_codecs_v3(rest)?[..] {
        [] => false,
        [BytesCodec::Crc32c] => true,
        _ => return Err(unknown()),
    };
    let index_at_end = match member_of(configuration, "index_location").as_str() {
        None | Some("end") => true,
        Some("start") => false,
        Some(other) => {
            return Err(FileError::new(format!(
                "index_location {other:?} is not known"
            )));
        }
    };
    let shard = Shard {
        chunks,
        index_at_end,
        checked,
    };
    Ok(((order, pipeline), small, shard))
}

/// The name and the configuration of a codec.
pub fn named(codec: &Json) -> (&str, &Json) {
    match codec {
        Json::String(name) => (name, &Json::Null),
        codec => (
            member_of(codec, "name").as_str().unwrap_or_default(),
            member_of(codec, "configuration"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn array(shape: &Json, chunk: &Json, codecs: &Json) -> Result<ArrayMetadata> {
        let json = json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "int16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": codecs,
        });
        ArrayMetadata::of_v3(&json, Map::new())
    }

    #[test]
    fn transposes_add_up() {
        let codecs = json!([
            {"name": "transpose", "configuration": {"order": [1, 2, 0]}},
            {"name": "transpose", "configuration": {"order": [1, 0, 2]}},
            {"name": "bytes", "configuration": {"endian": "big"}},
        ]);
        let array = array(&json!([4, 5, 6]), &json!([1, 2, 3]), &codecs).unwrap();
        assert_eq!(array.order, [2, 1, 0]);
        assert_eq!(array.element.swap, 2);
        assert_eq!(array.chunk_counts(), [4, 3, 2]);
    }

    #[test]
    fn absurd_metadata_is_refused() {
        let bytes = json!([{"name": "bytes"}]);
        let says = |shape: Json, chunk: Json, codecs: &Json, words: &str| {
            let error = array(&shape, &chunk, codecs).unwrap_err();
            assert!(error.0.contains(words), "{error:?}");
        };
        says(json!([u64::MAX, 2]), json!([1, 1]), &bytes, "counted");
        says(json!([2]), json!([0]), &bytes, "no cells");
        says(json!([2]), json!([1, 1]), &bytes, "axes");
        says(json!([-2]), json!([1]), &bytes, "lengths");
        says(json!([2]), json!([1]), &json!([]), "no codec");
        says(json!([2]), json!([1]), &json!([{"name": "zfp"}]), "zfp");
        says(
            json!([2]),
            json!([1]),
            &json!([{"name": "bytes"}, {"name": "pcodec"}]),
            "pcodec",
        );
        let order =
            json!([{"name": "transpose", "configuration": {"order": [1, 1]}}, {"name": "bytes"}]);
        says(json!([2, 2]), json!([1, 1]), &order, "transpose");
        let shard = |small: &Json| {
            json!([{"name": "sharding_indexed", "configuration": {
                "chunk_shape": small, "codecs": [{"name": "bytes"}], "index_codecs": [{"name": "bytes"}],
            }}])
        };
        says(json!([8]), json!([4]), &shard(&json!([3])), "fill");
        says(
            json!([1u64 << 40]),
            json!([1u64 << 40]),
            &shard(&json!([1])),
            "too many",
        );
        let sharded = array(&json!([8]), &json!([4]), &shard(&json!([2]))).unwrap();
        assert_eq!(
            (sharded.chunk, sharded.shard.unwrap().chunks),
            (vec![2], vec![2])
        );
    }

    #[test]
    fn chunks_have_names() {
        let name = |prefixed, separator, place: &[u64]| {
            Keys {
                prefixed,
                separator,
            }
            .name(place)
        };
        assert_eq!(name(true, '/', &[1, 2]), "c/1/2");
        assert_eq!(name(true, '.', &[1]), "c.1");
        assert_eq!(name(false, '.', &[1, 2]), "1.2");
        assert_eq!(
            (name(true, '/', &[]), name(false, '.', &[])),
            ("c".to_owned(), "0".to_owned())
        );
    }
}
