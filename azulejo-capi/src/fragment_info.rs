//! `tiledb_fragment_info_t`.

use crate::boundary::{In, Kind, Opaque, Out, OutBytes, Ptr, Str, Text, capi, capi_free};
use crate::config::{Config, Settings};
use crate::error::{Failure, Result};
use crate::schema::SchemaHandle;
use crate::strings::{Keep, StringHandle, lock};
use azulejo::array::TimeRange;
use azulejo::fragment_info::{FragmentDescription, FragmentInfo};
use azulejo_format::Range;
use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

/// `tiledb_fragment_info_t`.
#[derive(Debug)]
pub struct InfoHandle {
    uri: String,
    state: Mutex<State>,
    keep: Keep,
}

impl Kind for InfoHandle {
    const NAME: &'static str = "fragment_info";
}

#[derive(Debug, Default)]
struct State {
    settings: Option<Settings>,
    info: Option<Loaded>,
}

/// What was loaded: from an array, or out of a message.
#[derive(Debug, Clone)]
pub struct Loaded {
    info: FragmentInfo,
    told: Option<Arc<Told>>,
}

/// What a message said that only files would tell.
#[derive(Debug, Default)]
pub struct Told {
    /// Where the array lies.
    pub array_uri: String,
    /// By their names, the sizes of fragments in bytes and whether their footers are in
    /// consolidated metadata.
    pub fragments: HashMap<String, (u64, bool)>,
    /// Names of the fragments that vacuuming would delete.
    pub to_vacuum: Vec<String>,
}

impl Told {
    /// Where the fragment of this name lies.
    fn uri(&self, name: &str) -> String {
        let named = crate::query::fragment_uri(&self.array_uri, name);
        named.unwrap_or_else(|_| format!("{}/{name}", crate::uri::folder(&self.array_uri)))
    }
}

impl Deref for Loaded {
    type Target = FragmentInfo;

    fn deref(&self) -> &FragmentInfo {
        &self.info
    }
}

impl Loaded {
    /// Out of a message, which said more.
    pub fn told(info: FragmentInfo, told: Told) -> Self {
        Self {
            info,
            told: Some(Arc::new(told)),
        }
    }

    fn of_fragment(&self, fragment: &FragmentDescription<'_>) -> Option<(u64, bool)> {
        let told = self.told.as_ref()?;
        told.fragments.get(fragment.name()).copied()
    }

    /// The URI of a fragment.
    pub fn uri(&self, fragment: &FragmentDescription<'_>) -> String {
        match &self.told {
            Some(told) => told.uri(fragment.name()),
            None => crate::uri::absolute(&fragment.uri()),
        }
    }

    /// Bytes of a fragment's files.
    pub fn size(&self, fragment: &FragmentDescription<'_>) -> Result<u64> {
        match self.of_fragment(fragment) {
            Some((size, _)) => Ok(size),
            None => Ok(fragment.size()?),
        }
    }

    /// Whether a fragment's footer is in consolidated metadata.
    pub fn is_consolidated(&self, fragment: &FragmentDescription<'_>) -> bool {
        self.of_fragment(fragment)
            .map_or_else(|| fragment.has_consolidated_metadata(), |(_, is)| is)
    }

    /// The number of fragments whose footers are not in consolidated metadata.
    fn unconsolidated(&self) -> usize {
        self.fragments()
            .filter(|f| !self.is_consolidated(f))
            .count()
    }

    /// URIs of the fragments that vacuuming would delete.
    pub fn vacuum_uris(&self) -> Vec<String> {
        (0..self.vacuum_num())
            .filter_map(|index| self.vacuum_uri(index))
            .collect()
    }

    /// How many fragments vacuuming would delete.
    fn vacuum_num(&self) -> usize {
        match &self.told {
            Some(told) => told.to_vacuum.len(),
            None => self.to_vacuum().len(),
        }
    }

    /// The URI of one of the fragments that vacuuming would delete.
    fn vacuum_uri(&self, index: usize) -> Option<String> {
        match &self.told {
            Some(told) => Some(told.uri(told.to_vacuum.get(index)?)),
            None => Some(self.to_vacuum().get(index)?.to_string()),
        }
    }
}

impl InfoHandle {
    /// What was loaded.
    pub fn info(&self) -> Result<Loaded> {
        let info = lock(&self.state).info.clone();
        info.ok_or_else(|| Failure::new("the fragment info is not loaded"))
    }

    /// Takes over what a message says.
    pub fn tell(&self, loaded: Loaded) {
        lock(&self.state).info = Some(loaded);
    }

    /// Its own settings, if it has some.
    pub fn settings(&self) -> Option<Settings> {
        lock(&self.state).settings.clone()
    }

    /// Gives it settings of its own.
    pub fn set_settings(&self, settings: Settings) {
        lock(&self.state).settings = Some(settings);
    }
}

fn fragment(info: &FragmentInfo, index: u32) -> Result<FragmentDescription<'_>> {
    let count = info.fragment_num();
    info.fragment(index as usize).ok_or_else(|| {
        Failure::new(format!(
            "Invalid fragment index {index}: there are {count} fragments"
        ))
    })
}

/// Which dimension is asked for.
enum Dim<'a> {
    Index(u32),
    Name(&'a str),
}

impl Dim<'_> {
    fn index(&self, fragment: &FragmentDescription<'_>, var: bool) -> Result<usize> {
        let domain = &fragment.schema().domain;
        let index = match self {
            Dim::Index(index) => Some(*index as usize).filter(|index| *index < domain.ndim()),
            Dim::Name(name) => domain.index_of(name),
        };
        let index = index.ok_or_else(|| Failure::new("Cannot get range; Invalid dimension"))?;
        let is_var = domain
            .dimensions
            .get(index)
            .is_some_and(azulejo_format::schema::Dimension::is_var);
        if is_var != var {
            let kind = if is_var { "variable" } else { "fixed" };
            return Err(Failure::new(format!(
                "Cannot get range; the dimension is {kind}-sized"
            )));
        }
        Ok(index)
    }
}

fn domain(info: &FragmentInfo, fid: u32, dim: &Dim<'_>, var: bool) -> Result<Range> {
    let fragment = fragment(info, fid)?;
    let index = dim.index(&fragment, var)?;
    let found = fragment
        .non_empty_domain()
        .and_then(|domain| domain.ranges.get(index).cloned());
    found.ok_or_else(|| Failure::new("the fragment has no non-empty domain"))
}

fn mbr(info: &FragmentInfo, fid: u32, mid: u32, dim: &Dim<'_>, var: bool) -> Result<Range> {
    let fragment = fragment(info, fid)?;
    let index = dim.index(&fragment, var)?;
    let found = fragment.mbr(mid.into())?.ranges.into_iter().nth(index);
    found.ok_or_else(|| Failure::new("the MBR lacks a dimension"))
}

fn put(range: &Range, out: &OutBytes) -> Result<()> {
    out.write(&range.start)?;
    out.write_at(range.start.len(), &range.end)
}

fn put_var(range: &Range, start: &OutBytes, end: &OutBytes) -> Result<()> {
    start.write(&range.start)?;
    end.write(&range.end)
}

fn put_sizes(range: &Range, start: &Out<u64>, end: &Out<u64>) -> Result<()> {
    start.set(range.start.len() as u64)?;
    end.set(range.end.len() as u64)
}

/// Everything as text for people, in the reference's layout.
fn dump(info: &Loaded) -> Result<String> {
    let to_vacuum = info.vacuum_uris();
    let mut out = format!(
        "- Fragment num: {}\n- Unconsolidated metadata num: {}\n- To vacuum num: {}\n",
        info.fragment_num(),
        info.unconsolidated(),
        to_vacuum.len()
    );
    if !to_vacuum.is_empty() {
        out.push_str("- To vacuum URIs:\n");
        for uri in &to_vacuum {
            let _ = writeln!(out, "  > {uri}");
        }
    }
    for (index, fragment) in info.fragments().enumerate() {
        let dimensions = &fragment.schema().domain.dimensions;
        let ranges = fragment.non_empty_domain().map(|domain| {
            let each = domain
                .ranges
                .iter()
                .zip(dimensions)
                .map(|(r, d)| crate::dump::range(d.datatype, r));
            each.collect::<Vec<_>>().join(" x ")
        });
        let time = fragment.time_range();
        let _ = write!(
            out,
            "- Fragment #{}:\n  > URI: {}\n  > Schema name: {}\n  > Type: {}\n  > Non-empty domain: {}\n  > Size: {}\n  \
             > Cell num: {}\n  > Timestamp range: [{}, {}]\n  > Format version: {}\n  > Has consolidated metadata: {}\n",
            index + 1,
            info.uri(&fragment),
            fragment.schema_name(),
            if fragment.is_dense() {
                "dense"
            } else {
                "sparse"
            },
            ranges.unwrap_or_default(),
            info.size(&fragment)?,
            fragment.cell_num(),
            time.start,
            time.end,
            fragment.version(),
            if info.is_consolidated(&fragment) {
                "yes"
            } else {
                "no"
            }
        );
    }
    Ok(out)
}

capi! {
    /// A handle on the fragments of the array at a URI; nothing is read before it is loaded.
    fn tiledb_fragment_info_alloc(ctx, uri: Text, info: Out<Ptr<InfoHandle>>) {
        let uri = uri.get()?;
        if uri.is_empty() {
            return Err("Failed to create TileDB fragment info object; Invalid URI".into());
        }
        // It stays where it is now when the current folder changes.
        let uri = crate::uri::absolute(uri);
        info.give(InfoHandle { uri, state: Mutex::default(), keep: Keep::default() })?;
    }

    /// Sets settings of its own, before it is loaded.
    fn tiledb_fragment_info_set_config(ctx, info: In<InfoHandle>, config: In<Config>) {
        let mut state = lock(&info.get()?.state);
        if state.info.is_some() {
            return Err("Cannot set config; the fragment info is loaded".into());
        }
        state.settings = Some(config.get()?.settings());
    }

    /// A copy of the settings.
    fn tiledb_fragment_info_get_config(ctx, info: In<InfoHandle>, config: Out<Ptr<Config>>) {
        let own = lock(&info.get()?.state).settings.clone();
        config.give(Config::new(ctx.settings_with(own.as_ref())))?;
    }

    /// Looks at the fragments.
    fn tiledb_fragment_info_load(ctx, info: In<InfoHandle>) {
        let info = info.get()?;
        let mut state = lock(&info.state);
        let engine = ctx.engine_with(state.settings.as_ref())?;
        let settings = ctx.settings_with(state.settings.as_ref());
        let time = TimeRange {
            start: settings.get("sm.fragment_info.timestamp_start").and_then(|t| t.parse().ok()).unwrap_or(0),
            end: settings.get("sm.fragment_info.timestamp_end").and_then(|t| t.parse().ok()).unwrap_or(u64::MAX),
        };
        let loaded = engine.array(&info.uri).open_at(time).map(|array| array.fragment_info()).map_err(|error| match error {
            azulejo::Error::NotFound { uri, .. } => {
                Failure::new(format!("Cannot load fragment info; Array '{uri}' does not exist"))
            }
            other => other.into(),
        })?;
        if settings.flag("sm.fragment_info.preload_mbrs") {
            loaded.preload_mbrs()?;
        }
        state.info = Some(Loaded { info: loaded, told: None });
    }

    /// The name of a fragment.
    fn tiledb_fragment_info_get_fragment_name_v2(ctx, info: In<InfoHandle>, fid: u32, name: Out<Ptr<StringHandle>>) {
        name.give(StringHandle::new(fragment(&*info.get()?.info()?, fid)?.name()))?;
    }

    /// The number of fragments.
    fn tiledb_fragment_info_get_fragment_num(ctx, info: In<InfoHandle>, num: Out<u32>) {
        num.set(u32::try_from(info.get()?.info()?.fragment_num()).unwrap_or(u32::MAX))?;
    }

    /// The URI of a fragment; it lives as long as the handle.
    fn tiledb_fragment_info_get_fragment_uri(ctx, info: In<InfoHandle>, fid: u32, uri: Out<Str>) {
        let handle = info.get()?;
        let info = handle.info()?;
        uri.set(handle.keep.text(&info.uri(&fragment(&info, fid)?)))?;
    }

    /// Bytes of a fragment's files.
    fn tiledb_fragment_info_get_fragment_size(ctx, info: In<InfoHandle>, fid: u32, size: Out<u64>) {
        let info = info.get()?.info()?;
        size.set(info.size(&fragment(&info, fid)?)?)?;
    }

    /// Whether a fragment is dense.
    fn tiledb_fragment_info_get_dense(ctx, info: In<InfoHandle>, fid: u32, dense: Out<i32>) {
        dense.set(fragment(&*info.get()?.info()?, fid)?.is_dense().into())?;
    }

    /// Whether a fragment is sparse.
    fn tiledb_fragment_info_get_sparse(ctx, info: In<InfoHandle>, fid: u32, sparse: Out<i32>) {
        sparse.set((!fragment(&*info.get()?.info()?, fid)?.is_dense()).into())?;
    }

    /// First and last millisecond of a fragment.
    fn tiledb_fragment_info_get_timestamp_range(ctx, info: In<InfoHandle>, fid: u32, start: Out<u64>, end: Out<u64>) {
        let time = fragment(&*info.get()?.info()?, fid)?.time_range();
        start.set(time.start)?;
        end.set(time.end)?;
    }

    /// The non-empty domain of a fragment along a fixed-size dimension.
    fn tiledb_fragment_info_get_non_empty_domain_from_index(ctx, info: In<InfoHandle>, fid: u32, did: u32, out: OutBytes) {
        put(&domain(&*info.get()?.info()?, fid, &Dim::Index(did), false)?, &out)?;
    }

    /// The non-empty domain of a fragment along a fixed-size dimension.
    fn tiledb_fragment_info_get_non_empty_domain_from_name(ctx, info: In<InfoHandle>, fid: u32, name: Text, out: OutBytes) {
        put(&domain(&*info.get()?.info()?, fid, &Dim::Name(name.get()?), false)?, &out)?;
    }

    /// Sizes of the non-empty domain of a fragment along a string dimension.
    fn tiledb_fragment_info_get_non_empty_domain_var_size_from_index(
        ctx, info: In<InfoHandle>, fid: u32, did: u32, start: Out<u64>, end: Out<u64>
    ) {
        put_sizes(&domain(&*info.get()?.info()?, fid, &Dim::Index(did), true)?, &start, &end)?;
    }

    /// Sizes of the non-empty domain of a fragment along a string dimension.
    fn tiledb_fragment_info_get_non_empty_domain_var_size_from_name(
        ctx, info: In<InfoHandle>, fid: u32, name: Text, start: Out<u64>, end: Out<u64>
    ) {
        put_sizes(&domain(&*info.get()?.info()?, fid, &Dim::Name(name.get()?), true)?, &start, &end)?;
    }

    /// The non-empty domain of a fragment along a string dimension.
    fn tiledb_fragment_info_get_non_empty_domain_var_from_index(
        ctx, info: In<InfoHandle>, fid: u32, did: u32, start: OutBytes, end: OutBytes
    ) {
        put_var(&domain(&*info.get()?.info()?, fid, &Dim::Index(did), true)?, &start, &end)?;
    }

    /// The non-empty domain of a fragment along a string dimension.
    fn tiledb_fragment_info_get_non_empty_domain_var_from_name(
        ctx, info: In<InfoHandle>, fid: u32, name: Text, start: OutBytes, end: OutBytes
    ) {
        put_var(&domain(&*info.get()?.info()?, fid, &Dim::Name(name.get()?), true)?, &start, &end)?;
    }

    /// The number of MBRs of a fragment.
    fn tiledb_fragment_info_get_mbr_num(ctx, info: In<InfoHandle>, fid: u32, num: Out<u64>) {
        num.set(fragment(&*info.get()?.info()?, fid)?.mbr_num())?;
    }

    /// An MBR along a fixed-size dimension.
    fn tiledb_fragment_info_get_mbr_from_index(ctx, info: In<InfoHandle>, fid: u32, mid: u32, did: u32, out: OutBytes) {
        put(&mbr(&*info.get()?.info()?, fid, mid, &Dim::Index(did), false)?, &out)?;
    }

    /// An MBR along a fixed-size dimension.
    fn tiledb_fragment_info_get_mbr_from_name(ctx, info: In<InfoHandle>, fid: u32, mid: u32, name: Text, out: OutBytes) {
        put(&mbr(&*info.get()?.info()?, fid, mid, &Dim::Name(name.get()?), false)?, &out)?;
    }

    /// Sizes of an MBR along a string dimension.
    fn tiledb_fragment_info_get_mbr_var_size_from_index(
        ctx, info: In<InfoHandle>, fid: u32, mid: u32, did: u32, start: Out<u64>, end: Out<u64>
    ) {
        put_sizes(&mbr(&*info.get()?.info()?, fid, mid, &Dim::Index(did), true)?, &start, &end)?;
    }

    /// Sizes of an MBR along a string dimension.
    fn tiledb_fragment_info_get_mbr_var_size_from_name(
        ctx, info: In<InfoHandle>, fid: u32, mid: u32, name: Text, start: Out<u64>, end: Out<u64>
    ) {
        put_sizes(&mbr(&*info.get()?.info()?, fid, mid, &Dim::Name(name.get()?), true)?, &start, &end)?;
    }

    /// An MBR along a string dimension.
    fn tiledb_fragment_info_get_mbr_var_from_index(
        ctx, info: In<InfoHandle>, fid: u32, mid: u32, did: u32, start: OutBytes, end: OutBytes
    ) {
        put_var(&mbr(&*info.get()?.info()?, fid, mid, &Dim::Index(did), true)?, &start, &end)?;
    }

    /// An MBR along a string dimension.
    fn tiledb_fragment_info_get_mbr_var_from_name(
        ctx, info: In<InfoHandle>, fid: u32, mid: u32, name: Text, start: OutBytes, end: OutBytes
    ) {
        put_var(&mbr(&*info.get()?.info()?, fid, mid, &Dim::Name(name.get()?), true)?, &start, &end)?;
    }

    /// Cells of a fragment.
    fn tiledb_fragment_info_get_cell_num(ctx, info: In<InfoHandle>, fid: u32, num: Out<u64>) {
        num.set(fragment(&*info.get()?.info()?, fid)?.cell_num())?;
    }

    /// Cells of all fragments.
    fn tiledb_fragment_info_get_total_cell_num(ctx, info: In<InfoHandle>, num: Out<u64>) {
        num.set(info.get()?.info()?.total_cell_num())?;
    }

    /// The format version of a fragment.
    fn tiledb_fragment_info_get_version(ctx, info: In<InfoHandle>, fid: u32, version: Out<u32>) {
        version.set(fragment(&*info.get()?.info()?, fid)?.version().number())?;
    }

    /// Whether a fragment's footer is in consolidated metadata.
    fn tiledb_fragment_info_has_consolidated_metadata(ctx, info: In<InfoHandle>, fid: u32, has: Out<i32>) {
        let info = info.get()?.info()?;
        has.set(info.is_consolidated(&fragment(&info, fid)?).into())?;
    }

    /// The number of fragments whose footers are not in consolidated metadata.
    fn tiledb_fragment_info_get_unconsolidated_metadata_num(ctx, info: In<InfoHandle>, num: Out<u32>) {
        num.set(u32::try_from(info.get()?.info()?.unconsolidated()).unwrap_or(u32::MAX))?;
    }

    /// The number of fragments that vacuuming would delete.
    fn tiledb_fragment_info_get_to_vacuum_num(ctx, info: In<InfoHandle>, num: Out<u32>) {
        num.set(u32::try_from(info.get()?.info()?.vacuum_num()).unwrap_or(u32::MAX))?;
    }

    /// The URI of a fragment that vacuuming would delete; it lives as long as the handle.
    fn tiledb_fragment_info_get_to_vacuum_uri(ctx, info: In<InfoHandle>, fid: u32, uri: Out<Str>) {
        let handle = info.get()?;
        let found = handle.info()?.vacuum_uri(fid as usize);
        let found = found.ok_or_else(|| Failure::new(format!("there is no fragment {fid} to vacuum")))?;
        uri.set(handle.keep.text(&found))?;
    }

    /// The schema that a fragment was written with.
    fn tiledb_fragment_info_get_array_schema(ctx, info: In<InfoHandle>, fid: u32, schema: Out<Ptr<SchemaHandle>>) {
        let loaded = info.get()?.info()?;
        let fragment = fragment(&loaded, fid)?;
        schema.give(SchemaHandle::of_fragment(fragment.schema(), fragment.schema_name(), loaded.array()))?;
    }

    /// The file name of the schema that a fragment was written with; it lives as long as the
    /// handle.
    fn tiledb_fragment_info_get_array_schema_name(ctx, info: In<InfoHandle>, fid: u32, name: Out<Str>) {
        let handle = info.get()?;
        name.set(handle.keep.text(fragment(&*handle.info()?, fid)?.schema_name()))?;
    }

    /// The fragments as text for people, to a `FILE*`.
    fn tiledb_fragment_info_dump(ctx, info: In<InfoHandle>, out: Opaque) {
        out.put_text(&dump(&info.get()?.info()?)?)?;
    }

    /// The fragments as text for people.
    fn tiledb_fragment_info_dump_str(ctx, info: In<InfoHandle>, out: Out<Ptr<StringHandle>>) {
        out.give(StringHandle::new(dump(&info.get()?.info()?)?))?;
    }
}

capi_free! {
    fn tiledb_fragment_info_free(InfoHandle);
}
