//! Datasets made of files that say themselves what they hold: laid out as `ds.azulejo.to(..)` lays
//! out a dataset in Python, so that xarray sees the same through either. A group becomes a group
//! whose members are its variables.

use super::options_at;
use crate::error::Result;
use crate::session::Session;
use arrow_buffer::Buffer;
use azulejo::column::{ColumnBuffers, ColumnSet, ColumnType};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::NewArray;
use azulejo::format::{NdRectangle, Range};
use azulejo::group::{NewMember, ObjectType};
use azulejo::write::{WriteLayout, WriteOptions};
use std::fmt::Debug;

/// What keys of variables begin with.
pub const ATTRIBUTE: &str = "__tiledb_attr.";
/// The dimension of a variable that has none.
pub const SCALAR: &str = "__scalar";
/// The key of a variable whose member has another name.
pub const NAME: &str = "__azulejo_name";
/// The key that names dimensions without coordinates.
pub const EMPTY_DIMS: &str = "__azulejo_empty_dims";
/// Cells of chunks that are not there, and have to be written, are no more than this many bytes.
pub const MOST_FILL: u64 = 64 << 30;

/// Takes the cells of a box: the first coordinate and the length of it along each axis.
pub type PutBox<'a> = &'a mut dyn FnMut(&[(u64, u64)], ColumnSet) -> Result<()>;

/// Where the cells of a variable come from.
pub trait CellSource: Debug {
    /// The number of cells.
    fn cells(&self) -> u64;

    /// Checks what can be known before anything is written.
    fn check(&self, session: &Session) -> Result<()>;

    /// Gives all boxes of cells that are to be written, none twice.
    fn each_box(&self, session: &Session, put: PutBox<'_>) -> Result<()>;
}

/// A variable to be made.
#[derive(Debug)]
pub struct Variable {
    /// Where it lies below the whole; empty for an array that is the whole.
    pub path: String,
    /// The array.
    pub array: NewArray,
    /// Its keys.
    pub keys: Vec<(String, MetadataValue)>,
    /// Its cells.
    pub cells: Box<dyn CellSource>,
}

/// What is made of a file or a store.
#[derive(Debug, Default)]
pub struct Plan {
    /// Groups by their paths, those above first, with their keys.
    pub groups: Vec<(String, Vec<(String, MetadataValue)>)>,
    /// Variables.
    pub variables: Vec<Variable>,
    /// What is said before.
    pub notes: Vec<String>,
}

/// The name of a member: two underscores at the beginning are TileDB's own.
pub fn member_name(name: &str) -> String {
    match name.starts_with("__") {
        true => format!("v{name}"),
        false => name.to_owned(),
    }
}

/// Makes the arrays; the number of cells. Of what it has begun the caller deletes what is left. An
/// array that is the whole is `made_at` a time, by which it is told from others, whenever its cells
/// are written.
pub fn make(
    session: &Session,
    plan: &Plan,
    uri: &str,
    at: Option<u64>,
    made_at: Option<u64>,
) -> Result<u64> {
    let root = uri.trim_end_matches('/');
    let place = |path: &str| match path.is_empty() {
        true => root.to_owned(),
        false => format!("{root}/{path}"),
    };
    for (path, keys) in &plan.groups {
        let group = session.context.group(&place(path));
        group.create()?;
        if !keys.is_empty() {
            let mut writer = group.change_metadata()?;
            for (key, value) in keys {
                writer.put(key.as_str(), value.clone())?;
            }
            writer.commit()?;
        }
    }
    let total: u64 = plan
        .variables
        .iter()
        .map(Variable::cells)
        .fold(0, u64::saturating_add);
    let progress = session.progress(Some(total));
    let mut done = 0;
    for variable in &plan.variables {
        let array = session.context.array(&place(&variable.path));
        let whole = made_at.filter(|_| variable.path.is_empty());
        match at.or(whole) {
            Some(at) => array.create_at(variable.array.clone(), at)?,
            None => array.create(variable.array.clone())?,
        }
        if !variable.keys.is_empty() {
            let mut writer = array.change_metadata()?;
            if let Some(at) = at {
                writer = writer.at(at);
            }
            for (key, value) in &variable.keys {
                writer.put(key.as_str(), value.clone())?;
            }
            writer.commit()?;
        }
        let before = done;
        let uri = place(&variable.path);
        variable.write(session, &uri, write_options(at), None, &mut |cells| {
            done += cells;
            progress.advance(done, done, "importing");
        })?;
        done = before + variable.cells();
    }
    // What is no member of a group is no part of it: all of it appears now, from below upwards.
    let groups = plan
        .groups
        .iter()
        .map(|(path, _)| (path, ObjectType::Group));
    let arrays = plan.variables.iter().map(|v| (&v.path, ObjectType::Array));
    let members: Vec<(&String, ObjectType)> = groups.chain(arrays).collect();
    for (path, _) in plan.groups.iter().rev() {
        let mut edit = session.context.group(&place(path)).edit()?;
        for (member, kind) in &members {
            let (above, name) = member.rsplit_once('/').unwrap_or(("", member));
            if above == path && !name.is_empty() {
                edit.add(NewMember::relative(name).named(name).typed(*kind))?;
            }
        }
        edit.commit()?;
    }
    Ok(total)
}

impl Variable {
    /// The number of its cells.
    pub fn cells(&self) -> u64 {
        self.cells.cells()
    }

    /// Writes its cells into an array, along an axis `behind` so many others; the names of the
    /// fragments. `done` is told how many more are there.
    pub fn write(
        &self,
        session: &Session,
        uri: &str,
        options: WriteOptions,
        behind: Option<(usize, u64)>,
        done: &mut dyn FnMut(u64),
    ) -> Result<Vec<String>> {
        let mut writer = session.context.array(uri).writer(options)?;
        self.cells.each_box(session, &mut |bounds, set| {
            writer.write_box(&box_at(bounds, behind), &set)?;
            done(set.cell_num as u64);
            Ok(())
        })?;
        Ok(writer.finish()?)
    }
}

/// The box of an array that cells come for; along an axis `behind` so many others.
pub fn box_at(bounds: &[(u64, u64)], behind: Option<(usize, u64)>) -> NdRectangle {
    let ranges = bounds.iter().enumerate().map(|(axis, (low, size))| {
        let others = behind.filter(|(along, _)| *along == axis);
        let low = low + others.map_or(0, |(_, others)| others);
        Range::of(low as i64, (low + size - 1) as i64)
    });
    let mut ranges: Vec<Range> = ranges.collect();
    // A variable without dimensions has one cell.
    if ranges.is_empty() {
        ranges.push(Range::of(0i64, 0i64));
    }
    NdRectangle { ranges }
}

/// How boxes of a variable are written.
pub fn write_options(at: Option<u64>) -> WriteOptions {
    options_at(at).layout(WriteLayout::Row)
}

/// Bytes for the cells of a box.
pub fn budget(session: &Session) -> u64 {
    (session.context.config().memory_budget / 4).max(1)
}

/// Cells of a fixed length as a column.
pub fn fixed_column(column_type: ColumnType, data: Vec<u8>) -> ColumnSet {
    let column = ColumnBuffers {
        cell_num: data.len() / column_type.cell_size().max(1),
        column_type,
        data: Buffer::from_vec(data),
        offsets: None,
        validity: None,
    };
    ColumnSet {
        cell_num: column.cell_num,
        columns: vec![column],
    }
}

/// Deletes what lies in a folder, made for the members of a group or left of it.
pub fn clear(session: &Session, uri: &str) -> Result<()> {
    let object = session.context.object(uri);
    for entry in object.list()? {
        clear(
            session,
            &format!("{}/{}", uri.trim_end_matches('/'), entry.name),
        )?;
    }
    match object.delete(false) {
        // Nothing of one is there, also none of which the deletion was cut short.
        Err(azulejo::Error::NotFound { .. }) => Ok(()),
        deleted => Ok(deleted.map(drop)?),
    }
}
