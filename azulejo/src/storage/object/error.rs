//! What a store's errors mean to a caller; nothing secret is in their text.

use super::http::ServerAnswer;
use crate::error::Error;
use crate::storage::{StorePath, StoreSettings};
use std::io::{self, ErrorKind};

/// A store's own words are cut off here.
const LONGEST_TEXT: usize = 600;

/// What must not appear in any text.
#[derive(Clone, Default)]
pub(super) struct Secrets(Vec<String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(hidden)")
    }
}

impl Secrets {
    /// The secrets among the settings.
    pub(super) fn of(settings: &StoreSettings) -> Self {
        let mut secrets = Self::default();
        settings.secrets().for_each(|secret| secrets.add(secret));
        secrets
    }

    /// One more secret.
    pub(super) fn add(&mut self, secret: &str) {
        // Shorter ones would blot out innocent text.
        if secret.len() >= 4 {
            self.0.push(secret.to_owned());
        }
    }

    /// The text without secrets and without queries of URLs, which may hold signatures.
    pub(super) fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.0 {
            text = text.replace(secret, "(hidden)");
        }
        let mut hidden = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(place) = rest.find("://") {
            let (before, url) = rest.split_at(place + 3);
            hidden.push_str(before);
            let end = url
                .find(|c: char| c.is_whitespace() || "\"'<>)".contains(c))
                .unwrap_or(url.len());
            let (url, after) = url.split_at(end);
            hidden.push_str(url.split('?').next().unwrap_or_default());
            rest = after;
        }
        hidden.push_str(rest);
        if let Some((place, _)) = hidden.char_indices().nth(LONGEST_TEXT) {
            hidden.truncate(place);
            hidden.push_str(" ..");
        }
        hidden
    }
}

/// The engine's error for a store's.
pub(super) fn convert(
    op: &'static str,
    path: &StorePath,
    (error, answer): (object_store::Error, ServerAnswer),
    secrets: &Secrets,
) -> Error {
    use object_store::Error as Store;
    let text = secrets.hide(&full_text(&error));
    let storage = |kind: ErrorKind, text: String| Error::Storage {
        op,
        uri: path.to_string(),
        source: io::Error::new(kind, text),
    };
    match (&error, answer.status) {
        (Store::NotFound { .. }, _)
            if op == "list" || server_code(&text, "NoSuchBucket", "ContainerNotFound") =>
        {
            storage(ErrorKind::NotFound, "the bucket does not exist".to_owned())
        }
        (_, Some(404)) if op == "list" && !answer.no_credentials => {
            storage(ErrorKind::NotFound, "the bucket does not exist".to_owned())
        }
        (Store::NotFound { .. }, _) => Error::NotFound {
            uri: path.to_string(),
            what: "no such object",
        },
        (Store::AlreadyExists { .. }, _) => Error::AlreadyExists {
            uri: path.to_string(),
        },
        (Store::NotSupported { .. } | Store::NotImplemented { .. }, _) => {
            Error::Unsupported(format!("cannot {op} {path}: {text}"))
        }
        (Store::InvalidPath { .. }, _) => Error::InvalidArgument(format!("{path}: {text}")),
        (Store::Precondition { .. } | Store::NotModified { .. }, _) => storage(
            ErrorKind::ResourceBusy,
            format!("the object was changed meanwhile: {text}"),
        ),
        _ if answer.no_credentials => storage(
            ErrorKind::PermissionDenied,
            format!(
                "no credentials were found: set them in the environment, in a profile or as settings ({}); \
                 for public data set no_sign_request=true",
                credentials_of(path)
            ),
        ),
        (Store::PermissionDenied { .. } | Store::Unauthenticated { .. }, _)
        | (_, Some(401 | 403)) => storage(
            ErrorKind::PermissionDenied,
            format!("permission denied: check the credentials and what they may do: {text}"),
        ),
        (_, Some(429 | 503)) => storage(
            ErrorKind::ResourceBusy,
            format!("throttled: the server asks for fewer requests, also after waiting: {text}"),
        ),
        (_, Some(301 | 307 | 308 | 400)) if answer.region.is_some() => storage(
            ErrorKind::InvalidInput,
            format!(
                "the bucket lies in the region {}: set vfs.s3.region",
                answer.region.unwrap_or_default()
            ),
        ),
        (_, Some(416)) => storage(
            ErrorKind::UnexpectedEof,
            format!("the object ends before the range: {text}"),
        ),
        _ if answer.timed_out => storage(
            ErrorKind::TimedOut,
            format!("the server did not answer in time: {text}"),
        ),
        _ if answer.unreachable => storage(
            ErrorKind::NotConnected,
            format!("the server cannot be reached: {text}"),
        ),
        _ => storage(ErrorKind::Other, text),
    }
}

/// Whether a server's answer has one of these codes of its protocol.
fn server_code(text: &str, s3: &str, azure: &str) -> bool {
    text.contains(&format!("<Code>{s3}</Code>")) || text.contains(&format!("<Code>{azure}</Code>"))
}

fn credentials_of(path: &StorePath) -> &'static str {
    use crate::storage::ObjectScheme as S;
    match path.object_parts().map(|(scheme, ..)| scheme) {
        Some(S::Gcs) => "GOOGLE_APPLICATION_CREDENTIALS or vfs.gcs.service_account_key",
        Some(S::Azure | S::Abfs) => "AZURE_STORAGE_ACCOUNT_KEY or vfs.azure.storage_account_key",
        _ => "AWS_ACCESS_KEY_ID, AWS_PROFILE or vfs.s3.aws_access_key_id",
    }
}

/// An error's text with those of its causes that it does not repeat itself.
fn full_text(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_queries_are_hidden() {
        let mut secrets = Secrets::default();
        secrets.add("hush-hush");
        let text = "GET https://h/a?sig=abc%3D in 3s, see (http://h/b?x=y) key hush-hush end";
        assert_eq!(
            secrets.hide(text),
            "GET https://h/a in 3s, see (http://h/b) key (hidden) end"
        );
        assert!(secrets.hide(&"é".repeat(5000)).len() < 2000);
        assert!(!format!("{secrets:?}").contains("hush"));
    }

    #[test]
    fn errors_are_named_by_what_can_be_done() {
        let path = crate::storage::Uri::parse("s3://b/k")
            .unwrap()
            .path()
            .clone();
        let generic = || object_store::Error::Generic {
            store: "S3",
            source: "it broke".into(),
        };
        let named = |answer: ServerAnswer| {
            convert("read", &path, (generic(), answer), &Secrets::default()).to_string()
        };
        let status = |status| ServerAnswer {
            status: Some(status),
            ..ServerAnswer::default()
        };
        for (answer, part) in [
            (status(503), "throttled"),
            (status(429), "throttled"),
            (status(403), "permission denied"),
            (status(416), "ends before"),
            (
                ServerAnswer {
                    timed_out: true,
                    ..ServerAnswer::default()
                },
                "in time",
            ),
            (
                ServerAnswer {
                    unreachable: true,
                    ..ServerAnswer::default()
                },
                "cannot be reached",
            ),
            (
                ServerAnswer {
                    no_credentials: true,
                    ..ServerAnswer::default()
                },
                "AWS_PROFILE",
            ),
            (
                ServerAnswer {
                    region: Some("mars".into()),
                    ..status(301)
                },
                "mars",
            ),
            (ServerAnswer::default(), "it broke"),
        ] {
            let text = named(answer);
            assert!(text.contains(part) && text.contains("s3://b/k"), "{text}");
        }
    }
}
