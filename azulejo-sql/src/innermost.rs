//! Statements within others.

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;

/// What a statement prepares or explains, or the statement itself; `None` of DataFusion's own, such as
/// `COPY`.
pub fn innermost(statement: &mut Statement) -> Option<&mut SqlStatement> {
    match statement {
        Statement::Statement(statement) => Some(within(statement)),
        Statement::Explain(explained) => innermost(&mut explained.statement),
        _ => None,
    }
}

fn within(statement: &mut SqlStatement) -> &mut SqlStatement {
    match statement {
        SqlStatement::Prepare { statement, .. } | SqlStatement::Explain { statement, .. } => {
            within(statement)
        }
        other => other,
    }
}
