//! Tiles all of whose cells are results, by their metadata alone.

use crate::array::Fragment;
use crate::error::Result;
use azulejo_format::fragment::Section;

/// Who may answer from the metadata of tiles all of whose cells are results: then these are not
/// read.
pub(super) trait WholeTiles: Send {
    /// The sections of a fragment's metadata that [`Self::take`] looks at.
    fn sections(&self, fragment: &Fragment) -> Vec<Section>;

    /// Sees a tile before any of those that are offered with it may be taken.
    fn see(&mut self, fragment: &Fragment, tile: usize, cell_num: u64);

    /// Takes a tile, by index and number of cells; or not, and it is read.
    fn take(&mut self, fragment: &Fragment, tile: usize, cell_num: u64) -> Result<bool>;
}
