//! `cargo xtask cloud sql [--fragments N] [--release]`: an array of thousands of fragments in a bucket, which
//! three processes write, three workers answer queries about, and three processes consolidate.
//!
//! Each worker reaches the server through a proxy of its own, which counts what it reads. One is
//! killed while it works.

use super::proxy::Proxy;
use super::{Stage, s3_context, s3_uri, servers};
use crate::Outcome;
use crate::sql;
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::{ArraySchema, Datatype};
use azulejo::{Context, WriteOptions};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Processes of each kind.
const PROCESSES: i64 = 3;

/// Cells of a fragment.
const CELLS: i64 = 500;

/// Cells that a scan gives one task at least: two partitions of what `azulejo_sql` thinks pays.
const CELLS_A_TASK: i64 = 2 << 16;

/// The most that one worker may read, beside what it would be if all read as much.
const UNEVEN: f64 = 1.25;

/// After so long a query of which a worker was lost has ended.
const LOST: Duration = Duration::from_secs(5);

/// What is asked, and whether all of the array is read for it.
const QUERIES: [(&str, bool); 12] = [
    (
        "SELECT count(*) AS c, min(id) AS a, max(n) AS b, sum(n) AS s FROM t",
        false,
    ),
    (
        "SELECT k, count(*) AS c, sum(n) AS s, max(v) AS m FROM t GROUP BY k ORDER BY k",
        true,
    ),
    (
        "SELECT count(*) AS c, sum(v) AS s FROM t WHERE n % 7 = 3",
        true,
    ),
    (
        "SELECT * FROM t WHERE id BETWEEN 1000 AND 1010 ORDER BY id",
        false,
    ),
    ("SELECT id, v FROM t ORDER BY v DESC, id LIMIT 20", false),
    ("SELECT id FROM t ORDER BY id LIMIT 5", false),
    ("SELECT id FROM t ORDER BY id DESC LIMIT 5", false),
    (
        "SELECT a.k, count(*) AS c, sum(b.n) AS s FROM t AS a JOIN t AS b ON a.id = b.n GROUP BY a.k ORDER BY a.k",
        true,
    ),
    (
        "SELECT count(DISTINCT n) AS c FROM t WHERE k IN (1, 3, 99)",
        true,
    ),
    (
        "SELECT bucket(k, 10) AS b, min(id) AS a, avg(v) AS m FROM t WHERE k < 35 GROUP BY b ORDER BY b",
        true,
    ),
    (
        "SELECT k, n FROM t WHERE n = 5 UNION ALL SELECT k, n FROM t WHERE n = 6 ORDER BY k, n LIMIT 50",
        false,
    ),
    ("SELECT * FROM t WHERE id < 0", false),
];

/// A process, ended when this is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One that reads and writes for others, and the proxy that counts for it.
struct Worker {
    proxy: Proxy,
    address: String,
    process: Process,
}

/// The program, and what tells it where the server is.
struct Program {
    path: PathBuf,
    folder: PathBuf,
}

impl Program {
    /// The program with the settings of a server.
    fn at(&self, server: SocketAddr, arguments: &[&str]) -> Result<Command, String> {
        let file = self.folder.join(format!("server-{}.config", server.port()));
        let settings = format!(
            "vfs.s3.endpoint_override {server}\nvfs.s3.scheme http\n\
             vfs.s3.use_virtual_addressing false\nvfs.s3.region us-east-1\n\
             vfs.s3.aws_access_key_id {}\nvfs.s3.aws_secret_access_key {}\n",
            servers::ACCESS_KEY,
            servers::SECRET_KEY
        );
        std::fs::write(&file, settings).map_err(|e| format!("{}: {e}", file.display()))?;
        let mut command = Command::new(&self.path);
        command
            .arg("--config-file")
            .arg(file)
            .args(arguments)
            .current_dir(&self.folder);
        Ok(command)
    }

    /// What it prints.
    fn output(&self, server: SocketAddr, arguments: &[&str]) -> Result<String, String> {
        let output = self.at(server, arguments)?.output();
        let output = output.map_err(|e| e.to_string())?;
        servers::gets_on();
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!(
                "{}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }

    fn worker(&self, stage: &Stage) -> Result<Worker, String> {
        let proxy = Proxy::start(stage.server.address, &stage.root)?;
        let mut command = self.at(proxy.address, &["worker", "--listen", "127.0.0.1:0"])?;
        let process = command.stdout(Stdio::piped()).spawn();
        let mut process = Process(process.map_err(|e| e.to_string())?);
        let line = first_line(process.0.stdout.take())?;
        let address = line.strip_prefix("listening on ");
        Ok(Worker {
            proxy,
            address: address.ok_or(format!("a worker says {line:?}"))?.to_owned(),
            process,
        })
    }
}

fn first_line(output: Option<ChildStdout>) -> Result<String, String> {
    let mut line = String::new();
    let output = output.ok_or("a process without output")?;
    BufReader::new(output)
        .read_line(&mut line)
        .map_err(|e| e.to_string())?;
    Ok(line.trim().to_owned())
}

/// A process that writes: `ADDRESS URI sql FIRST LAST`. It prints the names of its fragments, which
/// do not count yet.
pub fn write(context: &Context, uri: &str, words: &[&str]) -> Outcome {
    let numbers: Vec<i64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let [first, last] = numbers[..] else {
        return Err("which fragments?".into());
    };
    for fragment in first..last {
        let names = fragment_of(context, uri, fragment).map_err(|e| e.to_string())?;
        println!("{}", names.join("\n"));
    }
    Ok(())
}

/// A fragment whose neighbours lie between its cells: ten of them share a span of coordinates.
fn fragment_of(context: &Context, uri: &str, fragment: i64) -> azulejo::Result<Vec<String>> {
    let id = |i: i64| (fragment / 10) * 10 * CELLS + i * 10 + fragment % 10;
    let ids: Vec<i64> = (0..CELLS).map(id).collect();
    let options = WriteOptions::new().uncommitted();
    let mut writer = context.array(uri).writer(options)?;
    writer.write(&ColumnSet::of([
        ColumnBuffers::of_values("id", ids.clone()),
        ColumnBuffers::of_values(
            "k",
            ids.iter().map(|id| (id % 100) as i32).collect::<Vec<_>>(),
        ),
        ColumnBuffers::of_values(
            "v",
            ids.iter()
                .map(|id| (id % 1000) as f64 / 4.0)
                .collect::<Vec<_>>(),
        ),
        ColumnBuffers::of_values("n", ids.iter().map(|id| id % 977).collect::<Vec<_>>()),
    ])?)?;
    writer.finish()
}

/// Several processes write fragments, and one commit makes all of them count.
fn make(stage: &Stage, uri: &str, fragments: i64) -> Outcome {
    let context = s3_context(stage.sound.address, &[])?;
    let place = context.array(uri);
    let schema = ArraySchema::sparse()
        .dimension("id", 0i64..=99_999_999, 1_000_000)
        .attribute("k", Datatype::Int32)
        .attribute("v", Datatype::Float64)
        .attribute("n", Datatype::Int64)
        .capacity(1_000);
    let schema = schema.build().map_err(|e| e.to_string())?;
    place.create(schema).map_err(|e| e.to_string())?;
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut writers = Vec::new();
    for process in 0..PROCESSES {
        let (first, last) = (
            fragments * process / PROCESSES,
            fragments * (process + 1) / PROCESSES,
        );
        let mut command = Command::new(&program);
        command
            .args([
                "cloud",
                "worker",
                &stage.sound.address.to_string(),
                uri,
                "sql",
            ])
            .args([first.to_string(), last.to_string()])
            .stdout(Stdio::piped());
        writers.push(Process(command.spawn().map_err(|e| e.to_string())?));
    }
    let mut names = Vec::new();
    for writer in &mut writers {
        let output = writer.0.stdout.take().ok_or("a process without output")?;
        for line in BufReader::new(output).lines() {
            names.push(line.map_err(|e| e.to_string())?);
            servers::gets_on();
        }
        let status = writer.0.wait().map_err(|e| e.to_string())?;
        if !status.success() {
            return Err(format!("a writer: {status}"));
        }
    }
    let seen = || place.open().map(|array| array.fragments().len());
    let before = seen().map_err(|e| e.to_string())?;
    place.commit_fragments(&names).map_err(|e| e.to_string())?;
    let after = seen().map_err(|e| e.to_string())?;
    println!(
        "{PROCESSES} processes wrote {fragments} fragments: {before} counted, after one commit {after}"
    );
    match (before, i64::try_from(after)) {
        (0, Ok(after)) if after == fragments => Ok(()),
        _ => Err("not all fragments count, or some did before the commit".into()),
    }
}

fn addresses_of(workers: &[Worker]) -> String {
    let addresses: Vec<&str> = workers.iter().map(|w| w.address.as_str()).collect();
    addresses.join(",")
}

/// Asks everything of one process and of the workers, and says what each of these has read. Where
/// all of the array is read, as many of these as there are tasks read about as much.
fn ask(stage: &Stage, program: &Program, workers: &[Worker], uri: &str, tasks: i64) -> Outcome {
    let addresses = addresses_of(workers);
    let table = format!("--table=t={uri}");
    let mut wrong = Vec::new();
    let received = |proxy: &Proxy| proxy.take().received as f64 / 1e6;
    for (query, reads_all) in QUERIES {
        for worker in workers {
            received(&worker.proxy);
        }
        received(&stage.sound);
        let one = program.output(stage.sound.address, &["sql", &table, query])?;
        let alone = received(&stage.sound);
        let many = [
            "sql",
            &table,
            query,
            "--workers",
            &addresses,
            "--partitions",
            "2",
        ];
        let many = program.output(stage.sound.address, &many)?;
        let asks = received(&stage.sound);
        let each: Vec<f64> = workers
            .iter()
            .map(|worker| received(&worker.proxy))
            .collect();
        let most = each.iter().copied().fold(0.0, f64::max);
        let total = each.iter().sum::<f64>();
        let shown: Vec<String> = each.iter().map(|mb| format!("{mb:.2}")).collect();
        println!(
            "  {:<100} {} rows; one process {alone:.2} MB; who asks {asks:.2}, workers {} MB",
            query.chars().take(100).collect::<String>(),
            one.lines().count().saturating_sub(1),
            shown.join(" + ")
        );
        if one != many {
            wrong.push(format!("{query}\n{one}\n{many}"));
        }
        if reads_all && most > UNEVEN * total / tasks as f64 {
            wrong.push(format!(
                "{query}\n  {tasks} tasks read {} MB: that is not even",
                shown.join(" + ")
            ));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}

/// Kills a worker while it reads for a query: that ends in an error soon, or in the whole answer, and
/// the others answer on.
fn kill(stage: &Stage, program: &Program, uri: &str, tasks: i64) -> Outcome {
    let query = "SELECT k, count(*) AS c, sum(n) AS s, median(v) AS m FROM t GROUP BY k ORDER BY k";
    let table = format!("--table=t={uri}");
    let whole = program.output(stage.sound.address, &["sql", &table, query])?;
    let header = whole.lines().next().unwrap_or_default().to_owned() + "\n";
    for victim in 0..PROCESSES as usize {
        let workers = (0..PROCESSES).map(|_| program.worker(stage));
        let mut workers = workers.collect::<Result<Vec<_>, _>>()?;
        let addresses = addresses_of(&workers);
        let words = ["sql", &table, query, "--workers", &addresses];
        let words = [&words[..], &["--partitions", "2"]].concat();
        let mut asking = program.at(stage.sound.address, &words)?;
        let asking = asking.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut asking = asking.spawn().map_err(|e| e.to_string())?;
        let Some(worker) = workers.get_mut(victim) else {
            return Err("no such worker".into());
        };
        // It has begun to read, and there is more.
        let mut needed = true;
        while needed && worker.proxy.take().received == 0 {
            needed = asking.try_wait().map_err(|e| e.to_string())?.is_none();
            std::thread::sleep(Duration::from_millis(1));
        }
        if !needed && tasks == PROCESSES {
            return Err("a worker that never reads".into());
        }
        worker.process.0.kill().map_err(|e| e.to_string())?;
        let killed = Instant::now();
        let output = asking.wait_with_output().map_err(|e| e.to_string())?;
        let took = killed.elapsed();
        servers::gets_on();
        let found = String::from_utf8_lossy(&output.stdout);
        match output.status.success() {
            true if found == whole => println!("  worker {victim} killed: the answer was whole"),
            false if (found.is_empty() || found == header) && took < LOST => println!(
                "  worker {victim} killed: an error after {:.2} s: {}",
                took.as_secs_f64(),
                String::from_utf8_lossy(&output.stderr)
                    .lines()
                    .next()
                    .unwrap_or_default()
            ),
            _ => {
                return Err(format!(
                    "a worker was killed; after {took:?} {:?}:\n{found}",
                    output.status
                ));
            }
        }
    }
    Ok(())
}

/// Several processes carry out a plan of consolidation, each some of its nodes.
fn consolidate(stage: &Stage, program: &Program, uri: &str) -> Outcome {
    let server = stage.sound.address;
    let plan = program.output(server, &["consolidate", uri, "--plan", "1MB", "--json"])?;
    let plan: Value = serde_json::from_str(&plan).map_err(|e| format!("{plan}: {e}"))?;
    let nodes: Vec<Vec<String>> = serde_json::from_value(plan["nodes"].clone())
        .map_err(|e| format!("a plan without nodes: {e}"))?;
    let count = || -> Result<usize, String> {
        let array = s3_context(server, &[])?.array(uri).open();
        array
            .map(|array| array.fragments().len())
            .map_err(|e| e.to_string())
    };
    let before = count()?;
    let work = |process: usize| -> Outcome {
        for node in nodes.iter().skip(process).step_by(PROCESSES as usize) {
            let names = node.iter().flat_map(|name| ["--fragment", name.as_str()]);
            let words: Vec<&str> = ["consolidate", uri, "--quiet"]
                .into_iter()
                .chain(names)
                .collect();
            program.output(server, &words)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..PROCESSES as usize)
            .map(|process| scope.spawn(move || work(process)))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            let done = thread.join();
            done.unwrap_or_else(|_| Err("a thread panicked".into()))
        })
    })?;
    program.output(server, &["vacuum", uri, "--quiet"])?;
    let after = count()?;
    println!(
        "{PROCESSES} processes carried out a plan of {} nodes: {before} fragments became {after}",
        nodes.len()
    );
    match after < before && !nodes.is_empty() {
        true => Ok(()),
        false => Err("nothing was consolidated".into()),
    }
}

/// Options: `--fragments N`, `--release` for the program as it is used.
pub fn run(stage: &Stage, words: &[&str]) -> Outcome {
    let (mut fragments, mut build) = (2_000, sql::program as fn(&Path) -> _);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match (*word, words.as_slice()) {
            ("--release", _) => build = sql::release,
            ("--fragments", [number, ..]) => {
                fragments = number.parse().map_err(|e| format!("{number}: {e}"))?;
                words.next();
            }
            _ => return Err("cloud sql takes --fragments N and --release".into()),
        }
    }
    let program = Program {
        path: build(Path::new(&crate::root()))?,
        folder: stage.logs().to_path_buf(),
    };
    let uri = s3_uri("sql/events");
    make(stage, &uri, fragments)?;
    let workers = (0..PROCESSES).map(|_| program.worker(stage));
    let workers = workers.collect::<Result<Vec<_>, _>>()?;
    // Of few cells not all workers get a part.
    let tasks = (fragments * CELLS / CELLS_A_TASK + 1).min(PROCESSES);
    ask(stage, &program, &workers, &uri, tasks)?;
    kill(stage, &program, &uri, tasks)?;
    consolidate(stage, &program, &uri)?;
    ask(stage, &program, &workers, &uri, tasks)?;
    println!("cloud sql: the same answers from one process and from {PROCESSES} workers");
    Ok(())
}
