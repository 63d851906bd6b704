//! Attributes whose values were indices of other labels when a fragment was written.

use super::directory::sort_schemas;
use azulejo_format::ArraySchema;
use azulejo_format::timestamped_name::TimestampedName;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A schema and those of its attributes whose labels are others than those of the same names in the
/// schema that counts.
pub(crate) type Relabelled = (Arc<ArraySchema>, Arc<[String]>);

/// Of all of an array's schemas, by file name, those with attributes whose values are indices of other
/// labels than in the one called `now`.
///
/// An enumeration that is extended keeps its name from schema to schema. Where a schema in between
/// lacks it, it was dropped, and what came back under its name is another one: `red`, `green` and
/// `blue` are not `x`, `y` and `z`. An attribute that has labels in one of them only keeps its
/// values, which are then numbers there. Where what came back begins with all that was dropped,
/// which `extends` says of the files of two enumerations (the earlier one, then the later), a number
/// means what it meant, and the labels are no others. Of schemas of one moment only the last has ever counted for
/// sure: others in their order by name may be a drop that took no effect.
pub(crate) fn relabelled(
    all: &BTreeMap<String, Arc<ArraySchema>>,
    now: &str,
    extends: &mut dyn FnMut(&str, &str) -> bool,
) -> Vec<Relabelled> {
    let Some(latest) = all.get(now).filter(|_| all.len() > 1) else {
        return Vec::new();
    };
    let labels = latest.attributes.iter();
    let labels = labels.filter_map(|a| Some((a.name.as_str(), a.enumeration.as_deref()?)));
    let labels: HashMap<&str, &str> = labels.collect();
    if labels.is_empty() {
        return Vec::new();
    }
    let files = files(latest);
    let parsed = all
        .iter()
        .filter_map(|(file, schema)| Some((TimestampedName::parse(file).ok()?, file, schema)));
    let mut named: Vec<_> = parsed.collect();
    sort_schemas(&mut named, |(name, _, _)| name);
    let Some(place) = named.iter().position(|(_, file, _)| *file == now) else {
        return Vec::new();
    };
    let time = |at: usize| named.get(at).map(|(name, _, _)| name.t_end);
    let counted = |at: usize| time(at) != time(at + 1);
    let schemas = named.iter().enumerate();
    let schemas: Vec<_> = schemas
        .map(|(at, (_, _, schema))| (*schema, counted(at)))
        .collect();
    let (before, after) = schemas.split_at(place);
    let mut found = Vec::new();
    let mut look = |schemas: &mut dyn Iterator<Item = &(&Arc<ArraySchema>, bool)>, back: bool| {
        // Of an attribute and its enumeration, whether their numbers mean what they mean now, for as
        // long as every schema has the enumeration on the way from the one that counts.
        let mut continued: HashMap<(&str, &str), bool> =
            labels.iter().map(|(a, name)| ((*a, *name), true)).collect();
        for (schema, counted) in schemas {
            let theirs = self::files(schema);
            continued.retain(|(_, name), _| !counted || theirs.contains_key(name));
            let attributes = schema.attributes.iter().filter(|a| {
                let now = labels.get(a.name.as_str());
                let Some((now, name)) = now.copied().zip(a.enumeration.as_deref()) else {
                    return false;
                };
                let of_now = files.get(now).copied().unwrap_or_default();
                let of_then = theirs.get(name).copied().unwrap_or_default();
                if now == name && of_now == of_then {
                    return false;
                }
                // What came before in a row of labels begins them, what came after begins with them.
                let row = continued.entry((a.name.as_str(), name));
                !*row.or_insert_with(|| match back {
                    _ if of_then.is_empty() || of_now.is_empty() => false,
                    true => extends(of_then, of_now),
                    false => extends(of_now, of_then),
                })
            });
            let others: Arc<[String]> = attributes.map(|a| a.name.clone()).collect();
            if !others.is_empty() {
                found.push((Arc::clone(schema), others));
            }
        }
    };
    look(&mut before.iter().rev(), true);
    look(&mut after.iter().skip(1), false);
    found
}

/// The files of a schema's enumerations, by name.
fn files(schema: &ArraySchema) -> HashMap<&str, &str> {
    let enumerations = schema.enumerations.iter();
    enumerations
        .map(|e| (e.name.as_str(), e.file_name.as_str()))
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use azulejo_format::schema::{Attribute, EnumerationRef};
    use azulejo_format::{CellValNum, Datatype};

    /// Whether attributes of the schema of one file have other labels in that of another.
    fn have_other_labels(all: &BTreeMap<String, Arc<ArraySchema>>, then: &str, now: &str) -> bool {
        let mut others = relabelled(all, now, &mut |_, _| false).into_iter();
        others.any(|(schema, _)| Arc::ptr_eq(&schema, &all[then]))
    }

    fn schema(labels: &[(&str, &str)], attribute: Option<&str>) -> Arc<ArraySchema> {
        let mut a = Attribute::new("a", Datatype::Int8, CellValNum::ONE);
        a.enumeration = attribute.map(str::to_owned);
        let mut schema = ArraySchema::sparse()
            .dimension("d", 0i32..=9, 10)
            .attribute("b", Datatype::Int8)
            .build()
            .unwrap()
            .schema;
        schema.attributes.push(a);
        schema.enumerations = labels
            .iter()
            .map(|(name, file)| EnumerationRef {
                name: (*name).to_owned(),
                file_name: (*file).to_owned(),
            })
            .collect();
        Arc::new(schema)
    }

    #[test]
    fn labels_are_others_where_theirs_were_dropped() {
        let file = |time: u64| format!("__{time}_{time}_0123456789abcdef0123456789abcdef");
        let history = |schemas: Vec<Arc<ArraySchema>>| -> bool {
            let last = file(schemas.len() as u64);
            let all: BTreeMap<_, _> = (1u64..).map(file).zip(schemas).collect();
            assert!(!have_other_labels(&all, &last, &last));
            let others = have_other_labels(&all, &file(1), &last);
            assert_eq!(have_other_labels(&all, &last, &file(1)), others);
            let found = relabelled(&all, &last, &mut |_, _| false);
            assert!(found.iter().all(|(_, names)| **names == ["a".to_owned()]));
            others
        };
        let e = |file| schema(&[("e", file)], Some("e"));
        let none = || schema(&[], None);
        // Extended.
        assert!(!history(vec![e("1"), e("2"), e("3")]));
        // Dropped and added again, under its name and under another.
        assert!(history(vec![e("1"), none(), e("2")]));
        assert!(history(vec![e("1"), none(), e("2"), e("3")]));
        let other = || schema(&[("f", "2")], Some("f"));
        assert!(history(vec![e("1"), none(), other()]));
        // Added again so that they begin with those that were dropped.
        let all: BTreeMap<_, _> = (1u64..)
            .map(file)
            .zip([e("1"), e("2"), none(), e("3")])
            .collect();
        let mut asked = Vec::new();
        let mut extends = |then: &str, now: &str| {
            asked.push((then.to_owned(), now.to_owned()));
            true
        };
        assert!(relabelled(&all, &file(4), &mut extends).is_empty());
        assert!(relabelled(&all, &file(1), &mut extends).is_empty());
        let pair = |then: &str, now: &str| (then.to_owned(), now.to_owned());
        assert_eq!(asked, [pair("2", "3"), pair("1", "3")]);
        // Labels that came to numbers, or were taken from them.
        assert!(!history(vec![none(), e("1")]));
        assert!(!history(vec![e("1"), none()]));
        // Dropped and extended in one moment: which came last, names tell, and it is the extension.
        let of = |time: u64, id: char| format!("__{time}_{time}_{}", id.to_string().repeat(32));
        let files = [of(1, '0'), of(2, '0'), of(2, '1'), of(3, '0')];
        let schemas = [e("1"), none(), e("2"), e("3")];
        let all: BTreeMap<_, _> = files.iter().cloned().zip(schemas).collect();
        for (then, now) in [(0, 2), (0, 3), (2, 3), (3, 0)] {
            assert!(!have_other_labels(&all, &files[then], &files[now]));
        }
        // The attribute was dropped, and not its labels.
        let kept = schema(&[("e", "1")], None);
        assert!(!history(vec![e("1"), kept, e("1")]));
    }
}
