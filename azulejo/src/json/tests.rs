//! A schema with everything in it goes to JSON text and back.

use super::schema::SchemaDocument;
use azulejo_format::filter::{Filter, Pipeline};
use azulejo_format::schema::{
    ArraySchema, ArrayType, Attribute, CurrentDomain, DataOrder, Dimension, DimensionLabel, Domain,
    Enumeration, EnumerationRef, Layout,
};
use azulejo_format::{CellValNum, Datatype, FormatVersion, NdRectangle, Range};
use serde_json::Value as Json;

fn pipeline(filters: Vec<Filter>) -> Pipeline {
    Pipeline {
        max_chunk_size: 1000,
        filters,
    }
}

fn every_filter() -> Pipeline {
    let reinterpret = Some(Datatype::Int32);
    pipeline(vec![
        Filter::None,
        Filter::Gzip { level: 9 },
        Filter::Zstd { level: -7 },
        Filter::Lz4 { level: 1 },
        Filter::Rle { level: -1 },
        Filter::Bzip2 { level: -1 },
        Filter::DoubleDelta {
            level: 5,
            reinterpret: None,
        },
        Filter::DoubleDelta {
            level: 5,
            reinterpret,
        },
        Filter::BitWidthReduction { max_window: 256 },
        Filter::Bitshuffle,
        Filter::Byteshuffle,
        Filter::PositiveDelta { max_window: 1024 },
        Filter::Aes256Gcm,
        Filter::ChecksumMd5,
        Filter::ChecksumSha256,
        Filter::Dictionary { level: 2 },
        Filter::FloatScale {
            scale: 0.1,
            offset: -0.0,
            byte_width: 4,
        },
        Filter::Xor,
        Filter::Webp {
            quality: 97.5,
            input_format: 4,
            lossless: true,
            y_extent: 12,
            x_extent: 34,
        },
        Filter::Delta {
            level: 5,
            reinterpret: None,
        },
        Filter::Delta {
            level: 5,
            reinterpret,
        },
    ])
}

fn attribute(
    name: &str,
    datatype: Datatype,
    cell_val_num: CellValNum,
    fill_value: Vec<u8>,
) -> Attribute {
    Attribute {
        name: name.into(),
        datatype,
        cell_val_num,
        nullable: false,
        filters: Pipeline::default(),
        fill_value,
        fill_validity: false,
        order: DataOrder::Unordered,
        enumeration: None,
    }
}

fn document() -> SchemaDocument {
    let number = |name: &str| Dimension {
        name: name.into(),
        datatype: Datatype::Int64,
        cell_val_num: CellValNum::ONE,
        filters: pipeline(vec![Filter::Zstd { level: 3 }]),
        domain: Some(Range::of(i64::MIN, i64::MAX - 10)),
        tile_extent: Some(10i64.to_le_bytes().to_vec()),
    };
    let string = Dimension {
        name: "s".into(),
        datatype: Datatype::StringAscii,
        cell_val_num: CellValNum::Var,
        filters: pipeline(vec![]),
        domain: None,
        tile_extent: None,
    };
    let mut attributes: Vec<Attribute> = Datatype::ALL
        .into_iter()
        .flat_map(|t| {
            let double = t.default_fill().repeat(2);
            [
                attribute(t.name(), t, CellValNum::ONE, t.default_fill()),
                attribute(&format!("{t}2"), t, CellValNum::Fixed(2), double),
                attribute(&format!("{t}v"), t, CellValNum::Var, t.default_fill()),
            ]
        })
        .collect();
    attributes.push(Attribute {
        nullable: true,
        fill_validity: true,
        order: DataOrder::Decreasing,
        enumeration: Some("colours".into()),
        filters: every_filter(),
        ..attribute("", Datatype::UInt8, CellValNum::ONE, vec![7])
    });
    let label_schema = ArraySchema {
        version: FormatVersion::CURRENT,
        array_type: ArrayType::Dense,
        allows_dups: false,
        tile_order: Layout::RowMajor,
        cell_order: Layout::RowMajor,
        capacity: 1,
        coords_filters: Pipeline::default(),
        offsets_filters: Pipeline::default(),
        validity_filters: Pipeline::default(),
        domain: Domain {
            dimensions: vec![number("index")],
        },
        attributes: vec![attribute(
            "label",
            Datatype::Float64,
            CellValNum::ONE,
            f64::NAN.to_le_bytes().into(),
        )],
        dimension_labels: vec![],
        enumerations: vec![],
        current_domain: CurrentDomain::Empty,
    };
    let schema = ArraySchema {
        version: FormatVersion::new(20, "schema").unwrap(),
        array_type: ArrayType::Sparse,
        allows_dups: true,
        tile_order: Layout::ColMajor,
        cell_order: Layout::Hilbert,
        capacity: u64::MAX,
        coords_filters: every_filter(),
        offsets_filters: pipeline(vec![Filter::Rle { level: 3 }]),
        validity_filters: pipeline(vec![]),
        domain: Domain {
            dimensions: vec![number("x"), string],
        },
        attributes,
        dimension_labels: vec![DimensionLabel {
            dimension: 0,
            order: DataOrder::Increasing,
            name: "celsius".into(),
            relative: true,
            uri: "__labels/l0".into(),
            attribute: "label".into(),
            datatype: Datatype::Float64,
            cell_val_num: CellValNum::ONE,
            external: false,
        }],
        enumerations: vec![
            EnumerationRef {
                name: "colours".into(),
                file_name: String::new(),
            },
            EnumerationRef {
                name: "pairs".into(),
                file_name: String::new(),
            },
        ],
        current_domain: CurrentDomain::NdRectangle(NdRectangle {
            ranges: vec![Range::of(-5i64, 5), Range::new("a", "zz")],
        }),
    };
    let enumerations = vec![
        Enumeration {
            name: "colours".into(),
            file_name: String::new(),
            datatype: Datatype::StringUtf8,
            cell_val_num: CellValNum::Var,
            ordered: true,
            data: "azulverde".into(),
            offsets: vec![0, 4, 4],
        },
        Enumeration {
            name: "pairs".into(),
            file_name: String::new(),
            datatype: Datatype::Int16,
            cell_val_num: CellValNum::Fixed(2),
            ordered: false,
            data: vec![1, 0, 2, 0, 3, 0, 4, 0],
            offsets: vec![],
        },
    ];
    SchemaDocument {
        schema,
        enumerations,
        label_schemas: vec![Some(label_schema)],
    }
}

#[test]
fn a_schema_with_everything_survives_json_text() {
    let document = document();
    let text = serde_json::to_string_pretty(&document.to_json().unwrap()).unwrap();
    let parsed: Json = serde_json::from_str(&text).unwrap();
    let again = SchemaDocument::from_json(&parsed).unwrap();
    // Debug text tells NaN fills equal, bit for bit (they are bytes there).
    assert_eq!(format!("{again:?}"), format!("{document:?}"));
    assert_eq!(again.to_json().unwrap(), parsed);
}

#[test]
fn wrong_documents_are_refused_with_the_field_named() {
    let good = document().to_json().unwrap();
    let broken = |pointer: &str, value: Json| {
        let mut json = good.clone();
        *json.pointer_mut(pointer).unwrap() = value;
        SchemaDocument::from_json(&json).unwrap_err().to_string()
    };
    assert!(broken("/version", 24.into()).contains("24"));
    assert!(broken("/array_type", "flat".into()).contains("array_type"));
    assert!(broken("/cell_order", "diagonal".into()).contains("hilbert"));
    assert!(broken("/dimensions/0/datatype", "INT65".into()).contains("INT65"));
    assert!(broken("/dimensions/0/cell_val_num", 0.into()).contains("cell_val_num"));
    assert!(broken("/attributes/0/fill_value", Json::Array(vec![])).contains("INT32"));
    assert!(broken("/coords_filters/filters/0/filter", "zip".into()).contains("zip"));
    assert!(broken("/current_domain", Json::Array(vec![])).contains("current_domain"));
    let mut extra = good;
    extra
        .as_object_mut()
        .unwrap()
        .insert("colour".into(), 1.into());
    let error = SchemaDocument::from_json(&extra).unwrap_err();
    assert!(error.to_string().contains("colour"));
}
