//! Queries over many machines, on `datafusion-distributed`: one coordinator, some workers.
//!
//! A scan is divided among the workers by its tiles, as it is among partitions. What travels is the
//! array's URI, the names of what the snapshot is made of, and subarrays; each worker opens the
//! array with its own credentials. A worker that is lost fails the query: no answer is short.

mod codec;
mod sent_scan;
mod wire;

pub use codec::ArrayCodec;

use crate::aggregate::ArrayAggregateExec;
use crate::error::{Result, external};
use crate::extremes;
use crate::functions;
use crate::scan::ArrayScan;
use crate::selection::Selection;
use crate::session;
use crate::statistics;
use crate::table::CellsAPartition;
use async_trait::async_trait;
use azulejo::{Context, Subarray};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedExt, DistributedLeafExec,
    ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse, SessionStateBuilderExt, Worker,
    WorkerQueryContext, WorkerResolver, WorkerSessionBuilder,
};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use url::Url;

/// A session as [`session_in`](crate::session_in) makes it, whose queries run on workers.
///
/// # Errors
/// Addresses that are no URLs; `http://` may be left out.
pub fn session_over(
    context: &Context,
    config: SessionConfig,
    environment: Arc<RuntimeEnv>,
    workers: &[String],
) -> Result<SessionContext> {
    let workers = workers.iter().map(|worker| url_of(worker));
    let workers = workers.collect::<Result<Vec<_>>>()?;
    // Plans of one partition have no place at which they could be divided.
    let partitions = config.target_partitions().max(2);
    let config = config.with_target_partitions(partitions);
    let state = session::builder(context, config, environment)
        .with_distributed_worker_resolver(Workers(workers))
        .with_distributed_user_codec(ArrayCodec::new(context))
        .with_distributed_desired_task_count_handler(tasks_of)
        .with_distributed_scale_up_leaf_node_handler(divide)
        .with_distributed_planner()
        .build();
    Ok(session::of_state(state))
}

fn url_of(worker: &str) -> Result<Url> {
    let url = match worker.contains("://") {
        true => Url::parse(worker),
        false => Url::parse(&format!("http://{worker}")),
    };
    url.map_err(|error| DataFusionError::Configuration(format!("{worker}: {error}")))
}

/// Serves as a worker until the listener fails. Anyone who can connect can read what the context
/// can read.
///
/// # Errors
/// Errors of the connection.
pub async fn serve_worker(
    context: &Context,
    environment: Arc<RuntimeEnv>,
    listener: TcpListener,
) -> Result<()> {
    let worker = Worker::from_session_builder(WorkerSessions {
        context: context.clone(),
    });
    let worker = worker.with_runtime_env(environment);
    tonic::transport::Server::builder()
        .add_service(worker.into_worker_server())
        .serve_with_incoming(TcpListenerStream::new(listener))
        .await
        .map_err(|error| DataFusionError::External(Box::new(error)))
}

/// The workers that were named.
struct Workers(Vec<Url>);

impl WorkerResolver for Workers {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}

/// Makes a worker's session of what a coordinator sends.
struct WorkerSessions {
    context: Context,
}

#[async_trait]
impl WorkerSessionBuilder for WorkerSessions {
    async fn build_session_state(&self, query: WorkerQueryContext) -> Result<SessionState> {
        let mut state = query
            .builder
            .with_distributed_user_codec(ArrayCodec::new(&self.context))
            .build();
        for function in functions::all() {
            datafusion::execution::FunctionRegistry::register_udf(&mut state, Arc::new(function))?;
        }
        for function in extremes::all() {
            datafusion::execution::FunctionRegistry::register_udaf(&mut state, Arc::new(function))?;
        }
        Ok(state)
    }
}

/// The scan that a plan is, if it is one.
fn scan_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&ArrayScan> {
    let source = plan.downcast_ref::<DataSourceExec>()?;
    source.data_source().downcast_ref::<ArrayScan>()
}

/// Refuses scans of arrays with keys of their own while a query is planned: that a plan cannot be
/// sent is an error that workers wait for in vain.
fn check_key(event: &DesiredTaskCountEvent<'_>) -> Result<()> {
    let aggregate = event.plan.downcast_ref::<ArrayAggregateExec>();
    let scan = scan_of(event.plan).or_else(|| aggregate.map(ArrayAggregateExec::scan));
    match (scan, event.session_config.get_extension::<Context>()) {
        (Some(scan), Some(context)) => codec::check_key_of(scan, &context),
        _ => Ok(()),
    }
}

/// As many tasks as pay; never more than there are workers.
fn tasks_of(event: DesiredTaskCountEvent<'_>) -> Option<Result<DesiredTaskCountEventResponse>> {
    if let Err(error) = check_key(&event) {
        return Some(Err(error));
    }
    let scan = scan_of(event.plan)?;
    if scan.takes_few() {
        return Some(Ok(DesiredTaskCountEventResponse::desired(1)));
    }
    let each = CellsAPartition::of(event.session_config);
    let each = each.saturating_mul(scan.partitions() as u64);
    let tasks = statistics::stored_cells(scan.array()) / each + 1;
    let tasks = usize::try_from(tasks).unwrap_or(usize::MAX);
    Some(Ok(DesiredTaskCountEventResponse::desired(tasks)))
}

/// Divides a scan among tasks.
fn divide(event: ScaleUpLeafNodeEvent<'_>) -> Option<Result<ScaleUpLeafNodeEventResponse>> {
    let scan = scan_of(event.plan)?;
    let divided = divided(event.plan, scan, event.task_count);
    Some(divided.map(ScaleUpLeafNodeEventResponse::new))
}

fn divided(
    plan: &Arc<dyn ExecutionPlan>,
    scan: &ArrayScan,
    tasks: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    if tasks < 2 {
        return Ok(Arc::clone(plan));
    }
    let each = scan.partitions();
    let parts: Vec<Subarray> = match scan.selection() {
        Selection::Nothing => Vec::new(),
        Selection::Cells { subarray, .. } => scan
            .array()
            .split(subarray, each.saturating_mul(tasks))
            .map_err(external)?,
    };
    // Dealt out in turn: what lies together in an array is often asked for together.
    let variants = (0..tasks).map(|task| {
        let own = parts.iter().skip(task).step_by(tasks).cloned().collect();
        let variant = scan.clone().with_parts(own, each);
        DataSourceExec::from_data_source(variant) as Arc<dyn ExecutionPlan>
    });
    let leaf = DistributedLeafExec::try_new(Arc::clone(plan), variants)?;
    Ok(Arc::new(leaf))
}
