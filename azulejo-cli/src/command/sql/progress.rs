//! How far a query has come, while it runs.

use crate::progress::Progress;
use crate::session::Session;
use crate::size;
use azulejo::Context;
use azulejo::storage::IoOp;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricValue;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// How often the numbers change.
const EVERY: Duration = Duration::from_millis(250);

/// The line of one query.
pub struct QueryProgress {
    plan: Arc<dyn ExecutionPlan>,
    context: Context,
    /// Bytes that object stores had sent before.
    before: u64,
    line: Progress,
}

impl QueryProgress {
    /// A line of what a plan's leaves have read.
    pub fn new(session: &Session, plan: &Arc<dyn ExecutionPlan>) -> Self {
        Self {
            plan: Arc::clone(plan),
            before: session.context.io_stats().bytes(IoOp::Get),
            context: session.context.clone(),
            line: session.progress(None),
        }
    }

    /// Waits for a part of the work, and tells how far it is.
    pub async fn during<R>(&self, work: impl Future<Output = R>) -> R {
        let mut work = pin!(work);
        loop {
            match tokio::time::timeout(EVERY, &mut work).await {
                Ok(done) => return done,
                Err(_) => self.line.say(|| self.read().text()),
            }
        }
    }

    fn read(&self) -> Read {
        let mut read = Read::default();
        read.add(self.plan.as_ref());
        read.bytes += self.context.io_stats().bytes(IoOp::Get) - self.before;
        read
    }

    /// Does what writes to a terminal itself.
    pub fn aside<R>(&self, work: impl FnOnce() -> R) -> R {
        self.line.aside(work)
    }
}

/// What leaves of a plan have read so far.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    rows: u64,
    /// Those of files of other kinds, and of object stores.
    bytes: u64,
    /// Parts of arrays.
    pieces: u64,
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
                MetricValue::Count { name, .. } if name == "pieces_read" => self.pieces += value,
                _ => {}
            }
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{} rows read", size::count(self.rows));
        for (number, what) in [
            (self.bytes, size::text(self.bytes)),
            (self.pieces, format!("{} pieces", size::count(self.pieces))),
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
            let context = Context::new(azulejo::Config::default(), None).unwrap();
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
            assert!(read.text().starts_with("6 rows read, ") && read.text().ends_with(" pieces"));
        });
    }
}
