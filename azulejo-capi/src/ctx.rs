//! `tiledb_ctx_t`: settings, the engine's context, the last error.

use crate::boundary::{In, InOut, Kind, Out, Pointer, Ptr, Text, capi, capi_plain};
use crate::config::{Config, Settings, with_error};
use crate::error::{ErrorHandle, Failure, Result, report};
use crate::stats::{CountingStorage, Stats};
use crate::strings::{lock, to_c};
use azulejo::storage::{LocalStorage, MemoryStorage, StoreSettings};
use azulejo_format::filter::EncryptionKey;
use std::ffi::{CString, c_char};
use std::sync::{Arc, Mutex};

/// `tiledb_ctx_t`.
#[derive(Debug)]
pub struct Context {
    settings: Settings,
    /// Made when it is first needed, and again in a forked child, whose parent kept the threads.
    engine: Mutex<Option<(u32, azulejo::Context)>>,
    error: Mutex<Option<String>>,
    stats: Arc<Stats>,
}

impl Kind for Context {
    const NAME: &'static str = "ctx";
}

impl Context {
    fn new(settings: Settings) -> Self {
        Self {
            settings,
            engine: Mutex::new(None),
            error: Mutex::new(None),
            stats: Stats::of_context(),
        }
    }

    /// Remembers the error of a function.
    pub fn fail(&self, failure: Failure) {
        *lock(&self.error) = Some(failure.message);
    }

    /// What it has counted.
    pub fn stats(&self) -> &Arc<Stats> {
        &self.stats
    }

    /// The settings that it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings of an object: its own before those of the context.
    pub fn settings_with(&self, own: Option<&Settings>) -> Settings {
        let mut settings = self.settings.clone();
        if let Some(own) = own {
            settings.inherit(own);
        }
        settings
    }

    /// The engine's context with the context's own settings.
    pub fn engine(&self) -> Result<azulejo::Context> {
        self.engine_with(None)
    }

    /// The engine's context for an object with settings of its own: same threads and storages,
    /// perhaps another key.
    pub fn engine_with(&self, own: Option<&Settings>) -> Result<azulejo::Context> {
        let base = {
            let mut engine = lock(&self.engine);
            let process = std::process::id();
            if engine
                .as_ref()
                .is_some_and(|(made_in, _)| *made_in != process)
            {
                // Its threads stayed behind in the parent: nothing of it may be waited for.
                std::mem::forget(engine.take());
            }
            match &*engine {
                Some((_, engine)) => engine.clone(),
                None => {
                    let (config, key) = (engine_config(&self.settings)?, key(&self.settings)?);
                    let counting =
                        |inner| Arc::new(CountingStorage::new(inner, Arc::clone(&self.stats)));
                    let local = counting(Arc::new(LocalStorage::with_gap(config.coalesce_gap)));
                    let memory = counting(Arc::new(MemoryStorage::new()));
                    let made = azulejo::Context::with_storages(config, key, local, memory)?;
                    *engine = Some((process, made.clone()));
                    made
                }
            }
        };
        match own {
            None => Ok(base),
            Some(own) => {
                let settings = self.settings_with(Some(own));
                Ok(base.derive(engine_config(&settings)?, key(&settings)?))
            }
        }
    }
}

impl Context {
    /// The engine's context as it would be without a key.
    pub fn engine_without_key(&self) -> Result<azulejo::Context> {
        Ok(self.engine()?.derive(engine_config(&self.settings)?, None))
    }
}

/// What the engine has of the settings.
fn engine_config(settings: &Settings) -> Result<azulejo::Config> {
    let mut config = azulejo::Config::default();
    if settings.given("sm.compute_concurrency_level").is_some() {
        let threads = settings.number("sm.compute_concurrency_level")?;
        config.threads = usize::try_from(threads).unwrap_or(0).min(1024);
    }
    if settings.given("sm.mem.total_budget").is_some() {
        config.memory_budget = settings.number("sm.mem.total_budget")?.max(1 << 20);
    }
    if settings.given("sm.tile_cache_size").is_some() {
        config.tile_cache = settings.number("sm.tile_cache_size")?;
    }
    if settings.given(azulejo::Config::DECODED_CACHE).is_some() {
        config.decoded_cache = settings.number(azulejo::Config::DECODED_CACHE)?;
    }
    for name in StoreSettings::names() {
        if let Some(value) = settings.given(name) {
            config.store.set(name, &value)?;
        }
    }
    Ok(config)
}

/// The encryption key, if the settings have one.
fn key(settings: &Settings) -> Result<Option<EncryptionKey>> {
    let text = settings.get("sm.encryption_key").unwrap_or_default();
    let kind = settings.get("sm.encryption_type").unwrap_or_default();
    match kind.as_str() {
        "" | "NO_ENCRYPTION" => Ok(None),
        "AES_256_GCM" => EncryptionKey::from_slice(text.as_bytes())
            .map(Some)
            .map_err(|_| {
                Failure::new(format!(
                    "sm.encryption_key has {} bytes, but AES_256_GCM needs a key of 32 bytes",
                    text.len()
                ))
            }),
        other => Err(Failure::new(format!(
            "sm.encryption_type {other:?} is none of NO_ENCRYPTION, AES_256_GCM"
        ))),
    }
}

fn new_context(config: &In<Config>) -> Result<Context> {
    Ok(Context::new(
        config.opt()?.map(Config::settings).unwrap_or_default(),
    ))
}

with_error! {
    /// A context with these settings, or with the defaults if `config` is null.
    fn tiledb_ctx_alloc_with_error(config: In<Config>, ctx: Out<Ptr<Context>>; error) {
        ctx.give(new_context(&config)?)?;
    }
}

capi_plain! {
    /// A context with these settings, or with the defaults if `config` is null.
    fn tiledb_ctx_alloc(config: In<Config>, ctx: Out<Ptr<Context>>) {
        ctx.give(new_context(&config)?)?;
    }
}

/// Frees the handle and sets it to null.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_ctx_free(handle: InOut<Ptr<Context>>) {
    let _ = crate::boundary::run(|| {
        handle.free();
        Ok(())
    });
}

capi! {
    /// A copy of the settings.
    fn tiledb_ctx_get_config(ctx, config: Out<Ptr<Config>>) {
        config.give(Config::new(ctx.settings.clone()))?;
    }

    /// The error of the last function that failed; null if none has.
    fn tiledb_ctx_get_last_error(ctx, err: Out<Ptr<ErrorHandle>>) {
        let message = lock(&ctx.error).clone();
        match message {
            Some(message) => err.give(ErrorHandle::new(&message))?,
            None => err.set(Ptr::default())?,
        }
    }

    /// Whether a filesystem is built in: `mem://` (4) of those that there are numbers for, and S3
    /// (1), Azure (2) and GCS (3) with the feature `object-store`.
    fn tiledb_ctx_is_supported_fs(ctx, fs: i32, is_supported: Out<i32>) {
        let stores = azulejo::storage::HAS_OBJECT_STORES && (1..=3).contains(&fs);
        is_supported.set(i32::from(fs == 4 || stores))?;
    }

    /// Cancels what other threads have under way in this context, and queries that are not
    /// complete.
    fn tiledb_ctx_cancel_tasks(ctx) {
        ctx.engine()?.cancel_handle().cancel();
    }

    /// Tags are for REST servers; they are accepted and go nowhere.
    fn tiledb_ctx_set_tag(ctx, key: Text, value: Text) {
        key.get()?;
        value.get()?;
    }

    /// Statistics as JSON; free them with `tiledb_stats_free_str`.
    fn tiledb_ctx_get_stats(ctx, stats_json: Out<Pointer<c_char>>) {
        stats_json.set(crate::stats::owned_text(&ctx.stats.json("")))?;
    }

    /// The protocol that a REST server would speak.
    fn tiledb_ctx_get_data_protocol(ctx, uri: Text, data_protocol: Out<i32>) {
        uri.get()?;
        data_protocol.set(0)?;
    }

    /// Turns a `file://` URI into a path of at most `path_length` bytes, NUL included.
    fn tiledb_uri_to_path(ctx, uri: Text, path_out: crate::boundary::OutBytes, path_length: InOut<u32>) {
        let uri = uri.get()?;
        let path = match uri.strip_prefix("file://") {
            Some(path) => path,
            // As in the reference: what is no file of this machine comes back as it is.
            None => uri,
        };
        let path: CString = to_c(path);
        let bytes = path.as_bytes_with_nul();
        let room = path_length.get()? as usize;
        if bytes.len() > room {
            path_length.set(0)?;
            return Err(Failure::new(format!("the path needs {} bytes", bytes.len())));
        }
        path_out.write(bytes)?;
        path_length.set(u32::try_from(bytes.len() - 1).unwrap_or(0))?;
    }

    /// Messages of callers; this library writes no log.
    fn tiledb_log_warn(ctx, message: Text) {
        message.get()?;
    }
}
