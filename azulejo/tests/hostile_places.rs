//! What may lie in the place of each file and folder of arrays and groups: links of all kinds,
//! pipes, devices, folders, files, and files that claim to be huge. Whatever is done with such an
//! array ends soon, holds little memory, says what is wrong with which object, and leaves what lies
//! outside as it is.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests too"
)]

#[path = "support/allocator.rs"]
mod allocator;

use azulejo::array::FragmentSelection;
use azulejo::check::CheckOptions;
use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::condition::{Comparison, Condition};
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{Attribute, DataOrder, Enumeration, SchemaEvolution};
use azulejo::format::{ArraySchema, CellValNum, Datatype};
use azulejo::group::{NewMember, ObjectType};
use azulejo::read::ReadOptions;
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, Error, Result, TimeRange};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// Memory of a context.
const BUDGET: u64 = 32 << 20;
/// What all that is done with an array may hold at one time: the budget, and what is not counted
/// in it.
const MOST_HELD: usize = 64 << 20;
/// Who takes longer waits for something that never comes.
const PATIENCE: Duration = Duration::from_secs(60);

fn context() -> Context {
    let config = Config::new().threads(1).memory_budget(BUDGET);
    Context::new(config, None).unwrap()
}

/// What to do with an object that may be anything: names, and what each does.
type Deeds = &'static [(&'static str, fn(&Context, &str) -> Result<()>)];

fn write(context: &Context, uri: &str, x: i64) -> Result<()> {
    let mut writer = context.array(uri).writer(WriteOptions::new())?;
    let columns = [
        ColumnBuffers::of_values("x", vec![x]),
        ColumnBuffers::of_values("a", vec![7i32]),
        ColumnBuffers::of_values("w", vec![1u8]),
    ];
    writer.write(&ColumnSet::of(columns).unwrap())?;
    writer.finish().map(drop)
}

fn put(context: &Context, uri: &str, key: &str) -> Result<()> {
    let mut writer = context.array(uri).change_metadata()?;
    writer.put(key, MetadataValue::new(Datatype::Int8, [1]))?;
    writer.commit()
}

fn words(name: &str) -> Enumeration {
    Enumeration::of_strings(name, Datatype::StringUtf8, true, ["a", "b"]).unwrap()
}

fn added(name: &str) -> SchemaEvolution {
    SchemaEvolution {
        add_enumerations: vec![words(name)],
        add_attributes: vec![
            Attribute::new(name, Datatype::UInt8, CellValNum::ONE).enumerated(name),
        ],
        ..SchemaEvolution::default()
    }
}

fn delete_cells(context: &Context, uri: &str, below: i64) -> Result<()> {
    let condition = Condition::compare("x", Comparison::Lt, below.to_le_bytes());
    context.array(uri).delete_cells(&condition, None).map(drop)
}

/// A sparse array with a file of every kind that sparse arrays have.
fn sparse(context: &Context, uri: &str) {
    let array = context.array(uri);
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=99, 10)
        .attribute("a", Datatype::Int32)
        .enumeration(words("w"))
        .attribute_with(Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("w"));
    array.create(schema.build().unwrap()).unwrap();
    for x in [1, 2, 3] {
        write(context, uri, x).unwrap();
        put(context, uri, "early").unwrap();
    }
    delete_cells(context, uri, 2).unwrap();
    array.consolidate(&FragmentOptions::default()).unwrap();
    array.consolidate_metadata(TimeRange::ALL).unwrap();
    array.consolidate_commits().unwrap();
    array.consolidate_fragment_metadata().unwrap();
    write(context, uri, 5).unwrap();
    let last = context.array(uri).open().unwrap();
    let last = last.fragments().last().unwrap().name().to_owned();
    write(context, uri, 6).unwrap();
    array.consolidate_commits().unwrap();
    array
        .delete_fragments(FragmentSelection::Named(&[last]))
        .unwrap();
    put(context, uri, "late").unwrap();
    context.object(uri).create_snapshot("then", None).unwrap();
    context.object(uri).write_manifests().unwrap();
}

/// A dense array with a label.
fn labelled(context: &Context, uri: &str) {
    let schema = ArraySchema::dense()
        .dimension("x", 0i32..=9, 10)
        .attribute("a", Datatype::Int32)
        .label(0, "name", DataOrder::Increasing, Datatype::Float64);
    let array = context.array(uri);
    array.create(schema.build().unwrap()).unwrap();
    write_dense(context, uri).unwrap();
}

fn write_dense(context: &Context, uri: &str) -> Result<()> {
    let mut writer = context.array(uri).writer(WriteOptions::new())?;
    let cells = ColumnBuffers::of_values("a", (0..10).collect::<Vec<i32>>());
    writer.write(&ColumnSet::of([cells]).unwrap())?;
    writer.finish().map(drop)
}

/// The folder of a group's member.
const MEMBER: &str = "inner";

/// A group with a member inside and one beside it.
fn group(context: &Context, uri: &str) {
    context.group(uri).create().unwrap();
    labelled(context, &format!("{uri}/{MEMBER}"));
    let mut editor = context.group(uri).edit().unwrap();
    editor.add(NewMember::relative(MEMBER)).unwrap();
    editor
        .add(
            NewMember::at("mem://elsewhere")
                .named("else")
                .typed(ObjectType::Array),
        )
        .unwrap();
    editor.commit().unwrap();
    for key in ["a", "b"] {
        let mut writer = context.group(uri).change_metadata().unwrap();
        writer
            .put(key, MetadataValue::new(Datatype::Int8, [1]))
            .unwrap();
        writer.commit().unwrap();
    }
    context.object(uri).write_manifests().unwrap();
}

fn look(context: &Context, uri: &str) -> Result<()> {
    let array = context.array(uri).open()?;
    let _ = array.enumerations()?;
    let _ = array.metadata()?;
    for label in &array.schema().dimension_labels {
        array.open_label(&label.name)?;
    }
    array.read(ReadOptions::new())?.read_all().map(drop)
}

fn check(context: &Context, uri: &str) -> Result<()> {
    let report = context.array(uri).check(CheckOptions::default())?;
    assert!(report.files < 1000, "it walks elsewhere: {report:?}");
    for finding in &report.findings {
        let text = format!("{finding:?}");
        assert!(!text.contains("please report it"), "{text}");
    }
    Ok(())
}

fn vacuum(context: &Context, uri: &str, mode: Mode) -> Result<()> {
    let options = VacuumOptions::default();
    context.array(uri).vacuum(mode, options).map(drop)
}

fn copy(context: &Context, uri: &str) -> Result<()> {
    let to = format!("{uri}-copy");
    let copied = context.object(uri).copy_to(&to);
    if Path::new(&to).exists() {
        fs::remove_dir_all(&to).unwrap();
    }
    copied
}

/// What is done with arrays, what adds nothing first.
const WITH_ARRAYS: Deeds = &[
    ("open, read", look),
    ("check", check),
    ("walk", |context, uri| context.object(uri).walk(9).map(drop)),
    ("snapshots", |context, uri| {
        context.object(uri).snapshots().map(drop)
    }),
    ("manifest state", |context, uri| {
        context.object(uri).manifest_state().map(drop)
    }),
    ("copy", copy),
    ("plan of a deletion", |context, uri| {
        context.object(uri).plan_deletion(true).map(drop)
    }),
    ("append", |context, uri| write(context, uri, 50)),
    ("write dense", write_dense),
    ("delete cells", |context, uri| delete_cells(context, uri, 3)),
    ("put", |context, uri| put(context, uri, "new")),
    ("evolve", |context, uri| {
        context.array(uri).evolve(&added("v"), None)
    }),
    ("consolidate fragments", |context, uri| {
        let options = FragmentOptions::default();
        context.array(uri).consolidate(&options).map(drop)
    }),
    ("consolidate commits", |context, uri| {
        context.array(uri).consolidate_commits().map(drop)
    }),
    ("consolidate footers", |context, uri| {
        context.array(uri).consolidate_fragment_metadata().map(drop)
    }),
    ("consolidate metadata", |context, uri| {
        let array = context.array(uri);
        array.consolidate_metadata(TimeRange::ALL).map(drop)
    }),
    ("vacuum fragments", |context, uri| {
        vacuum(context, uri, Mode::Fragments)
    }),
    ("vacuum commits", |context, uri| {
        vacuum(context, uri, Mode::Commits)
    }),
    ("vacuum footers", |context, uri| {
        vacuum(context, uri, Mode::FragmentMetadata)
    }),
    ("vacuum metadata", |context, uri| {
        vacuum(context, uri, Mode::ArrayMetadata)
    }),
    ("delete fragments", |context, uri| {
        let all = FragmentSelection::Within(TimeRange::ALL);
        context.array(uri).delete_fragments(all).map(drop)
    }),
    ("repair", |context, uri| {
        let array = context.array(uri);
        let report = array.check(CheckOptions::default())?;
        array.repair(&report).map(drop)
    }),
    ("snapshot", |context, uri| {
        context.object(uri).create_snapshot("now", None).map(drop)
    }),
    ("remove snapshot", |context, uri| {
        context.object(uri).remove_snapshot("then").map(drop)
    }),
    ("manifest", |context, uri| {
        context.object(uri).write_manifests().map(drop)
    }),
    ("delete", |context, uri| {
        context.object(uri).delete(true).map(drop)
    }),
];

const WITH_GROUPS: Deeds = &[
    ("open", |context, uri| {
        let group = context.group(uri).open()?;
        group.metadata().map(drop)
    }),
    ("walk", |context, uri| context.object(uri).walk(9).map(drop)),
    ("manifest state", |context, uri| {
        context.object(uri).manifest_state().map(drop)
    }),
    ("copy", copy),
    ("plan of a deletion", |context, uri| {
        context.object(uri).plan_deletion(true).map(drop)
    }),
    ("put", |context, uri| {
        let mut writer = context.group(uri).change_metadata()?;
        writer.put("c", MetadataValue::new(Datatype::Int8, [1]))?;
        writer.commit()
    }),
    ("consolidate metadata", |context, uri| {
        let group = context.group(uri);
        group.consolidate_metadata(TimeRange::ALL).map(drop)
    }),
    ("edit", |context, uri| {
        let mut editor = context.group(uri).edit()?;
        let third = NewMember::at("mem://third").named("third");
        editor.add(third.typed(ObjectType::Array))?;
        editor.remove("else")?;
        editor.commit()
    }),
    ("snapshot", |context, uri| {
        context.object(uri).create_snapshot("now", None).map(drop)
    }),
    ("manifest", |context, uri| {
        context.object(uri).write_manifests().map(drop)
    }),
    ("delete", |context, uri| {
        context.object(uri).delete(true).map(drop)
    }),
];

/// What is put in the place of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    /// A link to the same thing of an array outside.
    LinkToTwin,
    /// A link to a folder outside, in which a file lies.
    LinkToFolder,
    LinkToNothing,
    LinkToItself,
    LinkToDevice,
    Folder,
    File,
    Pipe,
    Socket,
    /// A file that says that it has 1 TiB.
    Huge,
}

/// What everything suffers first.
const ALWAYS: [Harm; 2] = [Harm::LinkToTwin, Harm::Pipe];
const OTHERS: [Harm; 8] = [
    Harm::LinkToFolder,
    Harm::Huge,
    Harm::LinkToNothing,
    Harm::Folder,
    Harm::LinkToItself,
    Harm::File,
    Harm::LinkToDevice,
    Harm::Socket,
];

/// What the place of this number suffers: two more in turn, or all (`AZULEJO_EVERY=1`).
fn harms(place: usize) -> Vec<Harm> {
    let every = std::env::var_os("AZULEJO_EVERY").is_some();
    let more = if every { OTHERS.len() } else { 2 };
    let others = OTHERS.iter().cycle().skip(place * 2).take(more);
    ALWAYS.iter().chain(others).copied().collect()
}

fn put_in_place(harm: Harm, place: &Path, twin: &Path, outside: &Path) {
    if place.is_dir() {
        fs::remove_dir_all(place).unwrap();
    } else {
        fs::remove_file(place).unwrap();
    }
    match harm {
        Harm::LinkToTwin => symlink(twin, place).unwrap(),
        Harm::LinkToFolder => symlink(outside.join("folder"), place).unwrap(),
        Harm::LinkToNothing => symlink(outside.join("nothing"), place).unwrap(),
        Harm::LinkToItself => symlink(place, place).unwrap(),
        Harm::LinkToDevice => symlink("/dev/zero", place).unwrap(),
        Harm::Folder => {
            fs::create_dir(place).unwrap();
            fs::write(place.join("in it"), "x").unwrap();
        }
        Harm::File => fs::write(place, "not what it should be").unwrap(),
        Harm::Pipe => {
            let made = std::process::Command::new("mkfifo").arg(place).status();
            assert!(made.unwrap().success());
        }
        // Names of sockets are short: it is made elsewhere.
        Harm::Socket => {
            let short = tempfile::tempdir().unwrap();
            let made = short.path().join("s");
            drop(UnixListener::bind(&made).unwrap());
            if fs::rename(&made, place).is_err() {
                fs::write(place, "").unwrap();
            }
        }
        Harm::Huge => File::create(place).unwrap().set_len(1 << 40).unwrap(),
    }
}

/// All that lies in a folder by its path in it, links not followed.
fn all_in(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path.clone());
            }
            found.push(path);
        }
    }
    found.sort();
    let inside = |path: &PathBuf| path.strip_prefix(folder).unwrap().to_owned();
    found.iter().map(inside).collect()
}

/// All that lies in a folder, and what files hold.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = |path: PathBuf| {
        let full = folder.join(&path);
        let is_file = fs::symlink_metadata(&full).unwrap().is_file();
        let bytes = is_file.then(|| fs::read(&full).unwrap());
        (path, bytes.unwrap_or_default())
    };
    all_in(folder).into_iter().map(read).collect()
}

/// A copy of arrays as they are made here, which have no links.
fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in all_in(from) {
        let (from, to) = (from.join(&path), to.join(&path));
        if from.is_dir() {
            fs::create_dir_all(to).unwrap();
        } else {
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
    }
}

/// What kind of thing a path names: digits and names of fragments differ from run to run.
fn kind_of(path: &Path) -> String {
    let part = |part: &std::ffi::OsStr| {
        let part = part.to_str().unwrap();
        let is_known = !part.starts_with("__") || !part.contains(|c: char| c.is_ascii_digit());
        let ending = part.rsplit_once('.').map_or("", |(_, ending)| ending);
        if is_known {
            part.to_owned()
        } else {
            format!("*.{ending}")
        }
    };
    let parts = path.components().map(|c| part(c.as_os_str()));
    parts.collect::<Vec<_>>().join("/")
}

/// Runs deeds on an object in which something is wrong, on a thread that is given up when it hangs.
/// After each, `look` looks.
fn try_all(deeds: Deeds, uri: &str, what: &str, look: impl Fn(&str)) -> Vec<(&'static str, Error)> {
    let (next, begin) = mpsc::channel();
    let (sender, receiver) = mpsc::channel();
    let uri = uri.to_owned();
    std::thread::spawn(move || {
        let context = context();
        for deed in begin {
            let deed: fn(&Context, &str) -> Result<()> = deed;
            let before = allocator::reset();
            let outcome = deed(&context, &uri);
            let held = allocator::peak().saturating_sub(before);
            if sender.send((outcome, held)).is_err() {
                return;
            }
        }
    });
    let mut errors = Vec::new();
    for (name, deed) in deeds {
        let what = format!("{what}: {name}");
        next.send(*deed).unwrap();
        let (outcome, held) = receiver
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(held < MOST_HELD, "{what}: {held} bytes");
        if let Err(error) = outcome {
            errors.push((*name, error));
        }
        look(&what);
    }
    errors
}

/// Puts everything in the place of everything, and tries all.
fn suffers_all(kind: &str, make: fn(&Context, &str), deeds: Deeds) {
    let folder = tempfile::tempdir().unwrap();
    let (made, outside) = (folder.path().join("made"), folder.path().join("outside"));
    make(&context(), made.to_str().unwrap());
    copy_tree(&made, &outside.join("twin"));
    fs::create_dir(outside.join("folder")).unwrap();
    fs::write(outside.join("folder/mine"), "mine").unwrap();
    let before = content(&outside);
    // Without harm all goes well: what is tried works, but for what the kind of array has not.
    let sane = folder.path().join("sane");
    copy_tree(&made, &sane);
    let refused = try_all(deeds, sane.to_str().unwrap(), kind, |_| {});
    assert!(refused.len() <= 5, "{kind}: {refused:?}");

    let mut kinds = BTreeSet::new();
    let (mut cases, mut refusals, mut wrong) = (0, 0, Vec::new());
    for path in all_in(&made) {
        if !kinds.insert(kind_of(&path)) {
            continue;
        }
        let is_folder = made.join(&path).is_dir();
        for harm in harms(kinds.len()) {
            // That is what is there; and a member of a group may lie anywhere.
            let leads_to_array = matches!(harm, Harm::LinkToTwin | Harm::LinkToFolder);
            let is_member = path == Path::new(MEMBER) && leads_to_array;
            if is_folder && harm == Harm::Folder || is_member {
                continue;
            }
            let what = format!("{kind}: {harm:?} at {}", path.display());
            let copy = folder.path().join("copy");
            copy_tree(&made, &copy);
            put_in_place(
                harm,
                &copy.join(&path),
                &outside.join("twin").join(&path),
                &outside,
            );
            let errors = try_all(deeds, copy.to_str().unwrap(), &what, |what| {
                let after = content(&outside);
                if after != before {
                    let differ =
                        |(path, bytes): &(&PathBuf, &Vec<u8>)| before.get(*path) != Some(*bytes);
                    let new: Vec<_> = after.iter().filter(differ).map(|(path, _)| path).collect();
                    let gone: Vec<_> = before
                        .keys()
                        .filter(|path| !after.contains_key(*path))
                        .collect();
                    panic!("{what}: outside there is {new:?}, and no {gone:?}");
                }
            });
            cases += 1;
            refusals += errors.len();
            for (name, error) in errors {
                let text = error.to_string();
                let says = text.contains("copy") || text.contains("__") || !text.contains('/');
                if matches!(error, Error::Internal(_)) || !says {
                    wrong.push(format!("{what}: {name}: {text}"));
                }
            }
            if let Ok(left) = fs::symlink_metadata(&copy) {
                assert!(!left.file_type().is_fifo());
                fs::remove_dir_all(&copy).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(kinds.len() > 8 && refusals > cases, "{cases} {kinds:?}");
}

#[test]
fn sparse_arrays_suffer_all_harm() {
    suffers_all("sparse", sparse, WITH_ARRAYS);
}

#[test]
fn labelled_arrays_suffer_all_harm() {
    suffers_all("labelled", labelled, WITH_ARRAYS);
}

#[test]
fn groups_suffer_all_harm() {
    suffers_all("group", group, WITH_GROUPS);
}

#[test]
fn a_group_is_deleted_without_what_a_link_in_it_leads_to() {
    let folder = tempfile::tempdir().unwrap();
    let (made, outside) = (folder.path().join("made"), folder.path().join("outside"));
    let context = context();
    group(&context, made.to_str().unwrap());
    fs::rename(made.join(MEMBER), &outside).unwrap();
    symlink(&outside, made.join(MEMBER)).unwrap();
    let before = content(&outside);
    // Who asks for members to be deleted too gets that, wherever they lie.
    let deleted = context.object(made.to_str().unwrap()).delete(false);
    assert!(deleted.is_ok(), "{deleted:?}");
    assert!(context.group(made.to_str().unwrap()).open().is_err());
    assert!(content(&outside) == before);
    assert!(look(&context, outside.to_str().unwrap()).is_ok());
}
