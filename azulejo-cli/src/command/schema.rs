//! `azulejo schema`: the schema for people and for programs.

use crate::args::ObjectArgs;
use crate::error::Result;
use crate::filter_text::pipeline_text;
use crate::output::table::{Align, Table};
use crate::session::Session;
use crate::size;
use crate::terminal::Output;
use crate::value;
use azulejo::format::filter::Pipeline;
use azulejo::format::schema::{ArraySchema, CurrentDomain, DataOrder, Layout};
use azulejo::format::{CellValNum, Datatype, Range};
use azulejo::json::{SchemaDocument, array_type_name, hex, layout_name, order_name};
use std::io::Write;

/// Entries of an enumeration that are shown.
const SHOWN_ENTRIES: usize = 12;

/// Runs the command.
pub fn run(session: &mut Session, args: &ObjectArgs) -> Result<()> {
    let array = session.snapshot(&args.uri, &args.time)?;
    let document = SchemaDocument::of(&array)?;
    if session.output.json {
        return session.output.write_json(&document.to_json()?);
    }
    show(&mut session.output, &document)
}

/// The schema for people.
pub fn show(out: &mut Output, document: &SchemaDocument) -> Result<()> {
    let schema = &document.schema;
    writeln!(out, "{}", title(schema))?;
    dimensions(out, schema, None)?;
    attributes(out, schema)?;
    orders(out, schema)?;
    for enumeration in &document.enumerations {
        let entries = enumeration.values().collect::<Vec<_>>();
        let ordered = if enumeration.ordered { ", ordered" } else { "" };
        let name = &enumeration.name;
        writeln!(out)?;
        out.heading(&format!(
            "Enumeration {name}: {} of {}{ordered}",
            entries.len(),
            enumeration.datatype
        ))?;
        let mut shown: Vec<String> = entries
            .iter()
            .take(SHOWN_ENTRIES)
            .map(|entry| value::text(enumeration.datatype, entry))
            .collect();
        if entries.len() > SHOWN_ENTRIES {
            shown.push("...".to_owned());
        }
        writeln!(out, "{}", shown.join(", "))?;
    }
    Ok(())
}

/// `dense array, 2 dimensions, 3 attributes, format version 22`.
pub fn title(schema: &ArraySchema) -> String {
    let kind = array_type_name(schema.array_type);
    let dups = if schema.allows_dups {
        ", duplicates allowed"
    } else {
        ""
    };
    let (dimensions, attributes) = (schema.domain.dimensions.len(), schema.attributes.len());
    format!(
        "{kind} array, {}, {}{dups}, format version {}",
        plural(dimensions, "dimension"),
        plural(attributes, "attribute"),
        schema.version
    )
}

/// `1 file`, `2 files`.
pub fn plural(count: usize, noun: &str) -> String {
    let count = count as u64;
    format!(
        "{} {noun}{}",
        size::count(count),
        if count == 1 { "" } else { "s" }
    )
}

/// The table of dimensions; with the box of what was written, if that is known.
pub fn dimensions(out: &mut Output, schema: &ArraySchema, written: Option<&[Range]>) -> Result<()> {
    writeln!(out)?;
    out.heading("Dimensions")?;
    let current = match &schema.current_domain {
        CurrentDomain::Empty => None,
        CurrentDomain::NdRectangle(rectangle) => Some(rectangle.ranges.as_slice()),
    };
    let mut names = vec!["name", "type", "domain", "tile"];
    if current.is_some() {
        names.push("current domain");
    }
    if written.is_some() {
        names.push("written");
    }
    names.push("filters");
    let mut table = Table::new(names.iter().map(|&name| (name, Align::Left)));
    for (at, dimension) in schema.domain.dimensions.iter().enumerate() {
        let datatype = dimension.datatype;
        let mut row = vec![
            dimension.name.clone(),
            type_text(datatype, dimension.cell_val_num, false),
            dimension
                .domain
                .as_ref()
                .filter(|range| !holds_all_reals(datatype, range))
                .map_or_else(|| "any".to_owned(), |range| range_text(datatype, range)),
            dimension
                .tile_extent
                .as_deref()
                .map_or_else(|| "-".to_owned(), |extent| extent_text(datatype, extent)),
        ];
        for ranges in [current, written].into_iter().flatten() {
            row.push(
                ranges
                    .get(at)
                    .map_or_else(String::new, |range| range_text(datatype, range)),
            );
        }
        let own = !dimension.filters.filters.is_empty();
        row.push(filters_text(if own {
            &dimension.filters
        } else {
            &schema.coords_filters
        }));
        table.row(row);
    }
    print(out, &table)?;
    if schema.dimension_labels.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    out.heading("Dimension labels")?;
    let mut table =
        Table::new(["name", "dimension", "type", "order"].map(|name| (name, Align::Left)));
    for label in &schema.dimension_labels {
        let dimension = schema
            .dimension(label.dimension as usize)
            .map_or("?", |d| d.name.as_str());
        let datatype = type_text(label.datatype, label.cell_val_num, false);
        table.row([
            label.name.as_str(),
            dimension,
            &datatype,
            order_name(label.order),
        ]);
    }
    print(out, &table)
}

/// The table of attributes.
pub fn attributes(out: &mut Output, schema: &ArraySchema) -> Result<()> {
    writeln!(out)?;
    out.heading("Attributes")?;
    let enumerated = schema.attributes.iter().any(|a| a.enumeration.is_some());
    let mut names = vec!["name", "type", "fill"];
    if enumerated {
        names.push("enumeration");
    }
    names.push("filters");
    let mut table = Table::new(names.iter().map(|&name| (name, Align::Left)));
    for attribute in &schema.attributes {
        let fill = if attribute.nullable && !attribute.fill_validity {
            "null".to_owned()
        } else if attribute.datatype.is_text() && is_zeros(&attribute.fill_value) {
            // As text it is nothing.
            hex(&attribute.fill_value)
        } else {
            value::text(attribute.datatype, &attribute.fill_value)
        };
        let name = if attribute.name.is_empty() {
            "(no name)"
        } else {
            &attribute.name
        };
        let mut datatype = type_text(
            attribute.datatype,
            attribute.cell_val_num,
            attribute.nullable,
        );
        if attribute.order != DataOrder::Unordered {
            datatype = format!("{datatype}, {}", order_name(attribute.order));
        }
        let mut row = vec![name.to_owned(), datatype, fill];
        if enumerated {
            row.push(attribute.enumeration.clone().unwrap_or_default());
        }
        row.push(filters_text(&attribute.filters));
        table.row(row);
    }
    print(out, &table)
}

fn is_zeros(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0)
}

/// Orders, capacity, and the filters of what lies beside the values.
pub fn orders(out: &mut Output, schema: &ArraySchema) -> Result<()> {
    writeln!(out)?;
    out.heading("Storage")?;
    writeln!(out, "cell order         {}", layout_name(schema.cell_order))?;
    if schema.cell_order != Layout::Hilbert {
        writeln!(out, "tile order         {}", layout_name(schema.tile_order))?;
    }
    if !schema.is_dense() {
        writeln!(
            out,
            "tile capacity      {} cells",
            size::count(schema.capacity)
        )?;
    }
    if schema.attributes.iter().any(|a| a.cell_val_num.is_var())
        || schema
            .domain
            .dimensions
            .iter()
            .any(|d| d.cell_val_num.is_var())
    {
        writeln!(
            out,
            "offsets filters    {}",
            filters_text(&schema.offsets_filters)
        )?;
    }
    if schema.attributes.iter().any(|a| a.nullable) {
        writeln!(
            out,
            "validity filters   {}",
            filters_text(&schema.validity_filters)
        )?;
    }
    Ok(())
}

/// Prints a table within the terminal; where columns do not fit, with a line for each cell.
pub fn print(out: &mut Output, table: &Table) -> Result<()> {
    let rendered = table.render(out.width(), out.has_colours());
    match rendered.hidden.is_empty() {
        true => out.write_all(rendered.text.as_bytes())?,
        false => out.write_all(table.render_down().as_bytes())?,
    }
    Ok(())
}

fn filters_text(pipeline: &Pipeline) -> String {
    let text = pipeline_text(pipeline);
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}

/// `INT32`, `FLOAT32 x3`, `STRING_UTF8 var, nullable`.
pub fn type_text(datatype: Datatype, cell_val_num: CellValNum, nullable: bool) -> String {
    let cells = match cell_val_num {
        CellValNum::Fixed(1) => String::new(),
        CellValNum::Fixed(n) => format!(" x{n}"),
        CellValNum::Var => " var".to_owned(),
    };
    format!(
        "{datatype}{cells}{}",
        if nullable { ", nullable" } else { "" }
    )
}

/// Whether a domain leaves out no finite real.
fn holds_all_reals(datatype: Datatype, range: &Range) -> bool {
    use azulejo::format::datatype::Native;
    match datatype {
        Datatype::Float32 => {
            f32::read(&range.start) <= f32::MIN && f32::read(&range.end) >= f32::MAX
        }
        Datatype::Float64 => {
            f64::read(&range.start) <= f64::MIN && f64::read(&range.end) >= f64::MAX
        }
        _ => false,
    }
}

/// `1 to 100`.
pub fn range_text(datatype: Datatype, range: &Range) -> String {
    let every = match datatype {
        Datatype::Float32 => *range == Range::of(f32::MIN, f32::MAX),
        Datatype::Float64 => *range == Range::of(f64::MIN, f64::MAX),
        _ => false,
    };
    if every {
        return "any".to_owned();
    }
    let bound = |bytes: &[u8]| {
        if bytes.is_empty() {
            String::from("\"\"")
        } else {
            value::text(datatype, bytes)
        }
    };
    format!("{} to {}", bound(&range.start), bound(&range.end))
}

/// A tile extent: of datetimes a number of ticks, not a date.
fn extent_text(datatype: Datatype, extent: &[u8]) -> String {
    let plain = if datatype.is_datetime() || datatype.is_time() {
        Datatype::Int64
    } else {
        datatype
    };
    value::text(plain, extent)
}
