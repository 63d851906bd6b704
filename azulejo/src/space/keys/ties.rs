//! Ranks among cells whose keys begin alike.
//!
//! Where the columns do not fit in a key, it holds only their leading bits. In most orders few
//! cells share these: a filter of one bit for several cells finds those that may, they are sorted
//! by the columns as a whole, and the key of each gets its rank among those that share its leading
//! bits. The others have rank 0.

use super::columns::KeyInput;
use super::word::{Word, width};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits that ranks are given at first: crowds that need more take them from the leading bits.
const RANK_BITS: u32 = 4;

/// Ranks behind keys that hold the leading bits of their columns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ties {
    /// How many leading bits.
    prefix: u32,
    /// Bits of a rank.
    bits: u32,
    /// By tile: the cells whose rank is not 0, by place among the selected ones, ascending, and
    /// their ranks.
    ranks: Vec<Vec<(u32, u32)>>,
}

/// A cell that may share its leading bits: these, its tile and its place among the selected cells.
type Candidate<W> = (W, u32, u32);

impl Ties {
    /// For keys that hold all `bits` bits of their columns.
    pub(super) fn none(bits: u32) -> Self {
        Self {
            prefix: bits,
            bits: 0,
            ranks: Vec::new(),
        }
    }

    /// How many leading bits of the columns a key holds.
    pub(super) fn prefix(&self) -> u32 {
        self.prefix
    }

    /// Bits of the ranks behind them.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// Appends the ranks of some cells of a tile to their keys; the first is its selected cell
    /// `first`.
    pub(super) fn append<W: Word>(&self, t: usize, first: usize, out: &mut [W]) {
        if self.bits == 0 {
            return;
        }
        let ranks = self.ranks.get(t).map_or(&[][..], Vec::as_slice);
        let place = |&(i, _): &(u32, u32)| (i as usize).checked_sub(first);
        let from = ranks.partition_point(|entry| place(entry).is_none());
        let mut ranks = ranks.get(from..).unwrap_or_default().iter().peekable();
        for (i, out) in out.iter_mut().enumerate() {
            let rank = ranks.next_if(|entry| place(entry) == Some(i));
            *out = out.append(self.bits, rank.map_or(0, |&(_, rank)| rank.into()));
        }
    }
}

/// Ranks that leave keys `room` bits wide in all.
pub(super) fn find<W: Word>(batch: &KeyInput<'_>, room: u32) -> Ties {
    let most = batch.tiles.iter().map(|tile| tile.rows.len()).sum();
    // Without a limit there is always an answer: with no leading bits at all, ranks among all
    // cells.
    search::<W>(batch, room, most).unwrap_or_else(|| Ties::none(room))
}

/// The same, unless many cells share the leading bits that there is room for.
pub(super) fn find_few<W: Word>(batch: &KeyInput<'_>, room: u32) -> Option<Ties> {
    let cells: usize = batch.tiles.iter().map(|tile| tile.rows.len()).sum();
    search::<W>(batch, room, cells / 4)
}

fn search<W: Word>(batch: &KeyInput<'_>, room: u32, most: usize) -> Option<Ties> {
    let mut bits = RANK_BITS;
    loop {
        let prefix = room.checked_sub(bits)?;
        let ranks = ranks(batch, prefix, &candidates::<W>(batch, prefix, most)?);
        let highest = ranks.iter().flatten().map(|(_, rank)| *rank).max();
        let needed = width(highest.unwrap_or(0).into());
        if needed <= bits {
            return Some(Ties {
                prefix,
                bits: needed,
                ranks,
            });
        }
        bits = needed;
    }
}

/// The cells that may share their first `prefix` bits, unless they are more than `most`.
fn candidates<W: Word>(
    batch: &KeyInput<'_>,
    prefix: u32,
    most: usize,
) -> Option<Vec<Candidate<W>>> {
    let tiles = (0..batch.tiles.len()).into_par_iter();
    let words: Vec<Vec<W>> = tiles
        .map(|t| batch.pack(t, prefix, &|_, _, _| {}))
        .collect();
    let filter = WordFilter::new(words.iter().map(Vec::len).sum());
    words
        .par_iter()
        .for_each(|words| words.iter().for_each(|word| filter.add(*word)));
    let shared = filter.shared.into_iter().map(AtomicU64::into_inner);
    let shared: Vec<u64> = shared.collect();
    let counts = words.par_iter().map(|words| {
        let of = |word: &&W| filter.place.is_set(&shared, **word);
        words.iter().filter(of).count()
    });
    if counts.sum::<usize>() > most {
        return None;
    }
    let found = words.par_iter().enumerate().flat_map_iter(|(t, words)| {
        let (shared, place) = (&shared, &filter.place);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a batch has fewer than 2^32 tiles"
        )]
        let at = move |(i, word): (u32, &W)| (*word, t as u32, i);
        let found = (0u32..).zip(words);
        found
            .filter(move |(_, word)| place.is_set(shared, **word))
            .map(at)
    });
    let mut found: Vec<Candidate<W>> = found.collect();
    found.par_sort_unstable();
    Some(found)
}

/// By tile the ranks that are not 0, among candidates in order.
fn ranks<W: Word>(
    batch: &KeyInput<'_>,
    prefix: u32,
    candidates: &[Candidate<W>],
) -> Vec<Vec<(u32, u32)>> {
    let rest = batch
        .columns
        .get(batch.whole_columns(prefix)..)
        .unwrap_or_default();
    let ranked = |crowd: &[Candidate<W>]| {
        let mut numbers = Vec::with_capacity(crowd.len() * rest.len());
        for &(_, t, i) in crowd {
            let cell = (t as usize, i as usize);
            numbers.extend(rest.iter().map(|column| batch.number(column, cell)));
        }
        let of = |member: usize| numbers.get(member * rest.len()..(member + 1) * rest.len());
        let mut order: Vec<usize> = (0..crowd.len()).collect();
        order.par_sort_unstable_by(|a, b| of(*a).cmp(&of(*b)));
        let mut rank = 0u32;
        let mut before = order.first().copied().and_then(of);
        let mut ranked = Vec::new();
        for member in order {
            let numbers = of(member);
            rank += u32::from(numbers != before);
            before = numbers;
            if let Some((_, t, i)) = crowd.get(member)
                && rank > 0
            {
                ranked.push((*t, *i, rank));
            }
        }
        ranked
    };
    let crowds: Vec<&[Candidate<W>]> = candidates
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|crowd| crowd.len() > 1)
        .collect();
    let mut ranked: Vec<(u32, u32, u32)> = crowds.into_par_iter().flat_map_iter(ranked).collect();
    ranked.par_sort_unstable();
    let mut by_tile = vec![Vec::new(); batch.tiles.len()];
    for (t, i, rank) in ranked {
        if let Some(ranks) = by_tile.get_mut(t as usize) {
            ranks.push((i, rank));
        }
    }
    by_tile
}

/// Where a word's bit lies in a filter.
struct WordBit {
    shift: u32,
}

impl WordBit {
    #[inline]
    fn of<W: Word>(&self, word: W) -> (usize, u64) {
        let mixed = word.low(64) ^ word.drop_low(W::BITS / 2).low(64).rotate_left(32);
        let hash = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        ((hash >> 6) as usize, 1 << (hash & 63))
    }

    #[inline]
    fn is_set<W: Word>(&self, bits: &[u64], word: W) -> bool {
        let (at, bit) = self.of(word);
        bits.get(at).is_some_and(|bits| bits & bit != 0)
    }
}

/// Which of many words may be there more than once: bits that one was hashed to, and bits that
/// several were.
struct WordFilter {
    place: WordBit,
    seen: Vec<AtomicU64>,
    shared: Vec<AtomicU64>,
}

impl WordFilter {
    /// For so many words: 8 to 16 bits each.
    fn new(words: usize) -> Self {
        let bits = width((words as u64).saturating_mul(8)).clamp(6, 40);
        let empty = || {
            (0..1usize << (bits - 6))
                .map(|_| AtomicU64::new(0))
                .collect()
        };
        Self {
            place: WordBit { shift: 64 - bits },
            seen: empty(),
            shared: empty(),
        }
    }

    #[inline]
    fn add<W: Word>(&self, word: W) {
        let (at, bit) = self.place.of(word);
        let (Some(seen), Some(shared)) = (self.seen.get(at), self.shared.get(at)) else {
            return;
        };
        if seen.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            shared.fetch_or(bit, Ordering::Relaxed);
        }
    }
}
