//! What every command begins with: a context, a key, standard output.

use crate::args::{GlobalArgs, ProgressArg, TimeArgs};
use crate::error::{CliError, Result};
use crate::interrupt;
use crate::moment::timestamp_text;
use crate::progress::Progress;
use crate::settings;
use crate::terminal::Output;
use azulejo::array::Snapshot;
use azulejo::format::filter::EncryptionKey;
use azulejo::group::ObjectType;
use azulejo::{Array, Config, Context};
use std::path::Path;

/// The surroundings of one command.
#[derive(Debug)]
pub struct Session {
    /// Settings and threads.
    pub context: Context,
    /// Standard output.
    pub output: Output,
    /// Memory that was asked for.
    pub memory: Option<u64>,
    /// How progress shows.
    progress: ProgressArg,
}

impl Session {
    /// The surroundings that the global options ask for.
    pub fn new(args: &GlobalArgs) -> Result<Self> {
        let mut config = Config::default();
        if let Some(file) = &args.config_file {
            let text = std::fs::read_to_string(file).map_err(|e| CliError::io("read", file, e))?;
            settings::from_file(&mut config, &text, file)?;
        }
        let output = Output::new(args.json, args.quiet);
        for setting in &args.config {
            if let Some(name) = settings::from_option(&mut config, setting)? {
                output.note(&format!("{name} means nothing to this program"));
            }
        }
        config.memory_budget = args.memory.unwrap_or(config.memory_budget);
        if args.threads > 0 {
            config.threads = args.threads;
        }
        config.manifest = args.manifest.into();
        let key = match (&args.key_file, &args.key_env, &args.key_command) {
            (Some(file), ..) => Some(read_key(file)?),
            (_, Some(name), _) => Some(key_of_environment(name)?),
            (.., Some(command)) => Some(key_of_command(command)?),
            _ => None,
        };
        let context = Context::new(config, key)?;
        interrupt::listen(context.cancel_handle());
        Ok(Self {
            context,
            output,
            memory: args.memory,
            progress: args.progress.unwrap_or(ProgressArg::Bar),
        })
    }

    /// What lies at a URI, or what that names a moment of (`URI@NAME`).
    pub fn object_type(&self, uri: &str) -> Result<Option<ObjectType>> {
        let found = self.context.object(uri).object_type()?;
        match uri.rsplit_once('@') {
            Some((object, name))
                if found.is_none() && !object.is_empty() && !name.contains('/') =>
            {
                Ok(self.context.object(object).object_type()?)
            }
            _ => Ok(found),
        }
    }

    /// Opens an array at a time.
    pub fn open(&self, uri: &str, time: &TimeArgs) -> Result<Array> {
        Ok(self.snapshot(uri, time)?.array()?)
    }

    /// Opens an array at a time, of which only schemas and key-values are asked for.
    pub fn snapshot(&self, uri: &str, time: &TimeArgs) -> Result<Snapshot> {
        let snapshot = self
            .context
            .array(uri)
            .snapshot_at(time.range(&self.context, uri)?)?;
        if let Some(moment) = snapshot.listed_at() {
            let moment = timestamp_text(moment);
            self.output.note(&format!(
                "{uri} is shown as its manifest says it was at {moment}"
            ));
        }
        Ok(snapshot)
    }

    /// Does long work on the whole of an object, with a progress line.
    pub fn work<R>(&self, work: impl FnOnce(&Context) -> azulejo::Result<R>) -> Result<R> {
        let progress = self.progress(Some(1));
        Ok(work(&progress.of_work(&self.context))?)
    }

    /// A progress line for `total` cells.
    pub fn progress(&self, total: Option<u64>) -> Progress {
        Progress::new(total, self.progress_kind())
    }

    /// How progress is told, if at all.
    pub fn progress_kind(&self) -> ProgressArg {
        match self.output.quiet {
            true => ProgressArg::None,
            false => self.progress,
        }
    }
}

/// A key file holds 32 bytes, or 64 hexadecimal digits; one line end may follow either.
fn read_key(file: &Path) -> Result<EncryptionKey> {
    let bytes = std::fs::read(file).map_err(|e| CliError::io("read", file, e))?;
    EncryptionKey::from_written(&bytes).ok_or_else(|| {
        CliError::usage(format!(
            "{}: a key file holds 32 bytes or 64 hexadecimal digits",
            file.display()
        ))
    })
}

fn key_of_environment(name: &str) -> Result<EncryptionKey> {
    let value = std::env::var_os(name).ok_or_else(|| {
        CliError::usage(format!(
            "--key-env: there is no environment variable {name}"
        ))
    })?;
    EncryptionKey::from_written(value.as_encoded_bytes()).ok_or_else(|| {
        CliError::usage(format!(
            "--key-env {name}: a key is 32 bytes or 64 hexadecimal digits"
        ))
    })
}

/// The key that a command prints; what it asks goes to the terminal.
fn key_of_command(line: &str) -> Result<EncryptionKey> {
    let (shell, option) = match cfg!(windows) {
        true => ("cmd", "/C"),
        false => ("sh", "-c"),
    };
    let mut command = std::process::Command::new(shell);
    let command = command.args([option, line]);
    let output = command
        .stdin(std::process::Stdio::inherit())
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|e| CliError::io("run", Path::new(line), e))?;
    if !output.status.success() {
        return Err(CliError::usage(format!(
            "--key-command: {line:?} failed ({})",
            output.status
        )));
    }
    EncryptionKey::from_written(&output.stdout).ok_or_else(|| {
        CliError::usage(format!(
            "--key-command: {line:?} did not print a key: 32 bytes or 64 hexadecimal digits"
        ))
    })
}
