//! The command line: what can be asked for, with help and examples. What a command takes stands in
//! a file of its own.

mod agg;
mod as_tiledb;
mod cat;
mod change;
mod check;
mod export;
mod group;
mod import;
mod maintain;
mod manifest;
mod meta;
mod object;
mod quickstart;
mod selection;
mod serve;
mod snapshot;
#[cfg(feature = "sql")]
mod sql;
mod time;
mod tree;
mod upkeep;

pub use agg::AggArgs;
pub use as_tiledb::AsTiledbArgs;
pub use cat::{CatArgs, CatFormat};
pub use change::{CopyArgs, CreateArgs, DeleteArgs, EvolveArgs, TransferArgs, UpgradeArgs};
pub use check::{CheckArgs, FailOn};
pub use export::{ExportArgs, ExportFormat, PictureArgs, ScaleArg, Span};
pub use group::{AddArgs, GroupArgs, GroupCommand, TypeArg};
pub use import::{
    CellOrderArg, FieldArgs, ImportArgs, ImportFormat, OnDuplicate, PlaceArgs, ShapeArgs,
    TileOrderArg,
};
pub use maintain::{ChoiceArgs, ConsolidateArgs, ModeArg, VacuumArgs};
pub use manifest::{ManifestArgs, ManifestUseArg};
pub use meta::{MetaArgs, MetaChange};
pub use object::{ObjectArgs, PathArgs};
pub use quickstart::QuickstartArgs;
pub use selection::{CellArgs, ColumnArgs, OrderArg, SelectionArgs};
#[cfg(feature = "flight-sql")]
pub use serve::FlightSqlArgs;
pub use serve::{ServeArgs, ViewArgs};
pub use snapshot::{HistoryArgs, RestoreArgs, SnapshotArgs, SnapshotCommand};
#[cfg(feature = "sql")]
pub use sql::SqlArgs;
#[cfg(feature = "distributed")]
pub use sql::WorkerArgs;
pub use time::{TimeArgs, between};
pub use tree::TreeArgs;
pub use upkeep::MaintainArgs;

use crate::error::EXIT_CODES;
use crate::size;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::sync::LazyLock;

const EXAMPLES: &str = "Examples:
  azulejo quickstart                                a tour of a sample array
  azulejo info my_array                             what it is
  azulejo cat my_array --range x=0:9 --limit 20     some of its cells
  azulejo export my_array cells.parquet             all of its cells
Each command has examples of its own: azulejo cat --help";

/// The version, what was built in, and of which commit: that of the clone, or what the build was
/// told (`AZULEJO_COMMIT`).
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let features = [
        ("c-codecs", cfg!(feature = "c-codecs")),
        ("distributed", cfg!(feature = "distributed")),
        ("flight-sql", cfg!(feature = "flight-sql")),
        ("object-store", cfg!(feature = "object-store")),
        ("pure-rust", cfg!(feature = "pure-rust")),
        ("sql", cfg!(feature = "sql")),
        ("view", cfg!(feature = "view")),
    ];
    let features = features.iter().filter(|(_, built)| *built);
    let features: Vec<&str> = features.map(|(name, _)| *name).collect();
    let features = match features.is_empty() {
        true => "none".to_owned(),
        false => features.join(", "),
    };
    let commit = option_env!("AZULEJO_COMMIT").unwrap_or("unknown");
    format!(
        "{}\ncommit: {commit}\nfeatures: {features}\nreads TileDB format versions 1 to 23, makes arrays of version 22",
        env!("CARGO_PKG_VERSION")
    )
});

/// Reads, writes and maintains TileDB arrays and groups.
#[derive(Debug, Parser)]
#[command(
    name = "azulejo",
    version,
    long_version = LONG_VERSION.as_str(),
    about = "Reads, writes and maintains TileDB arrays",
    long_about = "Reads any TileDB array or group on disk, whoever wrote it and whenever (format versions 1 to 23), and creates, fills, changes, maintains and checks them.",
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"),
    max_term_width = 110,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Print JSON for programs
    #[arg(long, global = true)]
    pub json: bool,
    /// File with the encryption key: 32 bytes, or 64 hexadecimal digits
    #[arg(long, global = true, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Environment variable with the encryption key, written as in a file
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "key_file")]
    pub key_env: Option<String>,
    /// Command that prints the encryption key, such as a password manager's
    #[arg(long, global = true, value_name = "COMMAND", conflicts_with_all = ["key_file", "key_env"])]
    pub key_command: Option<String>,
    /// Memory that a read may use, such as 512MB or 2GiB [default: 1GiB]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_memory)]
    pub memory: Option<u64>,
    /// Threads for decoding [default: one a core]
    #[arg(
        long,
        global = true,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        value_parser = parse_threads
    )]
    pub threads: usize,
    /// A setting by TileDB's name, such as vfs.s3.region=eu-west-1; may be given several times
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub config: Vec<String>,
    /// File of settings: a name and its value a line, as TileDB writes them
    #[arg(long, global = true, value_name = "FILE")]
    pub config_file: Option<PathBuf>,
    /// Print the requests, bytes and waiting time of object stores at the end
    #[arg(long, global = true)]
    pub stats: bool,
    /// When to read a manifest instead of listing folders
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = ManifestUseArg::Fallback,
        hide_default_value = true, hide_possible_values = true)]
    pub manifest: ManifestUseArg,
    /// When colours show [default: on terminals, unless NO_COLOR is set]
    #[arg(long, global = true, value_name = "WHEN", value_enum)]
    pub color: Option<ColorArg>,
    /// How progress shows [default: as a bar on terminals]
    #[arg(long, global = true, value_name = "HOW", value_enum)]
    pub progress: Option<ProgressArg>,
    /// No progress bars and no notes
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// More threads than any machine has use for.
const MOST_THREADS: usize = 1024;
/// Less than any array can be opened in.
const LEAST_MEMORY: u64 = 1000;

fn parse_threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads) if threads <= MOST_THREADS => Ok(threads),
        _ => Err(format!("{text:?} is not a number from 0 to {MOST_THREADS}")),
    }
}

fn parse_memory(text: &str) -> Result<u64, String> {
    match size::parse(text)? {
        bytes if bytes < LEAST_MEMORY => Err(format!(
            "{bytes} bytes are too few; write a unit, as in 512MB or 2GiB"
        )),
        bytes => Ok(bytes),
    }
}

/// When colours show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorArg {
    /// On terminals
    Auto,
    /// In files and pipes too
    Always,
    /// Never
    Never,
}

/// How progress shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressArg {
    /// As a bar on terminals
    Bar,
    /// As a line every few seconds, in logs too
    Plain,
    /// Not at all
    None,
}

/// What `completions` takes.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// What `man` takes.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// A folder for the pages of all commands; without it the main page goes to standard output
    pub folder: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// A tour of a sample array that comes with this program
    Quickstart(QuickstartArgs),
    /// What an array or group is: schema, domain, fragments, sizes, filters, versions
    #[command(after_help = "Examples:
  azulejo info my_array
  azulejo info my_array --at 2024-05-01
  azulejo info my_array --json")]
    Info(ObjectArgs),
    /// The schema; with --json complete, so that an array can be created from it
    #[command(after_help = "Examples:
  azulejo schema my_array
  azulejo schema my_array --json > schema.json")]
    Schema(ObjectArgs),
    /// Arrays and groups in a folder or group
    #[command(after_help = "Examples:
  azulejo ls data/
  azulejo ls my_group --json")]
    Ls(PathArgs),
    /// Arrays and groups below a folder or group, as a tree
    #[command(after_help = "Examples:
  azulejo tree data/
  azulejo tree my_group --depth 2")]
    Tree(TreeArgs),
    /// One row a fragment: time, cells, domain, size, version
    #[command(after_help = "Examples:
  azulejo fragments my_array
  azulejo fragments my_array --from 2024-05-01 --to 2024-05-31")]
    Fragments(ObjectArgs),
    /// What has been done to an array: writes, deletes, evolutions, consolidations
    #[command(after_help = "Examples:
  azulejo history my_array
  azulejo history my_array --json")]
    History(HistoryArgs),
    /// Names of moments: my_array@NAME is the array as it was then
    #[command(after_help = "Examples:
  azulejo snapshot create my_array v1
  azulejo snapshot create my_group before-cleaning --at yesterday
  azulejo snapshot list my_array
  azulejo cat my_array@v1                               or --at v1
  azulejo snapshot remove my_array v1
A vacuum leaves alone what a named snapshot shows.")]
    Snapshot(SnapshotArgs),
    /// An array as it was at a time, as a new change; nothing is destroyed
    #[command(after_help = "Examples:
  azulejo restore my_array --at 2024-05-01 --dry-run
  azulejo restore my_array --at -1h
  azulejo restore my_array --at v1
Earlier moments read as before, so that a restoration can be undone by another.")]
    Restore(RestoreArgs),
    /// Key-value metadata of an array or group: show it, set or remove keys
    #[command(after_help = "Examples:
  azulejo meta my_array
  azulejo meta my_array units
  azulejo meta set my_array units mm
  azulejo meta set my_array origin 0.5 0.5 --type FLOAT32
  azulejo meta rm my_array draft
  azulejo meta my_group --json")]
    Meta(MetaArgs),
    /// Cells to standard output: a table on a terminal, CSV in a pipe
    #[command(after_help = "Examples:
  azulejo cat my_array
  azulejo cat my_array --range x=-5:5 --range time=2024-05-01:2024-05-31 --attrs temperature
  azulejo cat my_array --where 'quality > 3 and station in (\"x\", \"y\") and note is null'
  azulejo cat my_array --points wanted.csv --format ndjson | jq .
  azulejo cat my_array --at 2024-05-01T12:00 --format arrow > cells.arrow
An upper bound covers the whole period that it names: time=2024-05:2024-05 is all of May.")]
    Cat(CatArgs),
    /// Cells to a file: .parquet .arrow .csv .ndjson .npy .png .zarr .tif
    #[command(after_help = "Examples:
  azulejo export my_array cells.parquet
  azulejo export my_array cells.csv --range x=0:99 --coords
  azulejo export my_array grid.npy --attrs temperature --range y=0:511 --range x=0:511
  azulejo export my_array picture.png --attrs temperature --step y=4 --step x=4
  azulejo export my_array june.png --range time=5 --colours viridis --scale -10:35
  azulejo export my_array - --format parquet | ssh host 'cat > cells.parquet'
.npy takes one attribute of a dense array, .png one attribute of two of its dimensions: the others are fixed by --range.")]
    Export(ExportArgs),
    /// An array out of a file: .csv .tsv .json .ndjson .parquet .arrow .npy .zarr .tif
    #[command(override_usage = "azulejo import [OPTIONS] <FILE>... <URI>")]
    #[command(after_help = "Examples:
  azulejo import weather.csv weather                              rows, numbered along a dimension `row`
  azulejo import weather.csv weather --dims station,time          sparse, by station and time
  azulejo import june.csv weather --append                        more of it
  azulejo import image.npy image                                  dense, one dimension per axis
  azulejo import trades.parquet trades --dims day,symbol --tile day=30 --filter price=byteshuffle,zstd:9
  azulejo import weather.csv weather --dims time --dry-run --json > schema.json
  zcat big.csv.gz | azulejo import - big --format csv
Types, domains, tile extents and filters are chosen from the data; --dry-run shows them, options override them.")]
    Import(Box<ImportArgs>),
    /// Aggregates: count, sum:A, mean:B, min:C, max:C, nulls:D, stddev:E, distinct:F; of groups
    #[command(after_help = "Examples:
  azulejo agg my_array count
  azulejo agg my_array count sum:a mean:b min:b max:b nulls:c --where 'a > 3'
  azulejo agg my_array max:temperature --range time=2024-05 --json
  azulejo agg my_array count mean:temperature stddev:temperature --by station,time:month")]
    Agg(AggArgs),
    /// SQL over arrays, groups, folders, Parquet and CSV files
    #[cfg(feature = "sql")]
    #[command(after_help = "Examples:
  azulejo sql \"SELECT count(*), max(temperature) FROM 'my_array' WHERE x < 10\"
  azulejo sql \"SELECT * FROM azulejo('my_array', at => '2024-05-01') LIMIT 5\"
  azulejo sql --table t=my_array --table u=s3://bucket/other 'SELECT * FROM t JOIN u USING (x)'
  azulejo sql -f queries.sql --format ndjson
  azulejo sql --catalog c=data/                         a shell; \\d shows the tables
docs/sql.md has more.")]
    Sql(SqlArgs),
    /// Takes parts of other machines' queries: azulejo sql --workers
    #[cfg(feature = "distributed")]
    #[command(after_help = "Examples:
  azulejo worker --listen 10.0.0.7:7070
  azulejo sql --workers 10.0.0.7:7070,10.0.0.8:7070 \"SELECT sum(a) FROM 's3://bucket/array'\"
Each worker opens arrays with credentials of its own. There is no password: listen where only friends are.")]
    Worker(WorkerArgs),
    /// Many fragments, or files of other kinds, become few; cells read as before
    #[command(after_help = "Examples:
  azulejo consolidate my_array
  azulejo consolidate my_array --max-fragment-size 1GB --vacuum
  azulejo consolidate my_array --min-fragments 4 --max-fragments 16 --size-ratio 0.5
  azulejo consolidate my_array --mode commits
  azulejo consolidate my_array --plan 500MB
The fragments that were replaced stay until azulejo vacuum.")]
    Consolidate(ConsolidateArgs),
    /// Removes what consolidation has replaced
    #[command(after_help = "Examples:
  azulejo vacuum my_array --dry-run
  azulejo vacuum my_array
  azulejo vacuum my_array --mode commits")]
    Vacuum(VacuumArgs),
    /// What an array needs, done: consolidation, vacuum, fewer files, by a policy
    #[command(after_help = "Examples:
  azulejo maintain my_array --dry-run                   what it would do, and why
  azulejo maintain data/ --recursive --json             as cron would call it, every night
  azulejo maintain --show-policy > policy.txt           numbers to change
  azulejo maintain s3://bucket/my_group --recursive --policy policy.txt
A run vacuums what the run before it has replaced, so that slow readers have the time in between.")]
    Maintain(MaintainArgs),
    /// Verifies an array: names, commits, metadata, files; with --deep every cell
    #[command(after_help = "Examples:
  azulejo check my_array
  azulejo check my_array --deep --json
  azulejo check my_array --repair --dry-run
  azulejo check my_array --adopt                        fragments whose commit was lost
  azulejo check data/ --recursive
Exit code 4 if something is damaged. --repair loses nothing that a reader counts.")]
    Check(CheckArgs),
    /// Writes what lies in an array or group into a file, for readers who cannot list folders
    #[command(after_help = "Examples:
  azulejo manifest my_array
  azulejo manifest s3://bucket/my_group                 and all its members
  azulejo manifest my_array --check                     is it up to date?
  azulejo manifest data/ --recursive --check
With it an array opens from a plain web server, or from a bucket that may be read and not listed. It shows the array as
it was when the manifest was made: make it anew after a write. docs/object-stores.md has more.")]
    Manifest(ManifestArgs),
    /// A dense array for programs on this machine that read Zarr; arrays as tables over Flight SQL
    #[command(after_help = "Examples:
  azulejo serve --zarr my_array                         prints the URL of a Zarr group
  azulejo serve --zarr s3://bucket/my_array --port 8765 --at 2024-05-01
Zarr is answered on 127.0.0.1 only, read-only, behind a token in the URL, until Ctrl-C.
Where the program was built with the feature flight-sql (docs/sql.md):
  azulejo serve --flight-sql my_array my_group          prints an address and a token
  azulejo serve --flight-sql t=s3://bucket/a --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --token-file token")]
    Serve(ServeArgs),
    /// An array or group in the browser: maps, points, tables, history
    #[command(after_help = "Examples:
  azulejo view my_array
  azulejo view s3://bucket/my_group --no-browser        prints the page's URL
It answers on 127.0.0.1 only, read-only, behind a token in the URL, until Ctrl-C; nothing outside the array or group can
be read through it.")]
    View(ViewArgs),
    /// An empty array from a schema
    #[command(after_help = "Examples:
  azulejo schema old --json > schema.json && azulejo create new --schema schema.json
  azulejo create secret --schema schema.json --key-file key
  azulejo create new --schema schema.json --dry-run
docs/schema-json.md describes the file.")]
    Create(CreateArgs),
    /// Another schema: attributes, enumerations, the current domain
    #[command(after_help = "Examples:
  azulejo evolve my_array --add-attr 'quality UINT8 nullable' --drop-attr draft
  azulejo evolve my_array --add-enum grade=good,bad --add-attr 'grade INT8 enum=grade filters=rle,zstd'
  azulejo evolve my_array --extend-enum grade=worse
  azulejo evolve my_array --expand x=0:9999 --dry-run
At earlier times the array keeps its earlier schema.")]
    Evolve(EvolveArgs),
    /// A newer format version, so that what is written from now on has all features
    #[command(after_help = "Examples:
  azulejo upgrade my_array
  azulejo upgrade data/ --recursive --json")]
    Upgrade(UpgradeArgs),
    /// Delete cells, fragments, or a whole array or group
    #[command(after_help = "Examples:
  azulejo delete my_array --where 'quality < 3' --dry-run
  azulejo delete my_array --where 'quality < 3'
  azulejo delete my_array --from 2024-05-01 --to 2024-05-31 --dry-run
  azulejo delete my_array --fragment __1714557600000_1714557600000_0f1e2d3c4b5a69788796a5b4c3d2e1f0_22
  azulejo delete my_group --recursive --dry-run
  azulejo delete my_array --yes")]
    Delete(DeleteArgs),
    /// Make groups, add and remove members
    #[command(after_help = "Examples:
  azulejo group create plates
  azulejo group add plates plates/raw --name raw
  azulejo group add plates raw --relative
  azulejo group rm plates raw")]
    Group(GroupArgs),
    /// Copy an array or group
    #[command(after_help = "Examples:
  azulejo copy my_array backup/my_array
  azulejo copy my_array may/my_array --at 2024-05-31
  azulejo copy my_group published/my_group --at v1")]
    Copy(CopyArgs),
    /// Move an array or group
    #[command(after_help = "Examples:
  azulejo move my_array archive/my_array")]
    Move(TransferArgs),
    /// A program that was made for TileDB, on this library instead
    #[command(after_help = "Examples:
  azulejo as-tiledb -- python script.py
  azulejo as-tiledb --library /opt/azulejo/lib/libtiledb.so.2.30 -- ./my_program
The program's own libtiledb is passed over, and none of its files is touched. On Linux.")]
    AsTiledb(AsTiledbArgs),
    /// What completes commands and options in a shell
    #[command(after_help = "Examples:
  azulejo completions bash > ~/.local/share/bash-completion/completions/azulejo
  azulejo completions zsh > ~/.zfunc/_azulejo
  azulejo completions fish > ~/.config/fish/completions/azulejo.fish")]
    Completions(CompletionsArgs),
    /// Manual pages
    #[command(after_help = "Examples:
  azulejo man | man -l -
  azulejo man ~/.local/share/man/man1")]
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo::TimeRange;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_are_read() {
        let cli = Cli::try_parse_from([
            "azulejo",
            "cat",
            "a",
            "--range",
            "x=-5:-1",
            "--range",
            "x=3",
            "--attrs",
            "a,b",
            "--at",
            "2024-05-01",
            "--order",
            "col",
            "--memory",
            "512MB",
            "--where",
            "a > -3",
            "--limit",
            "7",
        ])
        .unwrap();
        assert_eq!(cli.global.memory, Some(512_000_000));
        let Command::Cat(cat) = cli.command else {
            panic!("not cat")
        };
        assert_eq!(cat.selection.cells.range, ["x=-5:-1", "x=3"]);
        assert_eq!(cat.selection.attrs.unwrap(), ["a", "b"]);
        assert_eq!(cat.selection.order, Some(OrderArg::Col));
        let context = azulejo::Context::new(azulejo::Config::default(), None).unwrap();
        let range = cat.time.range(&context, "a").unwrap();
        assert_eq!(range, TimeRange::until(1_714_607_999_999));
    }

    #[test]
    fn contradictions_are_refused() {
        for line in [
            "azulejo cat a --at 1 --to 2",
            "azulejo cat a --points p --range x=1",
            "azulejo agg a",
            "azulejo cat",
            "azulejo cat a --memory lots",
            "azulejo cat a --order diagonal",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
