//! What is to be read, from JSON to the engine's options.

use azulejo::column::datetime::parse_ticks;
use azulejo::format::schema::{CurrentDomain, Dimension};
use azulejo::format::{Datatype, Physical, Range};
use azulejo::json::value_from_json;
use azulejo::space::{DimSelection, Layout, PointColumn, Points};
use azulejo::{Array, Error, ReadOptions, Result, Subarray};
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// A read, as JavaScript asks for it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// By dimension; others are selected whole.
    select: BTreeMap<String, Selection>,
    /// Instead of that: the coordinates of each point, a list a dimension.
    points: Option<BTreeMap<String, Vec<Json>>>,
    /// Names of columns; none: those of [`ReadOptions::fields`].
    fields: Vec<String>,
    /// A condition as text.
    #[serde(rename = "where")]
    condition: Option<String>,
    /// `row-major`, `col-major`, `global` or `unordered`.
    layout: Option<String>,
    /// Whether cells of a dense array that do not match are left out.
    matching: bool,
    /// Cells, at most.
    limit: Option<u64>,
}

/// What is selected along a dimension.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Selection {
    /// Bounds, both inclusive; null is open.
    ranges: Vec<(Json, Json)>,
    /// Takes the first coordinate of the one range and each so many after it.
    step: Option<u64>,
}

impl Request {
    /// A request from JSON.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`], which says what is wrong.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|e| Error::InvalidArgument(format!("the query: {e}")))
    }

    /// Whether it has a condition, to parse which enumerations may be needed.
    #[must_use]
    pub fn has_condition(&self) -> bool {
        self.condition.is_some()
    }

    /// The engine's options. Enumerations that a condition names are loaded already.
    ///
    /// # Errors
    /// Names that the array does not have, bounds that are no coordinates, a condition that is
    /// none.
    pub fn options(&self, array: &Array) -> Result<ReadOptions> {
        let mut options = ReadOptions::new()
            .subarray(self.subarray(array)?)
            .fields(self.fields.clone())
            .layout(self.layout(array.schema().is_dense())?);
        if let Some(text) = &self.condition {
            options = options.condition(array.condition(text)?);
        }
        if self.matching {
            options = options.matching_only();
        }
        if let Some(cells) = self.limit {
            options = options.limit(cells);
        }
        Ok(options)
    }

    /// Number of coordinates along each dimension of a dense array.
    ///
    /// # Errors
    /// Those of the selection in [`Self::options`], and one that leaves the array.
    pub fn shape(&self, array: &Array) -> Result<Vec<u128>> {
        let subarray = self.subarray(array)?.bind(array.schema())?;
        let shape = subarray.shape(array.schema());
        shape.ok_or_else(|| Error::InvalidArgument("what is selected has no shape".into()))
    }

    /// The cells that are selected.
    fn subarray(&self, array: &Array) -> Result<Subarray> {
        let dimensions = &array.schema().domain.dimensions;
        let is_dimension = |name: &String| dimensions.iter().any(|d| d.name == *name);
        let mut names = self
            .select
            .keys()
            .chain(self.points.iter().flatten().map(|(n, _)| n));
        if let Some(name) = names.find(|name| !is_dimension(name)) {
            let names: Vec<&str> = dimensions.iter().map(|d| d.name.as_str()).collect();
            return Err(Error::SchemaMismatch(format!(
                "there is no dimension {name:?}; there are {}",
                names.join(", ")
            )));
        }
        match &self.points {
            Some(points) if self.select.is_empty() => point_list(dimensions, points),
            Some(_) => {
                let text = "a query selects points or ranges, not both";
                Err(Error::InvalidArgument(text.into()))
            }
            None => self.ranges(array),
        }
    }

    /// The cross product of what is selected along each dimension.
    fn ranges(&self, array: &Array) -> Result<Subarray> {
        let dimensions = &array.schema().domain.dimensions;
        let current = match &array.schema().current_domain {
            CurrentDomain::Empty => None,
            CurrentDomain::NdRectangle(rectangle) => Some(&rectangle.ranges),
        };
        let select = |(i, dimension): (usize, &Dimension)| {
            let whole = current.and_then(|ranges| ranges.get(i));
            match self.select.get(&dimension.name) {
                Some(selection) => selection.of(dimension, whole.or(dimension.domain.as_ref())),
                None => Ok(DimSelection::All),
            }
        };
        let selections = dimensions.iter().enumerate().map(select);
        Ok(Subarray::Box(selections.collect::<Result<_>>()?))
    }

    fn layout(&self, is_dense: bool) -> Result<Layout> {
        match self.layout.as_deref() {
            None | Some("row-major") => Ok(Layout::RowMajor),
            Some("col-major") => Ok(Layout::ColMajor),
            Some("global") => Ok(Layout::Global),
            // Dense cells have an order whatever one asks for.
            Some("unordered") if is_dense => Ok(Layout::RowMajor),
            Some("unordered") => Ok(Layout::Unordered),
            Some(other) => Err(Error::InvalidArgument(format!(
                "there is no layout {other:?}; there are row-major, col-major, global and unordered"
            ))),
        }
    }
}

impl Selection {
    /// Open bounds are those of `whole`.
    fn of(&self, dimension: &Dimension, whole: Option<&Range>) -> Result<DimSelection> {
        let range = |(low, high): &(Json, Json)| -> Result<Range> {
            let open = |end: fn(&Range) -> &Vec<u8>| whole.map(end).cloned().unwrap_or_default();
            Ok(Range {
                start: match low {
                    Json::Null => open(|range| &range.start),
                    low => coordinate(dimension, low)?,
                },
                end: match high {
                    Json::Null => open(|range| &range.end),
                    high => coordinate(dimension, high)?,
                },
            })
        };
        // All texts are no range: one without bounds holds the empty text.
        let is_open = |(low, high): &(Json, Json)| {
            (low.is_null() || low.as_str() == Some("")) && high.is_null()
        };
        let is_all = dimension.is_var() && self.ranges.iter().any(is_open);
        if is_all && self.step.is_none_or(|step| step == 1) {
            return Ok(DimSelection::All);
        }
        let mut ranges: Vec<Range> = self.ranges.iter().map(range).collect::<Result<_>>()?;
        match self.step {
            None | Some(1) => Ok(DimSelection::Ranges(ranges)),
            Some(step) => match (ranges.pop(), ranges.is_empty()) {
                (Some(range), true) => Ok(DimSelection::Strided { range, step }),
                _ => Err(Error::InvalidArgument(format!(
                    "dimension {:?}: a step takes one range",
                    dimension.name
                ))),
            },
        }
    }
}

/// Points by the lists of their coordinates.
fn point_list(dimensions: &[Dimension], points: &BTreeMap<String, Vec<Json>>) -> Result<Subarray> {
    let column = |dimension: &Dimension| -> Result<PointColumn> {
        let Some(values) = points.get(&dimension.name) else {
            let text = format!("points need a coordinate of dimension {:?}", dimension.name);
            return Err(Error::InvalidArgument(text));
        };
        let (mut data, mut offsets) = (Vec::new(), vec![0]);
        for value in values {
            data.extend(coordinate(dimension, value)?);
            offsets.push(data.len() as u64);
        }
        let offsets = dimension.is_var().then_some(offsets);
        Ok(PointColumn { data, offsets })
    };
    let coordinates = dimensions.iter().map(column).collect::<Result<_>>()?;
    Ok(Subarray::Points(Points { coordinates }))
}

/// The bytes of a coordinate: a number, digits, a date, or a string.
fn coordinate(dimension: &Dimension, value: &Json) -> Result<Vec<u8>> {
    let datatype = dimension.datatype;
    if datatype.is_string() {
        return match value.as_str() {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => Err(no_coordinate(dimension, value)),
        };
    }
    let Some(text) = value.as_str() else {
        return number(datatype, value).ok_or_else(|| no_coordinate(dimension, value));
    };
    // Digits: 64 bits do not fit JavaScript's numbers.
    if let Some(bytes) = text
        .parse::<serde_json::Number>()
        .ok()
        .and_then(|digits| number(datatype, &Json::Number(digits)))
    {
        return Ok(bytes);
    }
    if datatype.is_datetime() || datatype.is_time() {
        let ticks = parse_ticks(text, datatype).map_err(|why| {
            Error::InvalidArgument(format!("dimension {:?}: {why}", dimension.name))
        })?;
        return Ok(ticks.to_le_bytes().to_vec());
    }
    Err(no_coordinate(dimension, value))
}

/// A number of a type, where the value is one: whole numbers may come as reals.
fn number(datatype: Datatype, value: &Json) -> Option<Vec<u8>> {
    let is_real = matches!(datatype.physical(), Physical::F32 | Physical::F64);
    let whole = value
        .as_f64()
        .filter(|v| v.fract() == 0.0 && v.abs() < 9e15);
    let value = match whole {
        Some(whole) if !is_real && value.is_f64() => Json::from(whole as i64),
        _ => value.clone(),
    };
    value_from_json(datatype, azulejo::format::CellValNum::ONE, &value).ok()
}

fn no_coordinate(dimension: &Dimension, value: &Json) -> Error {
    Error::InvalidArgument(format!(
        "dimension {:?} ({}): {value} is no coordinate",
        dimension.name, dimension.datatype
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use azulejo::format::ArraySchema;
    use azulejo::{ColumnBuffers, ColumnSet, Config, Context, WriteOptions};

    /// Cells at 3, 4 and 5, of a domain from -10 to 10.
    fn array() -> Array {
        let context = Context::new(Config::default(), None).unwrap();
        let place = context.array("mem://a");
        let schema = ArraySchema::sparse()
            .dimension("x", -10i64..=10, 5)
            .attribute("a", Datatype::Int32);
        place.create(schema.build().unwrap()).unwrap();
        let mut writer = place.writer(WriteOptions::new()).unwrap();
        let columns = [
            ColumnBuffers::of_values("x", vec![3i64, 4, 5]),
            ColumnBuffers::of_values("a", vec![30i32, 40, 50]),
        ];
        writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
        writer.finish().unwrap();
        place.open().unwrap()
    }

    fn found(text: &str) -> Result<Vec<i64>> {
        let array = array();
        let options = Request::parse(text)?.options(&array)?.fields(["x"]);
        let cells = array.read(options)?.read_all()?;
        Ok(cells.columns[0].values().unwrap_or_default().to_vec())
    }

    #[test]
    fn bounds_are_numbers_digits_or_open() {
        let ranges =
            |ranges: &str| found(&format!(r#"{{"select":{{"x":{{"ranges":{ranges}}}}}}}"#));
        assert_eq!(ranges("[[4, 10]]").unwrap(), [4, 5]);
        assert_eq!(ranges("[[4.0, 1e1]]").unwrap(), [4, 5]);
        assert_eq!(ranges(r#"[["-10", "4"]]"#).unwrap(), [3, 4]);
        assert_eq!(ranges("[[null, 3], [5, null]]").unwrap(), [3, 5]);
        for bad in [
            r#"[["x", 3]]"#,
            "[[4.5, 5]]",
            "[[true, 5]]",
            "[[5, 4]]",
            r#"[["9e30", 4]]"#,
        ] {
            assert!(ranges(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn open_bounds_of_texts_hold_all_of_them() {
        let context = Context::new(Config::default(), None).unwrap();
        let place = context.array("mem://s");
        let schema = ArraySchema::sparse().string_dimension("s");
        place.create(schema.build().unwrap()).unwrap();
        let mut writer = place.writer(WriteOptions::new()).unwrap();
        let texts = ["", "a", "b"].map(str::to_owned);
        let columns = [ColumnBuffers::of_strings("s", texts)];
        writer.write(&ColumnSet::of(columns).unwrap()).unwrap();
        writer.finish().unwrap();
        let array = place.open().unwrap();
        let found = |ranges: &str| {
            let text = format!(r#"{{"select":{{"s":{{"ranges":{ranges}}}}}}}"#);
            let options = Request::parse(&text).unwrap().options(&array).unwrap();
            array.read(options).unwrap().read_all().unwrap().cell_num
        };
        assert_eq!(found("[[null, null]]"), 3);
        assert_eq!(found(r#"[["", null]]"#), 3);
        assert_eq!(found(r#"[["b", null], [null, null]]"#), 3);
        assert_eq!(found(r#"[["a", null]]"#), 2);
        assert_eq!(found(r#"[[null, "a"]]"#), 2);
        assert_eq!(found(r#"[["", ""]]"#), 1);
        assert_eq!(found("[]"), 0);
    }

    #[test]
    fn a_dense_selection_has_a_shape() {
        let context = Context::new(Config::default(), None).unwrap();
        let place = context.array("mem://d");
        let days = |name, domain| Dimension {
            datatype: Datatype::DateTimeDay,
            ..Dimension::new(name, domain).tile_extent(5i64)
        };
        let schema = ArraySchema::dense()
            .dimension_with(days("x", -10i64..=10))
            .dimension_with(days("t", 0i64..=9))
            .attribute("a", Datatype::Int32);
        place.create(schema.build().unwrap()).unwrap();
        let array = place.open().unwrap();
        let shape = |select: &str| {
            let request = Request::parse(&format!(r#"{{"select":{select}}}"#)).unwrap();
            request.shape(&array)
        };
        assert_eq!(shape("{}").unwrap(), [21, 10]);
        let dates =
            r#"{"t":{"ranges":[["1970-01-02","1970-01-04"]]},"x":{"ranges":[[0,9]],"step":4}}"#;
        assert_eq!(shape(dates).unwrap(), [3, 3]);
        assert_eq!(shape(r#"{"x":{"ranges":[]}}"#).unwrap(), [0, 10]);
        assert!(shape(r#"{"x":{"ranges":[[0,11]]}}"#).is_err());
    }

    #[test]
    fn points_are_lists_of_coordinates() {
        let points = |points: &str| found(&format!(r#"{{"points":{points}}}"#));
        assert_eq!(points(r#"{"x":[5, "3", 9]}"#).unwrap(), [3, 5]);
        for bad in [r#"{}"#, r#"{"y":[1]}"#, r#"{"x":[1.5]}"#, r#"{"x":[null]}"#] {
            assert!(points(bad).is_err(), "{bad}");
        }
        assert!(found(r#"{"points":{"x":[3]},"select":{"x":{"ranges":[[3,3]]}}}"#).is_err());
    }

    #[test]
    fn conditions_limits_and_layouts_arrive() {
        assert_eq!(found(r#"{"where":"a > 30"}"#).unwrap(), [4, 5]);
        assert_eq!(found(r#"{"limit":1,"layout":"global"}"#).unwrap(), [3]);
        for bad in [
            r#"{"layout":"zigzag"}"#,
            r#"{"where":"b > 1"}"#,
            r#"{"select":{"y":{"ranges":[]}}}"#,
            r#"{"what":1}"#,
            r#"{"select":{"x":{"ranges":[[1,2],[3,4]],"step":2}}}"#,
        ] {
            assert!(found(bad).is_err(), "{bad}");
        }
    }
}
