//! The SQL that is read: DataFusion's generic dialect, and versions of tables.

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use std::any::TypeId;
use std::cell::Cell;
use std::fmt;

/// How many expressions a text may be taken to begin: however short it is, for each of its bytes, and
/// however long it is.
const TRIES: (u64, u64, u64) = (100_000, 8, 10_000_000);

/// The generic dialect, with `TIMESTAMP AS OF`.
///
/// Where a text is wrong the parser tries words such as `NOT`, `CASE` and `CAST` once more as names, each
/// within all that are around it: twice the time for each of them. So its tries are counted.
pub struct ArrayDialect {
    generic: GenericDialect,
    tries_left: Cell<u64>,
    wanted: Option<Box<dyn Fn() -> bool + Send>>,
}

impl fmt::Debug for ArrayDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrayDialect")
            .field("tries_left", &self.tries_left)
            .finish_non_exhaustive()
    }
}

impl ArrayDialect {
    /// For one text.
    pub fn of(text: &str) -> Self {
        let (least, each, most) = TRIES;
        let wanted = (text.len() as u64).saturating_mul(each);
        Self {
            generic: GenericDialect,
            tries_left: Cell::new(wanted.clamp(least, most)),
            wanted: None,
        }
    }

    /// For who may give up: it is asked at every expression.
    pub fn while_wanted(mut self, wanted: impl Fn() -> bool + Send + 'static) -> Self {
        self.wanted = Some(Box::new(wanted));
        self
    }
}

/// Answers as the generic dialect does, which overrides these.
macro_rules! as_generic {
    ($($name:ident,)*) => {
        $(fn $name(&self) -> bool {
            self.generic.$name()
        })*
    };
}

impl Dialect for ArrayDialect {
    fn dialect(&self) -> TypeId {
        self.generic.dialect()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        self.generic.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.generic.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.generic.is_identifier_part(ch)
    }

    fn supports_table_versioning(&self) -> bool {
        true
    }

    /// `a @> b`, `a -> b` and their like come before comparisons and `IS`, as in PostgreSQL: the generic
    /// dialect takes `a @> b IS NULL` for `a @> (b IS NULL)`.
    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::PgOther => self.generic.prec_value(Precedence::Pipe),
            other => self.generic.prec_value(other),
        }
    }

    fn parse_prefix(&self, _parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if self.wanted.as_ref().is_some_and(|wanted| !wanted()) {
            // Whatever is tried instead ends here, too.
            return Some(Err(ParserError::ParserError("nobody waits for it".into())));
        }
        match self.tries_left.get().checked_sub(1) {
            Some(left) => {
                self.tries_left.set(left);
                None
            }
            None => Some(Err(ParserError::ParserError(
                "expressions within expressions that cannot be understood; are all brackets closed?".into(),
            ))),
        }
    }

    /// `a IS DISTINCT FROM b`: the parser takes all that follows for `b`, an `OR` and what is behind it
    /// too.
    fn parse_infix(
        &self,
        parser: &mut Parser,
        expr: &Expr,
        _precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        use Keyword as K;
        let equal = if parser.parse_keywords(&[K::IS, K::DISTINCT, K::FROM]) {
            false
        } else if parser.parse_keywords(&[K::IS, K::NOT, K::DISTINCT, K::FROM]) {
            true
        } else {
            return None;
        };
        let other = parser.parse_subexpr(self.prec_value(Precedence::Is));
        Some(other.map(|other| {
            let (one, other) = (Box::new(expr.clone()), Box::new(other));
            match equal {
                true => Expr::IsNotDistinctFrom(one, other),
                false => Expr::IsDistinctFrom(one, other),
            }
        }))
    }

    as_generic! {
        supports_unicode_string_literal,
        supports_partition_by_after_order_by,
        supports_array_join_syntax,
        supports_group_by_expr,
        supports_group_by_with_modifier,
        supports_left_associative_joins_without_parens,
        supports_connect_by,
        supports_match_recognize,
        supports_pipe_operator,
        supports_start_transaction_modifier,
        supports_window_function_null_treatment_arg,
        supports_dictionary_syntax,
        supports_window_clause_named_window_reference,
        supports_parenthesized_set_variables,
        supports_select_wildcard_except,
        support_map_literal_syntax,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_extract_comma_syntax,
        supports_create_view_comment_syntax,
        supports_parens_around_table_factor,
        supports_values_as_table_factor,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_limit_comma,
        supports_update_order_by,
        supports_from_first_select,
        supports_projection_trailing_commas,
        supports_asc_desc_in_column_definition,
        supports_try_convert,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_assignment_operator,
        supports_struct_literal,
        supports_empty_projections,
        supports_nested_comments,
        supports_multiline_comment_hints,
        supports_user_host_grantee,
        supports_string_escape_constant,
        supports_array_typedef_with_brackets,
        supports_match_against,
        supports_set_names,
        supports_comma_separated_set_assignments,
        supports_filter_during_aggregation,
        supports_select_wildcard_exclude,
        supports_data_type_signed_suffix,
        supports_interval_options,
        supports_quote_delimited_string,
        supports_select_wildcard_replace,
        supports_select_wildcard_ilike,
        supports_select_wildcard_rename,
        supports_optimize_table,
        supports_install,
        supports_detach,
        supports_prewhere,
        supports_with_fill,
        supports_limit_by,
        supports_interpolate,
        supports_settings,
        supports_select_format,
        supports_comment_optimizer_hint,
        supports_constraint_keyword_without_name,
        supports_key_column_option,
        supports_comma_separated_trim,
        supports_cte_without_as,
        supports_select_item_multi_column_alias,
        supports_xml_expressions,
    }
}
