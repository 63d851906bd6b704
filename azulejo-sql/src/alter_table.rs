//! `ALTER TABLE`: attributes that come and go, which is an evolution of an array's schema.
//!
//! All operations of a statement are one evolution. What a new column's `DEFAULT` is, the array keeps
//! as the attribute's fill value: cells that are older than the attribute have it, and rows that do
//! not name the column.

use crate::create_table::{nothing, reference_of, shaped, storable};
use crate::error::{Result, external};
use crate::external_table::{FILE_TYPE, with_units};
use crate::listing::{altering, replace};
use crate::new_array::refuse_decimals;
use crate::table::{ArrayTable, blocking, check_columns};
use crate::target::array_at;
use azulejo::Array;
use azulejo::arrow::{ArrowFields, ArrowImporter};
use azulejo::column::ColumnType;
use azulejo::format::ArraySchema;
use azulejo::format::schema::{Attribute, SchemaEvolution};
use azulejo::write::optimize::usual_filters;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::common::{DFSchema, ScalarValue, TableReference};
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{CreateExternalTable, Statement};
use datafusion::sql::sqlparser::ast::{
    AlterTable, AlterTableOperation, ColumnDef, ColumnOption, Ident, ObjectName,
    Statement as SqlStatement,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The statement, if it is one of these.
pub fn of(statement: &Statement) -> Option<&AlterTable> {
    match statement {
        Statement::Statement(statement) => match statement.as_ref() {
            SqlStatement::AlterTable(alter) => Some(alter),
            _ => None,
        },
        _ => None,
    }
}

/// Changes the array, and the table that it is in this session.
///
/// # Errors
/// Tables that are no arrays, changes that arrays do not have, and those of evolving.
pub async fn run(session: &SessionContext, alter: &AlterTable) -> Result<DataFrame> {
    let name = &alter.name;
    if alter.location.is_some() || alter.on_cluster.is_some() || alter.table_type.is_some() {
        return Err(DataFusionError::NotImplemented(format!("{alter}")));
    }
    // Each shows what it has made before the next one looks.
    let _altering = altering(session).await;
    let state = session.state();
    let quoted = match name.0.as_slice() {
        [part] => part
            .as_ident()
            .filter(|ident| ident.quote_style == Some('\'')),
        _ => None,
    };
    let by_uri = match quoted {
        Some(ident) => array_at(&state, &ident.value).await?,
        None => None,
    };
    if let Some(table) = by_uri {
        Change::make(&state, &table, alter).await?;
        return nothing(session);
    }
    let reference = reference_of(name)?;
    if !session.table_exist(reference.clone())? {
        return match alter.if_exists {
            true => nothing(session),
            false => Err(DataFusionError::Plan(format!("there is no table {name}"))),
        };
    }
    let provider = session.table_provider(reference.clone()).await?;
    let Some(table) = provider.downcast_ref::<ArrayTable>() else {
        return Err(DataFusionError::NotImplemented(format!(
            "ALTER TABLE {name}: it is no array"
        )));
    };
    let change = Change::make(&state, table, alter).await?;
    if !change.is_nothing() {
        show(session, &reference, table, &change).await?;
    }
    nothing(session)
}

/// Has a session's table show what the array has now.
async fn show(
    session: &SessionContext,
    reference: &TableReference,
    table: &ArrayTable,
    change: &Change,
) -> Result<()> {
    let known = session.table_provider(reference.clone()).await?;
    // Those of groups and folders are opened anew for each statement.
    let is_old = known
        .downcast_ref::<ArrayTable>()
        .is_some_and(|known| known.array().schema_name() == table.array().schema_name());
    if !is_old {
        return Ok(());
    }
    let (place, options) = (table.place().clone(), *table.options());
    let now = blocking(move || Ok(ArrayTable::open(place, options))).await??;
    let stays = |name: &str| !change.dropped.contains(name);
    let old = table.schema();
    let old = old.fields().iter().filter(|field| stays(field.name()));
    let columns: Vec<_> = old.cloned().chain(change.added.iter().cloned()).collect();
    let defaults = table.defaults().iter();
    let defaults = defaults.filter(|(name, _)| stays(name));
    let defaults = defaults.chain(&change.defaults);
    let defaults = defaults.map(|(name, expr)| (name.clone(), expr.clone()));
    let now = now
        .showing_first(&Schema::new(columns))?
        .with_defaults(defaults.collect())?;
    replace(session, reference, Arc::new(now))
}

/// What a statement makes of an array.
#[derive(Debug, Default)]
struct Change {
    evolution: SchemaEvolution,
    /// The new columns as they are declared.
    added: Vec<Arc<Field>>,
    /// What these have where nothing is said. The fill value of a type, such as false, is none of an
    /// attribute's own: only the table knows that it is a default.
    defaults: HashMap<String, Expr>,
    /// Names of columns that go.
    dropped: HashSet<String>,
}

impl Change {
    /// Makes the change that a statement asks for. Whoever else changes the array's schema comes before
    /// or after: what the change depends on is looked at while they wait.
    async fn make(state: &SessionState, table: &ArrayTable, alter: &AlterTable) -> Result<Self> {
        table.writable("ALTER TABLE")?;
        let mut operations = Vec::with_capacity(alter.operations.len());
        for operation in &alter.operations {
            let new = match operation {
                AlterTableOperation::AddColumn { column_def, .. } => {
                    Some(declared(state, column_def).await)
                }
                _ => None,
            };
            operations.push((operation.clone(), new));
        }
        let place = table.place().clone();
        let (columns, bytes) = (Arc::clone(table.columns()), table.options().bytes);
        let made = blocking(move || {
            let hold = place.hold()?;
            let array = place.open()?;
            let planned = check_columns(&array, &place, &columns, bytes)
                .and_then(|()| Self::of(&array, operations));
            if let Ok(change) = &planned
                && !change.is_nothing()
            {
                hold.evolve(&change.evolution, None)?;
            }
            Ok(planned)
        });
        made.await?
    }

    fn of(
        array: &Array,
        operations: Vec<(AlterTableOperation, Option<NewColumn>)>,
    ) -> Result<Self> {
        let mut change = Self::default();
        for (operation, new) in operations {
            change.add(array, &operation, new)?;
        }
        Ok(change)
    }

    /// Whether there is nothing to change.
    fn is_nothing(&self) -> bool {
        self.added.is_empty() && self.dropped.is_empty()
    }

    fn add(
        &mut self,
        array: &Array,
        operation: &AlterTableOperation,
        new: Option<NewColumn>,
    ) -> Result<()> {
        match operation {
            AlterTableOperation::AddColumn {
                if_not_exists,
                column_def,
                column_position,
                ..
            } => {
                let name = column_def.name.value.as_str();
                if column_position.is_some() {
                    return Err(DataFusionError::Plan(
                        "new columns come behind the others".into(),
                    ));
                }
                if has_column(array, name) && !self.dropped.contains(name) {
                    return match if_not_exists {
                        true => Ok(()),
                        false => Err(DataFusionError::Plan(format!(
                            "there is a column {name} already"
                        ))),
                    };
                }
                let new = new.ok_or_else(|| DataFusionError::Internal("a column that is none".into()));
                let (field, attribute, default) = new??;
                let is_same = |old: &Attribute| {
                    old.name == name
                        && old.datatype == attribute.datatype
                        && old.cell_val_num == attribute.cell_val_num
                };
                let mut fragments = array.fragments().iter();
                if fragments.any(|of| of.schema().attributes.iter().any(is_same)) {
                    return Err(DataFusionError::Plan(format!(
                        "{name}: rows that are there still have the column of this name that was dropped, and would show it again: take another name"
                    )));
                }
                let is_filled = attribute.nullable || default.is_some();
                if !is_filled && !array.fragments().is_empty() {
                    return Err(DataFusionError::Plan(format!(
                        "{name} is NOT NULL and has no DEFAULT, which the rows that are there would have"
                    )));
                }
                let default = default.map(|value| Expr::Literal(value, None));
                self.defaults
                    .extend(default.map(|value| (name.to_owned(), value)));
                self.added.push(field);
                self.evolution.add_attributes.push(attribute);
                Ok(())
            }
            AlterTableOperation::DropColumn {
                column_names,
                if_exists,
                ..
            } => {
                for name in column_names {
                    self.drop(array, &name.value, *if_exists)?;
                }
                Ok(())
            }
            AlterTableOperation::RenameColumn { .. } => Err(DataFusionError::NotImplemented(
                "an array's cells are stored under the names of its attributes: ADD COLUMN with the new name, UPDATE it to the old one, then DROP COLUMN"
                    .into(),
            )),
            _ => Err(DataFusionError::NotImplemented(
                "of arrays there are ADD COLUMN and DROP COLUMN".into(),
            )),
        }
    }

    fn drop(&mut self, array: &Array, name: &str, if_exists: bool) -> Result<()> {
        let schema = array.schema();
        let mut dimensions = schema.domain.dimensions.iter();
        if dimensions.any(|dimension| dimension.name == name) {
            return Err(DataFusionError::Plan(format!(
                "{name} is a dimension, which says where rows lie"
            )));
        }
        if !schema.attributes.iter().any(|a| a.name == name) {
            return match if_exists {
                true => Ok(()),
                false => Err(DataFusionError::Plan(format!("there is no column {name}"))),
            };
        }
        if self.dropped.insert(name.to_owned()) {
            self.evolution.drop_attributes.push(name.to_owned());
        }
        Ok(())
    }
}

/// Whether an array has a dimension or attribute of a name.
fn has_column(array: &Array, name: &str) -> bool {
    let schema = array.schema();
    let mut dimensions = schema.domain.dimensions.iter();
    dimensions.any(|dimension| dimension.name == name)
        || schema.attributes.iter().any(|a| a.name == name)
}

/// What [`declared`] gives.
type NewColumn = Result<(Arc<Field>, Attribute, Option<ScalarValue>)>;

/// A column as it is declared, the attribute that holds its values, and its default, if that is another
/// than null.
async fn declared(state: &SessionState, column: &ColumnDef) -> NewColumn {
    let known = |option: &ColumnOption| {
        matches!(
            option,
            ColumnOption::Null | ColumnOption::NotNull | ColumnOption::Default(_)
        )
    };
    if let Some(other) = column.options.iter().find(|o| !known(&o.option)) {
        return Err(DataFusionError::NotImplemented(format!(
            "{other}: a new column may be NOT NULL, and have a DEFAULT"
        )));
    }
    // As a statement that declares it and nothing else is planned.
    let create = CreateExternalTable {
        name: ObjectName::from(vec![Ident::new("altered")]),
        columns: vec![column.clone()],
        file_type: FILE_TYPE.into(),
        locations: vec!["mem://altered".into()],
        table_partition_cols: Vec::new(),
        order_exprs: Vec::new(),
        if_not_exists: false,
        or_replace: false,
        temporary: false,
        unbounded: false,
        options: Vec::new(),
        constraints: Vec::new(),
    };
    let planned = state
        .statement_to_plan(with_units(Statement::CreateExternalTable(create)))
        .await?;
    let LogicalPlan::Ddl(DdlStatement::CreateExternalTable(planned)) = planned else {
        return Err(DataFusionError::Internal("a column without a plan".into()));
    };
    let shown = Arc::clone(planned.schema.inner());
    let field = shown.fields().first().cloned();
    let field = field.ok_or_else(|| DataFusionError::Internal("a column that is none".into()))?;
    let mut attribute = attribute_of(&shown)?;
    let default = match planned.column_defaults.get(field.name()) {
        Some(default) => Some(constant(state, default)?.cast_to(field.data_type())?),
        None => None,
    };
    let default = default.filter(|value| !value.is_null());
    if let Some(value) = &default {
        attribute.fill_value = fill_value(&attribute, &shown, value)?;
        attribute.fill_validity = attribute.nullable;
    }
    Ok((field, attribute, default))
}

/// The attribute of the only column of a schema.
fn attribute_of(schema: &Schema) -> Result<Attribute> {
    let stored = storable(schema);
    stored
        .fields()
        .iter()
        .try_for_each(|field| refuse_decimals(field))?;
    // Any array that has such a column, and a dimension of another name.
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let other = format!("{}_", names.collect::<String>());
    let new = ArraySchema::sparse()
        .dimension(other, 0i32..=1, 1)
        .arrow_fields(&stored)
        .map_err(external)?
        .build();
    let new = new.map_err(|error| DataFusionError::Plan(error.to_string()))?;
    let attribute = new.schema.attributes.into_iter().next();
    let attribute =
        attribute.ok_or_else(|| DataFusionError::Internal("a column without values".into()))?;
    Ok(Attribute {
        filters: usual_filters(attribute.datatype, attribute.cell_val_num),
        ..attribute
    })
}

/// The value of a default, which must not depend on when it is looked at.
fn constant(state: &SessionState, default: &Expr) -> Result<ScalarValue> {
    let context = SimplifyContext::builder()
        .with_config_options(Arc::clone(state.config_options()))
        .build();
    let simplifier = ExprSimplifier::new(context);
    let coerced = simplifier.coerce(default.clone(), &DFSchema::empty())?;
    match simplifier.simplify(coerced)? {
        Expr::Literal(value, _) => Ok(value),
        other => Err(DataFusionError::Plan(format!(
            "DEFAULT {other}: the rows that are there have it too, so it must be constant"
        ))),
    }
}

/// A value as a cell holds it.
fn fill_value(attribute: &Attribute, shown: &Arc<Schema>, value: &ScalarValue) -> Result<Vec<u8>> {
    let row = RecordBatch::try_new(Arc::clone(shown), vec![value.to_array_of_size(1)?])?;
    let row = shaped(&row, &Arc::new(storable(shown)))?;
    let column_type = ColumnType::new(attribute.name.as_str(), attribute.datatype)
        .with_cell_val_num(attribute.cell_val_num);
    let cells = ArrowImporter::new([column_type])
        .convert(&row)
        .map_err(external)?;
    let cell = cells.columns.first();
    match cell.map(|column| column.view().cell(0).to_vec()) {
        Some(cell) if !cell.is_empty() => Ok(cell),
        _ => Err(DataFusionError::Plan(
            "an array keeps no empty text as a default: leave it out, or take another".into(),
        )),
    }
}
