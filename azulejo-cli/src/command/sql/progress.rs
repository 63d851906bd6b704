//! How far a query has come, while it runs.

use crate::args::ProgressArg;
use crate::progress::Progress;
use crate::session::Session;
use crate::size;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricValue;
use std::cell::OnceCell;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the numbers change.
const EVERY: Duration = Duration::from_millis(250);

/// A query that is over sooner shows no line.
const QUICK: Duration = Duration::from_millis(500);

/// The line of one query.
pub struct QueryProgress {
    plan: Arc<dyn ExecutionPlan>,
    how: ProgressArg,
    begun: Instant,
    line: OnceCell<Progress>,
}

impl QueryProgress {
    /// A line of what a plan's leaves have read.
    pub fn new(session: &Session, plan: &Arc<dyn ExecutionPlan>) -> Self {
        Self {
            plan: Arc::clone(plan),
            how: session.progress_kind(),
            begun: Instant::now(),
            line: OnceCell::new(),
        }
    }

    /// Waits for a part of the work, and tells how far it is.
    pub async fn during<R>(&self, work: impl Future<Output = R>) -> R {
        let mut work = pin!(work);
        loop {
            match tokio::time::timeout(EVERY, &mut work).await {
                Ok(done) => return done,
                Err(_) if self.begun.elapsed() < QUICK => {}
                Err(_) => {
                    let line = self.line.get_or_init(|| Progress::new(None, self.how));
                    line.say(|| self.read().text());
                }
            }
        }
    }

    fn read(&self) -> Read {
        let mut read = Read::default();
        read.add(self.plan.as_ref());
        read
    }

    /// Does what writes to a terminal itself.
    pub fn aside<R>(&self, work: impl FnOnce() -> R) -> R {
        match self.line.get() {
            Some(line) => line.aside(work),
            None => work(),
        }
    }
}

/// What leaves of a plan have read so far.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    rows: u64,
    bytes: u64,
    /// Of arrays.
    tiles: u64,
}

impl Read {
    fn add(&mut self, plan: &dyn ExecutionPlan) {
        for child in plan.children() {
            self.add(child.as_ref());
        }
        let Some(metrics) = plan.metrics().filter(|_| plan.children().is_empty()) else {
            return;
        };
        for metric in metrics.iter() {
            let value = metric.value().as_usize() as u64;
            match metric.value() {
                MetricValue::OutputRows(_) => self.rows += value,
                MetricValue::Count { name, .. } if name == "bytes_scanned" => self.bytes += value,
                MetricValue::Count { name, .. } if name == "tiles_read" => self.tiles += value,
                _ => {}
            }
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{} rows read", size::count(self.rows));
        for (number, what) in [
            (self.bytes, size::text(self.bytes)),
            (self.tiles, format!("{} tiles", size::count(self.tiles))),
        ] {
            if number > 0 {
                text.push_str(", ");
                text.push_str(&what);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::SessionContext;

    #[test]
    fn leaves_are_counted_once() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let context = azulejo::Context::new(azulejo::Config::default(), None).unwrap();
            let session: SessionContext = azulejo_sql::session(&context);
            for statement in [
                "CREATE EXTERNAL TABLE t (id BIGINT, PRIMARY KEY (id)) STORED AS AZULEJO LOCATION 'mem://t'",
                "INSERT INTO t VALUES (1), (2), (3)",
            ] {
                let made = azulejo_sql::sql(&session, statement).await.unwrap();
                made.unwrap().collect().await.unwrap();
            }
            let query = "SELECT a.id FROM t a JOIN t b ON a.id = b.id ORDER BY a.id + b.id";
            let frame = session.sql(query).await.unwrap();
            let tasks = Arc::new(frame.task_ctx());
            let plan = frame.create_physical_plan().await.unwrap();
            let mut read = Read::default();
            read.add(plan.as_ref());
            assert_eq!(read, Read::default());
            let rows = datafusion::physical_plan::collect(Arc::clone(&plan), tasks);
            assert_eq!(rows.await.unwrap().iter().map(|b| b.num_rows()).sum::<usize>(), 3);
            read.add(plan.as_ref());
            assert_eq!(read.rows, 6);
            assert!(read.text().starts_with("6 rows read, ") && read.text().ends_with(" tiles"));
        });
    }
}
