//! `azulejo import x.zarr`, `azulejo import x.tif`: what says itself what its arrays are, as a group of
//! arrays (or one array of Zarr).

use super::{refuse_existing, source_text};
use crate::args::{ImportArgs, ImportFormat};
use crate::command::schema::{print, type_text};
use crate::error::{CliError, Result};
use crate::geotiff::is_tiff;
use crate::import::append::Append;
use crate::import::dataset::{self, Plan, Variable};
use crate::import::{geotiff, optimize, zarr};
use crate::output::table::{Align, Table};
use crate::session::Session;
use crate::size;
use crate::zarr::{is_store, open};
use serde_json::json;
use std::path::Path;

/// What says itself what its arrays are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A folder of Zarr.
    Zarr,
    /// A file of GeoTIFF.
    GeoTiff,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Zarr => "a Zarr store",
            Self::GeoTiff => "a GeoTIFF",
        }
    }
}

/// The first of the files that is to be imported as a dataset.
pub fn of(args: &ImportArgs) -> Option<(&Path, Kind)> {
    let kind = |path: &Path| match args.format {
        Some(ImportFormat::Zarr) => Some(Kind::Zarr),
        Some(ImportFormat::Geotiff) => Some(Kind::GeoTiff),
        Some(_) => None,
        None if path.is_dir() && is_store(path) => Some(Kind::Zarr),
        None if is_tiff(path) => Some(Kind::GeoTiff),
        None => None,
    };
    let mut paths = args.files.iter().map(Path::new);
    paths.find_map(|path| Some((path, kind(path)?)))
}

/// Imports a file or a store.
pub fn run(session: &mut Session, args: &ImportArgs, path: &Path, kind: Kind) -> Result<()> {
    refuse_options(args, kind)?;
    let mut plan = match kind {
        Kind::Zarr => {
            let name = path.file_stem().and_then(|name| name.to_str());
            zarr::plan(open(path)?, name.unwrap_or("value"))?
        }
        Kind::GeoTiff => geotiff::plan(path)?,
    };
    for variable in &plan.variables {
        variable.cells.check(session)?;
    }
    for note in &plan.notes {
        session.output.note(note);
    }
    if args.dry_run {
        return dry_run(session, args, &plan);
    }
    if args.append {
        let append = Append::new(session, &plan, &args.uri, args.place.append_dim.as_deref())?;
        let arrays = append.arrays();
        let cells = append.write(session, args.at)?;
        return report(session, args, arrays, cells);
    }
    refuse_existing(session, args)?;
    let object = session.context.object(&args.uri);
    match object.unfinished()? {
        Some(_) => dataset::clear(session, &args.uri)?,
        None if object.object_type()?.is_some() => {
            return Err(CliError::usage(format!(
                "{} is there already; delete it, or take another name",
                args.uri
            )));
        }
        None => {}
    }
    optimize::choose_for_dataset(session, &mut plan, args.fields.goal())?;
    // A group has no time.
    let is_array = plan.variables.iter().any(|v| v.path.is_empty());
    let at = args.at.unwrap_or_else(azulejo::clock::next_timestamp);
    let made_at = is_array.then_some(at);
    object.begin_making(&source_text(args), made_at)?;
    let made = dataset::make(session, &plan, &args.uri, args.at, made_at);
    if let Err(CliError::Engine(azulejo::Error::AlreadyExists { .. })) = &made {
        // Somebody else was faster, and what lies there is theirs.
        let _ = object.end_making();
    } else if made.is_err() {
        let cleared = dataset::clear(session, &args.uri).and_then(|()| Ok(object.end_making()?));
        match cleared {
            Ok(()) => session
                .output
                .note(&format!("nothing was kept of {}", args.uri)),
            Err(error) => session
                .output
                .note(&format!("a part of it is in {}: {error}", args.uri)),
        }
    }
    let cells = made?;
    object.end_making()?;
    report(session, args, plan.variables.len(), cells)
}

/// Says what was written.
fn report(session: &mut Session, args: &ImportArgs, arrays: usize, cells: u64) -> Result<()> {
    if session.output.json {
        return session
            .output
            .write_json(&json!({ "uri": args.uri, "arrays": arrays, "cells": cells }));
    }
    session.output.note(&format!(
        "{}: {}, {} cells{}",
        args.uri,
        match arrays {
            1 => "1 array".to_owned(),
            n => format!("{} arrays", size::count(n as u64)),
        },
        size::count(cells),
        if args.append { " more" } else { "" }
    ));
    Ok(())
}

/// Such a file says itself what its arrays are.
fn refuse_options(args: &ImportArgs, kind: Kind) -> Result<()> {
    let name = kind.name();
    if args.files.len() > 1 {
        return Err(CliError::usage(format!("{name} is imported by itself")));
    }
    if args.append && kind == Kind::GeoTiff {
        return Err(CliError::usage(
            "--append: a GeoTIFF becomes a new group; in Python, `xr.open_dataset(..).azulejo.to(.., append_dim=..)` appends one",
        ));
    }
    let (shape, fields) = (&args.shape, &args.fields);
    let given = [
        ("--columns", args.columns.is_some()),
        ("--dims", shape.dims.is_some()),
        ("--sparse", shape.sparse),
        ("--unique", shape.unique || args.on_duplicate.is_some()),
        ("--schema", shape.schema.is_some()),
        ("--domain", !shape.domain.is_empty()),
        ("--tile", !shape.tile.is_empty()),
        ("--capacity", shape.capacity.is_some()),
        ("--cell-order", shape.cell_order.is_some()),
        ("--tile-order", shape.tile_order.is_some()),
        ("--label", !shape.label.is_empty()),
        ("--type", !fields.types.is_empty()),
        ("--narrow", fields.narrow),
        ("--nullable", !fields.nullable.is_empty()),
        ("--required", !fields.required.is_empty()),
        ("--enumerate", fields.enumerate.is_some()),
        ("--filter", !fields.filters.is_empty()),
        ("--offset", !args.place.offset.is_empty()),
        ("--overwrite", args.place.overwrite),
        ("--strict", args.place.strict),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(CliError::usage(format!(
            "{option}: {name} says itself what its arrays are"
        ))),
        None => Ok(()),
    }
}

fn dry_run(session: &mut Session, args: &ImportArgs, plan: &Plan) -> Result<()> {
    let names = |variable: &Variable| {
        let dimensions = &variable.array.schema.domain.dimensions;
        let names: Vec<String> = dimensions.iter().map(|d| d.name.clone()).collect();
        names
    };
    let kind = |variable: &Variable| {
        let attributes = &variable.array.schema.attributes;
        let kinds = attributes
            .iter()
            .map(|a| type_text(a.datatype, a.cell_val_num, a.nullable));
        kinds.collect::<String>()
    };
    if session.output.json {
        let arrays = plan.variables.iter().map(|variable| {
            json!({
                "path": variable.path,
                "type": kind(variable),
                "dimensions": names(variable),
                "cells": variable.cells(),
            })
        });
        let arrays: Vec<_> = arrays.collect();
        return session.output.write_json(&json!({ "arrays": arrays }));
    }
    let columns = [
        ("array", Align::Left),
        ("type", Align::Left),
        ("dimensions", Align::Left),
        ("cells", Align::Right),
    ];
    let mut table = Table::new(columns);
    for variable in &plan.variables {
        let path = match variable.path.as_str() {
            "" => args.uri.as_str(),
            path => path,
        };
        table.row([
            path,
            &kind(variable),
            &names(variable).join(", "),
            &size::count(variable.cells()),
        ]);
    }
    print(&mut session.output, &table)
}
