//! Commits: what makes writes visible, and files that stand for many of them.
//!
//! | file | content | module |
//! |---|---|---|
//! | `.wrt`, `.ok` | nothing: the fragment of that name exists | |
//! | `.del` | a condition on the cells to keep, in a generic tile | [`Delete`] |
//! | `.upd` | a condition and new values, in a generic tile | [`Update`] |
//! | `.con` | many of the above | [`ConsolidatedCommits`] |
//! | `.ign` | names in `.con` files that count no more | [`IgnoreList`] |
//! | `.vac` | fragments or files that can be vacuumed | [`VacuumList`] |
//! | `.replaces` | fragments, and those that they replace (our own) | [`Replacement`] |
//!
//! The payload of `.del` and `.upd` is that of a generic tile, unfiltered by the caller.

mod consolidated;
mod delete;
mod ignore;
mod replacement;
mod update;
mod vacuum;

pub use consolidated::{ConsolidatedCommit, ConsolidatedCommits};
pub use delete::Delete;
pub use ignore::IgnoreList;
pub use replacement::Replacement;
pub use update::{Update, UpdateValue};
pub use vacuum::VacuumList;

/// What follows the last `/` of a URI (one at its end apart): the name of a fragment or commit
/// wherever it once lay.
///
/// Old vacuum and consolidated files hold absolute URIs; arrays move, so they are resolved by name.
#[must_use]
pub fn last_component(uri: &str) -> &str {
    crate::fragment::last_component(uri)
}

/// Splits text into lines, the last of which may lack its end. A file that went through an editor
/// may end its lines in CR LF.
fn lines(bytes: &[u8], what: &'static str) -> crate::error::Result<Vec<String>> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| crate::error::DecodeError::invalid(what, e.valid_up_to(), "not UTF-8"))?;
    Ok(text
        .split('\n')
        .map(|line| line.trim_end_matches('\r'))
        .filter(|line| !line.is_empty())
        .map(String::from)
        .collect())
}

fn join_lines(lines: &[String]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for line in lines {
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_round_trip() {
        let uris = vec![
            "__commits/__1_1_ab_22.wrt".to_string(),
            "__commits/__2_2_cd_22.del".into(),
        ];
        let ignore = IgnoreList { uris: uris.clone() };
        assert_eq!(IgnoreList::decode(&ignore.encode()).unwrap(), ignore);
        assert!(IgnoreList::decode(b"__commits/\xff").is_err());
        let vacuum = VacuumList { uris };
        assert_eq!(VacuumList::decode(&vacuum.encode()).unwrap(), vacuum);
        assert_eq!(VacuumList::decode(b"").unwrap(), VacuumList::default());
        // What is decoded is the same again from its own bytes.
        let edited = VacuumList::decode(b"a\r\n\r\nb\r").unwrap();
        assert_eq!(edited.uris, ["a", "b"]);
        assert_eq!(VacuumList::decode(&edited.encode()).unwrap(), edited);
    }

    #[test]
    fn a_list_may_lack_its_last_line_end() {
        let vacuum =
            VacuumList::decode(b"file:///gone/array/__1_1_ab_3/\ns3://bucket/__2_2_cd").unwrap();
        assert_eq!(
            vacuum.names().collect::<Vec<_>>(),
            ["__1_1_ab_3", "__2_2_cd"]
        );
    }

    #[test]
    fn names_are_the_last_part_of_uris() {
        assert_eq!(last_component("C:\\data\\__1_1_ab"), "__1_1_ab");
        assert_eq!(last_component("__1_1_ab"), "__1_1_ab");
        assert_eq!(last_component(""), "");
    }
}
