//! `EXECUTE`: a parameter has the value that it is given, or the statement does not run.
//!
//! DataFusion casts values to the types of parameters, and casts cut: `id < $1` with 1.5 asked for what is
//! below 1.

use crate::error::Result;
use crate::stored;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::DFSchema;
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{LogicalPlan, Prepare, Statement};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The parameters of what a session has prepared, which DataFusion does not tell, if their types are known.
#[derive(Debug, Default)]
pub struct Prepared(Mutex<HashMap<String, Vec<Option<FieldRef>>>>);

impl Prepared {
    /// Those of a session that was built here.
    pub fn of(state: &SessionState) -> Option<Arc<Self>> {
        state.config().get_extension::<Self>()
    }

    /// Keeps what there is to know of a statement that has been prepared.
    ///
    /// # Errors
    /// Parameters of several types.
    pub fn keep(&self, prepare: &Prepare) -> Result<()> {
        let mut fields: Vec<_> = prepare.fields.iter().cloned().map(Some).collect();
        if fields.is_empty() {
            let known = prepare.input.get_parameter_fields()?;
            let numbers = 1..=known.len();
            fields.extend(numbers.map(|number| known.get(&name_of(number)).cloned().flatten()));
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(prepare.name.clone(), fields);
        Ok(())
    }

    /// A plan that tells the types of all its parameters or none, where they are not declared: DataFusion
    /// leaves out those that do not follow from their places, and refuses the statement for their number.
    ///
    /// # Errors
    /// Those of looking at a plan.
    pub fn all_or_none(plan: LogicalPlan) -> Result<LogicalPlan> {
        let mut prepare = match plan {
            LogicalPlan::Statement(Statement::Prepare(prepare)) => prepare,
            plan => return Ok(plan),
        };
        if prepare.input.get_parameter_names()?.len() != prepare.fields.len() {
            prepare.fields.clear();
        }
        Ok(LogicalPlan::Statement(Statement::Prepare(prepare)))
    }

    /// A plan with the values of parameters as they are.
    ///
    /// # Errors
    /// Values that would become others.
    pub fn given(&self, state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
        let mut execute = match plan {
            LogicalPlan::Statement(Statement::Execute(execute)) => execute,
            plan => return Ok(plan),
        };
        let fields = {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.get(&execute.name).cloned().unwrap_or_default()
        };
        let schema = DFSchema::empty();
        let now = SimplifyContext::builder()
            .with_config_options(Arc::clone(state.config_options()))
            .with_current_time()
            .build();
        let simplifier = ExprSimplifier::new(now);
        // Whether they are as many DataFusion looks at.
        let values = execute.parameters.iter_mut().zip(&fields);
        for (number, (value, field)) in values.enumerate() {
            let Some(field) = field else {
                continue;
            };
            let name = name_of(number + 1);
            let kind = field.data_type();
            let mut given = simplifier.coerce(value.clone(), &schema)?;
            if stored::is_written(&given)? {
                given = simplifier.simplify(given)?;
            }
            let given = stored::assigned(given, kind, &schema, &name)?;
            *value = simplifier.simplify(given)?;
        }
        Ok(LogicalPlan::Statement(Statement::Execute(execute)))
    }
}

/// What a parameter is called.
fn name_of(number: usize) -> String {
    format!("${number}")
}
