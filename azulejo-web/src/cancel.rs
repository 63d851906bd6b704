//! Ending work that nobody wants any more.

use azulejo::{Error, Result};
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};
use wasm_bindgen::prelude::wasm_bindgen;

/// Ends the work that it is given to. JavaScript ties it to an `AbortSignal`.
#[wasm_bindgen]
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    state: Rc<RefCell<State>>,
}

#[derive(Debug, Default)]
struct State {
    cancelled: bool,
    waker: Option<Waker>,
}

#[wasm_bindgen]
impl Cancel {
    /// Nothing is cancelled yet.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the work at its next step; what it has under way is dropped.
    pub fn cancel(&self) {
        let mut state = self.state.borrow_mut();
        state.cancelled = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Cancel {
    /// Does the work, unless it is cancelled before its end.
    pub(crate) async fn unless<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let mut work = pin!(work);
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if state.cancelled {
                return Poll::Ready(Err(Error::Cancelled));
            }
            state.waker = Some(context.waker().clone());
            drop(state);
            work.as_mut().poll(context)
        })
        .await
    }
}
