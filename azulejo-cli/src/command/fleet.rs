//! The same work on every array of a group or folder.

use crate::error::{CliError, Result};
use crate::interrupt;
use crate::session::Session;
use azulejo::Context;
use azulejo::group::ObjectType;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Deeper than anyone nests.
const MAX_DEPTH: usize = 256;
/// Arrays that are worked on at a time.
pub const AT_ONCE: usize = 4;

/// The array at a URI, or all arrays below it, members of groups included, each once.
pub fn arrays(session: &Session, uri: &str) -> Result<Vec<String>> {
    if session.context.object(uri).object_type()? == Some(ObjectType::Array) {
        return Ok(vec![uri.to_owned()]);
    }
    let mut arrays = Vec::new();
    for entry in session.context.object(uri).walk(MAX_DEPTH)? {
        match entry {
            Ok(entry) => {
                let is_array = entry.object_type == Some(ObjectType::Array);
                if is_array && !arrays.contains(&entry.uri) {
                    arrays.push(entry.uri);
                }
            }
            Err(error) => session.output.note(&error.to_string()),
        }
    }
    Ok(arrays)
}

/// Works on arrays, some at a time; the results are in their order.
pub fn each<R: Send>(
    session: &Session,
    arrays: &[String],
    work: impl Fn(&Context, &str) -> azulejo::Result<R> + Sync,
) -> Result<Vec<azulejo::Result<R>>> {
    let results: Vec<Mutex<Option<azulejo::Result<R>>>> =
        arrays.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let context = &session.context;
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(arrays.len()) {
            scope.spawn(|| {
                while interrupt::check().is_ok() {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(uri), Some(slot)) = (arrays.get(at), results.get(at)) else {
                        break;
                    };
                    let result = work(context, uri);
                    if let Ok(mut slot) = slot.lock() {
                        *slot = Some(result);
                    }
                }
            });
        }
    });
    interrupt::check()?;
    let done = results
        .into_iter()
        .map(|slot| slot.into_inner().ok().flatten());
    done.map(|result| result.ok_or(CliError::Interrupted))
        .collect()
}
