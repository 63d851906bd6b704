use super::*;
use crate::config::Config;
use crate::group::NewMember;
use azulejo_format::metadata::MetadataValue;
use azulejo_format::schema::{Attribute, DataOrder, Enumeration};
use azulejo_format::{ArraySchema, CellValNum, Datatype};
use bytes::Bytes;

fn context() -> Context {
    Context::new(Config::default(), None).unwrap()
}

fn make_array(context: &Context, uri: &str) {
    let words = Enumeration::of_strings("words", Datatype::StringUtf8, true, ["a", "b"]).unwrap();
    let new = ArraySchema::dense()
        .dimension("x", 0i32..=99, 10)
        .enumeration(words)
        .attribute_with(Attribute::new("w", Datatype::UInt8, CellValNum::ONE).enumerated("words"))
        .label(0, "name", DataOrder::Increasing, Datatype::Float64)
        .build()
        .unwrap();
    context.array(uri).create(new).unwrap();
    context
        .array(uri)
        .change_metadata()
        .unwrap()
        .put("k", MetadataValue::new(Datatype::Int8, [7]))
        .unwrap()
        .commit()
        .unwrap();
}

fn make_group(context: &Context, uri: &str, members: &[NewMember]) {
    context.group(uri).create().unwrap();
    let mut editor = context.group(uri).edit().unwrap();
    for member in members {
        editor.add(member.clone()).unwrap();
    }
    editor.commit().unwrap();
}

fn put(context: &Context, uri: &str) {
    let location = context.locate(&Uri::parse(uri).unwrap()).unwrap();
    location
        .storage
        .put(&location.path, Bytes::from_static(b"mine"))
        .unwrap();
}

fn is_array(context: &Context, uri: &str) {
    let array = context.array(uri).open().unwrap();
    assert_eq!(array.metadata().unwrap()["k"].data, [7]);
    assert_eq!(array.enumeration("words").unwrap().len(), 2);
    assert!(array.open_label("name").unwrap().schema().is_dense());
}

fn places() -> (tempfile::TempDir, [String; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let local = folder.path().to_str().unwrap().to_owned();
    (folder, ["mem://t".to_owned(), local])
}

#[test]
fn copies_are_whole_and_apart() {
    let (_folder, places) = places();
    let context = context();
    for from in &places {
        make_array(&context, &format!("{from}/a"));
        put(&context, &format!("{from}/a/notes/mine.txt"));
        for to in &places {
            let to = format!("{to}/from-{}", from.len());
            context.object(&format!("{from}/a")).copy_to(&to).unwrap();
            is_array(&context, &to);
            let notes = context.locate(&Uri::parse(&to).unwrap()).unwrap();
            assert_eq!(
                notes
                    .storage
                    .size(&notes.path.join("notes/mine.txt"))
                    .unwrap(),
                4
            );
            context
                .array(&to)
                .change_metadata()
                .unwrap()
                .remove("k")
                .commit()
                .unwrap();
            is_array(&context, &format!("{from}/a"));
            let again = context
                .object(&format!("{from}/a"))
                .copy_to(&to)
                .unwrap_err();
            assert!(matches!(again, Error::AlreadyExists { .. }), "{again}");
            let inside = context.object(&to).copy_to(&format!("{to}/x")).unwrap_err();
            assert!(matches!(inside, Error::InvalidArgument(_)), "{inside}");
        }
    }
    let nothing = context
        .object("mem://nothing")
        .copy_to("mem://x")
        .unwrap_err();
    assert!(matches!(nothing, Error::NotFound { .. }), "{nothing}");
}

#[test]
fn empty_folders_are_copied_where_there_are_some() {
    let (folder, [_, local]) = places();
    let context = context();
    make_array(&context, "mem://m/a");
    make_array(&context, &format!("{local}/a"));
    context
        .object(&format!("{local}/a"))
        .copy_to(&format!("{local}/b"))
        .unwrap();
    assert!(folder.path().join("b/__fragments").is_dir());
    assert!(folder.path().join("b/__labels/l0/__commits").is_dir());
}

#[test]
fn what_is_moved_is_gone_from_where_it_was() {
    let (_folder, places) = places();
    let context = context();
    for from in &places {
        for to in &places {
            let (from, to) = (format!("{from}/a"), format!("{to}/b"));
            make_array(&context, &from);
            context.object(&from).rename_to(&to).unwrap();
            is_array(&context, &to);
            assert!(matches!(
                context.array(&from).open(),
                Err(Error::NotFound { .. })
            ));
            context.object(&to).delete(false).unwrap();
        }
    }
    make_array(&context, "mem://g/a");
    make_group(&context, "mem://g", &[NewMember::relative("a")]);
    context.object("mem://g").rename_to("mem://h").unwrap();
    let group = context.group("mem://h").open().unwrap();
    is_array(&context, &group.members()[0].location);
}

#[test]
fn deleting_leaves_what_is_not_the_formats() {
    let (folder, [_, local]) = places();
    let context = context();
    for root in ["mem://t", &local] {
        let (plain, noted) = (format!("{root}/plain"), format!("{root}/noted"));
        make_array(&context, &plain);
        make_array(&context, &noted);
        put(&context, &format!("{noted}/notes/mine.txt"));
        for uri in [&plain, &noted] {
            let plan = context.object(uri).plan_deletion(false).unwrap();
            assert_eq!(plan.len(), 1);
            is_array(&context, uri);
            assert_eq!(context.object(uri).delete(false).unwrap(), plan);
            assert!(matches!(
                context.array(uri).open(),
                Err(Error::NotFound { .. })
            ));
            assert!(matches!(
                context.object(uri).delete(false),
                Err(Error::NotFound { .. })
            ));
        }
        let notes = context.locate(&Uri::parse(&noted).unwrap()).unwrap();
        assert_eq!(notes.storage.list(&notes.path).unwrap().len(), 1);
    }
    assert!(!folder.path().join("plain").exists());
    assert!(folder.path().join("noted/notes/mine.txt").exists());
}

#[test]
fn groups_are_deleted_alone_or_with_their_members() {
    let context = context();
    let build = || {
        make_array(&context, "mem://g/sub/inner");
        make_array(&context, "mem://elsewhere");
        make_group(
            &context,
            "mem://g/sub",
            &[
                NewMember::relative("inner"),
                NewMember::at("mem://elsewhere"),
            ],
        );
        let gone = NewMember::at("mem://gone").typed(ObjectType::Array);
        make_group(&context, "mem://g", &[NewMember::relative("sub"), gone]);
        // Groups may name each other.
        let mut editor = context.group("mem://g/sub").edit().unwrap();
        editor.add(NewMember::at("mem://g").named("up")).unwrap();
        editor.commit().unwrap();
    };
    build();
    assert_eq!(context.object("mem://g").delete(false).unwrap().len(), 1);
    is_array(&context, "mem://g/sub/inner");
    assert_eq!(
        context.group("mem://g/sub").open().unwrap().members().len(),
        3
    );
    context.object("mem://g/sub").delete(true).unwrap();
    build();
    let deleted: Vec<String> = context
        .object("mem://g")
        .delete(true)
        .unwrap()
        .into_iter()
        .map(|object| object.uri)
        .collect();
    assert_eq!(deleted.last().map(String::as_str), Some("mem://g"));
    let mut sorted = deleted.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        [
            "mem://elsewhere",
            "mem://g",
            "mem://g/sub",
            "mem://g/sub/inner"
        ]
    );
    assert!(matches!(
        context.group("mem://g/sub").open(),
        Err(Error::NotFound { .. })
    ));
    assert!(matches!(
        context.array("mem://elsewhere").open(),
        Err(Error::NotFound { .. })
    ));
}
