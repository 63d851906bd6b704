//! The reference's S3 client writes and Azulejo reads, and back.

use super::cells::{self, LAST};
use super::peer::Peer;
use super::{Stage, Tally, s3_uri};
use crate::Outcome;
use azulejo::Context;
use azulejo::consolidate::Mode;
use azulejo::format::Datatype;
use azulejo::format::metadata::MetadataValue;
use azulejo::group::{NewMember, ObjectType};
use serde_json::json;

/// Who does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Theirs,
}

struct Both<'a> {
    context: &'a Context,
    peer: &'a mut Peer,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Both<'_> {
    fn create(&mut self, side: Side, uri: &str, dense: bool) -> Outcome {
        match side {
            Side::Ours => cells::create(self.context, uri, dense).map_err(text),
            Side::Theirs => self
                .peer
                .ask(&json!({ "do": "create", "uri": uri, "dense": dense }))
                .map(|_| ()),
        }
    }

    fn write(&mut self, side: Side, uri: &str, xs: &[i64]) -> Outcome {
        match side {
            Side::Ours => cells::write(self.context, uri, xs).map_err(text),
            Side::Theirs => self
                .peer
                .ask(&json!({ "do": "write", "uri": uri, "xs": xs }))
                .map(|_| ()),
        }
    }

    fn consolidate(&mut self, side: Side, uri: &str, mode: Mode, name: &str) -> Outcome {
        match side {
            Side::Theirs => {
                let command =
                    json!({ "do": "consolidate", "uri": uri, "mode": name, "vacuum": true });
                self.peer.ask(&command).map(|_| ())
            }
            Side::Ours => {
                let (context, done) = (self.context, |_| ());
                match mode {
                    Mode::Fragments => context
                        .array(uri)
                        .consolidate(&Default::default())
                        .map(|_| ()),
                    Mode::FragmentMetadata => {
                        context.array(uri).consolidate_fragment_metadata().map(done)
                    }
                    _ => context.array(uri).consolidate_commits().map(done),
                }
                .map_err(text)?;
                context
                    .array(uri)
                    .vacuum(mode, Default::default())
                    .map(|_| ())
                    .map_err(text)
            }
        }
    }

    /// Both read what is expected.
    fn both_read(&mut self, uri: &str, first: i64, last: i64, expected: &cells::Cells) -> Outcome {
        let ours = cells::read(self.context, uri, first, last).map_err(text)?;
        cells::compare(&ours, expected).map_err(|e| format!("ours: {e}"))?;
        cells::compare(&self.peer.read(uri, first, last)?, expected)
            .map_err(|e| format!("theirs: {e}"))
    }
}

/// One array: created by one side, written by both, changed by both.
fn array(both: &mut Both<'_>, tally: &mut Tally, maker: Side, dense: bool) {
    let other = if maker == Side::Ours {
        Side::Theirs
    } else {
        Side::Ours
    };
    let name = format!(
        "interop/{maker:?}-{}",
        if dense { "dense" } else { "sparse" }
    )
    .to_lowercase();
    let uri = &s3_uri(&name);
    let coordinates = |part: i64| -> Vec<i64> {
        if dense {
            (part * 50..(part + 1) * 50).collect()
        } else {
            (part..200).step_by(4).collect()
        }
    };
    let all = |parts: i64| cells::expected((0..parts).flat_map(coordinates));
    let last = |parts: i64| if dense { parts * 50 - 1 } else { LAST };
    tally.check(&format!("{name}: written by one"), || {
        both.create(maker, uri, dense)?;
        both.write(maker, uri, &coordinates(0))?;
        both.write(maker, uri, &coordinates(1))?;
        both.both_read(uri, 0, last(2), &all(2))
    });
    tally.check(&format!("{name}: written by both"), || {
        both.write(other, uri, &coordinates(2))?;
        both.write(maker, uri, &coordinates(3))?;
        both.both_read(uri, 0, last(4), &all(4))
    });
    for (mode, what) in [
        (Mode::Commits, "commits"),
        (Mode::FragmentMetadata, "fragment_meta"),
        (Mode::Fragments, "fragments"),
    ] {
        for side in [other, maker] {
            tally.check(&format!("{name}: {what} consolidated by {side:?}"), || {
                both.consolidate(side, uri, mode, what)?;
                both.both_read(uri, 0, last(4), &all(4))?;
                // Something for the other to consolidate.
                both.write(maker, uri, &coordinates(0))?;
                both.both_read(uri, 0, last(4), &all(4))
            });
        }
    }
    tally.check(&format!("{name}: key-values"), || {
        let value = MetadataValue::new(Datatype::StringUtf8, "azul");
        both.context
            .array(uri)
            .change_metadata()
            .map_err(text)?
            .put("ours", value)
            .map_err(text)?
            .commit()
            .map_err(text)?;
        both.peer
            .ask(&json!({ "do": "meta", "uri": uri, "key": "theirs", "value": 5 }))?;
        let array = both.context.array(uri).open().map_err(text)?;
        let keys: Vec<_> = array.metadata().map_err(text)?.keys().cloned().collect();
        if keys == ["ours", "theirs"] {
            Ok(())
        } else {
            Err(format!("{keys:?}"))
        }
    });
    if dense {
        return;
    }
    for (side, limit) in [(other, 90), (maker, 60)] {
        tally.check(&format!("{name}: deleted by {side:?}"), || {
            match side {
                Side::Theirs => {
                    let command =
                        json!({ "do": "delete", "uri": uri, "where": format!("a > {limit}") });
                    both.peer.ask(&command)?;
                }
                Side::Ours => {
                    let array = both.context.array(uri).open().map_err(text)?;
                    let condition = array.condition(&format!("a > {limit}")).map_err(text)?;
                    both.context
                        .array(uri)
                        .delete_cells(&condition, None)
                        .map_err(text)?;
                }
            }
            let mut left = all(4);
            left.retain(|_, (a, _)| *a <= limit);
            both.both_read(uri, 0, LAST, &left)
        });
    }
}

/// A group of one side with an array of each.
fn group(both: &mut Both<'_>, tally: &mut Tally, maker: Side) {
    let uri = s3_uri(&format!("interop/group-{maker:?}").to_lowercase());
    let (ours, theirs) = (
        s3_uri("interop/ours-dense"),
        s3_uri("interop/theirs-sparse"),
    );
    tally.check(&format!("group of {maker:?}"), || {
        match maker {
            Side::Theirs => {
                let members = json!({ "o": ours, "t": theirs });
                both.peer.ask(
                    &json!({ "do": "group", "uri": uri, "members": members, "meta": { "k": 7 } }),
                )?;
            }
            Side::Ours => {
                both.context.group(&uri).create().map_err(text)?;
                let mut editor = both.context.group(&uri).edit().map_err(text)?;
                for (name, member) in [("o", &ours), ("t", &theirs)] {
                    let member = NewMember::at(member.clone())
                        .named(name)
                        .typed(ObjectType::Array);
                    editor.add(member).map_err(text)?;
                }
                editor.commit().map_err(text)?;
                let mut writer = both.context.group(&uri).change_metadata().map_err(text)?;
                writer
                    .put("k", MetadataValue::new(Datatype::Int64, 7i64.to_le_bytes()))
                    .map_err(text)?;
                writer.commit().map_err(text)?;
            }
        }
        let group = both.context.group(&uri).open().map_err(text)?;
        let members: Vec<(&str, &str)> = group
            .members()
            .iter()
            .map(|m| (m.key(), m.location.as_str()))
            .collect();
        if members != [("o", ours.as_str()), ("t", theirs.as_str())] {
            return Err(format!("ours: {members:?}"));
        }
        if !group.metadata().map_err(text)?.contains_key("k") {
            return Err("ours: a key is missing".into());
        }
        let answer = both.peer.ask(&json!({ "do": "members", "uri": uri }))?;
        let expected = json!({ "o": [ours, "Array"], "t": [theirs, "Array"] });
        if answer["members"] == expected && answer["meta"] == json!({ "k": 7 }) {
            return Ok(());
        }
        Err(format!("theirs: {answer}"))
    });
}

/// Runs all of it.
pub fn run(stage: &mut Stage, tally: &mut Tally) -> Outcome {
    let context = stage.context()?;
    let mut peer = Peer::start(stage.proxy.address)?;
    let both = &mut Both {
        context: &context,
        peer: &mut peer,
    };
    for maker in [Side::Ours, Side::Theirs] {
        for dense in [true, false] {
            array(both, tally, maker, dense);
        }
    }
    group(both, tally, Side::Ours);
    group(both, tally, Side::Theirs);
    Ok(())
}
