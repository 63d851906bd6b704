//! URIs as the reference writes them.

use azulejo::storage::with_home;

/// A path of this machine as a `file://` URI; other URIs as they are. A slash at the end stays, as
/// in the reference. A path that cannot be said in UTF-8, for the current folder's name, stays what
/// it is.
pub fn absolute(uri: &str) -> String {
    if uri.contains("://") {
        return uri.to_owned();
    }
    let uri = &*with_home(uri);
    let path = std::path::absolute(uri).unwrap_or_else(|_| uri.into());
    match path.to_str() {
        Some(path) => format!("file://{path}"),
        None => uri.to_owned(),
    }
}

/// As [`absolute`], without slashes at the end: what all names of a folder have in common, and what
/// names of files are added to.
pub fn folder(uri: &str) -> String {
    let whole = absolute(uri);
    let trimmed = whole.trim_end_matches('/');
    // Of what is all of a storage, such as `mem://`, the slashes are not at the end.
    let is_whole = !trimmed.contains("://");
    if is_whole { whole } else { trimmed.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{absolute, folder};

    #[test]
    fn uris_stay_what_they_are_and_paths_become_whole() {
        for uri in ["mem://", "mem://a", "s3://bucket/a", "file:///a"] {
            assert_eq!(absolute(uri), uri);
            assert_eq!(folder(uri), uri);
        }
        assert_eq!(absolute("s3://bucket/a/"), "s3://bucket/a/");
        assert_eq!(absolute("/a/"), "file:///a/");
        assert_eq!(folder("s3://bucket/a//"), "s3://bucket/a");
        assert_eq!(folder("/a/"), "file:///a");
        assert_eq!(absolute("/"), "file:///");
        assert_eq!(folder("/"), "file:///");
        let here = std::env::current_dir().unwrap_or_default();
        assert_eq!(
            absolute("a"),
            format!("file://{}", here.join("a").display())
        );
        assert_eq!(absolute("a/"), format!("{}/", absolute("a")));
    }
}
