//! The names of a fragment's files.
//!
//! Page: *Fragment, Data file*.

use super::Field;
use crate::schema::ArraySchema;
use crate::version::FormatVersion;
use std::borrow::Cow;

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

/// The file that holds `part` of `field` in a fragment of `version`; `None` if the schema has no such field.
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
        Field::Attribute(i) => stem(&schema.attributes.get(i)?.name, 'a', i, version),
        Field::Dimension(i) => stem(&schema.domain.dimensions.get(i)?.name, 'd', i, version),
    };
    let suffix = match part {
        FilePart::Data => "",
        FilePart::Var => "_var",
        FilePart::Validity => "_validity",
    };
    Some(format!("{stem}{suffix}.tdb"))
}

fn stem(name: &str, letter: char, index: usize, version: FormatVersion) -> Cow<'_, str> {
    match FileNaming::of(version) {
        FileNaming::Name => Cow::Borrowed(name),
        FileNaming::PercentEncoded => percent_encode(name),
        FileNaming::Index => Cow::Owned(format!("{letter}{index}")),
    }
}

fn percent_encode(name: &str) -> Cow<'_, str> {
    /// The last four are not what the standard says: this is what v8 writers wrote and readers look for.
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
    let code = |c: char| CODES.iter().find(|(special, _)| *special == c).map(|(_, code)| *code);
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
