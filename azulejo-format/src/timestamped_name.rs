//! Names that carry the time of a write: fragments, commits, schemas, metadata and group details.
//!
//! | written by | name |
//! |---|---|
//! | v1, v2 | `__uuid_t1[_t2]` |
//! | v3, v4; schemas, enumerations and metadata of all versions | `__t1_t2_uuid` |
//! | v5 and later; group details | `__t1_t2_uuid_version` |
//!
//! Times are milliseconds since 1970-01-01 UTC. Page: *Timestamped Name*.

use crate::error::{DecodeError, Result};
use std::cmp::Ordering;
use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering as Memory};

/// In which order a name gives its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameStyle {
    /// `__uuid_t1[_t2]`, v1 and v2. The first of two times is kept to print it; readers go by the
    /// last one.
    UuidFirst {
        /// `t1`, where the name gives two times.
        first: Option<u64>,
    },
    /// `__t1_t2_uuid`: v3, v4, and names without a version.
    TimesFirst,
    /// `__t1_t2_uuid_version`, v5 and later.
    Versioned,
}

/// A parsed name, without its suffix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TimestampedName {
    /// Milliseconds of the earliest write in it (below v3: of the last one).
    pub t_start: u64,
    /// Milliseconds of the last write in it; never before `t_start`.
    pub t_end: u64,
    /// What makes the name unique: 32 hexadecimal digits from every known writer.
    pub uuid: String,
    /// The version at the end of the name.
    pub version: Option<u32>,
    /// The order of the parts.
    pub style: NameStyle,
}

const WHAT: &str = "timestamped name";

impl TimestampedName {
    /// A new name with a version, as fragments, commits and group details have it.
    #[must_use]
    pub fn versioned(t_start: u64, t_end: u64, version: u32) -> Self {
        let style = NameStyle::Versioned;
        Self {
            t_start,
            t_end: t_end.max(t_start),
            uuid: new_uuid(),
            version: Some(version),
            style,
        }
    }

    /// A new name without a version, as schemas and metadata have it.
    #[must_use]
    pub fn unversioned(t_start: u64, t_end: u64) -> Self {
        let style = NameStyle::TimesFirst;
        Self {
            t_start,
            t_end: t_end.max(t_start),
            uuid: new_uuid(),
            version: None,
            style,
        }
    }

    /// Parses a file or folder name whose suffix (`.ok`, `.wrt`, ..) was taken off.
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] for a name of no known form, or one that ends before it starts.
    pub fn parse(name: &str) -> Result<Self> {
        let bad =
            |reason: &str| DecodeError::invalid(WHAT, 0, format!("{reason}: {:?}", shorten(name)));
        let body = name
            .strip_prefix("__")
            .ok_or_else(|| bad("it does not begin with __"))?;
        let mut parts = [""; 4];
        let mut count = 0;
        for part in body.split('_') {
            let slot = parts
                .get_mut(count)
                .ok_or_else(|| bad("it has too many parts"))?;
            *slot = part;
            count += 1;
        }
        let time =
            |text: &str| decimal(text).ok_or_else(|| bad("it has no timestamp where one belongs"));
        let [a, b, c, d] = parts;
        let (t_start, t_end, uuid, version, style) = match count {
            2 => {
                let t = time(b)?;
                (t, t, a, None, NameStyle::UuidFirst { first: None })
            }
            // Only the length tells `__uuid_t1_t2` from `__t1_t2_uuid`: a uuid can be all digits.
            3 if c.len() != UUID_LEN && decimal(c).is_some() => {
                let t = time(c)?;
                (
                    t,
                    t,
                    a,
                    None,
                    NameStyle::UuidFirst {
                        first: Some(time(b)?),
                    },
                )
            }
            3 => (time(a)?, time(b)?, c, None, NameStyle::TimesFirst),
            4 => {
                let version = decimal(d)
                    .and_then(|v| u32::try_from(v).ok())
                    .ok_or_else(|| bad("bad version"))?;
                (time(a)?, time(b)?, c, Some(version), NameStyle::Versioned)
            }
            _ => return Err(bad("it has too few parts")),
        };
        if uuid.is_empty() {
            return Err(bad("it has an empty part"));
        }
        // It is joined to folders: one with more than a name would lead elsewhere.
        if uuid.contains(['/', '\\']) {
            return Err(bad("it is a path"));
        }
        if t_start > t_end {
            return Err(bad("it ends before it starts"));
        }
        Ok(Self {
            t_start,
            t_end,
            uuid: uuid.to_owned(),
            version,
            style,
        })
    }

    /// Orders names by time: start, then end, then the text of the name, so that two writes with
    /// one timestamp have one order everywhere.
    #[must_use]
    pub fn cmp_by_time(&self, other: &Self) -> Ordering {
        (self.t_start, self.t_end, &self.uuid, self.version).cmp(&(
            other.t_start,
            other.t_end,
            &other.uuid,
            other.version,
        ))
    }
}

impl fmt::Display for TimestampedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            t_start,
            t_end,
            uuid,
            ..
        } = self;
        match (self.style, self.version) {
            (NameStyle::UuidFirst { first: None }, _) => write!(f, "__{uuid}_{t_end}"),
            (NameStyle::UuidFirst { first: Some(first) }, _) => {
                write!(f, "__{uuid}_{first}_{t_end}")
            }
            (NameStyle::TimesFirst, _) | (NameStyle::Versioned, None) => {
                write!(f, "__{t_start}_{t_end}_{uuid}")
            }
            (NameStyle::Versioned, Some(version)) => {
                write!(f, "__{t_start}_{t_end}_{uuid}_{version}")
            }
        }
    }
}

impl std::str::FromStr for TimestampedName {
    type Err = DecodeError;

    fn from_str(name: &str) -> Result<Self> {
        Self::parse(name)
    }
}

const UUID_LEN: usize = 32;

/// Digits only: `u64::from_str` would take a plus sign.
/// A number as names have it: with more zeros in front it would print as another name.
fn decimal(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (is_number && (text == "0" || !text.starts_with('0')))
        .then(|| text.parse().ok())
        .flatten()
}

/// The front of a name, for an error message.
fn shorten(name: &str) -> String {
    name.chars().take(100).collect()
}

/// 32 hexadecimal digits: 8 of a counter that starts at random, then 24 at random. Within a process
/// later ones sort after earlier ones, so that the later of two writes with one timestamp wins.
pub(crate) fn new_uuid() -> String {
    static COUNTER: LazyLock<AtomicU32> =
        LazyLock::new(|| AtomicU32::new(uuid::Uuid::new_v4().as_fields().0 & 0x3fff_ffff));
    let count = COUNTER.fetch_add(1, Memory::Relaxed);
    let mut text = uuid::Uuid::new_v4().simple().to_string();
    text.replace_range(..8, &format!("{count:08x}"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn names_of_all_ages_print_as_they_were_parsed() {
        let cases = [
            (
                format!("__{ID}_1561492235844"),
                1_561_492_235_844,
                1_561_492_235_844,
                None,
            ),
            (format!("__{ID}_10_20"), 20, 20, None),
            (format!("__1_2_{ID}"), 1, 2, None),
            (
                "__1_2_01234567890123456789012345678901".to_owned(),
                1,
                2,
                None,
            ),
            ("__1_2_short".to_owned(), 1, 2, None),
            ("__1_2_0123".to_owned(), 1, 2, None),
            (format!("__0_0_{ID}_22"), 0, 0, Some(22)),
            (
                format!("__1_18446744073709551615_{ID}_22"),
                1,
                u64::MAX,
                Some(22),
            ),
        ];
        for (name, t_start, t_end, version) in cases {
            let parsed = TimestampedName::parse(&name).unwrap();
            assert_eq!(
                (parsed.t_start, parsed.t_end, parsed.version),
                (t_start, t_end, version),
                "{name}"
            );
            assert_eq!(parsed.to_string(), name);
        }
    }

    #[test]
    fn other_names_are_refused() {
        let long = "_9".repeat(1000);
        for name in [
            "",
            "_",
            "__",
            "___",
            "____",
            "_____",
            "______",
            "a",
            "__a",
            "__a_b",
            "__1_2_/x_22",
            "__1_2_../../x",
            "__../x_1",
            "__1_2_3_4_5",
            "__2_1_x_5",
            "__1_2__5",
            "__1_2_x_",
            "__1_2_x_y",
            "__+1_2_x_5",
            "__-1_2_x_5",
            "__1_2_x_4294967296",
            "__01_2_x_22",
            "__1_2_x_022",
            "__18446744073709551616_2_x_5",
            "__x_1_2_5",
            "__é_ß",
            "__array_schema",
            "__fragment_meta",
            "__1_",
            &long,
        ] {
            assert!(TimestampedName::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn new_names_parse_and_the_later_sorts_last() {
        let mut last = TimestampedName::versioned(5, 5, 22);
        for _ in 0..100 {
            let next = TimestampedName::versioned(5, 5, 22);
            assert_eq!(TimestampedName::parse(&next.to_string()).unwrap(), next);
            assert_eq!(last.cmp_by_time(&next), Ordering::Less);
            last = next;
        }
        let schema = TimestampedName::unversioned(7, 3);
        assert_eq!(
            (schema.t_start, schema.t_end, schema.uuid.len()),
            (7, 7, 32)
        );
        assert_eq!(
            schema.to_string().parse::<TimestampedName>().unwrap(),
            schema
        );
    }
}
