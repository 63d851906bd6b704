//! Runs plans within limits.

use super::Limits;
use super::session::SharedSession;
use crate::error::{Result, of_engine};
use datafusion::arrow::array::{Array, RecordBatch, UInt64Array};
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use futures_util::{Stream, StreamExt};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tonic::Status;

/// Batches that wait for a client.
const AHEAD: usize = 2;

/// What runs plans.
#[derive(Clone)]
pub struct Running {
    session: SharedSession,
    limits: Limits,
    free: Arc<Semaphore>,
}

impl Running {
    pub fn new(session: SharedSession, limits: Limits) -> Self {
        Self {
            session,
            limits,
            free: Arc::new(Semaphore::new(
                limits.queries.clamp(1, Semaphore::MAX_PERMITS),
            )),
        }
    }

    /// The rows of a plan. It runs in a task of its own, so that its time is over even where the
    /// client takes no rows; the task ends with the stream.
    pub fn rows(&self, plan: LogicalPlan) -> Rows {
        let (sender, batches) = mpsc::channel(AHEAD);
        let (running, time) = (self.clone(), self.limits.time);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let work = running.run(plan, sender.clone());
            let last = match tokio::time::timeout(time, work).await {
                Ok(Ok(())) => Ok(None),
                Ok(Err(error)) => Err(status(&error)),
                Err(_) => Err(Status::deadline_exceeded(format!(
                    "the query was not done within {time:?}"
                ))),
            };
            // Nobody may wait any longer.
            let _ = sender.send(last).await;
        });
        Rows {
            batches,
            done: false,
            _task: task,
        }
    }

    /// Runs a plan to its end, and gives the rows that it says to have changed; -1 if it says none.
    pub async fn change(&self, plan: LogicalPlan) -> Result<i64, Status> {
        let says = matches!(plan, LogicalPlan::Dml(_));
        let mut rows = self.rows(plan);
        let mut changed = 0;
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            let counts = batch.columns().first();
            let counts = counts.and_then(|column| column.as_any().downcast_ref::<UInt64Array>());
            let count: u64 = counts.map_or(0, |counts| counts.values().iter().sum());
            changed += i64::try_from(count).unwrap_or(i64::MAX);
        }
        Ok(if says { changed } else { -1 })
    }

    async fn run(&self, plan: LogicalPlan, sender: mpsc::Sender<Sent>) -> Result<()> {
        let closed = |error| DataFusionError::External(Box::new(error));
        let _one = self.free.acquire().await.map_err(closed)?;
        let frame = DataFrame::new(self.session.state(), plan);
        let mut batches = frame.execute_stream().await?;
        while let Some(batch) = batches.next().await {
            if sender.send(Ok(Some(batch?))).await.is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// A batch, or the end.
type Sent = Result<Option<RecordBatch>, Status>;

/// The rows of a query. Dropping it ends the query.
pub struct Rows {
    batches: mpsc::Receiver<Sent>,
    done: bool,
    _task: JoinSet<()>,
}

impl Stream for Rows {
    type Item = Result<RecordBatch, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.done {
            return Poll::Ready(None);
        }
        self.batches.poll_recv(context).map(|sent| {
            let item = match sent {
                Some(Ok(batch)) => batch.map(Ok),
                Some(Err(status)) => Some(Err(status)),
                // A task that panicked: what there was of rows is not the answer.
                None => Some(Err(Status::internal("the query ended before its end"))),
            };
            self.done = !matches!(item, Some(Ok(_)));
            item
        })
    }
}

/// An error as clients get it.
pub fn status(error: &DataFusionError) -> Status {
    let text = error.strip_backtrace();
    match error.find_root() {
        DataFusionError::Plan(_)
        | DataFusionError::SQL(..)
        | DataFusionError::SchemaError(..)
        | DataFusionError::Configuration(_)
        | DataFusionError::Diagnostic(..) => Status::invalid_argument(text),
        DataFusionError::NotImplemented(_) => Status::unimplemented(text),
        DataFusionError::ResourcesExhausted(_) => Status::resource_exhausted(text),
        root => match of_engine(root) {
            Some(azulejo::Error::NotFound { .. }) => Status::not_found(text),
            _ => Status::internal(text),
        },
    }
}
