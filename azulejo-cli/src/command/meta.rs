//! `azulejo meta`: the key-values of an array or group.

use super::schema::print;
use crate::args::{MetaArgs, MetaChange};
use crate::error::{CliError, Result};
use crate::output::table::{Align, Table};
use crate::session::Session;
use crate::value::{self, Bound};
use azulejo::format::metadata::{Metadata, MetadataValue};
use azulejo::format::{CellValNum, Datatype};
use azulejo::group::ObjectType;
use azulejo::json::{unhex, value_json};
use serde_json::{Value as Json, json};
use std::io::Write;

/// Runs the command.
pub fn run(session: &mut Session, args: &MetaArgs) -> Result<()> {
    if let Some(change) = &args.change {
        return self::change(session, change);
    }
    let uri = args.uri.as_deref().unwrap_or_default();
    let metadata = match session.object_type(uri)? {
        Some(ObjectType::Group) => session
            .context
            .group(uri)
            .open_at(args.time.range(&session.context, uri)?)?
            .metadata()?,
        Some(ObjectType::Array) | None => session.snapshot(uri, &args.time)?.metadata()?.clone(),
    };
    if let Some(key) = &args.key {
        let Some(value) = metadata.get(key) else {
            return Err(CliError::usage(format!("{uri}: there is no key {key:?}")));
        };
        if session.output.json {
            return session.output.write_json(&entry_json(value));
        }
        return Ok(writeln!(session.output, "{}", value_text(value))?);
    }
    if session.output.json {
        return session.output.write_json(&metadata_json(&metadata));
    }
    if metadata.is_empty() {
        session.output.note("no metadata");
        return Ok(());
    }
    let mut table = Table::new([
        ("key", Align::Left),
        ("type", Align::Left),
        ("value", Align::Left),
    ]);
    for (key, value) in &metadata {
        table.row([key.clone(), value.datatype.to_string(), value_text(value)]);
    }
    print(&mut session.output, &table)
}

/// Sets or removes keys.
fn change(session: &mut Session, change: &MetaChange) -> Result<()> {
    let (MetaChange::Set { uri, at, .. } | MetaChange::Rm { uri, at, .. }) = change;
    let mut writer = match session.context.object(uri).object_type()? {
        Some(ObjectType::Group) => session.context.group(uri).change_metadata()?,
        Some(ObjectType::Array) | None => session.context.array(uri).change_metadata()?,
    };
    if let Some(time) = at {
        writer = writer.at(*time);
    }
    let done = match change {
        MetaChange::Set {
            key,
            values,
            datatype,
            ..
        } => {
            let value = parse_value(values, *datatype).map_err(CliError::usage)?;
            let set = json!({ "uri": uri, "set": { key.as_str(): entry_json(&value) } });
            writer.put(key, value)?;
            set
        }
        MetaChange::Rm { keys, .. } => {
            for key in keys {
                writer.remove(key);
            }
            json!({ "uri": uri, "removed": keys })
        }
    };
    writer.commit()?;
    if session.output.json {
        session.output.write_json(&done)
    } else {
        Ok(())
    }
}

/// A value from words of the command line.
fn parse_value(words: &[String], datatype: Option<Datatype>) -> Result<MetadataValue, String> {
    let datatype = datatype.unwrap_or_else(|| {
        let all = |fits: fn(&str) -> bool| !words.is_empty() && words.iter().all(|word| fits(word));
        if all(|word| word.parse::<i64>().is_ok()) {
            Datatype::Int64
        } else if all(|word| word.parse::<u64>().is_ok()) {
            Datatype::UInt64
        } else if all(is_real) {
            Datatype::Float64
        } else {
            Datatype::StringUtf8
        }
    });
    let is_text = matches!(
        datatype,
        Datatype::StringAscii | Datatype::StringUtf8 | Datatype::Char
    );
    if is_text {
        return match words {
            [] => Ok(MetadataValue::new(datatype, [])),
            [text] => Ok(MetadataValue::new(datatype, text.as_bytes())),
            _ => Err("several words are several values; put a text in quotes".to_owned()),
        };
    }
    let one = |word: &String| {
        if datatype.is_string() || datatype.is_byte() {
            unhex(word).ok_or_else(|| format!("{word:?}: write {datatype} as hexadecimal digits"))
        } else {
            value::parse(datatype, word, Bound::Low)
        }
    };
    let bytes: Vec<Vec<u8>> = words.iter().map(one).collect::<Result<_, _>>()?;
    Ok(MetadataValue::new(datatype, bytes.concat()))
}

/// Whether a word is a number that a real number is near to. Names such as `Nan` and `inf` are none,
/// nor is what no integer has room for: it would lose digits, or be infinite.
fn is_real(word: &str) -> bool {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    let whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    let fits = !whole || word.parse::<i64>().is_ok() || word.parse::<u64>().is_ok();
    fits && word.parse::<f64>().is_ok_and(f64::is_finite)
}

/// A value as people read it.
pub fn value_text(value: &MetadataValue) -> String {
    if value.data.is_empty() {
        return String::new();
    }
    value::text(value.datatype, &value.data)
}

/// All keys as one JSON object.
pub fn metadata_json(metadata: &Metadata) -> Json {
    Json::Object(
        metadata
            .iter()
            .map(|(key, value)| (key.clone(), entry_json(value)))
            .collect(),
    )
}

fn entry_json(value: &MetadataValue) -> Json {
    let one = value.count() == 1;
    let cell_val_num = if one {
        CellValNum::ONE
    } else {
        CellValNum::Var
    };
    json!({
        "datatype": value.datatype.name(),
        "count": value.count(),
        "value": value_json(value.datatype, cell_val_num, &value.data),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_type_that_fits() {
        let parse = |words: &[&str], datatype| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            parse_value(&words, datatype)
        };
        let types: Vec<Datatype> = [&["7", "-8"][..], &["0.5", "7"], &["seven"], &[]]
            .iter()
            .map(|words| parse(words, None).unwrap().datatype)
            .collect();
        assert_eq!(
            types,
            [
                Datatype::Int64,
                Datatype::Float64,
                Datatype::StringUtf8,
                Datatype::StringUtf8
            ]
        );
        // Names, and numbers that a real one would round, keep every character.
        for (word, datatype) in [
            ("18446744073709551615", Datatype::UInt64),
            ("18446744073709551616", Datatype::StringUtf8),
            ("-9223372036854775809", Datatype::StringUtf8),
            ("Nan", Datatype::StringUtf8),
            ("inf", Datatype::StringUtf8),
            ("-Infinity", Datatype::StringUtf8),
            ("1e999", Datatype::StringUtf8),
            ("-1e3", Datatype::Float64),
            (".5", Datatype::Float64),
        ] {
            assert_eq!(parse(&[word], None).unwrap().datatype, datatype, "{word}");
        }
        assert_eq!(
            parse(&["1", "2"], Some(Datatype::Int16)).unwrap().data,
            [1, 0, 2, 0]
        );
        assert_eq!(
            parse(&["00ff"], Some(Datatype::Blob)).unwrap().data,
            [0, 255]
        );
        assert_eq!(
            parse(&["7"], Some(Datatype::StringAscii)).unwrap().data,
            b"7"
        );
        assert!(parse(&["300"], Some(Datatype::UInt8)).is_err());
        assert!(
            parse(&["two", "words"], None)
                .unwrap_err()
                .contains("quotes")
        );
    }
}
