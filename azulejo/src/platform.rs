//! What platforms do differently: time, processes, threads, reads at a position.
//!
//! A browser has a clock of its own and neither threads nor processes nor files that block.

use std::fs::File;
use std::io;
use std::time::Duration;

/// Whether a program may start threads.
pub(crate) const HAS_THREADS: bool = !cfg!(target_family = "wasm");

/// Time since 1970-01-01 UTC.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub(crate) fn since_epoch() -> Duration {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
}

/// Time since 1970-01-01 UTC.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub(crate) fn since_epoch() -> Duration {
    Duration::try_from_secs_f64(js_sys::Date::now() / 1000.0).unwrap_or_default()
}

/// Waits for a moment, where a program may.
pub(crate) fn pause(time: Duration) {
    if HAS_THREADS {
        std::thread::sleep(time);
    }
}

/// Measures how long something takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    begun: std::time::Instant,
    #[cfg(all(target_family = "wasm", target_os = "unknown"))]
    begun: Duration,
}

impl Stopwatch {
    /// Begins now.
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub fn start() -> Self {
        Self {
            begun: std::time::Instant::now(),
        }
    }

    /// Begins now.
    #[cfg(all(target_family = "wasm", target_os = "unknown"))]
    pub fn start() -> Self {
        Self {
            begun: since_epoch(),
        }
    }

    /// The time since the beginning.
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub fn elapsed(self) -> Duration {
        self.begun.elapsed()
    }

    /// The time since the beginning.
    #[cfg(all(target_family = "wasm", target_os = "unknown"))]
    pub fn elapsed(self) -> Duration {
        since_epoch().saturating_sub(self.begun)
    }
}

/// The id of this process; a forked child has another. 0 where there is one process only.
pub(crate) fn process_id() -> u32 {
    if cfg!(target_family = "wasm") {
        0
    } else {
        std::process::id()
    }
}

/// Fills `out` from `offset` on, wherever the file stands.
#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

/// Fills `out` from `offset` on; the file then stands behind it.
#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, mut out: &mut [u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !out.is_empty() {
        match file.seek_read(out, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                out = &mut out[n..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Refuses: there are no files.
#[cfg(not(any(unix, windows)))]
pub(crate) fn read_exact_at(_: &File, _: &mut [u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
