//! The project's own tasks: `cargo xtask TASK`.
#![expect(clippy::print_stdout, reason = "a program for a terminal")]

mod as_tiledb;
mod beside;
mod capi;
mod cargo;
mod clients;
mod cloud;
mod corpus;
mod endure;
mod expected;
mod features;
mod fences;
mod fixtures;
mod folders;
mod fuzz;
mod fuzz_corpus;
mod git;
mod header;
mod interop;
mod interop_messages;
mod interop_write;
#[cfg(target_os = "linux")]
mod kills;
mod models;
mod neighbours;
mod peer;
mod reference;
mod sanitize;
mod sql;
mod unit_tests;
mod versus;
mod web;
mod wheel;

/// What the fixture tests of the engine use too.
#[path = "../../azulejo/tests/support"]
mod support {
    #![allow(dead_code, reason = "the tests of the engine use the rest")]
    pub mod cells;
    pub mod check;
    pub mod facts;
    pub mod interleaved;
    pub mod operations;
    pub mod pack;
    pub mod random;
    pub mod stepped;
}

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask TASK

  fences                      checks that dependencies point down (ARCHITECTURE.md)
  interop                     corpus, read, write, messages, selections, steps: everything that needs the reference or its arrays
  interop corpus [DIR]        every array of a corpus reads as its expected files say
  interop read [--seed N] [--count N] [--keep]
                              random arrays that the reference writes read identically
  interop write [--seed N] [--count N] [--turns N]
                              random arrays that Azulejo writes, and on which both engines take turns, read identically
  interop beside [--every N] [--seed N] [--seconds N]
                              our operations stand still before each storage call while libtiledb does something
  interop messages [--seed N] [--count N]
                              messages of the C API that either library writes, the other reads; queries sent to and fro
  interop selections [--seed N] [--count N]
                              through the C API against a brute-force model: dense aggregates, lossy filters under conditions,
                              shrunk domains, control characters, frames of old Zstandard
  interop steps [--seed N] [--count N]
                              incomplete dense reads end, and sparse sizes are estimated, as in the reference
  cloud [PART]                arrays on real servers, which it installs, starts and stops: conformance, corpus, interop,
                              requests, streams, faults, writers
  cloud matrix [--seconds N] [--seed N]
                              pairs of operations on one array in a bucket, the first of which stands still before one of its
                              requests while the second runs: a minute of them
  cloud bench [--rounds N] [--reference-threads N] [--log]
                              the reference beside us through an S3 server with 20 ms a request
  cloud sql [--fragments N] [--release]
                              three processes write an array of many fragments, three workers answer queries about it as one
                              process does, three consolidate it; says what each worker reads
  endure [--minutes N | --seconds N] [--seed N] [--debug | --library FILE]
                              four processes, one of them libtiledb, change and read the same arrays, against a model of all
                              that they write
  kills [--every N] [--seed N] [--seconds N] [--only TEXT] [--program FILE] [--list]
                              the program is killed right before each of its system calls that change files, and behind
                              the last; each of them fails, happens and says that it failed, and the disk is full from it
                              on; those that open, list, read and lock fail too; on Linux
  features                    every feature of the libraries alone compiles without a warning
  fixtures DIR                packs a selection of a corpus into azulejo/tests/fixtures
  header [--check]            the C header of azulejo-capi, from its sources
  install-capi PREFIX         builds azulejo-capi and installs the library, its header and its pkg-config file
  peer [--debug | --library FILE] [-k EXPR] [-n WORKERS]
                              TileDB-Py's own tests on our C library, against the reference's list
  clients [NAME ..] [--from DIR] [--library FILE]
                              tests of packages that use libtiledb (bioimg, segy, vector-search, soma, cf) on both libraries
  unit-tests [TEXT ..] [--from DIR] [--library FILE]
                              those of TileDB's own unit tests and regression programs that need its public headers
                              alone, on both libraries; wants a C++ compiler and git
  fuzz [TARGET ..] [--seconds N] [--address] [--keep] | fuzz coverage [TARGET ..] [--llvm FOLDER]
                              the fuzz targets under libFuzzer (a minute each), also under the address sanitizer; keeps
                              inputs that reach more; says which lines of the decoders the inputs reach
  models                      what the engine's threads share (answers, cancellation, caches, pools), in every order
  sanitize thread [--sysroot FOLDER] | address | miri
                              tests under sanitizers, with a nightly toolchain: the engine's with threads; the format
                              crate's, the C API's and the fuzz corpora; what Miri can run
  fuzz-corpus DIR             writes inputs for the fuzz targets, taken from a corpus
  web                         the engine as WebAssembly, without C, and its package for npm in azulejo-web/pkg
  web test                    builds that and tests it in node and, where there is one, in a browser
  web small                   builds it without Arrow, to see that it stays small
  web bench                   times it beside zarrita on 1 GB of cells
  web pictures                does that and leaves pictures of the viewer in docs/images
  sql tpch [--scale N] [--only NUMBER] [--keep]
                              TPC-H's queries on arrays, and with DuckDB on the same rows as Parquet: same answers
  sql logic [TEXT]            DataFusion's own SQL tests with arrays for tables, of files whose path holds a text
  sql python                  arrays as tables of the Python wheel `datafusion`, with a package built for it
  sql random [--seed N] [--queries N]
                              random queries over random arrays, and with DuckDB on the same rows as Parquet: same answers
  sql mytile [--from DIR] [--only TEXT] [--show]
                              the tests of MyTile, MariaDB's engine on TileDB, where they are standard SQL: same answers;
                              DIR is a checkout of it
  sql adbc                    the Flight SQL server as ADBC's driver sees it
  versus [--quick] [--rounds N] [--only ARRAY/PHASE]
                              the reference beside us on the same files, in turn; prints ratios
  versus growth               plots how cost grows with cells, tiles, fragments and threads, into docs/images
  versus ceilings             dense reads beside the codec alone and the page cache alone; prints shares
  versus capi [--rounds N] [--reps N] [WORKLOAD ...]
                              the same C program over both libraries, in turn; prints ratios
  as-tiledb [--debug | --wheel FILE] [--release VERSION | --release soma] [--from DIR] [-k EXPR] [-n WORKERS]
                              TileDB-Py's own tests, untouched, on the engine in our Python package; those of tiledbsoma,
                              of which DIR/soma is a checkout, too
  versus python [--seed N] [--rounds N] [--only TEXT]
                              our Python package beside TileDB-Py, and beside xarray on Zarr; prints ratios
  versus workloads [--seed N] [--count N] [--rounds N] [--only NUMBER] [--cpu]
                              random workloads through TileDB-Py, on its own library and on ours; prints ratios
  versus parquet [--seed N] [--rounds N] [--cells N] [--only TEXT] [--optimize GOAL]
                              our Python package beside DuckDB and DataFusion on Parquet; prints ratios
  versus many [--most N]      how our cost grows with the number of fragments, up to 100,000: processor time and memory
  versus threads [--rounds N] [--only TEXT]
                              the same work with one thread and with two: what is serial of it
  versus zarr                 dense arrays beside zarrs, TensorStore and zarr-python; prints ratios
  versus sql [--rows N] [--rounds N] [--only TEXT] [--keep]
                              azulejo sql over arrays and over Parquet: processor time and bytes read; prints ratios
  wheel [--debug | --only TARGET]
                              builds the Python package's wheels for the platforms that can be built for here (with --debug
                              unoptimised, for this one alone), installs the one for this machine and tests it
";

/// What a task says when it fails.
type Outcome = Result<(), String>;

/// The root of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["fences"] => fences::check(&root()),
        // CI wants the same answer twice: new seeds are for `interop read`.
        ["interop"] => corpus::run(None)
            .and_then(|()| interop::run(&["--seed", "1", "--count", "100"]))
            .and_then(|()| interop_write::run(&["--seed", "1", "--count", "150", "--turns", "30"]))
            .and_then(|()| interop_messages::run(&["--seed", "1", "--count", "40"]))
            .and_then(|()| interop_messages::selections(&["--seed", "1", "--count", "60"]))
            .and_then(|()| interop_messages::steps(&["--seed", "1", "--count", "60"])),
        ["interop", "corpus"] => corpus::run(None),
        ["interop", "corpus", dir] => corpus::run(Some(Path::new(dir))),
        ["interop", "read", rest @ ..] => interop::run(rest),
        ["interop", "write", rest @ ..] => interop_write::run(rest),
        ["interop", "messages", rest @ ..] => interop_messages::run(rest),
        ["interop", "selections", rest @ ..] => interop_messages::selections(rest),
        ["interop", "steps", rest @ ..] => interop_messages::steps(rest),
        ["interop", "beside", rest @ ..] => beside::run(rest),
        #[cfg(target_os = "linux")]
        ["kills", rest @ ..] => kills::run(rest),
        #[cfg(not(target_os = "linux"))]
        ["kills", ..] => Err("kills follows system calls as Linux has them: not here".into()),
        ["fixtures", dir] => fixtures::pack(Path::new(dir)),
        ["features"] => features::check(&root()),
        ["header"] => header::write(&root()),
        ["header", "--check"] => header::check(&root()),
        ["install-capi", prefix] => capi::install(&root(), Path::new(prefix)),
        ["endure", rest @ ..] => endure::run(rest),
        ["cloud", rest @ ..] => cloud::run(rest),
        ["clients", rest @ ..] => clients::run(rest),
        ["unit-tests", rest @ ..] => unit_tests::run(rest),
        ["as-tiledb", rest @ ..] => as_tiledb::run(&root(), rest),
        ["peer", rest @ ..] => peer::run(&root(), rest),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["models"] => models::run(),
        ["sanitize", rest @ ..] => sanitize::run(rest),
        ["fuzz-corpus", dir] => fuzz_corpus::write(Path::new(dir)),
        ["web"] => web::build(&root()),
        ["web", "small"] => web::small(&root()),
        ["web", "bench"] => web::bench(&root()),
        ["web", "test"] => web::test(&root(), None),
        ["web", "pictures"] => web::test(&root(), Some(&root().join("docs/images"))),
        ["sql", "tpch", rest @ ..] => sql::tpch(&root(), rest),
        ["sql", "python"] => sql::python(&root()),
        ["sql", "logic", rest @ ..] => sql::logic(&root(), rest),
        ["sql", "mytile", rest @ ..] => sql::mytile(&root(), rest),
        ["sql", "adbc"] => sql::adbc(&root()),
        ["sql", "random", rest @ ..] => sql::random(&root(), rest),
        ["versus", "sql", rest @ ..] => sql::versus(&root(), rest),
        ["versus", "capi", rest @ ..] => {
            versus::reference_library().and_then(|theirs| capi::versus(&root(), &theirs, rest))
        }
        ["versus", "growth"] => {
            versus::reference_library().and_then(|theirs| capi::growth(&root(), &theirs))
        }
        ["versus", "python", rest @ ..] => neighbours::run(&root(), &neighbours::PYTHON, rest),
        ["versus", "parquet", rest @ ..] => neighbours::run(&root(), &neighbours::PARQUET, rest),
        ["versus", "many", rest @ ..] => neighbours::run(&root(), &neighbours::MANY, rest),
        ["versus", "threads", rest @ ..] => neighbours::run(&root(), &neighbours::THREADS, rest),
        ["versus", "workloads", rest @ ..] => neighbours::workloads(&root(), rest),
        ["versus", "zarr"] => neighbours::zarr(&root()),
        ["versus", rest @ ..] => versus::run(rest),
        ["wheel"] => wheel::run(&root(), None),
        ["wheel", "--only", target] => wheel::run(&root(), Some(target)),
        ["wheel", "--debug"] => wheel::run_debug(&root()),
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}
