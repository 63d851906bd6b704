//! The names of a fragment's files.
//!
//! Page: *Fragment, Data file*.

use super::Field;
use crate::path::FRAGMENT_METADATA_FILE;
use crate::schema::ArraySchema;
use crate::version::FormatVersion;
use std::borrow::Cow;
use std::collections::HashSet;

/// How data files are named after fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileNaming {
    /// By the field's name (below v8).
    Name,
    /// By the field's name, special characters escaped (v8).
    PercentEncoded,
    /// By the field's place in the schema (since v9).
    Index,
}

impl FileNaming {
    /// How fragments of `version` name their files.
    #[must_use]
    pub const fn of(version: FormatVersion) -> Self {
        if version.names_files_by_index() {
            Self::Index
        } else if version.percent_encodes_file_names() {
            Self::PercentEncoded
        } else {
            Self::Name
        }
    }
}

/// Which of a field's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FilePart {
    /// The cells of a fixed-size field, the offsets of a var-length one.
    Data,
    /// The values of a var-length field.
    Var,
    /// The validity bytes of a nullable field.
    Validity,
}

/// The file that holds `part` of `field` in a fragment of `version`; `None` if the schema has no
/// such field, or one whose name leads out of the fragment's folder.
#[must_use]
pub fn data_file_name(
    field: Field,
    part: FilePart,
    schema: &ArraySchema,
    version: FormatVersion,
) -> Option<String> {
    let stem = match field {
        Field::ZippedCoords => Cow::Borrowed("__coords"),
        Field::Timestamps => Cow::Borrowed("t"),
        Field::DeleteTimestamps => Cow::Borrowed("dt"),
        Field::DeleteConditions => Cow::Borrowed("dci"),
        Field::Attribute(i) => stem(&schema.attributes.get(i)?.name, 'a', i, version)?,
        Field::Dimension(i) => stem(&schema.domain.dimensions.get(i)?.name, 'd', i, version)?,
    };
    let suffix = match part {
        FilePart::Data => "",
        FilePart::Var => "_var",
        FilePart::Validity => "_validity",
    };
    Some(format!("{stem}{suffix}.tdb"))
}

/// A name that two files of a fragment of `version` would have: where files are named after fields
/// (below v9), `a_var` is the attribute of that name and the texts of `a`.
#[must_use]
pub fn shared_file_name(schema: &ArraySchema, version: FormatVersion) -> Option<String> {
    if FileNaming::of(version) == FileNaming::Index {
        return None;
    }
    let attributes = schema.attributes.iter().enumerate();
    let attributes = attributes.map(|(i, a)| (Field::Attribute(i), a.is_var(), a.nullable));
    let dimensions = schema.domain.dimensions.iter().enumerate();
    let dimensions = dimensions
        .filter(|_| !schema.is_dense())
        .map(|(i, d)| (Field::Dimension(i), d.is_var(), false));
    let mut names = HashSet::from([FRAGMENT_METADATA_FILE.to_owned()]);
    for (field, is_var, nullable) in attributes.chain(dimensions) {
        let parts = [
            (FilePart::Data, true),
            (FilePart::Var, is_var),
            (FilePart::Validity, nullable),
        ];
        for (part, _) in parts.into_iter().filter(|(_, has)| *has) {
            let Some(name) = data_file_name(field, part, schema, version) else {
                continue;
            };
            if !names.insert(name.clone()) {
                return Some(name);
            }
        }
    }
    None
}

/// `None` for a name that leads out of the fragment's folder, to which it is joined.
fn stem(name: &str, letter: char, index: usize, version: FormatVersion) -> Option<Cow<'_, str>> {
    Some(match FileNaming::of(version) {
        FileNaming::Name if name.split(['/', '\\']).any(|part| part == "..") => return None,
        FileNaming::Name => Cow::Borrowed(name),
        FileNaming::PercentEncoded => percent_encode(name),
        FileNaming::Index => Cow::Owned(format!("{letter}{index}")),
    })
}

fn percent_encode(name: &str) -> Cow<'_, str> {
    /// The last four are not what the standard says: this is what v8 writers wrote and readers look
    /// for.
    const CODES: [(char, &str); 24] = [
        ('!', "%21"),
        ('#', "%23"),
        ('$', "%24"),
        ('%', "%25"),
        ('&', "%26"),
        ('\'', "%27"),
        ('(', "%28"),
        (')', "%29"),
        ('*', "%2A"),
        ('+', "%2B"),
        (',', "%2C"),
        ('/', "%2F"),
        (':', "%3A"),
        (';', "%3B"),
        ('=', "%3D"),
        ('?', "%3F"),
        ('@', "%40"),
        ('[', "%5B"),
        (']', "%5D"),
        ('"', "%22"),
        ('<', "%20"),
        ('>', "%2D"),
        ('\\', "%30"),
        ('|', "%3C"),
    ];
    let code = |c: char| {
        CODES
            .iter()
            .find(|(special, _)| *special == c)
            .map(|(_, code)| *code)
    };
    if !name.contains(|c| code(c).is_some()) {
        return Cow::Borrowed(name);
    }
    let mut encoded = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        match code(c) {
            Some(code) => encoded.push_str(code),
            None => encoded.push(c),
        }
    }
    Cow::Owned(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Datatype;
    use crate::fragment::sample::schema;

    fn names(version: u32, attribute: &str) -> [Option<String>; 3] {
        let version = FormatVersion::new(version, "test").unwrap();
        let mut schema = schema(version, &[Datatype::Int32, Datatype::StringAscii]);
        schema.attributes[1].name = attribute.into();
        schema.domain.dimensions[1].name = "x/y".into();
        let name = |field, part| data_file_name(field, part, &schema, version);
        [
            name(Field::Attribute(1), FilePart::Var),
            name(Field::Dimension(1), FilePart::Data),
            name(Field::Attribute(3), FilePart::Data),
        ]
    }

    #[test]
    fn files_are_named_after_fields_or_their_index() {
        let all = |a: &str, b: &str| [Some(a.to_string()), Some(b.to_string()), None];
        assert_eq!(names(7, "a b"), all("a b_var.tdb", "x/y.tdb"));
        assert_eq!(names(8, "a <b>"), all("a %20b%2D_var.tdb", "x%2Fy.tdb"));
        assert_eq!(names(9, "a b"), all("a1_var.tdb", "d1.tdb"));
        assert_eq!(names(22, "a b"), all("a1_var.tdb", "d1.tdb"));
        for outside in ["../../evil", "..", "a/../b", "..\\evil"] {
            assert_eq!(names(7, outside)[0], None, "{outside}");
        }
        assert_eq!(names(1, ""), all("_var.tdb", "x/y.tdb"));
    }

    #[test]
    fn files_named_after_fields_do_not_meet() {
        let shared = |version: u32, dense: bool, names: [&str; 3]| {
            let version = FormatVersion::new(version, "test").unwrap();
            let mut schema = schema(version, &[Datatype::Int32, Datatype::StringAscii]);
            if dense {
                schema.array_type = crate::schema::ArrayType::Dense;
            }
            // One of fixed length, one of texts, and a dimension of texts.
            schema.attributes.truncate(2);
            names[0].clone_into(&mut schema.attributes[0].name);
            names[1].clone_into(&mut schema.attributes[1].name);
            names[2].clone_into(&mut schema.domain.dimensions[1].name);
            shared_file_name(&schema, version)
        };
        for version in [7, 8] {
            let found = shared(version, false, ["a_var", "a", "d"]);
            assert_eq!(found.as_deref(), Some("a_var.tdb"));
            let found = shared(version, false, ["d_var", "a", "d"]);
            assert_eq!(found.as_deref(), Some("d_var.tdb"));
            let found = shared(version, false, ["a", "b", "__fragment_metadata"]);
            assert_eq!(found.as_deref(), Some("__fragment_metadata.tdb"));
            // Dense fragments store no coordinates.
            assert_eq!(shared(version, true, ["d_var", "a", "d"]), None);
            assert_eq!(shared(version, false, ["a", "a_val", "d"]), None);
        }
        assert_eq!(shared(9, false, ["a_var", "a", "d"]), None);
    }

    #[test]
    fn special_fields_have_fixed_names() {
        let version = FormatVersion::CURRENT;
        let schema = schema(version, &[Datatype::Int32]);
        let names = [
            (Field::ZippedCoords, "__coords.tdb"),
            (Field::Timestamps, "t.tdb"),
            (Field::DeleteTimestamps, "dt.tdb"),
            (Field::DeleteConditions, "dci.tdb"),
        ];
        for (field, name) in names {
            assert_eq!(
                data_file_name(field, FilePart::Data, &schema, version).as_deref(),
                Some(name)
            );
        }
        let validity = data_file_name(Field::Attribute(2), FilePart::Validity, &schema, version);
        assert_eq!(validity.as_deref(), Some("a2_validity.tdb"));
    }
}
