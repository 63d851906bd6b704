//! `azulejo cat`: cells to standard output.

use crate::args::{CatArgs, CatFormat};
use crate::cells::{Cells, each_batch};
use crate::columns::Columns;
use crate::error::{CliError, Result};
use crate::output::drawing::Graphics;
use crate::output::table::{Align, Table};
use crate::output::{self, BatchWriter};
use crate::picture::Subject;
use crate::progress::Progress;
use crate::selection::{Coordinates, select};
use crate::session::Session;
use crate::size;
use crate::terminal::Output;
use crate::value;
use azulejo::format::schema::Enumeration;
use azulejo::{Array, ColumnBuffers, ColumnSet};
use std::collections::BTreeSet;
use std::io::Write;

/// Rows of a table unless `--limit` says otherwise.
const TABLE_ROWS: u64 = 100;
/// Characters across and down where nothing says how many the terminal has.
const DRAWING: (usize, usize) = (80, 41);
/// Rows of a table that are laid out together.
const TABLE_PAGE: usize = 2000;

/// Runs the command.
pub fn run(session: &mut Session, args: &CatArgs) -> Result<()> {
    let array = session.open(&args.uri, &args.time)?;
    if let Some(graphics) = args.graphics {
        let subject = Subject {
            array: &array,
            cells: &args.selection,
            look: &args.picture,
        };
        return draw(session, &subject, graphics);
    }
    let format = args.format.unwrap_or(match session.output.json {
        true => CatFormat::Ndjson,
        false if Output::is_terminal() => CatFormat::Table,
        false => CatFormat::Csv,
    });
    if format == CatFormat::Table {
        return table(session, &array, args);
    }
    if format == CatFormat::Arrow && Output::is_terminal() {
        return Err(CliError::usage(
            "an Arrow stream is no sight for a terminal; redirect it: > cells.arrow",
        ));
    }
    let coordinates = if args.columns.coords || args.columns.labels {
        Coordinates::Always
    } else {
        Coordinates::Sparse
    };
    let selection = select(&array, &args.selection, coordinates)?;
    let columns = columns(&array, &selection.fields, args)?;
    let cells = Cells::new(&array, &selection)?;
    let columns = readable(session, columns, cells.first());
    let converter = columns.converter()?;
    let schema = converter.schema();
    // The writers want an output that may go to another thread, so the lines come out of a plain
    // handle.
    session.output.flush()?;
    let out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout());
    let mut writer = match format {
        CatFormat::Csv | CatFormat::Table => BatchWriter::csv(out, schema)?,
        CatFormat::Ndjson => BatchWriter::ndjson(out),
        CatFormat::Arrow => BatchWriter::arrow_stream(out, schema)?,
    };
    let progress = if Output::is_terminal() {
        Progress::none()
    } else {
        session.progress(selection.cell_num())
    };
    cells.for_each(&progress, |set| {
        let set = columns.labelled(set);
        if let Some(at) = columns.not_utf8(&set) {
            let name = &columns.types()[at].name;
            return Err(CliError::Format(format!(
                "{name:?} holds text that is not UTF-8; --raw gives its bytes"
            )));
        }
        writer.write(&converter.convert(set)?)
    })?;
    writer.finish()
}

/// The columns, of which those are bytes whose text is not UTF-8 in the first cells: whoever writes a
/// stream cannot begin anew when he sees it.
pub fn readable(session: &Session, columns: Columns, first: Option<&ColumnSet>) -> Columns {
    let Some(first) = first else { return columns };
    let set = columns.labelled(first.clone());
    let mut bytes = BTreeSet::new();
    loop {
        let shown = columns.as_bytes(&bytes);
        let Some(at) = shown.not_utf8(&set) else {
            return shown;
        };
        note_bytes(session, &shown, at);
        bytes.insert(at);
    }
}

/// Says that a column comes out as bytes.
pub fn note_bytes(session: &Session, columns: &Columns, at: usize) {
    let name = columns.types().get(at).map_or("", |column| &*column.name);
    session.output.note(&format!(
        "{name:?} holds text that is not UTF-8: exported as bytes"
    ));
}

/// Draws cells in the terminal, as many pixels as it has room for.
pub fn draw(session: &mut Session, subject: &Subject<'_>, graphics: Graphics) -> Result<()> {
    let graphics = match graphics {
        Graphics::Auto if Output::is_terminal() => {
            Graphics::of_terminal(|name| std::env::var(name).ok())
        }
        Graphics::Auto => Graphics::Blocks,
        asked => asked,
    };
    let (across, down) = graphics.pixels_per_character();
    let width = session.output.width().unwrap_or(DRAWING.0);
    // One line stays for the prompt.
    let height = session.output.height().unwrap_or(DRAWING.1).max(2) - 1;
    let (canvas, _) = subject.canvas(session, Some((width * across, height * down)))?;
    let styled = session.output.has_colours();
    let drawing = output::drawing::draw(&canvas, graphics, styled)?;
    match graphics {
        Graphics::Blocks | Graphics::Auto => session.output.write_all(drawing.as_bytes())?,
        // Past the filter of escape sequences, which knows colours only.
        Graphics::Kitty | Graphics::Sixel => {
            session.output.flush()?;
            std::io::stdout().write_all(drawing.as_bytes())?;
        }
    }
    Ok(())
}

/// The columns that are shown.
fn columns(array: &Array, fields: &[String], args: &CatArgs) -> Result<Columns> {
    let columns = Columns::new(array, fields, args.columns.raw)?;
    match args.columns.labels {
        true => columns.with_labels(array, fields),
        false => Ok(columns),
    }
}

/// Cells as a table: with the coordinates, and no more rows than somebody wants to read.
fn table(session: &mut Session, array: &Array, args: &CatArgs) -> Result<()> {
    let mut args_selection = args.selection.clone();
    let preview = args_selection.limit.is_none();
    if preview {
        // One more shows that there are more.
        args_selection.limit = Some(TABLE_ROWS + 1);
    }
    let selection = select(array, &args_selection, Coordinates::Always)?;
    let columns = columns(array, &selection.fields, args)?;
    let mut page = new_page(&columns);
    let mut rows = 0;
    let mut hidden = Vec::new();
    let width = session.output.width();
    let styled = session.output.has_colours();
    each_batch(array, &selection, &Progress::none(), |set| {
        let set = columns.labelled(set);
        let mut cells = set.cell_num;
        if preview {
            cells = cells.min((TABLE_ROWS as usize).saturating_sub(rows));
        }
        for start in (0..cells).step_by(TABLE_PAGE) {
            for cell in start..cells.min(start + TABLE_PAGE) {
                let texts = set.columns.iter().zip(columns.types());
                page.row(texts.map(|(column, shown)| cell_text(column, shown, cell)));
            }
            if rows + cells > TABLE_PAGE {
                let rendered =
                    std::mem::replace(&mut page, new_page(&columns)).render(width, styled);
                session.output.write_all(rendered.text.as_bytes())?;
                hidden = rendered.hidden;
            }
        }
        rows += set.cell_num;
        Ok(())
    })?;
    if !page.is_empty() || rows == 0 {
        let rendered = page.render(width, styled);
        session.output.write_all(rendered.text.as_bytes())?;
        hidden = rendered.hidden;
    }
    session.output.flush()?;
    if preview && rows as u64 > TABLE_ROWS {
        session.output.note(&match selection_total(array, args)? {
            Some(total) => {
                format!(
                    "the first {TABLE_ROWS} of {} cells; --limit N shows more",
                    size::count(total)
                )
            }
            None => format!("the first {TABLE_ROWS} cells; --limit N shows more"),
        });
    }
    if !hidden.is_empty() {
        let names = hidden.join(", ");
        session
            .output
            .note(&format!("too narrow for {names}; --attrs chooses columns"));
    }
    if rows == 0 {
        session.output.note("no cells");
    }
    Ok(())
}

fn selection_total(array: &Array, args: &CatArgs) -> Result<Option<u64>> {
    Ok(select(array, &args.selection, Coordinates::Always)?.cell_num())
}

fn new_page(columns: &Columns) -> Table {
    Table::new(columns.types().iter().map(|column| {
        let datatype = column.datatype;
        let number = (datatype.is_integer() || datatype.is_real()) && column.enumeration.is_none();
        (
            &*column.name,
            if number { Align::Right } else { Align::Left },
        )
    }))
}

/// A cell as people read it.
pub fn cell_text(
    column: &ColumnBuffers,
    shown: &azulejo::column::ColumnType,
    cell: usize,
) -> String {
    let view = column.view();
    if !view.is_valid(cell) {
        return "null".to_owned();
    }
    let bytes = view.cell(cell);
    match &shown.enumeration {
        Some(enumeration) => label(enumeration, shown.datatype, bytes),
        None => value::text(shown.datatype, bytes),
    }
}

/// The label of an index; the index itself where the enumeration has no such entry.
fn label(enumeration: &Enumeration, datatype: azulejo::format::Datatype, bytes: &[u8]) -> String {
    let entry = value::index(bytes).and_then(|at| enumeration.value(at));
    match entry {
        Some(entry) => value::text(enumeration.datatype, entry),
        None => format!("#{}", value::text(datatype, bytes)),
    }
}
