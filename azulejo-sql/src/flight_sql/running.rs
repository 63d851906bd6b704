//! Runs plans within limits, and makes them beside the threads that answer others.

use super::Limits;
use super::session::SharedSession;
use crate::error::of_engine;
use datafusion::arrow::array::{Array, RecordBatch, UInt64Array};
use datafusion::arrow::error::ArrowError;
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use futures_util::future::{Either, select};
use futures_util::{Stream, StreamExt};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Status;

/// Batches that wait for a client.
const AHEAD: usize = 2;

/// When the time of a request is over.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// Never where no clock goes so far.
    at: Option<Instant>,
    time: Duration,
}

impl End {
    /// What is done by then.
    pub async fn before<T>(
        self,
        work: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        let Some(at) = self.at else {
            return work.await;
        };
        let done = tokio::time::timeout_at(at, work).await;
        done.unwrap_or_else(|_| {
            let time = self.time;
            Err(Status::deadline_exceeded(format!(
                "the query was not done within {time:?}"
            )))
        })
    }
}

/// Whoever waits for what a thread of its own makes, as that thread sees it.
#[derive(Debug, Clone)]
pub struct Asked(mpsc::Sender<()>);

impl Asked {
    /// Whether anybody still waits.
    pub fn still(&self) -> bool {
        !self.0.is_closed()
    }
}

/// Does what may keep a thread busy, such as reading and planning statements, on one of its own, which
/// holds a place until it is done. What nobody waits for any longer ends where it next waits or asks.
async fn aside<T: Send + 'static, W: Future<Output = Result<T, Status>>>(
    place: OwnedSemaphorePermit,
    work: impl FnOnce(Asked) -> W + Send + 'static,
) -> Result<(T, OwnedSemaphorePermit), Status> {
    let (asked, waiting) = mpsc::channel(1);
    let asked = Asked(asked);
    let runtime = Handle::current();
    let done = tokio::task::spawn_blocking(move || {
        let made = runtime.block_on(async {
            let given_up = asked.0.closed();
            match select(pin!(work(asked.clone())), pin!(given_up)).await {
                Either::Left((made, _)) => made,
                Either::Right(_) => Err(Status::cancelled("nobody waits for it")),
            }
        });
        made.map(|made| (made, place))
    });
    let done = done.await;
    drop(waiting);
    done.map_err(|error| Status::internal(error.to_string()))?
}

/// What runs plans.
#[derive(Clone)]
pub struct Running {
    session: SharedSession,
    limits: Limits,
    /// Places of queries that run.
    free: Arc<Semaphore>,
    /// Places of statements that are read and planned.
    planned: Arc<Semaphore>,
}

impl Running {
    pub fn new(session: SharedSession, limits: Limits) -> Self {
        let places = || {
            let places = limits.queries.clamp(1, Semaphore::MAX_PERMITS);
            Arc::new(Semaphore::new(places))
        };
        Self {
            session,
            limits,
            free: places(),
            planned: places(),
        }
    }

    /// The end of a request that comes now.
    pub fn end(&self) -> End {
        let time = self.limits.time;
        End {
            at: Instant::now().checked_add(time),
            time,
        }
    }

    /// Plans beside the threads that answer others.
    pub async fn planned<T: Send + 'static, W: Future<Output = Result<T, Status>>>(
        &self,
        end: End,
        work: impl FnOnce(Asked) -> W + Send + 'static,
    ) -> Result<T, Status> {
        let planned = async {
            let place = place_of(&self.planned).await?;
            let (made, _) = aside(place, work).await?;
            Ok(made)
        };
        end.before(planned).await
    }

    /// The rows of a plan. It runs in a task of its own, so that its time is over even where the
    /// client takes no rows; the task ends with the stream.
    pub fn rows(&self, plan: LogicalPlan, end: End) -> Rows {
        let (sender, batches) = mpsc::channel(AHEAD);
        let running = self.clone();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let ended = end.before(running.run(plan, sender.clone())).await;
            // Nobody may wait any longer.
            let _ = sender.send(ended.map(|()| None)).await;
        });
        Rows {
            batches,
            done: false,
            _task: task,
        }
    }

    /// Runs a plan to its end, and gives the rows that it says to have changed; -1 if it says none.
    pub async fn change(&self, plan: LogicalPlan, end: End) -> Result<i64, Status> {
        let says = matches!(plan, LogicalPlan::Dml(_));
        let mut rows = self.rows(plan, end);
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

    async fn run(&self, plan: LogicalPlan, sender: mpsc::Sender<Sent>) -> Result<(), Status> {
        let place = place_of(&self.free).await?;
        let frame = DataFrame::new(self.session.state(), plan);
        let tasks = Arc::new(frame.task_ctx());
        let made = aside(place, move |_| async move {
            let plan = frame.create_physical_plan().await;
            plan.map_err(|error| status(&error))
        });
        let (plan, _place) = made.await?;
        let batches = execute_stream(plan, tasks);
        let mut batches = batches.map_err(|error| status(&error))?;
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(|error| status(&error))?;
            if sender.send(Ok(Some(batch))).await.is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// A place among some, once there is one.
async fn place_of(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Status> {
    let place = Arc::clone(places).acquire_owned().await;
    place.map_err(|error| Status::internal(error.to_string()))
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
        // A value that is none of its type.
        DataFusionError::ArrowError(error, _)
            if matches!(
                error.as_ref(),
                ArrowError::CastError(_)
                    | ArrowError::ParseError(_)
                    | ArrowError::DivideByZero
                    | ArrowError::ArithmeticOverflow(_)
            ) =>
        {
            Status::invalid_argument(text)
        }
        DataFusionError::NotImplemented(_) => Status::unimplemented(text),
        DataFusionError::ResourcesExhausted(_) => Status::resource_exhausted(text),
        root => match of_engine(root) {
            Some(azulejo::Error::NotFound { .. }) => Status::not_found(text),
            _ => Status::internal(text),
        },
    }
}
