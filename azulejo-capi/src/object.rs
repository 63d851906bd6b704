//! Arrays and groups as a whole.

use crate::boundary::{Opaque, Out, Text, capi, capi_callback};
use crate::error::{Failure, Result};
use crate::strings::to_c;
use crate::vfs::is_link;
use azulejo::group::ObjectType;
use azulejo::storage::Uri;
use std::ffi::{CString, c_char};

const GROUP: i32 = 1;
const ARRAY: i32 = 2;

/// A callback of `tiledb_object_walk`: 1 to go on, 0 to stop, -1 for an error.
type Callback = Option<extern "C-unwind" fn(*const c_char, i32, Opaque) -> i32>;

/// C's number of an object type; 0 is none.
pub fn type_id(object_type: Option<ObjectType>) -> i32 {
    match object_type {
        None => 0,
        Some(ObjectType::Group) => GROUP,
        Some(ObjectType::Array) => ARRAY,
    }
}

/// The arrays and groups in a folder, and below if it is to be walked; arrays hold nothing, nor do
/// folders that are not there. Links to groups are named and not entered: they may lead back.
fn gather(
    engine: &azulejo::Context,
    uri: &str,
    recursive: bool,
    before: bool,
    out: &mut Vec<(CString, i32)>,
) -> Result<()> {
    let entries = match engine.object(uri).list() {
        Err(azulejo::Error::NotFound { .. }) => Vec::new(),
        listed => listed?,
    };
    for entry in entries {
        let found = (
            to_c(&crate::uri::absolute(&entry.uri)),
            type_id(Some(entry.object_type)),
        );
        if before {
            out.push(found.clone());
        }
        if recursive
            && entry.object_type == ObjectType::Group
            && !is_link(&engine.locate(&Uri::parse(&entry.uri)?)?)
        {
            gather(engine, &entry.uri, recursive, before, out)?;
        }
        if !before {
            out.push(found);
        }
    }
    Ok(())
}

capi! {
    /// What lies at a URI: an array, a group, or neither.
    fn tiledb_object_type(ctx, path: Text, id: Out<i32>) {
        id.set(type_id(ctx.engine()?.object(path.get()?).object_type()?))?;
    }

    /// Deletes an array or a group with all that lies in its folder.
    fn tiledb_object_remove(ctx, path: Text) {
        let (engine, path) = (ctx.engine()?, path.get()?);
        if engine.object(path).object_type()?.is_none() {
            return Err(Failure::new(format!("Failed to remove object '{path}'; Invalid TileDB object")));
        }
        let location = engine.locate(&Uri::parse(path)?)?;
        location.storage.delete(std::slice::from_ref(&location.path))?;
    }

    /// Moves an array or a group.
    fn tiledb_object_move(ctx, old: Text, new: Text) {
        ctx.engine()?.object(old.get()?).rename_to(new.get()?)?;
    }
}

capi_callback! {
    /// Calls back with the arrays and groups in a folder and below, in preorder (0) or postorder
    /// (1).
    fn tiledb_object_walk(ctx, path: Text, order: i32, callback: Callback, data: Opaque) {
        callback.ok_or_else(|| Failure::null("callback"))?;
        let mut found = Vec::new();
        gather(&ctx.engine()?, path.get()?, true, order == 0, &mut found)?;
        Ok(found.into_iter().map(Ok))
    } => |each| callback.map_or(0, |callback| callback(each.0.as_ptr(), each.1, data));

    /// Calls back with the arrays and groups in a folder.
    fn tiledb_object_ls(ctx, path: Text, callback: Callback, data: Opaque) {
        callback.ok_or_else(|| Failure::null("callback"))?;
        let mut found = Vec::new();
        gather(&ctx.engine()?, path.get()?, false, true, &mut found)?;
        Ok(found.into_iter().map(Ok))
    } => |each| callback.map_or(0, |callback| callback(each.0.as_ptr(), each.1, data));
}
