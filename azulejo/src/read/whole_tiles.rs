//! Tiles all of whose cells are results, by their metadata alone.

use super::fetch::Fetcher;
use super::stored_tile::fragment_of;
use crate::array::Fragment;
use crate::error::Result;
use azulejo_format::fragment::Section;
use std::collections::BTreeSet;

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

/// Offers tiles, of those that are not `None` by their metadata alone; tells of each whether it was
/// taken.
pub(super) async fn offer(
    fetcher: &Fetcher,
    whole: &mut dyn WholeTiles,
    tiles: &[Option<WholeTile>],
) -> Result<Vec<bool>> {
    let array = fetcher.array();
    let offered = || tiles.iter().flatten();
    let fragments: BTreeSet<usize> = offered().map(|tile| tile.fragment).collect();
    let mut sections = Vec::new();
    for index in fragments {
        let wanted = whole.sections(fragment_of(array, index)?);
        sections.extend(wanted.into_iter().map(|section| (index, section)));
    }
    fetcher.metadata(&sections).await?;
    for tile in offered() {
        whole.see(fragment_of(array, tile.fragment)?, *tile);
    }
    let takes = tiles.iter().map(|tile| match tile {
        Some(tile) => whole.take(fragment_of(array, tile.fragment)?, *tile),
        None => Ok(false),
    });
    takes.collect()
}
