//! An array that nobody else changes meanwhile.

use crate::array::Bounds;
use crate::context::rectangle;
use crate::work;
use azulejo::Error;
use azulejo::array::ArrayHold;
use azulejo::format::schema::SchemaEvolution;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Keeps others from changing what an array consists of, until it is released.
#[pyclass(frozen)]
#[derive(Debug)]
pub struct Hold {
    held: Mutex<Option<ArrayHold>>,
}

impl Hold {
    pub fn new(hold: ArrayHold) -> Self {
        let held = Mutex::new(Some(hold));
        Self { held }
    }

    fn run(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&ArrayHold) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        let done = work::run_short(py, || {
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.as_ref().map(work).transpose()
        })?;
        done.ok_or_else(|| PyValueError::new_err("it was released"))
    }
}

#[pymethods]
impl Hold {
    /// Makes fragments that were written `uncommitted` count, all at once.
    fn commit_fragments(&self, py: Python<'_>, names: Vec<String>) -> PyResult<()> {
        self.run(py, |hold| hold.commit_fragments(&names))
    }

    /// Expands the current domain.
    #[pyo3(signature = (bounds, at=None))]
    fn expand(&self, py: Python<'_>, bounds: Vec<Bounds>, at: Option<u64>) -> PyResult<()> {
        let evolution = SchemaEvolution {
            expand_current_domain: Some(rectangle(bounds)),
            ..SchemaEvolution::default()
        };
        self.run(py, |hold| hold.evolve(&evolution, at))
    }

    /// Lets others change it again.
    fn release(&self, py: Python<'_>) {
        let take = || {
            self.held
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take()
        };
        py.detach(|| drop(take()));
    }
}
