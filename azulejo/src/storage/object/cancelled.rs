//! Work that ends when its caller cancels it.

use crate::cancel::{CancelHandle, StopOnCancel};
use crate::error::{Error, Result};
use futures_util::future::{Either, select};
use std::pin::pin;
use tokio::sync::oneshot::{Receiver, channel};

/// The moment at which what was begun by now is cancelled.
#[derive(Debug)]
pub(super) struct Cancelled {
    /// Ends without a message.
    moment: Receiver<()>,
    _stop: StopOnCancel,
}

impl Cancelled {
    pub(super) fn by(handle: &CancelHandle) -> Self {
        let (sender, moment) = channel();
        Self {
            moment,
            _stop: handle.on_cancel(move || drop(sender)),
        }
    }

    /// The result of `work`, or [`Error::Cancelled`] as soon as that moment comes: the work is
    /// dropped then.
    pub(super) async fn unless<T>(self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match select(pin!(work), self.moment).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(Error::Cancelled),
        }
    }
}
