//! `tiledb_config_t` and its iterator: settings by name.

use crate::boundary::{In, Kind, Out, Pointer, Ptr, Str, Text, capi_free, capi_plain};
use crate::error::{ErrorHandle, Failure, Result, report};
use crate::strings::{Keep, lock};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// What a value must be.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Text,
    Bool,
    U32,
    U64,
    I64,
    Real,
}
use Shape::{Bool, I64, Real, Text as Any, U32, U64};

/// Every documented setting with its default, sorted by name. An empty concurrency level stands for
/// the number of processors. `docs/c-api.md` says which of them mean something to the engine.
const DEFAULTS: &[(&str, &str, Shape)] = &[
    ("config.env_var_prefix", "TILEDB_", Any),
    ("config.logging_format", "DEFAULT", Any),
    ("config.logging_level", "0", U32),
    ("filestore.buffer_size", "104857600", Any),
    ("profile_dir", "", Any),
    ("profile_name", "", Any),
    ("rest.capnp_traversal_limit", "2147483648", Any),
    ("rest.curl.buffer_size", "524288", Any),
    ("rest.curl.retry_errors", "true", Any),
    ("rest.curl.tcp_keepalive", "true", Bool),
    ("rest.curl.verbose", "false", Any),
    ("rest.http_compressor", "any", Any),
    ("rest.load_enumerations_on_array_open", "false", Any),
    (
        "rest.load_enumerations_on_array_open_all_schemas",
        "false",
        Any,
    ),
    ("rest.load_metadata_on_array_open", "true", Any),
    ("rest.load_non_empty_domain_on_array_open", "true", Any),
    ("rest.payer_namespace", "", Any),
    ("rest.retry_count", "25", Any),
    ("rest.retry_delay_factor", "1.25", Any),
    ("rest.retry_http_codes", "503", Any),
    ("rest.retry_initial_delay_ms", "500", Any),
    ("rest.server_address", "https://api.tiledb.com", Any),
    ("rest.server_serialization_format", "CAPNP", Any),
    ("rest.use_refactored_array_open", "true", Any),
    (
        "rest.use_refactored_array_open_and_query_submit",
        "true",
        Any,
    ),
    ("sm.allow_separate_attribute_writes", "false", Bool),
    ("sm.allow_updates_experimental", "false", Bool),
    ("sm.check_coord_dups", "true", Bool),
    ("sm.check_coord_oob", "true", Bool),
    ("sm.check_global_order", "true", Bool),
    ("sm.compute_concurrency_level", "", U64),
    ("sm.consolidation.amplification", "1.0", Real),
    ("sm.consolidation.buffer_size", "50000000", U64),
    (
        "sm.consolidation.max_fragment_size",
        "18446744073709551615",
        U64,
    ),
    ("sm.consolidation.mode", "fragments", Any),
    ("sm.consolidation.purge_deleted_cells", "false", Bool),
    ("sm.consolidation.step_max_frags", "4294967295", U32),
    ("sm.consolidation.step_min_frags", "4294967295", U32),
    ("sm.consolidation.step_size_ratio", "0.0", Real),
    ("sm.consolidation.steps", "4294967295", U32),
    (
        "sm.consolidation.timestamp_end",
        "18446744073709551615",
        Any,
    ),
    ("sm.consolidation.timestamp_start", "0", Any),
    ("sm.dedup_coords", "false", Bool),
    ("sm.enable_signal_handlers", "true", Bool),
    ("sm.encryption_key", "", Any),
    ("sm.encryption_type", "NO_ENCRYPTION", Any),
    ("sm.enumerations_max_size", "10485760", Any),
    ("sm.enumerations_max_total_size", "52428800", Any),
    ("sm.fragment_info.preload_mbrs", "false", Bool),
    ("sm.group.timestamp_end", "18446744073709551615", Any),
    ("sm.group.timestamp_start", "0", Any),
    ("sm.io_concurrency_level", "", U64),
    ("sm.max_tile_overlap_size", "314572800", Any),
    ("sm.mem.consolidation.buffers_weight", "1", Any),
    ("sm.mem.consolidation.reader_weight", "3", Any),
    ("sm.mem.consolidation.writer_weight", "2", Any),
    ("sm.mem.malloc_trim", "true", Any),
    (
        "sm.mem.reader.sparse_global_order.ratio_array_data",
        "0.1",
        Any,
    ),
    ("sm.mem.reader.sparse_global_order.ratio_coords", "0.5", Any),
    (
        "sm.mem.reader.sparse_global_order.ratio_tile_ranges",
        "0.1",
        Any,
    ),
    (
        "sm.mem.reader.sparse_unordered_with_dups.ratio_array_data",
        "0.1",
        Any,
    ),
    (
        "sm.mem.reader.sparse_unordered_with_dups.ratio_coords",
        "0.5",
        Any,
    ),
    (
        "sm.mem.reader.sparse_unordered_with_dups.ratio_tile_ranges",
        "0.1",
        Any,
    ),
    ("sm.mem.tile_upper_memory_limit", "1073741824", Any),
    ("sm.mem.total_budget", "10737418240", Any),
    ("sm.memory_budget", "5368709120", U64),
    ("sm.memory_budget_var", "10737418240", U64),
    ("sm.merge_overlapping_ranges_experimental", "true", Bool),
    ("sm.partial_tile_offsets_loading", "false", Any),
    ("sm.query.condition_evaluator", "ast", Any),
    ("sm.query.dense.qc_coords_mode", "false", Any),
    ("sm.query.dense.reader", "refactored", Any),
    (
        "sm.query.sparse_global_order.preprocess_tile_merge",
        "32768",
        Any,
    ),
    ("sm.query.sparse_global_order.reader", "refactored", Any),
    (
        "sm.query.sparse_unordered_with_dups.reader",
        "refactored",
        Any,
    ),
    ("sm.read_range_oob", "warn", Any),
    ("sm.skip_checksum_validation", "false", Any),
    ("sm.skip_est_size_partitioning", "false", Any),
    ("sm.skip_unary_partitioning_budget_check", "false", Any),
    ("sm.vacuum.mode", "fragments", Any),
    ("sm.var_offsets.bitsize", "64", U32),
    ("sm.var_offsets.extra_element", "false", Bool),
    ("sm.var_offsets.mode", "bytes", Any),
    ("ssl.ca_file", "", Any),
    ("ssl.ca_path", "", Any),
    ("ssl.verify", "true", Bool),
    ("vfs.azure.blob_endpoint", "", Any),
    ("vfs.azure.block_list_block_size", "5242880", Any),
    ("vfs.azure.is_data_lake_endpoint", "", Bool),
    ("vfs.azure.max_parallel_ops", "", Any),
    ("vfs.azure.max_retries", "5", Any),
    ("vfs.azure.max_retry_delay_ms", "60000", Any),
    ("vfs.azure.retry_delay_ms", "800", Any),
    ("vfs.azure.storage_account_key", "", Any),
    ("vfs.azure.storage_account_name", "", Any),
    ("vfs.azure.storage_sas_token", "", Any),
    ("vfs.azure.use_block_list_upload", "true", Any),
    ("vfs.file.posix_directory_permissions", "755", U32),
    ("vfs.file.posix_file_permissions", "644", U32),
    ("vfs.gcs.endpoint", "", Any),
    ("vfs.gcs.impersonate_service_account", "", Any),
    ("vfs.gcs.max_direct_upload_size", "10737418240", Any),
    ("vfs.gcs.max_parallel_ops", "", Any),
    ("vfs.gcs.multi_part_size", "5242880", Any),
    ("vfs.gcs.project_id", "", Any),
    ("vfs.gcs.request_timeout_ms", "3000", Any),
    ("vfs.gcs.service_account_key", "", Any),
    ("vfs.gcs.use_multi_part_upload", "true", Any),
    ("vfs.gcs.workload_identity_configuration", "", Any),
    ("vfs.log_operations", "false", Any),
    ("vfs.max_batch_size", "104857600", U64),
    ("vfs.min_batch_gap", "512000", U64),
    ("vfs.min_batch_size", "20971520", U64),
    ("vfs.min_parallel_size", "10485760", U64),
    ("vfs.read_ahead_cache_size", "10485760", U64),
    ("vfs.read_ahead_size", "102400", U64),
    ("vfs.read_logging_mode", "", Any),
    ("vfs.s3.aws_access_key_id", "", Any),
    ("vfs.s3.aws_external_id", "", Any),
    ("vfs.s3.aws_load_frequency", "", Any),
    ("vfs.s3.aws_role_arn", "", Any),
    ("vfs.s3.aws_secret_access_key", "", Any),
    ("vfs.s3.aws_session_name", "", Any),
    ("vfs.s3.aws_session_token", "", Any),
    ("vfs.s3.bucket_canned_acl", "NOT_SET", Any),
    ("vfs.s3.ca_file", "", Any),
    ("vfs.s3.ca_path", "", Any),
    ("vfs.s3.config_source", "auto", Any),
    ("vfs.s3.connect_max_tries", "5", I64),
    ("vfs.s3.connect_scale_factor", "25", Any),
    ("vfs.s3.connect_timeout_ms", "10800", I64),
    ("vfs.s3.endpoint_override", "", Any),
    ("vfs.s3.install_sigpipe_handler", "true", Any),
    ("vfs.s3.logging_level", "Off", Any),
    ("vfs.s3.max_parallel_ops", "", U64),
    ("vfs.s3.multipart_part_size", "5242880", U64),
    ("vfs.s3.no_sign_request", "false", Bool),
    ("vfs.s3.object_canned_acl", "NOT_SET", Any),
    ("vfs.s3.proxy_host", "", Any),
    ("vfs.s3.proxy_password", "", Any),
    ("vfs.s3.proxy_port", "0", I64),
    ("vfs.s3.proxy_scheme", "http", Any),
    ("vfs.s3.proxy_username", "", Any),
    ("vfs.s3.region", "", Any),
    ("vfs.s3.request_timeout_ms", "3000", I64),
    ("vfs.s3.requester_pays", "false", Bool),
    ("vfs.s3.scheme", "https", Any),
    ("vfs.s3.skip_init", "false", Any),
    ("vfs.s3.sse", "", Any),
    ("vfs.s3.sse_kms_key_id", "", Any),
    ("vfs.s3.storage_class", "NOT_SET", Any),
    ("vfs.s3.use_multipart_upload", "true", Bool),
    ("vfs.s3.use_virtual_addressing", "true", Bool),
    ("vfs.s3.verify_ssl", "true", Bool),
];

/// Who may do what with an object; with a bucket, the first five.
const CANNED_ACLS: [&str; 8] = [
    "NOT_SET",
    "private_",
    "public_read",
    "public_read_write",
    "authenticated_read",
    "aws_exec_read",
    "bucket_owner_read",
    "bucket_owner_full_control",
];

/// Settings that hold secrets: never written to files.
const SECRETS: [&str; 12] = [
    "vfs.azure.storage_account_name",
    "vfs.azure.storage_account_key",
    "vfs.azure.storage_sas_token",
    "vfs.s3.proxy_username",
    "vfs.s3.proxy_password",
    "vfs.s3.aws_access_key_id",
    "vfs.s3.aws_secret_access_key",
    "vfs.s3.aws_session_token",
    "rest.username",
    "rest.password",
    "rest.token",
    "sm.encryption_key",
];

/// Settings, those that are not set included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<String, String>,
    /// What was set, not just left at its default.
    set: BTreeMap<String, String>,
}

impl Default for Settings {
    fn default() -> Self {
        let values = DEFAULTS
            .iter()
            .map(|(key, _, _)| ((*key).into(), default_of(key).unwrap_or_default()));
        Self {
            values: values.collect(),
            set: BTreeMap::new(),
        }
    }
}

/// The default of a setting.
fn default_of(key: &str) -> Option<String> {
    let at = DEFAULTS
        .binary_search_by(|(name, _, _)| (*name).cmp(key))
        .ok()?;
    let value = DEFAULTS.get(at)?.1;
    if value.is_empty() && (key.ends_with("concurrency_level") || key.ends_with("max_parallel_ops"))
    {
        return Some(
            std::thread::available_parallelism()
                .map_or(1, std::num::NonZero::get)
                .to_string(),
        );
    }
    Some(value.into())
}

/// Why a value is not of a kind, in the reference's words.
fn refusal(shape: Shape, value: &str, kind: &str) -> String {
    let digits = value.strip_prefix('+').unwrap_or(value);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match shape {
        Bool => {
            "[TileDB::Utils] Error: Failed to convert string to bool; Value not 'true' or 'false'"
                .into()
        }
        Real => {
            "[TileDB::Utils] Error: Failed to convert string to float32_t; Invalid argument".into()
        }
        _ => {
            let why = if is_number {
                "Value out of range"
            } else {
                "Invalid argument"
            };
            format!("[TileDB::Utils] Error: Failed to convert string '{value}' to {kind}; {why}")
        }
    }
}

/// What is wrong with a value.
fn check(key: &str, value: &str) -> Result<()> {
    let Ok(at) = DEFAULTS.binary_search_by(|(name, _, _)| (*name).cmp(key)) else {
        return Ok(());
    };
    let Some((_, default, shape)) = DEFAULTS.get(at) else {
        return Ok(());
    };
    // What a setting is unless set may be put back.
    if value == *default {
        return Ok(());
    }
    let (fits, kind) = match shape {
        Any => (true, ""),
        Bool => (
            matches!(value.to_ascii_lowercase().as_str(), "true" | "false"),
            "bool",
        ),
        U32 => (value.parse::<u32>().is_ok(), "uint32_t"),
        U64 => (value.parse::<u64>().is_ok(), "uint64_t"),
        I64 => (value.parse::<i64>().is_ok(), "int64_t"),
        Real => (value.parse::<f32>().is_ok(), "float"),
    };
    if !fits {
        return Err(Failure::new(refusal(*shape, value, kind)));
    }
    let one_of = |values: &[&str]| {
        if values.contains(&value) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "Invalid value '{value}' for setting '{key}': use one of {}",
            values.join(", ")
        )))
    };
    match key {
        "config.logging_format" => one_of(&["DEFAULT", "JSON"]),
        "sm.var_offsets.mode" => one_of(&["bytes", "elements"]),
        "rest.server_serialization_format" => one_of(&["JSON", "CAPNP"]),
        "vfs.s3.scheme" => one_of(&["http", "https"]),
        "vfs.s3.bucket_canned_acl" => one_of(&CANNED_ACLS[..5]),
        "vfs.s3.object_canned_acl" => one_of(&CANNED_ACLS),
        _ => Ok(()),
    }
}

impl Settings {
    /// A setting: set, from the environment, or its default.
    pub fn get(&self, key: &str) -> Option<String> {
        if let Some(value) = self.set.get(key) {
            return Some(value.clone());
        }
        let prefix = self
            .values
            .get("config.env_var_prefix")
            .map_or("TILEDB_", String::as_str);
        let variable = format!("{prefix}{}", key.replace('.', "_").to_uppercase());
        if let Ok(value) = std::env::var(variable) {
            return Some(value);
        }
        if key.starts_with("rest.")
            && let Some(value) = self.profile().get(key)
        {
            return Some(value.clone());
        }
        self.values.get(key).cloned()
    }

    /// Every setting with its value, sorted by name.
    pub fn all(&self) -> Vec<(String, String)> {
        let value = |key: &String, own: &String| self.get(key).unwrap_or_else(|| own.clone());
        self.values
            .iter()
            .map(|(key, own)| (key.clone(), value(key, own)))
            .collect()
    }

    /// What the profile says that the settings name; nothing if there is none.
    fn profile(&self) -> BTreeMap<String, String> {
        let of = |key: &str| self.set.get(key).map(String::as_str);
        crate::profile::load(of("profile_name"), of("profile_dir")).unwrap_or_default()
    }

    /// A setting that was set, here or in the environment.
    pub fn given(&self, key: &str) -> Option<String> {
        let value = self.get(key)?;
        (self.set.contains_key(key) || default_of(key).as_ref() != Some(&value)).then_some(value)
    }

    /// Whether a setting is `true`.
    pub fn flag(&self, key: &str) -> bool {
        self.get(key)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// A number.
    pub fn number(&self, key: &str) -> Result<u64> {
        let value = self.get(key).unwrap_or_default();
        value.trim().parse().map_err(|_| {
            Failure::new(format!(
                "Failed to parse config value '{value}' for key '{key}': it is not a number"
            ))
        })
    }

    /// Sets a value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        check(key, value)?;
        self.values.insert(key.into(), value.into());
        self.set.insert(key.into(), value.into());
        Ok(())
    }

    /// Takes over what was set elsewhere.
    pub fn inherit(&mut self, other: &Self) {
        for (key, value) in &other.set {
            self.values.insert(key.clone(), value.clone());
            self.set.insert(key.clone(), value.clone());
        }
    }

    fn unset(&mut self, key: &str) {
        self.set.remove(key);
        match default_of(key) {
            Some(value) => self.values.insert(key.into(), value),
            None => self.values.remove(key),
        };
    }

    fn load(&mut self, file: &str) -> Result<()> {
        if file.is_empty() {
            return Err("Cannot load from file; File path is empty".into());
        }
        let text = std::fs::read_to_string(file).map_err(|error| {
            Failure::new(format!("Failed to open config file '{file}': {error}"))
        })?;
        for (number, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let Some(key) = words.next().filter(|word| !word.starts_with('#')) else {
                continue;
            };
            let Some(value) = words.next() else {
                return Err(Failure::new(format!(
                    "Failed to parse config file '{file}'; Missing parameter value (line: {number})"
                )));
            };
            if words.next().is_some_and(|word| !word.starts_with('#')) {
                return Err(Failure::new(format!(
                    "Failed to parse config file '{file}'; Invalid line format (line: {number})"
                )));
            }
            self.set(key, value)?;
        }
        Ok(())
    }

    fn save(&self, file: &str) -> Result<()> {
        if file.is_empty() {
            return Err("Cannot save to file; File path is empty".into());
        }
        let mut text = String::new();
        for (key, value) in &self.values {
            if !value.is_empty() && !SECRETS.contains(&key.as_str()) {
                text.push_str(&format!("{key} {value}\n"));
            }
        }
        std::fs::write(file, text).map_err(|error| {
            Failure::new(format!(
                "Failed to open config file '{file}' for writing: {error}"
            ))
        })
    }
}

/// `tiledb_config_t`.
#[derive(Debug, Default)]
pub struct Config {
    settings: Mutex<Settings>,
    keep: Keep,
}

impl Kind for Config {
    const NAME: &'static str = "config";
}

impl Config {
    /// A handle on these settings.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings: Mutex::new(settings),
            keep: Keep::default(),
        }
    }

    /// The settings as they are now.
    pub fn settings(&self) -> Settings {
        lock(&self.settings).clone()
    }
}

/// `tiledb_config_iter_t`: over the settings at the time that it was made.
#[derive(Debug)]
pub struct ConfigIter {
    state: Mutex<(Vec<(String, String)>, usize)>,
    keep: Keep,
}

impl Kind for ConfigIter {
    const NAME: &'static str = "config_iter";
}

/// The settings whose names begin with a prefix, without it.
fn with_prefix(config: &Config, prefix: Option<&str>) -> Vec<(String, String)> {
    let settings = lock(&config.settings);
    let prefix = prefix.unwrap_or_default();
    let entries = settings.values.iter();
    entries
        .filter_map(|(key, value)| {
            let current = settings.get(key).unwrap_or_else(|| value.clone());
            Some((key.strip_prefix(prefix)?.to_owned(), current))
        })
        .collect()
}

/// Declares functions that report to a `tiledb_error_t**`, their last argument.
macro_rules! with_error {
    ($( $(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),* ; $error:ident) $body:block )*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $type,)* $error: Out<Ptr<ErrorHandle>>) -> i32 {
            $( $crate::boundary::Argument::prepare(&$arg); )*
            $crate::boundary::Argument::prepare(&$error);
            report(&$error, || {
                let () = $body;
                Ok(())
            })
        }
    )*};
}
pub(crate) use with_error;

with_error! {
    /// Settings at their defaults.
    fn tiledb_config_alloc(config: Out<Ptr<Config>>; error) {
        config.give(Config::default())?;
    }

    /// Sets a value. Names that are not known are kept for others to read.
    fn tiledb_config_set(config: In<Config>, param: Text, value: Text; error) {
        lock(&config.get()?.settings).set(param.get()?, value.get()?)?;
    }

    /// A setting's value, null if there is none of that name; it lives as long as the handle.
    fn tiledb_config_get(config: In<Config>, param: Text, value: Out<Str>; error) {
        let config = config.get()?;
        let found = lock(&config.settings).get(param.get()?);
        value.set(found.map_or_else(Pointer::default, |found| config.keep.text(&found)))?;
    }

    /// Back to the default.
    fn tiledb_config_unset(config: In<Config>, param: Text; error) {
        lock(&config.get()?.settings).unset(param.get()?);
    }

    /// Reads lines of names and values from a local file.
    fn tiledb_config_load_from_file(config: In<Config>, filename: Text; error) {
        lock(&config.get()?.settings).load(filename.get()?)?;
    }

    /// Writes all settings but secrets to a local file.
    fn tiledb_config_save_to_file(config: In<Config>, filename: Text; error) {
        lock(&config.get()?.settings).save(filename.get()?)?;
    }

    /// An iterator over the settings whose names begin with `prefix`.
    fn tiledb_config_iter_alloc(config: In<Config>, prefix: Text, iter: Out<Ptr<ConfigIter>>; error) {
        let entries = with_prefix(config.get()?, prefix.opt()?);
        iter.give(ConfigIter { state: Mutex::new((entries, 0)), keep: Keep::default() })?;
    }

    /// Starts over, with another prefix.
    fn tiledb_config_iter_reset(config: In<Config>, iter: In<ConfigIter>, prefix: Text; error) {
        let entries = with_prefix(config.get()?, prefix.opt()?);
        *lock(&iter.get()?.state) = (entries, 0);
    }

    /// The name (without the prefix) and value that the iterator is at.
    fn tiledb_config_iter_here(iter: In<ConfigIter>, param: Out<Str>, value: Out<Str>; error) {
        let iter = iter.get()?;
        let state = lock(&iter.state);
        let Some((key, text)) = state.0.get(state.1) else { return Err("the iterator is done".into()) };
        param.set(iter.keep.text(key))?;
        value.set(iter.keep.text(text))?;
    }

    /// Goes on.
    fn tiledb_config_iter_next(iter: In<ConfigIter>; error) {
        let mut state = lock(&iter.get()?.state);
        state.1 = state.1.saturating_add(1);
    }

    /// Whether the iterator is at its end.
    fn tiledb_config_iter_done(iter: In<ConfigIter>, done: Out<i32>; error) {
        let state = lock(&iter.get()?.state);
        done.set(i32::from(state.1 >= state.0.len()))?;
    }
}

capi_plain! {
    /// Whether two configurations have the same values.
    fn tiledb_config_compare(lhs: In<Config>, rhs: In<Config>, equal: Out<u8>) {
        let (left, right) = (lhs.get()?.settings(), rhs.get()?.settings());
        equal.set(u8::from(left.values == right.values))?;
    }
}

capi_free! {
    fn tiledb_config_free(Config);
    fn tiledb_config_iter_free(ConfigIter);
}
