//! Many writers, readers and maintainers at one array at the same time, in one process and in
//! several; and processes that are killed in the middle of what they do.
//!
//! The other processes are this test program itself: it runs the "test" [`worker`], which does
//! nothing unless a variable of the environment gives it a task.

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::consolidate::{Choice, FragmentOptions, Mode, VacuumOptions};
use azulejo::format::datatype::Datatype;
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{Attribute, SchemaEvolution};
use azulejo::format::{ArraySchema, CellValNum, Range};
use azulejo::read::ReadOptions;
use azulejo::space::Subarray;
use azulejo::write::WriteOptions;
use azulejo::{Config, Context};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The variable that makes [`worker`] work: `TASK NUMBER SECONDS URI`.
const TASK: &str = "AZULEJO_TEST_WORKER";

/// Coordinates of a writer: it owns those from its number times this.
const SPACE: i64 = 1 << 32;

/// Cells of one write.
const BATCH: i64 = 23;

fn context() -> Outcome<Context> {
    Ok(Context::new(Config::new().threads(1), None)?)
}

fn create(uri: &str, duplicates: bool) -> Outcome {
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=(1 << 48), 1 << 30)
        .attribute("a", Datatype::Int64)
        .var_attribute("s", Datatype::StringUtf8)
        .allows_duplicates(duplicates)
        .capacity(50)
        .build()?;
    context()?.array(uri).create(schema)?;
    Ok(())
}

/// The value of a cell, which only its coordinate decides.
fn value(x: i64) -> i64 {
    x.wrapping_mul(0x9E37_79B9).rotate_left(7)
}

fn write(context: &Context, uri: &str, cells: std::ops::Range<i64>) -> Outcome {
    let x: Vec<i64> = cells.collect();
    let a: Vec<i64> = x.iter().map(|x| value(*x)).collect();
    let s = ColumnBuffers::of_strings("s", x.iter().map(|x| format!("cell {x}")));
    let cells = ColumnSet::of([
        ColumnBuffers::of_values("x", x),
        ColumnBuffers::of_values("a", a),
        s,
    ])?;
    let mut writer = context.array(uri).writer(WriteOptions::new())?;
    writer.write(&cells)?;
    writer.finish()?;
    Ok(())
}

/// The coordinates there are within a range, ascending; every other field is checked.
fn read(context: &Context, uri: &str, range: std::ops::Range<i64>) -> Outcome<Vec<i64>> {
    let array = context.array(uri).open()?;
    let subarray = Subarray::ranges([Range::of(range.start, range.end - 1)]);
    let cells = array
        .read(ReadOptions::new().subarray(subarray))?
        .read_all()?;
    let column = |name: &str| {
        cells
            .column(name)
            .ok_or_else(|| format!("no column {name}"))
    };
    let x = column("x")?.values::<i64>().ok_or("x is int64")?.to_vec();
    let a = column("a")?.values::<i64>().ok_or("a is int64")?;
    let s = column("s")?.view();
    for (i, x) in x.iter().enumerate() {
        if a[i] != value(*x) || s.cell(i) != format!("cell {x}").as_bytes() {
            return Err(format!(
                "cell {x} reads {} and {:?}",
                a[i],
                String::from_utf8_lossy(s.cell(i))
            )
            .into());
        }
    }
    Ok(x)
}

/// Checks that the writer's cells are there, all and once.
fn check_own(context: &Context, uri: &str, writer: i64, written: i64) -> Outcome {
    let found = read(context, uri, writer * SPACE..(writer + 1) * SPACE)?;
    let wanted: Vec<i64> = (writer * SPACE..writer * SPACE + written).collect();
    if found == wanted {
        return Ok(());
    }
    let missing: Vec<_> = wanted
        .iter()
        .filter(|x| found.binary_search(x).is_err())
        .take(3)
        .collect();
    Err(format!(
        "writer {writer}: {} cells instead of {}, missing {missing:?}",
        found.len(),
        wanted.len()
    )
    .into())
}

fn merge(context: &Context, uri: &str) -> Outcome {
    let choice = Choice::new().fragments(4, 12);
    context
        .array(uri)
        .consolidate(&FragmentOptions::new().choice(choice))?;
    Ok(())
}

fn maintain(context: &Context, uri: &str, round: usize) -> Outcome {
    match round % 4 {
        0 | 2 => merge(context, uri)?,
        1 => drop(context.array(uri).consolidate_commits()?),
        _ => drop(context.array(uri).consolidate_fragment_metadata()?),
    }
    Ok(())
}

/// Writes and reads its own cells for a while; every eighth writer maintains the array between.
/// Returns how many cells it has written.
fn busy_writer(uri: &str, writer: i64, time: Duration, maintains: bool) -> Outcome<i64> {
    let context = context()?;
    let start = Instant::now();
    let (mut written, mut round) = (0, 0);
    // Once at least, however slow the machine.
    while written == 0 || start.elapsed() < time {
        let first = writer * SPACE + written;
        write(&context, uri, first..first + BATCH)?;
        written += BATCH;
        check_own(&context, uri, writer, written)?;
        round += 1;
        if maintains && round % 3 == 0 {
            maintain(&context, uri, round / 3)?;
        }
    }
    Ok(written)
}

/// What a worker process does.
#[test]
fn worker() -> Outcome {
    let Ok(task) = std::env::var(TASK) else {
        return Ok(());
    };
    let words: Vec<&str> = task.splitn(4, ' ').collect();
    let &[task, number, seconds, uri] = words.as_slice() else {
        return Err("a worker wants four words".into());
    };
    let (number, time) = (number.parse()?, Duration::from_secs_f64(seconds.parse()?));
    match task {
        "write" => {
            let written = busy_writer(uri, number, time, number % 2 == 0)?;
            println!("\nwritten {written}");
        }
        "until-killed" => endless(uri, number)?,
        "merge" => {
            let (context, start) = (context()?, Instant::now());
            while start.elapsed() < time {
                merge(&context, uri)?;
            }
        }
        other => return Err(format!("no such task: {other}").into()),
    }
    Ok(())
}

fn start_worker(task: &str, number: i64, seconds: f64, uri: &str) -> Outcome<Child> {
    Ok(Command::new(std::env::current_exe()?)
        .args(["--exact", "worker", "--nocapture", "--test-threads=1"])
        .env(TASK, format!("{task} {number} {seconds} {uri}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?)
}

/// The number after a word in what a worker has printed.
fn reported(output: &str, word: &str) -> Option<i64> {
    output
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(word)?.trim().parse().ok())
}

fn folder() -> Outcome<(tempfile::TempDir, String)> {
    let folder = tempfile::tempdir()?;
    let uri = folder.path().join("array").to_string_lossy().into_owned();
    Ok((folder, uri))
}

fn vacuum_all(context: &Context, uri: &str) -> Outcome {
    for mode in [
        Mode::Commits,
        Mode::Fragments,
        Mode::FragmentMetadata,
        Mode::ArrayMetadata,
    ] {
        context.array(uri).vacuum(mode, VacuumOptions::default())?;
    }
    Ok(())
}

#[test]
fn eight_threads_lose_nothing() -> Outcome {
    let (_folder, uri) = folder()?;
    for duplicates in [false, true] {
        let uri = format!("{uri}-{duplicates}");
        create(&uri, duplicates)?;
        let time = Duration::from_secs(4);
        let written: Vec<Outcome<i64>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|writer| {
                    let uri = &uri;
                    scope.spawn(move || busy_writer(uri, writer, time, writer % 4 == 0))
                })
                .collect();
            threads
                .into_iter()
                .map(|t| t.join().unwrap_or_else(|_| Err("a writer panicked".into())))
                .collect()
        });
        let context = context()?;
        let written: Vec<i64> = written.into_iter().collect::<Outcome<_>>()?;
        for step in 0..2 {
            for (writer, written) in written.iter().enumerate() {
                assert!(*written > 0);
                check_own(&context, &uri, writer as i64, *written)?;
            }
            if step == 0 {
                merge(&context, &uri)?;
                vacuum_all(&context, &uri)?;
            }
        }
    }
    Ok(())
}

/// Writers and a reader share a context, its storage in memory and its buffers.
#[test]
fn readers_see_whole_writes_and_never_fewer() -> Outcome {
    let (context, uri) = (context()?, "mem://array");
    let schema = ArraySchema::sparse().dimension("x", 0i64..=(1 << 48), 1 << 30);
    let schema = schema
        .attribute("a", Datatype::Int64)
        .var_attribute("s", Datatype::StringUtf8);
    context.array(uri).create(schema.build()?)?;
    const WRITES: i64 = 8;
    let all: Vec<i64> = (0..6 * WRITES * BATCH).collect();
    std::thread::scope(|scope| -> Outcome {
        let writers: Vec<_> = (0..6)
            .map(|thread| {
                let context = &context;
                scope.spawn(move || {
                    let mut writes = (thread * WRITES..(thread + 1) * WRITES).map(|n| n * BATCH);
                    writes.try_for_each(|first| write(context, uri, first..first + BATCH))
                })
            })
            .collect();
        let mut most = 0;
        while most < all.len() {
            let over = writers.iter().all(|writer| writer.is_finished());
            let found = read(&context, uri, 0..SPACE)?;
            assert!(
                found
                    .chunk_by(|a, b| a / BATCH == b / BATCH)
                    .all(|write| write.len() as i64 == BATCH)
            );
            assert!(
                found.len() >= most,
                "{} cells where there were {most}",
                found.len()
            );
            most = found.len();
            if over {
                break;
            }
        }
        writers
            .into_iter()
            .try_for_each(|writer| writer.join().unwrap_or_else(|_| Err("a panic".into())))
    })?;
    assert!(read(&context, uri, 0..SPACE)? == all, "cells are missing");
    Ok(())
}

#[test]
fn four_processes_lose_nothing() -> Outcome {
    let (_folder, uri) = folder()?;
    create(&uri, false)?;
    let children: Vec<Child> = (0..4)
        .map(|i| start_worker("write", i, 4.0, &uri))
        .collect::<Outcome<_>>()?;
    let mut written = Vec::new();
    for child in children {
        let output = child.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let number = reported(&text, "written ");
        written.push(number.ok_or_else(|| {
            format!(
                "a worker failed:\n{text}\n{}",
                String::from_utf8_lossy(&output.stderr)
            )
        })?);
    }
    let context = context()?;
    for step in 0..2 {
        for (writer, written) in written.iter().enumerate() {
            assert!(*written > 0);
            check_own(&context, &uri, writer as i64, *written)?;
        }
        if step == 0 {
            merge(&context, &uri)?;
            vacuum_all(&context, &uri)?;
        }
    }
    Ok(())
}

/// Changes an array for ever, saying before and after each step what it does: writes of one batch
/// each, and between them consolidations, vacuums and key-values.
fn endless(uri: &str, first_batch: i64) -> Outcome {
    let context = context()?;
    let mut batch = first_batch;
    let say = |text: String| -> Outcome {
        let mut out = std::io::stdout().lock();
        writeln!(out, "\n{text}")?;
        Ok(out.flush()?)
    };
    loop {
        say(format!("begun {batch}"))?;
        write(&context, uri, batch * BATCH..(batch + 1) * BATCH)?;
        say(format!("done {batch}"))?;
        batch += 1;
        match batch % 6 {
            0 => merge(&context, uri)?,
            1 => context
                .array(uri)
                .change_metadata()?
                .put(
                    "batch",
                    MetadataValue::new(Datatype::Int64, batch.to_le_bytes()),
                )?
                .commit()?,
            2 => drop(context.array(uri).consolidate_commits()?),
            3 => drop(context.array(uri).consolidate_fragment_metadata()?),
            4 => vacuum_all(&context, uri)?,
            _ => drop(
                context
                    .array(uri)
                    .consolidate_metadata(azulejo::TimeRange::ALL)?,
            ),
        }
    }
}

/// Where duplicates are allowed, fragments that two consolidations replace would be there twice.
#[test]
fn consolidating_processes_do_not_double_cells() -> Outcome {
    let (_folder, uri) = folder()?;
    create(&uri, true)?;
    let context = context()?;
    let workers: Vec<Child> = (0..3)
        .map(|number| start_worker("merge", number, 4.0, &uri))
        .collect::<Outcome<_>>()?;
    let (start, mut batches) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(4) {
        write(&context, &uri, batches * BATCH..(batches + 1) * BATCH)?;
        batches += 1;
    }
    for worker in workers {
        let output = worker.wait_with_output()?;
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert_eq!(
        read(&context, &uri, 0..SPACE)?,
        (0..batches * BATCH).collect::<Vec<_>>()
    );
    Ok(())
}

#[test]
fn killed_processes_leave_whole_writes() -> Outcome {
    let (_folder, uri) = folder()?;
    create(&uri, true)?;
    let context = context()?;
    let mut batches = 0;
    // From "hardly started" to "well under way": every third is killed whatever it has done, the
    // others a moment after so many of its batches were begun.
    for round in 0..24u64 {
        let mut child = start_worker("until-killed", batches, 0.0, &uri)?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        let (sender, lines) = std::sync::mpsc::channel();
        let listener = std::thread::spawn(move || {
            BufReader::new(stdout)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        let wanted = if round % 3 == 0 {
            0
        } else {
            2 + round as usize / 2
        };
        let mut said: Vec<String> = Vec::new();
        let mut begun = 0;
        while begun < wanted
            && let Ok(line) = lines.recv()
        {
            begun += usize::from(line.starts_with("begun "));
            said.push(line);
        }
        std::thread::sleep(Duration::from_millis(round * 37 % 61));
        child.kill()?;
        child.wait()?;
        said.extend(lines.iter());
        listener.join().map_err(|_| "the listener panicked")??;
        let said = said.join("\n");
        let done = reported(&said, "done ").map_or(batches, |last| last + 1);
        let begun = reported(&said, "begun ").map_or(batches, |last| last + 1);
        let found = read(&context, &uri, 0..SPACE)?;
        let wanted = |batches: i64| (0..batches * BATCH).collect::<Vec<_>>();
        assert!(
            found == wanted(done) || found == wanted(begun),
            "round {round}: {} cells; {done} batches were done, {begun} begun:\n{said}",
            found.len()
        );
        batches = found.len() as i64 / BATCH;
    }
    // Of those that were begun all but the last of each are done.
    let least: i64 = (0..24)
        .filter(|round| round % 3 != 0)
        .map(|round| 1 + round / 2)
        .sum();
    assert!(
        batches >= least,
        "{batches} batches where {least} were done: the workers ended before they were killed"
    );
    vacuum_all(&context, &uri)?;
    merge(&context, &uri)?;
    vacuum_all(&context, &uri)?;
    assert_eq!(
        read(&context, &uri, 0..SPACE)?,
        (0..batches * BATCH).collect::<Vec<_>>()
    );
    assert!(Path::new(&uri).join("__schema").is_dir());
    Ok(())
}

/// Of two who change the schema alike one is told that the other was faster.
#[test]
fn who_evolves_too_late_is_told_of_the_other() {
    let context = Context::new(Config::default(), None).unwrap();
    let place = context.array("mem://evolved");
    let new = ArraySchema::sparse()
        .dimension("x", 0i32..=9, 10)
        .attribute("a", Datatype::Int32)
        .build()
        .unwrap();
    place.create(new).unwrap();
    let added = SchemaEvolution {
        add_attributes: vec![Attribute::new("v", Datatype::Int32, CellValNum::ONE)],
        ..SchemaEvolution::default()
    };
    let refused = |result: azulejo::Result<()>| result.expect_err("it is there").to_string();
    std::thread::scope(|scope| {
        let hold = place.hold().unwrap();
        let late = scope.spawn(|| refused(place.evolve(&added, None)));
        std::thread::sleep(Duration::from_millis(300));
        hold.evolve(&added, None).unwrap();
        drop(hold);
        let text = late.join().unwrap();
        assert!(text.contains("changed the schema meanwhile"), "{text}");
    });
    std::thread::sleep(Duration::from_millis(5));
    let text = refused(place.evolve(&added, None));
    assert!(!text.contains("meanwhile"), "{text}");
}
