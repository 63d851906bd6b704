//! `azulejo evolve` and `azulejo upgrade`: another schema for an array that is there.

use super::fleet::{self, Done, Objects};
use super::schema::show;
use crate::args::{EvolveArgs, UpgradeArgs};
use crate::error::{CliError, Result};
use crate::import::labels::LabelFile;
use crate::output::table::Align;
use crate::selection::range_text::parse_range;
use crate::session::Session;
use crate::value::{self, Bound};
use azulejo::array::{NewLabel, Snapshot};
use azulejo::format::filter::Pipeline;
use azulejo::format::schema::{Attribute, Enumeration, SchemaEvolution};
use azulejo::format::{ArraySchema, CellValNum, Datatype, NdRectangle, Range};
use azulejo::json::{SchemaDocument, attribute_from_json, enumeration_from_json, value_from_json};
use serde_json::{Value as Json, json};
use std::io::Write;

/// Runs `evolve`.
pub fn run(session: &mut Session, args: &EvolveArgs) -> Result<()> {
    let array = session.context.array(&args.uri).snapshot()?;
    let evolution = evolution(&array, args)?;
    let evolves = evolution != SchemaEvolution::default();
    let labels = labels(session, &array, args)?;
    if !evolves && labels.is_empty() {
        return Err(CliError::usage(
            "say what to change: azulejo evolve --help lists it",
        ));
    }
    let steps = labels.len() + usize::from(evolves);
    if args.at.is_some() && steps > 1 {
        return Err(CliError::usage(
            "--at: a label and another change cannot begin at one time; make one after the other",
        ));
    }
    if args.dry_run {
        let schema = session
            .context
            .array(&args.uri)
            .plan_evolution(&evolution)?;
        let mut planned = SchemaDocument::of(&array)?;
        planned.enumerations = enumerations(&planned, &evolution, &schema.enumerations)?;
        planned.schema = labelled(schema, &labels)?;
        if session.output.json {
            return session.output.write_json(&planned.to_json()?);
        }
        return show(&mut session.output, &planned);
    }
    let handle = session.context.array(&args.uri);
    if steps > 1 {
        // All of it is possible before anything is done.
        labelled(handle.plan_evolution(&evolution)?, &labels)?;
    }
    if evolves {
        handle.evolve(&evolution, args.at)?;
    }
    for label in &labels {
        handle.add_label(label, args.at)?;
    }
    if session.output.json {
        return session.output.write_json(&json!({ "evolved": args.uri }));
    }
    Ok(writeln!(session.output, "evolved {}", args.uri)?)
}

/// The labels that are asked for, with their values.
fn labels(session: &Session, array: &Snapshot, args: &EvolveArgs) -> Result<Vec<NewLabel>> {
    let wishes = args.add_label.iter();
    wishes
        .map(|wish| LabelFile::read(session, wish)?.of_array(array.schema()))
        .collect()
}

/// A schema with labels more.
fn labelled(mut schema: ArraySchema, labels: &[NewLabel]) -> Result<ArraySchema> {
    for label in labels {
        let folder = format!("l{}", schema.dimension_labels.len());
        let next = schema.labelled(label.reference(&folder));
        let name = &label.values.column_type.name;
        schema = next
            .map_err(|e| CliError::usage(format!("--add-label {name}: {e}")))?
            .0;
    }
    Ok(schema)
}

/// Runs `upgrade`.
pub fn upgrade(session: &mut Session, args: &UpgradeArgs) -> Result<()> {
    if args.recursive {
        return upgrade_every(session, args);
    }
    let done = session.context.array(&args.uri).upgrade(args.at)?;
    let version = session
        .context
        .array(&args.uri)
        .snapshot()?
        .schema()
        .version;
    if session.output.json {
        let version = version.number();
        return session
            .output
            .write_json(&json!({ "upgraded": done, "version": version }));
    }
    let verb = if done { "is now" } else { "already is" };
    Ok(writeln!(
        session.output,
        "{} {verb} of format version {version}",
        args.uri
    )?)
}

/// Upgrades every array of a group or folder: a row for each.
fn upgrade_every(session: &mut Session, args: &UpgradeArgs) -> Result<()> {
    let columns = [("version", Align::Right), ("done", Align::Left)];
    let of = Objects::Arrays;
    let done = fleet::each(session, &args.uri, of, &columns, |context, uri| {
        let array = context.array(uri);
        let upgraded = array.upgrade(args.at)?;
        let version = array.snapshot()?.schema().version.number();
        let done = if upgraded {
            "upgraded"
        } else {
            "nothing to do"
        };
        Ok(Done {
            cells: vec![version.to_string(), done.to_owned()],
            json: (
                "upgrade",
                json!({ "upgraded": upgraded, "version": version }),
            ),
            unsound: false,
        })
    })?;
    done.or_first_error()
}

/// The enumerations after an evolution, in the order of the next schema.
fn enumerations(
    before: &SchemaDocument,
    evolution: &SchemaEvolution,
    next: &[azulejo::format::schema::EnumerationRef],
) -> Result<Vec<Enumeration>> {
    let new = || {
        evolution
            .extend_enumerations
            .iter()
            .chain(&evolution.add_enumerations)
    };
    let find = |name: &str| {
        new()
            .chain(&before.enumerations)
            .find(|e| e.name == name)
            .cloned()
    };
    let missing = |name: &str| CliError::usage(format!("there is no enumeration {name:?}"));
    next.iter()
        .map(|e| find(&e.name).ok_or_else(|| missing(&e.name)))
        .collect()
}

fn evolution(array: &Snapshot, args: &EvolveArgs) -> Result<SchemaEvolution> {
    let about = |text: &str, reason: String| CliError::usage(format!("{text:?}: {reason}"));
    let mut evolution = SchemaEvolution {
        drop_attributes: args.drop_attr.clone(),
        drop_enumerations: args.drop_enum.clone(),
        ..SchemaEvolution::default()
    };
    for text in &args.add_attr {
        evolution
            .add_attributes
            .push(parse_attribute(text).map_err(|e| about(text, e))?);
    }
    for text in &args.add_enum {
        evolution
            .add_enumerations
            .push(parse_enumeration(text).map_err(|e| about(text, e))?);
    }
    for text in &args.extend_enum {
        let (name, values) = text
            .split_once('=')
            .ok_or_else(|| about(text, "write NAME=A,B".to_owned()))?;
        let old = array.enumeration(name)?;
        let values =
            parse_values(old.datatype, old.cell_val_num, values).map_err(|e| about(text, e))?;
        let extended = old.extend(values).map_err(|e| about(text, e.to_string()))?;
        evolution.extend_enumerations.push(extended);
    }
    if !args.expand.is_empty() {
        evolution.expand_current_domain = Some(expanded(array, &args.expand)?);
    }
    Ok(evolution)
}

/// `NAME TYPE [nullable] [var] [enum=E] [filters=F,G]`, or JSON.
fn parse_attribute(text: &str) -> Result<Attribute, String> {
    if text.trim_start().starts_with('{') {
        return attribute_from_json(&parse_json(text)?).map_err(|e| e.to_string());
    }
    let mut words = text.split_whitespace();
    let (Some(name), Some(datatype)) = (words.next(), words.next()) else {
        return Err("write a name and a type, such as 'quality UINT8 nullable'".to_owned());
    };
    let datatype = Datatype::from_name(datatype)
        .ok_or_else(|| format!("{datatype:?} is not a datatype, such as INT32 or STRING_UTF8"))?;
    let words: Vec<&str> = words.collect();
    // Strings of one byte are hardly ever meant.
    let var = words.contains(&"var") || datatype.is_string();
    let mut attribute = Attribute::new(
        name,
        datatype,
        if var {
            CellValNum::Var
        } else {
            CellValNum::ONE
        },
    );
    for word in words {
        match word.split_once('=') {
            None if word == "nullable" => attribute.nullable = true,
            None if word == "var" => {}
            Some(("enum", enumeration)) => attribute.enumeration = Some(enumeration.to_owned()),
            Some(("filters", text)) => {
                let pipeline = text.parse::<Pipeline>();
                attribute.filters = pipeline.map_err(|error| error.to_string())?;
            }
            _ => {
                return Err(format!(
                    "{word:?} is none of nullable, var, enum=NAME, filters=F,G"
                ));
            }
        }
    }
    Ok(attribute)
}

/// `NAME=A,B`, or JSON.
fn parse_enumeration(text: &str) -> Result<Enumeration, String> {
    if text.trim_start().starts_with('{') {
        return enumeration_from_json(&parse_json(text)?).map_err(|e| e.to_string());
    }
    let (name, values) = text.split_once('=').ok_or("write NAME=A,B")?;
    let values = parse_values(Datatype::StringUtf8, CellValNum::Var, values)?;
    Enumeration::of_strings(name, Datatype::StringUtf8, false, values).map_err(|e| e.to_string())
}

/// `A,B`, or a JSON array.
fn parse_values(
    datatype: Datatype,
    cell_val_num: CellValNum,
    text: &str,
) -> Result<Vec<Vec<u8>>, String> {
    if text.starts_with('[') {
        let Json::Array(values) = parse_json(text)? else {
            return Err("not an array".to_owned());
        };
        return values
            .iter()
            .map(|value| value_from_json(datatype, cell_val_num, value).map_err(|e| e.to_string()))
            .collect();
    }
    text.split(',')
        .map(|value| value::parse(datatype, value, Bound::Low))
        .collect()
}

fn parse_json(text: &str) -> Result<Json, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

/// The current domain (or the whole one) with other bounds along the dimensions named.
fn expanded(array: &Snapshot, texts: &[String]) -> Result<NdRectangle> {
    let dimensions = &array.schema().domain.dimensions;
    let mut ranges: Vec<Range> = match array.current_domain() {
        Some(current) => current.ranges.clone(),
        None => dimensions
            .iter()
            .map(|d| d.domain.clone().unwrap_or_default())
            .collect(),
    };
    for text in texts {
        let (name, range) = text
            .split_once('=')
            .ok_or_else(|| CliError::usage(format!("{text:?}: write DIM=LO:HI")))?;
        let at = array.schema().domain.index_of(name);
        let Some((dimension, place)) =
            at.and_then(|at| Some((dimensions.get(at)?, ranges.get_mut(at)?)))
        else {
            return Err(CliError::usage(format!("there is no dimension {name:?}")));
        };
        let parsed = parse_range(dimension.datatype, range)
            .map_err(|reason| CliError::usage(format!("{text:?}: {reason}")))?;
        let whole = dimension.domain.clone().unwrap_or_default();
        *place = Range::new(
            parsed.low.unwrap_or(whole.start),
            parsed.high.unwrap_or(whole.end),
        );
    }
    Ok(NdRectangle { ranges })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_in_words_or_json() {
        let attribute = parse_attribute("q UINT8 nullable enum=grades filters=zstd").unwrap();
        assert_eq!(
            (
                attribute.name.as_str(),
                attribute.nullable,
                attribute.is_var()
            ),
            ("q", true, false)
        );
        assert_eq!(
            (
                attribute.enumeration.as_deref(),
                attribute.filters.filters.len()
            ),
            (Some("grades"), 1)
        );
        assert!(parse_attribute("s STRING_UTF8").unwrap().is_var());
        assert!(parse_attribute("n INT32 var").unwrap().is_var());
        for (text, part) in [
            ("q", "name and a type"),
            ("q WORD", "datatype"),
            ("q INT8 ordered", "ordered"),
        ] {
            assert!(parse_attribute(text).unwrap_err().contains(part), "{text}");
        }
        let json = r#"{"name":"q","datatype":"INT32","cell_val_num":1,"nullable":false,"fill_value":7,
            "fill_validity":false,"order":"unordered","enumeration":null,"filters":{"chunk_size":65536,"filters":[]}}"#;
        assert_eq!(
            parse_attribute(json).unwrap().fill_value,
            7i32.to_le_bytes()
        );
    }

    #[test]
    fn enumerations_in_words_or_json() {
        assert_eq!(parse_enumeration("e=a,b,c").unwrap().len(), 3);
        let json =
            r#"{"name":"e","datatype":"INT32","cell_val_num":1,"ordered":true,"values":[3,5]}"#;
        let numbers = parse_enumeration(json).unwrap();
        assert!(numbers.ordered && numbers.len() == 2 && !numbers.file_name.is_empty());
        assert!(parse_enumeration("e=a,a").unwrap_err().contains("twice"));
        let values = parse_values(Datatype::StringUtf8, CellValNum::Var, r#"["a,b","c"]"#).unwrap();
        assert_eq!(values, [b"a,b".to_vec(), b"c".to_vec()]);
    }
}
