//! Times beside moments that lie between two of their ticks.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Between, BinaryExpr};
use datafusion::logical_expr::{Expr, Operator, binary_expr, lit};

/// How many ticks of a unit one of a type of time has, where that is no finer.
pub fn ratio(kind: &DataType, unit: TimeUnit) -> Option<i64> {
    match kind {
        DataType::Date32 => Some(86_400 * ticks_a_second(unit)),
        DataType::Timestamp(own, None) => Some(ticks_a_second(unit) / ticks_a_second(*own)),
        _ => None,
    }
    .filter(|ratio| *ratio > 0)
}

fn ticks_a_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// A time that is compared with moments of a unit as fine as its own, or finer.
pub struct Coarse<'a> {
    pub expr: &'a Expr,
    /// Its type.
    pub kind: DataType,
    /// How many ticks of that unit one of its own has.
    pub ratio: i64,
}

/// What a time is compared with.
pub enum Moment {
    /// One of its ticks.
    At(i64),
    /// What lies between a tick and the next.
    Behind(i64),
}

impl Coarse<'_> {
    /// A tick as a value; none beyond the type.
    pub fn tick(&self, tick: i64) -> Option<Expr> {
        Some(lit(match &self.kind {
            DataType::Date32 => ScalarValue::Date32(Some(i32::try_from(tick).ok()?)),
            DataType::Timestamp(TimeUnit::Second, None) => {
                ScalarValue::TimestampSecond(Some(tick), None)
            }
            DataType::Timestamp(TimeUnit::Millisecond, None) => {
                ScalarValue::TimestampMillisecond(Some(tick), None)
            }
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                ScalarValue::TimestampMicrosecond(Some(tick), None)
            }
            DataType::Timestamp(TimeUnit::Nanosecond, None) => {
                ScalarValue::TimestampNanosecond(Some(tick), None)
            }
            _ => return None,
        }))
    }

    /// What a moment of the finer unit is on the scale of this time. Whatever lies beyond that scale
    /// lies between its end and nothing.
    pub fn moment(&self, ticks: i128) -> Moment {
        let ratio = i128::from(self.ratio);
        match i64::try_from(ticks.div_euclid(ratio)) {
            Ok(tick) if ticks.rem_euclid(ratio) == 0 => Moment::At(tick),
            Ok(tick) => Moment::Behind(tick),
            Err(_) if ticks < 0 => Moment::Behind(i64::MIN),
            Err(_) => Moment::Behind(i64::MAX),
        }
    }

    /// The comparison with a moment.
    pub fn compared(&self, op: Operator, moment: &Moment) -> Option<Expr> {
        let with = |op, tick| Some(binary_expr(self.expr.clone(), op, self.tick(tick)?));
        let tick = match moment {
            Moment::At(tick) => return with(op, *tick),
            Moment::Behind(tick) => *tick,
        };
        let before = || with(Operator::LtEq, tick);
        let after = || with(Operator::Gt, tick);
        Some(match op {
            Operator::Lt | Operator::LtEq => before()?,
            Operator::Gt | Operator::GtEq => after()?,
            // Null where the time is.
            Operator::Eq => before()?.and(after()?),
            Operator::NotEq => before()?.or(after()?),
            Operator::IsDistinctFrom => lit(true),
            Operator::IsNotDistinctFrom => lit(false),
            _ => return None,
        })
    }
}

/// What tells times from moments that they are compared with.
pub trait Beside {
    /// The time that an expression is.
    fn coarse<'a>(&self, expr: &'a Expr) -> Option<Coarse<'a>>;

    /// The moment that an expression is, in ticks of the unit that the time's ratio has.
    fn ticks(&self, time: &Coarse<'_>, other: &Expr) -> Option<i128>;
}

/// What a comparison of two sides, or `BETWEEN`, becomes, if it is one of a time with moments.
pub fn told(beside: &impl Beside, expr: &Expr) -> Option<Expr> {
    let compared = |time: &Coarse<'_>, op, other: &Expr| {
        time.compared(op, &time.moment(beside.ticks(time, other)?))
    };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let compares = matches!(
                op,
                Operator::Eq
                    | Operator::NotEq
                    | Operator::Lt
                    | Operator::LtEq
                    | Operator::Gt
                    | Operator::GtEq
                    | Operator::IsDistinctFrom
                    | Operator::IsNotDistinctFrom
            );
            if !compares {
                return None;
            }
            let told = |time, op, other| compared(&beside.coarse(time)?, op, other);
            told(left, *op, right).or_else(|| told(right, op.swap()?, left))
        }
        Expr::Between(Between {
            expr,
            negated,
            low,
            high,
        }) => {
            let time = beside.coarse(expr)?;
            let ends = [(Operator::GtEq, low), (Operator::LtEq, high)];
            let ends = ends.map(|(op, end)| (op, end, compared(&time, op, end)));
            if ends.iter().all(|(_, _, told)| told.is_none()) {
                return None;
            }
            let [low, high] = ends.map(|(op, end, told)| {
                let as_it_is = || binary_expr(expr.as_ref().clone(), op, end.as_ref().clone());
                told.unwrap_or_else(as_it_is)
            });
            let within = low.and(high);
            Some(if *negated { !within } else { within })
        }
        _ => None,
    }
}
