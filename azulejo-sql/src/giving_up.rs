//! Work on threads of its own, which ends when nobody waits for it any longer, and then changes
//! nothing.

use crate::error::{Result, external};
use azulejo::Context;
use datafusion::error::DataFusionError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody waits for what a piece of work gives.
#[derive(Debug, Clone, Default)]
pub struct StillWanted {
    given_up: Arc<AtomicBool>,
}

impl StillWanted {
    /// To be asked before something is begun that counts: only what a context has under way is
    /// cancelled.
    ///
    /// # Errors
    /// [`azulejo::Error::Cancelled`] once nobody waits.
    pub fn check(&self) -> azulejo::Result<()> {
        match self.given_up.load(Ordering::SeqCst) {
            true => Err(azulejo::Error::Cancelled),
            false => Ok(()),
        }
    }
}

/// Somebody who waits, until this is dropped.
struct Waiting {
    wanted: StillWanted,
    context: Context,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.wanted.given_up.store(true, Ordering::SeqCst);
        self.context.cancel_handle().cancel();
    }
}

/// Begins work that waits for storage, beside the threads that poll. Dropping what is given back
/// gives the work up: it ends before its next step, as what its context has under way is cancelled.
/// So the context must be its own ([`Context::cancellable`]).
pub fn until_given_up<T: Send + 'static>(
    context: Context,
    work: impl FnOnce(&StillWanted) -> Result<T> + Send + 'static,
) -> impl Future<Output = Result<T>> + Send {
    let waiting = Waiting {
        wanted: StillWanted::default(),
        context,
    };
    let wanted = waiting.wanted.clone();
    let done = tokio::task::spawn_blocking(move || {
        wanted.check().map_err(external)?;
        work(&wanted)
    });
    async move {
        let done = done.await;
        drop(waiting);
        done.map_err(|error| DataFusionError::External(Box::new(error)))?
    }
}
