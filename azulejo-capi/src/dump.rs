//! Schemas as text for people, in the reference's layout.

use azulejo_format::datatype::{Native, dispatch};
use azulejo_format::filter::{Filter, Pipeline};
use azulejo_format::schema::{
    ArraySchema, ArrayType, Attribute, CurrentDomain, DataOrder, Dimension, DimensionLabel, Domain,
    Enumeration, Layout,
};
use azulejo_format::{CellValNum, Datatype, Range};
use std::fmt::Write;
use std::sync::Arc;

/// One value, with all its digits: as messages say it.
pub fn value(datatype: Datatype, bytes: &[u8]) -> String {
    fn number<T: Native + std::fmt::Display>(bytes: &[u8]) -> String {
        if bytes.len() < T::SIZE {
            return String::new();
        }
        T::read(bytes).to_string()
    }
    if datatype.is_string() && datatype.size() == 1 {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    dispatch!(datatype.physical(), T => number::<T>(bytes))
}

/// One value, as dumps say it: reals as C++'s streams write them.
fn shown(datatype: Datatype, bytes: &[u8]) -> String {
    if !datatype.is_real() || bytes.len() < datatype.size() {
        value(datatype, bytes)
    } else if datatype == Datatype::Float32 {
        real(f32::read(bytes).into())
    } else {
        real(f64::read(bytes))
    }
}

/// A real of six digits, by `%g`.
fn real(value: f64) -> String {
    /// Digits that are written.
    const PRECISION: i32 = 6;
    if value.is_nan() {
        return if value.is_sign_negative() {
            "-nan".into()
        } else {
            "nan".into()
        };
    }
    let rounded = format!("{value:.5e}");
    let parts = rounded
        .split_once('e')
        .and_then(|(digits, exponent)| Some((digits, exponent.parse::<i32>().ok()?)));
    let Some((digits, exponent)) = parts else {
        return rounded; // Infinite.
    };
    let without_zeros = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if (-4..PRECISION).contains(&exponent) {
        let places = usize::try_from(PRECISION - 1 - exponent).unwrap_or(0);
        return without_zeros(&format!("{value:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let exponent = exponent.unsigned_abs();
    format!("{}e{sign}{exponent:02}", without_zeros(digits))
}

/// A character of text of any width: as it is, or by its number.
fn character(bytes: &[u8]) -> String {
    match bytes {
        [byte, rest @ ..] if rest.iter().all(|b| *b == 0) && (b' '..=b'~').contains(byte) => {
            char::from(*byte).to_string()
        }
        _ => {
            let digits = bytes.iter().rev().map(|byte| format!("{byte:02x}"));
            format!("\\x{}", digits.collect::<String>())
        }
    }
}

/// A range, as `[1, 10]`.
pub fn range(datatype: Datatype, range: &Range) -> String {
    format!(
        "[{}, {}]",
        shown(datatype, &range.start),
        shown(datatype, &range.end)
    )
}

/// A fill value: the values of one cell.
fn fill(attribute: &Attribute) -> String {
    let datatype = attribute.datatype;
    let text = datatype.is_string()
        || datatype.is_byte()
        || matches!(datatype, Datatype::Char | Datatype::Any);
    let values = attribute
        .fill_value
        .chunks(datatype.size().max(1))
        .map(|bytes| {
            if text {
                character(bytes)
            } else {
                shown(datatype, bytes)
            }
        });
    values.collect::<Vec<String>>().join(", ")
}

fn filter(filter: &Filter) -> String {
    match filter {
        Filter::None => "NoOp".into(),
        Filter::Gzip { level }
        | Filter::Zstd { level }
        | Filter::Lz4 { level }
        | Filter::Rle { level }
        | Filter::Bzip2 { level }
        | Filter::Dictionary { level } => format!("{}: COMPRESSION_LEVEL={level}", filter.name()),
        Filter::DoubleDelta { level, reinterpret } | Filter::Delta { level, reinterpret } => {
            let kind = reinterpret.unwrap_or(Datatype::Any);
            format!(
                "{}: COMPRESSION_LEVEL={level}, REINTERPRET_DATATYPE={kind}",
                filter.name()
            )
        }
        Filter::BitWidthReduction { max_window } => {
            format!("BitWidthReduction: BIT_WIDTH_MAX_WINDOW={max_window}")
        }
        Filter::Bitshuffle => "BitShuffle".into(),
        Filter::Byteshuffle => "ByteShuffle".into(),
        Filter::PositiveDelta { max_window } => {
            format!("PositiveDelta: POSITIVE_DELTA_MAX_WINDOW={max_window}")
        }
        Filter::Aes256Gcm => "EncryptionAES256GCM".into(),
        Filter::ChecksumMd5 => "ChecksumMD5".into(),
        Filter::ChecksumSha256 => "ChecksumSHA256".into(),
        Filter::FloatScale {
            scale,
            offset,
            byte_width,
        } => {
            let (scale, offset) = (real(*scale), real(*offset));
            format!("FloatScalingFilter: BYTE_WIDTH={byte_width}, SCALE={scale}, OFFSET={offset}")
        }
        Filter::Xor => "XORFilter".into(),
        Filter::Webp { .. } => "WebpFilter".into(),
    }
}

fn filters(out: &mut String, pipeline: &Pipeline) {
    let _ = write!(out, ": {}", pipeline.filters.len());
    for each in &pipeline.filters {
        let _ = write!(out, "\n  > {}", filter(each));
    }
    out.push('\n');
}

fn cell_val_num(num: CellValNum) -> String {
    match num {
        CellValNum::Fixed(n) => n.to_string(),
        CellValNum::Var => "var".into(),
    }
}

/// An attribute.
pub fn attribute(attribute: &Attribute) -> String {
    let mut out = format!(
        "### Attribute ###\n- Name: {}\n- Type: {}\n- Nullable: {}\n- Cell val num: {}\n- Filters",
        attribute.name,
        attribute.datatype,
        attribute.nullable,
        cell_val_num(attribute.cell_val_num)
    );
    filters(&mut out, &attribute.filters);
    let _ = writeln!(out, "- Fill value: {}", fill(attribute));
    if attribute.nullable {
        let _ = writeln!(
            out,
            "- Fill value validity: {}",
            u8::from(attribute.fill_validity)
        );
    }
    if attribute.order != DataOrder::Unordered {
        let _ = writeln!(out, "- Data ordering: {}", order(attribute.order));
    }
    if let Some(name) = &attribute.enumeration {
        let _ = writeln!(out, "- Enumeration name: {name}");
    }
    out
}

/// A dimension.
pub fn dimension(dimension: &Dimension) -> String {
    let extent = dimension
        .tile_extent
        .as_ref()
        .map(|bytes| shown(dimension.datatype, bytes));
    let mut out = format!(
        "### Dimension ###\n- Name: {}\n- Type: {}\n- Cell val num: {}\n- Domain: {}\n- Tile extent: {}\n- Filters",
        dimension.name,
        dimension.datatype,
        cell_val_num(dimension.cell_val_num),
        dimension
            .domain
            .as_ref()
            .map_or_else(|| "null".into(), |domain| range(dimension.datatype, domain)),
        extent.unwrap_or_else(|| "null".into())
    );
    filters(&mut out, &dimension.filters);
    out
}

/// A domain.
pub fn domain(domain: &Domain) -> String {
    domain
        .dimensions
        .iter()
        .map(|d| format!("\n{}", dimension(d)))
        .collect()
}

/// An enumeration.
pub fn enumeration(enumeration: &Enumeration) -> String {
    format!(
        "### Enumeration ###\n- Name: {}\n- Type: {}\n- Cell Val Num: {}\n- Ordered: {}\n- Element Count: {}\n",
        enumeration.name,
        enumeration.datatype,
        enumeration.cell_val_num.id(),
        enumeration.ordered,
        enumeration.len()
    )
}

/// A rectangle, by the types of its dimensions.
pub fn rectangle(domain: &Domain, ranges: &[Range]) -> String {
    let mut out = String::from(" - NDRectangle ###\n");
    for (dimension, each) in domain.dimensions.iter().zip(ranges) {
        let _ = writeln!(out, "  - {}", range(dimension.datatype, each));
    }
    out
}

/// A current domain.
pub fn current_domain(domain: &Domain, current: &CurrentDomain) -> String {
    match current.ranges() {
        None => "### Current domain ###\n- Version: 0\n- Empty: 1\n".into(),
        Some(ranges) => format!(
            "### Current domain ###\n- Version: 0\n- Empty: 0\n- Type: NDRECTANGLE\n{}",
            rectangle(domain, ranges)
        ),
    }
}

fn order(order: DataOrder) -> &'static str {
    match order {
        DataOrder::Unordered => "unordered",
        DataOrder::Increasing => "increasing",
        DataOrder::Decreasing => "decreasing",
    }
}

fn label(label: &DimensionLabel) -> String {
    format!(
        "### Dimension Label ###\n- Dimension Index: {}\n- Dimension Label Name: {}\n- URI: {}\n- Label Attribute Name: {}\n\
         - Label Type: {}\n- Label cell val num: {}\n- Label Order: {}\n",
        label.dimension,
        label.name,
        label.uri,
        label.attribute,
        label.datatype,
        cell_val_num(label.cell_val_num),
        order(label.order)
    )
}

fn layout(layout: Layout) -> &'static str {
    match layout {
        Layout::RowMajor => "row-major",
        Layout::ColMajor => "col-major",
        Layout::Global => "global-order",
        Layout::Unordered => "unordered",
        Layout::Hilbert => "hilbert",
    }
}

/// A schema with those of its enumerations that are loaded.
pub fn schema(schema: &ArraySchema, enumerations: &[Arc<Enumeration>]) -> String {
    let kind = if schema.array_type == ArrayType::Dense {
        "dense"
    } else {
        "sparse"
    };
    let mut out = format!(
        "- Array type: {kind}\n- Cell order: {}\n- Tile order: {}\n- Capacity: {}\n- Allows duplicates: {}\n\
         - Coordinates filters",
        layout(schema.cell_order),
        layout(schema.tile_order),
        schema.capacity,
        schema.allows_dups
    );
    filters(&mut out, &schema.coords_filters);
    out.push_str("- Offsets filters");
    filters(&mut out, &schema.offsets_filters);
    out.push_str("- Validity filters");
    filters(&mut out, &schema.validity_filters);
    out.push_str(&domain(&schema.domain));
    for each in &schema.attributes {
        let _ = write!(out, "\n{}", attribute(each));
    }
    for reference in &schema.enumerations {
        match enumerations.iter().find(|e| e.name == reference.name) {
            Some(found) => {
                let _ = write!(out, "\n{}", enumeration(found));
            }
            None => {
                let _ = write!(
                    out,
                    "\n### Enumeration ###\n- Name: {}\n- Loaded: false\n",
                    reference.name
                );
            }
        }
    }
    for each in &schema.dimension_labels {
        let _ = write!(out, "\n{}", label(each));
    }
    let _ = write!(
        out,
        "\n{}",
        current_domain(&schema.domain, &schema.current_domain)
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_the_reference_writes_them() {
        for (value, text) in [
            (0.1, "0.1"),
            (-1.0 / 3.0, "-0.333333"),
            (1e300, "1e+300"),
            (1e6, "1e+06"),
            (999_999.5, "1e+06"),
            (100_000.0, "100000"),
            (123_456_789.0, "1.23457e+08"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (2.5e-310, "2.5e-310"),
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN.copysign(1.0), "nan"),
            (f64::NAN.copysign(-1.0), "-nan"),
        ] {
            assert_eq!(shown(Datatype::Float64, &value.to_le_bytes()), text);
        }
        let third = (1f32 / 3.0).to_le_bytes();
        assert_eq!(shown(Datatype::Float32, &third), "0.333333");
        let number = 1_234_567i64.to_le_bytes();
        assert_eq!(shown(Datatype::Int64, &number), "1234567");
        for (bytes, text) in [
            (&b"A"[..], "A"),
            (b"\x80", "\\x80"),
            (b"\0", "\\x00"),
            (b"A\0", "A"),
            (b"\xac\x20", "\\x20ac"),
            (b"\xe4\0\0\0", "\\x000000e4"),
        ] {
            assert_eq!(character(bytes), text);
        }
    }
}
