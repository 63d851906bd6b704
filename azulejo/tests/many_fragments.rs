//! Many fragments in local files, whose footers are read in another way than those of few: all is
//! as it is anywhere else, damage included.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::Datatype;
use azulejo::format::fragment::{Footer, Section};
use azulejo::format::schema::ArraySchema;
use azulejo::format::timestamped_name::TimestampedName;
use azulejo::read::ReadOptions;
use azulejo::storage::{LocalStorage, MemoryStorage, RequestLogStorage};
use azulejo::write::WriteOptions;
use azulejo::{Config, Context, Error};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FRAGMENTS: usize = 90;

fn local() -> Context {
    Context::new(Config::default(), None).unwrap()
}

/// Local files behind a storage that has no other way than the usual.
fn usual() -> Context {
    let storage = RequestLogStorage::new(Arc::new(LocalStorage::new()));
    Context::with_storages(
        Config::default(),
        None,
        Arc::new(storage),
        Arc::new(MemoryStorage::new()),
    )
    .unwrap()
}

/// An array with copies of one fragment at as many times. Returns it and its fragments' metadata
/// files.
fn array(folder: &Path) -> (String, Vec<PathBuf>) {
    let uri = folder.join("array").to_str().unwrap().to_owned();
    let schema = ArraySchema::sparse()
        .dimension("x", 0i64..=999, 10)
        .attribute("a", Datatype::Int32)
        .capacity(5);
    let schema = schema.allows_duplicates(true).build().unwrap();
    local().array(&uri).create(schema).unwrap();
    let mut writer = local().array(&uri).writer(WriteOptions::new()).unwrap();
    let columns = [
        ColumnBuffers::of_values("x", (0..20i64).collect::<Vec<_>>()),
        ColumnBuffers::of_values("a", (0..20i32).collect::<Vec<_>>()),
    ];
    writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
    let written = writer.finish().unwrap();
    drop(written);
    let array = local().array(&uri).open().unwrap();
    let name = array.fragments()[0].timestamped_name().clone();
    let root = Path::new(&uri);
    let path = |name: &TimestampedName| root.join("__fragments").join(name.to_string());
    let mut files = Vec::new();
    for back in (1..FRAGMENTS as u64).rev() {
        let time = name.t_start - back;
        let copy = TimestampedName {
            t_start: time,
            t_end: time,
            ..name.clone()
        };
        fs::create_dir(path(&copy)).unwrap();
        for file in fs::read_dir(path(&name)).unwrap().map(Result::unwrap) {
            fs::copy(file.path(), path(&copy).join(file.file_name())).unwrap();
        }
        fs::write(root.join("__commits").join(format!("{copy}.wrt")), "").unwrap();
        files.push(path(&copy).join("__fragment_metadata.tdb"));
    }
    files.push(path(&name).join("__fragment_metadata.tdb"));
    (uri, files)
}

type Facts = (String, Footer, u64);

fn facts(context: &Context, uri: &str) -> Result<Vec<Facts>, Error> {
    let array = context.array(uri).open()?;
    let fact = |f: &azulejo::array::Fragment| {
        Ok((f.name().to_owned(), f.footer().clone(), f.metadata_size()?))
    };
    array.fragments().iter().map(fact).collect()
}

#[test]
fn they_are_opened_and_read_as_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let (uri, files) = array(folder.path());
    let found = facts(&local(), &uri).unwrap();
    assert_eq!(found, facts(&usual(), &uri).unwrap());
    let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
    let expected: Vec<&str> = files
        .iter()
        .map(|file| {
            file.parent()
                .unwrap()
                .file_name()
                .unwrap()
                .to_str()
                .unwrap()
        })
        .collect();
    assert_eq!(names, expected);
    for context in [local(), usual()] {
        let array = context.array(&uri).open().unwrap();
        let wanted: Vec<(usize, Section)> = (0..FRAGMENTS)
            .flat_map(|i| [(i, Section::RTree), (i, Section::FragmentStats)])
            .collect();
        array.preload(&wanted).unwrap();
        assert!(
            array
                .fragments()
                .iter()
                .all(|fragment| fragment.rtree().unwrap().tile_num() == 4)
        );
        let cells = array
            .read(ReadOptions::default())
            .unwrap()
            .read_all()
            .unwrap();
        assert_eq!(cells.cell_num, 20 * FRAGMENTS);
    }
    // The footers in one file, by both ways, are the same, and so is what is opened from it.
    for context in [local(), usual()] {
        let path = context
            .array(&uri)
            .consolidate_fragment_metadata()
            .unwrap()
            .unwrap();
        let consolidated = local().array(&uri).open().unwrap();
        assert!(
            consolidated
                .fragments()
                .iter()
                .all(|fragment| fragment.has_consolidated_footer())
        );
        let footers = consolidated
            .fragments()
            .iter()
            .map(|fragment| fragment.footer().clone());
        let of_files = found.iter().map(|(_, footer, _)| Footer {
            offset: None,
            ..footer.clone()
        });
        assert!(footers.eq(of_files));
        fs::remove_file(path.as_native()).unwrap();
    }
}

#[test]
fn damage_to_one_of_them_is_told_as_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let (uri, files) = array(folder.path());
    let whole = fs::read(&files[40]).unwrap();
    let len = whole.len();
    let change = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x81;
        bytes
    };
    // Cut, of another length, without an end, of another version; with a name of a schema that
    // there is not.
    let footer = len - 8 - u64::from_le_bytes(whole[len - 8..].try_into().unwrap()) as usize;
    let damaged = [
        whole[..len / 2].to_vec(),
        whole[..4].to_vec(),
        vec![],
        change(len - 2),
        change(len - 8),
        change(footer),
    ];
    for bytes in damaged.into_iter().chain([change(footer + 20)]) {
        fs::write(&files[40], bytes).unwrap();
        let (found, expected) = (facts(&local(), &uri), facts(&usual(), &uri));
        let told = found.unwrap_err().to_string();
        assert_eq!(told, expected.unwrap_err().to_string());
        let fragment = files[40]
            .parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap();
        assert!(told.contains(fragment), "{told}");
    }
    fs::remove_file(&files[40]).unwrap();
    fs::create_dir(&files[40]).unwrap();
    assert!(matches!(
        facts(&local(), &uri),
        Err(Error::NotFound { .. } | Error::Storage { .. })
    ));
    fs::remove_dir(&files[40]).unwrap();
    // A pipe, where the system can make one.
    if std::process::Command::new("mkfifo")
        .arg(&files[40])
        .status()
        .is_ok_and(|made| made.success())
    {
        let told = [local(), usual()].map(|context| facts(&context, &uri).unwrap_err().to_string());
        assert!(
            told.iter().all(|told| told.contains("no regular file")),
            "{told:?}"
        );
        fs::remove_file(&files[40]).unwrap();
    }
    assert!(matches!(facts(&local(), &uri), Err(Error::NotFound { .. })));
    fs::write(&files[40], whole).unwrap();
    assert_eq!(facts(&local(), &uri).unwrap().len(), FRAGMENTS);
}
