//! `azulejo import x.zarr`: a store of Zarr as an array, or as a group of arrays.

use super::{refuse_existing, source_text};
use crate::args::{ImportArgs, ImportFormat};
use crate::command::schema::{print, type_text};
use crate::error::{CliError, Result};
use crate::import::zarr::{self, Plan, Variable};
use crate::output::table::{Align, Table};
use crate::session::Session;
use crate::size;
use crate::zarr::{is_store, open};
use serde_json::json;
use std::path::Path;

/// The folder of the store that is to be imported, if it is one.
pub fn store_of(args: &ImportArgs) -> Option<&Path> {
    let mut folders = args.files.iter().map(Path::new);
    let wanted = args.format == Some(ImportFormat::Zarr);
    folders.find(|folder| wanted || (folder.is_dir() && is_store(folder)))
}

/// Imports a store.
pub fn run(session: &mut Session, args: &ImportArgs, folder: &Path) -> Result<()> {
    refuse_options(args)?;
    let name = folder.file_stem().and_then(|name| name.to_str());
    let node = open(folder)?;
    let plan = zarr::plan(node, name.unwrap_or("value"))?;
    for variable in &plan.variables {
        variable.check(session)?;
    }
    for note in &plan.notes {
        session.output.note(note);
    }
    if args.dry_run {
        return dry_run(session, args, &plan);
    }
    refuse_existing(session, args)?;
    let object = session.context.object(&args.uri);
    match object.unfinished()? {
        Some(_) => zarr::clear(session, &args.uri)?,
        None if object.object_type()?.is_some() => {
            return Err(CliError::usage(format!(
                "{} is there already; delete it, or take another name",
                args.uri
            )));
        }
        None => {}
    }
    object.begin_making(&source_text(args))?;
    let made = zarr::make(session, &plan, &args.uri, args.at);
    if made.is_err() {
        let cleared = zarr::clear(session, &args.uri).and_then(|()| Ok(object.end_making()?));
        match cleared {
            Ok(()) => session
                .output
                .note(&format!("nothing was kept of {}", args.uri)),
            Err(error) => session
                .output
                .note(&format!("a part of the store is in {}: {error}", args.uri)),
        }
    }
    let cells = made?;
    object.end_making()?;
    let arrays = plan.variables.len();
    if session.output.json {
        return session
            .output
            .write_json(&json!({ "uri": args.uri, "arrays": arrays, "cells": cells }));
    }
    session.output.note(&format!(
        "{}: {}, {} cells",
        args.uri,
        match arrays {
            1 => "1 array".to_owned(),
            n => format!("{} arrays", size::count(n as u64)),
        },
        size::count(cells)
    ));
    Ok(())
}

/// A store says itself what its arrays are.
fn refuse_options(args: &ImportArgs) -> Result<()> {
    if args.files.len() > 1 {
        return Err(CliError::usage("a Zarr store is imported by itself"));
    }
    if args.append {
        return Err(CliError::usage(
            "--append: a Zarr store becomes a new array or group; in Python, `xr.open_zarr(..).azulejo.to(.., append_dim=..)` appends one",
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
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(CliError::usage(format!(
            "{name}: a Zarr store says itself what its arrays are"
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
