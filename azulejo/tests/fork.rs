//! A process forks while its arrays are open: the child reads them with threads of its own.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(unsafe_code, reason = "fork has no safe form")]

use azulejo::column::{ColumnBuilder, ColumnSet, ColumnType};
use azulejo::format::{ArraySchema, Datatype};
use azulejo::read::ReadOptions;
use azulejo::write::WriteOptions;
use azulejo::{Array, Config, Context};
use std::time::{Duration, Instant};

const CELLS: i32 = 1 << 20;

/// What is read, and the sum of it: enough cells that all threads are asked.
fn sum(array: &Array) -> i64 {
    let set = array.read(ReadOptions::new()).unwrap().read_all().unwrap();
    let column = set.columns[0].cells().flatten();
    let values = column.map(|cell| i64::from(i32::from_le_bytes(cell.try_into().unwrap())));
    values.sum()
}

/// Does something in a child, and in a child of that; `true` if both said that all is well.
fn in_child(work: &dyn Fn() -> bool, generations: u32) -> bool {
    // SAFETY: the child does nothing but what is tested, and ends without running destructors of
    // the test harness.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no process");
    if child == 0 {
        let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            work() && (generations == 1 || in_child(work, generations - 1))
        }));
        // SAFETY: as above.
        unsafe { libc::_exit(i32::from(!matches!(well, Ok(true)))) };
    }
    let begun = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: the status lives until the call returns.
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        if ended == child {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        if begun.elapsed() > Duration::from_secs(120) {
            // SAFETY: it is our child.
            unsafe { libc::kill(child, libc::SIGKILL) };
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn arrays_opened_before_a_fork_are_read_and_written_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("a").to_str().unwrap().to_owned();
    let config = Config::new().threads(2);
    let context = Context::new(config, None).unwrap();
    let schema = ArraySchema::dense()
        .dimension("d", 0i32..=CELLS - 1, 1 << 16)
        .attribute("a", Datatype::Int32)
        .build()
        .unwrap();
    context.array(&uri).create(schema).unwrap();
    let write = |add: i32| {
        let mut column = ColumnBuilder::new(ColumnType::new("a", Datatype::Int32));
        for cell in 0..CELLS {
            column.append_cell(&(cell % 1000 + add).to_le_bytes(), true);
        }
        let cell_num = CELLS as usize;
        let columns = vec![column.finish()];
        let mut writer = context.array(&uri).writer(WriteOptions::new()).unwrap();
        writer.write(&ColumnSet { cell_num, columns }).unwrap();
        writer.finish().unwrap();
    };
    write(0);
    let array = context.array(&uri).open().unwrap();
    let expected = sum(&array);
    assert!(in_child(&|| sum(&array) == expected, 2), "a read");
    // The parent's threads are still there, and handles that were opened before see what is written
    // in the child when they are opened again.
    assert_eq!(sum(&array), expected);
    let changed = || {
        write(1);
        let array = context.array(&uri).open().unwrap();
        sum(&array) == expected + i64::from(CELLS)
    };
    assert!(in_child(&changed, 1), "a write");
    let array = context.array(&uri).open().unwrap();
    assert_eq!(sum(&array), expected + i64::from(CELLS));
    // What a child drops is not waited for.
    let dropped = std::cell::RefCell::new(Some((context.clone(), array)));
    assert!(in_child(&|| dropped.take().is_some(), 1), "an end");
}
