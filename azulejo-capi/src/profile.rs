//! `tiledb_profile_t`: settings for REST servers under a name, in a local file.

use crate::boundary::{In, Kind, Out, Ptr, Text, capi_free};
use crate::config::with_error;
use crate::error::{ErrorHandle, Failure, Result, report};
use crate::strings::{StringHandle, lock};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// `tiledb_profile_t`.
#[derive(Debug)]
pub struct Profile {
    name: String,
    dir: PathBuf,
    params: Mutex<BTreeMap<String, String>>,
}

impl Kind for Profile {
    const NAME: &'static str = "profile";
}

const FILE: &str = "profiles.json";
const VERSION: u64 = 1;

/// The folder of profiles: as given, or as the environment says, or in the home folder.
fn folder(dir: Option<&str>) -> Result<PathBuf> {
    if let Some(dir) = dir.filter(|dir| !dir.is_empty()) {
        return Ok(dir.into());
    }
    if let Some(dir) = std::env::var_os("TILEDB_PROFILE_DIR") {
        return Ok(dir.into());
    }
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    Ok(home
        .ok_or_else(|| Failure::new("Failed to create RestProfile; $HOME is not set."))?
        .join(".tiledb"))
}

fn read(file: &Path) -> Result<Map<String, Value>> {
    let text = std::fs::read_to_string(file)?;
    if text.is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("Error parsing file '{}': {error}", file.display())))
}

fn write(file: &Path, data: &Map<String, Value>) -> Result<()> {
    let temporary = file.with_extension(format!("json.{}", std::process::id()));
    std::fs::write(&temporary, format!("{:#}", Value::Object(data.clone())))?;
    Ok(std::fs::rename(&temporary, file)?)
}

/// The settings of a profile that is stored.
pub fn load(name: Option<&str>, dir: Option<&str>) -> Result<BTreeMap<String, String>> {
    let name = name.filter(|name| !name.is_empty()).unwrap_or("default");
    let file = folder(dir)?.join(FILE);
    if !file.exists() {
        return Err("Failed to load profile; file does not exist.".into());
    }
    let data = read(&file)?;
    let Some(Value::Object(profile)) = data.get(name) else {
        return Err(Failure::new(format!(
            "Failed to load profile; profile '{name}' does not exist."
        )));
    };
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    Ok(profile
        .iter()
        .map(|(key, value)| (key.clone(), text(value)))
        .collect())
}

fn save(profile: &Profile, overwrite: bool) -> Result<()> {
    let params = lock(&profile.params).clone();
    if params.contains_key("rest.username") != params.contains_key("rest.password") {
        return Err("Failed to save profile: 'rest.username' and 'rest.password' must either both be set or both remain \
                    unset. Mixing a default username with a custom password (or vice versa) is not allowed."
            .into());
    }
    std::fs::create_dir_all(&profile.dir)?;
    let file = profile.dir.join(FILE);
    let mut data = if file.exists() {
        read(&file)?
    } else {
        Map::new()
    };
    if data.contains_key(&profile.name) && !overwrite {
        return Err(Failure::new(format!(
            "Failed to save '{}'; This profile already exists. Use the overwrite parameter to replace it.",
            profile.name
        )));
    }
    data.entry("version").or_insert(json!(VERSION));
    data.insert(profile.name.clone(), json!(params));
    write(&file, &data)
}

with_error! {
    /// A profile of a name (null: `default`) in a folder (null: the usual one), without settings
    /// yet.
    fn tiledb_profile_alloc(name: Text, dir: Text, profile: Out<Ptr<Profile>>; error) {
        let name = name.opt()?.filter(|name| !name.is_empty()).unwrap_or("default").to_owned();
        profile.give(Profile { name, dir: folder(dir.opt()?)?, params: Mutex::default() })?;
    }

    /// The name.
    fn tiledb_profile_get_name(profile: In<Profile>, name: Out<Ptr<StringHandle>>; error) {
        name.give(StringHandle::new(profile.get()?.name.clone()))?;
    }

    /// The folder.
    fn tiledb_profile_get_dir(profile: In<Profile>, dir: Out<Ptr<StringHandle>>; error) {
        dir.give(StringHandle::new(format!("{}/", profile.get()?.dir.display().to_string().trim_end_matches('/'))))?;
    }

    /// Sets a setting.
    fn tiledb_profile_set_param(profile: In<Profile>, param: Text, value: Text; error) {
        let (param, value) = (param.get()?, value.get()?);
        if param.is_empty() {
            return Err("Failed to set parameter; parameter name must not be empty.".into());
        }
        lock(&profile.get()?.params).insert(param.into(), value.into());
    }

    /// A setting; null if there is none.
    fn tiledb_profile_get_param(profile: In<Profile>, param: Text, value: Out<Ptr<StringHandle>>; error) {
        match lock(&profile.get()?.params).get(param.get()?) {
            Some(found) => value.give(StringHandle::new(found.clone()))?,
            None => value.set(Ptr::default())?,
        }
    }

    /// Stores the profile.
    fn tiledb_profile_save(profile: In<Profile>, overwrite: u8; error) {
        save(profile.get()?, overwrite != 0)?;
    }

    /// Reads the profile.
    fn tiledb_profile_load(profile: In<Profile>; error) {
        let profile = profile.get()?;
        let loaded = load(Some(&profile.name), profile.dir.to_str())?;
        lock(&profile.params).extend(loaded);
    }

    /// Deletes a stored profile.
    fn tiledb_profile_remove(name: Text, dir: Text; error) {
        let name = name.opt()?.filter(|name| !name.is_empty()).unwrap_or("default");
        let file = folder(dir.opt()?)?.join(FILE);
        if !file.exists() {
            return Err("Failed to remove profile; file does not exist.".into());
        }
        let mut data = read(&file)?;
        if data.remove(name).is_none() {
            return Err(Failure::new(format!("Failed to remove profile; profile '{name}' does not exist.")));
        }
        write(&file, &data)?;
    }

    /// The profile as JSON.
    fn tiledb_profile_dump_str(profile: In<Profile>, out: Out<Ptr<StringHandle>>; error) {
        let profile = profile.get()?;
        let text = json!({ profile.name.clone(): *lock(&profile.params) });
        out.give(StringHandle::new(format!("{text:#}")))?;
    }
}

capi_free! {
    fn tiledb_profile_free(Profile);
}
