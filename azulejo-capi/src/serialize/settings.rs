//! Settings.

use super::message::{self, Format};
use super::rest_capnp::config;
use crate::boundary::{In, Out, Ptr, capi};
use crate::buffer::Buffer;
use crate::config::{Config, Settings};
use crate::error::Result;

/// Writes all settings.
pub fn write(from: &Settings, to: config::Builder<'_>) -> Result<()> {
    let all = from.all();
    let mut list = to.init_entries(super::words::count(&all)?);
    for (index, (key, value)) in (0u32..).zip(&all) {
        let mut entry = list.reborrow().get(index);
        entry.set_key(key.as_str());
        entry.set_value(value.as_str());
    }
    Ok(())
}

/// Reads settings.
pub fn read(from: config::Reader<'_>) -> Result<Settings> {
    let mut settings = Settings::default();
    for entry in from.get_entries()? {
        let (key, value) = (entry.get_key()?.to_str()?, entry.get_value()?.to_str()?);
        if settings.get(key).as_deref() != Some(value) {
            settings.set(key, value)?;
        }
    }
    Ok(settings)
}

capi! {
    /// A message with all settings.
    fn tiledb_serialize_config(ctx, config: In<Config>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>) {
        let _ = client_side;
        let settings = config.get()?.settings();
        let bytes = message::encode::<config::Owned>(Format::of(kind)?, |to| write(&settings, to))?;
        buffer.give(Buffer::of(bytes))?;
    }

    /// Settings out of a message.
    fn tiledb_deserialize_config(ctx, buffer: In<Buffer>, kind: i32, client_side: i32, config: Out<Ptr<Config>>) {
        let _ = client_side;
        let bytes = buffer.get()?.bytes()?;
        config.give(Config::new(message::decode::<config::Owned, _>(Format::of(kind)?, &bytes, read)?))?;
    }
}
