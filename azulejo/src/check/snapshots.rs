//! Named snapshots: is what they show still there?

use super::report::{Fix, Report, Severity};
use crate::array::ArrayHandle;
use crate::consolidate::ArrayFolder;
use crate::error::{Error, Result};
use crate::snapshots;
use azulejo_format::timestamped_name::TimestampedName;
use std::collections::HashSet;

pub(super) fn check(array: &ArrayHandle, folder: &ArrayFolder, report: &mut Report) -> Result<()> {
    if !folder.has_sidecars() {
        return Ok(());
    }
    let location = &folder.location;
    let names = snapshots::folder_of(&location.path);
    let committed = folder.fragment_names()?;
    let present = folder.fragment_folders()?;
    let there: HashSet<&str> = committed
        .iter()
        .filter(|name| present.contains_key(*name))
        .map(String::as_str)
        .collect();
    for entry in location.storage.list(&names)? {
        if entry.is_dir || snapshots::check_name(&entry.name).is_err() {
            continue;
        }
        report.files += 1;
        let path = names.join(&entry.name);
        let snapshot = match snapshots::find(location, &entry.name) {
            Ok(Some(snapshot)) => snapshot,
            Ok(None) => continue,
            Err(error @ (Error::Corrupt { .. } | Error::Budget { .. })) => {
                report.broken(path, &error, "remove it, and make the snapshot anew");
                continue;
            }
            Err(error) => return Err(error),
        };
        let Some(shown) = snapshots::shown(location, &entry.name)? else {
            continue;
        };
        report.files += 1;
        let timed = match array.snapshot_to_write() {
            Ok(head) => {
                let schema = head.schema();
                !schema.is_dense() && schema.version.may_count_in_part()
            }
            // That is a finding of its own.
            Err(Error::Corrupt { .. } | Error::NotFound { .. }) => true,
            Err(error) => return Err(error),
        };
        let gone = Shown {
            names: &shown,
            at: snapshot.at,
            timed,
        }
        .gone(&there);
        if let Some(first) = gone.first() {
            let more = match gone.len() {
                1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            let what = format!(
                "the snapshot {:?} shows what is gone: {first}{more}",
                entry.name
            );
            let advice =
                "restore them from a backup, or remove the snapshot: it shows less than it should";
            report.add(Severity::Error, path, what, Fix::Advice(advice));
        }
    }
    Ok(())
}

/// What a snapshot showed when it was made.
struct Shown<'a> {
    names: &'a [String],
    at: u64,
    /// Whether cells keep their times, so that a consolidated fragment shows any moment.
    timed: bool,
}

impl<'a> Shown<'a> {
    /// The fragments that are neither there nor in another that shows the same at that time.
    fn gone(&self, there: &HashSet<&str>) -> Vec<&'a str> {
        let known: HashSet<&str> = self.names.iter().map(String::as_str).collect();
        let newer = there.iter().filter(|name| !known.contains(*name));
        let newer: Vec<TimestampedName> = newer
            .filter_map(|name| TimestampedName::parse(name).ok())
            .filter(|name| self.timed || name.t_end <= self.at)
            .collect();
        let is_gone = |name: &&str| {
            let Ok(parsed) = TimestampedName::parse(name) else {
                return false;
            };
            let seen = self.timed || parsed.t_end <= self.at;
            let replaced = newer
                .iter()
                .any(|by| by.t_start <= parsed.t_start && parsed.t_end <= by.t_end);
            seen && !there.contains(*name) && !replaced
        };
        let names = self.names.iter().map(String::as_str);
        names.filter(is_gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_consolidation_replaced_is_not_gone() {
        let name = |start: u64, end: u64, id: char| {
            format!("__{start}_{end}_{}_22", id.to_string().repeat(32))
        };
        let (a, b, later) = (name(1, 1, 'a'), name(2, 2, 'b'), name(5, 5, 'c'));
        let gone = |timed: bool, at: u64, there: &[&str]| {
            let names = [a.clone(), b.clone()];
            let shown = Shown {
                names: &names,
                at,
                timed,
            };
            let there = there.iter().copied().collect();
            shown.gone(&there).len()
        };
        assert_eq!(gone(false, 3, &[&a, &b, &later]), 0);
        assert_eq!(gone(false, 3, &[&a, &later]), 1);
        // Merged at a time that the snapshot sees, or does not.
        let (merged, wider) = (name(1, 2, 'd'), name(1, 5, 'e'));
        assert_eq!(gone(false, 3, &[&merged]), 0);
        assert_eq!(gone(false, 3, &[&wider]), 2);
        assert_eq!(gone(true, 3, &[&wider]), 0);
        // Another write of the same time replaces nothing that was there with it.
        assert_eq!(gone(true, 3, &[&b]), 1);
    }
}
