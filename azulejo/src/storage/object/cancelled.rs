//! Work that ends when its caller cancels it.

use crate::cancel::{CancelHandle, Operation, StopOnCancel};
use crate::error::{Error, Result};
use crate::on_behalf;
use futures_util::future::{Either, select};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot::{Receiver, channel};

/// For what a storage is asked, on this thread and at this moment.
#[derive(Debug, Clone)]
pub(super) struct AskedFor {
    /// The request itself, for who cancels all of a storage's.
    request: Operation,
    /// The operation of which it is a part.
    whole: Option<Operation>,
}

impl AskedFor {
    /// By a caller of a storage that `handle` cancels.
    pub(super) fn now(handle: &CancelHandle) -> Self {
        Self {
            request: handle.begin(),
            whole: on_behalf::current(),
        }
    }

    fn operations(&self) -> impl Iterator<Item = &Operation> {
        [&self.request].into_iter().chain(&self.whole)
    }

    /// [`Error::Cancelled`] if it was cancelled.
    pub(super) fn check(&self) -> Result<()> {
        self.operations().try_for_each(Operation::check)
    }

    /// The moment at which it is cancelled, which may have been before.
    pub(super) fn cancelled(&self) -> Cancelled {
        let (sender, moment) = channel();
        let sender = Arc::new(Mutex::new(Some(sender)));
        let tell = |operation: &Operation| {
            let sender = Arc::clone(&sender);
            operation.on_cancel(move || {
                drop(sender.lock().unwrap_or_else(PoisonError::into_inner).take());
            })
        };
        Cancelled {
            moment,
            _stops: self.operations().map(tell).collect(),
        }
    }
}

/// The moment at which something is cancelled.
#[derive(Debug)]
pub(super) struct Cancelled {
    /// Ends without a message.
    moment: Receiver<()>,
    _stops: Vec<StopOnCancel>,
}

impl Cancelled {
    pub(super) fn by(handle: &CancelHandle) -> Self {
        AskedFor::now(handle).cancelled()
    }

    /// The result of `work`, or [`Error::Cancelled`] as soon as that moment comes: the work is
    /// dropped then, and not begun where the moment has passed.
    pub(super) async fn unless<T>(self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match select(self.moment, pin!(work)).await {
            Either::Left(_) => Err(Error::Cancelled),
            Either::Right((result, _)) => result,
        }
    }
}
