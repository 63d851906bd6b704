//! URIs as the reference writes them.

/// A path of this machine as a `file://` URI; other URIs as they are. A slash at the end is
/// dropped.
pub fn absolute(uri: &str) -> String {
    let trimmed = if uri.len() > 1 {
        uri.trim_end_matches('/')
    } else {
        uri
    };
    if uri.contains("://") {
        // Of what is all of a storage, such as `mem://`, the slashes are not at the end.
        let is_whole = !trimmed.contains("://");
        return if is_whole { uri } else { trimmed }.to_owned();
    }
    let path = std::path::absolute(trimmed).unwrap_or_else(|_| trimmed.into());
    format!("file://{}", path.display())
}

#[cfg(test)]
mod tests {
    use super::absolute;

    #[test]
    fn uris_stay_what_they_are_and_paths_become_whole() {
        for uri in ["mem://", "mem://a", "s3://bucket/a", "file:///a"] {
            assert_eq!(absolute(uri), uri);
        }
        assert_eq!(absolute("s3://bucket/a//"), "s3://bucket/a");
        assert_eq!(absolute("/a/"), "file:///a");
        assert_eq!(absolute("/"), "file:///");
        let here = std::env::current_dir().unwrap_or_default();
        assert_eq!(
            absolute("a"),
            format!("file://{}", here.join("a").display())
        );
    }
}
