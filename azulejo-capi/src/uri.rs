//! URIs as the reference writes them.

/// A path of this machine as a `file://` URI; other URIs as they are. A slash at the end is
/// dropped.
pub fn absolute(uri: &str) -> String {
    let trimmed = if uri.len() > 1 {
        uri.trim_end_matches('/')
    } else {
        uri
    };
    if trimmed.contains("://") {
        return trimmed.to_owned();
    }
    let path = std::path::absolute(trimmed).unwrap_or_else(|_| trimmed.into());
    format!("file://{}", path.display())
}
