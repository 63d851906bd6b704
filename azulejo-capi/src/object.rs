//! Arrays and groups as a whole.

use crate::boundary::{Opaque, Out, Text, capi};
use crate::error::{Failure, Result};
use crate::strings::to_c;
use azulejo::group::{ObjectType, list, object_type};
use std::ffi::c_char;

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

/// Calls back; whether to go on.
fn visit(callback: &dyn Fn(&str, i32) -> i32, uri: &str, object_type: ObjectType) -> Result<bool> {
    match callback(&crate::uri::absolute(uri), type_id(Some(object_type))) {
        0 => Ok(false),
        -1 => Err("the callback failed".into()),
        _ => Ok(true),
    }
}

/// What lies in a folder and below; arrays hold nothing.
fn walk(
    engine: &azulejo::Context,
    uri: &str,
    recursive: bool,
    before: bool,
    callback: &dyn Fn(&str, i32) -> i32,
) -> Result<bool> {
    for entry in list(engine, uri)? {
        let inside = recursive && entry.object_type == ObjectType::Group;
        if before && !visit(callback, &entry.uri, entry.object_type)? {
            return Ok(false);
        }
        if inside && !walk(engine, &entry.uri, recursive, before, callback)? {
            return Ok(false);
        }
        if !before && !visit(callback, &entry.uri, entry.object_type)? {
            return Ok(false);
        }
    }
    Ok(true)
}

capi! {
    /// What lies at a URI: an array, a group, or neither.
    fn tiledb_object_type(ctx, path: Text, id: Out<i32>) {
        id.set(type_id(object_type(&ctx.engine()?, path.get()?)?))?;
    }

    /// Deletes an array or a group with all that lies in its folder.
    fn tiledb_object_remove(ctx, path: Text) {
        let (engine, path) = (ctx.engine()?, path.get()?);
        if object_type(&engine, path)?.is_none() {
            return Err(Failure::new(format!("Failed to remove object '{path}'; Invalid TileDB object")));
        }
        let location = engine.locate(&azulejo::storage::Uri::parse(path)?)?;
        location.storage.delete(std::slice::from_ref(&location.path))?;
    }

    /// Moves an array or a group.
    fn tiledb_object_move(ctx, old: Text, new: Text) {
        azulejo::object::rename(&ctx.engine()?, old.get()?, new.get()?)?;
    }

    /// Calls back with the arrays and groups in a folder and below, in preorder (0) or postorder (1).
    fn tiledb_object_walk(ctx, path: Text, order: i32, callback: Callback, data: Opaque) {
        let callback = callback.ok_or_else(|| Failure::null("callback"))?;
        let call = |uri: &str, id: i32| callback(to_c(uri).as_ptr(), id, data);
        walk(&ctx.engine()?, path.get()?, true, order == 0, &call)?;
    }

    /// Calls back with the arrays and groups in a folder.
    fn tiledb_object_ls(ctx, path: Text, callback: Callback, data: Opaque) {
        let callback = callback.ok_or_else(|| Failure::null("callback"))?;
        let call = |uri: &str, id: i32| callback(to_c(uri).as_ptr(), id, data);
        walk(&ctx.engine()?, path.get()?, false, true, &call)?;
    }
}
