//! A folder with all folders below it, out of one flat listing: keys are what a store has, folders
//! are parts of their names.

use super::bucket::Shared;
use super::http::observed;
use crate::error::Result;
use crate::storage::path_in;
use crate::storage::{Entry, StorePath};
use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use std::collections::BTreeMap;

impl Shared {
    /// What [`Storage::list_tree`](crate::storage::Storage::list_tree) gives.
    pub(super) async fn tree(
        &self,
        dir: &StorePath,
        key: &Path,
    ) -> Result<Vec<(String, Vec<Entry>)>> {
        let prefix = (!key.as_ref().is_empty()).then_some(key);
        let mut tree = KeyTree::default();
        let collect = async {
            let mut listing = self.store.list(prefix);
            while let Some(object) = listing.next().await {
                let object = object?;
                if let Some(parts) = object.location.prefix_match(key) {
                    let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
                    tree.add(&parts, object.size);
                }
            }
            Ok(())
        };
        observed(collect)
            .await
            .map_err(|failure| self.error("list", dir, failure))?;
        Ok(tree.finish())
    }

    /// Whether anything lies in a folder: the first page of a listing tells.
    pub(super) async fn is_folder(&self, dir: &StorePath, key: &Path) -> Result<bool> {
        self.has_any(dir, key, |_| true).await
    }

    /// Whether nothing lies in a folder. An object that stands for the folder itself, as some programs
    /// make one, does not lie in it.
    pub(super) async fn is_empty(&self, dir: &StorePath, key: &Path) -> Result<bool> {
        let found = self.has_any(dir, key, |object| object.location != *key);
        Ok(!found.await?)
    }

    /// Whether there is such an object below a folder, or in its place.
    async fn has_any(
        &self,
        dir: &StorePath,
        key: &Path,
        is_one: impl Fn(&ObjectMeta) -> bool,
    ) -> Result<bool> {
        let prefix = (!key.as_ref().is_empty()).then_some(key);
        let found = async {
            let mut listing = self.store.list(prefix);
            while let Some(object) = listing.next().await {
                if is_one(&object?) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        observed(found)
            .await
            .map_err(|failure| self.error("list", dir, failure))
    }
}

/// By path of the folder: by name, whether it is a folder, size.
#[derive(Debug, Default)]
struct KeyTree(BTreeMap<String, BTreeMap<(String, bool), u64>>);

impl KeyTree {
    /// Adds an object by the steps to it.
    fn add(&mut self, parts: &[String], size: u64) {
        let Some((name, folders)) = parts.split_last() else {
            return;
        };
        let mut at = String::new();
        for folder in folders {
            self.0
                .entry(at.clone())
                .or_default()
                .insert((folder.clone(), true), 0);
            at = path_in(&at, folder);
        }
        self.0
            .entry(at)
            .or_default()
            .insert((name.clone(), false), size);
    }

    fn finish(self) -> Vec<(String, Vec<Entry>)> {
        let mut tree: Vec<(String, Vec<Entry>)> = Vec::with_capacity(self.0.len() + 1);
        if !self.0.contains_key("") {
            tree.push((String::new(), Vec::new()));
        }
        for (folder, names) in self.0 {
            let marks = |name: &str| names.contains_key(&(name.to_owned(), true));
            let entries = names
                .iter()
                // Some programs make an object with a folder's name to stand for it.
                .filter(|((name, is_dir), size)| *is_dir || **size > 0 || !marks(name))
                .map(|((name, is_dir), size)| Entry {
                    name: name.clone(),
                    is_dir: *is_dir,
                    size: Some(*size),
                });
            tree.push((folder, entries.collect()));
        }
        tree
    }
}
