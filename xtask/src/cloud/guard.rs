//! Who ends servers and removes their data when this program is ended before it can do so itself,
//! by a signal for example.
//!
//! A shell that reads what there is to end; when its input ends, this program has, and the shell
//! does it.

use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// What the shell does: signals to the whole group do not end it.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
pids=
dir=
while read -r verb what; do
    case $verb in
        start) pids="$pids $what" ;;
        stop)
            left=
            for pid in $pids; do [ "$pid" = "$what" ] || left="$left $pid"; done
            pids=$left
            ;;
        folder) dir=$what ;;
    esac
done
for pid in $pids; do kill -9 "$pid" 2>/dev/null; done
[ -z "$dir" ] || rm -rf -- "$dir"
"#;

static GUARD: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// Tells the shell, which is started when it is told something first. Without a shell there is no
/// guard.
fn tell(line: &str) {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.is_none() {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        *guard = shell.spawn().ok().and_then(|mut shell| shell.stdin.take());
    }
    if let Some(input) = guard.as_mut() {
        let _ = writeln!(input, "{line}");
    }
}

/// A process that is to be ended.
pub fn started(id: u32) {
    tell(&format!("start {id}"));
}

/// It has been ended.
pub fn stopped(id: u32) {
    tell(&format!("stop {id}"));
}

/// A folder that is to be removed.
pub fn folder(path: &Path) {
    tell(&format!("folder {}", path.display()));
}
