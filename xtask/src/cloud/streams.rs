//! Arrays that an executor opens and reads: the same requests as by a thread that waits, and no
//! more threads.

use super::cells::{self, MANY_CELLS};
use super::requests::{SIZES, make, measure};
use super::{Stage, Tally, proxy, s3_uri};
use crate::Outcome;
use azulejo::column::ColumnSet;
use azulejo::{Array, Context};
use futures_core::Stream;
use std::fs::DirEntry;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// An executor of one task: the thread sleeps until it is woken.
fn execute<T>(work: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut work = pin!(work);
    loop {
        match work
            .as_mut()
            .poll(&mut std::task::Context::from_waker(&waker))
        {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

/// The most threads that this process has while something is done, without those of the server between,
/// which connections of who went before may still have; 0 where nobody can tell.
fn threads_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let is_ours = |task: &DirEntry| {
        let name = std::fs::read_to_string(task.path().join("comm"));
        name.is_ok_and(|name| name.trim_end() != proxy::THREAD)
    };
    let now = || {
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
        tasks.flatten().filter(is_ours).count()
    };
    let (most, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                most.fetch_max(now(), Ordering::SeqCst);
                thread::sleep(Duration::from_millis(1));
            }
        });
        let result = work();
        done.store(true, Ordering::SeqCst);
        result
    });
    (result, most.into_inner())
}

fn add(sum: &mut (i64, u64), batch: &ColumnSet) {
    let values = batch.column("a").and_then(|column| column.values::<i32>());
    let values = values.unwrap_or_default();
    sum.0 += values.iter().map(|value| i64::from(*value)).sum::<i64>();
    sum.1 += values.len() as u64;
}

/// Opens an array and adds up its cells, batch by batch, on this thread.
fn blocking(context: &Context, uri: &str, last: i64) -> azulejo::Result<(i64, u64)> {
    let mut sum = (0, 0);
    for batch in context
        .array(uri)
        .open()?
        .read(cells::attribute_of(0, last))?
    {
        add(&mut sum, &batch?);
    }
    Ok(sum)
}

/// The same, where nobody blocks while the server answers.
async fn streamed(context: &Context, uri: &str, last: i64) -> azulejo::Result<(i64, u64)> {
    let array: Array = context.array(uri).open_async().await?;
    let mut batches = pin!(array.read_stream(cells::attribute_of(0, last)));
    let mut sum = (0, 0);
    while let Some(batch) = std::future::poll_fn(|cx| batches.as_mut().poll_next(cx)).await {
        add(&mut sum, &batch?);
    }
    Ok(sum)
}

/// Threads by which two runs of one way differ: the network's blocking ones come and go.
const SLACK: usize = 8;

/// Opens and reads arrays both ways.
pub fn run(stage: &mut Stage, tally: &mut Tally) -> Outcome {
    println!(
        "| fragments | requests, waiting | requests, stream | threads, waiting | threads, stream |"
    );
    println!("|---|---|---|---|---|");
    for fragments in SIZES {
        let name = format!("streams/fragments-{fragments}");
        make(stage, &name, fragments)?;
        let uri = s3_uri(&name);
        let last = fragments * MANY_CELLS - 1;
        let expected = cells::expected_sum(0, last);
        // Each by one who has not read before; the network's threads are started by now.
        let first = stage.context()?;
        blocking(&first, &uri, last).map_err(|e| e.to_string())?;
        drop(first);
        let context = stage.context()?;
        let ((waited, wait_threads), wait) =
            measure(stage, || Ok(threads_of(|| blocking(&context, &uri, last))))?;
        drop(context);
        let context = stage.context()?;
        let ((came, stream_threads), stream) = measure(stage, || {
            Ok(threads_of(|| execute(streamed(&context, &uri, last))))
        })?;
        println!(
            "| {fragments} | {} | {} | {wait_threads} | {stream_threads} |",
            wait.counts, stream.counts
        );
        tally.check(
            &format!("cells of {fragments} fragments as a stream"),
            || {
                let (waited, came) = (
                    waited.map_err(|e| e.to_string())?,
                    came.map_err(|e| e.to_string())?,
                );
                match (waited, came) == (expected, expected) {
                    true => Ok(()),
                    false => Err(format!("{waited:?} and {came:?} instead of {expected:?}")),
                }
            },
        );
        tally.check(
            &format!("requests of a stream of {fragments} fragments"),
            || match stream.counts.total() <= wait.counts.total() {
                true => Ok(()),
                false => Err(format!("{}, waiting {}", stream.counts, wait.counts)),
            },
        );
        tally.check(
            &format!("threads of a stream of {fragments} fragments"),
            || match stream_threads <= wait_threads + SLACK {
                true => Ok(()),
                false => Err(format!("{stream_threads}, waiting {wait_threads}")),
            },
        );
    }
    Ok(())
}
