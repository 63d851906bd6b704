//! A program run call by call: its system calls for files below a folder are counted, and one of them
//! can be the last, or fail.

use libc::{c_int, c_long, pid_t};
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// A program that is not done after so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// `PTRACE_GET_SYSCALL_INFO`, and what it says of a stop.
const GET_SYSCALL_INFO: Request = 0x420e;
/// What a request does not look at.
const NOTHING: c_long = 0;
const AT_ENTRY: u8 = 1;
const AT_EXIT: u8 = 2;

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process is killed right before it.
    Killed,
    /// The process is killed right behind it.
    KilledAfter,
    /// It does not happen, and says so by this error.
    Refused(c_int),
    /// It happens, and says that it has not.
    Late,
    /// From it on nothing finds room; what needs none works.
    Full,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::Killed => "killed before",
            Self::KilledAfter => "killed behind",
            Self::Refused(libc::ENOSPC) => "refused once for want of room",
            Self::Refused(libc::EMFILE) => "refused for too many open files",
            Self::Refused(libc::ENOLCK) => "refused a lock",
            Self::Refused(_) => "refused by the device",
            Self::Late => "late",
            Self::Full => "full from there on",
        })
    }
}

/// How the program ended.
#[derive(Debug)]
pub enum End {
    Code(i32),
    Signal(i32),
    Hung,
}

/// A run of the program.
#[derive(Debug)]
pub struct Run {
    pub end: End,
    /// The calls that count, in order.
    pub calls: Vec<Call>,
}

/// What a stop for a system call says.
#[repr(C)]
#[derive(Debug, Default)]
struct CallInfo {
    op: u8,
    pad: [u8; 3],
    arch: u32,
    instruction: u64,
    stack: u64,
    number: u64,
    args: [u64; 6],
    more: u64,
}

/// A call for a file below the folder.
#[derive(Debug)]
pub struct Call {
    /// What, and of what.
    pub text: String,
    kind: Kind,
}

/// What a call is about, which says how it can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Opens a file that it may make.
    Makes,
    /// Puts bytes into a file.
    Writes,
    /// Makes a folder or a name, a file another length, or what was written last.
    Adds,
    /// Takes a name away or gives another one: that needs no room.
    Removes,
    /// Opens what is there.
    Opens,
    /// Asks for a lock.
    Locks,
    /// Reads bytes of a file, or names of a folder.
    Reads,
}

impl Call {
    /// Whether it changes something.
    pub fn changes(&self) -> bool {
        match self.kind {
            Kind::Makes | Kind::Writes | Kind::Adds | Kind::Removes => true,
            Kind::Opens | Kind::Locks | Kind::Reads => false,
        }
    }

    fn takes_room(&self) -> bool {
        matches!(self.kind, Kind::Makes | Kind::Writes | Kind::Adds)
    }

    /// The faults that it can meet.
    pub fn faults(&self) -> Vec<Fault> {
        let errors: &[c_int] = match self.kind {
            Kind::Makes => &[libc::ENOSPC, libc::EIO, libc::EMFILE],
            Kind::Writes | Kind::Adds => &[libc::ENOSPC, libc::EIO],
            Kind::Removes | Kind::Reads => &[libc::EIO],
            Kind::Opens => &[libc::EMFILE],
            Kind::Locks => &[libc::ENOLCK],
        };
        let mut faults: Vec<Fault> = errors.iter().map(|error| Fault::Refused(*error)).collect();
        if self.changes() {
            faults.push(Fault::Killed);
        }
        if self.takes_room() {
            faults.push(Fault::Full);
        }
        // What was opened or written and says that it was not is what does not happen.
        if matches!(self.kind, Kind::Adds | Kind::Removes) {
            faults.push(Fault::Late);
        }
        faults
    }
}

/// Runs a command to its end. Of its system calls for files below a folder the one of the number (from 0
/// on) meets a fault. The command must not have pipes that nobody empties.
pub fn run(command: &mut Command, below: &Path, at: Option<(usize, Fault)>) -> io::Result<Run> {
    // SAFETY: between fork and exec one system call is made, which allocates nothing.
    unsafe {
        command.pre_exec(
            || match libc::ptrace(libc::PTRACE_TRACEME, 0, NOTHING, NOTHING) {
                -1 => Err(io::Error::last_os_error()),
                _ => Ok(()),
            },
        );
    }
    let child = command.spawn()?;
    let main = pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let (done, wait) = mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let hung = wait.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout);
        if hung {
            kill(main);
        }
        hung
    });
    let run = follow(main, below, at);
    if run.is_err() {
        kill(main);
    }
    drop(done);
    let hung = watch.join().unwrap_or(false);
    run.map(|run| match hung {
        true => Run {
            end: End::Hung,
            ..run
        },
        false => run,
    })
}

fn follow(main: pid_t, below: &Path, at: Option<(usize, Fault)>) -> io::Result<Run> {
    wait_for(main)?;
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_EXITKILL;
    // The kernel's words are unsigned; these are small.
    ask(libc::PTRACE_SETOPTIONS, main, 0, c_long::from(options))?;
    go_on(main, 0)?;
    let mut calls = Vec::new();
    let mut threads = vec![main];
    // What a thread's call under way is to return.
    let mut answers: Vec<(pid_t, c_int)> = Vec::new();
    // Whose call under way is the last one.
    let mut last: Option<pid_t> = None;
    loop {
        let (thread, status) = wait_for(-1)?;
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            threads.retain(|known| *known != thread);
            if thread != main {
                continue;
            }
            let end = match libc::WIFEXITED(status) {
                true => End::Code(libc::WEXITSTATUS(status)),
                false => End::Signal(libc::WTERMSIG(status)),
            };
            return Ok(Run { end, calls });
        }
        let signal = libc::WSTOPSIG(status);
        let first = !threads.contains(&thread);
        if first {
            threads.push(thread);
        }
        if signal != libc::SIGTRAP | 0x80 {
            // Stops for events, and the one that each new thread begins with, are no signals of its own.
            let own = status >> 16 == 0 && !(first && signal == libc::SIGSTOP);
            go_on(thread, if own { signal } else { 0 })?;
            continue;
        }
        let Some(info) = call_info(thread) else {
            continue;
        };
        match info.op {
            AT_ENTRY => {
                if let Some(call) = call(thread, &info, below) {
                    let number = calls.len();
                    let fault = at.filter(|(n, fault)| match fault {
                        Fault::Full => number >= *n && call.takes_room(),
                        Fault::Killed | Fault::KilledAfter | Fault::Refused(_) | Fault::Late => {
                            number == *n
                        }
                    });
                    calls.push(call);
                    match fault {
                        None => {}
                        Some((_, Fault::Killed)) => {
                            leave_out(thread)?;
                            kill(main);
                        }
                        Some((_, Fault::KilledAfter)) => last = Some(thread),
                        Some((_, Fault::Late)) => answers.push((thread, libc::EIO)),
                        Some((_, Fault::Refused(error))) => {
                            leave_out(thread)?;
                            answers.push((thread, error));
                        }
                        Some((_, Fault::Full)) => {
                            leave_out(thread)?;
                            answers.push((thread, libc::ENOSPC));
                        }
                    }
                }
            }
            AT_EXIT => {
                if let Some(place) = answers.iter().position(|(waits, _)| *waits == thread) {
                    let (_, error) = answers.swap_remove(place);
                    answer(thread, -i64::from(error))?;
                }
                if last == Some(thread) {
                    kill(main);
                }
            }
            _ => {}
        }
        go_on(thread, 0)?;
    }
}

/// The call at whose entry a thread stands, if it is for what lies below a folder.
fn call(thread: pid_t, info: &CallInfo, below: &Path) -> Option<Call> {
    let [a, b, c, d, ..] = info.args;
    let of_fd = |fd: u64| opened(thread, fd);
    let of_path = |at: u64, path: u64| named(thread, Some(at), path);
    let (name, path, kind) = match c_long::try_from(info.number).ok()? {
        libc::SYS_write => ("write", of_fd(a), Kind::Writes),
        libc::SYS_pwrite64 => ("pwrite64", of_fd(a), Kind::Writes),
        libc::SYS_writev => ("writev", of_fd(a), Kind::Writes),
        libc::SYS_pwritev => ("pwritev", of_fd(a), Kind::Writes),
        libc::SYS_pwritev2 => ("pwritev2", of_fd(a), Kind::Writes),
        libc::SYS_fallocate => ("fallocate", of_fd(a), Kind::Writes),
        libc::SYS_sendfile => ("sendfile", of_fd(a), Kind::Writes),
        libc::SYS_copy_file_range => ("copy_file_range", of_fd(c), Kind::Writes),
        libc::SYS_fsync => ("fsync", of_fd(a), Kind::Adds),
        libc::SYS_fdatasync => ("fdatasync", of_fd(a), Kind::Adds),
        libc::SYS_ftruncate => ("ftruncate", of_fd(a), Kind::Adds),
        libc::SYS_openat => ("openat", of_path(a, b), opening(c)),
        libc::SYS_mkdirat => ("mkdirat", of_path(a, b), Kind::Adds),
        libc::SYS_unlinkat => ("unlinkat", of_path(a, b), Kind::Removes),
        libc::SYS_linkat => ("linkat", of_path(c, d), Kind::Adds),
        libc::SYS_symlinkat => ("symlinkat", of_path(b, c), Kind::Adds),
        libc::SYS_renameat2 => ("renameat2", of_path(c, d), Kind::Removes),
        libc::SYS_flock if b & u64::from(libc::LOCK_UN.unsigned_abs()) == 0 => {
            ("flock", of_fd(a), Kind::Locks)
        }
        libc::SYS_read => ("read", of_fd(a), Kind::Reads),
        libc::SYS_pread64 => ("pread64", of_fd(a), Kind::Reads),
        libc::SYS_preadv => ("preadv", of_fd(a), Kind::Reads),
        libc::SYS_getdents64 => ("getdents64", of_fd(a), Kind::Reads),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_renameat => ("renameat", of_path(c, d), Kind::Removes),
        #[cfg(target_arch = "x86_64")]
        number => {
            let path = |path: u64| named(thread, None, path);
            match number {
                libc::SYS_open => ("open", path(a), opening(b)),
                libc::SYS_creat => ("creat", path(a), Kind::Makes),
                libc::SYS_truncate => ("truncate", path(a), Kind::Adds),
                libc::SYS_mkdir => ("mkdir", path(a), Kind::Adds),
                libc::SYS_rmdir => ("rmdir", path(a), Kind::Removes),
                libc::SYS_unlink => ("unlink", path(a), Kind::Removes),
                libc::SYS_link => ("link", path(b), Kind::Adds),
                libc::SYS_symlink => ("symlink", path(b), Kind::Adds),
                libc::SYS_rename => ("rename", path(b), Kind::Removes),
                _ => return None,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        _ => return None,
    };
    let path = path?;
    let inside = path.strip_prefix(below).ok()?;
    Some(Call {
        text: format!("{name} {}", inside.display()),
        kind,
    })
}

/// What an open with such flags may do.
fn opening(flags: u64) -> Kind {
    let changing = u64::from((libc::O_CREAT | libc::O_TRUNC).unsigned_abs());
    match flags & changing {
        0 => Kind::Opens,
        _ => Kind::Makes,
    }
}

/// What a descriptor of a thread names.
fn opened(thread: pid_t, fd: u64) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{thread}/fd/{fd}")).ok()
}

/// What a path in a thread's memory names, from the folder of a descriptor or from its current one.
fn named(thread: pid_t, at: Option<u64>, address: u64) -> Option<PathBuf> {
    let memory = File::open(format!("/proc/{thread}/mem")).ok()?;
    let mut text = Vec::new();
    let mut from = address;
    loop {
        // A page may be the last one.
        let mut page = vec![0; usize::try_from(4096 - from % 4096).ok()?];
        memory.read_exact_at(&mut page, from).ok()?;
        match page.iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend_from_slice(page.get(..end)?);
                break;
            }
            None if text.len() > 1 << 16 => return None,
            None => text.extend_from_slice(&page),
        }
        from += u64::try_from(page.len()).ok()?;
    }
    let path = PathBuf::from(OsStr::from_bytes(&text));
    if path.is_absolute() {
        return Some(path);
    }
    // A C `int` in a register: only the lower half counts.
    let here = libc::AT_FDCWD.cast_unsigned();
    let folder = match at {
        Some(fd) if fd & 0xffff_ffff != u64::from(here) => opened(thread, fd)?,
        _ => std::fs::read_link(format!("/proc/{thread}/cwd")).ok()?,
    };
    Some(folder.join(path))
}

/// Ends a process.
fn kill(process: pid_t) {
    // SAFETY: a system call that takes numbers only; the process is a child that was not waited for.
    unsafe {
        libc::kill(process, libc::SIGKILL);
    }
}

/// Waits until a traced thread stops or ends: one, or any (-1).
fn wait_for(thread: pid_t) -> io::Result<(pid_t, c_int)> {
    let mut status = 0;
    loop {
        // SAFETY: the status outlives the call.
        match unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL) } {
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            stopped => return Ok((stopped, status)),
        }
    }
}

/// A request that takes numbers only.
fn ask(request: Request, thread: pid_t, address: c_long, data: c_long) -> io::Result<()> {
    // SAFETY: the requests of this module that come here read and write no memory of this process.
    match unsafe { libc::ptrace(request, thread, address, data) } {
        -1 => match io::Error::last_os_error() {
            // Killed meanwhile: that comes with the next wait.
            error if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            error => Err(error),
        },
        _ => Ok(()),
    }
}

/// On to the next system call, or its end.
fn go_on(thread: pid_t, signal: c_int) -> io::Result<()> {
    ask(libc::PTRACE_SYSCALL, thread, 0, c_long::from(signal))
}

/// The call at which a thread stands; `None` if it is gone.
fn call_info(thread: pid_t) -> Option<CallInfo> {
    let mut info = CallInfo::default();
    let size = size_of::<CallInfo>();
    // SAFETY: the kernel writes at most as many bytes as it is told, and any bytes are such a value.
    let wrote = unsafe { libc::ptrace(GET_SYSCALL_INFO, thread, size, &raw mut info) };
    (wrote > 0).then_some(info)
}

/// What libc calls a request.
#[cfg(target_env = "musl")]
type Request = c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

/// Makes the call at whose entry a thread stands none.
#[cfg(target_arch = "x86_64")]
fn leave_out(thread: pid_t) -> io::Result<()> {
    // Of `orig_rax` among the registers.
    ask(libc::PTRACE_POKEUSER, thread, 15 * 8, -1)
}

/// What the call at whose exit a thread stands returns.
#[cfg(target_arch = "x86_64")]
fn answer(thread: pid_t, value: i64) -> io::Result<()> {
    // Of `rax` among the registers.
    ask(libc::PTRACE_POKEUSER, thread, 10 * 8, value)
}

/// Makes the call at whose entry a thread stands none.
#[cfg(target_arch = "aarch64")]
fn leave_out(thread: pid_t) -> io::Result<()> {
    const SYSTEM_CALL: c_long = 0x404;
    let mut number: c_int = -1;
    registers(libc::PTRACE_SETREGSET, thread, SYSTEM_CALL, &mut number)
}

/// What the call at whose exit a thread stands returns.
#[cfg(target_arch = "aarch64")]
fn answer(thread: pid_t, value: i64) -> io::Result<()> {
    const GENERAL: c_long = 1;
    // 31 registers, the stack pointer, the program counter and flags.
    let mut all = [0u64; 34];
    registers(libc::PTRACE_GETREGSET, thread, GENERAL, &mut all)?;
    all[0] = value.cast_unsigned();
    registers(libc::PTRACE_SETREGSET, thread, GENERAL, &mut all)
}

/// Reads or writes a set of registers.
#[cfg(target_arch = "aarch64")]
fn registers<T>(request: Request, thread: pid_t, set: c_long, value: &mut T) -> io::Result<()> {
    let mut place = libc::iovec {
        iov_base: std::ptr::from_mut(value).cast(),
        iov_len: size_of::<T>(),
    };
    // SAFETY: the kernel reads or writes the bytes of the value, which has no other ones, alone.
    match unsafe { libc::ptrace(request, thread, set, &raw mut place) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
