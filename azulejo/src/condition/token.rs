//! Conditions as text: words, names, values and marks.

use super::Comparison;
use super::literal::Literal;
use crate::error::{Error, Result};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A word: a name or a keyword.
    Word(String),
    /// A name in backticks.
    Name(String),
    Literal(Literal),
    Compare(Comparison),
    And,
    Or,
    Not,
    Open,
    Close,
    Comma,
    End,
}

pub(super) fn syntax_error(text: &str, at: usize, what: &str) -> Error {
    let column = text.get(..at).map_or(0, |before| before.chars().count());
    Error::InvalidArgument(format!(
        "{what}, at character {}:\n  {text}\n  {:column$}^",
        column + 1,
        ""
    ))
}

/// The tokens with where they begin; the last is [`Token::End`].
pub(super) fn tokenize(text: &str) -> Result<Vec<(usize, Token)>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        const SYMBOLS: [(&str, Token); 16] = [
            ("==", Token::Compare(Comparison::Eq)),
            ("!=", Token::Compare(Comparison::Ne)),
            ("<>", Token::Compare(Comparison::Ne)),
            ("<=", Token::Compare(Comparison::Le)),
            (">=", Token::Compare(Comparison::Ge)),
            ("&&", Token::And),
            ("||", Token::Or),
            ("=", Token::Compare(Comparison::Eq)),
            ("<", Token::Compare(Comparison::Lt)),
            (">", Token::Compare(Comparison::Gt)),
            ("!", Token::Not),
            ("(", Token::Open),
            ("[", Token::Open),
            (")", Token::Close),
            ("]", Token::Close),
            (",", Token::Comma),
        ];
        let (len, token) =
            if let Some((symbol, token)) = SYMBOLS.into_iter().find(|(s, _)| rest.starts_with(s)) {
                (symbol.len(), token)
            } else if let '"' | '\'' | '`' = c {
                let (len, bytes) = string(text, at, c)?;
                match c {
                    '`' => match String::from_utf8(bytes) {
                        Ok(name) => (len, Token::Name(name)),
                        Err(_) => return Err(syntax_error(text, at, "this name is not UTF-8")),
                    },
                    _ => (len, Token::Literal(Literal::Text(bytes))),
                }
            } else if let Some(len) = date_len(rest).or_else(|| clock_len(rest)) {
                (len, Token::Literal(Literal::Time(rest[..len].into())))
            } else if let Some(len) = ticks_len(rest) {
                (len, Token::Literal(Literal::Ticks(rest[1..len].into())))
            } else if let Some(len) = number_len(rest) {
                (
                    len,
                    Token::Literal(Literal::Number(rest[..len].replace('_', ""))),
                )
            } else {
                let len = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                if len == 0 {
                    return Err(syntax_error(text, at, &format!("{c:?} means nothing here")));
                }
                (len, word(&rest[..len]))
            };
        tokens.push((at, token));
        at += len;
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}

fn word(word: &str) -> Token {
    match word.to_ascii_lowercase().as_str() {
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        "true" => Token::Literal(Literal::Bool(true)),
        "false" => Token::Literal(Literal::Bool(false)),
        "null" | "none" => Token::Literal(Literal::Null),
        "nan" | "inf" | "infinity" => Token::Literal(Literal::Number(word.into())),
        _ => Token::Word(word.into()),
    }
}

/// Words that stand for something other than a field.
pub(super) fn is_keyword(name: &str) -> bool {
    let keyword = ["in", "is", "raw", "between", "like"]
        .iter()
        .any(|k| name.eq_ignore_ascii_case(k));
    keyword || !matches!(word(name), Token::Word(_))
}

/// The length of a number at the front of a text, if there is one.
fn number_len(text: &str) -> Option<usize> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = text.len() - unsigned.len();
    let word_len = unsigned
        .find(|c: char| !is_word(c))
        .unwrap_or(unsigned.len());
    let head = &unsigned[..word_len];
    if sign == 1
        && ["inf", "infinity", "nan"]
            .iter()
            .any(|w| head.eq_ignore_ascii_case(w))
    {
        return Some(sign + word_len);
    }
    let mut chars = head.chars();
    let starts = match chars.next() {
        Some('.') => chars.next().is_some_and(|c| c.is_ascii_digit()),
        first => first.is_some_and(|c| c.is_ascii_digit()),
    };
    if !starts {
        return None;
    }
    // The sign of an exponent is no part of a word.
    let hexadecimal = head.starts_with("0x") || head.starts_with("0X");
    if !hexadecimal && head.ends_with(['e', 'E']) && unsigned[word_len..].starts_with(['-', '+']) {
        let digits = &unsigned[word_len + 1..];
        let more = digits
            .find(|c: char| !c.is_ascii_digit() && c != '_')
            .unwrap_or(digits.len());
        return Some(sign + word_len + 1 + more);
    }
    Some(sign + word_len)
}

/// The length of `@18262` at the front of a text.
fn ticks_len(text: &str) -> Option<usize> {
    let digits = text.strip_prefix('@')?;
    let signed = digits.strip_prefix('-').unwrap_or(digits);
    let len = leading_digits(signed);
    (len > 0).then(|| 1 + digits.len() - signed.len() + len)
}

fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// What follows so many digits, no more and no fewer.
fn after_digits(text: &str, count: usize) -> Option<&str> {
    (leading_digits(text) == count).then(|| &text[count..])
}

/// The length of `2024-05`, `2024-05-01` or `2024-05-01T10:30:00.25Z` at the front of a text, before
/// the year 0 with its sign. No sign of a number looks like it: there are no differences.
fn date_len(text: &str) -> Option<usize> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let mut rest = after_digits(unsigned, 4)?.strip_prefix('-')?;
    rest = after_digits(rest, 2)?;
    if let Some(day) = rest.strip_prefix('-') {
        rest = after_digits(day, 2)?;
        if let Some(clock) = rest.strip_prefix(['T', 't']) {
            rest = after_clock(clock).or_else(|| after_digits(clock, 2))?;
            if let Some(utc) = rest.strip_prefix(['Z', 'z']) {
                rest = utc;
            } else if let Some(zone) = rest.strip_prefix(['+', '-']) {
                rest = after_digits(zone, 2)?.strip_prefix(':')?;
                rest = after_digits(rest, 2)?;
            }
        }
    }
    ends(text, rest)
}

/// The length of `10:30` or `10:30:00.25` at the front of a text.
fn clock_len(text: &str) -> Option<usize> {
    ends(text, after_clock(text)?)
}

/// What follows hours, minutes and perhaps seconds.
fn after_clock(text: &str) -> Option<&str> {
    let mut rest = after_digits(text, 2)?.strip_prefix(':')?;
    rest = after_digits(rest, 2)?;
    if let Some(seconds) = rest.strip_prefix(':') {
        rest = after_digits(seconds, 2)?;
        if let Some(fraction) = rest.strip_prefix('.') {
            let digits = leading_digits(fraction);
            rest = fraction.get(digits..).filter(|_| digits > 0)?;
        }
    }
    Some(rest)
}

/// How much of a text is before its rest, if no word goes on there.
fn ends(text: &str, rest: &str) -> Option<usize> {
    let apart = !rest.starts_with(|c: char| is_word(c) || c == ':');
    apart.then(|| text.len() - rest.len())
}

/// The length of a quoted string with its quotes, and what it says.
fn string(text: &str, at: usize, quote: char) -> Result<(usize, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut chars = text[at..].char_indices().skip(1).peekable();
    while let Some((i, c)) = chars.next() {
        if c == quote {
            if chars.next_if(|(_, c)| *c == quote).is_some() {
                push(&mut bytes, c);
                continue;
            }
            return Ok((i + 1, bytes));
        }
        if c != '\\' {
            push(&mut bytes, c);
            continue;
        }
        let wrong = || {
            syntax_error(
                text,
                at + i,
                "this is no escape: there are \\n \\r \\t \\0 \\\\ \\' \\\" \\xFF \\u{1F600}",
            )
        };
        match chars.next().map(|(_, c)| c) {
            Some('n') => push(&mut bytes, '\n'),
            Some('r') => push(&mut bytes, '\r'),
            Some('t') => push(&mut bytes, '\t'),
            Some('0') => push(&mut bytes, '\0'),
            Some(c @ ('\\' | '\'' | '"' | '`')) => push(&mut bytes, c),
            // For `like`, which takes them as they are then.
            Some(c @ ('%' | '_')) => bytes.extend([b'\\', c as u8]),
            Some('x') => {
                let mut digit = || chars.next().and_then(|(_, c)| c.to_digit(16));
                let (Some(high), Some(low)) = (digit(), digit()) else {
                    return Err(wrong());
                };
                let byte = u8::try_from(high * 16 + low).map_err(|_| wrong())?;
                bytes.push(byte);
            }
            Some('u') => {
                let open = chars.next().is_some_and(|(_, c)| c == '{');
                let digits: String = chars
                    .by_ref()
                    .map(|(_, c)| c)
                    .take_while(|c| *c != '}')
                    .collect();
                let code = u32::from_str_radix(&digits, 16)
                    .ok()
                    .filter(|_| open && digits.len() <= 6);
                push(&mut bytes, code.and_then(char::from_u32).ok_or_else(wrong)?);
            }
            _ => return Err(wrong()),
        }
    }
    Err(syntax_error(text, at, "this quote is not closed"))
}

fn push(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// What words are made of.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}
