//! An array as a table.

use crate::change::{Change, ChangeExec};
use crate::columns::{Place, TableColumns};
use crate::default_values;
use crate::delete::{self, Planned};
use crate::delete_rows::DeleteSink;
use crate::error::{Result, external};
use crate::filters;
use crate::predicate::Predicate;
use crate::scan::ArrayScan;
use crate::selection::Selection;
use crate::statistics;
use crate::time_of_day;
use crate::write::ArraySink;
use async_trait::async_trait;
use azulejo::array::PinnedSnapshot;
use azulejo::condition::Meaning;
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use azulejo::{Array, ArrayHandle, ReadOptions, Subarray, TimeRange};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{SchemaExt, Statistics};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::prelude::SessionConfig;
use std::collections::HashMap;
use std::sync::Arc;

/// Cells below which another partition, or another worker, does not pay: 65,536 unless a session's
/// configuration has this as an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellsAPartition(pub u64);

impl CellsAPartition {
    /// That of a session.
    pub(crate) fn of(config: &SessionConfig) -> u64 {
        let known = config.get_extension::<Self>();
        known.map_or(1 << 16, |known| known.0.max(1))
    }
}

/// How an array is shown as a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableOptions {
    /// What was written within this time; everything until now if not set. Such a table stays as it
    /// is: others show at each query what has been written before it.
    pub time: Option<TimeRange>,
    /// Whether all cells of a dense array are rows: those that nobody wrote have fill values.
    pub unwritten: bool,
    /// Whether CHAR is bytes, which any of it is, and not text.
    pub bytes: bool,
}

impl TableOptions {
    /// The array as it is when a query begins; of a dense one the cells that were written.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The array as it was at a time, in milliseconds since 1970.
    #[must_use]
    pub fn at(mut self, milliseconds: u64) -> Self {
        self.time = Some(TimeRange::until(milliseconds));
        self
    }

    /// All cells of a dense array, written or not.
    #[must_use]
    pub fn unwritten(mut self) -> Self {
        self.unwritten = true;
        self
    }

    /// CHAR as bytes: not all of it need be text.
    #[must_use]
    pub fn bytes(mut self) -> Self {
        self.bytes = true;
        self
    }
}

/// An array as a table: its dimensions, then its attributes, are the columns, unless a statement that
/// made the table says another order; its cells the rows. Spans are times of day where such a statement
/// says so.
///
/// The columns are those of the array when the table was made. Each scan opens the array, and reads
/// one snapshot of it.
#[derive(Debug)]
pub struct ArrayTable {
    place: ArrayHandle,
    options: TableOptions,
    columns: Arc<TableColumns>,
    /// The columns as the table shows them, by their indices in `columns`.
    order: Vec<usize>,
    schema: SchemaRef,
    /// The columns that tell rows apart, as the table shows them; none of an array with duplicates.
    key: Vec<usize>,
    /// What `INSERT` writes where it says nothing, by column: what a statement says that made the
    /// table, or else the fill value, where an attribute has one of its own.
    defaults: HashMap<String, Expr>,
    /// The array as it was when the table was made.
    array: Array,
}

impl ArrayTable {
    /// The table of an array.
    ///
    /// # Errors
    /// Those of opening the array, and of reading its enumerations.
    pub fn open(place: ArrayHandle, options: TableOptions) -> Result<Self> {
        let array = match options.time {
            Some(time) => place.open_at(time),
            None => place.open(),
        };
        Self::of(place, array.map_err(external)?, options)
    }

    /// The table of exactly what a snapshot names.
    ///
    /// # Errors
    /// Those of [`ArrayHandle::open_pinned`].
    pub fn open_pinned(
        place: ArrayHandle,
        pinned: &PinnedSnapshot,
        options: TableOptions,
    ) -> Result<Self> {
        let array = place.open_pinned(pinned).map_err(external)?;
        let options = TableOptions {
            time: Some(pinned.time_range),
            ..options
        };
        Self::of(place, array, options)
    }

    fn of(place: ArrayHandle, array: Array, options: TableOptions) -> Result<Self> {
        let columns = Arc::new(TableColumns::of(&array, options.bytes)?);
        let table = Self {
            place,
            options,
            order: Vec::new(),
            schema: Arc::clone(columns.schema()),
            key: Vec::new(),
            defaults: default_values::of_fills(&array, &columns),
            columns,
            array,
        };
        table.showing_first(&Schema::empty())
    }

    /// The same table, which shows these columns first, in this order, as far as there are such, and
    /// spans of attributes that are times of day among them as these.
    pub(crate) fn showing_first(mut self, columns: &Schema) -> Result<Self> {
        let own = self.columns.schema();
        let names = columns.fields().iter().map(|field| field.name().as_str());
        let ranks: HashMap<&str, usize> = names.zip(0..).collect();
        let rank = |index: &usize| {
            let rank = ranks.get(own.field(*index).name().as_str());
            rank.copied().unwrap_or(usize::MAX)
        };
        let mut order: Vec<usize> = (0..own.fields().len()).collect();
        order.sort_by_key(rank);
        let field = |index: &usize| {
            let field = own.field(*index);
            let is_attribute = matches!(
                self.columns.get(*index).map(|column| column.place),
                Some(Place::Attribute(_))
            );
            let declared = columns.field_with_name(field.name()).ok();
            let declared = declared.filter(|_| is_attribute).map(Field::data_type);
            match declared.and_then(|time| time_of_day::shown_as(time, field.data_type())) {
                // What is no time of day is null.
                Some(time) => Field::new(field.name(), time, true),
                None => field.clone(),
            }
        };
        self.schema = Arc::new(Schema::new(order.iter().map(field).collect::<Vec<_>>()));
        self.key = key_of(&self.array, &self.columns, &order);
        self.order = order;
        let defaults = std::mem::take(&mut self.defaults).into_iter();
        let defaults = defaults.map(|(name, default)| {
            let default = match self.time_of_day(&name) {
                Some(time) => time_of_day::of_default(default, time),
                None => default,
            };
            (name, default)
        });
        self.defaults = defaults.collect();
        Ok(self)
    }

    /// The same table as it was at another time, or by other options.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub(crate) fn with_options(&self, options: TableOptions) -> Result<Self> {
        Self::open(self.place.clone(), options)?.showing_first(&self.schema)
    }

    /// The same table, whose columns have defaults, before what the array says. They belong to the
    /// table.
    ///
    /// # Errors
    /// Columns that do not exist.
    pub(crate) fn with_defaults(mut self, defaults: HashMap<String, Expr>) -> Result<Self> {
        for name in defaults.keys() {
            self.columns.schema().field_with_name(name)?;
        }
        self.defaults.extend(defaults);
        Ok(self)
    }

    /// What `INSERT` writes where it says nothing, by column.
    pub(crate) fn defaults(&self) -> &HashMap<String, Expr> {
        &self.defaults
    }

    /// What a column is shown as, if that is a time of day, which the array holds as a span.
    fn time_of_day(&self, column: &str) -> Option<&DataType> {
        let shown = self.schema.field_with_name(column).ok()?.data_type();
        matches!(shown, DataType::Time32(_) | DataType::Time64(_)).then_some(shown)
    }

    /// Where the array lies.
    pub fn place(&self) -> &ArrayHandle {
        &self.place
    }

    /// How it is shown.
    #[must_use]
    pub fn options(&self) -> &TableOptions {
        &self.options
    }

    /// The columns: the array's dimensions, then its attributes.
    #[must_use]
    pub fn columns(&self) -> &Arc<TableColumns> {
        &self.columns
    }

    /// The columns that tell rows apart, by their indices; none of an array with duplicates, or where SQL
    /// takes some coordinates for one.
    #[must_use]
    pub fn key(&self) -> &[usize] {
        &self.key
    }

    /// The array as it was when the table was made.
    #[must_use]
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// The snapshot that a scan reads.
    pub(crate) async fn current(&self) -> Result<Array> {
        if self.options.time.is_some() {
            return Ok(self.array.clone());
        }
        let place = self.place.clone();
        let array = blocking(move || place.open()).await?;
        if array.schema_name() != self.array.schema_name() {
            check_columns(&array, &self.place, &self.columns, self.options.bytes)?;
        }
        // A scan reads it in parts, and aggregates in two steps.
        Ok(array.staying())
    }
}

/// Runs what waits for storage beside the threads that poll.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> azulejo::Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| DataFusionError::External(Box::new(error)))?
        .map_err(external)
}

/// That an array has the columns that a table of it was made with.
///
/// # Errors
/// That it has others.
pub fn check_columns(
    array: &Array,
    place: &ArrayHandle,
    columns: &TableColumns,
    bytes: bool,
) -> Result<()> {
    match TableColumns::of(array, bytes)?.stored_as(columns) {
        true => Ok(()),
        false => Err(DataFusionError::Plan(format!(
            "{}: its schema has changed since the table was made",
            place.uri()
        ))),
    }
}

/// Without duplicates the dimensions are a key, if SQL tells coordinates apart. Columns stand in this
/// order.
fn key_of(array: &Array, columns: &TableColumns, order: &[usize]) -> Vec<usize> {
    let schema = array.schema();
    let mut dimensions = schema.domain.dimensions.iter().enumerate();
    if schema.allows_dups || !dimensions.all(|(d, of)| columns.shows_each(d, of)) {
        return Vec::new();
    }
    let shown = |d| order.iter().position(|index| *index == d);
    (0..schema.domain.ndim()).filter_map(shown).collect()
}

#[async_trait]
impl TableProvider for ArrayTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    // Plans are told of no key. DataFusion 55 takes what is a key of one side of a join for a key of what
    // is grouped behind the join, though it comes there many times, and leaves groups out for it.

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.defaults.get(column)
    }

    fn statistics(&self) -> Option<Statistics> {
        let known = statistics::of_array(&self.array, &self.columns, self.options.unwritten);
        Some(known.project(Some(&self.order)))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match self.told_by_array(filter) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut predicates: Vec<Predicate> = Vec::new();
        for filter in filters {
            let predicate = self.told_by_array(filter);
            predicates.push(predicate.ok_or_else(|| {
                DataFusionError::Plan(format!("{filter} cannot be told by the array alone"))
            })?);
        }
        let array = self.current().await?;
        let mut selection = Selection::of(&predicates, &self.columns, array.schema());
        if array.schema().is_dense() && !self.options.unwritten {
            selection = selection.within_written(&array);
        }
        let parts = match &selection {
            Selection::Nothing => Vec::new(),
            Selection::Cells {
                subarray,
                condition,
            } => {
                let wanted = state.config().target_partitions();
                let cells = match (limit, condition) {
                    (Some(rows), None) => statistics::stored_cells(&array).min(rows as u64),
                    _ => statistics::stored_cells(&array),
                };
                let most = cells / CellsAPartition::of(state.config()) + 1;
                let wanted = wanted.min(usize::try_from(most).unwrap_or(usize::MAX));
                self.split(&array, subarray, wanted).await?
            }
        };
        let projection: Vec<usize> = match projection {
            Some(shown) => shown
                .iter()
                .filter_map(|i| self.order.get(*i).copied())
                .collect(),
            None => self.order.clone(),
        };
        let read = projection.clone();
        let scan = ArrayScan::new(
            array,
            &self.options,
            Arc::clone(&self.columns),
            projection,
            selection,
            parts,
        )?;
        let plan = DataSourceExec::from_data_source(scan.limited(limit));
        self.as_shown(plan, &read)
    }

    async fn insert_into(
        &self,
        _state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.writable("INSERT INTO or UPDATE")?;
        if op == InsertOp::Overwrite {
            return Err(DataFusionError::NotImplemented(format!(
                "{op} of an array: TRUNCATE it first"
            )));
        }
        if op == InsertOp::Replace && self.array.schema().allows_dups {
            return Err(DataFusionError::NotImplemented(format!(
                "{}: a row of an array with duplicates cannot be replaced: INSERT adds another one",
                self.place.uri()
            )));
        }
        self.schema
            .logically_equivalent_names_and_types(&input.schema())?;
        let input = self.in_order_of_the_array(input)?;
        let sink = Arc::new(ArraySink::new(self));
        Ok(Arc::new(DataSinkExec::new(input, sink, None)))
    }

    // `DELETE` and `UPDATE` need sessions of ours: `change_rule` says why.

    async fn truncate(&self, _state: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        self.delete("TRUNCATE", &[], None).await
    }
}

impl ArrayTable {
    /// The plan of an update: its rows are inserted where others lie. Attributes that keep their values
    /// come with them as SQL shows them, and what it cannot show would be lost.
    pub(crate) async fn update(
        &self,
        state: &dyn Session,
        rows: Arc<dyn ExecutionPlan>,
        kept: &[String],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        for column in self.columns.all() {
            let kept = kept.iter().any(|name| name == column.name());
            let hidden = match self.time_of_day(column.name()) {
                Some(shown) => Some(time_of_day::beyond_a_day(column, shown)),
                None => column.hidden(),
            };
            let Some(hidden) = hidden.filter(|_| kept) else {
                continue;
            };
            let array = self.current().await?;
            let mut options = ReadOptions::new().meaning(Meaning::Sql);
            options.condition = Some(hidden);
            let found = blocking(move || array.aggregate(options, &[Aggregate::Count]));
            if found.await? != [AggregateValue::Unsigned(0)] {
                return Err(DataFusionError::Plan(format!(
                    "UPDATE {}: some cells of {} hold times that SQL cannot show, and would lose them; set it too, or change the array otherwise",
                    self.place.uri(),
                    column.name()
                )));
            }
        }
        self.insert_into(state, rows, InsertOp::Append).await
    }

    /// The plan of a delete: nothing is deleted before it runs. `going` finds the coordinates of the
    /// rows, for what an array cannot keep as a condition.
    pub(crate) async fn delete(
        &self,
        statement: &str,
        filters: &[Expr],
        going: Option<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.writable(statement)?;
        let array = self.current().await?;
        let planned = match filters.iter().find(|filter| self.names_time_of_day(filter)) {
            Some(filter) => Planned::Cannot(format!(
                "DELETE FROM {}: an array cannot keep {filter} as the condition of a delete",
                self.place.uri()
            )),
            None => {
                let (columns, filters) = (Arc::clone(&self.columns), filters.to_vec());
                let place = self.place.clone();
                blocking(move || Ok(delete::plan_delete(place, &columns, array, &filters)))
                    .await??
            }
        };
        match (planned, going) {
            (Planned::Nothing, _) => Ok(self.deleting(|| Box::pin(async { Ok(0) }))),
            (Planned::Delete(delete), _) => {
                Ok(self.deleting(move || Box::pin(delete.clone().run())))
            }
            (Planned::Cannot(_), Some(going)) if !self.array.schema().allows_dups => {
                self.delete_found(statement, going)
            }
            (Planned::Cannot(why), _) => Err(DataFusionError::Plan(why)),
        }
    }

    fn deleting(
        &self,
        delete: impl Fn() -> Change + Send + Sync + 'static,
    ) -> Arc<dyn ExecutionPlan> {
        let what = format!("delete from {}", self.place.uri());
        Arc::new(ChangeExec::new(what, delete))
    }

    /// The plan of a delete of the rows whose coordinates a plan finds.
    pub(crate) fn delete_found(
        &self,
        statement: &str,
        going: Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.writable(statement)?;
        let schema = self.array.schema();
        if schema.is_dense() || schema.allows_dups {
            return Err(DataFusionError::NotImplemented(format!(
                "{statement} {}: {}",
                self.place.uri(),
                match schema.is_dense() {
                    true => "cells of dense arrays cannot be deleted",
                    false =>
                        "an array with duplicates takes a condition that it can keep, and nothing else",
                }
            )));
        }
        let sink = Arc::new(DeleteSink::new(self)?);
        Ok(Arc::new(DataSinkExec::new(going, sink, None)))
    }

    /// The predicate that holds for exactly the rows for which a filter is true, if the array alone
    /// can tell which these are.
    fn told_by_array(&self, filter: &Expr) -> Option<Predicate> {
        if self.names_time_of_day(filter) {
            return None;
        }
        let predicate = filters::of_logical(filter, &self.columns)?;
        // Cells that nobody wrote meet no condition, so that ranges are all that can be asked for.
        let told = !self.options.unwritten || {
            let one = std::slice::from_ref(&predicate);
            let selection = Selection::of(one, &self.columns, self.array.schema());
            selection.condition().is_none()
        };
        told.then_some(predicate)
    }

    /// Whether an expression is about a column that is shown as a time of day: the array cannot tell.
    fn names_time_of_day(&self, expr: &Expr) -> bool {
        let columns = expr.column_refs();
        columns
            .iter()
            .any(|column| self.time_of_day(&column.name).is_some())
    }

    /// Columns that were read, by their indices in the array, as the table shows them.
    fn as_shown(
        &self,
        rows: Arc<dyn ExecutionPlan>,
        read: &[usize],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let own = self.columns.schema();
        let is_time = |index: &usize| self.time_of_day(own.field(*index).name()).is_some();
        if !read.iter().any(is_time) {
            return Ok(rows);
        }
        let columns = read.iter().enumerate().map(|(output, index)| {
            let name = own.field(*index).name();
            let expr = Arc::new(Column::new(name, output)) as Arc<dyn PhysicalExpr>;
            let expr = match self.time_of_day(name) {
                Some(shown) => time_of_day::of_span(expr, shown)?,
                None => expr,
            };
            Ok(ProjectionExpr::new(expr, name.clone()))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(ProjectionExec::try_new(columns, rows)?))
    }

    /// Rows of the table with the array's columns in their order, as the array holds them.
    fn in_order_of_the_array(
        &self,
        rows: Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut fields = self.columns.schema().fields().iter();
        if self.order.is_sorted() && fields.all(|field| self.time_of_day(field.name()).is_none()) {
            return Ok(rows);
        }
        let fields = self.columns.schema().fields().iter();
        let columns = fields.map(|field| {
            let index = self.schema.index_of(field.name())?;
            let name = field.name().clone();
            let expr = Arc::new(Column::new(&name, index)) as Arc<dyn PhysicalExpr>;
            let expr = match self.time_of_day(&name) {
                Some(shown) => time_of_day::to_span(expr, shown),
                None => expr,
            };
            Ok(ProjectionExpr::new(expr, name))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(ProjectionExec::try_new(columns, rows)?))
    }

    /// Only the present can be written to.
    pub(crate) fn writable(&self, what: &str) -> Result<()> {
        match self.options.time {
            None => Ok(()),
            Some(_) => Err(DataFusionError::Plan(format!(
                "{what} {}: the table shows the array as it was at a time",
                self.place.uri()
            ))),
        }
    }

    async fn split(
        &self,
        array: &Array,
        subarray: &Subarray,
        parts: usize,
    ) -> Result<Vec<Subarray>> {
        let (array, subarray) = (array.clone(), subarray.clone());
        blocking(move || array.split(&subarray, parts)).await
    }
}
