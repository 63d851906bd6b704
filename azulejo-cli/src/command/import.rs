//! `azulejo import`: an array out of a file.

mod dataset;

use crate::args::ImportArgs;
use crate::command::schema::{print, show, type_text};
use crate::error::{CliError, Result};
use crate::import::duplicates::{self, File, LeftOut};
use crate::import::existing::{self, Misfits, Place};
use crate::import::input::Input;
use crate::import::labels::{self, LabelFile};
use crate::import::load::{Loaded, Loader};
use crate::import::optimize;
use crate::import::plan::{self, Plan, Shape};
use crate::import::profile::Profile;
use crate::import::source::Source;
use crate::import::{Look, attribute_name};
use crate::interrupt;
use crate::output::table::{Align, Table};
use crate::selection::names_among;
use crate::session::Session;
use crate::size;
use crate::sole::Sole;
use azulejo::array::FragmentSelection;
use azulejo::format::ArraySchema;
use azulejo::format::range::compare;
use azulejo::format::schema::SchemaEvolution;
use azulejo::group::ObjectType;
use azulejo::json::SchemaDocument;
use azulejo::{Array, TimeRange};
use serde_json::{Value as Json, json};
use std::collections::HashSet;
use std::path::Path;

/// Runs the command.
pub fn run(session: &mut Session, args: &ImportArgs) -> Result<()> {
    let makes = !args.append && !args.dry_run;
    let _sole = makes.then(|| Sole::at(&args.uri)).transpose()?;
    if makes {
        // Before a file is fetched.
        refuse_existing(session, args)?;
    }
    if args.append && !args.dry_run {
        refuse_unfinished(session, &args.uri)?;
    }
    if let Some((path, kind)) = dataset::of(args) {
        return dataset::run(session, args, path, kind);
    }
    let inputs = Input::open_all(session, &args.files, args.format)?;
    let mut args = args.clone();
    args.shape.unique |= args.on_duplicate.is_some() && args.shape.schema.is_none();
    let mut files = Files {
        inputs: &inputs,
        at: 0,
        left_out: None,
    };
    // What makes the array, or would, is the first file.
    let new_dry_run = args.dry_run && !args.append;
    let mut documents = Vec::new();
    for at in 0..inputs.len() {
        files.at = at;
        if at > 0 && new_dry_run {
            let others = size::count((inputs.len() - at) as u64);
            session.output.note(&format!(
                "this is what the first file makes; what {others} more files hold would be added to it"
            ));
            break;
        }
        let imported = import(session, &args, &mut files);
        if at > 0 && imported.is_err() && makes {
            undo(session, &args.uri);
        } else if at > 0 && imported.is_err() && !args.dry_run {
            session.output.note("the files before it are in the array");
            // Programs are told what these have added, too.
            if let Some(document) = together(std::mem::take(&mut documents), false) {
                session.output.write_json(&document)?;
            }
        }
        documents.extend(imported?);
        // What follows goes into the array that the first file made.
        args.append |= !args.dry_run;
    }
    // Until the last of them is there the array is a part of what was asked for.
    if makes {
        session.context.object(&args.uri).end_making()?;
    }
    match together(documents, args.dry_run) {
        Some(document) => session.output.write_json(&document),
        None => Ok(()),
    }
}

/// One document for all files: of what would be done a list, if there are several.
fn together(documents: Vec<Json>, dry_run: bool) -> Option<Json> {
    if dry_run && documents.len() > 1 {
        return Some(Json::Array(documents));
    }
    let mut documents = documents.into_iter();
    let mut whole = documents.next()?;
    for document in documents {
        for name in ["cells", "filled", "bytes_read", "bytes_stored"] {
            let of = |json: &Json| json.get(name).and_then(Json::as_u64).unwrap_or(0);
            let sum = of(&whole) + of(&document);
            whole[name] = sum.into();
        }
        whole["fragments"] = document["fragments"].clone();
    }
    Some(whole)
}

/// The files of an import, which go into the array one after the other.
struct Files<'a> {
    inputs: &'a [Input],
    /// The one that is imported.
    at: usize,
    /// For each the rows that are left out, once they were looked for in all of them; nothing where
    /// they are left to the writer.
    left_out: Option<Vec<LeftOut>>,
}

impl<'a> Files<'a> {
    fn input(&self) -> Result<&'a Input> {
        let input = self.inputs.get(self.at);
        input.ok_or_else(|| CliError::usage("there is no file to import"))
    }

    /// The rows of the file that are left out of an array which keeps one cell for the same
    /// coordinates, as those of other files count too; `None` where there is no other file.
    fn left_out(
        &mut self,
        session: &Session,
        args: &ImportArgs,
        plan: &Plan,
    ) -> Result<Option<LeftOut>> {
        let schema = &plan.array.schema;
        if self.inputs.len() < 2 || plan.shape != Shape::Sparse || schema.allows_dups {
            return Ok(None);
        }
        if self.left_out.is_none() {
            let mut sources = Vec::new();
            for input in self.inputs {
                let mut source = Source::open(input, args)?;
                if source.names().is_empty() {
                    let fields = schema.fields();
                    source.assume_keys(fields.map(|field| schema.name_of(field).to_owned()));
                }
                sources.push(source);
            }
            let mut files = Vec::new();
            for (input, source) in self.inputs.iter().zip(&sources) {
                let chosen = args.columns.as_deref();
                let targets = plan::targets(schema, source.names(), chosen, &|_| None)?;
                files.push(File::new(&input.name, source, input.size, &targets));
            }
            let found = duplicates::find(session, &files, plan.rows, args.on_duplicate)?;
            self.left_out = Some(found);
        }
        let found = self.left_out.as_ref().and_then(|files| files.get(self.at));
        Ok(Some(found.cloned().unwrap_or_default()))
    }
}

/// Deletes an array that holds only a part of what was to be imported.
fn undo(session: &Session, uri: &str) {
    match session.context.object(uri).delete(false) {
        Ok(_) => session.output.note(&format!("nothing was kept of {uri}")),
        Err(error) => session
            .output
            .note(&format!("a part of the file is in {uri}: {error}")),
    }
}

/// Imports a file, or several of the same kind of text. What was done as JSON, where that is asked
/// for.
fn import(session: &mut Session, args: &ImportArgs, files: &mut Files<'_>) -> Result<Option<Json>> {
    let input = files.input()?;
    let mut source = Source::open(input, args)?;
    let mut args = with_names(args, source.names());
    if args.append {
        return append(session, args, files, &mut source);
    }
    if args.shape.schema.is_some() && !source.names().is_empty() {
        check_columns(&args, source.names())?;
    }
    // JSON lines have no names yet.
    let text = &args.text;
    let has_header = matches!(source, Source::Text(_)) && !text.no_header && text.names.is_none();
    if has_header && only_numbers(source.names()) {
        session.output.note(&format!(
            "the first line of {} holds numbers only, and is taken for names; --no-header takes it for values",
            input.name
        ));
    }
    let wished = args.shape.label.iter();
    let labels = wished.map(|wish| LabelFile::read(session, wish));
    let labels = labels.collect::<Result<Vec<_>>>()?;
    let mut plan = match &args.shape.schema {
        Some(file) => {
            let document = read_document(file)?;
            let array = document
                .into_new_array()
                .map_err(|e| in_document(file, &e.to_string()))?;
            let schema = &array.schema;
            let profiles;
            (args, profiles) = by_names(session, args, &mut source, input.size, |args, source| {
                look_for(session, args, source, input.size, schema)
            })?;
            let chosen = args.columns.as_deref();
            existing::plan(session, &source, input.size, chosen, &profiles, array, None)?
        }
        None => {
            let profiles;
            (args, profiles) = by_names(session, args, &mut source, input.size, |args, source| {
                let look = look(args, source);
                source.profile(session, &look, input.size)
            })?;
            if source.names().is_empty() {
                return Err(input.error("the file is empty: there is no value in it"));
            }
            check_columns(&args, source.names())?;
            match &source {
                Source::Npy(file, name) => {
                    let column = file.column_type(name);
                    plan::new_grid(
                        &column,
                        &file.shape,
                        file.fortran,
                        &args.shape,
                        &args.fields,
                    )?
                }
                _ => plan::new_array(&profiles, source.names(), &args.shape, &args.fields)?,
            }
        }
    };
    let args = &args;
    labels::attach(&mut plan.array, &labels)?;
    // A schema that is given says its filters.
    if args.shape.schema.is_none() {
        optimize::choose(session, &source, input.size, &mut plan, &args.fields)?;
    }
    for note in &plan.notes {
        session.output.note(note);
    }
    if args.dry_run {
        dry_run(session, args, &plan)?;
        return Ok(None);
    }
    let array = plan.array.clone();
    let object = session.context.object(&args.uri);
    let at = args.at.unwrap_or_else(azulejo::clock::next_timestamp);
    object.begin_making(&source_text(args), Some(at))?;
    let created = session.context.array(&args.uri).create_at(array, at);
    if let Err(error) = created {
        // What somebody else makes there is nothing that this import has begun. What a storage has
        // kept of its own begins again.
        let is_others = matches!(error, azulejo::Error::AlreadyExists { .. });
        if is_others || matches!(object.object_type(), Ok(None)) {
            let _ = object.end_making();
        }
        return Err(error.into());
    }
    // Labels first: whoever sees the cells sees their labels.
    let labelled = session
        .context
        .array(&args.uri)
        .open()
        .map_err(CliError::from);
    let labelled = labelled.and_then(|array| {
        labels
            .iter()
            .try_for_each(|label| label.write(&array, args.at))
    });
    let result =
        labelled.and_then(|()| load(session, args, files, &source, &plan, &mut Added::default()));
    if result.is_err() {
        undo(session, &args.uri);
    }
    let loaded = result?;
    report(session, args, input, loaded, &HashSet::new())
}

/// Whether names of columns look like values. Those that come twice have a number behind them.
fn only_numbers(names: &[String]) -> bool {
    let number = |name: &String| {
        let numbered = name.rsplit_once('_');
        let first = numbered.filter(|(_, number)| number.parse::<usize>().is_ok());
        first
            .map_or(name.as_str(), |(first, _)| first)
            .parse::<f64>()
            .is_ok()
    };
    !names.is_empty() && names.iter().all(number)
}

/// What is noted of a file while an array is being made of it.
fn source_text(args: &ImportArgs) -> String {
    format!("import of {}", args.files.join(", "))
}

/// What the first look is for.
fn look(args: &ImportArgs, source: &Source<'_>) -> Look {
    let enumerate = args.fields.enumerate.clone();
    Look {
        columns: args.columns.clone(),
        cut: source.names().is_empty(),
        dims: args.shape.dims.clone().unwrap_or_default(),
        may_enumerate: enumerate.is_none(),
        enumerate: enumerate.unwrap_or_default(),
        narrow: args.fields.narrow,
        ..Look::default()
    }
}

/// The same, where lists of columns that were cut at their commas name those that a file has.
fn with_names(args: &ImportArgs, columns: &[String]) -> ImportArgs {
    let is_column = |name: &str| columns.iter().any(|column| column == name);
    let is_field = |name: &str| {
        let mut columns = columns.iter();
        columns.any(|column| column == name || attribute_name(column) == name)
    };
    let mut args = args.clone();
    if columns.is_empty() {
        return args;
    }
    for list in [&mut args.columns, &mut args.shape.dims]
        .into_iter()
        .flatten()
    {
        *list = names_among(list, is_column);
    }
    let fields = &mut args.fields;
    let lists = [&mut fields.nullable, &mut fields.required].into_iter();
    for list in lists.chain(&mut fields.enumerate) {
        *list = names_among(list, is_field);
    }
    args
}

/// Looks at a file; what its lists of columns name is known then, also where only a look tells keys.
fn by_names(
    session: &Session,
    args: ImportArgs,
    source: &mut Source<'_>,
    size: u64,
    look: impl FnOnce(&ImportArgs, &mut Source<'_>) -> Result<Vec<Profile>>,
) -> Result<(ImportArgs, Vec<Profile>)> {
    let had_names = !source.names().is_empty();
    let mut found = look(&args, source)?;
    if had_names {
        return Ok((args, found));
    }
    let args = with_names(&args, source.names());
    let Some(chosen) = &args.columns else {
        return Ok((args, found));
    };
    // Lines of which there are none have no keys either.
    let has_lines = found.first().is_none_or(|profile| profile.rows > 0);
    if has_lines && chosen.iter().any(|name| !source.names().contains(name)) {
        // The message names all keys, of which those that nobody asked for were left out.
        source.profile(session, &Look::default(), size)?;
        if !found.is_empty() || !source.names().is_empty() {
            check_columns(&args, source.names())?;
        }
    }
    // Keys that parts of the list could have named, and do not.
    let is_chosen = |profile: &Profile| chosen.contains(&profile.name);
    if found.iter().any(is_chosen) {
        found.retain(is_chosen);
    }
    Ok((args, found))
}

/// Looks at a file that is to go into an array with this schema, which is there or is made with it.
fn look_for(
    session: &Session,
    args: &ImportArgs,
    source: &mut Source<'_>,
    size: u64,
    schema: &ArraySchema,
) -> Result<Vec<Profile>> {
    let columns = args.columns.clone();
    if args.dry_run {
        let look = existing::label_look(source, columns, schema, args.append);
        return existing::profiles(session, source, size, &look, schema);
    }
    existing::look(session, source, size, columns, schema, args.append)
}

fn check_columns(args: &ImportArgs, names: &[String]) -> Result<()> {
    match args
        .columns
        .iter()
        .flatten()
        .find(|column| !names.contains(column))
    {
        Some(missing) => Err(CliError::usage(format!(
            "--columns: the file has no column {missing:?}; it has {}",
            names.join(", ")
        ))),
        None => Ok(()),
    }
}

fn refuse_existing(session: &Session, args: &ImportArgs) -> Result<()> {
    let uri = &args.uri;
    // Mostly there is nothing, which one listing tells.
    let there = session.context.object(uri).object_type();
    if matches!(there, Ok(None)) {
        return Ok(());
    }
    match session.context.object(uri).unfinished() {
        // It begins again.
        Ok(Some(source)) if source == source_text(args) => return Ok(()),
        Ok(Some(source)) => {
            return Err(CliError::usage(format!(
                "{uri} is what is left of an {source} that was cut short: delete it, or import that file again"
            )));
        }
        // A note there is about what is whole, if its import was cut short at its last step, or was
        // made by others.
        Ok(None) => drop(session.context.object(uri).end_making()),
        Err(_) => {}
    }
    if matches!(there, Ok(Some(ObjectType::Group))) {
        return Err(CliError::usage(format!(
            "{uri} is a group that is there already; import to a place in it, or delete it"
        )));
    }
    match session.context.array(uri).open() {
        Ok(_) => Err(CliError::usage(format!(
            "{uri} is there already; --append adds to it"
        ))),
        // Whatever else is wrong shows when the array is created.
        Err(_) => Ok(()),
    }
}

/// Refuses to add to what an import has left that was cut short: the same import would take all of
/// it for its own, and begin anew.
fn refuse_unfinished(session: &Session, uri: &str) -> Result<()> {
    match session.context.object(uri).unfinished()? {
        Some(source) => Err(CliError::usage(format!(
            "{uri} is what is left of an {source} that was cut short: import that file again, or delete it"
        ))),
        None => Ok(()),
    }
}

fn read_document(file: &Path) -> Result<SchemaDocument> {
    let text = std::fs::read_to_string(file).map_err(|e| CliError::io("read", file, e))?;
    let json = serde_json::from_str(&text).map_err(|e| in_document(file, &e.to_string()))?;
    SchemaDocument::from_json(&json).map_err(|e| in_document(file, &e.to_string()))
}

fn in_document(file: &Path, reason: &str) -> CliError {
    CliError::usage(format!("{}: {reason}", file.display()))
}

fn dry_run(session: &mut Session, args: &ImportArgs, plan: &Plan) -> Result<()> {
    let document = SchemaDocument::from(plan.array.clone());
    if session.output.json {
        return session.output.write_json(&document.to_json()?);
    }
    show(&mut session.output, &document)?;
    session.output.note(&format!(
        "\n{} rows would go into {}; nothing was written",
        size::count(plan.rows),
        args.uri
    ));
    Ok(())
}

/// The fragments that an import has written.
#[derive(Debug, Default)]
struct Added {
    names: Vec<String>,
    /// Whether they are to be made a part of the array together, so that whoever is killed leaves no
    /// part of a file.
    waits: bool,
}

/// A file that is to go into an array that is there.
struct Fit<'a> {
    source: &'a Source<'a>,
    size: u64,
    chosen: Option<&'a [String]>,
    profiles: &'a [Profile],
    place: &'a Place,
}

impl Fit<'_> {
    /// How it goes into the array as it is now.
    fn plan(&self, session: &Session, array: &Array) -> Result<Plan> {
        existing::plan(
            session,
            self.source,
            self.size,
            self.chosen,
            self.profiles,
            existing::as_new(array)?,
            Some(self.place),
        )
    }
}

/// Adds to an array.
fn append(
    session: &mut Session,
    args: ImportArgs,
    files: &mut Files<'_>,
    source: &mut Source<'_>,
) -> Result<Option<Json>> {
    let input = files.input()?;
    let array = session.context.array(&args.uri).open()?;
    let schema = array.schema().clone();
    // Those of JSON lines are known after a look only.
    if !source.names().is_empty() {
        check_columns(&args, source.names())?;
    }
    let (args, profiles) = by_names(session, args, source, input.size, |args, source| {
        look_for(session, args, source, input.size, &schema)
    })?;
    let args = &args;
    let handle = session.context.array(&args.uri);
    // Rows go behind the end, and over nothing: until they are there, where it is must not change.
    let hold = (schema.is_dense() && !args.dry_run).then(|| handle.hold());
    let mut hold = hold.transpose()?;
    let mut array = match &hold {
        Some(_) => handle.open()?,
        None => array,
    };
    let place = Place::new(&array, &args.place)?;
    let size = input.size;
    let fit = Fit {
        source,
        size,
        chosen: args.columns.as_deref(),
        profiles: &profiles,
        place: &place,
    };
    let mut plan = fit.plan(session, &array)?;
    let mut evolution = existing::evolution(session, source, size, &profiles, &plan)?;
    if evolution != SchemaEvolution::default() && hold.is_none() && !args.dry_run {
        // What grows is what is there once nobody else lets it grow.
        hold = Some(handle.hold()?);
        array = handle.open()?;
        plan = fit.plan(session, &array)?;
        evolution = existing::evolution(session, source, size, &profiles, &plan)?;
    }
    let misfits = Misfits::of(source, args.columns.as_deref(), &plan, &evolution);
    let lines = misfits.lines();
    if args.place.strict && !lines.is_empty() {
        return Err(CliError::usage(format!("--strict: {}", lines.join("; "))));
    }
    for line in &lines {
        session.output.note(line);
    }
    if args.dry_run {
        try_values(session, source, input, &plan, &evolution)?;
        return append_dry_run(session, args, source, &plan, &evolution, &misfits);
    }
    let before: HashSet<String> = fragment_names(&array);
    if evolution != SchemaEvolution::default() {
        match &hold {
            Some(hold) => hold.evolve(&evolution, args.at)?,
            None => handle.evolve(&evolution, args.at)?,
        }
        plan = fit.plan(session, &handle.open()?)?;
    }
    // Sparse cells go beside those of others.
    hold = hold.filter(|_| schema.is_dense());
    let mut written = Added::default();
    let result = load(session, args, files, source, &plan, &mut written);
    let result = result.and_then(|loaded| {
        match &hold {
            _ if !written.waits => {}
            Some(hold) => hold.commit_fragments(&written.names)?,
            None => handle.commit_fragments(&written.names)?,
        }
        Ok(loaded)
    });
    drop(hold);
    if result.is_err() && !written.names.is_empty() {
        let gone = match written.waits {
            true => handle.discard_fragments(&written.names),
            false => {
                let selection = FragmentSelection::Named(&written.names);
                handle.delete_fragments(selection).map(|_| ())
            }
        };
        match gone {
            Ok(()) => session.output.note(&format!("{} is as it was", args.uri)),
            Err(error) => session
                .output
                .note(&format!("a part of the file is in {}: {error}", args.uri)),
        }
    }
    if result.is_err() {
        note_evolution(session, &evolution);
    }
    let loaded = result?;
    report(session, args, input, loaded, &before)
}

fn fragment_names(array: &Array) -> HashSet<String> {
    let names = array.fragments().iter().map(|f| f.name().to_owned());
    names.collect()
}

/// Says what of a schema stays that was changed for a file which then could not be imported.
fn note_evolution(session: &mut Session, evolution: &SchemaEvolution) {
    for enumeration in &evolution.extend_enumerations {
        let name = &enumeration.name;
        session.output.note(&format!(
            "enumeration {name:?} keeps its new labels, which no cell has: harmless"
        ));
    }
    if evolution.expand_current_domain.is_some() {
        session
            .output
            .note("the current domain stays larger, without cells in the new part: harmless");
    }
}

/// Reads a file as the import would, a part after another, so that values which it would refuse are
/// refused. Labels that are new have no numbers yet, and were looked at before.
fn try_values(
    session: &Session,
    source: &Source<'_>,
    input: &Input,
    plan: &Plan,
    evolution: &SchemaEvolution,
) -> Result<()> {
    let schema = &plan.array.schema;
    let grows = |field: &str| {
        let attribute = schema.attributes.iter().find(|a| a.name == field);
        let labels = attribute.and_then(|a| a.enumeration.as_deref());
        let mut extended = evolution.extend_enumerations.iter();
        extended.any(|enumeration| Some(enumeration.name.as_str()) == labels)
    };
    let targets = plan.targets.iter();
    let targets: Vec<_> = targets
        .filter(|t| !grows(&t.column.name))
        .cloned()
        .collect();
    if targets.is_empty() || plan.rows == 0 {
        return Ok(());
    }
    source.read(session, &targets, input.size, &mut |first, set| {
        interrupt::check()?;
        for (target, column) in targets.iter().zip(&set.columns) {
            let mut dimensions = schema.domain.dimensions.iter();
            let dimension =
                dimensions.find(|d| target.is_dimension && *d.name == *target.column.name);
            let Some(domain) = dimension.and_then(|d| d.domain.as_ref()) else {
                continue;
            };
            let datatype = target.column.datatype;
            let is_outside = |cell: &[u8]| {
                compare(datatype, cell, &domain.start).is_lt()
                    || compare(datatype, cell, &domain.end).is_gt()
            };
            let mut cells = column.cells();
            if let Some(at) = cells.position(|cell| cell.is_some_and(is_outside)) {
                return Err(CliError::usage(format!(
                    "{}, {}: it lies outside the domain of dimension {:?}",
                    input.name,
                    source.row_text(session, first + at as u64),
                    target.column.name,
                )));
            }
        }
        Ok(())
    })
}

fn append_dry_run(
    session: &mut Session,
    args: &ImportArgs,
    source: &Source<'_>,
    plan: &Plan,
    evolution: &SchemaEvolution,
    misfits: &Misfits,
) -> Result<Option<Json>> {
    let column = |at: usize| source.names().get(at).map_or("", String::as_str);
    let grows = evolution.expand_current_domain.is_some();
    if session.output.json {
        let labels: Vec<&str> = evolution
            .extend_enumerations
            .iter()
            .map(|e| e.name.as_str())
            .collect();
        let columns: Vec<Json> = plan
            .targets
            .iter()
            .map(|target| {
                json!({ "column": column(target.source), "field": target.column.name.to_string() })
            })
            .collect();
        let new_labels: Vec<Json> = misfits
            .labels
            .iter()
            .map(|(field, labels)| json!({ "field": field, "labels": labels }))
            .collect();
        let json = json!({
            "rows": plan.rows,
            "columns": columns,
            "dropped_columns": misfits.columns,
            "extended_enumerations": labels,
            "new_labels": new_labels,
            "current_domain_grows": grows,
        });
        return Ok(Some(json));
    }
    let mut table = Table::new(["column", "field", "type"].map(|name| (name, Align::Left)));
    for target in &plan.targets {
        let of = &target.column;
        let datatype = type_text(of.datatype, of.cell_val_num, of.nullable);
        table.row([column(target.source), &of.name, &datatype]);
    }
    for column in &misfits.columns {
        table.row([column, "(none)", ""]);
    }
    print(&mut session.output, &table)?;
    session.output.note(&format!(
        "{} rows would go into {}",
        size::count(plan.rows),
        args.uri
    ));
    if grows {
        session.output.note("the current domain would grow");
    }
    Ok(None)
}

fn load(
    session: &Session,
    args: &ImportArgs,
    files: &mut Files<'_>,
    source: &Source<'_>,
    plan: &Plan,
    written: &mut Added,
) -> Result<Loaded> {
    let input = files.input()?;
    let left_out = files.left_out(session, args, plan)?;
    let range = args.at.map_or(TimeRange::ALL, TimeRange::until);
    let array = session.context.array(&args.uri).open_at(range)?;
    // What a new array has counts with its mark only; old formats have no commit for several.
    written.waits = args.append && array.schema().version.has_subdirectories();
    let loader = Loader {
        session,
        source,
        size: input.size,
        at: args.at,
        append: args.append,
        fill: args.fill,
        on_duplicate: args.on_duplicate,
        left_out,
        waits: written.waits,
    };
    loader.load(&array, plan, &mut written.names)
}

/// Says what was added: the fragments that were not there `before`.
fn report(
    session: &mut Session,
    args: &ImportArgs,
    input: &Input,
    loaded: Loaded,
    before: &HashSet<String>,
) -> Result<Option<Json>> {
    let array = session.context.array(&args.uri).open()?;
    let info = array.fragment_info();
    let added = info.fragments().filter(|f| !before.contains(f.name()));
    let mut bytes = 0;
    for fragment in added {
        bytes += fragment.size()?;
    }
    if session.output.json {
        return Ok(Some(json!({
            "uri": args.uri,
            "cells": loaded.cells,
            "filled": loaded.filled,
            "fragments": array.fragments().len(),
            "bytes_read": input.size,
            "bytes_stored": bytes,
        })));
    }
    session.output.note(&format!(
        "{}: {}{}, {} from {}",
        args.uri,
        match loaded.cells {
            1 => "1 cell".to_owned(),
            n => format!("{} cells", size::count(n)),
        },
        if args.append { " more" } else { "" },
        size::text(bytes),
        size::text(input.size)
    ));
    if loaded.filled > 0 {
        session.output.note(&format!(
            "{} cells that have no row hold fill values, and count as data; --sparse keeps only the rows",
            size::count(loaded.filled)
        ));
    }
    Ok(None)
}
