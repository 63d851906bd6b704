//! Attributes whose values were indices of other labels when a fragment was written.

use super::directory::sort_schemas;
use azulejo_format::ArraySchema;
use azulejo_format::timestamped_name::TimestampedName;
use std::collections::{BTreeMap, HashMap, HashSet};
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
/// values, which are then numbers there. Of schemas of one moment only the last has ever counted for
/// sure: others in their order by name may be a drop that took no effect.
pub(crate) fn relabelled(all: &BTreeMap<String, Arc<ArraySchema>>, now: &str) -> Vec<Relabelled> {
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
    let mut look = |schemas: &mut dyn Iterator<Item = &(&Arc<ArraySchema>, bool)>| {
        // What every schema has between the one that counts and the one that is looked at.
        let mut continued: HashSet<&str> = files.keys().copied().collect();
        for (schema, counted) in schemas {
            let theirs = self::files(schema);
            continued.retain(|name| !counted || theirs.contains_key(name));
            let is_other = |attribute: &str, name: &str| match labels.get(attribute) {
                Some(now) => {
                    *now != name || files.get(name) != theirs.get(name) && !continued.contains(name)
                }
                None => false,
            };
            let attributes = schema.attributes.iter().filter(|a| {
                let labels = a.enumeration.as_deref();
                labels.is_some_and(|name| is_other(&a.name, name))
            });
            let others: Arc<[String]> = attributes.map(|a| a.name.clone()).collect();
            if !others.is_empty() {
                found.push((Arc::clone(schema), others));
            }
        }
    };
    look(&mut before.iter().rev());
    look(&mut after.iter().skip(1));
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
        let mut others = relabelled(all, now).into_iter();
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
            let found = relabelled(&all, &last);
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
