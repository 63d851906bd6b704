//! Texts and bytes that are words: views of each, for the cells that have it.

use super::refused::no_text;
use super::views::MOST;
use super::{ArrowOptions, Form, form_of, nulls_of, shared};
use crate::column::{ColumnBuffers, ColumnType, WordColumn};
use crate::error::{Error, Result};
use arrow_array::builder::make_view;
use arrow_array::types::{BinaryViewType, ByteViewType, StringViewType, UInt32Type};
use arrow_array::{Array, ArrayRef, GenericByteViewArray};
use arrow_buffer::Buffer;
use arrow_schema::ArrowError;
use arrow_select::take::take;
use azulejo_format::filter::StringWords;
use std::ops::Range;
use std::sync::Arc;

/// Views hold texts of so many bytes themselves.
const INLINE: u32 = 12;

/// A column of words as views: as many cells point to one text.
#[derive(Debug)]
pub(super) struct WordViews {
    /// A view of each word.
    words: ArrayRef,
    /// For each cell the index of its word, and its validity.
    ids: ColumnBuffers,
}

impl WordViews {
    /// Makes and checks the words.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where a cell's word is not UTF-8. Words that no cell has need not
    /// be.
    pub fn of(column: WordColumn, options: ArrowOptions) -> Result<Self> {
        let WordColumn {
            column_type: kind,
            ids,
            mut words,
        } = column;
        ids.validate()?;
        let numbers = ids.values::<u32>().unwrap_or(&[]);
        let words = match (form_of(&kind, options), options.views) {
            (Form::Text, true) => {
                only_texts(&ids, &kind, numbers, &mut words)?;
                of_words::<StringViewType>(words)?
            }
            (Form::Bytes, true) => of_words::<BinaryViewType>(words)?,
            _ => {
                return Err(Error::Internal(format!(
                    "column {} came as words",
                    kind.name
                )));
            }
        };
        let last = numbers.iter().max();
        if numbers.len() != ids.cell_num || last.is_some_and(|last| *last as usize >= words.len()) {
            return Err(Error::Internal("a cell has no word".into()));
        }
        Ok(Self { words, ids })
    }

    /// Bytes of the words and of their indices.
    #[cfg(feature = "stream")]
    pub fn memory_size(&self) -> usize {
        self.words.get_array_memory_size() + self.ids.memory_size()
    }

    /// The views of some cells.
    pub fn of_cells(&self, cells: Range<usize>) -> Result<ArrayRef> {
        let ids = self.ids.slice(cells);
        let nulls = nulls_of(&ids);
        take(&*self.words, &shared::<UInt32Type>(&ids.data, nulls), None).map_err(|e| wrong(&e))
    }
}

fn wrong(error: &ArrowError) -> Error {
    Error::Internal(format!("words make no views: {error}"))
}

/// That words of cells that are not null are text; other words that are not are left out.
fn only_texts(
    ids: &ColumnBuffers,
    kind: &ColumnType,
    numbers: &[u32],
    words: &mut [StringWords],
) -> Result<()> {
    let is_text = |word: &[u8]| std::str::from_utf8(word).is_ok();
    let all = || words.iter().flat_map(StringWords::iter).map(is_text);
    if all().all(|good| good) {
        return Ok(());
    }
    let good: Vec<bool> = all().collect();
    let view = ids.view();
    let is_bad =
        |(cell, id): (usize, &u32)| good.get(*id as usize) == Some(&false) && view.is_valid(cell);
    if let Some(cell) = numbers.iter().enumerate().position(is_bad) {
        return Err(no_text(kind, cell));
    }
    let places = words.iter_mut().flat_map(|words| &mut words.places);
    for (place, _) in places.zip(good).filter(|(_, good)| !good) {
        *place = (0, 0);
    }
    Ok(())
}

/// A view of each word.
fn of_words<V: ByteViewType>(words: Vec<StringWords>) -> Result<ArrayRef> {
    let (mut views, mut buffers) = (Vec::new(), Vec::<Buffer>::new());
    for StringWords { bytes, places } in words {
        let bytes = Buffer::from_vec(bytes);
        let is_far = bytes.len() > MOST;
        // The buffer that holds all long words of the tile, once there is one.
        let mut shared = None;
        for (at, len) in places {
            let (start, size) = (at as usize, len as usize);
            let word = bytes.as_slice().get(start..start + size);
            let word = word.ok_or_else(|| Error::Internal("a word beyond its bytes".into()))?;
            let (block, at) = match len > INLINE {
                false => (0, 0),
                true if is_far => {
                    buffers.push(bytes.slice_with_length(start, size));
                    (buffers.len() - 1, 0)
                }
                true => {
                    let block = *shared.get_or_insert_with(|| {
                        buffers.push(bytes.clone());
                        buffers.len() - 1
                    });
                    (block, at)
                }
            };
            let block = u32::try_from(block)
                .map_err(|_| Error::Unsupported("too many long texts in a batch".into()))?;
            views.push(make_view(word, block, at));
        }
    }
    let words =
        GenericByteViewArray::<V>::try_new(views.into(), buffers, None).map_err(|e| wrong(&e))?;
    Ok(Arc::new(words))
}
