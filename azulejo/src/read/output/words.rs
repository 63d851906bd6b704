//! Memory of ours for texts as words.

use super::fixed::{FixedBuffer, FixedOut};
use crate::buffer_pool::BufferPool;
use crate::column::WordColumn;
use crate::error::{Error, Result};
use crate::read::decode::WORD_ID;
use crate::read::{BoundField, FillCell};
use crate::space::CellSlab;
use azulejo_format::filter::StringWords;

/// Where the cells of some tiles go as words.
pub(in crate::read) struct WordsOut<'o> {
    /// The index of a word a cell, among those of its tile.
    pub ids: FixedOut<'o>,
    /// By slot of these tiles: its words.
    pub words: &'o mut [StringWords],
}

/// There are more words than an index tells apart.
pub(in crate::read) fn too_many() -> Error {
    Error::Unsupported("more than 4 billion texts in a batch".into())
}

/// The index of each tile's first word, where they count on from one tile to the next, and of how
/// many words.
pub(in crate::read) fn first_words(tiles: &[StringWords]) -> Result<(Vec<u32>, u32)> {
    let mut firsts = Vec::with_capacity(tiles.len());
    let mut count = 0u32;
    for words in tiles {
        firsts.push(count);
        let more = u32::try_from(words.len()).map_err(|_| too_many())?;
        count = count.checked_add(more).ok_or_else(too_many)?;
    }
    Ok((firsts, count))
}

/// Lets indices of a tile's words count on from the first of them.
pub(in crate::read) fn count_on(ids: &mut [[u8; WORD_ID]], first: u32) {
    for id in ids {
        *id = u32::from_le_bytes(*id).wrapping_add(first).to_le_bytes();
    }
}

/// Memory of ours for the cells of a field of texts.
pub(in crate::read) struct WordsBuffer {
    ids: FixedBuffer,
    /// The ids as a field.
    field: BoundField,
    words: Vec<StringWords>,
}

impl WordsBuffer {
    /// Memory for `cells` cells out of `tiles` tiles.
    pub fn of(text: &BoundField, cells: usize, tiles: usize, pool: &BufferPool) -> Result<Self> {
        let field = BoundField {
            column_type: WordColumn::id_type(&text.column_type),
            field: text.field,
            // Every tile has words.
            fill: FillCell {
                bytes: vec![0; size_of::<u32>()],
                valid: true,
            },
        };
        Ok(Self {
            ids: FixedBuffer::new(&field, cells, pool)?,
            field,
            words: vec![StringWords::default(); tiles],
        })
    }

    /// The memory, to be filled.
    pub fn out(&mut self) -> WordsOut<'_> {
        WordsOut {
            ids: self.ids.out(&self.field),
            words: &mut self.words,
        }
    }

    /// The filled memory as a column: `slabs` say of which tile each cell is.
    ///
    /// For example tiles of 3 and of 5 words: an index of the second tile becomes 3 more.
    pub fn into_column(mut self, text: &BoundField, slabs: &[CellSlab]) -> Result<WordColumn> {
        let (firsts, _) = first_words(&self.words)?;
        if firsts.last().is_some_and(|first| *first > 0) {
            let mut ids = self.ids.out(&self.field).data.as_chunks_mut::<WORD_ID>().0;
            for slab in slabs {
                let cells = (slab.len as usize).min(ids.len());
                let here = ids.split_off_mut(..cells).unwrap_or_default();
                count_on(here, firsts.get(slab.tile as usize).copied().unwrap_or(0));
            }
        }
        let cell_num = CellSlab::total(slabs);
        let cell_num = usize::try_from(cell_num).map_err(|_| too_many())?;
        Ok(WordColumn {
            column_type: text.column_type.clone(),
            ids: self.ids.into_column(&self.field, cell_num),
            words: self.words,
        })
    }
}
