//! Arrays for the tests of the browser's side and for its pictures.

use azulejo::format::filter::{Filter, Pipeline};
use azulejo::format::metadata::MetadataValue;
use azulejo::format::schema::{Attribute, DataOrder, Enumeration};
use azulejo::format::{ArraySchema, CellValNum, Datatype, NdRectangle, Range};
use azulejo::group::NewMember;
use azulejo::{ColumnBuffers, ColumnSet, Config, Context, WriteOptions};
use std::path::Path;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// 2024-01-01.
const DAY_ONE: u64 = 1_704_067_200_000;
const DAY: u64 = 86_400_000;

/// Writes the group `demo` with its arrays into `folder`, and their manifests.
pub fn write(folder: &Path) -> Result<()> {
    let context = Context::new(Config::default(), None)?;
    let place = |name: &str| {
        folder
            .join("demo")
            .join(name)
            .to_string_lossy()
            .into_owned()
    };
    let group = context.group(&place(""));
    group.create()?;
    grid(&context, &place("grid"))?;
    points(&context, &place("points"))?;
    relief(&context, &place("relief"))?;
    quakes(&context, &place("quakes"))?;
    let first = context.object(&place("relief"));
    first.create_snapshot("first-survey", Some(DAY_ONE))?;
    let mut editor = group.edit()?;
    for name in ["grid", "points", "quakes", "relief"] {
        editor.add(NewMember::relative(name).named(name))?;
    }
    editor.commit()?;
    let mut metadata = group.change_metadata()?;
    let title = MetadataValue::new(Datatype::StringUtf8, "A demonstration");
    metadata.put("title", title)?.commit()?;
    context.object(&place("")).write_manifests()?;
    Ok(())
}

fn zstd() -> Pipeline {
    Pipeline {
        max_chunk_size: 65_536,
        filters: vec![Filter::Byteshuffle, Filter::Zstd { level: 3 }],
    }
}

/// An attribute of one value a cell.
fn attribute(name: &str, datatype: Datatype) -> Attribute {
    Attribute::new(name, datatype, CellValNum::ONE).filters(zstd())
}

fn range(ranges: &[(i64, i64)]) -> NdRectangle {
    let ranges = ranges
        .iter()
        .map(|(low, high)| Range::of(*low as i32, *high as i32));
    NdRectangle {
        ranges: ranges.collect(),
    }
}

fn put(
    context: &Context,
    uri: &str,
    options: WriteOptions,
    columns: impl IntoIterator<Item = ColumnBuffers>,
) -> Result<()> {
    let mut writer = context.array(uri).writer(options)?;
    writer.write(&ColumnSet::of(columns)?)?;
    writer.finish()?;
    Ok(())
}

/// 1000 y + x, and a second later -1 in rows 100 to 199.
fn grid(context: &Context, uri: &str) -> Result<()> {
    let value = attribute("v", Datatype::Int32);
    let schema = ArraySchema::dense()
        .dimension("y", 0..=999i32, 100)
        .dimension("x", 0..=999i32, 100)
        .attribute_with(value)
        .build()?;
    context.array(uri).create_at(schema, DAY_ONE)?;
    let boxes = [(0, 999, false), (100, 199, true)];
    for ((low, high, again), time) in boxes.into_iter().zip([DAY_ONE, DAY_ONE + 1000]) {
        let rows = low * 1000..(high + 1) * 1000;
        let values = rows.map(|v| if again { -1 } else { v as i32 }).collect();
        let options = WriteOptions::new()
            .timestamp(time)
            .subarray(range(&[(low, high), (0, 999)]));
        put(
            context,
            uri,
            options,
            [ColumnBuffers::of_values("v", values)],
        )?;
    }
    let mut metadata = context.array(uri).change_metadata()?;
    metadata.put("unit", MetadataValue::new(Datatype::StringUtf8, "m"))?;
    metadata.commit()?;
    Ok(())
}

/// 10000 cells: x = i, y = i² mod 1009, a class of three, every other one with a note.
fn points(context: &Context, uri: &str) -> Result<()> {
    let classes = Enumeration::of_strings("classes", Datatype::StringUtf8, false, ["a", "b", "c"])?;
    let note = Attribute::new("note", Datatype::StringUtf8, CellValNum::Var).nullable();
    let schema = ArraySchema::sparse()
        .dimension("x", 0..=9_999i64, 1_000)
        .dimension("y", 0..=1_008i32, 1_009)
        .attribute_with(attribute("class", Datatype::UInt8).enumerated("classes"))
        .attribute_with(note)
        .enumeration(classes)
        .capacity(500)
        .build()?;
    context.array(uri).create_at(schema, DAY_ONE)?;
    let cells = 0..10_000i64;
    let notes = cells
        .clone()
        .map(|i| (i % 2 == 1).then(|| format!("note {i}")));
    let columns = [
        ColumnBuffers::of_values("x", cells.clone().collect()),
        ColumnBuffers::of_values("y", cells.clone().map(|i| (i * i % 1009) as i32).collect()),
        ColumnBuffers::of_values("class", cells.map(|i| (i % 3) as u8).collect()),
        ColumnBuffers::of_optional_strings("note", notes),
    ];
    put(
        context,
        uri,
        WriteOptions::new().timestamp(DAY_ONE),
        columns,
    )
}

/// A number from 0 to 1 that looks random, the same for the same numbers.
fn hash(x: i64, y: i64, seed: i64) -> f64 {
    let mixed = x
        .wrapping_mul(0x1f12_3bb5)
        .wrapping_add(y.wrapping_mul(0x5be0_cd19))
        .wrapping_add(seed.wrapping_mul(0x3c6e_f372));
    let mixed = (mixed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed ^ (mixed >> 32)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Smooth noise between the numbers at whole places.
fn noise(x: f64, y: f64, seed: i64) -> f64 {
    let (left, top) = (x.floor(), y.floor());
    let smooth = |t: f64| t * t * (3.0 - 2.0 * t);
    let (across, down) = (smooth(x - left), smooth(y - top));
    let at = |dx: i64, dy: i64| hash(left as i64 + dx, top as i64 + dy, seed);
    let mix = |a: f64, b: f64, t: f64| a + (b - a) * t;
    let upper = mix(at(0, 0), at(1, 0), across);
    mix(upper, mix(at(0, 1), at(1, 1), across), down)
}

/// Noise of many sizes: a landscape.
fn height(x: f64, y: f64) -> f64 {
    let mut sum = 0.0;
    let (mut size, mut weight) = (1.0 / 420.0, 1.0);
    for octave in 0..8 {
        let ridge = 1.0 - (2.0 * noise(x * size, y * size, octave) - 1.0).abs();
        sum += weight * ridge * ridge;
        size *= 2.05;
        weight *= 0.48;
    }
    sum
}

/// A landscape in metres over four seasons: snow lies on it in winter, and three later surveys have
/// looked at parts of it again.
fn relief(context: &Context, uri: &str) -> Result<()> {
    const SIDE: i64 = 1_536;
    let schema = ArraySchema::dense()
        .dimension("season", 0..=3i32, 1)
        .dimension("y", 0..=SIDE as i32 - 1, 256)
        .dimension("x", 0..=SIDE as i32 - 1, 256)
        .attribute_with(attribute("height", Datatype::Float32))
        .attribute_with(attribute("snow", Datatype::Float32))
        .label(1, "northing", DataOrder::Increasing, Datatype::Float64)
        .build()?;
    context.array(uri).create_at(schema, DAY_ONE)?;
    let land: Vec<f64> = (0..SIDE * SIDE)
        .map(|i| 1_400.0 * height((i % SIDE) as f64, (i / SIDE) as f64) - 700.0)
        .collect();
    let surveys = [
        (0, [(0, 3), (0, SIDE - 1), (0, SIDE - 1)], 0.0),
        (24, [(0, 3), (256, 767), (512, 1279)], -160.0),
        (61, [(0, 3), (896, 1279), (128, 639)], 210.0),
        (90, [(1, 2), (384, 1151), (900, 1400)], -90.0),
    ];
    for (day, [seasons, rows, columns], raised) in surveys {
        let (mut heights, mut snows) = (Vec::new(), Vec::new());
        for season in seasons.0..=seasons.1 {
            for y in rows.0..=rows.1 {
                for x in columns.0..=columns.1 {
                    let land = land.get((y * SIDE + x) as usize).copied().unwrap_or(0.0);
                    let line = [900.0, 1_500.0, 2_100.0, 1_300.0];
                    let line = line.get(season as usize).copied().unwrap_or(0.0);
                    let snow = ((land - line) / 300.0).clamp(0.0, 4.0);
                    heights.push((land + raised) as f32);
                    snows.push(snow as f32);
                }
            }
        }
        let options = WriteOptions::new()
            .timestamp(DAY_ONE + day * DAY)
            .subarray(range(&[seasons, rows, columns]));
        let columns = [
            ColumnBuffers::of_values("height", heights),
            ColumnBuffers::of_values("snow", snows),
        ];
        let mut writer = context.array(uri).writer(options)?;
        // Metres to the north of something, with the first survey.
        let north = (day == 0).then(|| (0..SIDE).map(|y| 5_200_000.0 + 30.0 * y as f64).collect());
        let north = north.map(|values| ColumnBuffers::of_values("northing", values));
        writer.write_labelled(&ColumnSet::of(columns)?, north.as_slice())?;
        writer.finish()?;
    }
    let mut metadata = context.array(uri).change_metadata()?;
    metadata.put("unit", MetadataValue::new(Datatype::StringUtf8, "m"))?;
    metadata.commit()?;
    Ok(())
}

/// Points along curves, more and more of them, week after week.
fn quakes(context: &Context, uri: &str) -> Result<()> {
    let schema = ArraySchema::sparse()
        .dimension("lon", -180.0..=180.0f64, 10.0)
        .dimension("lat", -90.0..=90.0f64, 10.0)
        .dimension("depth", 0.0..=700.0f64, 700.0)
        .attribute_with(attribute("magnitude", Datatype::Float32))
        .attribute_with(attribute("felt", Datatype::Int32))
        .capacity(4_096)
        .build()?;
    context.array(uri).create_at(schema, DAY_ONE)?;
    for week in 0..6i64 {
        let mut all: [Vec<f64>; 3] = Default::default();
        let (mut magnitudes, mut felt) = (Vec::new(), Vec::new());
        for i in 0..20_000 {
            let random = |k: i64| hash(i, k, 100 + week);
            let arc = (random(0) * 5.0).floor();
            let along = random(1) * 2.0 - 1.0;
            let spread = (random(2) + random(3) + random(4) - 1.5) * 6.0;
            let bend = (along * 2.6 + arc * 1.3).sin() * 22.0;
            let lon = (-150.0 + arc * 70.0 + bend + spread).clamp(-180.0, 180.0);
            let lat = (along * 62.0 + spread * 0.6).clamp(-90.0, 90.0);
            let depth = (random(5).powi(3) * 690.0 * (0.4 + random(6))).clamp(0.0, 700.0);
            for (column, value) in all.iter_mut().zip([lon, lat, depth]) {
                column.push(value);
            }
            let magnitude = 2.0 - random(7).max(1e-5).ln() * 0.55;
            magnitudes.push(magnitude as f32);
            felt.push((magnitude.powi(4) * random(8)) as i32);
        }
        let [lon, lat, depth] = all;
        let columns = [
            ColumnBuffers::of_values("lon", lon),
            ColumnBuffers::of_values("lat", lat),
            ColumnBuffers::of_values("depth", depth),
            ColumnBuffers::of_values("magnitude", magnitudes),
            ColumnBuffers::of_values("felt", felt),
        ];
        let options = WriteOptions::new().timestamp(DAY_ONE + 7 * DAY * week.unsigned_abs());
        put(context, uri, options, columns)?;
    }
    Ok(())
}
