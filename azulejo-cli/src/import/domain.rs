//! Domains and tile extents that suit the data.
//!
//! The domain of a sparse array leaves room for rows to come: integers and dates get nearly all
//! that their type has. Its tile extents cut the space that the data takes into about as many tiles
//! as there are data tiles, so that cells near each other lie together. The domain of a dense array
//! is the box of the data: each of its cells exists.

use super::profile::Bounds;
use crate::error::{CliError, Result};
use crate::value::{self, Bound};
use azulejo::column::datetime;
use azulejo::format::datatype::{Native, dispatch};
use azulejo::format::{CellValNum, Datatype, NdRectangle, Range};

/// Bytes of a dense tile's cells.
const TILE_BYTES: u64 = 1 << 20;
/// Cells of a dense tile filled by coordinates.
const TILE_CELLS: u64 = 1 << 16;
/// Integers that are easy to read, if they suffice.
const PLAIN_LIMIT: i128 = 999_999_999_999_999_999;

/// A dimension in the making.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// The type of its coordinates.
    pub datatype: Datatype,
    /// What the data spans; `None` for text and for no data.
    pub bounds: Option<Bounds>,
    /// The domain; `None` for text.
    pub domain: Option<Range>,
    /// The tile extent; `None` for one tile.
    pub tile_extent: Option<Vec<u8>>,
}

impl Axis {
    /// A dimension without domain and tile extent yet.
    pub fn new(name: &str, datatype: Datatype, bounds: Option<Bounds>) -> Self {
        Self {
            name: name.to_owned(),
            datatype,
            bounds,
            domain: None,
            tile_extent: None,
        }
    }

    /// One value a cell, or text.
    pub fn cell_val_num(&self) -> CellValNum {
        if self.datatype.is_string() {
            CellValNum::Var
        } else {
            CellValNum::ONE
        }
    }

    /// Reads `LO:HI` (a `..` may stand for the colon), or `data`.
    pub fn set_domain(&mut self, text: &str) -> Result<(), String> {
        if self.datatype.is_string() {
            return Err("a dimension of text has no domain".to_owned());
        }
        if text == "data" {
            let bounds = self.bounds.ok_or("there is no data")?;
            self.domain = Some(range_of(self.datatype, bounds)?);
        } else {
            self.domain = Some(parse_range(self.datatype, text)?);
        }
        self.clamp_tile();
        Ok(())
    }

    /// Reads a tile extent: a number, of ticks for datetimes, or `none`.
    pub fn set_tile(&mut self, text: &str) -> Result<(), String> {
        if text == "none" {
            self.tile_extent = None;
            return Ok(());
        }
        if self.datatype.is_string() {
            return Err("a dimension of text has no tile extent".to_owned());
        }
        let plain = match self.datatype {
            d if d.is_datetime() || d.is_time() => Datatype::Int64,
            d => d,
        };
        self.tile_extent = Some(value::parse(plain, text, Bound::Low)?);
        Ok(())
    }

    /// The integers of the domain.
    fn integers(&self) -> Option<(i128, i128)> {
        let range = self.domain.as_ref().filter(|_| !self.datatype.is_real())?;
        let read = |bytes: &[u8]| dispatch!(self.datatype.physical(), T => integer::<T>(bytes));
        Some((read(&range.start), read(&range.end)))
    }

    fn set_extent(&mut self, extent: i128) {
        let bytes = extent.to_le_bytes();
        self.tile_extent = Some(bytes[..self.datatype.size()].to_vec());
    }

    /// A tile is no longer than the domain.
    fn clamp_tile(&mut self) {
        let (Some((low, high)), Some(extent)) = (self.integers(), &self.tile_extent) else {
            return;
        };
        let extent = dispatch!(self.datatype.physical(), T => integer::<T>(extent));
        if extent > high - low + 1 {
            self.set_extent(high - low + 1);
        }
    }
}

fn integer<T: Native>(bytes: &[u8]) -> i128 {
    value::integer(T::read(bytes))
}

/// `LO:HI` of a type. Dates hold colons themselves, so every one is tried.
fn parse_range(datatype: Datatype, text: &str) -> Result<Range, String> {
    let mut splits: Vec<(&str, &str)> = text.split_once("..").into_iter().collect();
    splits.extend(
        text.match_indices(':')
            .map(|(at, _)| (&text[..at], &text[at + 1..])),
    );
    let mut reason = format!("write LO:HI, not {text:?}");
    for (low, high) in splits {
        let range = value::parse(datatype, low, Bound::Low).and_then(|start| {
            Ok(Range::new(
                start,
                value::parse(datatype, high, Bound::High)?,
            ))
        });
        match range {
            Ok(range) => return Ok(range),
            Err(e) => reason = e,
        }
    }
    Err(reason)
}

/// Bounds as a range of a type.
fn range_of(datatype: Datatype, bounds: Bounds) -> Result<Range, String> {
    let outside = || format!("the data is not within {datatype}");
    match (bounds, datatype.is_real()) {
        (Bounds::Integer(low, high), false) => {
            let (least, most) = limits(datatype);
            if low < least || high > most {
                return Err(outside());
            }
            let bytes = |value: i128| value.to_le_bytes()[..datatype.size()].to_vec();
            Ok(Range::new(bytes(low), bytes(high)))
        }
        (bounds, true) => {
            let (low, high) = bounds.reals();
            if !low.is_finite() || !high.is_finite() {
                return Err("the data has infinite coordinates".to_owned());
            }
            Ok(match datatype {
                // Rounded outwards, so that all data is inside.
                Datatype::Float32 => Range::of(round32(low, false), round32(high, true)),
                _ => Range::of(low, high),
            })
        }
        (Bounds::Real(..), false) => Err(format!("the data is not of {datatype}")),
    }
}

fn round32(value: f64, up: bool) -> f32 {
    let near = value as f32;
    match (up, f64::from(near).partial_cmp(&value)) {
        (true, Some(std::cmp::Ordering::Less)) => near.next_up(),
        (false, Some(std::cmp::Ordering::Greater)) => near.next_down(),
        _ => near,
    }
}

/// The type that a dimension for such data has: the next wider one where the data has the least and
/// the greatest value of a narrow type, all of which no domain can hold.
pub fn type_with_room(datatype: Datatype, bounds: Option<Bounds>) -> Datatype {
    match (datatype, bounds) {
        (_, Some(Bounds::Integer(low, high))) if (low, high) != limits(datatype) => datatype,
        (Datatype::Int8, Some(_)) => Datatype::Int16,
        (Datatype::UInt8, Some(_)) => Datatype::UInt16,
        (Datatype::Int16, Some(_)) => Datatype::Int32,
        (Datatype::UInt16, Some(_)) => Datatype::UInt32,
        (Datatype::Int32, Some(_)) => Datatype::Int64,
        (Datatype::UInt32, Some(_)) => Datatype::UInt64,
        _ => datatype,
    }
}

/// The least and the greatest integer of a type.
fn limits(datatype: Datatype) -> (i128, i128) {
    fn of<T: Native>() -> (i128, i128) {
        (value::integer(T::LOWEST), value::integer(T::HIGHEST))
    }
    dispatch!(datatype.physical(), T => of::<T>())
}

/// Domains and tile extents of a sparse array with so many cells.
pub fn sparse(axes: &mut [Axis], rows: u64, capacity: u64, hilbert: bool) -> Result<()> {
    let cut = axes.iter().filter(|axis| span(axis).is_some()).count();
    let data_tiles = rows.div_ceil(capacity.max(1)).max(1) as f64;
    let parts = data_tiles.powf(1.0 / cut.max(1) as f64).ceil() as i128;
    for axis in axes.iter_mut() {
        if axis.datatype.is_string() {
            continue;
        }
        let usage = |e: String| CliError::usage(format!("dimension {:?}: {e}", axis.name));
        if let (true, Some(bounds)) = (hilbert, axis.bounds) {
            // The curve is laid through the domain: it must not be much larger than the data.
            axis.domain = Some(widened(axis.datatype, bounds).map_err(usage)?);
        } else if axis.datatype.is_real() {
            axis.domain = Some(roomy(axis.datatype, axis.bounds).map_err(usage)?);
            axis.tile_extent = real_extent(axis, parts).filter(|_| !hilbert);
        } else {
            let extent = span(axis).map_or(1, |span| nice(span / parts.max(1) + 1));
            let (domain, extent) = tiled(axis.datatype, axis.bounds, extent).map_err(usage)?;
            axis.domain = Some(domain);
            if let Some(extent) = extent.filter(|_| !hilbert) {
                axis.set_extent(extent);
            }
        }
    }
    Ok(())
}

/// The domain that a curve is laid through: half of the data's span more on either side of reals,
/// and never a single value.
fn widened(datatype: Datatype, bounds: Bounds) -> Result<Range, String> {
    let range = range_of(datatype, bounds)?;
    if !datatype.is_real() {
        return Ok(range);
    }
    let (low, high) = bounds.reals();
    let room = ((high - low) / 2.0)
        .max(high.abs().max(low.abs()) * 1e-6)
        .max(1e-9);
    // In round numbers, outwards.
    let step = 10f64.powi(room.log10().floor() as i32);
    let low = ((low - room) / step).floor() * step;
    let high = ((high + room) / step).ceil() * step;
    let most = match datatype {
        Datatype::Float32 => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    let inside = low >= -most && high <= most;
    match inside {
        true => range_of(datatype, Bounds::Real(low, high)),
        false => Ok(range),
    }
}

/// How many integers the data spans.
fn span(axis: &Axis) -> Option<i128> {
    match axis.bounds {
        Some(Bounds::Integer(low, high)) if !axis.datatype.is_real() => Some(high - low + 1),
        _ => None,
    }
}

/// The next number of the form 1, 2 or 5 times a power of ten.
fn nice(number: i128) -> i128 {
    let mut power = 1;
    loop {
        for factor in [1, 2, 5] {
            if factor * power >= number {
                return factor * power;
            }
        }
        power *= 10;
    }
}

/// A domain of integers with room for data to come, and tiles of about this extent that it is cut
/// into, if any can be.
///
/// The domains that are looked at, from the one that reads best to the data itself, and the rules
/// that one of them has to keep: it holds the data, it has not all values of its type, and its last
/// tile ends within 64 bits. Data of one cell at 5 gets the domain 0 to 10^18 - 1; 64-bit hashes,
/// which leave hardly any room at the ends of their type, get it but for its last value, in tiles
/// of a power of two.
fn tiled(
    datatype: Datatype,
    bounds: Option<Bounds>,
    extent: i128,
) -> Result<(Range, Option<i128>), String> {
    let data = match bounds {
        Some(Bounds::Integer(low, high)) => Some((low, high)),
        _ => None,
    };
    let (least, most) = limits(datatype);
    // Data on one side of 0 mostly stays there. Of signed types the least value is left out, which
    // is no date.
    let low = match data {
        Some((low, _)) if low < 0 => least + 1,
        _ => 0,
    };
    // Extents are of the dimension's type too.
    let binary = (extent as u128).next_power_of_two() as i128;
    let binary = binary.min((most >> 1) + 1);
    let nice = extent.min(binary * 2 - 1);
    let plain = (low.max(-PLAIN_LIMIT), PLAIN_LIMIT.min(most - nice));
    let candidates = calendar(datatype)
        .into_iter()
        .chain([plain, (low, most - nice)])
        .flat_map(|domain| [(domain, nice), (domain, even(domain, nice))])
        .chain([
            ((least, most - 1), binary),
            ((least + binary, most), binary),
        ]);
    for ((from, to), extent) in candidates {
        let cells = to - from + 1;
        let extent = extent.min(cells);
        let holds = data.is_none_or(|(low, high)| from <= low && high <= to);
        let last = from + (cells + extent - 1) / extent * extent - 1;
        let room = if datatype.size() < 8 { i128::MAX } else { most };
        if cells > 0 && holds && cells <= most - least && extent <= most && last <= room {
            let domain = range_of(datatype, Bounds::Integer(from, to))?;
            return Ok((domain, Some(extent)));
        }
    }
    // Data at both ends of its type: just what there is, in one tile.
    let (from, to) = data.unwrap_or((least, most - 1));
    if to - from == most - least {
        return Err(format!(
            "the data has the least and the greatest {datatype}, and no domain holds all values of its type"
        ));
    }
    Ok((range_of(datatype, Bounds::Integer(from, to))?, None))
}

/// About as long an extent that cuts a domain into tiles of which the last is hardly shorter.
fn even((from, to): (i128, i128), extent: i128) -> i128 {
    let cells = (to - from + 1).max(1);
    let tiles = (cells / extent.max(1)).max(1);
    (cells + tiles - 1) / tiles
}

/// A domain of reals with room for data to come: ten times what the data spans on either side, in
/// round numbers.
fn roomy(datatype: Datatype, bounds: Option<Bounds>) -> Result<Range, String> {
    let of = |low: f64, high: f64| match datatype {
        Datatype::Float32 => {
            // Outwards, and within the type.
            let most = f64::from(f32::MAX);
            Range::of(
                round32(low.max(-most), false),
                round32(high.min(most), true),
            )
        }
        _ => Range::of(low, high),
    };
    let Some(bounds) = bounds else {
        return Ok(of(-1e9, 1e9));
    };
    range_of(datatype, bounds)?;
    let (low, high) = bounds.reals();
    let most = f64::from(f32::MAX);
    if datatype == Datatype::Float32 && (low < -most || high > most) {
        return Err(format!("the data is not within {datatype}"));
    }
    let span = (high - low).max(high.abs().max(low.abs()) * 1e-3).max(1e-6);
    let step = 10f64.powi(span.log10().ceil() as i32);
    let from = ((low - 10.0 * span) / step).floor() * step;
    let to = ((high + 10.0 * span) / step).ceil() * step;
    let holds = from.is_finite() && to.is_finite() && from <= low && high <= to;
    Ok(match holds {
        // Data on one side of 0 mostly stays there.
        true if low >= 0.0 => of(from.max(0.0), to),
        true => of(from, to),
        false => of(f64::MIN, f64::MAX),
    })
}

/// A tile extent that cuts the span of real data into about so many parts; `None` where the domain
/// would not be a countable number of such tiles.
fn real_extent(axis: &Axis, parts: i128) -> Option<Vec<u8>> {
    let (low, high) = axis.bounds?.reals();
    let span = high - low;
    if !(span > 0.0 && span.is_finite()) {
        return None;
    }
    // A round number: 1, 2 or 5 times a power of ten.
    let wanted = span / parts.max(1) as f64;
    let power = 10f64.powi(wanted.log10().floor() as i32);
    let factor = [1.0, 2.0, 5.0, 10.0];
    let factor = factor.into_iter().find(|f| f * power >= wanted)?;
    let extent = factor * power;
    let domain = axis.domain.as_ref()?;
    let (from, to) = match axis.datatype {
        Datatype::Float32 => (
            f64::from(f32::read(&domain.start)),
            f64::from(f32::read(&domain.end)),
        ),
        _ => (f64::read(&domain.start), f64::read(&domain.end)),
    };
    // Tiles that neighbouring numbers of the type are far from each other for are none.
    let fine = match axis.datatype {
        Datatype::Float32 => 1e-6,
        _ => 1e-14,
    };
    let fits = (to - from) / extent < 1e15
        && extent <= to - from
        && extent > fine * from.abs().max(to.abs());
    fits.then(|| match axis.datatype {
        Datatype::Float32 => (extent as f32).to_le_bytes().to_vec(),
        _ => extent.to_le_bytes().to_vec(),
    })
}

/// The years 1 to 9999, or those that nanoseconds reach.
fn calendar(datatype: Datatype) -> Option<(i128, i128)> {
    if !datatype.is_datetime() {
        return None;
    }
    let day = |text: &str| {
        datetime::parse_ticks(text, Datatype::DateTimeDay)
            .ok()
            .map(i128::from)
    };
    let (first, last) = match datatype {
        Datatype::DateTimeNano => (day("1678-01-01")?, day("2261-12-31")?),
        _ => (day("0001-01-01")?, day("9999-12-31")?),
    };
    let per_day: i128 = match datatype {
        Datatype::DateTimeYear => return Some((1 - 1970, 9999 - 1970)),
        Datatype::DateTimeMonth => return Some(((1 - 1970) * 12, (9999 - 1970) * 12 + 11)),
        Datatype::DateTimeWeek => return Some((first.div_euclid(7), last.div_euclid(7))),
        Datatype::DateTimeDay => 1,
        Datatype::DateTimeHour => 24,
        Datatype::DateTimeMinute => 1440,
        Datatype::DateTimeSecond => 86_400,
        Datatype::DateTimeMilli => 86_400_000,
        Datatype::DateTimeMicro => 86_400_000_000,
        Datatype::DateTimeNano => 86_400_000_000_000,
        _ => return None,
    };
    Some((first * per_day, (last + 1) * per_day - 1))
}

/// Domains and tile extents of a dense array: the box of the data.
pub fn dense(axes: &mut [Axis]) -> Result<()> {
    for axis in axes.iter_mut() {
        if axis.datatype.is_real() || axis.datatype.is_string() {
            return Err(CliError::usage(format!(
                "dimension {:?} holds {}, which dense arrays do not have; --sparse takes it",
                axis.name, axis.datatype
            )));
        }
        let bounds = axis.bounds.ok_or_else(|| {
            CliError::usage(format!(
                "dimension {:?}: the file has no rows, so give --domain",
                axis.name
            ))
        });
        let usage = |e: String| CliError::usage(format!("dimension {:?}: {e}", axis.name));
        axis.domain = Some(range_of(axis.datatype, bounds?).map_err(usage)?);
    }
    tiles_of_cells(axes, TILE_CELLS);
    Ok(())
}

/// Tile extents for cells of this size.
pub fn tiles_of_bytes(axes: &mut [Axis], cell_size: u64) {
    tiles_of_cells(axes, (TILE_BYTES / cell_size.max(1)).max(1));
}

/// Tiles of about so many cells, as cubic as the domain lets them be.
fn tiles_of_cells(axes: &mut [Axis], cells: u64) {
    let mut order: Vec<usize> = (0..axes.len()).collect();
    order.sort_by_key(|&i| span(&axes[i]));
    let mut left = cells as f64;
    for (done, &i) in order.iter().enumerate() {
        let side = left.powf(1.0 / (axes.len() - done) as f64);
        // A power of two, unless the whole axis fits.
        let length = span(&axes[i]).unwrap_or(1);
        let power = 1i128 << (side.max(1.0).log2() + 1e-9).floor() as u32;
        let extent = if length as f64 <= side * 1.5 {
            length
        } else {
            power
        };
        axes[i].set_extent(extent.max(1));
        left = (left / extent as f64).max(1.0);
    }
}

/// The box of the data.
pub fn data_box(axes: &[Axis]) -> Result<NdRectangle> {
    let range = |axis: &Axis| {
        let bounds = axis.bounds.unwrap_or(Bounds::Integer(0, 0));
        range_of(axis.datatype, bounds)
            .map_err(|e| CliError::usage(format!("dimension {:?}: {e}", axis.name)))
    };
    Ok(NdRectangle {
        ranges: axes.iter().map(range).collect::<Result<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(datatype: Datatype, low: i128, high: i128) -> Axis {
        Axis::new("x", datatype, Some(Bounds::Integer(low, high)))
    }

    #[test]
    fn sparse_domains_leave_room() {
        let mut axes = [
            axis(Datatype::Int64, 5, 1_004),
            axis(Datatype::DateTimeDay, 0, 364),
        ];
        sparse(&mut axes, 1_000_000, 10_000, false).unwrap();
        assert_eq!(axes[0].integers(), Some((0, 999_999_999_999_999_999)));
        // A hundred data tiles: ten parts of each axis.
        assert_eq!(axes[0].tile_extent, Some(200i64.to_le_bytes().to_vec()));
        assert_eq!(axes[1].tile_extent, Some(50i64.to_le_bytes().to_vec()));
        assert_eq!(axes[1].integers(), Some((-719_162, 2_932_896)));
    }

    /// Every domain and extent must make a dimension.
    #[test]
    fn whatever_the_data_has_a_domain_that_can_be() {
        use azulejo::format::schema::{ArraySchema, Attribute, Dimension};
        let (i64s, u64s) = (limits(Datatype::Int64), limits(Datatype::UInt64));
        for (datatype, low, high) in [
            (Datatype::Int8, -127, 127),
            (Datatype::Int8, -128, 126),
            (Datatype::Int8, -100, 100),
            (Datatype::UInt8, 0, 254),
            (Datatype::UInt8, 1, 255),
            (Datatype::UInt16, 7, 65_535),
            (Datatype::Int32, -5, 7),
            (Datatype::Int32, -(1 << 31), (1 << 31) - 2),
            (Datatype::Int64, i64s.0, i64s.1 - 1),
            (Datatype::Int64, i64s.0 + 1, i64s.1),
            (Datatype::Int64, i64s.0 + (1 << 50), i64s.1 - (1 << 50)),
            (Datatype::Int64, i64s.1, i64s.1),
            (Datatype::Int64, i64s.0, i64s.0),
            (Datatype::UInt64, 0, u64s.1 - 1),
            (Datatype::UInt64, 1, u64s.1),
            (Datatype::UInt64, 1 << 44, u64s.1 - (1 << 44)),
            (Datatype::UInt64, u64s.1, u64s.1),
            (Datatype::DateTimeNano, i64s.0, 0),
            (
                Datatype::DateTimeNano,
                -(10i128.pow(18)),
                4 * 10i128.pow(18),
            ),
            (Datatype::DateTimeDay, -719_162, 2_932_896),
        ] {
            for rows in [1, 100, 1_000_000] {
                let mut axes = [axis(datatype, low, high)];
                sparse(&mut axes, rows, 10, false).unwrap();
                let (first, last) = axes[0].integers().unwrap();
                assert!(first <= low && last >= high, "{datatype} {low} {high}");
                let [axis] = axes;
                let dimension = Dimension {
                    domain: axis.domain,
                    tile_extent: axis.tile_extent,
                    ..Dimension::of_type("x", datatype)
                };
                ArraySchema::sparse()
                    .dimension_with(dimension)
                    .attribute_with(Attribute::new("a", Datatype::Int32, CellValNum::ONE))
                    .build()
                    .unwrap_or_else(|e| panic!("{datatype} {low} {high} {rows}: {e}"));
            }
        }
        let all = axis(Datatype::Int8, -128, 127);
        assert_eq!(type_with_room(all.datatype, all.bounds), Datatype::Int16);
        assert!(sparse(&mut [all], 100, 10, false).is_err());
        let some = axis(Datatype::UInt8, 1, 255);
        assert_eq!(type_with_room(some.datatype, some.bounds), Datatype::UInt8);
    }

    #[test]
    fn reals_have_room_and_tiles() {
        let real = |datatype, low, high| Axis::new("x", datatype, Some(Bounds::Real(low, high)));
        for (low, high) in [
            (0.0, 1.0),
            (-180.0, 180.0),
            (1e-9, 2e-9),
            (5.0, 5.0),
            (-1e300, 1e300),
            (1e6, 1e6 + 1.0),
        ] {
            for datatype in [Datatype::Float64, Datatype::Float32] {
                let mut axes = [real(datatype, low, high)];
                let within = high < f64::from(f32::MAX) || datatype == Datatype::Float64;
                let made = sparse(&mut axes, 1_000_000, 10_000, false);
                assert_eq!(made.is_ok(), within, "{datatype} {low} {high}");
                let (true, Some(domain)) = (within, &axes[0].domain) else {
                    continue;
                };
                let read = |bytes: &[u8]| match datatype {
                    Datatype::Float32 => f64::from(f32::read(bytes)),
                    _ => f64::read(bytes),
                };
                let (from, to) = (read(&domain.start), read(&domain.end));
                assert!(from <= low && high <= to && from < to, "{low} {high}");
                assert!(from.is_finite() && to.is_finite());
                if let Some(extent) = &axes[0].tile_extent {
                    let extent = read(extent);
                    let parts = (high - low) / extent;
                    assert!((20.0..=110.0).contains(&parts), "{low} {high}: {parts}");
                }
            }
        }
        let mut axes = [
            real(Datatype::Float64, 0.0, 10.0),
            real(Datatype::Float64, 7.0, 7.0),
        ];
        sparse(&mut axes, 100, 10, true).unwrap();
        assert_eq!(axes[0].domain, Some(Range::of(-5.0f64, 15.0)));
        assert_ne!(axes[1].domain, Some(Range::of(7.0f64, 7.0)));
    }

    #[test]
    fn dense_tiles_are_as_cubic_as_can_be() {
        let extents = |lengths: &[i128], cells: u64| {
            let mut axes: Vec<Axis> = lengths
                .iter()
                .map(|&n| axis(Datatype::Int64, 0, n - 1))
                .collect();
            dense(&mut axes).unwrap();
            tiles_of_cells(&mut axes, cells);
            axes.iter()
                .map(|a| integer::<i64>(a.tile_extent.as_ref().unwrap()))
                .collect::<Vec<_>>()
        };
        assert_eq!(extents(&[10_000, 10_000], 1 << 16), [256, 256]);
        assert_eq!(extents(&[3, 10_000, 10_000], 3 << 16), [3, 256, 256]);
        assert_eq!(extents(&[100], 1 << 16), [100]);
        assert_eq!(extents(&[1 << 30], 1 << 16), [1 << 16]);
        assert_eq!(extents(&[10, 20], 1 << 16), [10, 20]);
    }

    #[test]
    fn domains_and_extents_as_asked_for() {
        let mut x = axis(Datatype::DateTimeSecond, 0, 10);
        x.set_domain("2024-01-01T00:00:00:2024-12-31").unwrap();
        assert_eq!(x.integers(), Some((1_704_067_200, 1_735_689_599)));
        x.set_domain("data").unwrap();
        assert_eq!(x.integers(), Some((0, 10)));
        x.set_tile("5").unwrap();
        assert_eq!(x.tile_extent, Some(5i64.to_le_bytes().to_vec()));
        x.set_tile("none").unwrap();
        assert_eq!(x.tile_extent, None);
        assert!(x.set_domain("5").is_err() && x.set_tile("day").is_err());
        let mut y = axis(Datatype::Int32, -5, 5);
        y.set_domain("-10:10").unwrap();
        assert_eq!(y.integers(), Some((-10, 10)));
    }

    #[test]
    fn nice_numbers() {
        assert_eq!([1, 3, 6, 11, 50, 51].map(nice), [1, 5, 10, 20, 50, 100]);
    }
}
