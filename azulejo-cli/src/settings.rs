//! Settings by TileDB's names, from options and files.

use crate::error::{CliError, Result};
use azulejo::Config;
use std::path::Path;

/// Takes a `KEY=VALUE` option. Returns the name if it is one of TileDB's that means nothing here.
pub fn from_option<'a>(config: &mut Config, setting: &'a str) -> Result<Option<&'a str>> {
    let Some((name, value)) = setting.split_once('=') else {
        return Err(CliError::usage(format!(
            "--config takes KEY=VALUE, not {setting:?}"
        )));
    };
    let (name, value) = (name.trim(), value.trim());
    if Config::knows(name) {
        config.set(name, value)?;
        return Ok(None);
    }
    if Config::names().any(|known| known == name) {
        return Ok(Some(name));
    }
    let near = match nearest(name, Config::names()) {
        Some(near) => format!("; did you mean {near:?}?"),
        None => "; names are TileDB's, such as vfs.s3.region".to_owned(),
    };
    Err(CliError::usage(format!("no setting {name:?}{near}")))
}

/// The name that somebody may have meant.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.map(|known| (strsim::damerau_levenshtein(name, known), known));
    let (distance, known) = near.min_by_key(|(distance, _)| *distance)?;
    // A third of the letters is another word.
    (distance <= name.len().max(3) / 3).then_some(known)
}

/// Takes a file of settings: a line holds a name and its value, with white space or `=` between
/// them; `#` begins a comment. Such a file may hold settings of TileDB's that mean nothing here,
/// which are passed by.
pub fn from_file(config: &mut Config, text: &str, file: &Path) -> Result<()> {
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line
            .split_once(|c: char| c == '=' || c.is_whitespace())
            .unwrap_or((line, ""));
        let value = value
            .trim_start_matches(|c: char| c == '=' || c.is_whitespace())
            .trim();
        if !Config::knows(name) {
            continue;
        }
        config
            .set(name, value)
            .map_err(|e| CliError::usage(format!("{} line {}: {e}", file.display(), number + 1)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_files_set_the_same() {
        let (mut a, mut b) = (Config::default(), Config::default());
        from_option(&mut a, "vfs.s3.region=eu-west-1").unwrap();
        from_option(&mut a, "vfs.s3.aws_session_token=a=b=").unwrap();
        from_option(&mut a, "sm.mem.total_budget=100000000").unwrap();
        let text = "# mine\nvfs.s3.region eu-west-1\nvfs.s3.aws_session_token = a=b=\nsm.mem.total_budget 100000000\n\
                    rest.server_address https://x\n\nvfs.s3.scheme\n";
        from_file(&mut b, text, Path::new("f")).unwrap();
        assert_eq!(a, b);
        assert_eq!(a.store.get("vfs.s3.aws_session_token"), Some("a=b="));
        for (setting, says) in [
            ("vfs.s3.region", "KEY=VALUE"),
            ("vfs.s3.regoin=x", "did you mean \"vfs.s3.region\"?"),
            (
                "sm.mem.total_bugdet=1",
                "did you mean \"sm.mem.total_budget\"?",
            ),
            (
                "sm.consolidation.bufer_size=1",
                "did you mean \"sm.consolidation.buffer_size\"?",
            ),
            ("vfs.s3.no_sign_request=perhaps", "true or false"),
            ("x=y", "names are TileDB's"),
        ] {
            let error = from_option(&mut a, setting).unwrap_err().to_string();
            assert!(error.contains(says), "{setting}: {error}");
        }
        let passed = from_option(&mut a, "sm.consolidation.buffer_size=5").unwrap();
        assert_eq!(passed, Some("sm.consolidation.buffer_size"));
        let error =
            from_file(&mut b, "\nvfs.s3.max_parallel_ops many", Path::new("f")).unwrap_err();
        assert!(error.to_string().contains("f line 2"), "{error}");
    }
}
