//! A storage whose bytes JavaScript brings: `fetch`, files that a user has chosen, memory.

use crate::failure::from_js;
use azulejo::storage::{
    Entry, Pending, PendingList, PendingRead, PendingTails, ReadRange, ReadRequest, Storage,
    StorePath, Tail, Upload,
};
use azulejo::{Error, Result};
use bytes::Bytes;
use js_sys::{Array, Promise, Reflect, Uint8Array};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};

#[wasm_bindgen]
extern "C" {
    /// Where bytes come from; `js/sources.js` says what each method is given and gives.
    pub type Source;

    #[wasm_bindgen(method, catch)]
    fn read(this: &Source, requests: &Array, signal: &JsValue) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn tails(
        this: &Source,
        paths: &Array,
        length: f64,
        signal: &JsValue,
    ) -> Result<Promise, JsValue>;

    /// Says that answers were copied; sources of one's own need not have it.
    #[wasm_bindgen(method, catch)]
    fn release(this: &Source, answers: &JsValue) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch)]
    fn list(this: &Source, paths: &Array, signal: &JsValue) -> Result<Promise, JsValue>;

    type AbortController;

    #[wasm_bindgen(constructor)]
    fn new() -> AbortController;

    #[wasm_bindgen(method, getter)]
    fn signal(this: &AbortController) -> JsValue;

    #[wasm_bindgen(method)]
    fn abort(this: &AbortController);
}

thread_local! {
    /// JavaScript's values belong to their thread; the engine's storages may go to others, and know
    /// theirs by numbers.
    static VALUES: RefCell<Values> = RefCell::default();
}

#[derive(Default)]
struct Values {
    last: u64,
    sources: HashMap<u64, JsValue>,
    under_way: HashMap<u64, AbortController>,
}

impl Values {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

/// The storage before a [`Source`].
#[derive(Debug)]
pub(crate) struct HostStorage {
    source: u64,
}

/// A request under way, which is aborted when this is dropped.
struct UnderWay(u64);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let controller = VALUES.with_borrow_mut(|values| values.under_way.remove(&self.0));
        if let Some(controller) = controller {
            controller.abort();
        }
    }
}

impl Drop for HostStorage {
    fn drop(&mut self) {
        VALUES.with_borrow_mut(|values| values.sources.remove(&self.source));
    }
}

impl HostStorage {
    pub(crate) fn new(source: Source) -> Self {
        let source = VALUES.with_borrow_mut(|values| {
            let id = values.next();
            values.sources.insert(id, source.into());
            id
        });
        Self { source }
    }

    /// Asks the source for something, and turns its answer into `T` when it comes.
    fn ask<T: Send + 'static>(
        &self,
        op: &'static str,
        ask: impl FnOnce(&Source, &JsValue) -> Result<Promise, JsValue>,
        take: impl FnOnce(JsValue) -> Result<T> + 'static,
    ) -> Pending<T> {
        let source = VALUES.with_borrow(|values| values.sources.get(&self.source).cloned());
        let Some(source) = source else {
            let error = Error::Internal("a source that is gone was asked".into());
            return Pending::ready(Err(error));
        };
        let controller = AbortController::new();
        let promise = match ask(source.unchecked_ref(), &controller.signal()) {
            Ok(promise) => promise,
            Err(thrown) => return Pending::ready(Err(from_js(op, &thrown))),
        };
        let under_way = VALUES.with_borrow_mut(|values| {
            let id = values.next();
            values.under_way.insert(id, controller);
            UnderWay(id)
        });
        let (answer, pending) = Pending::channel();
        spawn_local(async move {
            let result = match JsFuture::from(promise).await {
                Ok(value) => {
                    let taken = take(value.clone());
                    // A source that has no use for it has no such method.
                    let _ = source.unchecked_ref::<Source>().release(&value);
                    taken
                }
                Err(thrown) => Err(from_js(op, &thrown)),
            };
            answer.send(result);
        });
        pending.with_guard(under_way)
    }
}

/// The path as sources know it: a URL where there is one, else a path from the source's root.
fn path_text(path: &StorePath) -> JsValue {
    match path.object_parts() {
        Some(_) => path.to_string().into(),
        None => path.as_str().into(),
    }
}

fn paths(all: &[StorePath]) -> Array {
    all.iter().map(path_text).collect()
}

/// `[path, start, end, limit]`, where there are such.
fn request(request: &ReadRequest) -> JsValue {
    let path = path_text(&request.path);
    let number = |n: u64| JsValue::from_f64(n as f64);
    match &request.range {
        ReadRange::All => Array::of1(&path),
        ReadRange::AtMost(limit) => Array::of4(
            &path,
            &JsValue::UNDEFINED,
            &JsValue::UNDEFINED,
            &number(*limit),
        ),
        ReadRange::Bytes(range) => Array::of3(&path, &number(range.start), &number(range.end)),
    }
    .into()
}

fn odd(what: &str) -> Error {
    Error::Internal(format!("a source gave {what}"))
}

fn array(value: JsValue, len: usize) -> Result<Array> {
    let values: Array = value.dyn_into().map_err(|_| odd("no list"))?;
    match values.length() as usize == len {
        true => Ok(values),
        false => Err(odd("another number of answers than it was asked for")),
    }
}

fn bytes(value: &JsValue) -> Result<Bytes> {
    let bytes: &Uint8Array = value.dyn_ref().ok_or_else(|| odd("no bytes"))?;
    Ok(Bytes::from(bytes.to_vec()))
}

/// The bytes of a request, if they are as many as it asks for.
fn checked(request: &ReadRequest, value: &JsValue) -> Result<Bytes> {
    let bytes = bytes(value)?;
    if let ReadRange::AtMost(_) = request.range {
        request.range.within(&request.path, bytes.len() as u64)?;
    }
    let need = request.range.known_len();
    if matches!(request.range, ReadRange::Bytes(_)) && bytes.len() as u64 != need {
        let text = format!("{} bytes came where {need} were asked for", bytes.len());
        return Err(Error::Storage {
            op: "read",
            uri: request.path.to_string(),
            source: io::Error::new(io::ErrorKind::UnexpectedEof, text),
        });
    }
    Ok(bytes)
}

fn tail(value: &JsValue) -> Result<Tail> {
    let pair: &Array = value.dyn_ref().ok_or_else(|| odd("no pair"))?;
    let size = pair.get(1).as_f64().ok_or_else(|| odd("no size"))?;
    Ok(Tail {
        bytes: bytes(&pair.get(0))?,
        object_size: size as u64,
    })
}

/// Entries `{name, isDir, size}`.
fn entries(value: JsValue) -> Result<Vec<Entry>> {
    let listed: Array = value.dyn_into().map_err(|_| odd("no listing"))?;
    let entry = |value: JsValue| {
        let get = |name: &str| Reflect::get(&value, &name.into()).ok();
        let name = get("name").and_then(|name| name.as_string());
        let is_dir = get("isDir").is_some_and(|is_dir| is_dir.is_truthy());
        let size = get("size").and_then(|size| size.as_f64());
        Ok(Entry {
            name: name.ok_or_else(|| odd("an entry without a name"))?,
            is_dir,
            size: if is_dir {
                Some(0)
            } else {
                size.map(|size| size as u64)
            },
        })
    };
    let mut entries: Vec<Entry> = listed.iter().map(entry).collect::<Result<_>>()?;
    entries.sort_by(|a, b| (&a.name, a.is_dir).cmp(&(&b.name, b.is_dir)));
    Ok(entries)
}

/// Refuses what JavaScript, which never blocks, cannot answer on the spot.
fn never_blocks<T>(op: &str, path: &StorePath) -> Result<T> {
    Err(Error::Internal(format!(
        "cannot {op} {path} without waiting, which browsers do not"
    )))
}

fn read_only<T>(op: &str, path: &StorePath) -> Result<T> {
    Err(Error::Unsupported(format!(
        "cannot {op} {path}: in a browser arrays are for reading only"
    )))
}

impl Storage for HostStorage {
    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>> {
        never_blocks("list", dir)
    }

    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>> {
        match requests.first() {
            Some(first) => never_blocks("read", &first.path),
            None => Ok(Vec::new()),
        }
    }

    fn size(&self, path: &StorePath) -> Result<u64> {
        never_blocks("find the size of", path)
    }

    fn put(&self, path: &StorePath, _: Bytes) -> Result<()> {
        read_only("write", path)
    }

    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>> {
        read_only("write", path)
    }

    fn rename(&self, from: &StorePath, _: &StorePath) -> Result<()> {
        read_only("move", from)
    }

    fn delete(&self, paths: &[StorePath]) -> Result<()> {
        paths.iter().try_for_each(|path| read_only("delete", path))
    }

    fn start_list(&self, dirs: Vec<StorePath>) -> PendingList {
        let len = dirs.len();
        self.ask(
            "list",
            |source, signal| source.list(&paths(&dirs), signal),
            move |answer| array(answer, len)?.iter().map(entries).collect(),
        )
    }

    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead {
        let asked: Array = requests.iter().map(request).collect();
        self.ask(
            "read",
            |source, signal| source.read(&asked, signal),
            move |answer| {
                let answers = array(answer, requests.len())?;
                let all = requests.iter().zip(answers.iter());
                all.map(|(request, answer)| checked(request, &answer))
                    .collect()
            },
        )
    }

    fn start_read_tails(&self, all: Vec<StorePath>, len: u64) -> PendingTails {
        let asked = paths(&all);
        self.ask(
            "read",
            |source, signal| source.tails(&asked, len as f64, signal),
            move |answer| array(answer, all.len())?.iter().map(|v| tail(&v)).collect(),
        )
    }
}
