//! Tiles all of whose cells are results, by their metadata alone.

use crate::array::Fragment;
use crate::error::Result;
use azulejo_format::fragment::Section;

/// A tile all of whose cells are results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WholeTile {
    /// The index of its fragment.
    pub fragment: usize,
    /// Its index there.
    pub tile: usize,
    /// Its cells.
    pub cell_num: u64,
}

/// Who may answer from the metadata of tiles all of whose cells are results: then these are not
/// read.
pub(super) trait WholeTiles: Send {
    /// The sections of a fragment's metadata that [`Self::take`] looks at.
    fn sections(&self, fragment: &Fragment) -> Vec<Section>;

    /// Sees a tile before any of those that are offered with it may be taken.
    fn see(&mut self, fragment: &Fragment, tile: WholeTile);

    /// Takes a tile, or not, and it is read.
    fn take(&mut self, fragment: &Fragment, tile: WholeTile) -> Result<bool>;
}
