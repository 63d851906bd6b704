//! What JavaScript opens: sources, arrays, groups.

use crate::cancel::Cancel;
use crate::describe;
use crate::failure::to_js;
use crate::host::{HostStorage, Source};
use crate::reading::{Reading, promise};
use crate::request::Request;
use azulejo::format::filter::EncryptionKey;
use azulejo::format::fragment::Section;
use azulejo::read::aggregate::Aggregate;
use azulejo::storage::Uri;
use azulejo::{Array, Config, Context, Error, ReadOptions, Result, TimeRange};
use js_sys::Promise;
use std::sync::Arc;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(text: &str);
}

/// Says what a panic was, which is a bug: the module is of no use afterwards.
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(|panic| {
        console_error(&format!("azulejo: internal error: {panic}"));
    }));
}

/// A source of bytes, and what is known of it.
#[wasm_bindgen]
pub struct Session {
    context: Context,
}

#[wasm_bindgen]
impl Session {
    /// The arrays of a source below `root`: the URL of a server, or `local://`. A query holds at
    /// most `memory` bytes, and as many as `cache` of what never changes stay for the next ones.
    ///
    /// # Errors
    /// A key that is none, a root that is no URI.
    #[wasm_bindgen(constructor)]
    pub fn new(
        source: Source,
        root: &str,
        key: Option<Vec<u8>>,
        memory: f64,
        cache: f64,
    ) -> Result<Session, JsValue> {
        connect(source, root, key, memory, cache).map_err(|error| to_js(&error))
    }

    /// Opens an array as a promise of an [`OpenArray`]; times in milliseconds since 1970.
    #[wasm_bindgen(unchecked_return_type = "Promise<OpenArray>")]
    pub fn array(
        &self,
        uri: &str,
        start: Option<f64>,
        end: Option<f64>,
        cancel: &Cancel,
    ) -> Promise {
        let (place, cancel) = (self.context.array(uri), cancel.clone());
        promise(async move {
            let time = time_range(start, end);
            let array = cancel.unless(place.open_at_async(time)).await?;
            Ok(OpenArray { array }.into())
        })
    }

    /// Opens a group as a promise of its description, with its key-values.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn group(
        &self,
        uri: &str,
        start: Option<f64>,
        end: Option<f64>,
        cancel: &Cancel,
    ) -> Promise {
        let (place, cancel) = (self.context.group(uri), cancel.clone());
        promise(async move {
            let time = time_range(start, end);
            let work = async {
                let group = place.open_at_async(time).await?;
                let metadata = group.metadata_async().await?;
                let mut described = describe::group(&group);
                described["metadata"] = describe::metadata(&metadata);
                Ok(described)
            };
            Ok(describe::text(cancel.unless(work).await?).into())
        })
    }
}

#[wasm_bindgen]
impl Session {
    /// The named snapshots of an array or group, as a promise of JSON.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn snapshots(&self, uri: &str, cancel: &Cancel) -> Promise {
        let (place, cancel) = (self.context.object(uri), cancel.clone());
        promise(async move {
            let snapshots = cancel.unless(place.snapshots_async()).await?;
            Ok(describe::text(describe::snapshots(&snapshots)).into())
        })
    }
}

fn connect(
    source: Source,
    root: &str,
    key: Option<Vec<u8>>,
    memory: f64,
    cache: f64,
) -> Result<Session> {
    let key = key.map(|key| EncryptionKey::from_slice(&key));
    let key = key
        .transpose()
        .map_err(|e| Error::InvalidArgument(e.to_string()))?;
    // Numbers of JavaScript's are cut to what fits.
    let config = Config::new()
        .memory_budget((memory as u64).max(1 << 20))
        .tile_cache(cache as u64)
        .threads(1);
    let storage = Arc::new(HostStorage::new(source));
    let context = Context::new(config, key)?;
    let context = match Uri::parse(root)? {
        root @ Uri::Object(_) => context.with_storage_at(&root, storage)?,
        root => {
            let scheme = root.path().scheme().to_owned();
            context.with_scheme(&scheme, storage)?
        }
    };
    Ok(Session { context })
}

fn time_range(start: Option<f64>, end: Option<f64>) -> TimeRange {
    TimeRange {
        start: start.map_or(0, |t| t as u64),
        end: end.map_or(u64::MAX, |t| t as u64),
    }
}

/// An open array.
#[wasm_bindgen]
pub struct OpenArray {
    array: Array,
}

#[wasm_bindgen]
impl OpenArray {
    /// Schema, time, fragments as JSON.
    ///
    /// # Errors
    /// A schema that cannot be shown.
    pub fn describe(&self) -> Result<String, JsValue> {
        let described = describe::array(&self.array);
        Ok(describe::text(described.map_err(|error| to_js(&error))?))
    }

    /// Key-values, as a promise of JSON.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn metadata(&self, cancel: &Cancel) -> Promise {
        let (array, cancel) = (self.array.clone(), cancel.clone());
        promise(async move {
            let metadata = cancel.unless(array.metadata_async()).await?;
            Ok(describe::text(describe::metadata(metadata)).into())
        })
    }

    /// The values of an enumeration, as a promise of JSON.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn enumeration(&self, name: String, cancel: &Cancel) -> Promise {
        let (array, cancel) = (self.array.clone(), cancel.clone());
        promise(async move {
            let names = [name.as_str()];
            let loaded = cancel.unless(array.load_enumerations_async(&names)).await?;
            let loaded = loaded.first().map(|e| describe::enumeration(e));
            Ok(describe::text(loaded.unwrap_or_default()).into())
        })
    }

    /// The boxes around the tiles of a sparse fragment, as a promise of JSON.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn boxes(&self, fragment: usize, cancel: &Cancel) -> Promise {
        let (array, cancel) = (self.array.clone(), cancel.clone());
        promise(async move {
            let info = array.fragment_info();
            let Some(described) = info.fragment(fragment) else {
                let text = format!("there is no fragment {fragment}");
                return Err(Error::InvalidArgument(text));
            };
            let mut all = array.fragments().iter();
            let at = all.position(|other| other.name() == described.name());
            let wanted: Vec<_> = at
                .filter(|_| !described.is_dense())
                .map(|at| (at, Section::RTree))
                .into_iter()
                .collect();
            cancel.unless(array.preload_async(&wanted)).await?;
            Ok(describe::text(describe::boxes(&described)?).into())
        })
    }

    /// Starts a read, as a promise of a [`Reading`].
    #[wasm_bindgen(unchecked_return_type = "Promise<Reading>")]
    pub fn read(&self, request: String, cancel: &Cancel) -> Promise {
        let (array, cancel) = (self.array.clone(), cancel.clone());
        promise(async move {
            let options = cancel.unless(options(&array, &request)).await?;
            Ok(Reading::new(array.read_stream(options)).into())
        })
    }

    /// Number of coordinates that a request selects along each dimension of a dense array.
    ///
    /// # Errors
    /// A selection that the array does not have.
    pub fn shape(&self, request: &str) -> Result<Vec<f64>, JsValue> {
        let shape = Request::parse(request).and_then(|request| request.shape(&self.array));
        let shape = shape.map_err(|error| to_js(&error))?;
        Ok(shape.into_iter().map(|n| n as f64).collect())
    }

    /// Reads all of a result, of at most `limit` bytes, as an Arrow IPC stream: a promise of bytes.
    #[cfg(feature = "arrow")]
    #[wasm_bindgen(unchecked_return_type = "Promise<Uint8Array>")]
    pub fn arrow(&self, request: String, raw: bool, limit: f64, cancel: &Cancel) -> Promise {
        let (array, cancel) = (self.array.clone(), cancel.clone());
        promise(async move {
            let limit = limit as u64;
            let work = async {
                let options = options(&array, &request).await?;
                crate::reading::arrow(array.read_stream(options), raw, limit).await
            };
            let bytes = cancel.unless(work).await?;
            Ok(js_sys::Uint8Array::from(&bytes[..]).into())
        })
    }

    /// Computes aggregates, each written like `sum:a`: a promise of a JSON list.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn aggregate(&self, request: String, wanted: Vec<String>, cancel: &Cancel) -> Promise {
        let (array, cancel) = (self.array.clone(), cancel.clone());
        promise(async move {
            let parsed = wanted.iter().map(|text| text.parse());
            let wanted: Vec<Aggregate> = parsed.collect::<Result<_>>()?;
            let work = async {
                let options = options(&array, &request).await?;
                array.aggregate_async(options, &wanted).await
            };
            let values = cancel.unless(work).await?;
            let values = values.iter().map(describe::aggregate).collect();
            Ok(describe::text(values).into())
        })
    }
}

/// The options of a request, for which enumerations are loaded if it has a condition.
async fn options(array: &Array, request: &str) -> Result<ReadOptions> {
    let request = Request::parse(request)?;
    if request.has_condition() {
        let names = array.schema().enumerations.iter();
        let names: Vec<&str> = names.map(|e| e.name.as_str()).collect();
        array.load_enumerations_async(&names).await?;
    }
    request.options(array)
}
