use super::*;
use crate::config::Config;
use crate::object::WalkEntry;
use azulejo_format::FormatVersion;
use azulejo_format::datatype::Datatype;
use azulejo_format::group::GroupVersion;
use azulejo_format::metadata::{MetadataEntry, MetadataValue, encode};
use azulejo_format::tile::GenericTile;
use bytes::Bytes;

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn context() -> Context {
    Context::new(Config::new().threads(1), None).unwrap()
}

fn put(context: &Context, path: &str, body: &[u8]) {
    let uri = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("mem://{path}")
    };
    let location = context.locate(&Uri::parse(&uri).unwrap()).unwrap();
    location
        .storage
        .put(&location.path, Bytes::copy_from_slice(body))
        .unwrap();
}

fn tile(payload: &[u8]) -> Vec<u8> {
    GenericTile::encode(payload, FormatVersion::new(22, "test").unwrap(), None).unwrap()
}

fn member(key: &str, uri: &str, kind: MemberKind, deleted: bool) -> GroupMember {
    let name = (!key.is_empty()).then(|| key.to_owned());
    GroupMember {
        version: GroupVersion::V2,
        kind,
        relative: !uri.contains("://"),
        uri: uri.to_owned(),
        name,
        deleted,
    }
}

fn details(
    context: &Context,
    group: &str,
    time: u64,
    version: GroupVersion,
    members: Vec<GroupMember>,
) {
    let members = members
        .into_iter()
        .map(|member| GroupMember { version, ..member })
        .collect();
    let suffix = version.number();
    let payload = GroupDetails { version, members }.encode();
    put(
        context,
        &format!("{group}/__group/__{time}_{time}_{A}_{suffix}"),
        &tile(&payload),
    );
}

fn array(context: &Context, path: &str) {
    put(context, &format!("{path}/__schema/__1_1_{A}"), b"?");
}

fn names(group: &Group) -> Vec<&str> {
    group.members().iter().map(Member::key).collect()
}

#[test]
fn changes_of_members_add_up_over_time() {
    let context = context();
    let v2 = GroupVersion::V2;
    put(&context, "g/__tiledb_group.tdb", b"");
    details(
        &context,
        "g",
        10,
        v2,
        vec![member("b", "x/b", MemberKind::Array, false)],
    );
    let more = vec![
        member("", "s", MemberKind::Group, false),
        member("a", "mem://y", MemberKind::Unknown, false),
    ];
    details(&context, "g", 20, v2, more);
    details(
        &context,
        "g",
        30,
        v2,
        vec![member("b", "x/b", MemberKind::Array, true)],
    );
    let at = |t| {
        context
            .group("mem://g")
            .open_at(TimeRange::until(t))
            .unwrap()
    };
    assert_eq!(names(&at(9)), [""; 0]);
    assert_eq!(names(&at(10)), ["b"]);
    assert_eq!(names(&at(20)), ["a", "b", "s"]);
    let group = context.group("mem://g").open().unwrap();
    assert_eq!(names(&group), ["a", "s"]);
    let [a, s] = group.members() else { panic!() };
    assert_eq!(
        (a.object_type, a.relative, a.location.as_str()),
        (None, false, "mem://y")
    );
    assert_eq!(
        (s.object_type, s.relative, s.location.as_str()),
        (Some(ObjectType::Group), true, "mem://g/s")
    );
    assert_eq!((s.name.as_deref(), s.uri.as_str()), (None, "s"));
    assert_eq!(group.member("s"), Some(s));
    assert_eq!(group.member("b"), None);
    // Only what lies in the time counts, additions too.
    let later = context
        .group("mem://g")
        .open_at(TimeRange { start: 20, end: 40 })
        .unwrap();
    assert_eq!(names(&later), ["a", "s"]);
    let never = context
        .group("mem://g")
        .open_at(TimeRange { start: 20, end: 10 })
        .unwrap();
    assert_eq!(names(&never), [""; 0]);
}

#[test]
fn details_of_version_1_replace_each_other() {
    let context = context();
    let v1 = GroupVersion::V1;
    details(
        &context,
        "g",
        10,
        v1,
        vec![member("a", "a", MemberKind::Array, false)],
    );
    details(
        &context,
        "g",
        20,
        v1,
        vec![member("b", "b", MemberKind::Array, false)],
    );
    assert_eq!(names(&context.group("mem://g").open().unwrap()), ["b"]);
    assert_eq!(
        names(
            &context
                .group("mem://g")
                .open_at(TimeRange::until(19))
                .unwrap()
        ),
        ["a"]
    );
}

#[test]
fn metadata_and_details_are_vacuumed() {
    let context = context();
    put(&context, "g/__tiledb_group.tdb", b"");
    let entry = |key: &str, value: u8| MetadataEntry {
        key: key.to_owned(),
        value: Some(MetadataValue::new(Datatype::UInt8, [value])),
    };
    put(
        &context,
        &format!("g/__meta/__1_1_{A}"),
        &tile(&encode(&[entry("x", 1), entry("y", 1)])),
    );
    put(
        &context,
        &format!("g/__meta/__2_2_{A}"),
        &tile(&encode(&[MetadataEntry {
            key: "x".into(),
            value: None,
        }])),
    );
    // What the vacuum file says was merged is not looked at: this file differs from the two on
    // purpose.
    put(
        &context,
        &format!("g/__meta/__1_2_{A}"),
        &tile(&encode(&[entry("y", 7)])),
    );
    let list = format!("mem://elsewhere/g/__meta/__1_1_{A}\nmem://elsewhere/g/__meta/__2_2_{A}\n");
    put(
        &context,
        &format!("g/__meta/__1_2_{A}.vac"),
        list.as_bytes(),
    );
    let at = |t| {
        context
            .group("mem://g")
            .open_at(TimeRange::until(t))
            .unwrap()
            .metadata()
            .unwrap()
    };
    let values = |t| {
        at(t)
            .iter()
            .map(|(key, v)| (key.clone(), v.data.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(values(9), [("y".to_owned(), vec![7])]);
    assert_eq!(
        values(1),
        [("x".to_owned(), vec![1]), ("y".to_owned(), vec![1])]
    );
    assert_eq!(values(0), []);
}

#[test]
fn errors_say_what_is_there_instead() {
    let context = context();
    array(&context, "a");
    put(&context, "folder/file", b"");
    for (uri, part) in [
        ("mem://a", "it is an array"),
        ("mem://folder", "neither __group nor __tiledb_group.tdb"),
        ("mem://gone", "no such folder"),
    ] {
        let error = context.group(uri).open().unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{uri}");
        assert!(
            error.to_string().contains(part) && error.to_string().contains(uri),
            "{error}"
        );
    }
    put(&context, &format!("bad/__group/__1_1_{A}_2"), b"no tile");
    let error = context.group("mem://bad").open().unwrap_err();
    assert!(
        matches!(&error, Error::Corrupt { uri, .. } if uri.ends_with(&format!("__group/__1_1_{A}_2"))),
        "{error}"
    );
}

#[test]
fn damaged_details_are_errors_or_values() {
    let context = context();
    let members = vec![
        member("a", "x", MemberKind::Array, false),
        member("", "y", MemberKind::Group, false),
    ];
    let payload = GroupDetails {
        version: GroupVersion::V2,
        members,
    }
    .encode();
    let whole = tile(&payload);
    let path = format!("g/__group/__1_1_{A}_2");
    for at in 0..whole.len() {
        put(&context, &path, &whole[..at]);
        assert!(context.group("mem://g").open().is_err(), "cut at {at}");
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        put(&context, &path, &bytes);
        let _ = context.group("mem://g").open();
    }
}

#[test]
fn folders_hold_arrays_and_groups() {
    let context = context();
    array(&context, "top/a");
    array(&context, "top/a/__labels/l0");
    array(&context, "top/b/c");
    put(&context, "top/g/__tiledb_group.tdb", b"");
    put(&context, "top/old/__array_schema.tdb", b"");
    put(&context, "top/file", b"");
    let types = |uri: &str| context.object(uri).object_type().unwrap();
    assert_eq!(types("mem://top/a"), Some(ObjectType::Array));
    assert_eq!(types("mem://top/old"), Some(ObjectType::Array));
    assert_eq!(types("mem://top/g"), Some(ObjectType::Group));
    assert_eq!(types("mem://top/b"), None);
    assert_eq!(types("mem://top/gone"), None);
    let found = context.object("mem://top").list().unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|e| (e.name.as_str(), e.uri.as_str(), e.object_type))
        .collect();
    assert_eq!(
        found,
        [
            ("a", "mem://top/a", ObjectType::Array),
            ("g", "mem://top/g", ObjectType::Group),
            ("old", "mem://top/old", ObjectType::Array),
        ]
    );
    assert_eq!(context.object("mem://top/a").list().unwrap(), []);
    assert!(matches!(
        context.object("mem://top/gone").list(),
        Err(Error::NotFound { .. })
    ));
    assert_eq!(
        [ObjectType::Array, ObjectType::Group].map(|t| t.to_string()),
        ["array", "group"]
    );
}

fn walked(context: &Context, uri: &str, depth: usize) -> Vec<String> {
    let line = |entry: Result<WalkEntry>| match entry {
        Ok(entry) => {
            let kind = entry.object_type.map_or("-".to_owned(), |t| t.to_string());
            let repeated = if entry.repeated { " again" } else { "" };
            format!("{} {} {kind}{repeated}", entry.depth, entry.name)
        }
        Err(error) => format!("! {error}"),
    };
    context.object(uri).walk(depth).unwrap().map(line).collect()
}

#[test]
fn walks_end_although_groups_contain_each_other() {
    let context = context();
    let v2 = GroupVersion::V2;
    array(&context, "top/plain/a");
    array(&context, "top/plain/a/nested");
    put(&context, "top/legacy/__tiledb_group.tdb", b"");
    array(&context, "top/legacy/b");
    // Contains itself, an array that is not in its folder, and one that is gone.
    let members = vec![
        member("self", ".", MemberKind::Group, false),
        member("sub", "sub", MemberKind::Group, false),
        member("far", "mem://top/plain/a", MemberKind::Array, false),
        member("gone", "mem://gone", MemberKind::Group, false),
        member("lost", "mem://gone", MemberKind::Unknown, false),
        member("other", "hdfs://host/a", MemberKind::Group, false),
    ];
    details(&context, "top/g", 1, v2, members);
    array(&context, "top/g/unlisted");
    details(
        &context,
        "top/g/sub",
        1,
        v2,
        vec![member("back", "mem://top/g", MemberKind::Group, false)],
    );
    let found = walked(&context, "mem://top", usize::MAX);
    let other = found
        .iter()
        .find(|line| line.starts_with("! hdfs://"))
        .unwrap()
        .clone();
    assert_eq!(
        found,
        [
            "1 g group",
            "2 far array",
            "! mem://gone: not found (a group that is a member of another)",
            "2 lost -",
            &other,
            "2 self group again",
            "2 sub group",
            "3 back group again",
            "1 legacy group",
            "2 b array",
            "1 plain -",
            "2 a array",
        ]
    );
    assert_eq!(
        walked(&context, "mem://top", 1),
        ["1 g group", "1 legacy group", "1 plain -"]
    );
    assert_eq!(walked(&context, "mem://top", 0), [""; 0]);
    assert_eq!(walked(&context, "mem://top/plain/a", 9), [""; 0]);
    assert!(matches!(
        context.object("mem://top/gone").walk(1),
        Err(Error::NotFound { .. })
    ));
}

#[test]
fn circles_of_growing_paths_end_too() {
    let context = context();
    let v2 = GroupVersion::V2;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    details(
        &context,
        &format!("{root}/g"),
        1,
        v2,
        vec![member("s", "s", MemberKind::Group, false)],
    );
    let members = vec![
        member("again", "../../g/s", MemberKind::Group, false),
        member("up", "..", MemberKind::Group, false),
        member("x", "../x", MemberKind::Array, false),
    ];
    details(&context, &format!("{root}/g/s"), 1, v2, members);
    array(&context, &format!("{root}/g/x"));
    let found = walked(&context, &format!("{root}/g"), usize::MAX);
    assert_eq!(
        found,
        [
            "1 s group",
            "2 again group again",
            "2 up group again",
            "2 x array"
        ]
    );
}

/// As in the reference, which leaves it to the file system what a path means.
#[test]
fn relative_members_of_local_disks_may_lie_outside() {
    let context = context();
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| format!("{}/{name}", folder.path().display());
    context.group(&place("g")).create().unwrap();
    context.group(&place("x")).create().unwrap();
    let mut editor = context.group(&place("g")).edit().unwrap();
    editor.add(NewMember::relative("../x/")).unwrap();
    for itself in ["../g", "x/..", "."] {
        let member = NewMember::relative(itself).typed(ObjectType::Group);
        assert!(editor.add(member).is_err(), "{itself}");
    }
    editor.commit().unwrap();
    let mut same = context.group(&place("x/../g")).edit().unwrap();
    let member = NewMember::relative("../g").typed(ObjectType::Group);
    assert!(same.add(member).is_err());
    let group = context.group(&place("g")).open().unwrap();
    assert_eq!(names(&group), ["../x"]);
    let [member] = group.members() else {
        panic!("one member");
    };
    assert!(context.group(&member.location).open().is_ok());
    let mut editor = context.group(&place("g")).edit().unwrap();
    editor.remove("../x/").unwrap();
    editor.commit().unwrap();
    let group = context.group(&place("g")).open().unwrap();
    assert!(group.members().is_empty());
}

#[test]
fn members_are_added_and_removed() {
    let context = context();
    context.group("mem://g").create().unwrap();
    assert!(matches!(
        context.group("mem://g").create(),
        Err(Error::AlreadyExists { .. })
    ));
    assert!(
        context
            .group("mem://g")
            .open()
            .unwrap()
            .members()
            .is_empty()
    );
    array(&context, "g/a");
    array(&context, "b");
    let mut editor = context.group("mem://g").edit().unwrap();
    editor.add(NewMember::relative("a")).unwrap();
    editor.add(NewMember::at("mem://b").named("bee")).unwrap();
    editor
        .add(
            NewMember::at("mem://later")
                .named("later")
                .typed(ObjectType::Group),
        )
        .unwrap();
    // As shells complete and type it.
    editor
        .add(
            NewMember::relative("./b/")
                .named("x")
                .typed(ObjectType::Array),
        )
        .unwrap();
    editor.remove("x").unwrap();
    let path = NewMember::relative("./sub//b/").typed(ObjectType::Array);
    editor.add(path.clone()).unwrap();
    editor.remove("./sub//b/").unwrap();
    editor.add(path).unwrap();
    for (member, part) in [
        (NewMember::relative("nothing"), "not found"),
        (NewMember::relative("../b"), "group's folder"),
        (NewMember::relative("mem://b"), "group's folder"),
        (NewMember::at("mem://g"), "itself"),
        (NewMember::at("mem://b").named(""), "empty"),
        (NewMember::at("mem://g/a").named("bee"), "already exists"),
    ] {
        let error = editor.add(member.clone()).unwrap_err().to_string();
        assert!(error.contains(part), "{member:?}: {error}");
    }
    editor
        .add(NewMember::at("mem://g/a").named("bee").replacing())
        .unwrap();
    editor.add(NewMember::at("mem://g/a").named("sea")).unwrap();
    let again = NewMember::at("mem://b").named("sea").replacing_earlier();
    assert!(matches!(
        editor.add(again.clone()),
        Err(Error::AlreadyExists { .. })
    ));
    editor.commit().unwrap();
    let group = context.group("mem://g").open().unwrap();
    assert_eq!(names(&group), ["a", "bee", "later", "sea", "sub/b"]);
    assert_eq!(group.member("a").unwrap().location, "mem://g/a");
    assert_eq!(group.member("sub/b").unwrap().location, "mem://g/sub/b");
    assert_eq!(
        group.member("a").unwrap().object_type,
        Some(ObjectType::Array)
    );

    let mut editor = context.group("mem://g").edit().unwrap();
    editor.add(again).unwrap();
    editor.clone().remove("a/").unwrap();
    // A whole path is no relative one.
    assert!(matches!(
        editor.remove("/sub/b"),
        Err(Error::NotFound { .. })
    ));
    editor.remove("./sub//b/").unwrap();
    editor.remove("bee").unwrap();
    editor.remove("mem://later").unwrap();
    assert!(matches!(
        editor.remove("nobody"),
        Err(Error::NotFound { .. })
    ));
    assert!(matches!(
        editor.remove("mem://g/a"),
        Err(Error::InvalidArgument(_))
    ));
    editor.commit().unwrap();
    assert_eq!(
        names(&context.group("mem://g").open().unwrap()),
        ["a", "sea"]
    );
    context.group("mem://g").edit().unwrap().commit().unwrap();
}

#[test]
fn members_are_replaced_as_a_whole() {
    let context = context();
    let group = context.group("mem://g");
    group.create().unwrap();
    let editor = |places: &[&str]| {
        let mut editor = group.edit().unwrap();
        for place in places {
            let (name, _) = place.split_once('.').unwrap();
            let member = NewMember::relative(*place).named(name).replacing();
            editor.add(member.typed(ObjectType::Array)).unwrap();
        }
        editor
    };
    let places = |members: &[Member]| -> Vec<String> {
        members.iter().map(|member| member.uri.clone()).collect()
    };
    let now = || places(group.open().unwrap().members());
    assert!(editor(&[]).commit_alone().unwrap().is_empty());
    editor(&["x.1", "y.1"]).commit().unwrap();
    // Both have looked at the group before either writes.
    let (second, third) = (editor(&["x.2", "z.2"]), editor(&["x.3"]));
    let mut late = group.edit().unwrap();
    late.remove("y").unwrap();
    assert_eq!(places(&second.commit_alone().unwrap()), ["x.1", "y.1"]);
    assert_eq!(now(), ["x.2", "z.2"]);
    assert_eq!(places(&third.commit_alone().unwrap()), ["x.2", "z.2"]);
    assert_eq!(now(), ["x.3"]);
    assert_eq!(places(&late.commit_alone().unwrap()), ["x.3"]);
    assert!(now().is_empty());
    let past = group.edit_at(5).unwrap();
    assert!(matches!(
        past.commit_alone(),
        Err(Error::InvalidArgument(_))
    ));
}

#[test]
fn members_are_replaced_by_many_threads_one_after_another() {
    let context = context();
    let group = context.group("mem://g");
    group.create().unwrap();
    let replaced = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (group, replaced) = (&group, &replaced);
            scope.spawn(move || {
                for round in 0..5 {
                    let place = format!("{thread}-{round}");
                    let names = [format!("own{thread}"), "shared".to_owned()];
                    let mut editor = group.edit().unwrap();
                    for name in names {
                        let member = NewMember::relative(&place).named(name).replacing();
                        editor.add(member.typed(ObjectType::Array)).unwrap();
                    }
                    let gone = editor.commit_alone().unwrap();
                    let mut all = replaced.lock().unwrap();
                    all.extend(
                        gone.into_iter()
                            .map(|m| (m.uri.clone(), m.key().to_owned())),
                    );
                }
            });
        }
    });
    let mut all = replaced.into_inner().unwrap();
    let last = group.open().unwrap();
    assert_eq!(last.members().len(), 2);
    assert_eq!(last.members()[0].uri, last.members()[1].uri);
    all.extend((last.members().iter()).map(|m| (m.uri.clone(), m.key().to_owned())));
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!((all.len(), count), (40, 40));
}

#[test]
fn changes_have_the_time_that_they_are_given() {
    let context = context();
    context.group("mem://g").create().unwrap();
    array(&context, "g/a");
    array(&context, "g/b");
    let mut editor = context.group("mem://g").edit_at(10).unwrap();
    editor.add(NewMember::relative("a")).unwrap();
    editor.commit().unwrap();
    let mut editor = context.group("mem://g").edit_at(20).unwrap();
    editor.remove("a").unwrap();
    editor.add(NewMember::relative("b")).unwrap();
    editor.commit().unwrap();
    let at = |time| {
        context
            .group("mem://g")
            .open_at(TimeRange::until(time))
            .unwrap()
    };
    assert_eq!(
        (names(&at(9)), names(&at(10)), names(&at(20))),
        (vec![], vec!["a"], vec!["b"])
    );
    let mut writer = context.group("mem://g").change_metadata().unwrap().at(15);
    writer
        .put("k", MetadataValue::new(Datatype::Int16, [1, 0]))
        .unwrap();
    writer.commit().unwrap();
    assert!(at(14).metadata().unwrap().is_empty());
    assert_eq!(at(15).metadata().unwrap()["k"].count(), 1);
}

#[test]
fn a_group_that_was_deleted_meanwhile_is_not_written_to() {
    let context = context();
    context.group("mem://g").create().unwrap();
    let mut editor = context.group("mem://g").edit().unwrap();
    editor
        .add(NewMember::at("mem://c").named("c").typed(ObjectType::Group))
        .unwrap();
    let group = context.group("mem://g").open().unwrap();
    context.object("mem://g").delete(false).unwrap();
    assert!(matches!(editor.commit(), Err(Error::NotFound { .. })));
    assert!(matches!(
        group.change_metadata(),
        Err(Error::NotFound { .. })
    ));
    let location = &group.location;
    assert_eq!(location.storage.list(&location.path).unwrap(), []);
}

#[test]
fn old_groups_stay_in_their_version() {
    let context = context();
    put(&context, "g/__tiledb_group.tdb", b"");
    let members = vec![
        member("a", "x", MemberKind::Array, false),
        member("b", "y", MemberKind::Unknown, false),
    ];
    details(&context, "g", 10, GroupVersion::V1, members);
    let mut editor = context.group("mem://g").edit().unwrap();
    editor.remove("a").unwrap();
    editor
        .add(NewMember::at("mem://c").named("c").typed(ObjectType::Group))
        .unwrap();
    editor.commit().unwrap();
    let group = context.group("mem://g").open().unwrap();
    assert_eq!(names(&group), ["b", "c"]);
    assert_eq!(group.details_version, Some(GroupVersion::V1));
    let listed = group
        .location
        .storage
        .list(&group.location.path.join("__group"))
        .unwrap();
    assert!(
        listed.iter().all(|entry| entry.name.ends_with("_1")),
        "{listed:?}"
    );
}

#[test]
fn two_editors_of_an_old_group_do_not_undo_each_other() {
    let context = context();
    put(&context, "g/__tiledb_group.tdb", b"");
    let members = vec![
        member("a", "x", MemberKind::Array, false),
        member("b", "y", MemberKind::Array, false),
    ];
    details(&context, "g", 10, GroupVersion::V1, members);
    let mut first = context.group("mem://g").edit().unwrap();
    let mut second = context.group("mem://g").edit().unwrap();
    for (editor, name) in [(&mut first, "c"), (&mut second, "d")] {
        let new = NewMember::at(format!("mem://{name}")).named(name);
        editor.add(new.typed(ObjectType::Group)).unwrap();
    }
    first.remove("a").unwrap();
    first.commit().unwrap();
    second.commit().unwrap();
    let group = context.group("mem://g").open().unwrap();
    assert_eq!(names(&group), ["b", "c", "d"]);
}
