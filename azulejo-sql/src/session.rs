//! Sessions that know arrays.

use crate::aggregate::AggregateRule;
use crate::alter_table;
use crate::change_rule::ChangeRule;
use crate::create_table::{self, NewArrayOfRows};
use crate::default_values;
use crate::dialect::ArrayDialect;
use crate::error::Result;
use crate::exact_rule::ExactRule;
use crate::external_table::{ArrayTableFactory, FILE_TYPE, refuse_column_options, with_units};
use crate::extremes;
use crate::forgotten;
use crate::functions;
use crate::label_rule::LabelRule;
use crate::listing::with_urls;
use crate::membership_rule::MembershipRule;
use crate::prepared::Prepared;
use crate::set_rule::SetRule;
use crate::target::{TablesOnly, with_target};
use crate::tile_rule::TileRule;
use crate::time_rule::TimeRule;
use crate::time_rule::far::FarTimeRule;
use crate::time_travel::ArrayRelations;
use crate::yield_rule::YieldRule;
use azulejo::Context;
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::planner::RelationPlanner;
use datafusion::logical_expr::{LogicalPlan, Statement as PlanStatement};
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use std::collections::VecDeque;
use std::sync::Arc;

/// A session of DataFusion's with everything that this crate adds.
///
/// Names keep their letter case: those of arrays' fields do.
#[must_use]
pub fn session(context: &Context) -> SessionContext {
    session_with(context, SessionConfig::new().with_information_schema(true))
}

/// As [`session`], with settings of the caller's.
#[must_use]
pub fn session_with(context: &Context, config: SessionConfig) -> SessionContext {
    session_in(context, config, Arc::default())
}

/// As [`session_with`], within bounds of the caller's, such as those on memory.
#[must_use]
pub fn session_in(
    context: &Context,
    config: SessionConfig,
    environment: Arc<RuntimeEnv>,
) -> SessionContext {
    of_state(builder(context, config, environment).build())
}

/// A session whose queries read the tables that are registered in it, and nothing else: no text of
/// theirs is taken for a URI. The default catalog is `azulejo`, its default schema `public`.
///
/// That holds for queries. Statements that name places, such as `CREATE EXTERNAL TABLE` and `COPY`,
/// are for whoever runs statements to refuse.
#[must_use]
pub fn session_of_tables(
    context: &Context,
    config: SessionConfig,
    environment: Arc<RuntimeEnv>,
) -> SessionContext {
    let config = config.with_default_catalog_and_schema("azulejo", "public");
    let config = config.with_extension(Arc::new(TablesOnly));
    let relations: Vec<Arc<dyn RelationPlanner>> =
        vec![Arc::new(ArrayRelations::of_tables(context))];
    let state = builder(context, config, environment).with_relation_planners(relations);
    with_functions(SessionContext::new_with_state(state.build()))
}

/// What sessions that know arrays are built of.
pub fn builder(
    context: &Context,
    config: SessionConfig,
    environment: Arc<RuntimeEnv>,
) -> SessionStateBuilder {
    // A filter that `min` and `max` learn leaves out rows that others beside them want, or their own
    // `FILTER`, or partitions that have had nulls alone (apache/datafusion#24816).
    let min_max_filters = "datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown";
    let config = config
        .set_bool("datafusion.sql_parser.enable_ident_normalization", false)
        .set_bool(min_max_filters, false)
        .with_extension(Arc::new(context.clone()))
        .with_extension(Arc::new(Prepared::default()));
    // What types must not yet be alike for comes before the rules that make them so.
    let mut analyzer = vec![Arc::new(FarTimeRule) as Arc<dyn AnalyzerRule + Send + Sync>];
    analyzer.extend(Analyzer::new().rules);
    SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(environment)
        .with_default_features()
        .with_analyzer_rules(analyzer)
        .with_analyzer_rule(Arc::new(TileRule))
        .with_analyzer_rule(Arc::new(TimeRule))
        .with_analyzer_rule(Arc::new(SetRule))
        .with_analyzer_rule(Arc::new(MembershipRule))
        .with_analyzer_rule(Arc::new(ExactRule))
        .with_analyzer_rule(Arc::new(ChangeRule))
        .with_optimizer_rule(Arc::new(LabelRule))
        .with_physical_optimizer_rule(Arc::new(AggregateRule))
        .with_physical_optimizer_rule(Arc::new(YieldRule))
        .with_relation_planners(vec![Arc::new(ArrayRelations::new(context))])
        .with_table_factory(FILE_TYPE.into(), Arc::new(ArrayTableFactory::new(context)))
}

/// The session of a state, with the functions that arrays ask for.
pub fn of_state(state: SessionState) -> SessionContext {
    with_functions(with_urls(SessionContext::new_with_state(state)))
}

fn with_functions(session: SessionContext) -> SessionContext {
    for function in functions::all() {
        session.register_udf(function);
    }
    for function in extremes::all() {
        session.register_udaf(function);
    }
    session
}

/// Runs the statements of a text, one after another, and gives the last one's rows; the others are
/// run to their end.
///
/// It reads what [`SessionContext::sql`] reads, `TIMESTAMP AS OF`, and URIs in quotes as the targets
/// of changes.
///
/// # Errors
/// Text that is no SQL, and whatever goes wrong.
pub async fn sql(session: &SessionContext, text: &str) -> Result<Option<DataFrame>> {
    let mut last: Option<DataFrame> = None;
    for statement in statements(text)? {
        if let Some(before) = last.take() {
            before.collect().await?;
        }
        last = Some(run(session, statement).await?);
    }
    Ok(last)
}

/// The statements of a text.
///
/// # Errors
/// Text that is no SQL, and clauses that plans would forget in silence.
pub fn statements(text: &str) -> Result<VecDeque<Statement>> {
    read(text, &ArrayDialect::of(text))
}

/// As [`statements`], for who may give up meanwhile: of a long text that is wrong the parser takes a
/// minute to find out. It asks before each expression whether it is to go on.
///
/// # Errors
/// As those of [`statements`]; that it is not wanted any longer.
pub fn statements_while(
    text: &str,
    wanted: impl Fn() -> bool + Send + 'static,
) -> Result<VecDeque<Statement>> {
    read(text, &ArrayDialect::of(text).while_wanted(wanted))
}

fn read(text: &str, dialect: &ArrayDialect) -> Result<VecDeque<Statement>> {
    let mut parser = DFParserBuilder::new(text).with_dialect(dialect).build()?;
    let statements = parser.parse_statements()?;
    statements.iter().try_for_each(forgotten::refuse)?;
    Ok(statements)
}

/// Whether a text ends a statement: with a semicolon that is no part of a comment, a text or a name.
#[must_use]
pub fn ends_statement(text: &str) -> bool {
    // Of many lines only those are looked at that may be the last.
    if !text.contains(';') {
        return false;
    }
    match Tokenizer::new(&ArrayDialect::of(text), text).tokenize() {
        Ok(tokens) => {
            let mut said = tokens.iter().rev();
            // Comments are white space.
            let last = said.find(|token| !matches!(token, Token::Whitespace(_)));
            last == Some(&Token::SemiColon)
        }
        // What has begun may end in the next line. What else is wrong, whoever runs it is told.
        Err(error) => {
            let open = ["Unterminated", "EOF"];
            !open.iter().any(|sign| error.message.contains(sign)) && text.trim_end().ends_with(';')
        }
    }
}

/// Plans a statement; its rows come when they are asked for.
///
/// # Errors
/// Names that do not exist, and whatever else cannot be planned.
pub async fn run(session: &SessionContext, statement: Statement) -> Result<DataFrame> {
    if create_table::makes_array(&statement) {
        return NewArrayOfRows::of(statement)?.plan(session).await;
    }
    if let Statement::Explain(explained) = &statement
        && create_table::makes_array(&explained.statement)
    {
        return Err(DataFusionError::NotImplemented(
            "EXPLAIN of what makes an array: EXPLAIN the query that gives its rows".into(),
        ));
    }
    if let Some(alter) = alter_table::of(&statement) {
        return alter_table::run(session, alter).await;
    }
    refuse_column_options(&statement)?;
    let statement = with_units(statement);
    let state = with_target(session.state(), &statement).await?;
    let declares = match &statement {
        Statement::Statement(inner) => match inner.as_ref() {
            SqlStatement::Prepare { data_types, .. } => !data_types.is_empty(),
            _ => false,
        },
        _ => false,
    };
    let mut plan = default_values::plan(&state, statement).await?;
    if !declares {
        plan = Prepared::all_or_none(plan)?;
    }
    let Some(prepared) = Prepared::of(&state) else {
        return session.execute_logical_plan(plan).await;
    };
    plan = prepared.given(&state, plan)?;
    let prepares = match &plan {
        LogicalPlan::Statement(PlanStatement::Prepare(prepare)) => Some(prepare.clone()),
        _ => None,
    };
    let ran = session.execute_logical_plan(plan).await?;
    if let Some(prepare) = prepares {
        prepared.keep(&prepare)?;
    }
    Ok(ran)
}

#[cfg(test)]
mod tests {
    use super::{ends_statement, statements, statements_while};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// An expression within others, so deep.
    fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
        format!(
            "SELECT {}{inner}{}",
            open.repeat(depth),
            close.repeat(depth)
        )
    }

    #[test]
    fn what_is_nested_deeply_and_wrong_is_refused_at_once() {
        // Each level doubles the time of who tries all there is: none of these would end.
        for (open, close) in [
            ("NOT (", ")"),
            ("CASE WHEN true THEN ", " END"),
            ("CAST(", " AS INT)"),
            ("ARRAY[", "]"),
            ("position(", ")"),
        ] {
            for (inner, depth) in [("true true", 40), ("true", 70)] {
                let text = nested(open, inner, close, depth);
                assert!(statements(&text).is_err(), "{text}");
            }
        }
        for (open, close, depth) in [
            ("NOT (", ")", 20),
            ("CASE WHEN true THEN ", " END", 40),
            ("CAST(", " AS INT)", 40),
            ("(", ")", 40),
        ] {
            let text = nested(open, "1", close, depth);
            statements(&text).expect(&text);
        }
        let many = format!(
            "SELECT {}",
            vec!["CASE WHEN 1 = 1 THEN 2 END"; 20_000].join(", ")
        );
        statements(&many).expect("many expressions");
    }

    #[test]
    fn who_gives_up_waits_for_no_parser() {
        let text = nested("NOT (", "true true", ")", 40);
        let asked = Arc::new(AtomicUsize::new(0));
        let times = Arc::clone(&asked);
        let wanted = move || times.fetch_add(1, Ordering::SeqCst) < 10;
        assert!(statements_while(&text, wanted).is_err());
        // On its way out it begins what it would try instead.
        let times = asked.load(Ordering::SeqCst);
        assert!(times < 1000, "{times}");
        assert!(statements_while("SELECT 1 + 2", || true).is_ok());
    }

    #[test]
    fn subqueries_that_would_be_planned_for_minutes_are_refused() {
        let within = |depth: usize| {
            (0..depth).fold("SELECT 1".to_owned(), |query, _| {
                format!("SELECT ({query})")
            })
        };
        assert!(statements(&within(16)).is_ok());
        let error = statements(&within(18)).expect_err("too deep").to_string();
        assert!(error.contains("subqueries"), "{error}");
        let many = |depth: usize, times: usize| {
            format!(
                "SELECT {}",
                vec![format!("({})", within(depth)); times].join(", ")
            )
        };
        assert!(statements(&many(3, 2_000)).is_ok());
        assert!(statements(&many(14, 20)).is_err());
    }

    #[test]
    fn semicolons_end_statements_where_they_are_some() {
        for text in [
            "SELECT 1;",
            "SELECT 1; \n",
            "SELECT ';';",
            "SELECT 1; -- done",
            "SELECT 1 -- one\n;",
            "SELECT \"a;b\" /* ; */ ;",
        ] {
            assert!(ends_statement(text), "{text}");
        }
        for text in [
            "",
            "SELECT 1",
            "DELETE FROM t -- WHERE id = 5;\n",
            "SELECT 'a;\n",
            "SELECT \"a;\n",
            "SELECT 1 /* ;\n",
            "SELECT 1 /* ; */",
        ] {
            assert!(!ends_statement(text), "{text}");
        }
    }
}
