//! Shares and histograms of sorted values.
//!
//! Values are kept as keys of 64 bits that have the order of the numbers, and from which these come
//! back: integers moved so that the least is 0, reals by their bits. NaN has the greatest keys.

use crate::value;
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::{Datatype, Physical};
use azulejo::json::float_json;
use serde_json::{Value as Json, json};

/// Blocks of an eighth, a quarter and so on.
const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const PARTS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// The integer in the bytes of an integer type.
pub fn integer(datatype: Datatype, bytes: &[u8]) -> i128 {
    dispatch!(datatype.physical(), T => value::integer(T::read(bytes)))
}

fn is_unsigned(datatype: Datatype) -> bool {
    matches!(
        datatype.physical(),
        Physical::U8 | Physical::U16 | Physical::U32 | Physical::U64
    )
}

/// The key of a value.
pub fn key(datatype: Datatype, bytes: &[u8]) -> u64 {
    match datatype.physical() {
        Physical::F32 => real_key(f64::from(f32::read(bytes))),
        Physical::F64 => real_key(f64::read(bytes)),
        Physical::U64 => u64::read(bytes),
        // They fit both.
        _ => match is_unsigned(datatype) {
            true => integer(datatype, bytes) as u64,
            false => (integer(datatype, bytes) - i128::from(i64::MIN)) as u64,
        },
    }
}

fn real_key(value: f64) -> u64 {
    if value.is_nan() {
        return u64::MAX;
    }
    let bits = value.to_bits();
    match bits >> 63 {
        0 => bits | 1 << 63,
        _ => !bits,
    }
}

fn real_of(key: u64) -> f64 {
    match (key, key >> 63) {
        (u64::MAX, _) => f64::NAN,
        (key, 1) => f64::from_bits(key & !(1 << 63)),
        (key, _) => f64::from_bits(!key),
    }
}

fn integer_of(datatype: Datatype, key: u64) -> i128 {
    match is_unsigned(datatype) {
        true => key.into(),
        false => i128::from(key) + i128::from(i64::MIN),
    }
}

fn number_of(datatype: Datatype, key: u64) -> f64 {
    match datatype.is_real() {
        true => real_of(key),
        false => integer_of(datatype, key) as f64,
    }
}

/// Ticks as a date or a time of day.
pub fn moment_json(datatype: Datatype, ticks: i128) -> Json {
    let tick = i64::try_from(ticks).unwrap_or(if ticks < 0 { i64::MIN } else { i64::MAX });
    value::tick_text(datatype, tick).into()
}

/// The value that a share of the values lies below, between two of them in proportion. NaN counts
/// as the greatest.
pub fn quantile(keys: &[u64], share: f64, datatype: Datatype) -> Json {
    let Some(last) = keys.len().checked_sub(1) else {
        return Json::Null;
    };
    let place = share * last as f64;
    let at = (place.floor() as usize).min(last);
    let part = place - at as f64;
    let (low, high) = (keys[at], keys[(at + 1).min(last)]);
    if datatype.is_datetime() || datatype.is_time() {
        let (low, high) = (integer_of(datatype, low), integer_of(datatype, high));
        let more = ((high - low) as f64 * part).floor() as i128;
        return moment_json(datatype, low + more);
    }
    let (low, high) = (number_of(datatype, low), number_of(datatype, high));
    let span = high - low;
    float_json(match part == 0.0 || low == high {
        true => low,
        false if span.is_finite() => low + span * part,
        false => low * (1.0 - part) + high * part,
    })
}

/// How many values lie in each of some equal parts of their span; the last part has its upper end
/// too.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    datatype: Datatype,
    /// One more than there are counts.
    edges: Vec<f64>,
    counts: Vec<u64>,
    /// Values that are in no part: NaN and the infinite ones.
    others: u64,
}

impl Histogram {
    /// Of sorted keys. Integers of a small span get a part each. `None` without a finite value.
    pub fn of(keys: &[u64], datatype: Datatype, bins: usize) -> Option<Self> {
        let number = |key: &u64| number_of(datatype, *key);
        let start = keys.partition_point(|key| number(key) == f64::NEG_INFINITY);
        let end = keys.partition_point(|key| number(key) < f64::INFINITY);
        let finite = keys.get(start..end).filter(|keys| !keys.is_empty())?;
        let (low, high) = (number(finite.first()?), number(finite.last()?));
        let whole = !datatype.is_real();
        let bins = bins.max(1);
        let (bins, low, high) = match whole {
            // Edges between the integers, so that each of them is in one part.
            true if high - low < bins as f64 => ((high - low) as usize + 1, low, high + 1.0),
            _ if low == high => (1, low, high),
            _ => (bins, low, high),
        };
        let span = high - low;
        let edge = |at: usize| match span.is_finite() {
            _ if at == bins => high,
            true => low + span * at as f64 / bins as f64,
            // The widest spans overflow.
            false => {
                let share = at as f64 / bins as f64;
                low * (1.0 - share) + high * share
            }
        };
        let edges: Vec<f64> = (0..=bins).map(edge).collect();
        let below = |edge: f64| finite.partition_point(|key| number(key) < edge);
        let mut counts = Vec::with_capacity(bins);
        let mut from = 0;
        // The last bin ends with the highest value, which belongs to it.
        let inner = edges.iter().skip(1).take(bins.saturating_sub(1));
        for to in inner.map(|edge| below(*edge)).chain([finite.len()]) {
            let to = to.max(from);
            counts.push((to - from) as u64);
            from = to;
        }
        Some(Self {
            datatype,
            edges,
            counts,
            others: (keys.len() - finite.len()) as u64,
        })
    }

    fn edge(&self, value: f64) -> Json {
        match self.datatype.is_datetime() || self.datatype.is_time() {
            true => moment_json(self.datatype, value.floor() as i128),
            false => float_json(value),
        }
    }

    /// The numbers.
    pub fn json(&self) -> Json {
        let edges: Vec<Json> = self.edges.iter().map(|edge| self.edge(*edge)).collect();
        let mut json = json!({ "edges": edges, "counts": self.counts });
        if self.others > 0 {
            json["others"] = self.others.into();
        }
        json
    }

    /// A character for each part, as high as it is large.
    pub fn line(&self) -> String {
        let most = self.counts.iter().copied().max().unwrap_or(0).max(1);
        let block = |count: &u64| match count {
            0 => ' ',
            count => EIGHTHS[((count * 8).div_ceil(most) as usize).clamp(1, 8) - 1],
        };
        self.counts.iter().map(block).collect()
    }

    /// A line for each part, with a bar of at most `width` characters.
    pub fn draw(&self, width: usize) -> String {
        let most = self.counts.iter().copied().max().unwrap_or(0).max(1);
        let edges: Vec<String> = self
            .edges
            .iter()
            .map(|edge| self.edge_text(*edge))
            .collect();
        let wide = |texts: &[String]| texts.iter().map(|text| text.len()).max().unwrap_or(0);
        let of_edges = wide(&edges);
        let of_counts = most.to_string().len();
        let room = width.saturating_sub(2 * of_edges + of_counts + 8).max(8);
        let mut out = String::new();
        for (pair, count) in edges.windows(2).zip(&self.counts) {
            let [from, to] = pair else { continue };
            let eighths = (u128::from(*count) * 8 * room as u128).div_ceil(u128::from(most));
            let eighths = usize::try_from(eighths).unwrap_or(0);
            let mut bar = "█".repeat(eighths / 8);
            if eighths % 8 > 0 {
                bar.push(PARTS[eighths % 8 - 1]);
            }
            let line = format!("{from:>of_edges$} .. {to:>of_edges$}  {count:>of_counts$}  {bar}");
            out.push_str(line.trim_end());
            out.push('\n');
        }
        if self.others > 0 {
            out.push_str(&format!("NaN or infinite: {}\n", self.others));
        }
        out
    }

    /// An edge in as many digits as tell it from its neighbours.
    fn edge_text(&self, value: f64) -> String {
        let width = match self.edges[..] {
            [first, second, ..] => second - first,
            _ => 0.0,
        };
        match self.edge(value) {
            Json::String(text) => text,
            _ if width > 0.0 && width < 1e15 && value.abs() < 1e15 && width > 1e-9 => {
                let digits = (2.0 - width.log10().floor()).clamp(0.0, 12.0) as usize;
                let digits = if self.edges.iter().all(|e| e.fract() == 0.0) {
                    0
                } else {
                    digits
                };
                format!("{value:.digits$}")
            }
            _ => value::text(Datatype::Float64, &value.to_le_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_order_of_numbers_and_give_them_back() {
        let reals = [
            f64::NEG_INFINITY,
            -1e300,
            -1.5,
            -0.0,
            0.0,
            1e-300,
            7.0,
            f64::INFINITY,
        ];
        let keys = reals.map(real_key);
        assert!(keys.is_sorted());
        assert_eq!(keys.map(real_of), reals);
        assert!(real_of(real_key(-f64::NAN)).is_nan() && real_key(f64::NAN) > keys[7]);
        for number in [i64::MIN, -1, 0, 5, i64::MAX] {
            let key = key(Datatype::Int64, &number.to_le_bytes());
            assert_eq!(integer_of(Datatype::Int64, key), i128::from(number));
        }
        let key = key(Datatype::UInt64, &u64::MAX.to_le_bytes());
        assert_eq!(integer_of(Datatype::UInt64, key), i128::from(u64::MAX));
    }

    #[test]
    fn shares_lie_between_two_values_in_proportion() {
        let keys: Vec<u64> = [1.0, 2.0, 4.0, 10.0].map(real_key).to_vec();
        let at = |share| quantile(&keys, share, Datatype::Float64);
        assert_eq!(at(0.0), 1.0);
        assert_eq!(at(0.5), 3.0);
        assert_eq!(at(1.0), 10.0);
        assert_eq!(quantile(&[], 0.5, Datatype::Float64), Json::Null);
        let days: Vec<u64> = [0i64, 3]
            .iter()
            .map(|day| key(Datatype::DateTimeDay, &day.to_le_bytes()))
            .collect();
        assert_eq!(quantile(&days, 0.5, Datatype::DateTimeDay), "1970-01-02");
    }

    #[test]
    fn parts_hold_all_finite_values() {
        let mut keys: Vec<u64> = [0.0, 0.1, 0.5, 1.0, f64::NAN, f64::NEG_INFINITY]
            .map(real_key)
            .to_vec();
        keys.sort_unstable();
        let of = Histogram::of(&keys, Datatype::Float64, 2).unwrap();
        assert_eq!(
            of.json(),
            json!({ "edges": [0.0, 0.5, 1.0], "counts": [2, 2], "others": 2 })
        );
        assert_eq!(of.line(), "██");
        let ones: Vec<u64> = [3i32, 3, 4, 6]
            .iter()
            .map(|n| key(Datatype::Int32, &n.to_le_bytes()))
            .collect();
        let of = Histogram::of(&ones, Datatype::Int32, 20).unwrap();
        assert_eq!(of.counts, [2, 1, 0, 1]);
        assert_eq!(of.edges, [3.0, 4.0, 5.0, 6.0, 7.0]);
        assert!(of.draw(40).lines().count() == 4);
        let huge = [f64::MIN, f64::MAX].map(real_key);
        let of = Histogram::of(&huge, Datatype::Float64, 3).unwrap();
        assert_eq!(of.counts, [1, 0, 1]);
        assert_eq!(Histogram::of(&[u64::MAX], Datatype::Float64, 3), None);
    }
}
