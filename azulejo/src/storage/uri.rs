//! URIs and the paths that they name.

use crate::error::{Error, Result};
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// Which kind of storage a path belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Scheme {
    File,
    Memory,
    Object(ObjectScheme),
    /// One that a program has given to a storage of its own.
    Custom(Arc<str>),
}

/// Which service an object's URI names. `s3a`, `gcs` and `az` are other names of `s3`, `gs` and
/// `azure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ObjectScheme {
    /// `s3://bucket/..`: Amazon S3 and what speaks its protocol.
    S3,
    /// `gs://bucket/..`: Google Cloud Storage.
    Gcs,
    /// `azure://container/..`: Azure Blob Storage; the account comes from the settings.
    Azure,
    /// `abfss://container@account.dfs.core.windows.net/..`: Azure, with the account.
    Abfs,
    /// `http://host/..`: files of a web server, to read.
    Http,
    /// `https://host/..`: files of a web server, to read.
    Https,
}

impl ObjectScheme {
    fn parse(scheme: &str) -> Option<Self> {
        Some(match scheme {
            "s3" | "s3a" => Self::S3,
            "gs" | "gcs" => Self::Gcs,
            "azure" | "az" => Self::Azure,
            "abfs" | "abfss" => Self::Abfs,
            "http" => Self::Http,
            "https" => Self::Https,
            _ => return None,
        })
    }

    /// The scheme as URIs print it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gs",
            Self::Azure => "azure",
            Self::Abfs => "abfss",
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Whether `%XX` in a URI stands for a byte: bucket services take names as they are typed, web
    /// servers do not.
    fn is_escaped(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }
}

/// An object or folder in a storage: absolute, `/` between components, none at the end. Cheap to
/// clone.
///
/// Prints as a URI that [`Uri::parse`] reads back.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorePath {
    scheme: Scheme,
    path: Arc<str>,
}

impl StorePath {
    /// A path of local files. Components are separated by `/`; on Windows it begins with a drive
    /// (`C:/..`) or `//host`.
    #[must_use]
    pub fn local(path: &str) -> Self {
        Self {
            scheme: Scheme::File,
            path: tidy(path, true).into(),
        }
    }

    /// A path in a [`MemoryStorage`](super::MemoryStorage).
    #[must_use]
    pub fn memory(path: &str) -> Self {
        Self {
            scheme: Scheme::Memory,
            path: tidy(path, false).into(),
        }
    }

    /// An object or folder in a bucket, a container or on a web server: `authority` is its name,
    /// `key` the path in it.
    #[must_use]
    pub fn object(scheme: ObjectScheme, authority: &str, key: &str) -> Self {
        let root = Self {
            scheme: Scheme::Object(scheme),
            path: authority.into(),
        };
        root.join(&tidy(key, false))
    }

    /// The service, the bucket (container, host) and the path in it; `None` for files and memory.
    #[must_use]
    pub fn object_parts(&self) -> Option<(ObjectScheme, &str, &str)> {
        let Scheme::Object(scheme) = self.scheme else {
            return None;
        };
        let (authority, key) = self.path.split_once('/').unwrap_or((&self.path, ""));
        Some((scheme, authority, key))
    }

    /// A path in a storage that a program has given a scheme, with
    /// [`Context::with_scheme`](crate::Context::with_scheme).
    #[must_use]
    pub fn custom(scheme: &str, path: &str) -> Self {
        Self {
            scheme: Scheme::Custom(scheme.to_ascii_lowercase().into()),
            path: tidy(path, false).into(),
        }
    }

    /// The scheme as URIs print it.
    #[must_use]
    pub fn scheme(&self) -> &str {
        match &self.scheme {
            Scheme::File => "file",
            Scheme::Memory => "mem",
            Scheme::Object(scheme) => scheme.as_str(),
            Scheme::Custom(scheme) => scheme,
        }
    }

    /// The scheme that a program has given to a storage of its own; `None` for all others.
    #[must_use]
    pub fn custom_scheme(&self) -> Option<&str> {
        match &self.scheme {
            Scheme::Custom(scheme) => Some(scheme),
            _ => None,
        }
    }

    /// The path of a child: `name` is one component or several with `/` between them.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        let name = name.trim_matches('/');
        let mut path = String::with_capacity(self.path.len() + 1 + name.len());
        path.push_str(&self.path);
        if !name.is_empty() {
            if !path.is_empty() && !path.ends_with('/') {
                path.push('/');
            }
            path.push_str(name);
        }
        Self {
            scheme: self.scheme.clone(),
            path: path.into(),
        }
    }

    /// The folder that holds it; `None` for a root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let (parent, name) = match self.path.rsplit_once('/') {
            Some(split) => split,
            None if self.is_below_root() => ("", &*self.path),
            None => return None,
        };
        if name.is_empty() {
            return None;
        }
        let parent = if parent.is_empty() && self.scheme == Scheme::File {
            "/"
        } else {
            parent
        };
        Some(Self {
            scheme: self.scheme.clone(),
            path: parent.into(),
        })
    }

    /// Whether it is a component of a storage whose root has no name.
    fn is_below_root(&self) -> bool {
        matches!(self.scheme, Scheme::Memory | Scheme::Custom(_)) && !self.path.is_empty()
    }

    /// The last component; empty for a root.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path
            .rsplit_once('/')
            .map_or(&*self.path, |(_, name)| name)
    }

    /// The path as text, without a scheme and not escaped.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.path
    }

    /// This path relative to `base`; `None` if it does not lie below it. Empty if both are the
    /// same.
    #[must_use]
    pub fn relative_to(&self, base: &Self) -> Option<&str> {
        if self.scheme != base.scheme {
            return None;
        }
        let rest = self.path.strip_prefix(&*base.path)?;
        match rest.strip_prefix('/') {
            Some(rest) => Some(rest),
            None if rest.is_empty() || base.path.is_empty() || base.path.ends_with('/') => {
                Some(rest)
            }
            None => None,
        }
    }

    /// The same path without the steps up (`..`) in it, by names alone: a text by which folders are
    /// told apart that circles of groups lead to. Where a link is one of the names it may be another
    /// folder than the file system finds.
    #[must_use]
    pub fn without_steps(&self) -> Self {
        let names = self.path.trim_start_matches('/');
        let root = self.path.strip_suffix(names).unwrap_or_default();
        let mut parts: Vec<&str> = Vec::new();
        for part in names.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        Self {
            scheme: self.scheme.clone(),
            path: (root.to_owned() + &parts.join("/")).into(),
        }
    }

    /// The path for the operating system, borrowed.
    #[must_use]
    pub fn as_native(&self) -> &Path {
        Path::new(&*self.path)
    }

    /// The path for the operating system.
    #[must_use]
    pub fn to_native(&self) -> PathBuf {
        PathBuf::from(&*self.path)
    }
}

impl fmt::Display for StorePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scheme {
            // A Windows drive needs a third slash, a host on the network (`//host`) brings its own
            // two.
            Scheme::File if self.path.starts_with("//") => write!(f, "file:{}", self.path),
            Scheme::File if self.path.starts_with('/') => write!(f, "file://{}", self.path),
            Scheme::File => write!(f, "file:///{}", self.path),
            Scheme::Memory => write!(f, "mem://{}", self.path),
            Scheme::Object(scheme) if scheme.is_escaped() => {
                write!(f, "{}://{}", scheme.as_str(), Escaped(&self.path))
            }
            Scheme::Object(scheme) => write!(f, "{}://{}", scheme.as_str(), self.path),
            Scheme::Custom(scheme) => write!(f, "{scheme}://{}", self.path),
        }
    }
}

impl fmt::Debug for StorePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A parsed URI.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Uri {
    /// Local files: a plain path or `file://`.
    Local(StorePath),
    /// Objects in memory: `mem://`.
    Memory(StorePath),
    /// Objects of a service: `s3://`, `gs://`, `azure://`, `abfss://`, `http://`, `https://`.
    Object(StorePath),
    /// Objects of a storage that a program has given a scheme.
    Custom(StorePath),
}

impl Uri {
    /// Parses a URI or a path. Relative paths are taken from the current directory, those that begin
    /// with `~/` from the [home folder](with_home).
    ///
    /// What follows `file://` is a path as it is, as TileDB stores it in groups and commits: `%20`
    /// is three characters. So are names in buckets. In a URI of a web server `%XX` stands for that
    /// byte, and what is no such escape stays as it is. Whether an unknown scheme has a storage is
    /// known only to a [`Context`](crate::Context).
    ///
    /// # Errors
    /// [`Error::Unsupported`] for services that are known and not supported,
    /// [`Error::InvalidArgument`] for an empty text or a bad URI.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Err(Error::InvalidArgument(
                "an empty URI: give a path, file:// or mem://".into(),
            ));
        }
        if text.contains('\0') {
            return Err(Error::InvalidArgument(format!(
                "{text:?}: a URI cannot contain a zero byte"
            )));
        }
        let Some((scheme, rest)) = split_scheme(text) else {
            return local(&with_home(text), text);
        };
        match scheme.to_ascii_lowercase().as_str() {
            "file" => {
                let rest = rest
                    .strip_prefix("localhost")
                    .filter(|path| path.starts_with('/'))
                    .unwrap_or(rest);
                if rest.is_empty() {
                    return Err(Error::InvalidArgument(format!(
                        "{text}: the path is missing"
                    )));
                }
                if cfg!(unix) && !rest.starts_with('/') {
                    return Err(Error::InvalidArgument(format!(
                        "{text}: file:// is followed by a path that begins with / (file:///a/b); files of other hosts are not reached"
                    )));
                }
                local(without_drive_slash(rest), text)
            }
            "mem" => Ok(Self::Memory(StorePath::memory(rest))),
            "tiledb" => Err(Error::Unsupported(format!(
                "{text}: tiledb:// is TileDB Cloud's service, which is not supported; use the array's own location"
            ))),
            "hdfs" => Err(Error::Unsupported(format!("{text}: HDFS is not supported"))),
            lower => match ObjectScheme::parse(lower) {
                Some(scheme) => object(scheme, rest, text),
                None => Ok(Self::Custom(StorePath::custom(scheme, rest))),
            },
        }
    }

    /// The path that it names.
    #[must_use]
    pub fn path(&self) -> &StorePath {
        match self {
            Self::Local(path) | Self::Memory(path) | Self::Object(path) | Self::Custom(path) => {
                path
            }
        }
    }

    /// The URI of a path.
    #[must_use]
    pub fn from_path(path: StorePath) -> Self {
        match &path.scheme {
            Scheme::File => Self::Local(path),
            Scheme::Memory => Self::Memory(path),
            Scheme::Object(_) => Self::Object(path),
            Scheme::Custom(_) => Self::Custom(path),
        }
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().fmt(f)
    }
}

impl FromStr for Uri {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

/// A path whose `~/` at the beginning is the home folder (`HOME`), where there is one: so libtiledb
/// takes paths that no shell has seen. `./~/a` lies in a folder that is called so.
#[must_use]
pub fn with_home(path: &str) -> Cow<'_, str> {
    let below = path
        .strip_prefix('~')
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let home = || std::env::var("HOME").ok().filter(|home| !home.is_empty());
    match below {
        Some(below) if cfg!(unix) => {
            home().map_or(Cow::Borrowed(path), |home| Cow::Owned(home + below))
        }
        _ => Cow::Borrowed(path),
    }
}

fn local(path: &str, text: &str) -> Result<Uri> {
    let absolute = std::path::absolute(path).map_err(|source| Error::Storage {
        op: "resolve",
        uri: text.to_owned(),
        source,
    })?;
    let Some(absolute) = absolute.to_str() else {
        return Err(Error::InvalidArgument(format!(
            "{text}: the current directory's name is not UTF-8"
        )));
    };
    let absolute = if cfg!(windows) {
        absolute.replace('\\', "/")
    } else {
        // Two slashes are one here: they name no host, and a URI with them would be read as another
        // path.
        format!("/{}", absolute.trim_start_matches('/'))
    };
    Ok(Uri::Local(StorePath::local(&absolute)))
}

fn object(scheme: ObjectScheme, rest: &str, text: &str) -> Result<Uri> {
    let invalid = |what: &str| Err(Error::InvalidArgument(format!("{text}: {what}")));
    let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
    if authority.is_empty() {
        return invalid(match scheme {
            ObjectScheme::Http | ObjectScheme::Https => "the host is missing",
            ObjectScheme::Azure | ObjectScheme::Abfs => "the container is missing",
            ObjectScheme::S3 | ObjectScheme::Gcs => "the bucket is missing",
        });
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:[]@$".contains(c);
    if !authority.chars().all(allowed) {
        return invalid("this is no name of a bucket, container or host");
    }
    if authority.contains('@') && scheme != ObjectScheme::Abfs {
        // The text may hold a password, so it is not repeated.
        return Err(Error::InvalidArgument(format!(
            "a {}:// URI with a user name: credentials are settings, not parts of URIs",
            scheme.as_str()
        )));
    }
    if !scheme.is_escaped() {
        return Ok(Uri::Object(StorePath::object(scheme, authority, key)));
    }
    if key.contains(['?', '#']) {
        return Err(Error::InvalidArgument(format!(
            "{}: a URI of an array has no query and no fragment",
            text.split(['?', '#']).next().unwrap_or_default()
        )));
    }
    match unescape(key) {
        Some(key) if !key.contains('\0') => {
            Ok(Uri::Object(StorePath::object(scheme, authority, &key)))
        }
        _ => invalid("its escapes are not UTF-8"),
    }
}

/// `scheme://rest`, with a scheme of at least two letters (one is a Windows drive).
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let named = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    named.then_some((scheme, rest))
}

/// `/C:/x`, the path of `file:///C:/x`, is `C:/x` on Windows.
fn without_drive_slash(path: &str) -> &str {
    match path.strip_prefix('/') {
        Some(rest) if cfg!(windows) && rest.as_bytes().get(1) == Some(&b':') => rest,
        _ => path,
    }
}

/// Drops empty and `.` components and slashes at the end. `..` stays: what it means is up to the
/// file system.
fn tidy(path: &str, rooted: bool) -> String {
    let root = match path {
        _ if !rooted => "",
        path if path.starts_with("//") && !path.starts_with("///") => "//",
        path if path.starts_with('/') => "/",
        _ => "",
    };
    let mut tidied = String::with_capacity(path.len());
    tidied.push_str(root);
    for part in path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        if tidied.len() > root.len() {
            tidied.push('/');
        }
        tidied.push_str(part);
    }
    tidied
}

/// Undoes `%XX`; `None` if the bytes are not UTF-8.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digit = |b: u8| {
            char::from(b)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        match (first, tail) {
            (b'%', [high, low, behind @ ..]) if digit(*high).is_some() && digit(*low).is_some() => {
                bytes.push(digit(*high)? << 4 | digit(*low)?);
                rest = behind;
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Prints a path so that [`unescape`] gives it back.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        for c in self.0.chars() {
            match c {
                ' ' | '%' | '#' | '?' | '"' | '<' | '>' => write!(f, "%{:02X}", c as u32)?,
                c if c.is_ascii_control() => write!(f, "%{:02X}", c as u32)?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn paths_and_file_uris_name_the_same_place() {
        for (text, path, printed) in [
            ("/a/b", "/a/b", "file:///a/b"),
            ("/a//b/", "/a/b", "file:///a/b"),
            ("/a/./b", "/a/b", "file:///a/b"),
            ("//a/b", "/a/b", "file:///a/b"),
            ("file:////a/b", "/a/b", "file:///a/b"),
            ("file:///a/b", "/a/b", "file:///a/b"),
            ("FILE:///a/b", "/a/b", "file:///a/b"),
            ("file://localhost/a/b", "/a/b", "file:///a/b"),
            (
                "file:///a%20b/%C3%A9",
                "/a%20b/%C3%A9",
                "file:///a%20b/%C3%A9",
            ),
            ("file:///100%/x #?", "/100%/x #?", "file:///100%/x #?"),
            ("/a b/é", "/a b/é", "file:///a b/é"),
            ("/", "/", "file:///"),
        ] {
            let uri = Uri::parse(text).unwrap();
            assert_eq!(uri.path().as_str(), path, "{text}");
            assert_eq!(uri.to_string(), printed, "{text}");
            assert_eq!(Uri::parse(&uri.to_string()).unwrap(), uri, "{text}");
        }
    }

    #[test]
    fn relative_paths_become_absolute() {
        let here = std::env::current_dir()
            .unwrap()
            .to_str()
            .unwrap()
            .replace('\\', "/");
        assert_eq!(
            Uri::parse("x/y").unwrap().path().as_str(),
            format!("{here}/x/y")
        );
        assert_eq!(
            Uri::parse("./x").unwrap().path().as_str(),
            format!("{here}/x")
        );
    }

    #[test]
    fn memory_paths() {
        let uri = Uri::parse("mem://a/b/").unwrap();
        assert_eq!(uri.to_string(), "mem://a/b");
        assert_eq!(uri.path().parent().unwrap().parent().unwrap().as_str(), "");
        assert_eq!(
            uri.path().parent().unwrap().parent().unwrap().parent(),
            None
        );
        assert_eq!(
            uri.path()
                .parent()
                .unwrap()
                .parent()
                .unwrap()
                .join("z")
                .as_str(),
            "z"
        );
    }

    #[test]
    fn other_schemes_say_what_is_missing() {
        for (text, part) in [
            ("tiledb://ns/a", "not supported"),
            ("ftp://x/a", "unknown scheme"),
        ] {
            let context = crate::Context::new(crate::Config::default(), None).unwrap();
            let error = Uri::parse(text).and_then(|uri| context.locate(&uri));
            let error = error.unwrap_err();
            assert!(matches!(error, Error::Unsupported(_)), "{text}");
            assert!(error.to_string().contains(part), "{error}");
            assert!(error.to_string().contains(text), "{error}");
        }
        assert!(matches!(Uri::parse(""), Err(Error::InvalidArgument(_))));
        assert!(matches!(Uri::parse("a\0b"), Err(Error::InvalidArgument(_))));
        assert!(matches!(
            Uri::parse("file://"),
            Err(Error::InvalidArgument(_))
        ));
    }

    #[test]
    #[cfg(unix)]
    fn what_follows_file_is_no_host_and_no_relative_path() {
        for text in ["file://host/share/a", "file://a", "file://~/a"] {
            let error = Uri::parse(text).unwrap_err();
            assert!(
                matches!(error, Error::InvalidArgument(_)),
                "{text}: {error}"
            );
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_tilde_is_the_home_folder() {
        let Ok(home) = std::env::var("HOME") else {
            return;
        };
        let parse = |text: &str| Uri::parse(text).unwrap();
        assert_eq!(parse("~/a/b"), parse(&format!("{home}/a/b")));
        assert_eq!(parse("~"), parse(&home));
        for name in ["~a", "~user/a", "a/~/b"] {
            assert_eq!(parse(name), parse(&format!("./{name}")), "{name}");
        }
        assert_ne!(parse("./~/a"), parse("~/a"));
    }

    #[test]
    fn schemes_of_programs_have_paths_without_a_bucket() {
        let uri = Uri::parse("Vault:///a//b/").unwrap();
        assert_eq!(uri, Uri::Custom(StorePath::custom("vault", "a/b")));
        assert_eq!(uri.to_string(), "vault://a/b");
        assert_eq!(Uri::from_path(uri.path().clone()), uri);
        let parent = uri.path().parent().unwrap();
        assert_eq!(parent.parent().unwrap(), StorePath::custom("vault", ""));
        assert_eq!(uri.path().relative_to(&parent), Some("b"));
        let other = StorePath::custom("other", "a/b");
        assert!(other.relative_to(&parent).is_none() && other != *uri.path());
        assert_eq!((other.name(), other.scheme()), ("b", "other"));
    }

    #[test]
    fn objects_have_a_bucket_and_a_key() {
        for (text, printed, authority, key) in [
            ("s3://bucket/a/b", "s3://bucket/a/b", "bucket", "a/b"),
            ("S3A://bucket/a/", "s3://bucket/a", "bucket", "a"),
            ("s3://bucket", "s3://bucket", "bucket", ""),
            ("s3://bucket//a/./b", "s3://bucket/a/b", "bucket", "a/b"),
            (
                "s3://bucket/a b%20+#é?",
                "s3://bucket/a b%20+#é?",
                "bucket",
                "a b%20+#é?",
            ),
            ("gcs://bucket/x", "gs://bucket/x", "bucket", "x"),
            ("az://container/x", "azure://container/x", "container", "x"),
            ("azure://$root/x", "azure://$root/x", "$root", "x"),
            (
                "abfs://c@acc.dfs.core.windows.net/x",
                "abfss://c@acc.dfs.core.windows.net/x",
                "c@acc.dfs.core.windows.net",
                "x",
            ),
            (
                "http://host:8080/a%20b%2523/c",
                "http://host:8080/a%20b%2523/c",
                "host:8080",
                "a b%23/c",
            ),
            (
                "https://[::1]:1/x+y",
                "https://[::1]:1/x+y",
                "[::1]:1",
                "x+y",
            ),
        ] {
            let uri = Uri::parse(text).unwrap();
            assert!(matches!(uri, Uri::Object(_)), "{text}");
            assert_eq!(uri.to_string(), printed, "{text}");
            let (_, found, path) = uri.path().object_parts().unwrap();
            assert_eq!((found, path), (authority, key), "{text}");
            assert_eq!(Uri::parse(&uri.to_string()).unwrap(), uri, "{text}");
            assert_eq!(Uri::from_path(uri.path().clone()), uri, "{text}");
        }
        for text in [
            "s3://",
            "s3:///a",
            "http://h/a?x=1",
            "http://h/%ff",
            "s3://b?c/d",
            "s3://é/a",
            "http://h/%00",
        ] {
            assert!(
                matches!(Uri::parse(text), Err(Error::InvalidArgument(_))),
                "{text}"
            );
        }
        let secret = Uri::parse("https://me:word@host/a")
            .unwrap_err()
            .to_string();
        assert!(
            !secret.contains("word") && secret.contains("user name"),
            "{secret}"
        );
        let query = Uri::parse("https://host/a?sig=word")
            .unwrap_err()
            .to_string();
        assert!(!query.contains("word"), "{query}");
    }

    #[test]
    fn the_parent_of_a_bucket_is_nothing() {
        let bucket = Uri::parse("s3://bucket").unwrap().path().clone();
        let a = bucket.join("a");
        assert_eq!(a.to_string(), "s3://bucket/a");
        assert_eq!((a.parent(), bucket.parent()), (Some(bucket.clone()), None));
        assert_eq!(a.relative_to(&bucket), Some("a"));
        assert_eq!(
            a.relative_to(Uri::parse("gs://bucket").unwrap().path()),
            None
        );
        assert_eq!(StorePath::local("/").object_parts(), None);
    }

    #[test]
    fn steps_up_go_by_names() {
        for (path, plain) in [
            ("/a/../b/./c//..", "/b"),
            ("/..", "/"),
            ("/", "/"),
            ("/a/b", "/a/b"),
        ] {
            // As members of groups are joined to them.
            let joined = StorePath::local("/").join(path);
            assert_eq!(joined.without_steps(), StorePath::local(plain), "{path}");
        }
        let path = StorePath::memory("a").join("../b");
        assert_eq!(path.without_steps(), StorePath::memory("b"));
    }

    #[test]
    fn children_and_parents() {
        let root = StorePath::local("/");
        let a = root.join("a");
        assert_eq!(a.as_str(), "/a");
        assert_eq!(a.join("b/c").as_str(), "/a/b/c");
        assert_eq!(a.join("/b/").as_str(), "/a/b");
        assert_eq!(a.join("").as_str(), "/a");
        assert_eq!(a.join("b").name(), "b");
        assert_eq!(a.join("b").parent(), Some(a.clone()));
        assert_eq!(a.parent(), Some(root.clone()));
        assert_eq!(root.parent(), None);
        assert_eq!(a.join("b/c").relative_to(&a), Some("b/c"));
        assert_eq!(a.relative_to(&a), Some(""));
        assert_eq!(a.relative_to(&root), Some("a"));
        assert_eq!(StorePath::local("/ab").relative_to(&a), None);
        assert_eq!(StorePath::memory("a/b").relative_to(&a), None);
    }

    #[test]
    fn windows_paths_print_as_uris() {
        assert_eq!(StorePath::local("C:/x/y").to_string(), "file:///C:/x/y");
        assert_eq!(
            StorePath::local("//host/share/y").to_string(),
            "file://host/share/y"
        );
        assert_eq!(StorePath::local("C:/x").parent().unwrap().as_str(), "C:");
        assert!(split_scheme("C:\\x").is_none());
        assert!(split_scheme("C://x").is_none());
    }
}
