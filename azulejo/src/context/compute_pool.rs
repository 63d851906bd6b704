//! The threads of a context, which are gone when the context is.

use crate::error::{Error, Result};
use crate::per_process::PerProcess;
use crate::platform::HAS_THREADS;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Threads for CPU work: those of the process that it runs in.
#[derive(Debug)]
pub(crate) struct ComputePool {
    threads: usize,
    pool: PerProcess<Option<Running>>,
}

/// Threads that have been started.
///
/// Rayon lets the threads of a pool end some time after the pool. Who makes one context after
/// another would have those of several at once, so the end of a pool waits for them.
#[derive(Debug)]
struct Running {
    pool: Option<Arc<rayon::ThreadPool>>,
    threads: Vec<JoinHandle<()>>,
}

impl ComputePool {
    /// Starts threads; 0 stands for one a core. Without threads all work is done by the caller.
    pub fn new(threads: usize) -> Result<Self> {
        let running = match HAS_THREADS {
            true => Some(Running::start(threads)?),
            false => None,
        };
        Ok(Self {
            threads: running.as_ref().map_or(1, Running::len),
            pool: PerProcess::new(running),
        })
    }

    /// The number of threads.
    pub fn len(&self) -> usize {
        self.threads
    }

    /// Runs work on the threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let running = self.pool.get(|_| Running::start(self.threads).ok());
        match running.and_then(|running| running.as_ref()?.pool.as_ref()) {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

impl Running {
    fn start(threads: usize) -> Result<Self> {
        let failed =
            |e: &dyn std::fmt::Display| Error::Internal(format!("cannot start threads: {e}"));
        let started = Mutex::new(Vec::new());
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("azulejo-{i}"))
            .spawn_handler(|thread| {
                let name = thread.name().unwrap_or("azulejo").to_owned();
                let handle = std::thread::Builder::new()
                    .name(name)
                    .spawn(|| thread.run())?;
                started
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(handle);
                Ok(())
            })
            .build()
            .map_err(|e| failed(&e))?;
        let threads = started.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Self {
            pool: Some(Arc::new(pool)),
            threads,
        })
    }

    fn len(&self) -> usize {
        self.pool
            .as_ref()
            .map_or(1, |pool| pool.current_num_threads())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(pool) = self.pool.take() else { return };
        // A thread of the pool cannot wait for itself.
        let is_inside = pool.current_thread_index().is_some();
        drop(pool);
        if !is_inside {
            for thread in std::mem::take(&mut self.threads) {
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Gone(Arc<AtomicUsize>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_end_of_a_pool_is_that_of_its_threads() {
        thread_local! {
            static HELD: std::cell::RefCell<Option<Gone>> = const { std::cell::RefCell::new(None) };
        }
        let gone = Arc::new(AtomicUsize::new(0));
        let pool = ComputePool::new(3).unwrap();
        assert_eq!(pool.len(), 3);
        let hold = |_: rayon::BroadcastContext<'_>| {
            HELD.with_borrow_mut(|held| *held = Some(Gone(Arc::clone(&gone))));
        };
        pool.install(|| rayon::broadcast(hold));
        assert_eq!(gone.load(Ordering::Relaxed), 0);
        drop(pool);
        assert_eq!(gone.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_pool_can_end_on_a_thread_of_its_own() {
        let pool = Arc::new(ComputePool::new(2).unwrap());
        let (last, waiting) = (Arc::clone(&pool), std::sync::mpsc::channel());
        let (sender, receiver) = waiting;
        let end = move || {
            // The other owner is gone by now.
            while Arc::strong_count(&last) > 1 {
                std::thread::yield_now();
            }
            drop(last);
            let _ = sender.send(());
        };
        pool.install(|| rayon::spawn(end));
        drop(pool);
        // In pieces: a process that is stopped meanwhile has not had the time.
        let wait = std::time::Duration::from_millis(100);
        assert!(
            (0..600).any(|_| receiver.recv_timeout(wait).is_ok()),
            "it waits for itself"
        );
    }
}
