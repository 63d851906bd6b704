//! From SQL expressions to predicates: logical ones, which `WHERE` hands to a scan, and physical
//! ones, which joins and top-k hand to it while it runs.

use crate::columns::{Stored, TableColumns};
use crate::predicate::Predicate;
use azulejo::condition::Comparison;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Operator, expr};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, Literal, NotExpr,
};
use std::sync::Arc;

/// The predicate that holds for exactly the rows for which a logical expression is true; `None` if
/// the array cannot tell.
pub fn of_logical(expr: &Expr, columns: &TableColumns) -> Option<Predicate> {
    Logical { columns }.convert(expr, false)
}

/// What of a physical expression an array can tell: a predicate that holds at least where the
/// expression is true. Columns are found by their names.
pub fn implied_by(expr: &Arc<dyn PhysicalExpr>, columns: &TableColumns) -> Predicate {
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>()
        && *binary.op() == Operator::And
    {
        let sides = [binary.left(), binary.right()];
        return Predicate::all(sides.map(|side| implied_by(side, columns)));
    }
    let exact = Physical { columns }.convert(expr, false);
    exact.unwrap_or(Predicate::Constant(true))
}

/// The comparison that an operator is, turned around if its sides are, negated if it is.
fn comparison(op: Operator, flipped: bool, negate: bool) -> Option<Comparison> {
    let op = if flipped { op.swap()? } else { op };
    let op = match op {
        Operator::Eq => Comparison::Eq,
        Operator::NotEq => Comparison::Ne,
        Operator::Lt => Comparison::Lt,
        Operator::LtEq => Comparison::Le,
        Operator::Gt => Comparison::Gt,
        Operator::GtEq => Comparison::Ge,
        _ => return None,
    };
    Some(if negate { op.negated() } else { op })
}

/// `and` or `or` of two sides, which negation turns into each other.
fn connect(op: Operator, negate: bool, sides: [Predicate; 2]) -> Predicate {
    if (op == Operator::And) != negate {
        Predicate::all(sides)
    } else {
        Predicate::any(sides)
    }
}

/// A literal truth value.
fn constant(value: &ScalarValue, negate: bool) -> Option<Predicate> {
    match value {
        ScalarValue::Boolean(Some(truth)) => Some(Predicate::Constant(*truth != negate)),
        ScalarValue::Boolean(None) | ScalarValue::Null => Some(Predicate::Constant(false)),
        _ => None,
    }
}

/// A column that is a truth value itself.
fn truth(columns: &TableColumns, column: usize, negate: bool) -> Option<Predicate> {
    let is_bool = columns.get(column)?.stored == Stored::Bool;
    is_bool.then(|| Predicate::truth(column, !negate))
}

struct Logical<'a> {
    columns: &'a TableColumns,
}

impl Logical<'_> {
    fn column(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Column(column) => self.columns.index_of(&column.name),
            _ => None,
        }
    }

    fn convert(&self, expr: &Expr, negate: bool) -> Option<Predicate> {
        let columns = self.columns;
        match expr {
            Expr::Column(_) => truth(columns, self.column(expr)?, negate),
            Expr::Literal(value, _) => constant(value, negate),
            Expr::Not(inner) => self.convert(inner, !negate),
            Expr::BinaryExpr(expr::BinaryExpr { left, op, right }) => match op {
                Operator::And | Operator::Or => {
                    let sides = [self.convert(left, negate)?, self.convert(right, negate)?];
                    Some(connect(*op, negate, sides))
                }
                op => {
                    let (column, literal, flipped) = match (&**left, &**right) {
                        (column, Expr::Literal(literal, _)) => (column, literal, false),
                        (Expr::Literal(literal, _), column) => (column, literal, true),
                        _ => return None,
                    };
                    let op = comparison(*op, flipped, negate)?;
                    Predicate::compare(columns, self.column(column)?, op, literal)
                }
            },
            Expr::Between(expr::Between {
                expr,
                negated,
                low,
                high,
            }) => {
                let (Expr::Literal(low, _), Expr::Literal(high, _)) = (&**low, &**high) else {
                    return None;
                };
                let column = self.column(expr)?;
                let compare = |op, literal| Predicate::compare(columns, column, op, literal);
                Some(if *negated == negate {
                    let (low, high) = (
                        compare(Comparison::Ge, low)?,
                        compare(Comparison::Le, high)?,
                    );
                    Predicate::all([low, high])
                } else {
                    let (low, high) = (
                        compare(Comparison::Lt, low)?,
                        compare(Comparison::Gt, high)?,
                    );
                    Predicate::any([low, high])
                })
            }
            Expr::InList(expr::InList {
                expr,
                list,
                negated,
            }) => {
                let literal = |item: &Expr| match item {
                    Expr::Literal(value, _) => Some(value.clone()),
                    _ => None,
                };
                let list = list.iter().map(literal).collect::<Option<Vec<_>>>()?;
                Predicate::is_in(columns, self.column(expr)?, &list, *negated != negate)
            }
            Expr::IsNull(inner) => Predicate::is_null(columns, self.column(inner)?, negate),
            Expr::IsNotNull(inner) => Predicate::is_null(columns, self.column(inner)?, !negate),
            Expr::Like(like) => self.like(like, negate),
            Expr::ScalarFunction(call) if call.func.name() == "starts_with" && !negate => {
                let [text, Expr::Literal(prefix, _)] = call.args.as_slice() else {
                    return None;
                };
                let prefix = prefix.try_as_str()??;
                Predicate::starts_with(columns, self.column(text)?, prefix)
            }
            _ => None,
        }
    }

    /// `LIKE 'x%'`, and patterns without wildcards.
    fn like(&self, like: &expr::Like, negate: bool) -> Option<Predicate> {
        let plain = !like.case_insensitive && like.escape_char.is_none();
        let Expr::Literal(pattern, _) = &*like.pattern else {
            return None;
        };
        let pattern = pattern.try_as_str()??;
        if !plain || like.negated != negate || pattern.contains(['_', '\\']) {
            return None;
        }
        let column = self.column(&like.expr)?;
        match pattern.split_once('%') {
            Some((prefix, "")) => Predicate::starts_with(self.columns, column, prefix),
            Some(_) => None,
            None => {
                let literal = ScalarValue::from(pattern);
                let is_text = self.columns.get(column)?.stored == Stored::Text;
                is_text
                    .then(|| Predicate::compare(self.columns, column, Comparison::Eq, &literal))?
            }
        }
    }
}

struct Physical<'a> {
    columns: &'a TableColumns,
}

impl Physical<'_> {
    fn column(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
        let column = expr.downcast_ref::<Column>()?;
        self.columns.index_of(column.name())
    }

    fn convert(&self, expr: &Arc<dyn PhysicalExpr>, negate: bool) -> Option<Predicate> {
        let columns = self.columns;
        let literal = |expr: &Arc<dyn PhysicalExpr>| {
            let literal = expr.downcast_ref::<Literal>()?;
            Some(literal.value().clone())
        };
        if let Some(value) = literal(expr) {
            return constant(&value, negate);
        }
        if let Some(column) = self.column(expr) {
            return truth(columns, column, negate);
        }
        if let Some(not) = expr.downcast_ref::<NotExpr>() {
            return self.convert(not.arg(), !negate);
        }
        if let Some(null) = expr.downcast_ref::<IsNullExpr>() {
            return Predicate::is_null(columns, self.column(null.arg())?, negate);
        }
        if let Some(null) = expr.downcast_ref::<IsNotNullExpr>() {
            return Predicate::is_null(columns, self.column(null.arg())?, !negate);
        }
        if let Some(list) = expr.downcast_ref::<InListExpr>() {
            let column = self.column(list.expr())?;
            let values = list
                .list()
                .iter()
                .map(literal)
                .collect::<Option<Vec<_>>>()?;
            return Predicate::is_in(columns, column, &values, list.negated() != negate);
        }
        let binary = expr.downcast_ref::<BinaryExpr>()?;
        let (left, right) = (binary.left(), binary.right());
        match binary.op() {
            op @ (Operator::And | Operator::Or) => {
                let sides = [self.convert(left, negate)?, self.convert(right, negate)?];
                Some(connect(*op, negate, sides))
            }
            op => {
                let (column, literal, flipped) = match (literal(left), literal(right)) {
                    (None, Some(literal)) => (left, literal, false),
                    (Some(literal), None) => (right, literal, true),
                    _ => return None,
                };
                let op = comparison(*op, flipped, negate)?;
                Predicate::compare(columns, self.column(column)?, op, &literal)
            }
        }
    }
}
