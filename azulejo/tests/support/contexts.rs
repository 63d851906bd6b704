//! Contexts whose arrays lie in a storage that a test looks into, or stops.

use azulejo::storage::{LocalStorage, Storage};
use azulejo::{Config, Context};
use std::sync::Arc;

/// A context of one thread, for which `mem://` is this storage.
#[allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]
pub fn of_one_thread(memory: Arc<dyn Storage>) -> Context {
    let config = Config::new().threads(1);
    Context::with_storages(config, None, Arc::new(LocalStorage::new()), memory).unwrap()
}
