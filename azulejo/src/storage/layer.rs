//! Storages that stand before another one.

use super::{
    Append, Entry, Latency, LockFolder, PendingList, PendingRead, PendingTails, PutNew,
    RandomAccess, ReadInto, ReadRequest, Storage, StorePath, Tail, Upload,
};
use crate::error::Result;
use bytes::Bytes;
use std::fmt::Debug;

/// Declares [`StorageLayer`], whose methods pass on to the storage behind it, and makes every layer
/// a storage.
macro_rules! storage_layer {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {
        /// A storage before another one, which changes some of what it does.
        ///
        /// Every method passes on to [`StorageLayer::inner`] unless it is replaced, so that a layer
        /// loses none of the other's powers. A layer that looks at what is read replaces `read`,
        /// `read_tails`, `read_into`, `start_read`, `start_read_tails` and `random_access`; one
        /// that looks at listings `list`, `find`, `is_folder`, `is_empty`, `list_all`, `list_tree`
        /// and `start_list`.
        ///
        /// ```
        /// use azulejo::storage::{
        ///     MemoryStorage, ReadRequest, Storage, StorageLayer, StorePath,
        /// };
        /// use azulejo::{Error, Result};
        ///
        /// /// Objects that cannot be deleted.
        /// #[derive(Debug)]
        /// struct Kept(MemoryStorage);
        ///
        /// impl StorageLayer for Kept {
        ///     fn inner(&self) -> &dyn Storage {
        ///         &self.0
        ///     }
        ///
        ///     fn delete(&self, paths: &[StorePath]) -> Result<()> {
        ///         Err(Error::InvalidArgument(format!("{paths:?} stay")))
        ///     }
        /// }
        ///
        /// let storage = Kept(MemoryStorage::new());
        /// let path = StorePath::memory("a");
        /// Storage::put(&storage, &path, "x".into())?;
        /// assert!(Storage::delete(&storage, &[path.clone()]).is_err());
        /// assert_eq!(Storage::size(&storage, &path)?, 1);
        /// # Ok::<(), Error>(())
        /// ```
        pub trait StorageLayer: Send + Sync + Debug {
            /// The storage behind this one.
            fn inner(&self) -> &dyn Storage;

            $(
                #[doc = concat!("As [`Storage::", stringify!($name), "`].")]
                fn $name(&self $(, $argument: $type)*) -> $result {
                    self.inner().$name($($argument),*)
                }
            )*
        }

        #[deny(
            clippy::missing_trait_methods,
            reason = "a method that is missing here would be lost by every layer"
        )]
        impl<L: StorageLayer> Storage for L {
            $(
                fn $name(&self $(, $argument: $type)*) -> $result {
                    StorageLayer::$name(self $(, $argument)*)
                }
            )*
        }
    };
}

storage_layer! {
    fn list(&self, dir: &StorePath) -> Result<Vec<Entry>>;
    fn read(&self, requests: &[ReadRequest]) -> Result<Vec<Bytes>>;
    fn size(&self, path: &StorePath) -> Result<u64>;
    fn stored_size(&self, path: &StorePath) -> Result<Option<u64>>;
    fn put(&self, path: &StorePath, body: Bytes) -> Result<()>;
    fn upload(&self, path: &StorePath) -> Result<Box<dyn Upload>>;
    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()>;
    fn replace(&self, from: &StorePath, to: &StorePath) -> Result<bool>;
    fn copy_here(&self, from: &StorePath, to: &StorePath) -> Result<bool>;
    fn copy_all_here(&self, copies: &[(StorePath, StorePath)]) -> Result<bool>;
    fn delete(&self, paths: &[StorePath]) -> Result<()>;
    fn latency(&self) -> Latency;
    fn listed_at(&self) -> Option<u64>;
    fn make_folder(&self, path: &StorePath) -> Result<()>;
    fn remove_empty_folder(&self, path: &StorePath) -> Result<()>;
    fn unlisted(&self, dir: &StorePath) -> Result<Option<String>>;
    fn settle(&self, path: &StorePath) -> Result<()>;
    fn random_access(&self) -> Option<&dyn RandomAccess>;
    fn appending(&self) -> Option<&dyn Append>;
    fn exclusive(&self) -> Option<&dyn PutNew>;
    fn locking(&self) -> Option<&dyn LockFolder>;
    fn find(&self, dir: &StorePath, names: &[&str]) -> Result<Vec<Entry>>;
    fn is_folder(&self, path: &StorePath) -> Result<bool>;
    fn is_empty(&self, dir: &StorePath) -> Result<bool>;
    fn list_all(&self, dirs: &[StorePath]) -> Result<Vec<Vec<Entry>>>;
    fn list_tree(&self, dir: &StorePath) -> Result<Vec<(String, Vec<Entry>)>>;
    fn read_tails(&self, paths: &[StorePath], len: u64) -> Result<Vec<Tail>>;
    fn read_into(&self, requests: &mut [ReadInto<'_>]) -> Result<()>;
    fn start_list(&self, dirs: Vec<StorePath>) -> PendingList;
    fn start_read(&self, requests: Vec<ReadRequest>) -> PendingRead;
    fn start_read_tails(&self, paths: Vec<StorePath>, len: u64) -> PendingTails;
    fn finish_all(&self, uploads: Vec<Box<dyn Upload>>) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{LocalStorage, MemoryStorage, Uri, conformance};

    #[derive(Debug)]
    struct Through<S>(S);

    impl<S: Storage> StorageLayer for Through<S> {
        fn inner(&self) -> &dyn Storage {
            &self.0
        }
    }

    #[test]
    fn a_layer_meets_the_contract_and_keeps_all_powers() {
        conformance::check(&Through(MemoryStorage::new()), &StorePath::memory("root"));
        let dir = tempfile::tempdir().unwrap();
        let root = Uri::parse(dir.path().to_str().unwrap()).unwrap();
        let storage = Through(Through(LocalStorage::new()));
        conformance::check(&storage, &root.path().join("x"));
        let storage: &dyn Storage = &storage;
        assert!(storage.latency().is_low() && storage.random_access().is_some());
        assert!(storage.appending().is_some() && storage.locking().is_some());
        assert!(storage.exclusive().is_some());
    }
}
