//! Folders of tests: made, copied, and removed.

use std::path::{Path, PathBuf};

/// A folder that is removed when this is dropped.
#[derive(Debug)]
pub struct Folder(pub PathBuf);

impl Folder {
    /// One of this process, where nothing is synced if there is such a place: for what is not about that.
    pub fn quick(name: &str) -> std::io::Result<Self> {
        let quick = Path::new("/dev/shm");
        let parent = match quick.is_dir() {
            true => quick.to_owned(),
            false => crate::root().join("target"),
        };
        let folder = parent.join(format!("azulejo-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Copies a folder with all that lies in it.
pub fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            std::fs::copy(&from, &to)?;
        }
    }
    Ok(())
}
