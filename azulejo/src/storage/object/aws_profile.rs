//! The profile files of Amazon's programs: `~/.aws/credentials` and `~/.aws/config`.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One profile, of both files.
#[derive(Default)]
pub(super) struct Profile {
    name: String,
    values: BTreeMap<String, String>,
}

impl Profile {
    /// A value of the profile.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// The access key and its secret.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the profile gets its key in another way.
    pub(super) fn key(&self) -> Result<Option<(&str, &str)>> {
        if let Some(pair) = self
            .get("aws_access_key_id")
            .zip(self.get("aws_secret_access_key"))
        {
            return Ok(Some(pair));
        }
        let indirect = [
            "credential_process",
            "sso_session",
            "sso_start_url",
            "role_arn",
            "credential_source",
        ];
        match indirect.into_iter().find(|name| self.get(name).is_some()) {
            Some(name) => Err(Error::Unsupported(format!(
                "the AWS profile {:?} gets its credentials by {name}, which is not supported; \
                 `aws configure export-credentials --profile {} --format env` prints some that can be set in the environment",
                self.name, self.name
            ))),
            None => Ok(None),
        }
    }
}

fn file(variable: &str, name: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(variable).filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    Some(std::env::home_dir()?.join(".aws").join(name))
}

/// The profile with this name, or the one that the environment names, or `default`.
///
/// # Errors
/// [`Error::InvalidArgument`] if a profile that was named does not exist.
pub(super) fn load(named: Option<&str>) -> Result<Profile> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let asked = named
        .map(str::to_owned)
        .or(variable("AWS_PROFILE"))
        .or(variable("AWS_DEFAULT_PROFILE"));
    let name = asked.clone().unwrap_or_else(|| "default".into());
    let read = |path: Option<PathBuf>| {
        path.and_then(|path| std::fs::read_to_string(path).ok())
            .unwrap_or_default()
    };
    let config = read(file("AWS_CONFIG_FILE", "config"));
    let credentials = read(file("AWS_SHARED_CREDENTIALS_FILE", "credentials"));
    match find(&name, &config, &credentials) {
        Some(profile) => Ok(profile),
        None if asked.is_some() => Err(Error::InvalidArgument(format!(
            "there is no AWS profile {name:?} in ~/.aws/config and ~/.aws/credentials"
        ))),
        None => Ok(Profile::default()),
    }
}

fn find(name: &str, config: &str, credentials: &str) -> Option<Profile> {
    let prefixed = format!("profile {name}");
    let mut values = BTreeMap::new();
    let mut found = section(
        config,
        |title| title == prefixed || (name == "default" && title == name),
        &mut values,
    );
    // What both files have, the credentials file says.
    found |= section(credentials, |title| title == name, &mut values);
    found.then(|| Profile {
        name: name.to_owned(),
        values,
    })
}

/// Reads a section's `key = value` lines; indented lines belong to nested settings, which are
/// passed by.
fn section(
    text: &str,
    wanted: impl Fn(&str) -> bool,
    values: &mut BTreeMap<String, String>,
) -> bool {
    let (mut inside, mut found) = (false, false);
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(title) = trimmed
            .strip_prefix('[')
            .and_then(|rest| rest.split(']').next())
        {
            let words: Vec<_> = title.split_whitespace().collect();
            inside = wanted(&words.join(" "));
            found |= inside;
            continue;
        }
        if inside
            && !line.starts_with([' ', '\t'])
            && let Some((key, value)) = trimmed.split_once('=')
        {
            let value = value.split(" #").next().unwrap_or_default().trim();
            values.insert(key.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "
[default]
region = eu-central-1 # here
s3 =
    addressing_style = path
    region = nested
[profile  work ]
region=us-west-2
role_arn = arn:aws:iam::1:role/x
[profile both]
aws_access_key_id = old
";
    const CREDENTIALS: &str = "
; a comment
[default]
aws_access_key_id = AK
aws_secret_access_key = SE=CRET
[both]
AWS_ACCESS_KEY_ID = new
aws_secret_access_key = s
aws_session_token = t
";

    #[test]
    fn profiles_come_of_both_files() {
        let default = find("default", CONFIG, CREDENTIALS).unwrap();
        assert_eq!(default.get("region"), Some("eu-central-1"));
        assert_eq!(default.key().unwrap(), Some(("AK", "SE=CRET")));
        let both = find("both", CONFIG, CREDENTIALS).unwrap();
        assert_eq!(both.key().unwrap(), Some(("new", "s")));
        assert_eq!(both.get("aws_session_token"), Some("t"));
        assert!(find("nobody", CONFIG, CREDENTIALS).is_none());
    }

    #[test]
    fn a_profile_that_assumes_a_role_says_so() {
        let work = find("work", CONFIG, CREDENTIALS).unwrap();
        assert_eq!(work.get("region"), Some("us-west-2"));
        let error = work.key().err().unwrap().to_string();
        assert!(
            error.contains("role_arn") && error.contains("work"),
            "{error}"
        );
    }
}
