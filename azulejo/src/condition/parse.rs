//! Conditions as text.

use super::bind::unknown_field;
use super::like::{Pattern, successor};
use super::literal::{BetweenValues, Literal, literal, quoted};
use super::token::{Token, is_keyword, is_word, syntax_error, tokenize};
use super::{Comparison, Condition, EnumerationLookup, FieldRef, Form, bind};
use crate::error::{Error, Result};
use azulejo_format::schema::Enumeration;
use azulejo_format::{ArraySchema, CellValNum, Datatype};
use std::sync::Arc;

/// Deeper than anyone nests, and no trouble for the stack.
const MAX_DEPTH: usize = 128;

/// Reads a condition; [`Snapshot::condition`](crate::array::Snapshot::condition) says how it is
/// written.
pub(crate) fn parse(
    text: &str,
    schema: &ArraySchema,
    enumerations: EnumerationLookup<'_>,
) -> Result<Condition> {
    let mut parser = Parser {
        text,
        tokens: tokenize(text)?,
        next: 0,
        schema,
        enumerations,
    };
    let condition = parser.either(0)?;
    match parser.peek() {
        Token::End => Ok(condition),
        _ => Err(parser.unexpected("`and`, `or` or the end")),
    }
}

/// What literals are compared with a field: the field's own type or that of its labels.
#[derive(Clone)]
struct Operand {
    field: FieldRef,
    datatype: Datatype,
    cell_val_num: CellValNum,
}

impl Operand {
    /// Where a number lies that the field's single values cannot be.
    fn beside(&self, value: &Literal) -> Option<BetweenValues> {
        let is_one = self.cell_val_num == CellValNum::ONE && self.datatype != Datatype::Bool;
        is_one.then(|| value.beside(self.datatype))?
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token)>,
    next: usize,
    schema: &'a ArraySchema,
    enumerations: EnumerationLookup<'a>,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.tokens
            .get(self.next)
            .map_or(&Token::End, |(_, token)| token)
    }

    fn at(&self) -> usize {
        self.tokens
            .get(self.next)
            .map_or(self.text.len(), |(at, _)| *at)
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    fn eat(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        self.next += usize::from(found);
        found
    }

    fn eat_keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(w) if w.eq_ignore_ascii_case(keyword));
        self.next += usize::from(found);
        found
    }

    fn error(&self, at: usize, what: &str) -> Error {
        syntax_error(self.text, at, what)
    }

    fn unexpected(&self, wanted: &str) -> Error {
        let what = if *self.peek() == Token::End {
            "the condition ends too early"
        } else {
            "this is out of place"
        };
        self.error(self.at(), &format!("{what}: expected {wanted}"))
    }

    fn either(&mut self, depth: usize) -> Result<Condition> {
        let first = self.both(depth)?;
        if *self.peek() != Token::Or {
            return Ok(first);
        }
        let mut any = vec![first];
        while self.eat(&Token::Or) {
            any.push(self.both(depth)?);
        }
        Ok(Condition::Or(any))
    }

    fn both(&mut self, depth: usize) -> Result<Condition> {
        let first = self.one(depth)?;
        if *self.peek() != Token::And {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.eat(&Token::And) {
            all.push(self.one(depth)?);
        }
        Ok(Condition::And(all))
    }

    fn one(&mut self, depth: usize) -> Result<Condition> {
        if depth > MAX_DEPTH {
            return Err(self.error(self.at(), "this is nested too deep"));
        }
        if self.eat(&Token::Not) {
            return Ok(Condition::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.eat(&Token::Open) {
            let inner = self.either(depth + 1)?;
            if !self.eat(&Token::Close) {
                return Err(self.unexpected("a closing parenthesis"));
            }
            return Ok(inner);
        }
        let after = self
            .tokens
            .get(self.next + 1)
            .map_or(&Token::End, |(_, token)| token);
        let (value, ends) = (self.peek().clone(), !matches!(after, Token::Compare(_)));
        if let (Token::Literal(Literal::Bool(value)), true) = (&value, ends) {
            self.next += 1;
            return Ok(if *value {
                Condition::And(vec![])
            } else {
                Condition::Or(vec![])
            });
        }
        self.test()
    }

    /// A comparison, a set test or a null test.
    fn test(&mut self) -> Result<Condition> {
        let third = self
            .tokens
            .get(self.next + 2)
            .map_or(&Token::End, |(_, token)| token);
        let flipped = match (self.peek(), third) {
            (Token::Literal(Literal::Text(_)), Token::Word(_) | Token::Name(_)) => {
                matches!(self.tokens.get(self.next + 1), Some((_, Token::Compare(_))))
            }
            (Token::Literal(Literal::Text(_)), _) => false,
            (Token::Literal(_), _) => true,
            _ => false,
        };
        if flipped {
            let (value_at, value) = (self.at(), self.take());
            let Token::Compare(op) = *self.peek() else {
                return Err(self.unexpected("a comparison"));
            };
            self.next += 1;
            let operand = self.operand()?;
            let Token::Literal(value) = value else {
                return Err(self.unexpected("a value"));
            };
            return self.compare(operand, mirrored(op), &value, value_at);
        }
        let operand = self.operand()?;
        if let Token::Compare(op) = *self.peek() {
            self.next += 1;
            let (at, value) = self.value()?;
            return self.compare(operand, op, &value, at);
        }
        if self.eat_keyword("is") {
            let negated = self.eat(&Token::Not);
            if self.eat_keyword("distinct") {
                return self.distinct(operand, negated);
            }
            let nan = matches!(self.peek(), Token::Literal(Literal::Number(text)) if text.eq_ignore_ascii_case("nan"));
            // No comparison holds for NaN: a test that deletes can store.
            if nan && negated && operand.datatype.is_real() {
                let (at, _) = self.value()?;
                return self.compare(operand, Comparison::Le, &Literal::Number("inf".into()), at);
            }
            if nan && operand.datatype.is_real() {
                self.next += 1;
                return Ok(Condition::Match {
                    field: operand.field,
                    negated: false,
                    form: Form::Nan,
                });
            }
            if !self.eat(&Token::Literal(Literal::Null)) {
                return Err(self.unexpected(if negated {
                    "`null` or `distinct from`"
                } else {
                    "`null`, `not null` or `distinct from`"
                }));
            }
            return Ok(Condition::IsNull {
                field: operand.field,
                negated,
            });
        }
        let ends = matches!(
            self.peek(),
            Token::And | Token::Or | Token::Close | Token::End
        );
        let is_flag = operand.datatype == Datatype::Bool && operand.cell_val_num == CellValNum::ONE;
        if ends && is_flag {
            let (at, is_not) = (self.at(), Literal::Bool(false));
            return self.compare(operand, Comparison::Ne, &is_not, at);
        }
        let negated = self.eat(&Token::Not);
        if self.eat_keyword("in") {
            return self.set(operand, negated);
        }
        if self.eat_keyword("between") {
            return self.between(operand, negated);
        }
        if self.eat_keyword("like") {
            let like = self.like(operand)?;
            return Ok(match like {
                Condition::Match { field, form, .. } => Condition::Match {
                    field,
                    negated,
                    form,
                },
                like if negated => Condition::Not(Box::new(like)),
                like => like,
            });
        }
        Err(self.unexpected(if negated {
            "`in`, `between` or `like`"
        } else {
            "a comparison, `in`, `between`, `like` or `is`, perhaps with `not`"
        }))
    }

    /// `is distinct from 5`, which null is, and `is not distinct from 5`, which it is not.
    fn distinct(&mut self, operand: Operand, negated: bool) -> Result<Condition> {
        if !self.eat_keyword("from") {
            return Err(self.unexpected("`from`"));
        }
        let (at, value) = self.value()?;
        let nan = matches!(&value, Literal::Number(text) if text.trim_start_matches(['-', '+']).eq_ignore_ascii_case("nan"));
        let compared = match &value {
            // NaN equals nothing, and is not distinct from itself.
            Literal::Number(_) if nan && operand.datatype.is_real() => match negated {
                true => Condition::Match {
                    field: operand.field.clone(),
                    negated: false,
                    form: Form::Nan,
                },
                false => {
                    let greatest = Literal::Number("inf".into());
                    self.compare(operand.clone(), Comparison::Le, &greatest, at)?
                }
            },
            value => {
                let op = if negated {
                    Comparison::Eq
                } else {
                    Comparison::Ne
                };
                self.compare(operand.clone(), op, value, at)?
            }
        };
        if negated || value == Literal::Null {
            return Ok(compared);
        }
        let null = Condition::IsNull {
            field: operand.field,
            negated: false,
        };
        Ok(Condition::Or(vec![compared, null]))
    }

    fn compare(
        &self,
        operand: Operand,
        op: Comparison,
        value: &Literal,
        at: usize,
    ) -> Result<Condition> {
        if *value == Literal::Null {
            return match op {
                Comparison::Eq => Ok(Condition::IsNull {
                    field: operand.field,
                    negated: false,
                }),
                Comparison::Ne => Ok(Condition::IsNull {
                    field: operand.field,
                    negated: true,
                }),
                _ => Err(self.error(
                    at,
                    "null is neither less nor greater than a value: use `is null`",
                )),
            };
        }
        if let Some(beside) = operand.beside(value)
            && (matches!(op, Comparison::Eq | Comparison::Ne)
                || self.labels(&operand.field)?.is_none())
        {
            return Ok(compared_with_what_is_no_value(operand.field, op, beside));
        }
        let bytes = self.bytes(&operand, value, at)?;
        let last = value.period_end(operand.datatype);
        let last = last.map_or_else(|| bytes.clone(), |tick| tick.to_le_bytes().to_vec());
        let compare = |op, value: &Vec<u8>| Condition::Compare {
            field: operand.field.clone(),
            op,
            value: value.clone(),
        };
        // A date is all of its day: nothing in it is after it or before it.
        Ok(match op {
            Comparison::Eq if last != bytes => Condition::And(vec![
                compare(Comparison::Ge, &bytes),
                compare(Comparison::Le, &last),
            ]),
            Comparison::Ne if last != bytes => Condition::Or(vec![
                compare(Comparison::Lt, &bytes),
                compare(Comparison::Gt, &last),
            ]),
            Comparison::Le | Comparison::Gt => compare(op, &last),
            _ => compare(op, &bytes),
        })
    }

    /// `between 1 and 3`, both included.
    fn between(&mut self, operand: Operand, negated: bool) -> Result<Condition> {
        let (low_at, low) = self.value()?;
        if !self.eat(&Token::And) {
            return Err(self.unexpected("`and` and the upper value"));
        }
        let (high_at, high) = self.value()?;
        let (below, above) = match negated {
            false => (Comparison::Ge, Comparison::Le),
            true => (Comparison::Lt, Comparison::Gt),
        };
        let both = vec![
            self.compare(operand.clone(), below, &low, low_at)?,
            self.compare(operand, above, &high, high_at)?,
        ];
        Ok(match negated {
            false => Condition::And(both),
            true => Condition::Or(both),
        })
    }

    /// `like 'a%'`, perhaps with `escape '!'`: a comparison where that says the same, so that it can
    /// be stored and tiles passed over.
    fn like(&mut self, operand: Operand) -> Result<Condition> {
        let (at, value) = self.value()?;
        let Literal::Text(mut pattern) = value else {
            return Err(self.error(at, "a pattern stands in quotes"));
        };
        if self.eat_keyword("escape") {
            let (at, mark) = self.value()?;
            let Literal::Text(mark) = mark else {
                return Err(self.error(at, "the mark that escapes stands in quotes"));
            };
            let [mark] = mark[..] else {
                return Err(self.error(at, "what escapes is one character of ASCII"));
            };
            pattern = with_backslashes(&pattern, mark);
        }
        if !bind::is_text(operand.datatype) {
            return Err(self.error(
                at,
                &format!(
                    "{}: {} is no text, which alone can be `like` a pattern",
                    operand.field.name, operand.datatype
                ),
            ));
        }
        let parsed = Pattern::parse(&pattern, operand.datatype, operand.cell_val_num);
        if let Some(enumeration) = self.labels(&operand.field)? {
            let values = enumeration.values().filter(|label| parsed.matches(label));
            return Ok(Condition::In {
                field: operand.field,
                negated: false,
                values: values.collect(),
            });
        }
        let compare = |op, value| Condition::Compare {
            field: operand.field.clone(),
            op,
            value,
        };
        // One fixed-length CHAR compares as a number.
        let ordered = operand.cell_val_num.is_var() || operand.datatype != Datatype::Char;
        if let Some(text) = parsed.plain().filter(|_| ordered) {
            let text = Literal::Text(text);
            return Ok(compare(Comparison::Eq, self.bytes(&operand, &text, at)?));
        }
        if let Some(prefix) = parsed.only_prefix().filter(|_| ordered) {
            let end = successor(&prefix);
            let mut all = vec![compare(Comparison::Ge, prefix)];
            all.extend(end.map(|end| compare(Comparison::Lt, end)));
            return Ok(Condition::And(all));
        }
        Ok(Condition::Match {
            field: operand.field,
            negated: false,
            form: Form::Like(pattern),
        })
    }

    /// The labels that values of a field are, where it is enumerated.
    fn labels(&self, field: &FieldRef) -> Result<Option<Arc<Enumeration>>> {
        let mut attributes = self.schema.attributes.iter();
        let attribute = attributes.find(|a| a.name == field.name && !field.raw);
        let name = attribute.and_then(|a| a.enumeration.as_deref());
        name.map(self.enumerations).transpose()
    }

    fn bytes(&self, operand: &Operand, value: &Literal, at: usize) -> Result<Vec<u8>> {
        let bytes = value.to_bytes(operand.datatype, operand.cell_val_num);
        bytes.map_err(|what| self.error(at, &format!("{}: {what}", operand.field.name)))
    }

    fn set(&mut self, operand: Operand, negated: bool) -> Result<Condition> {
        if !self.eat(&Token::Open) {
            return Err(self.unexpected("a list in parentheses"));
        }
        let mut values = Vec::new();
        // Values that stand for more than one instant.
        let mut periods = false;
        while !self.eat(&Token::Close) {
            if !values.is_empty() && !self.eat(&Token::Comma) {
                return Err(self.unexpected("a comma or a closing parenthesis"));
            }
            if !values.is_empty() && self.eat(&Token::Close) {
                break;
            }
            let (at, value) = self.value()?;
            periods |= value.period_end(operand.datatype).is_some();
            values.push((at, value));
        }
        if periods {
            let each = values.iter().map(|(at, value)| match negated {
                false => self.compare(operand.clone(), Comparison::Eq, value, *at),
                true => self.compare(operand.clone(), Comparison::Ne, value, *at),
            });
            let each = each.collect::<Result<Vec<_>>>()?;
            return Ok(match negated {
                false => Condition::Or(each),
                true => Condition::And(each),
            });
        }
        // No cell equals what the type cannot hold.
        values.retain(|(_, value)| operand.beside(value).is_none());
        let values = values
            .iter()
            .map(|(at, value)| self.bytes(&operand, value, *at))
            .collect::<Result<Vec<_>>>()?;
        Ok(Condition::In {
            field: operand.field,
            negated,
            values: values.into_iter().collect(),
        })
    }

    fn value(&mut self) -> Result<(usize, Literal)> {
        let at = self.at();
        match self.peek().clone() {
            Token::Literal(value) => {
                self.next += 1;
                Ok((at, value))
            }
            Token::Word(word) => Err(self.error(
                at,
                &format!("{word} is not a value: strings stand in quotes"),
            )),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn operand(&mut self) -> Result<Operand> {
        let call = matches!(self.tokens.get(self.next + 1), Some((_, Token::Open)));
        let raw = call && self.eat_keyword("raw");
        self.next += usize::from(raw);
        let field = FieldRef {
            name: self.name()?,
            raw,
        };
        if raw && !self.eat(&Token::Close) {
            return Err(self.unexpected("a closing parenthesis"));
        }
        let (datatype, cell_val_num) = shape(self.schema, &field, self.enumerations)?;
        Ok(Operand {
            field,
            datatype,
            cell_val_num,
        })
    }

    fn name(&mut self) -> Result<String> {
        let at = self.at();
        let name = match self.peek().clone() {
            Token::Word(name) | Token::Name(name) => name,
            Token::Literal(Literal::Text(bytes)) => {
                String::from_utf8(bytes).map_err(|_| self.error(at, "this name is not UTF-8"))?
            }
            _ => return Err(self.unexpected("the name of a field")),
        };
        self.next += 1;
        Ok(name)
    }
}

/// A pattern whose marks are escaped by backslashes instead of another character.
fn with_backslashes(pattern: &[u8], mark: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(pattern.len());
    let mut bytes = pattern.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            _ if byte == mark => {
                out.push(b'\\');
                out.push(bytes.next().unwrap_or(mark));
            }
            b'\\' => out.extend(b"\\\\"),
            byte => out.push(byte),
        }
    }
    out
}

/// A comparison with a number that the field's type cannot hold: true or false of every value, or
/// decided by the values next to it. Nulls meet none.
fn compared_with_what_is_no_value(
    field: FieldRef,
    op: Comparison,
    beside: BetweenValues,
) -> Condition {
    let BetweenValues { bytes, above } = beside;
    let op = match (op, above) {
        (Comparison::Eq | Comparison::Ne, _) => {
            return Condition::In {
                field,
                negated: op == Comparison::Ne,
                values: std::iter::empty::<Vec<u8>>().collect(),
            };
        }
        (Comparison::Lt | Comparison::Le, true) => Comparison::Le,
        (Comparison::Lt | Comparison::Le, false) => Comparison::Lt,
        (Comparison::Gt | Comparison::Ge, true) => Comparison::Gt,
        (Comparison::Gt | Comparison::Ge, false) => Comparison::Ge,
        (op @ (Comparison::AlwaysTrue | Comparison::AlwaysFalse), _) => op,
    };
    Condition::Compare {
        field,
        op,
        value: bytes,
    }
}

/// `3 < a` is `a > 3`.
const fn mirrored(op: Comparison) -> Comparison {
    match op {
        Comparison::Lt => Comparison::Gt,
        Comparison::Le => Comparison::Ge,
        Comparison::Gt => Comparison::Lt,
        Comparison::Ge => Comparison::Le,
        other => other,
    }
}

/// The type of the values that a field is compared with.
fn shape(
    schema: &ArraySchema,
    field: &FieldRef,
    enumerations: EnumerationLookup<'_>,
) -> Result<(Datatype, CellValNum)> {
    if let Some(attribute) = schema.attributes.iter().find(|a| a.name == field.name) {
        return match &attribute.enumeration {
            Some(name) if !field.raw => {
                let enumeration: Arc<Enumeration> = enumerations(name)?;
                Ok((enumeration.datatype, enumeration.cell_val_num))
            }
            _ => Ok((attribute.datatype, attribute.cell_val_num)),
        };
    }
    let dimension = schema
        .domain
        .dimensions
        .iter()
        .find(|d| d.name == field.name);
    let dimension = dimension.ok_or_else(|| unknown_field(schema, &field.name))?;
    Ok((dimension.datatype, dimension.cell_val_num))
}

/// Writes a condition as [`Snapshot::condition`](crate::array::Snapshot::condition) reads it.
///
/// # Errors
/// [`Error::SchemaMismatch`] for names that the array lacks.
pub fn format(
    condition: &Condition,
    schema: &ArraySchema,
    enumerations: EnumerationLookup<'_>,
) -> Result<String> {
    let mut out = String::new();
    write(&mut out, condition, schema, enumerations)?;
    Ok(out)
}

fn write(
    out: &mut String,
    condition: &Condition,
    schema: &ArraySchema,
    enumerations: EnumerationLookup<'_>,
) -> Result<()> {
    match condition {
        Condition::Compare {
            op: Comparison::AlwaysTrue,
            ..
        } => out.push_str("true"),
        Condition::Compare {
            op: Comparison::AlwaysFalse,
            ..
        } => out.push_str("false"),
        Condition::Compare { field, op, value } => {
            let symbol = match op {
                Comparison::Lt => "<",
                Comparison::Le => "<=",
                Comparison::Gt => ">",
                Comparison::Ge => ">=",
                Comparison::Eq => "=",
                _ => "!=",
            };
            let (datatype, _) = shape(schema, field, enumerations)?;
            out.push_str(&format!(
                "{} {symbol} {}",
                name(field),
                literal(value, datatype)
            ));
        }
        Condition::IsNull { field, negated } => {
            shape(schema, field, enumerations)?;
            out.push_str(&format!(
                "{} is {}null",
                name(field),
                if *negated { "not " } else { "" }
            ));
        }
        Condition::In {
            field,
            negated,
            values,
        } => {
            let (datatype, _) = shape(schema, field, enumerations)?;
            let values: Vec<String> = values.iter().map(|v| literal(v, datatype)).collect();
            let not = if *negated { "not " } else { "" };
            out.push_str(&format!("{} {not}in ({})", name(field), values.join(", ")));
        }
        Condition::Match {
            field,
            negated,
            form,
        } => {
            shape(schema, field, enumerations)?;
            let not = if *negated { "not " } else { "" };
            match form {
                Form::Nan => out.push_str(&format!("{} is {not}nan", name(field))),
                Form::Like(pattern) => {
                    let pattern = quoted(pattern, '"');
                    out.push_str(&format!("{} {not}like {pattern}", name(field)));
                }
            }
        }
        Condition::And(children) if children.is_empty() => out.push_str("true"),
        Condition::Or(children) if children.is_empty() => out.push_str("false"),
        Condition::And(children) | Condition::Or(children) => {
            let joint = if matches!(condition, Condition::And(_)) {
                " and "
            } else {
                " or "
            };
            for (i, child) in children.iter().enumerate() {
                if i > 0 {
                    out.push_str(joint);
                }
                nested(out, child, schema, enumerations)?;
            }
        }
        Condition::Not(child) => {
            out.push_str("not ");
            nested(out, child, schema, enumerations)?;
        }
    }
    Ok(())
}

/// A part of a condition, in parentheses unless it is a single test.
fn nested(
    out: &mut String,
    condition: &Condition,
    schema: &ArraySchema,
    enumerations: EnumerationLookup<'_>,
) -> Result<()> {
    let bare = match condition {
        Condition::And(children) | Condition::Or(children) => children.is_empty(),
        _ => true,
    };
    if bare {
        return write(out, condition, schema, enumerations);
    }
    out.push('(');
    write(out, condition, schema, enumerations)?;
    out.push(')');
    Ok(())
}

fn name(field: &FieldRef) -> String {
    let starts = field
        .name
        .starts_with(|c: char| is_word(c) && !c.is_ascii_digit() && c != '.');
    let plain = starts && field.name.chars().all(is_word) && !is_keyword(&field.name);
    let name = if plain {
        field.name.clone()
    } else {
        quoted(field.name.as_bytes(), '`')
    };
    if field.raw {
        format!("raw({name})")
    } else {
        name
    }
}
