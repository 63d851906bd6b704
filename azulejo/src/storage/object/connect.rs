//! From a URI, settings and the environment to a client.

use super::aws_profile;
use super::bucket::{Abilities, Limits, Shared};
use super::error::Secrets;
use super::http::Connector;
use crate::error::{Error, Result};
use crate::storage::io_stats::IoStats;
use crate::storage::{ObjectScheme, StorePath, StoreSettings};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use object_store::http::HttpBuilder;
use object_store::{
    BackoffConfig, Certificate, ClientOptions, ObjectStore, RetryConfig, StaticCredentialProvider,
};
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to begin its answer, and again for each part of it.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// No attempt begins later than this after the first.
const RETRY_LIMIT: Duration = Duration::from_secs(180);
/// Attempts at one request.
const TRIES: u64 = 8;
/// Services take no smaller parts.
const SMALLEST_PART: u64 = 5 << 20;
const LARGEST_PART: u64 = 512 << 20;
const MOST_PARALLEL: u64 = 1024;

/// One service's settings, under its part of the names.
struct ServiceSettings<'a> {
    settings: &'a StoreSettings,
    name: &'static str,
}

impl ServiceSettings<'_> {
    fn full(&self, name: &str) -> String {
        format!("vfs.{}.{name}", self.name)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(&self.full(name))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.settings.number(&self.full(name))
    }

    fn millis(&self, name: &str) -> Option<Duration> {
        self.settings.millis(&self.full(name))
    }

    fn truth(&self, name: &str) -> Option<bool> {
        self.settings.truth(&self.full(name))
    }

    fn tries(&self) -> u64 {
        let retries = self
            .number("max_retries")
            .map(|retries| retries.saturating_add(1));
        self.number("connect_max_tries")
            .or(retries)
            .unwrap_or(TRIES)
            .clamp(1, 100)
    }

    fn limits(&self) -> Limits {
        let default = Limits::default();
        let part = self
            .number("multipart_part_size")
            .or(self.number("multi_part_size"));
        let part = part.or(self.number("block_list_block_size"));
        let parallel = self
            .number("max_parallel_ops")
            .filter(|n| *n > 0)
            .map(|n| n.min(MOST_PARALLEL));
        Limits {
            gap: self
                .settings
                .number("vfs.min_batch_gap")
                .unwrap_or(default.gap),
            joined: self
                .settings
                .number("vfs.max_batch_size")
                .unwrap_or(default.joined),
            piece: self
                .settings
                .number("vfs.min_parallel_size")
                .unwrap_or(default.piece)
                .clamp(1 << 16, 1 << 30),
            // Both are bounded above.
            parallel: parallel.map_or(default.parallel, |n| n as usize),
            part: part.map_or(default.part, |n| {
                n.clamp(SMALLEST_PART, LARGEST_PART) as usize
            }),
            tries: self.tries() as u32,
            cleaning: default.cleaning,
        }
    }

    fn retry(&self) -> RetryConfig {
        let default = BackoffConfig::default();
        RetryConfig {
            backoff: BackoffConfig {
                init_backoff: self
                    .millis("retry_delay_ms")
                    .unwrap_or(default.init_backoff),
                max_backoff: self
                    .millis("max_retry_delay_ms")
                    .unwrap_or(default.max_backoff),
                base: default.base,
            },
            max_retries: usize::try_from(self.tries() - 1).unwrap_or(0),
            retry_timeout: RETRY_LIMIT,
        }
    }

    fn connector(&self, stats: &IoStats) -> Connector {
        let patience = self.millis("request_timeout_ms").unwrap_or(PATIENCE);
        Connector {
            stats: stats.clone(),
            patience,
            whole_files: self.name == "http",
        }
    }

    fn client_options(&self, allow_http: bool) -> Result<ClientOptions> {
        // Time is limited request by request, and part by part of a body: a whole body takes what
        // it takes.
        let mut options = ClientOptions::new()
            .with_timeout_disabled()
            .with_connect_timeout(self.millis("connect_timeout_ms").unwrap_or(CONNECT_LIMIT))
            .with_allow_http(allow_http);
        let verify = self.truth("verify_ssl");
        if verify.or_else(|| self.settings.truth("ssl.verify")) == Some(false) {
            options = options.with_allow_invalid_certificates(true);
        }
        let own = self.full("ca_file");
        let given = |name| Some((name, self.settings.get(name)?));
        if let Some((name, file)) = given(&*own).or_else(|| given("ssl.ca_file")) {
            let bad =
                |e: &dyn std::fmt::Display| Error::InvalidArgument(format!("{name} {file}: {e}"));
            let pem = std::fs::read(file).map_err(|e| bad(&e))?;
            for certificate in Certificate::from_pem_bundle(&pem).map_err(|e| bad(&e))? {
                options = options.with_root_certificate(certificate);
            }
        }
        if let Some(host) = self.get("proxy_host") {
            let scheme = self.get("proxy_scheme").unwrap_or("http");
            let user = match (self.get("proxy_username"), self.get("proxy_password")) {
                (Some(user), Some(password)) => {
                    format!("{}:{}@", in_url(user), in_url(password))
                }
                (Some(user), None) => format!("{}@", in_url(user)),
                _ => String::new(),
            };
            let port = self.number("proxy_port").filter(|port| *port > 0);
            let port = port.map_or(String::new(), |port| format!(":{port}"));
            options = options.with_proxy_url(format!("{scheme}://{user}{host}{port}"));
        }
        Ok(options)
    }
}

/// A name or password as a URL has it: signs that would end it there are escaped.
fn in_url(text: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escaped).collect()
}

/// Finds out everything a client needs; makes no request.
pub(super) fn connect(
    path: &StorePath,
    settings: &StoreSettings,
    stats: &IoStats,
) -> Result<Shared> {
    let Some((scheme, authority, _)) = path.object_parts() else {
        return Err(Error::Unsupported(format!(
            "{path}: no path of an object store"
        )));
    };
    let mut secrets = Secrets::of(settings);
    // As its URL has them.
    for name in ["vfs.s3.proxy_username", "vfs.s3.proxy_password"] {
        let secret = settings.get(name).map(in_url);
        secret.iter().for_each(|secret| secrets.add(secret));
    }
    let family = |name| ServiceSettings { settings, name };
    let (family, store) = match scheme {
        ObjectScheme::S3 => (
            family("s3"),
            s3(&family("s3"), authority, stats, &mut secrets),
        ),
        ObjectScheme::Gcs => (family("gcs"), gcs(&family("gcs"), authority, stats)),
        ObjectScheme::Azure | ObjectScheme::Abfs => (
            family("azure"),
            azure(&family("azure"), authority, stats, &mut secrets),
        ),
        ObjectScheme::Http | ObjectScheme::Https => (
            family("http"),
            http(&family("http"), scheme, authority, stats),
        ),
    };
    let store = store.map_err(|e| match e {
        Failure::Ours(error) => error,
        Failure::Store(error) => Error::InvalidArgument(format!(
            "{}: {}",
            root_of(path),
            secrets.hide(&error.to_string())
        )),
    })?;
    let full = !matches!(scheme, ObjectScheme::Http | ObjectScheme::Https);
    let is_azure = matches!(scheme, ObjectScheme::Azure | ObjectScheme::Abfs);
    Ok(Shared::new(
        store,
        family.limits(),
        Abilities {
            full,
            tails: !is_azure,
            copies: !is_azure,
        },
        stats,
        secrets,
    ))
}

fn root_of(path: &StorePath) -> String {
    path.object_parts()
        .map_or_else(String::new, |(scheme, authority, _)| {
            format!("{}://{authority}", scheme.as_str())
        })
}

enum Failure {
    Ours(Error),
    Store(object_store::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Ours(error)
    }
}

impl From<object_store::Error> for Failure {
    fn from(error: object_store::Error) -> Self {
        Self::Store(error)
    }
}

type Store = std::result::Result<Arc<dyn ObjectStore>, Failure>;

fn env(names: &[&str]) -> Option<String> {
    names
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

fn s3(family: &ServiceSettings<'_>, bucket: &str, stats: &IoStats, secrets: &mut Secrets) -> Store {
    use AmazonS3ConfigKey as Key;
    let source = family.get("config_source").unwrap_or("auto");
    if !matches!(
        source,
        "auto" | "config_files" | "sts_profile_with_web_identity"
    ) {
        let text = format!(
            "vfs.s3.config_source is auto, config_files or sts_profile_with_web_identity, not {source:?}"
        );
        return Err(Error::InvalidArgument(text).into());
    }
    let from_files = source == "config_files";
    let mut builder = if from_files {
        AmazonS3Builder::new()
    } else {
        AmazonS3Builder::from_env()
    };
    if let Some(key) = family.get("aws_access_key_id") {
        builder = builder.with_access_key_id(key);
    }
    if let Some(secret) = family.get("aws_secret_access_key") {
        builder = builder.with_secret_access_key(secret);
        // Without one of its own, a key has no token: that of the environment belongs to another.
        builder = builder.with_token(family.get("aws_session_token").unwrap_or_default());
    }
    if let Some(token) = family.get("aws_session_token") {
        builder = builder.with_token(token);
    }
    if builder
        .get_config_value(&Key::Token)
        .is_some_and(|token| token.is_empty())
    {
        builder = without_token(&builder);
    }
    if let Some(role) = family.get("aws_role_arn") {
        builder = builder.with_config(Key::RoleArn, role);
    }
    if let Some(name) = family.get("aws_session_name") {
        builder = builder.with_config(Key::RoleSessionName, name);
    }
    let anonymous = family.truth("no_sign_request").unwrap_or(false);
    let named = family.get("profile").map(str::to_owned);
    let has_key = builder.get_config_value(&Key::AccessKeyId).is_some() && named.is_none();
    let has_region = |builder: &AmazonS3Builder| builder.get_config_value(&Key::Region).is_some();
    let profile = aws_profile::load(named.as_deref())?;
    if !has_key
        && !anonymous
        && let Some((key, secret)) = profile.key()?
    {
        builder = builder
            .with_access_key_id(key)
            .with_secret_access_key(secret);
        builder = match profile.get("aws_session_token") {
            Some(token) => builder.with_token(token),
            None => without_token(&builder),
        };
    }
    if let Some(region) = family.get("region") {
        builder = builder.with_region(region);
    } else if !has_region(&builder) {
        let default = builder.get_config_value(&Key::DefaultRegion);
        if let Some(region) = default.as_deref().or(profile.get("region")) {
            builder = builder.with_region(region);
        }
    }
    let endpoint = match family.get("endpoint_override") {
        Some(endpoint) if endpoint.contains("://") => Some(endpoint.to_owned()),
        Some(endpoint) => Some(format!(
            "{}://{endpoint}",
            family.get("scheme").unwrap_or("https")
        )),
        None => builder
            .get_config_value(&Key::S3Endpoint)
            .or(builder.get_config_value(&Key::Endpoint))
            .or(profile.get("endpoint_url").map(str::to_owned)),
    };
    let mut plain_http = false;
    // A bucket with a dot in its name has no certificate of its own.
    let mut in_host = family
        .truth("use_virtual_addressing")
        .unwrap_or(endpoint.is_none() && !bucket.contains('.'));
    if let Some(mut endpoint) = endpoint {
        plain_http = endpoint.starts_with("http://");
        if in_host && let Some((scheme, host)) = endpoint.clone().split_once("://") {
            endpoint = format!("{scheme}://{bucket}.{host}");
        }
        builder = builder.with_config(Key::S3Endpoint, endpoint.trim_end_matches('/'));
    } else if family
        .get("scheme")
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"))
    {
        let region = builder
            .get_config_value(&Key::Region)
            .unwrap_or_else(|| "us-east-1".into());
        let host = if in_host {
            format!("{bucket}.s3.{region}")
        } else {
            format!("s3.{region}")
        };
        builder = builder.with_config(Key::S3Endpoint, format!("http://{host}.amazonaws.com"));
        plain_http = true;
    } else if family.truth("use_virtual_addressing").is_none()
        && builder
            .get_config_value(&Key::VirtualHostedStyleRequest)
            .as_deref()
            == Some("true")
    {
        in_host = true;
    }
    builder = builder
        .with_virtual_hosted_style_request(in_host)
        .with_skip_signature(anonymous);
    match family.get("sse") {
        None => {}
        Some("aes256") => {
            builder = builder.with_config("aws_server_side_encryption".parse()?, "AES256");
        }
        Some("kms") => {
            builder = builder.with_config("aws_server_side_encryption".parse()?, "aws:kms");
            // Without one it is the key that the service keeps for the account.
            if let Some(key) = family.get("sse_kms_key_id") {
                builder = builder.with_config("aws_sse_kms_key_id".parse()?, key);
            }
        }
        Some(other) => {
            return Err(Error::InvalidArgument(format!(
                "vfs.s3.sse is aes256 or kms, not {other:?}"
            ))
            .into());
        }
    }
    if family.truth("requester_pays") == Some(true) {
        builder = builder.with_request_payer(true);
    }
    for key in [Key::SecretAccessKey, Key::Token] {
        builder
            .get_config_value(&key)
            .iter()
            .for_each(|secret| secrets.add(secret));
    }
    let store = builder
        .with_bucket_name(bucket)
        .with_retry(family.retry())
        .with_client_options(family.client_options(plain_http)?)
        .with_http_connector(family.connector(stats))
        .build()?;
    Ok(Arc::new(store))
}

/// The same settings without a session token, which the builder cannot take back.
fn without_token(builder: &AmazonS3Builder) -> AmazonS3Builder {
    use AmazonS3ConfigKey as Key;
    let mut fresh = AmazonS3Builder::new();
    // How objects are encrypted is nothing that a program may lose.
    let encryption = [
        "aws_server_side_encryption",
        "aws_sse_kms_key_id",
        "aws_sse_bucket_key_enabled",
        "aws_sse_customer_key_base64",
    ];
    let encryption = encryption.into_iter().filter_map(|name| name.parse().ok());
    let keys = [
        Key::AccessKeyId,
        Key::SecretAccessKey,
        Key::Region,
        Key::DefaultRegion,
        Key::Endpoint,
        Key::S3Endpoint,
        Key::VirtualHostedStyleRequest,
        Key::UnsignedPayload,
        Key::Checksum,
        Key::RoleArn,
        Key::RoleSessionName,
        Key::WebIdentityTokenFile,
        Key::S3Express,
        Key::RequestPayer,
        Key::DisableTagging,
        Key::ConditionalPut,
        Key::CopyIfNotExists,
        Key::StsEndpoint,
        Key::MetadataEndpoint,
        Key::ImdsV1Fallback,
        Key::ContainerCredentialsRelativeUri,
        Key::ContainerCredentialsFullUri,
        Key::ContainerAuthorizationTokenFile,
    ];
    for key in keys.into_iter().chain(encryption) {
        if let Some(value) = builder.get_config_value(&key) {
            fresh = fresh.with_config(key, value);
        }
    }
    fresh
}

fn gcs(family: &ServiceSettings<'_>, bucket: &str, stats: &IoStats) -> Store {
    let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
    let endpoint = family
        .get("endpoint")
        .map(str::to_owned)
        .or(env(&["STORAGE_EMULATOR_HOST"]));
    let mut plain_http = false;
    let mut emulated = false;
    if let Some(endpoint) = endpoint {
        let endpoint = if endpoint.contains("://") {
            endpoint
        } else {
            format!("http://{endpoint}")
        };
        plain_http = endpoint.starts_with("http://");
        emulated = plain_http;
        builder = builder.with_base_url(endpoint.trim_end_matches('/'));
    }
    let key = family.get("service_account_key");
    if let Some(key) = key {
        builder = builder.with_service_account_key(key);
    }
    // An emulator asks for no credentials, and a plain connection must carry none.
    let anonymous = family
        .truth("no_sign_request")
        .unwrap_or(emulated && key.is_none());
    if anonymous && emulated {
        // Some requests would ask for credentials all the same.
        let nobody = GcpCredential {
            bearer: String::new(),
        };
        builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(nobody)));
    }
    let store = builder
        .with_skip_signature(anonymous)
        .with_retry(family.retry())
        .with_client_options(family.client_options(plain_http)?)
        .with_http_connector(family.connector(stats))
        .build()?;
    Ok(Arc::new(store))
}

fn azure(
    family: &ServiceSettings<'_>,
    authority: &str,
    stats: &IoStats,
    secrets: &mut Secrets,
) -> Store {
    use AzureConfigKey as Key;
    let mut builder = MicrosoftAzureBuilder::from_env();
    let connection = env(&["AZURE_STORAGE_CONNECTION_STRING"]).unwrap_or_default();
    let part = |name: &str| {
        let pairs = connection
            .split(';')
            .filter_map(|pair| pair.split_once('='));
        pairs
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
            .next()
    };
    let (container, host) = authority.split_once('@').unwrap_or((authority, ""));
    let account_in_uri = host
        .split('.')
        .next()
        .filter(|account| !account.is_empty())
        .map(str::to_owned);
    let given = |name: &str| family.get(name).map(str::to_owned);
    let account = account_in_uri
        .or(given("storage_account_name"))
        .or(builder.get_config_value(&Key::AccountName))
        .or(env(&["AZURE_STORAGE_ACCOUNT"]))
        .or(part("AccountName"));
    if let Some(account) = account {
        builder = builder.with_account(account);
    }
    let key = given("storage_account_key")
        .or(builder.get_config_value(&Key::AccessKey))
        .or(env(&["AZURE_STORAGE_KEY"]))
        .or(part("AccountKey"));
    let sas = given("storage_sas_token")
        .or(builder.get_config_value(&Key::SasKey))
        .or(part("SharedAccessSignature"));
    if let Some(sas) = &sas {
        secrets.add(sas);
        builder = builder.with_config(Key::SasKey, sas.trim_start_matches('?'));
    }
    if let Some(key) = key {
        secrets.add(&key);
        builder = builder.with_access_key(key);
    }
    let mut plain_http = false;
    let endpoint = given("blob_endpoint")
        .or(builder.get_config_value(&Key::Endpoint))
        .or(part("BlobEndpoint"));
    if let Some(endpoint) = endpoint {
        let endpoint = if endpoint.contains("://") {
            endpoint
        } else {
            format!("https://{endpoint}")
        };
        plain_http = endpoint.starts_with("http://");
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    if family.truth("no_sign_request") == Some(true) {
        builder = builder.with_skip_signature(true);
    }
    let store = builder
        .with_container_name(container)
        .with_retry(family.retry())
        .with_client_options(family.client_options(plain_http)?)
        .with_http_connector(family.connector(stats))
        .build()?;
    Ok(Arc::new(store))
}

fn http(family: &ServiceSettings<'_>, scheme: ObjectScheme, host: &str, stats: &IoStats) -> Store {
    let store = HttpBuilder::new()
        .with_url(format!("{}://{host}", scheme.as_str()))
        .with_retry(family.retry())
        .with_client_options(family.client_options(scheme == ObjectScheme::Http)?)
        .with_http_connector(family.connector(stats))
        .build()?;
    Ok(Arc::new(store))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_proxies_do_not_end_the_name_of_the_host() {
        assert_eq!(in_url("plain-1.~_"), "plain-1.~_");
        assert_eq!(in_url("p@ss:w/rd?#é%"), "p%40ss%3Aw%2Frd%3F%23%C3%A9%25");
    }

    #[test]
    fn certificates_are_those_of_all_services_or_of_one() {
        let mut settings = StoreSettings::new();
        let missing = |settings: &StoreSettings, name| {
            let family = ServiceSettings { settings, name };
            family.client_options(false).unwrap_err().to_string()
        };
        settings.set("ssl.ca_file", "/no such/all").unwrap();
        assert!(missing(&settings, "gcs").contains("ssl.ca_file /no such/all"));
        settings.set("vfs.s3.ca_file", "/no such/s3").unwrap();
        assert!(missing(&settings, "gcs").contains("ssl.ca_file /no such/all"));
        assert!(missing(&settings, "s3").contains("vfs.s3.ca_file /no such/s3"));
    }

    #[test]
    fn settings_say_what_is_joined() {
        let mut settings = StoreSettings::new();
        settings.set("vfs.min_batch_gap", "7").unwrap();
        settings.set("vfs.max_batch_size", "1000").unwrap();
        let family = ServiceSettings {
            settings: &settings,
            name: "gcs",
        };
        let limits = family.limits();
        assert_eq!((limits.gap, limits.joined), (7, 1000));
        assert_eq!(limits.piece, Limits::default().piece);
    }

    #[test]
    fn what_is_encrypted_stays_so_without_a_token() {
        let encryption = |name: &str| name.parse::<AmazonS3ConfigKey>().unwrap();
        let values = [
            ("aws_server_side_encryption", "aws:kms"),
            ("aws_sse_kms_key_id", "key"),
            ("aws_sse_bucket_key_enabled", "true"),
            ("aws_conditional_put", "disabled"),
        ];
        let mut builder = AmazonS3Builder::new().with_token("of another");
        for (name, value) in values {
            builder = builder.with_config(encryption(name), value);
        }
        let fresh = without_token(&builder);
        assert_eq!(fresh.get_config_value(&AmazonS3ConfigKey::Token), None);
        for (name, value) in values {
            let found = fresh.get_config_value(&encryption(name));
            assert_eq!(found.as_deref(), Some(value), "{name}");
        }
    }
}
