//! `cargo xtask kills`: the program is killed right before each of its system calls that change files,
//! and each of them, and of those that look at files, fails, in turn.
//!
//! The other tests of this kind (`docs/reliability.md`) stop the engine at its storage's interface, in
//! one process; here nothing of the program is known but what it is told and what it says. Afterwards
//! everything is as before or as after, a check with repair leaves no errors, and the same command does
//! its work, before that check or behind it.

mod trace;

use crate::folders::{Folder, copy};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use trace::{End, Fault};

/// What a command does when its work is done already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// It ends well, and changes nothing.
    Done,
    /// It says that it is done, or that what it wants is not there (any more).
    Says,
    /// Its work twice: who wants it once looks before.
    Look,
}

/// Something that is done with a copy of what was prepared.
struct Case {
    name: &'static str,
    /// What there is before.
    before: &'static str,
    /// The program's words, with `_` for spaces in them; `{x}` is the folder of the copy, `{files}` that of the files, `{fragment}` the
    /// name of the first fragment of `a`.
    words: &'static str,
    again: Again,
}

const fn case(name: &'static str, before: &'static str, words: &'static str, again: Again) -> Case {
    Case {
        name,
        before,
        words,
        again,
    }
}

impl Case {
    /// For maintenance, what removes all that it has replaced.
    fn tidy(&self) -> Option<String> {
        // As in the reference, files of the same times stay all.
        if self.name == "consolidate footers" {
            return None;
        }
        let words = self.words.replacen("consolidate", "vacuum", 1);
        words.starts_with("vacuum").then_some(words)
    }
}

const CASES: &[Case] = &[
    case(
        "import",
        "nothing",
        "import {files}/a.csv {x}/a --dims x --domain x=0:100",
        Again::Says,
    ),
    case(
        "import dense",
        "nothing",
        "import {files}/a.csv {x}/a",
        Again::Says,
    ),
    case(
        "import labels",
        "nothing",
        "import {files}/a.csv {x}/a --dims x --domain x=0:100 --enumerate s",
        Again::Says,
    ),
    case(
        "create",
        "nothing",
        "create {x}/a --schema {files}/schema.json",
        Again::Says,
    ),
    case(
        "append",
        "sparse",
        "import --append {files}/c.csv {x}/a",
        Again::Look,
    ),
    case(
        "append dense",
        "dense",
        "import --append {files}/c.csv {x}/a",
        Again::Look,
    ),
    case(
        "append labels",
        "labels",
        "import --append {files}/c.csv {x}/a",
        Again::Look,
    ),
    case(
        "delete cells",
        "sparse",
        "delete {x}/a --where v>40",
        Again::Done,
    ),
    case(
        "delete fragment",
        "sparse",
        "delete {x}/a --fragment {fragment}",
        Again::Says,
    ),
    case(
        "delete fragments by time",
        "sparse",
        "delete {x}/a --from 2000-01-01",
        Again::Says,
    ),
    case(
        "evolve",
        "sparse",
        "evolve {x}/a --add-attr w_INT32_nullable",
        Again::Says,
    ),
    case(
        "evolve labels",
        "labels",
        "evolve {x}/a --add-enum e=A,B --add-attr w_INT32_enum=e",
        Again::Says,
    ),
    case(
        "delete cells of duplicates",
        "duplicates",
        "delete {x}/a --where v>40",
        Again::Done,
    ),
    case("drop", "sparse", "evolve {x}/a --drop-attr s", Again::Says),
    case(
        "expand",
        "dense",
        "evolve {x}/a --expand row=0:40",
        Again::Says,
    ),
    case(
        "snapshot",
        "sparse",
        "snapshot create {x}/a first",
        Again::Says,
    ),
    case(
        "remove a snapshot",
        "snapshot",
        "snapshot remove {x}/a first",
        Again::Says,
    ),
    case(
        "restore",
        "snapshot",
        "restore {x}/a --at first",
        Again::Done,
    ),
    case(
        "set a key",
        "sparse",
        "meta set {x}/a key value",
        Again::Done,
    ),
    case("remove a key", "keys", "meta rm {x}/a one", Again::Says),
    case("consolidate", "sparse", "consolidate {x}/a", Again::Done),
    case(
        "consolidate dense",
        "dense",
        "consolidate {x}/a",
        Again::Done,
    ),
    case(
        "consolidate duplicates",
        "duplicates",
        "consolidate {x}/a",
        Again::Done,
    ),
    case(
        "consolidate unique",
        "unique",
        "consolidate {x}/a",
        Again::Done,
    ),
    case(
        "consolidate commits",
        "sparse",
        "consolidate {x}/a --mode commits",
        Again::Done,
    ),
    case(
        "consolidate footers",
        "sparse",
        "consolidate {x}/a --mode fragment-meta",
        Again::Done,
    ),
    case(
        "consolidate keys",
        "keys",
        "consolidate {x}/a --mode array-meta",
        Again::Done,
    ),
    case(
        "consolidate keys of a group",
        "group keys",
        "consolidate {x}/g --mode group-meta",
        Again::Done,
    ),
    case("vacuum", "merged", "vacuum {x}/a", Again::Done),
    case(
        "vacuum duplicates",
        "merged duplicates",
        "vacuum {x}/a",
        Again::Done,
    ),
    case(
        "vacuum unique",
        "merged unique",
        "vacuum {x}/a",
        Again::Done,
    ),
    case(
        "vacuum keys of a group",
        "merged group keys",
        "vacuum {x}/g --mode group-meta",
        Again::Done,
    ),
    case("vacuum dense", "merged dense", "vacuum {x}/a", Again::Done),
    case(
        "vacuum commits",
        "one commit",
        "vacuum {x}/a --mode commits",
        Again::Done,
    ),
    case(
        "vacuum footers",
        "footers",
        "vacuum {x}/a --mode fragment-meta",
        Again::Done,
    ),
    case(
        "vacuum keys",
        "merged keys",
        "vacuum {x}/a --mode array-meta",
        Again::Done,
    ),
    case("maintain", "keys", "maintain {x}/a", Again::Done),
    case("move", "keys", "move {x}/a {x}/b", Again::Says),
    case("copy", "keys", "copy {x}/a {x}/b", Again::Done),
    case("delete an array", "keys", "delete {x}/a --yes", Again::Says),
    case(
        "create a group",
        "sparse",
        "group create {x}/g",
        Again::Done,
    ),
    case(
        "add a member",
        "group",
        "group add {x}/g {x}/b --name b",
        Again::Says,
    ),
    case("remove a member", "group", "group rm {x}/g a", Again::Says),
    case("delete a group", "group", "delete {x}/g --yes", Again::Says),
    case("copy a group", "group", "copy {x}/g {x}/h", Again::Done),
    case("repair", "torn", "check --repair {x}/a", Again::Done),
];

/// What is prepared: its name, of what it is made, and the commands that make it.
const BEFORE: &[(&str, &str, &[&str])] = &[
    ("nothing", "", &[]),
    (
        "sparse",
        "",
        &[
            "import {files}/a.csv {x}/a --dims x --domain x=0:100",
            "import --append {files}/b.csv {x}/a",
        ],
    ),
    (
        "labels",
        "",
        &["import {files}/a.csv {x}/a --dims x --domain x=0:100 --enumerate s"],
    ),
    (
        "dense",
        "",
        &[
            "import {files}/a.csv {x}/a",
            "import --append {files}/b.csv {x}/a",
        ],
    ),
    (
        "keys",
        "sparse",
        &[
            "meta set {x}/a one 1",
            "meta set {x}/a two 2",
            "delete {x}/a --where v=20",
        ],
    ),
    (
        "duplicates",
        "sparse",
        &[
            "import --append {files}/a.csv {x}/a",
            "delete {x}/a --where v=20",
            "import --append {files}/a.csv {x}/a",
        ],
    ),
    (
        "unique",
        "",
        &[
            "import {files}/a.csv {x}/a --dims x --domain x=0:100 --unique",
            "import --append {files}/d.csv {x}/a",
            "delete {x}/a --where v=20",
            "import --append {files}/b.csv {x}/a",
        ],
    ),
    (
        "snapshot",
        "sparse",
        &[
            "snapshot create {x}/a first",
            "import --append {files}/c.csv {x}/a",
            "delete {x}/a --where v=20",
        ],
    ),
    ("merged duplicates", "duplicates", &["consolidate {x}/a"]),
    ("merged unique", "unique", &["consolidate {x}/a"]),
    ("merged", "sparse", &["consolidate {x}/a"]),
    ("merged dense", "dense", &["consolidate {x}/a"]),
    (
        "one commit",
        "sparse",
        &["consolidate {x}/a --mode commits"],
    ),
    (
        "footers",
        "sparse",
        &[
            "consolidate {x}/a --mode fragment-meta",
            "import --append {files}/c.csv {x}/a",
            "consolidate {x}/a --mode fragment-meta",
        ],
    ),
    (
        "merged keys",
        "keys",
        &["consolidate {x}/a --mode array-meta"],
    ),
    (
        "group",
        "sparse",
        &[
            "group create {x}/g",
            "group add {x}/g {x}/a --name a",
            "import {files}/b.csv {x}/b --dims x",
        ],
    ),
    (
        "group keys",
        "group",
        &["meta set {x}/g one 1", "meta set {x}/g two 2"],
    ),
    (
        "merged group keys",
        "group keys",
        &["consolidate {x}/g --mode group-meta"],
    ),
    // What a vacuum has left, and a fragment without a commit (see `tear`).
    ("torn", "merged", &[]),
];

/// Options: `--every N` (one of so many faults is tried; 1), `--seed N` (which of them, and which
/// operations come first), `--seconds N` (no more then), `--only TEXT` (operations whose name has it),
/// `--program FILE` (another program), `--list` (only prints the calls).
pub fn run(options: &[&str]) -> crate::Outcome {
    let (mut every, mut seed, mut seconds, mut list) = (1usize, 0usize, u64::MAX, false);
    let (mut only, mut program) = ("", None);
    let mut words = options.iter();
    while let Some(word) = words.next() {
        if *word == "--list" {
            list = true;
            continue;
        }
        let value = *words.next().ok_or(format!("{word} wants a value"))?;
        let number = || value.parse::<u64>().map_err(|e| format!("{value}: {e}"));
        let size = || value.parse::<usize>().map_err(|e| format!("{value}: {e}"));
        match *word {
            "--every" => every = size()?.max(1),
            "--seed" => seed = size()?,
            "--seconds" => seconds = number()?,
            "--only" => only = value,
            "--program" => program = Some(PathBuf::from(value)),
            _ => return Err(format!("{word}: no such option")),
        }
    }
    let program = match program {
        Some(program) => program,
        None => crate::cargo::program(&crate::root())?,
    };
    let mut tried = Kills {
        folder: new_folder()?,
        program,
        every,
        chosen: seed,
        list,
        befores: BTreeMap::new(),
        begun: Instant::now(),
        limit: Duration::from_secs(seconds),
        counts: BTreeMap::new(),
        wrong: Vec::new(),
    };
    tried.prepare()?;
    // What is prepared takes as long as it does.
    tried.begun = Instant::now();
    let mut calls = 0;
    let mut done = 0;
    let mut cases: Vec<&Case> = CASES
        .iter()
        .filter(|case| case.name.contains(only))
        .collect();
    let first = seed * 7 % cases.len().max(1);
    cases.rotate_left(first);
    for case in &cases {
        if tried.begun.elapsed() > tried.limit {
            break;
        }
        calls += tried.case(case)?;
        done += 1;
    }
    let runs: usize = tried.counts.values().sum();
    println!(
        "kills: {runs} runs ({:?}) at {calls} calls of {done} of {} operations in {:.0} s",
        tried.counts,
        cases.len(),
        tried.begun.elapsed().as_secs_f64(),
    );
    match tried.wrong.as_slice() {
        [] if runs > 0 || list => Ok(()),
        [] => Err("nothing was tried".into()),
        wrong => Err(format!("{} are wrong:\n{}", wrong.len(), wrong.join("\n"))),
    }
}

/// For the copies, and for the files that are imported.
fn new_folder() -> Result<Folder, String> {
    let mut folder = Folder::quick("kills").map_err(|e| e.to_string())?;
    std::fs::create_dir_all(folder.0.join("files")).map_err(|e| e.to_string())?;
    // As the kernel names it.
    folder.0 = folder.0.canonicalize().map_err(|e| e.to_string())?;
    Ok(folder)
}

struct Kills {
    folder: Folder,
    program: PathBuf,
    every: usize,
    /// How many faults there were to choose from, of all operations so far.
    chosen: usize,
    list: bool,
    /// What is seen of what was prepared.
    befores: BTreeMap<&'static str, String>,
    begun: Instant,
    limit: Duration,
    counts: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

/// What the program said when it ended by itself.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Kills {
    fn x(&self) -> PathBuf {
        self.folder.0.join("x")
    }

    /// The program's command for words.
    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--quiet", "--threads", "1"]);
        let (x, files) = (self.x(), self.folder.0.join("files"));
        // The same one, also where it is deleted already.
        let fragment = first_fragment(&self.folder.0.join("before sparse/a")).unwrap_or_default();
        for word in words.split(' ') {
            let word = word
                .replace('_', " ")
                .replace("{x}", &x.to_string_lossy())
                .replace("{files}", &files.to_string_lossy())
                .replace("{fragment}", &fragment);
            command.arg(word);
        }
        command.stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    fn say(&self, words: &str) -> Result<Said, String> {
        let output = self.command(words).output().map_err(|e| e.to_string())?;
        Ok(Said {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// What is prepared once.
    fn prepare(&mut self) -> crate::Outcome {
        let file = |name: &str, text: &str| {
            std::fs::write(self.folder.0.join("files").join(name), text).map_err(|e| e.to_string())
        };
        file("a.csv", "x,v,s\n1,10,aa\n2,20,b\n3,30,\n5,50,eee\n")?;
        file("b.csv", "x,v,s\n4,41,aa\n7,70,rr\n9,90,sss\n")?;
        file("c.csv", "x,v,s\n11,110,b\n12,120,new\n")?;
        file("d.csv", "x,v,s\n1,11,dd\n3,31,b\n8,80,\n")?;
        for (name, of, commands) in BEFORE {
            self.fresh(of)?;
            for words in *commands {
                let said = self.say(words)?;
                if said.code != Some(0) {
                    return Err(format!("{name}: {words}: {}", said.err));
                }
            }
            if *name == "torn" {
                tear(&self.x().join("a"))?;
            }
            let to = self.folder.0.join(format!("before {name}"));
            copy(&self.x(), &to).map_err(|e| format!("{name}: {e}"))?;
            self.befores.insert(name, self.state()?);
            if *name == "labels" {
                file("schema.json", &self.say("schema {x}/a --json")?.out)?;
            }
        }
        Ok(())
    }

    /// A fresh copy of what was prepared.
    fn fresh(&self, name: &str) -> crate::Outcome {
        if self.x().exists() {
            std::fs::remove_dir_all(self.x()).map_err(|e| e.to_string())?;
        }
        match name {
            "" => std::fs::create_dir_all(self.x()).map_err(|e| e.to_string()),
            name => copy(&self.folder.0.join(format!("before {name}")), &self.x())
                .map_err(|e| format!("{name}: {e}")),
        }
    }

    /// Everything that a reader sees: of the places that are there.
    fn state(&self) -> Result<String, String> {
        let mut state = String::new();
        for name in ["a", "b", "g", "h"] {
            let place = self.x().join(name);
            // Of a copy that was cut short nothing counts.
            if !place.exists() || place.join("__azulejo_copy").exists() {
                continue;
            }
            let looks: &[&str] = match name {
                "g" | "h" => &["meta --json", "ls --json"],
                _ => &["cat", "schema --json", "meta --json"],
            };
            // Names of moments, and what they show.
            let mut moments = names(&place.join("__azulejo/snapshots"));
            // What a kill has left of a file that was not done is no name.
            moments.retain(|moment| !moment.starts_with('.'));
            for moment in moments {
                let said = self.say(&format!("cat {{x}}/{name}@{moment}"))?;
                let _ = writeln!(
                    state,
                    "cat {name}@{moment}: {:?}\n{}{}",
                    said.code, said.out, said.err
                );
            }
            for look in looks {
                let (verb, options) = look.split_once(' ').unwrap_or((look, ""));
                let words = format!("{verb} {{x}}/{name} {options}");
                let said = self.say(words.trim_end())?;
                match said.code {
                    Some(0) => {
                        let _ = writeln!(state, "{verb} {name}:\n{}", said.out);
                    }
                    // As if there were nothing. (In a folder that is no group `ls` lists folders.)
                    Some(3) => break,
                    _ => {
                        let _ =
                            writeln!(state, "{verb} {name} fails: {:?} {}", said.code, said.err);
                    }
                }
            }
        }
        Ok(state)
    }

    /// How many things lie in each folder, of which maintenance makes fewer.
    fn shape(&self) -> String {
        let mut shape = String::new();
        for name in ["a", "b", "g"] {
            for inner in ["__fragments", "__commits", "__meta", "__fragment_meta"] {
                let count = std::fs::read_dir(self.x().join(name).join(inner));
                let _ = write!(
                    shape,
                    "{name}/{inner} {} ",
                    count.map_or(0, Iterator::count)
                );
            }
        }
        shape
    }

    /// Runs the program under a fault.
    fn traced(
        &self,
        words: &str,
        at: Option<(usize, Fault)>,
    ) -> Result<(trace::Run, Said), String> {
        let file = |name: &str| {
            let path = self.folder.0.join(name);
            std::fs::File::create(path).map_err(|e| e.to_string())
        };
        let mut command = self.command(words);
        command.stdout(file("out")?).stderr(file("err")?);
        let run = trace::run(&mut command, &self.x(), at).map_err(|e| format!("ptrace: {e}"))?;
        let text = |name: &str| {
            let bytes = std::fs::read(self.folder.0.join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let code = match run.end {
            End::Code(code) => Some(code),
            End::Signal(_) | End::Hung => None,
        };
        let said = Said {
            code,
            out: text("out"),
            err: text("err"),
        };
        Ok((run, said))
    }

    /// All faults of an operation; says how many calls it makes.
    fn case(&mut self, case: &Case) -> Result<usize, String> {
        self.fresh(case.before)?;
        let (whole, said) = self.traced(case.words, None)?;
        if said.code != Some(0) {
            return Err(format!("{}: {:?} {}", case.name, whole.end, said.err));
        }
        if self.list {
            println!("{}: {} calls", case.name, whole.calls.len());
            for call in &whole.calls {
                println!("  {}", call.text);
            }
            return Ok(whole.calls.len());
        }
        let mut faults: Vec<(usize, Fault)> = Vec::new();
        for (n, call) in whole.calls.iter().enumerate() {
            faults.extend(call.faults().into_iter().map(|fault| (n, fault)));
        }
        // Behind any other one it is killed where it is killed before the next.
        let last = whole.calls.iter().rposition(trace::Call::changes);
        faults.extend(last.map(|last| (last, Fault::KilledAfter)));
        let (every, first) = (self.every, self.chosen);
        self.chosen += faults.len();
        let turns = first..;
        let faults: Vec<_> = turns
            .zip(faults)
            .filter(|(turn, _)| turn.is_multiple_of(every))
            .collect();
        if faults.is_empty() {
            return Ok(whole.calls.len());
        }
        let before = self.befores.get(case.before).cloned().unwrap_or_default();
        let (after, shape) = (self.state()?, self.shape());
        if let Some(tidy) = case.tidy() {
            self.say(&tidy)?;
        }
        let wanted = Wanted {
            before: &before,
            after: &after,
            shape: &shape,
            tidy: &self.shape(),
        };
        for (turn, (n, fault)) in faults {
            if self.begun.elapsed() > self.limit {
                break;
            }
            self.fresh(case.before)?;
            let (run, said) = self.traced(case.words, Some((n, fault)))?;
            *self.counts.entry(fault.to_string()).or_default() += 1;
            let repair_first = (turn / every).is_multiple_of(2);
            if let Err(what) = self.judge(case, &wanted, &run, &said, repair_first) {
                let call = run.calls.get(n).map_or("no call", |call| &call.text);
                let order = if repair_first {
                    "repair, again"
                } else {
                    "again, repair"
                };
                let text = format!(
                    "{}: {fault} at {n} of {}, {call} ({order}): {what}\n  it had ended with {:?}, {} {}",
                    case.name,
                    whole.calls.len(),
                    run.end,
                    said.out.trim_end(),
                    said.err.trim_end(),
                );
                println!("{text}");
                self.wrong.push(text);
            }
        }
        Ok(whole.calls.len())
    }

    fn judge(
        &self,
        case: &Case,
        wanted: &Wanted<'_>,
        run: &trace::Run,
        said: &Said,
        repair_first: bool,
    ) -> crate::Outcome {
        honest(said)?;
        match run.end {
            End::Hung => return Err("it hangs".into()),
            End::Signal(signal) if signal != 9 => {
                return Err(format!("it died by signal {signal}"));
            }
            End::Signal(_) | End::Code(_) => {}
        }
        let mut state = self.state()?;
        if said.code == Some(0) {
            same(
                &state,
                wanted.after,
                "it said that it was done, but after it",
            )?;
            if self.shape() != wanted.shape {
                return Err(format!(
                    "it said that it was done, but {}, not {}",
                    self.shape(),
                    wanted.shape
                ));
            }
        }
        // An import that was cut short is there, without cells, and says so; so does a copy.
        let note = |name: &str| self.x().join(name).exists();
        let excused = note("a/__azulejo_unfinished")
            || note("b/__azulejo_copy")
            // Labels and the current domain grow first.
            || case.name.starts_with("append ") && cells(&state) == cells(wanted.before);
        if !excused && state != wanted.after {
            same(&state, wanted.before, "it was cut short, and")?;
        }
        if repair_first {
            self.repaired(&state)?;
        }
        if state != wanted.after || case.again != Again::Look {
            let again = self.say(case.words)?;
            honest(&again)?;
            let may_refuse = state == wanted.after && case.again == Again::Says;
            if again.code != Some(0) && !may_refuse {
                return Err(format!("made again: {:?} {}", again.code, again.err));
            }
            state = self.state()?;
            same(&state, wanted.after, "made again, and")?;
        }
        if !repair_first {
            self.repaired(&state)?;
        }
        // Nothing that was replaced stays for good.
        if let Some(tidy) = case.tidy() {
            let said = self.say(&tidy)?;
            if said.code != Some(0) {
                return Err(format!("{tidy}: {:?} {}", said.code, said.err));
            }
            same(&self.state()?, wanted.after, "after a vacuum")?;
            if self.shape() != wanted.tidy {
                return Err(format!("in the end {}, not {}", self.shape(), wanted.tidy));
            }
        }
        Ok(())
    }

    /// A check with repair leaves no errors, and what was seen.
    fn repaired(&self, state: &str) -> crate::Outcome {
        for name in ["a", "b"] {
            if !self.x().join(name).exists() {
                continue;
            }
            for verb in ["check --repair", "check --deep --fail-on warning"] {
                let said = self.say(&format!("{verb} {{x}}/{name}"))?;
                honest(&said)?;
                let notes = ["__azulejo_unfinished", "__azulejo_copy"];
                let excused = said.code == Some(3)
                    || notes
                        .iter()
                        .any(|note| self.x().join(name).join(note).exists());
                if said.code != Some(0) && !excused {
                    return Err(format!(
                        "{verb} {name}: {:?} {}{}",
                        said.code, said.out, said.err
                    ));
                }
            }
        }
        same(&self.state()?, state, "a check with repair, and")
    }
}

/// What is to be seen.
struct Wanted<'a> {
    before: &'a str,
    after: &'a str,
    shape: &'a str,
    /// How many things lie in each folder once all that was replaced is gone.
    tidy: &'a str,
}

/// Whether what the program said is no fault of its own.
fn honest(said: &Said) -> crate::Outcome {
    let faults = ["internal error", "panicked", "RUST_BACKTRACE"];
    let own = faults.iter().any(|text| said.err.contains(text));
    let silent = matches!(said.code, Some(code) if code != 0)
        && said.err.trim().is_empty()
        && said.out.trim().is_empty();
    match own || said.code == Some(101) || silent {
        true => Err(format!("a fault of its own: {:?} {}", said.code, said.err)),
        false => Ok(()),
    }
}

/// What a state says of cells alone.
fn cells(state: &str) -> &str {
    state.split("schema a:").next().unwrap_or(state)
}

/// Whether two states are the same.
fn same(is: &str, wanted: &str, when: &str) -> crate::Outcome {
    match is == wanted {
        true => Ok(()),
        false => {
            let line = is
                .lines()
                .zip(wanted.lines())
                .find(|(is, wanted)| is != wanted);
            let (is, wanted) = line.unwrap_or((is, wanted));
            Err(format!("{when} one sees\n    {is:?}, not\n    {wanted:?}"))
        }
    }
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

/// The name of the first fragment of an array.
fn first_fragment(array: &Path) -> Option<String> {
    names(&array.join("__fragments")).into_iter().next()
}

/// What a crash may leave: a fragment without a commit.
fn tear(array: &Path) -> crate::Outcome {
    let name = first_fragment(array).ok_or("no fragment")?;
    let (first, rest) = name.split_at(name.len().saturating_sub(4));
    // Another name than its own, whatever digit of its identifier that is.
    let digit = if rest.starts_with('0') { '1' } else { '0' };
    let torn = array
        .join("__fragments")
        .join(format!("{first}{digit}{}", rest.get(1..).unwrap_or(rest)));
    let whole = array.join("__fragments").join(&name);
    copy(&whole, &torn).map_err(|e| format!("{}: {e}", whole.display()))?;
    std::fs::remove_file(torn.join("__fragment_metadata.tdb")).map_err(|e| e.to_string())
}
