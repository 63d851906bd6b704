//! `azulejo sql`: queries over arrays, groups, folders and files.

mod completion;
#[cfg(feature = "flight-sql")]
pub mod flight;
mod progress;
mod rows;
mod shell;
#[cfg(feature = "distributed")]
pub mod worker;

use crate::args::{CatFormat, SqlArgs};
use crate::error::{CliError, Result};
use crate::interrupt;
use crate::session::Session;
use crate::terminal::Output;
use azulejo_sql::{ArrayCatalog, TableOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::TableReference;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use progress::QueryProgress;
use rows::Rows;
use std::io::Read;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A session of queries, and what runs them.
struct Queries {
    runtime: Runtime,
    context: SessionContext,
    format: CatFormat,
}

/// How long the end of the program waits for work that was given up: not all of DataFusion looks
/// whether it is.
const PATIENCE: Duration = Duration::from_secs(2);

/// The stack of a thread: plans are as deep as statements.
const STACK: usize = 8 << 20;

/// What queries run on, those of this program and of others.
fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK)
        .enable_all()
        .build()
}

/// Runs the command.
pub fn run(session: &mut Session, args: &SqlArgs) -> Result<()> {
    let queries = Queries::new(session, args)?;
    let ended = queries.answer(session, args);
    queries.runtime.shutdown_timeout(PATIENCE);
    ended
}

impl Queries {
    fn new(session: &Session, args: &SqlArgs) -> Result<Self> {
        let runtime = runtime()?;
        let partitions = args.partitions.unwrap_or(session.context.threads()).max(1);
        let config = SessionConfig::new()
            .with_information_schema(true)
            .with_target_partitions(partitions);
        let environment = environment(session)?;
        let context = session_of(session, args, config, environment)?;
        let queries = Self {
            runtime,
            context,
            format: args.format.unwrap_or(match session.output.json {
                true => CatFormat::Ndjson,
                false if Output::is_terminal() => CatFormat::Table,
                false => CatFormat::Csv,
            }),
        };
        for table in &args.table {
            let (name, uri) = named("--table", table)?;
            let place = session.context.array(uri);
            let table = azulejo_sql::table(&place).map_err(error_of)?;
            queries
                .context
                .register_table(TableReference::bare(name), table)
                .map_err(error_of)?;
        }
        for catalog in &args.catalog {
            let (name, uri) = named("--catalog", catalog)?;
            let catalog = ArrayCatalog::open(&session.context, uri, TableOptions::new());
            let catalog = catalog.map_err(error_of)?;
            queries.context.register_catalog(name, Arc::new(catalog));
        }
        Ok(queries)
    }

    /// Answers what the command asks.
    fn answer(&self, session: &mut Session, args: &SqlArgs) -> Result<()> {
        if self.format == CatFormat::Arrow && Output::is_terminal() {
            return Err(CliError::usage(
                "an Arrow stream is no sight for a terminal; redirect it: > rows.arrow",
            ));
        }
        match (&args.query, &args.file) {
            (Some(query), _) => self.run(session, query),
            (None, Some(file)) => {
                let mut text = String::new();
                if file.as_os_str() == "-" {
                    std::io::stdin().read_to_string(&mut text)?;
                } else {
                    text =
                        std::fs::read_to_string(file).map_err(|e| CliError::io("read", file, e))?;
                }
                self.run(session, &text)
            }
            (None, None) => shell::run(session, self),
        }
    }

    /// Runs the statements of a text and writes their rows.
    fn run(&self, session: &mut Session, text: &str) -> Result<()> {
        // As editors of Windows begin files.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let wanted = || interrupt::check().is_ok();
        let statements = azulejo_sql::statements_while(text, wanted).map_err(error_of)?;
        for statement in statements {
            self.runtime.block_on(async {
                let work = pin!(self.statement(session, statement));
                // Asked first: work that is always ready leaves Tokio no time for what comes after it.
                match select(pin!(interrupt::wished()), work).await {
                    // What reads for it ends as it is dropped.
                    Either::Left(_) => Err(CliError::Interrupted),
                    Either::Right((ended, _)) => ended,
                }
            })?;
        }
        Ok(())
    }

    async fn statement(
        &self,
        session: &mut Session,
        statement: datafusion::sql::parser::Statement,
    ) -> Result<()> {
        let planned = planned(self.context.clone(), statement).await;
        let (schema, tasks, plan) = planned.map_err(error_of)?;
        let mut rows = Rows::new(self.format, &schema)?;
        let progress = QueryProgress::new(session, &plan);
        let mut batches = execute_stream(plan, tasks).map_err(error_of)?;
        while let Some(batch) = progress.during(batches.next()).await {
            let batch = batch.map_err(error_of)?;
            progress.aside(|| rows.write(session, &batch))?;
        }
        drop(progress);
        rows.finish(session)
    }
}

/// The columns of a statement's rows, what it runs in, and its plan.
type Planned = (SchemaRef, Arc<TaskContext>, Arc<dyn ExecutionPlan>);

/// Plans on another thread, which that may keep busy: who waits hears all the same that the program is to
/// end. Then it ends where it next waits.
async fn planned(
    context: SessionContext,
    statement: datafusion::sql::parser::Statement,
) -> std::result::Result<Planned, DataFusionError> {
    let (asked, _waiting) = tokio::sync::mpsc::channel::<()>(1);
    let runtime = tokio::runtime::Handle::current();
    let made = tokio::task::spawn_blocking(move || {
        runtime.block_on(async {
            let work = async {
                let frame = azulejo_sql::run(&context, statement).await?;
                let schema = Arc::clone(frame.schema().inner());
                let tasks = Arc::new(frame.task_ctx());
                Ok((schema, tasks, frame.create_physical_plan().await?))
            };
            match select(pin!(work), pin!(asked.closed())).await {
                Either::Left((made, _)) => made,
                Either::Right(_) => Err(DataFusionError::Execution("nobody waits for it".into())),
            }
        })
    });
    made.await
        .map_err(|error| DataFusionError::External(Box::new(error)))?
}

/// What queries run in: joins, sorts and groups may take as much memory as reads may; what does not
/// fit goes to disk.
fn environment(session: &Session) -> Result<Arc<RuntimeEnv>> {
    let memory = usize::try_from(session.context.config().memory_budget).unwrap_or(usize::MAX);
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(memory)))
        .build_arc()
        .map_err(error_of)
}

/// The session of this process, or one whose queries run on workers.
fn session_of(
    session: &Session,
    args: &SqlArgs,
    config: SessionConfig,
    environment: Arc<RuntimeEnv>,
) -> Result<SessionContext> {
    #[cfg(feature = "distributed")]
    if !args.workers.is_empty() {
        let over = azulejo_sql::distributed::session_over;
        return over(&session.context, config, environment, &args.workers).map_err(error_of);
    }
    let _ = args;
    Ok(azulejo_sql::session_in(
        &session.context,
        config,
        environment,
    ))
}

/// `NAME=URI`.
fn named<'a>(option: &str, text: &'a str) -> Result<(&'a str, &'a str)> {
    match text.split_once('=') {
        Some((name, uri)) if !name.is_empty() && !uri.is_empty() => Ok((name, uri)),
        _ => Err(CliError::usage(format!("{option} {text}: write NAME=URI"))),
    }
}

/// An error of a query: the engine's as it is, all others as the fault of the query.
fn error_of(error: DataFusionError) -> CliError {
    if interrupt::check().is_err() {
        return CliError::Interrupted;
    }
    match error {
        DataFusionError::External(source) => match source.downcast::<azulejo::Error>() {
            Ok(engine) => CliError::Engine(*engine),
            Err(source) => CliError::usage(source.to_string()),
        },
        DataFusionError::Context(_, source) | DataFusionError::Diagnostic(_, source) => {
            error_of(*source)
        }
        DataFusionError::IoError(source) => CliError::from(source),
        error => CliError::usage(error.strip_backtrace()),
    }
}
