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

/// One value.
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

/// A range, as `[1, 10]`.
pub fn range(datatype: Datatype, range: &Range) -> String {
    format!(
        "[{}, {}]",
        value(datatype, &range.start),
        value(datatype, &range.end)
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
                bytes.iter().map(|b| format!("\\x{b:02x}")).collect()
            } else {
                value(datatype, bytes)
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
        .map(|bytes| value(dimension.datatype, bytes));
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
    for each in &schema.dimension_labels {
        let _ = write!(out, "\n{}", label(each));
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
    let _ = write!(
        out,
        "\n{}",
        current_domain(&schema.domain, &schema.current_domain)
    );
    out
}
