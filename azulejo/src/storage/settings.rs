//! Settings of object stores, under the names that TileDB gives them.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;
#[cfg(feature = "object-store")]
use std::time::Duration;

/// What a setting's value must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettingKind {
    Text,
    /// Text that is never shown.
    Secret,
    Bool,
    Number,
}

/// The settings that are understood. Names are TileDB's where it has one.
const KNOWN: &[(&str, SettingKind)] = &[
    ("ssl.ca_file", SettingKind::Text),
    ("ssl.verify", SettingKind::Bool),
    ("vfs.azure.block_list_block_size", SettingKind::Number),
    ("vfs.azure.blob_endpoint", SettingKind::Text),
    ("vfs.azure.max_parallel_ops", SettingKind::Number),
    ("vfs.azure.max_retries", SettingKind::Number),
    ("vfs.azure.max_retry_delay_ms", SettingKind::Number),
    ("vfs.azure.no_sign_request", SettingKind::Bool),
    ("vfs.azure.request_timeout_ms", SettingKind::Number),
    ("vfs.azure.retry_delay_ms", SettingKind::Number),
    ("vfs.azure.storage_account_key", SettingKind::Secret),
    ("vfs.azure.storage_account_name", SettingKind::Text),
    ("vfs.azure.storage_sas_token", SettingKind::Secret),
    ("vfs.gcs.endpoint", SettingKind::Text),
    ("vfs.gcs.max_parallel_ops", SettingKind::Number),
    ("vfs.gcs.multi_part_size", SettingKind::Number),
    ("vfs.gcs.no_sign_request", SettingKind::Bool),
    ("vfs.gcs.request_timeout_ms", SettingKind::Number),
    ("vfs.gcs.service_account_key", SettingKind::Secret),
    ("vfs.http.max_parallel_ops", SettingKind::Number),
    ("vfs.http.max_retries", SettingKind::Number),
    ("vfs.http.request_timeout_ms", SettingKind::Number),
    ("vfs.max_batch_size", SettingKind::Number),
    ("vfs.min_batch_gap", SettingKind::Number),
    ("vfs.min_parallel_size", SettingKind::Number),
    ("vfs.s3.aws_access_key_id", SettingKind::Secret),
    ("vfs.s3.aws_role_arn", SettingKind::Text),
    ("vfs.s3.aws_secret_access_key", SettingKind::Secret),
    ("vfs.s3.aws_session_name", SettingKind::Text),
    ("vfs.s3.aws_session_token", SettingKind::Secret),
    ("vfs.s3.ca_file", SettingKind::Text),
    ("vfs.s3.config_source", SettingKind::Text),
    ("vfs.s3.connect_max_tries", SettingKind::Number),
    ("vfs.s3.connect_timeout_ms", SettingKind::Number),
    ("vfs.s3.endpoint_override", SettingKind::Text),
    ("vfs.s3.max_parallel_ops", SettingKind::Number),
    ("vfs.s3.multipart_part_size", SettingKind::Number),
    ("vfs.s3.no_sign_request", SettingKind::Bool),
    ("vfs.s3.profile", SettingKind::Text),
    ("vfs.s3.proxy_host", SettingKind::Text),
    ("vfs.s3.proxy_password", SettingKind::Secret),
    ("vfs.s3.proxy_port", SettingKind::Number),
    ("vfs.s3.proxy_scheme", SettingKind::Text),
    ("vfs.s3.proxy_username", SettingKind::Secret),
    ("vfs.s3.region", SettingKind::Text),
    ("vfs.s3.request_timeout_ms", SettingKind::Number),
    ("vfs.s3.requester_pays", SettingKind::Bool),
    ("vfs.s3.scheme", SettingKind::Text),
    ("vfs.s3.sse", SettingKind::Text),
    ("vfs.s3.sse_kms_key_id", SettingKind::Text),
    ("vfs.s3.use_virtual_addressing", SettingKind::Bool),
    ("vfs.s3.verify_ssl", SettingKind::Bool),
];

/// Settings of object stores: `vfs.s3.region`, `vfs.azure.storage_account_name` and others. What is
/// not set comes from the environment, as each cloud's own programs have it.
///
/// Secrets are not printed.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreSettings {
    values: BTreeMap<String, String>,
}

impl StoreSettings {
    /// No settings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The names of all settings.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|(name, _)| *name)
    }

    /// Whether a name is one of these settings.
    #[must_use]
    pub fn knows(name: &str) -> bool {
        kind_of(name).is_some()
    }

    /// Sets a value; an empty one takes the setting back.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if there is no such setting, or if a number or truth value is
    /// none.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let Some(kind) = kind_of(name) else {
            let family = name.rsplit_once('.').map_or("(none)", |(family, _)| family);
            let mut near: Vec<_> = KNOWN
                .iter()
                .map(|(known, _)| *known)
                .filter(|known| known.starts_with(family))
                .collect();
            if near.is_empty() {
                near = vec![
                    "vfs.s3.*",
                    "vfs.gcs.*",
                    "vfs.azure.*",
                    "vfs.http.*",
                    "vfs.min_batch_gap",
                ];
            }
            return Err(Error::InvalidArgument(format!(
                "no setting {name:?}; there are {}",
                near.join(", ")
            )));
        };
        if value.is_empty() {
            self.values.remove(name);
            return Ok(());
        }
        match kind {
            SettingKind::Bool if truth(value).is_none() => {
                return Err(Error::InvalidArgument(format!(
                    "{name} is true or false, not {value:?}"
                )));
            }
            SettingKind::Number if value.parse::<u64>().is_err() => {
                return Err(Error::InvalidArgument(format!(
                    "{name} is a whole number, not {value:?}"
                )));
            }
            _ => {}
        }
        self.values.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    /// A value that was set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    #[cfg(feature = "object-store")]
    pub(super) fn truth(&self, name: &str) -> Option<bool> {
        truth(self.get(name)?)
    }

    #[cfg(feature = "object-store")]
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    #[cfg(feature = "object-store")]
    pub(super) fn millis(&self, name: &str) -> Option<Duration> {
        self.number(name)
            .filter(|ms| *ms > 0)
            .map(Duration::from_millis)
    }

    /// The values that must not appear in any text.
    #[cfg(feature = "object-store")]
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.values
            .iter()
            .filter(|(name, _)| kind_of(name) == Some(SettingKind::Secret))
            .map(|(_, value)| &**value)
    }
}

impl fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.values.iter().map(|(name, value)| {
            let secret = kind_of(name) == Some(SettingKind::Secret);
            (name, if secret { "(hidden)" } else { value })
        });
        f.debug_map().entries(shown).finish()
    }
}

fn kind_of(name: &str) -> Option<SettingKind> {
    KNOWN
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, kind)| *kind)
}

fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_known_and_typed() {
        let mut settings = StoreSettings::new();
        settings.set("vfs.s3.region", "eu-west-1").unwrap();
        settings.set("vfs.s3.no_sign_request", "TRUE").unwrap();
        assert_eq!(settings.get("vfs.s3.region"), Some("eu-west-1"));
        settings.set("vfs.s3.region", "").unwrap();
        assert_eq!(settings.get("vfs.s3.region"), None);
        for (name, value, part) in [
            ("vfs.s3.regoin", "x", "vfs.s3.region"),
            ("nothing", "x", "vfs.s3.*"),
            ("vfs.s3.no_sign_request", "maybe", "true or false"),
            ("vfs.s3.max_parallel_ops", "-1", "whole number"),
        ] {
            let error = settings.set(name, value).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let mut settings = StoreSettings::new();
        settings
            .set("vfs.s3.aws_secret_access_key", "hush")
            .unwrap();
        settings
            .set("vfs.azure.storage_sas_token", "sig=hush")
            .unwrap();
        settings.set("vfs.s3.region", "here").unwrap();
        let shown = format!("{settings:?}");
        assert!(!shown.contains("hush") && shown.contains("here"), "{shown}");
    }
}
