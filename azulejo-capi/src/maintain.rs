//! Consolidating, vacuuming, deleting, evolving arrays; `tiledb_consolidation_plan_t`.

use crate::array::ArrayHandle;
use crate::boundary::{In, InOut, Kind, OK, Out, Pointer, Ptr, Str, Text, Texts, capi, capi_free};
use crate::config::{Config, Settings};
use crate::ctx::Context;
use crate::entry::Entry;
use crate::error::{Failure, Result};
use crate::evolution::EvolutionHandle;
use crate::strings::Keep;
use azulejo::array::{FragmentSelection, TimeRange};
use azulejo::consolidate::{Choice, ConsolidationPlan, FragmentOptions, Mode, VacuumOptions};
use azulejo::group::ObjectType;
use azulejo_format::schema::SchemaEvolution;
use std::ffi::c_char;
use std::sync::atomic::{AtomicU64, Ordering};

/// `tiledb_consolidation_plan_t`.
#[derive(Debug)]
pub struct PlanHandle {
    plan: ConsolidationPlan,
    keep: Keep,
}

impl Kind for PlanHandle {
    const NAME: &'static str = "consolidation_plan";
}

/// What of an array a setting names; `None` for the key-values of a group.
fn mode(name: &str, key: &str) -> Result<Option<Mode>> {
    let found = Mode::ALL.into_iter().find(|mode| mode.name() == name);
    if found.is_some() || name == "group_meta" {
        return Ok(found);
    }
    Err(Failure::new(format!(
        "Cannot consolidate; {key} is '{name}', which is no mode"
    )))
}

fn real(settings: &Settings, key: &str) -> Result<f64> {
    let value = settings.get(key).unwrap_or_default();
    value
        .parse()
        .map_err(|_| Failure::new(format!("{key} is '{value}', which is no number")))
}

fn small(settings: &Settings, key: &str) -> Result<u32> {
    Ok(u32::try_from(settings.number(key)?).unwrap_or(u32::MAX))
}

/// The times whose files are consolidated.
pub fn window(settings: &Settings) -> Result<TimeRange> {
    Ok(TimeRange {
        start: settings.number("sm.consolidation.timestamp_start")?,
        end: settings.number("sm.consolidation.timestamp_end")?,
    })
}

/// Fragments are named by their names alone, or by URIs, which must lie in the array.
fn check_folder(uri: &str, fragments: &[String]) -> Result<()> {
    let array = crate::uri::folder(uri);
    for fragment in fragments {
        let Some((folder, _)) = fragment.trim_end_matches('/').rsplit_once('/') else {
            continue;
        };
        let folder = crate::uri::folder(folder);
        let inside = folder.strip_prefix(&array);
        if !inside.is_some_and(|rest| matches!(rest, "" | "/__fragments")) {
            return Err(Failure::new(format!(
                "Cannot consolidate; {fragment} is no fragment of the array {array}"
            )));
        }
    }
    Ok(())
}

fn fragment_options(settings: &Settings, fragments: Vec<String>) -> Result<FragmentOptions> {
    let max = settings.number("sm.consolidation.max_fragment_size")?;
    let choice = Choice::new()
        .steps(small(settings, "sm.consolidation.steps")?)
        .fragments(
            small(settings, "sm.consolidation.step_min_frags")?,
            small(settings, "sm.consolidation.step_max_frags")?,
        )
        .size_ratio(real(settings, "sm.consolidation.step_size_ratio")?)
        .amplification(real(settings, "sm.consolidation.amplification")?);
    let mut options = FragmentOptions::new()
        .fragments(fragments)
        .choice(choice)
        .time(window(settings)?)
        .max_fragment_size((max != u64::MAX).then_some(max))
        .purge_deleted_cells(settings.flag("sm.consolidation.purge_deleted_cells"));
    if settings.given("sm.mem.total_budget").is_some() {
        options.memory_budget = settings.number("sm.mem.total_budget")?.max(16 << 20);
    }
    Ok(options)
}

fn consolidate(ctx: &Context, uri: &str, config: Option<&Config>) -> Result<()> {
    let own = config.map(Config::settings);
    let (engine, settings) = (
        ctx.engine_with(own.as_ref())?,
        ctx.settings_with(own.as_ref()),
    );
    let key = "sm.consolidation.mode";
    let mode = mode(&settings.get(key).unwrap_or_default(), key)?;
    let _entry = mode.map(|_| Entry::shared(uri)).transpose()?;
    match mode {
        Some(Mode::Fragments) => {
            engine
                .array(uri)
                .consolidate(&fragment_options(&settings, Vec::new())?)?;
        }
        Some(Mode::Commits) => {
            engine.array(uri).consolidate_commits()?;
        }
        Some(Mode::FragmentMetadata) => {
            engine.array(uri).consolidate_fragment_metadata()?;
        }
        Some(Mode::ArrayMetadata) => {
            engine.array(uri).consolidate_metadata(window(&settings)?)?;
        }
        None => {
            engine.group(uri).consolidate_metadata(window(&settings)?)?;
        }
    }
    settle(&settings);
    Ok(())
}

/// Gives back what consolidating took, if the settings say so.
fn settle(settings: &Settings) {
    if crate::heap::may_settle(settings) {
        crate::heap::settle();
    }
}

/// The time that a schema change gets.
fn time(range: Option<(u64, u64)>) -> Option<u64> {
    range.map(|(first, _)| first)
}

/// Added attributes must refer to enumerations that are there or added, and those dropped must not
/// be in use.
fn check_enumerations(
    engine: &azulejo::Context,
    uri: &str,
    changes: &SchemaEvolution,
) -> Result<()> {
    let mut schema = None;
    if !changes.drop_enumerations.is_empty() {
        let schema = schema.insert(engine.array(uri).snapshot()?.schema().clone());
        for attribute in schema
            .attributes
            .iter()
            .filter(|a| !changes.drop_attributes.contains(&a.name))
        {
            if let Some(name) = &attribute.enumeration
                && changes.drop_enumerations.contains(name)
            {
                return Err(Failure::new(format!(
                    "Unable to drop enumeration '{name}' as it is used by attribute '{}'; drop the attribute too",
                    attribute.name
                )));
            }
        }
    }
    for name in changes
        .add_attributes
        .iter()
        .filter_map(|attribute| attribute.enumeration.as_ref())
    {
        if changes
            .add_enumerations
            .iter()
            .any(|enumeration| enumeration.name == *name)
        {
            continue;
        }
        let schema = match &mut schema {
            Some(schema) => schema,
            slot => slot.insert(engine.array(uri).snapshot()?.schema().clone()),
        };
        if schema.enumeration(name).is_none() {
            return Err(Failure::new(format!(
                "Cannot evolve; Attribute refers to an unknown enumeration: '{name}'"
            )));
        }
    }
    Ok(())
}

fn node(plan: &PlanHandle, index: u64) -> Result<&[String]> {
    let found = usize::try_from(index)
        .ok()
        .and_then(|index| plan.plan.nodes.get(index));
    found.map(Vec::as_slice).ok_or_else(|| {
        Failure::new("Error: ConsolidationPlan: Trying to access a node that doesn't exist.")
    })
}

/// Evolutions of arrays by this process: tells open arrays that their schema may be an older one.
static EVOLUTIONS: AtomicU64 = AtomicU64::new(0);

/// How many evolutions there were.
pub fn evolutions() -> u64 {
    EVOLUTIONS.load(Ordering::Acquire)
}

capi! {
    /// Makes few of many: fragments, commits, footers or metadata, as `sm.consolidation.mode` says.
    fn tiledb_array_consolidate(ctx, uri: Text, config: In<Config>) {
        consolidate(ctx, uri.get()?, config.opt()?)?;
    }

    /// Makes one fragment of those named.
    fn tiledb_array_consolidate_fragments(ctx, uri: Text, fragments: Texts, num: u64, config: In<Config>) {
        let own = config.opt()?.map(Config::settings);
        let (engine, settings) = (ctx.engine_with(own.as_ref())?, ctx.settings_with(own.as_ref()));
        let fragments = fragments.get(usize::try_from(num).unwrap_or(usize::MAX))?;
        if fragments.is_empty() {
            // Nothing is to be done, but the array is to be there.
            engine.array(uri.get()?).snapshot()?;
            return Ok(());
        }
        check_folder(uri.get()?, &fragments)?;
        let _entry = Entry::shared(uri.get()?)?;
        engine.array(uri.get()?).consolidate(&fragment_options(&settings, fragments)?)?;
        settle(&settings);
    }

    /// Removes what consolidations have replaced, as `sm.vacuum.mode` says.
    fn tiledb_array_vacuum(ctx, uri: Text, config: In<Config>) {
        let own = config.opt()?.map(Config::settings);
        let (engine, settings) = (ctx.engine_with(own.as_ref())?, ctx.settings_with(own.as_ref()));
        let key = "sm.vacuum.mode";
        let mode = mode(&settings.get(key).unwrap_or_default(), key)?;
        let options = VacuumOptions::new().without_bytes(true);
        match mode {
            Some(mode) => engine.array(uri.get()?).vacuum(mode, options)?,
            None => engine.group(uri.get()?).vacuum_metadata(options)?,
        };
    }

    /// Deletes an array, which must not be open.
    fn tiledb_array_delete(ctx, uri: Text) {
        let uri = uri.get()?;
        let _entry = Entry::exclusive(uri)?;
        let object = ctx.engine()?.object(uri);
        if object.object_type()? == Some(ObjectType::Group) {
            return Err(Failure::new(format!("Cannot delete array; '{uri}' is a group")));
        }
        object.delete(false)?;
    }

    /// Deletes the fragments whose time lies in a range; the array must not be open.
    fn tiledb_array_delete_fragments_v2(ctx, uri: Text, start: u64, end: u64) {
        let _entry = Entry::exclusive(uri.get()?)?;
        let selection = FragmentSelection::Within(TimeRange { start, end });
        ctx.engine()?.array(uri.get()?).delete_fragments(selection)?;
    }

    /// Deletes the fragments named; the array must not be open.
    fn tiledb_array_delete_fragments_list(ctx, uri: Text, fragments: Texts, num: usize) {
        let fragments = fragments.get(num)?;
        if fragments.is_empty() {
            return Err("Failed to delete_fragments_list; Invalid input fragments".into());
        }
        let _entry = Entry::exclusive(uri.get()?)?;
        ctx.engine()?.array(uri.get()?).delete_fragments(FragmentSelection::Named(&fragments))
            .map_err(|error| Failure::new(format!("Failed to delete fragments list; {error}")))?;
    }

    /// Changes the schema of an array.
    fn tiledb_array_evolve(ctx, uri: Text, evolution: In<EvolutionHandle>) {
        let (changes, range) = evolution.get()?.evolution();
        let (engine, uri) = (ctx.engine()?, uri.get()?);
        check_enumerations(&engine, uri, &changes)?;
        match time(range) {
            // As in the reference, a schema may be stored with a time before the latest one's.
            Some(at) => engine.array(uri).evolve_at(&changes, at)?,
            None => engine.array(uri).evolve(&changes, None)?,
        }
        EVOLUTIONS.fetch_add(1, Ordering::Release);
    }

    /// Brings the schema of an array to the version that new arrays have.
    fn tiledb_array_upgrade_version(ctx, uri: Text, config: In<Config>) {
        let own = config.opt()?.map(Config::settings);
        ctx.engine_with(own.as_ref())?.array(uri.get()?).upgrade(None)?;
    }

    /// Which fragments of an open array would best be consolidated together.
    fn tiledb_consolidation_plan_create_with_mbr(ctx, array: In<ArrayHandle>, fragment_size: u64, plan: Out<Ptr<PlanHandle>>) {
        let open = array.get()?.open()?;
        plan.give(PlanHandle { plan: open.array()?.consolidation_plan(fragment_size)?, keep: Keep::default() })?;
    }

    /// The number of sets of fragments.
    fn tiledb_consolidation_plan_get_num_nodes(ctx, plan: In<PlanHandle>, num: Out<u64>) {
        num.set(plan.get()?.plan.nodes.len() as u64)?;
    }

    /// The number of fragments in a set.
    fn tiledb_consolidation_plan_get_num_fragments(ctx, plan: In<PlanHandle>, index: u64, num: InOut<u64>) {
        num.set(node(plan.get()?, index)?.len() as u64)?;
    }

    /// The name of a fragment in a set; it lives as long as the handle.
    fn tiledb_consolidation_plan_get_fragment_uri(ctx, plan: In<PlanHandle>, index: u64, fragment: u64, uri: Out<Str>) {
        let plan = plan.get()?;
        let fragments = node(plan, index)?;
        let found = usize::try_from(fragment).ok().and_then(|fragment| fragments.get(fragment));
        let found = found.ok_or_else(|| {
            Failure::new("Error: ConsolidationPlan: Trying to access a fragment that doesn't exist.")
        })?;
        uri.set(plan.keep.text(found))?;
    }

    /// The plan as JSON, which `tiledb_consolidation_plan_free_json_str` frees.
    fn tiledb_consolidation_plan_dump_json_str(ctx, plan: In<PlanHandle>, out: Out<Pointer<c_char>>) {
        let nodes: Vec<serde_json::Value> = (plan.get()?.plan.nodes.iter())
            .map(|node| {
                let uris: Vec<serde_json::Value> = node.iter().map(|uri| serde_json::json!({ "uri": uri })).collect();
                serde_json::json!({ "uris": uris })
            })
            .collect();
        out.set(crate::stats::owned_text(&format!("{:#}", serde_json::json!({ "nodes": nodes }))))?;
    }
}

/// Frees the JSON of a plan.
#[unsafe(no_mangle)]
pub extern "C" fn tiledb_consolidation_plan_free_json_str(text: InOut<Pointer<c_char>>) -> i32 {
    crate::stats::free_text(&text);
    OK
}

capi_free! {
    fn tiledb_consolidation_plan_free(PlanHandle);
}
