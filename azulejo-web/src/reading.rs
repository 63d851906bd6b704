//! A read under way.

use crate::cancel::Cancel;
use crate::columns;
use crate::failure::to_js;
use azulejo::read::ReadStream;
use azulejo::{ColumnSet, Error, Result};
use futures_core::Stream;
use js_sys::Promise;
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::future_to_promise;

/// A read under way, batch by batch.
#[wasm_bindgen]
pub struct Reading {
    /// `None` while a batch is awaited.
    source: Rc<RefCell<Option<Batches>>>,
}

/// The batches of a read, of which there is one at least.
struct Batches {
    stream: ReadStream,
    /// Whether one was given out.
    given: bool,
}

impl Batches {
    /// The next batch: of a read that finds nothing once its columns.
    async fn next(&mut self) -> Result<Option<ColumnSet>> {
        let batch = next(&mut self.stream).await.transpose()?;
        let first = !std::mem::replace(&mut self.given, true);
        Ok(batch.or_else(|| self.stream.empty().filter(|_| first)))
    }
}

pub(crate) async fn next<S>(stream: &mut S) -> Option<S::Item>
where
    S: Stream + Unpin,
{
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

impl Reading {
    pub(crate) fn new(stream: ReadStream) -> Self {
        Self {
            source: Rc::new(RefCell::new(Some(Batches {
                stream,
                given: false,
            }))),
        }
    }
}

#[wasm_bindgen]
impl Reading {
    /// The next batch as a promise; undefined behind the last one. What finds nothing has one batch,
    /// of columns without cells.
    #[wasm_bindgen(unchecked_return_type = "Promise<any>")]
    pub fn next(&self, cancel: &Cancel) -> Promise {
        let (slot, cancel) = (Rc::clone(&self.source), cancel.clone());
        promise(async move {
            let Some(mut batches) = slot.borrow_mut().take() else {
                return Err(Error::InvalidArgument("a batch is awaited already".into()));
            };
            let batch = cancel.unless(batches.next()).await?;
            // After an error there is nothing more to ask.
            *slot.borrow_mut() = Some(batches);
            Ok(batch.map_or(JsValue::UNDEFINED, |batch| columns::batch(&batch)))
        })
    }
}

/// Work as a promise of JavaScript's.
pub(crate) fn promise(work: impl Future<Output = Result<JsValue>> + 'static) -> Promise {
    future_to_promise(async move { work.await.map_err(|error| to_js(&error)) }).unchecked_into()
}

/// All batches as one Arrow IPC stream, which must not take more than `limit` bytes.
#[cfg(feature = "arrow")]
pub(crate) async fn arrow(stream: ReadStream, raw: bool, limit: u64) -> Result<Vec<u8>> {
    use arrow_ipc::writer::StreamWriter;
    use azulejo::arrow::ArrowOptions;

    let failed = |e: &dyn std::fmt::Display| Error::Internal(format!("Arrow: {e}"));
    let mut batches = stream.record_batches(ArrowOptions::new().raw(raw));
    let mut writer: Option<StreamWriter<Vec<u8>>> = None;
    while let Some(batch) = next(&mut batches).await {
        let batch = batch?;
        let writer = match &mut writer {
            Some(writer) => writer,
            None => {
                let new = StreamWriter::try_new(Vec::new(), &batch.schema());
                writer.insert(new.map_err(|e| failed(&e))?)
            }
        };
        let size = writer.get_ref().len() as u64 + batch.get_array_memory_size() as u64;
        within(size, limit)?;
        writer.write(&batch).map_err(|e| failed(&e))?;
    }
    let writer = match (writer, batches.schema()?) {
        (Some(writer), _) => writer,
        (None, Some(schema)) => {
            StreamWriter::try_new(Vec::new(), &schema).map_err(|e| failed(&e))?
        }
        (None, None) => return Err(Error::Internal("a read that has not begun".into())),
    };
    writer.into_inner().map_err(|e| failed(&e))
}

/// Checks that a result fits the memory that it may take.
#[cfg(feature = "arrow")]
fn within(need: u64, budget: u64) -> Result<()> {
    match need > budget {
        true => Err(Error::Budget {
            what: "the whole result".into(),
            need,
            budget,
        }),
        false => Ok(()),
    }
}
