//! Round trips of schemas in all versions, damaged ones, and the rules.

use super::*;
use crate::datatype::{CellValNum, Datatype};
use crate::filter::Filter;
use crate::range::{NdRectangle, Range};

fn filters(filters: Vec<Filter>) -> Pipeline {
    Pipeline {
        max_chunk_size: 1000,
        filters,
    }
}

fn dimension<T: crate::datatype::Native>(
    name: &str,
    datatype: Datatype,
    low: T,
    high: T,
    extent: T,
) -> Dimension {
    let domain = Range::of(low, high);
    let tile_extent = Some(Range::of(extent, extent).start);
    let name = name.to_owned();
    Dimension {
        name,
        datatype,
        cell_val_num: CellValNum::ONE,
        filters: Pipeline::default(),
        domain: Some(domain),
        tile_extent,
    }
}

fn text_dimension(name: &str) -> Dimension {
    Dimension {
        name: name.to_owned(),
        datatype: Datatype::StringAscii,
        cell_val_num: CellValNum::Var,
        filters: Pipeline::default(),
        domain: None,
        tile_extent: None,
    }
}

/// A dense schema with all that `version` can hold and nothing that it cannot.
fn dense(version: FormatVersion) -> ArraySchema {
    let mut attributes = vec![
        Attribute::new("", Datatype::Float32, CellValNum::ONE),
        Attribute::new("b", Datatype::Int16, CellValNum::Fixed(3)),
        Attribute::new("c", Datatype::StringUtf8, CellValNum::Var),
    ];
    attributes[0].filters = filters(vec![Filter::Byteshuffle, Filter::Zstd { level: 5 }]);
    if version.has_fill_value() {
        attributes[1].fill_value = vec![1, 2, 3, 4, 5, 6];
        attributes[2].fill_value = b"nothing".to_vec();
    }
    if version.has_nullable() {
        attributes[1].nullable = true;
        attributes[1].fill_validity = true;
    }
    let mut rows = dimension("rows", Datatype::Int32, -5i32, 100, 10);
    if version.has_separate_dimensions() {
        rows.filters = filters(vec![Filter::PositiveDelta { max_window: 64 }]);
    }
    let mut schema = ArraySchema {
        version,
        array_type: ArrayType::Dense,
        allows_dups: false,
        tile_order: Layout::ColMajor,
        cell_order: Layout::RowMajor,
        capacity: 10_000,
        coords_filters: filters(vec![Filter::Zstd { level: -1 }]),
        offsets_filters: filters(vec![Filter::DoubleDelta {
            level: -1,
            reinterpret: None,
        }]),
        validity_filters: Pipeline::default(),
        domain: Domain {
            dimensions: vec![rows],
        },
        attributes,
        dimension_labels: Vec::new(),
        enumerations: Vec::new(),
        current_domain: CurrentDomain::Empty,
    };
    if version.has_nullable() {
        schema.validity_filters = filters(vec![Filter::Rle { level: -1 }]);
    }
    if version.has_attribute_order() {
        let mut sorted = Attribute::new("sorted", Datatype::UInt8, CellValNum::ONE);
        sorted.order = DataOrder::Decreasing;
        schema.attributes.push(sorted);
    }
    if version.has_dimension_labels() {
        schema.dimension_labels.push(DimensionLabel {
            dimension: 0,
            order: DataOrder::Increasing,
            name: "label".to_owned(),
            relative: true,
            uri: "__labels/l0".to_owned(),
            attribute: "label".to_owned(),
            datatype: Datatype::StringAscii,
            cell_val_num: CellValNum::Var,
            external: false,
        });
    }
    if version.has_enumerations() {
        let mut colour = Attribute::new("colour", Datatype::UInt8, CellValNum::ONE);
        colour.enumeration = Some("colours".to_owned());
        schema.attributes.push(colour);
        let (name, file_name) = ("colours".to_owned(), "__0123_0".to_owned());
        schema.enumerations.push(EnumerationRef { name, file_name });
    }
    if version.has_current_domain() {
        schema.current_domain = CurrentDomain::NdRectangle(NdRectangle {
            ranges: vec![Range::of(0i32, 50)],
        });
    }
    schema
}

/// A sparse schema; from v5 on with dimensions of several types.
fn sparse(version: FormatVersion) -> ArraySchema {
    let mut schema = ArraySchema {
        array_type: ArrayType::Sparse,
        cell_order: Layout::Hilbert,
        ..dense(version)
    };
    schema
        .attributes
        .retain(|a| a.order == DataOrder::Unordered);
    schema.dimension_labels.clear();
    if !version.has_separate_dimensions() {
        schema.domain.dimensions = vec![
            dimension("x", Datatype::Float64, -1.0, 1.0, 0.5f64),
            dimension("y", Datatype::Float64, 0.0, 10.0, 1.0f64),
        ];
        return schema;
    }
    schema.allows_dups = true;
    let mut day = dimension("day", Datatype::DateTimeDay, i64::MIN, i64::MAX - 1, 7i64);
    day.tile_extent = None;
    schema.domain.dimensions = vec![
        text_dimension("id"),
        day,
        dimension("x", Datatype::Float32, 0.0, 1.0, 1.0f32),
    ];
    if version.has_current_domain() {
        let ranges = vec![
            Range::new("a", "zz"),
            Range::of(0i64, 9),
            Range::of(0.25f32, 0.75),
        ];
        schema.current_domain = CurrentDomain::NdRectangle(NdRectangle { ranges });
    }
    schema
}

#[test]
fn schemas_of_all_versions_come_back() {
    for version in FormatVersion::all() {
        for schema in [dense(version), sparse(version)] {
            schema.validate().unwrap();
            let bytes = schema.encode();
            assert_eq!(ArraySchema::decode(&bytes).unwrap(), schema);
        }
    }
}

#[test]
fn a_version_leaves_out_what_it_lacks() {
    let mut newest = dense(FormatVersion::NEWEST);
    for version in FormatVersion::all() {
        newest.version = version;
        let decoded = ArraySchema::decode(&newest.encode()).unwrap();
        assert_eq!(decoded.version, version);
        assert_eq!(decoded.attributes.len(), newest.attributes.len());
        assert_eq!(decoded.attributes[1].nullable, version.has_nullable());
        assert_eq!(
            decoded.attributes[1].fill_value == newest.attributes[1].fill_value,
            version.has_fill_value()
        );
        assert_eq!(decoded.enumerations.is_empty(), !version.has_enumerations());
        assert_eq!(
            decoded.current_domain.ranges().is_some(),
            version.has_current_domain()
        );
        let refused = matches!(newest.validate(), Err(SchemaError::Version { .. }));
        assert_eq!(refused, !version.has_current_domain(), "v{version}");
    }
}

#[test]
fn the_smallest_schema_is_these_bytes() {
    // An anonymous UINT8 attribute over one UINT8 dimension, without filters.
    let mut schema = dense(FormatVersion::CURRENT);
    schema.attributes = vec![Attribute::new("", Datatype::UInt8, CellValNum::ONE)];
    schema.domain.dimensions = vec![dimension("d", Datatype::UInt8, 1u8, 4, 2)];
    schema.dimension_labels.clear();
    schema.enumerations.clear();
    schema.current_domain = CurrentDomain::Empty;
    for pipeline in [
        &mut schema.coords_filters,
        &mut schema.offsets_filters,
        &mut schema.validity_filters,
    ] {
        pipeline.filters.clear();
    }
    let pipeline = [0xe8, 3, 0, 0, 0, 0, 0, 0];
    let default_pipeline = [0, 0, 1, 0, 0, 0, 0, 0];
    let mut expected = vec![22, 0, 0, 0, 0, 0, 1, 0, 0x10, 0x27, 0, 0, 0, 0, 0, 0];
    expected.extend(pipeline.repeat(3));
    expected.extend([1, 0, 0, 0, 1, 0, 0, 0, b'd', 6, 1, 0, 0, 0]);
    expected.extend(default_pipeline);
    expected.extend([2, 0, 0, 0, 0, 0, 0, 0, 1, 4, 0, 2]);
    expected.extend([1, 0, 0, 0, 0, 0, 0, 0, 6, 1, 0, 0, 0]);
    expected.extend(default_pipeline);
    expected.extend([1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(schema.encode(), expected);
}

#[test]
fn damage_is_an_error_or_a_value() {
    for version in FormatVersion::all() {
        for schema in [dense(version), sparse(version)] {
            let whole = schema.encode();
            for len in 0..whole.len() {
                assert!(
                    ArraySchema::decode(&whole[..len]).is_err(),
                    "v{version} cut at {len}"
                );
            }
            let mut longer = whole.clone();
            longer.push(0);
            assert!(ArraySchema::decode(&longer).is_err());
            for at in 0..whole.len() {
                for byte in [0, 1, 0x7f, 0x80, 0xff, whole[at] ^ 1, whole[at] ^ 0x40] {
                    let mut bytes = whole.clone();
                    bytes[at] = byte;
                    if let Ok(decoded) = ArraySchema::decode(&bytes) {
                        // What was let through can be worked with.
                        decoded.check().unwrap();
                        let _ = decoded.validate();
                        for d in &decoded.domain.dimensions {
                            if let Some(axis) = d.axis() {
                                assert_eq!(
                                    axis.tile_end(axis.last_tile()),
                                    Some(axis.last_offset())
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The reason why a changed schema is refused, by `check` or only by `validate`.
fn refused(schema: &ArraySchema, on_loading: bool) -> String {
    assert_eq!(
        schema.check().is_err(),
        on_loading,
        "{:?}",
        schema.validate()
    );
    assert_eq!(ArraySchema::decode(&schema.encode()).is_err(), on_loading);
    schema.validate().unwrap_err().to_string()
}

fn changed(
    schema: fn(FormatVersion) -> ArraySchema,
    change: impl FnOnce(&mut ArraySchema),
) -> ArraySchema {
    let mut schema = schema(FormatVersion::CURRENT);
    change(&mut schema);
    schema
}

#[test]
fn schemas_that_no_engine_can_work_with_are_refused_on_loading() {
    let r = |schema: fn(FormatVersion) -> ArraySchema, change: fn(&mut ArraySchema)| {
        let mut schema = changed(schema, |_| {});
        schema.current_domain = CurrentDomain::Empty;
        change(&mut schema);
        refused(&schema, true)
    };
    assert!(r(dense, |s| s.domain.dimensions.clear()).contains("no dimensions"));
    assert!(r(dense, |s| s.attributes.clear()).contains("at least one attribute"));
    assert!(r(dense, |s| s.attributes[1].name = "rows".to_owned()).contains("\"rows\""));
    assert!(r(dense, |s| s.tile_order = Layout::Hilbert).contains("tile order"));
    assert!(r(dense, |s| s.cell_order = Layout::Hilbert).contains("cell order"));
    assert!(r(sparse, |s| s.cell_order = Layout::Unordered).contains("cell order"));
    assert!(r(sparse, |s| s.capacity = 0).contains("capacity"));
    let seventeen = |s: &mut ArraySchema| {
        s.domain.dimensions = (0..17).map(|i| text_dimension(&format!("d{i}"))).collect();
    };
    assert!(r(sparse, seventeen).contains("16 dimensions"));
    fn first<T: crate::datatype::Native>(
        s: &mut ArraySchema,
        datatype: Datatype,
        low: T,
        high: T,
        extent: T,
    ) {
        s.domain.dimensions[0] = dimension("d", datatype, low, high, extent);
    }
    assert!(r(dense, |s| first(s, Datatype::Int32, 5i32, 4, 1)).contains("ends before it starts"));
    assert!(r(dense, |s| first(s, Datatype::Int32, 0i32, 4, 0)).contains("extent of 0"));
    assert!(r(dense, |s| first(s, Datatype::Float64, 0.0f64, 4.0, 1.0)).contains("dense"));
    assert!(r(dense, |s| first(s, Datatype::Bool, 0u8, 1, 1)).contains("type BOOL"));
    assert!(r(sparse, |s| first(s, Datatype::Float64, f64::NAN, 4.0, 1.0)).contains("finite"));
    assert!(
        r(sparse, |s| first(
            s,
            Datatype::Float64,
            0.0,
            f64::INFINITY,
            1.0
        ))
        .contains("finite")
    );
    assert!(
        r(sparse, |s| first(
            s,
            Datatype::Float32,
            0.0,
            1.0f32,
            f32::NAN
        ))
        .contains("positive")
    );
    assert!(r(sparse, |s| s.domain.dimensions[1].domain = None).contains("no domain"));
    assert!(
        r(sparse, |s| s.domain.dimensions[0].cell_val_num =
            CellValNum::ONE)
        .contains("variable length")
    );
    assert!(
        r(sparse, |s| s.domain.dimensions[1].cell_val_num =
            CellValNum::Fixed(2))
        .contains("one value")
    );
    let huge = |s: &mut ArraySchema| {
        let second = dimension("e", Datatype::Int64, 0, i64::MAX - 1, i64::MAX);
        s.domain.dimensions = vec![
            dimension("d", Datatype::Int64, 0, i64::MAX - 1, i64::MAX),
            second.clone(),
        ];
        s.domain.dimensions.push(Dimension {
            name: "f".to_owned(),
            ..second
        });
        s.attributes.retain(|a| a.order == DataOrder::Unordered);
    };
    assert!(r(dense, huge).contains("2^64"));
    let mixed = |s: &mut ArraySchema| {
        s.domain
            .dimensions
            .push(dimension("e", Datatype::Int64, 0i64, 1, 1));
    };
    assert!(r(dense, mixed).contains("type INT32"));
    assert!(r(dense, |s| s.attributes[0].datatype = Datatype::Any).contains("ANY"));
    assert!(r(dense, |s| s.attributes[0].fill_value.push(0)).contains("fill value"));
    assert!(r(dense, |s| s.attributes[2].fill_value.clear()).contains("fill value"));
    assert!(r(dense, |s| s.attributes[3].cell_val_num = CellValNum::Var).contains("ordered"));
    assert!(r(dense, |s| s.dimension_labels[0].dimension = 1).contains("dimension"));
    assert!(
        r(dense, |s| s.dimension_labels[0].uri =
            "__labels/../../x".to_owned())
        .contains("folder")
    );
    assert!(r(dense, |s| s.dimension_labels[0].relative = false).contains("folder"));
    assert!(r(dense, |s| s.enumerations[0].file_name = "../x".to_owned()).contains("file name"));
    assert!(r(dense, |s| s.enumerations.push(s.enumerations[0].clone())).contains("twice"));
    for (low, high) in [(50, 0), (-6, 0), (0, 101)] {
        let rectangle = NdRectangle {
            ranges: vec![Range::of(low, high)],
        };
        let schema = changed(dense, |s| {
            s.current_domain = CurrentDomain::NdRectangle(rectangle);
        });
        assert!(refused(&schema, true).contains("current domain"));
    }
}

#[test]
fn new_schemas_meet_more_rules() {
    let r = |schema: fn(FormatVersion) -> ArraySchema, change: fn(&mut ArraySchema)| {
        let mut schema = changed(schema, |_| {});
        schema.current_domain = CurrentDomain::Empty;
        change(&mut schema);
        refused(&schema, false)
    };
    assert!(r(dense, |s| s.allows_dups = true).contains("duplicates"));
    assert!(
        r(dense, |s| s.dimension_labels[0].order =
            DataOrder::Unordered)
        .contains("increasing")
    );
    assert!(r(dense, |s| s.attributes[0].name = "__coords".to_owned()).contains("reserved"));
    assert!(r(dense, |s| s.attributes[3].nullable = true).contains("nullable"));
    assert!(
        r(dense, |s| s.attributes[4].enumeration =
            Some("x".to_owned()))
        .contains("\"x\"")
    );
    assert!(
        r(dense, |s| s.attributes[2].enumeration =
            Some("colours".to_owned()))
        .contains("integer")
    );
    fn first<T: crate::datatype::Native>(
        s: &mut ArraySchema,
        datatype: Datatype,
        low: T,
        high: T,
        extent: T,
    ) {
        s.domain.dimensions[0] = dimension("rows", datatype, low, high, extent);
    }
    assert!(r(dense, |s| first(s, Datatype::Int8, -128i8, 127, 1)).contains("all values"));
    assert!(r(dense, |s| first(s, Datatype::UInt64, 0, u64::MAX, 1)).contains("all values"));
    assert!(r(dense, |s| first(s, Datatype::Int8, 0i8, 4, 6)).contains("extent of 6"));
    assert!(r(dense, |s| first(s, Datatype::Int64, 0i64, i64::MAX - 1, 10)).contains("64 bits"));
    assert!(r(dense, |s| first(s, Datatype::UInt64, 7u64, u64::MAX, 10)).contains("64 bits"));
    assert!(
        r(sparse, |s| first(s, Datatype::Float64, 0.0f64, 1.0, 2.5))
            .contains("larger than its domain")
    );
    assert!(r(sparse, |s| first(s, Datatype::Float64, 1.0f64, 1.5, 0.0)).contains("not positive"));
    // One point has the extent 0 where none is set.
    changed(sparse, |s| {
        first(s, Datatype::Float64, 1.0f64, 1.0, 0.0);
        s.current_domain = CurrentDomain::Empty;
    })
    .validate()
    .unwrap();
    // Rounded up to tiles, a narrow domain may leave its type.
    changed(dense, |s| {
        first(s, Datatype::Int32, 0i32, i32::MAX - 1, 10_000);
        s.current_domain = CurrentDomain::Empty;
    })
    .validate()
    .unwrap();
}

#[test]
fn global_cell_order_reads_as_what_it_means() {
    let mut schema = sparse(FormatVersion::CURRENT);
    schema.cell_order = Layout::Global;
    assert_eq!(
        ArraySchema::decode(&schema.encode()).unwrap().cell_order,
        Layout::ColMajor
    );
    schema.check().unwrap();
    let mut schema = dense(FormatVersion::CURRENT);
    schema.cell_order = Layout::Global;
    assert!(schema.check().is_err());
    assert!(ArraySchema::decode(&schema.encode()).is_err());
}

#[test]
fn fields_are_found_by_name() {
    let mut schema = sparse(FormatVersion::CURRENT);
    assert_eq!(schema.field("day"), Some(FieldIndex::Dimension(1)));
    assert_eq!(schema.field(""), Some(FieldIndex::Attribute(0)));
    assert_eq!(schema.field("none"), None);
    assert_eq!(schema.fields().count(), 3 + schema.attributes.len());
    assert_eq!(schema.cell_size(FieldIndex::Attribute(1)), Some(6));
    assert_eq!(schema.cell_size(FieldIndex::Dimension(0)), None);
    assert_eq!(schema.cell_size(FieldIndex::Attribute(99)), None);
    assert!(
        schema.is_var(FieldIndex::Dimension(0)) && schema.is_nullable(FieldIndex::Attribute(1))
    );
    assert_eq!(
        schema.filters_of(FieldIndex::Dimension(0)),
        &schema.coords_filters
    );
    schema.version = FormatVersion::OLDEST;
    assert_eq!(
        schema.filters_of(FieldIndex::Dimension(0)),
        &Pipeline::default()
    );
}

#[test]
fn enumerations_come_back() {
    let words =
        Enumeration::of_strings("words", Datatype::StringUtf8, true, ["a", "", "azulejo"]).unwrap();
    let numbers: Vec<u8> = [5i32, -1].iter().flat_map(|n| n.to_le_bytes()).collect();
    let numbers =
        Enumeration::of_fixed("numbers", Datatype::Int32, CellValNum::ONE, false, numbers).unwrap();
    let none = Enumeration::of_strings("none", Datatype::StringAscii, false, [""; 0]).unwrap();
    for enumeration in [&words, &numbers, &none] {
        let bytes = enumeration.encode();
        assert_eq!(&Enumeration::decode(&bytes).unwrap(), enumeration);
        for len in 0..bytes.len() {
            assert!(Enumeration::decode(&bytes[..len]).is_err());
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                if let Ok(decoded) = Enumeration::decode(&bytes) {
                    assert_eq!(decoded.values().count(), decoded.len());
                }
            }
        }
    }
    assert_eq!(
        (words.len(), words.value(1), words.value(2)),
        (3, Some(&b""[..]), Some(&b"azulejo"[..]))
    );
    assert_eq!(
        (
            words.value(3),
            words.value(usize::MAX),
            numbers.value(usize::MAX)
        ),
        (None, None, None)
    );
    assert_eq!(
        (words.index().get(b"azulejo"), words.index().get(b"b")),
        (Some(2), None)
    );
    assert_eq!(numbers.index().get(&(-1i32).to_le_bytes()), Some(1));
    assert!(none.is_empty());
}

#[test]
fn enumerations_grow_and_hold_nothing_twice() {
    let words = Enumeration::of_strings("words", Datatype::StringUtf8, true, ["a", ""]).unwrap();
    let more = words.extend(["b"]).unwrap();
    assert!(more.is_extension_of(&words) && !words.is_extension_of(&more));
    assert_ne!(more.file_name, words.file_name);
    assert_eq!(more.index().get(b"b"), Some(2));
    assert!(words.extend(["a"]).is_err());
    assert!(Enumeration::of_strings("", Datatype::StringUtf8, true, ["a"]).is_err());
    let grown = Enumeration {
        data: b"ab".to_vec(),
        ..words.clone()
    };
    assert!(!grown.is_extension_of(&words));
    let numbers = Enumeration::of_fixed(
        "n",
        Datatype::Int16,
        CellValNum::ONE,
        false,
        vec![1, 0, 2, 0],
    )
    .unwrap();
    assert!(numbers.extend([[3, 0]]).unwrap().is_extension_of(&numbers));
    assert!(numbers.extend([[3]]).is_err());
    assert!(
        Enumeration::of_fixed("n", Datatype::Int16, CellValNum::ONE, false, vec![1, 0, 2]).is_err()
    );
    assert!(
        Enumeration::of_fixed(
            "n",
            Datatype::Int16,
            CellValNum::ONE,
            false,
            vec![1, 0, 1, 0]
        )
        .is_err()
    );
}

/// What the filters of a new array do to what is stored beside its cells: times, offsets, validity.
#[test]
fn filters_beside_cells_give_back_what_they_take() {
    let scale = Filter::FloatScale {
        scale: 1.0,
        offset: 0.0,
        byte_width: 8,
    };
    let positive = Filter::PositiveDelta { max_window: 64 };
    let zstd = Filter::Zstd { level: -1 };
    let new = || {
        ArraySchema::sparse()
            .dimension("x", 0i64..=99, 10)
            .attribute("a", Datatype::Int32)
    };
    // Of coordinates: unfit ones become the dimensions' own.
    for unfit in [scale.clone(), positive.clone()] {
        let made = new().coords_filters(filters(vec![unfit.clone()])).build();
        let schema = made.unwrap().schema;
        assert_eq!(schema.domain.dimensions[0].filters.filters, [unfit]);
        assert_eq!(schema.coords_filters.filters, std::slice::from_ref(&zstd));
        assert_eq!(schema.upgraded(true), None);
    }
    let made = new().coords_filters(filters(vec![Filter::Bitshuffle]));
    let mut schema = made.build().unwrap().schema;
    assert!(schema.domain.dimensions[0].filters.filters.is_empty());
    assert_eq!(schema.coords_filters.filters, [Filter::Bitshuffle]);
    // What others have made can be opened, and upgraded.
    schema.coords_filters = filters(vec![scale.clone()]);
    let stored = ArraySchema::decode(&schema.encode()).unwrap();
    assert!(stored.check_times_filters(true).is_err());
    let upgraded = stored.upgraded(true).unwrap();
    assert_eq!(upgraded.domain.dimensions[0].filters, schema.coords_filters);
    assert_eq!(upgraded.coords_filters.filters, std::slice::from_ref(&zstd));

    // Of offsets, where there are any: they never decrease, until another filter had them.
    let texts = || new().attribute("t", Datatype::StringUtf8);
    let webp = || Filter::of_id(18).unwrap();
    for unfit in [
        vec![scale.clone()],
        vec![zstd.clone(), scale.clone()],
        vec![Filter::Dictionary { level: -1 }],
        vec![Filter::Byteshuffle, positive.clone()],
    ] {
        let pipeline = filters(unfit.clone());
        let refused = texts().offsets_filters(pipeline.clone()).build();
        let refused = refused.unwrap_err();
        assert!(
            matches!(
                refused,
                SchemaError::Filters {
                    what: "offsets",
                    ..
                }
            ),
            "{refused}"
        );
        let mut schema = new().offsets_filters(pipeline).build().unwrap().schema;
        assert_eq!(ArraySchema::decode(&schema.encode()).unwrap(), schema);
        // Nor where the first texts come later.
        let evolution = SchemaEvolution {
            add_attributes: vec![Attribute::new("t", Datatype::StringUtf8, CellValNum::Var)],
            ..SchemaEvolution::default()
        };
        assert!(evolution.apply(&schema, &[]).is_err(), "{unfit:?}");
        // Who has such texts already keeps them.
        schema.attributes.extend(evolution.add_attributes);
        let other = SchemaEvolution {
            add_attributes: vec![Attribute::new("b", Datatype::Int8, CellValNum::ONE)],
            ..SchemaEvolution::default()
        };
        other.apply(&schema, &[]).unwrap();
    }
    let usual = vec![Filter::ChecksumMd5, positive.clone(), zstd];
    texts().offsets_filters(filters(usual)).build().unwrap();

    // Of validity.
    for unfit in [webp(), positive] {
        let pipeline = filters(vec![unfit]);
        let null = Attribute::new("n", Datatype::Int8, CellValNum::ONE).nullable();
        let builder = new().validity_filters(pipeline);
        builder.clone().build().unwrap();
        let refused = builder.attribute_with(null).build().unwrap_err();
        assert!(
            matches!(
                refused,
                SchemaError::Filters {
                    what: "validity",
                    ..
                }
            ),
            "{refused}"
        );
    }
}

#[test]
fn new_pipelines_are_no_longer_than_stored_ones() {
    let many = |count: usize| filters(vec![Filter::Bitshuffle; count]);
    for (count, is_fine) in [
        (Pipeline::MAX_FILTERS, true),
        (Pipeline::MAX_FILTERS + 1, false),
    ] {
        let new = || ArraySchema::sparse().dimension("x", 0i64..=99, 10);
        let attribute = Attribute::new("a", Datatype::Int8, CellValNum::ONE).filters(many(count));
        for builder in [
            new().attribute_with(attribute),
            new().coords_filters(many(count)),
            new().offsets_filters(many(count)),
            new().validity_filters(many(count)),
        ] {
            let built = builder.build();
            assert_eq!(built.is_ok(), is_fine, "{count}");
            if let Ok(new) = built {
                ArraySchema::decode(&new.schema.encode()).unwrap();
            }
        }
    }
}

#[test]
fn fill_values_are_whole_values() {
    let fill = |bytes: &[u8]| {
        let attribute = Attribute::new("a", Datatype::Int32, CellValNum::Var).fill_value(bytes);
        let new = ArraySchema::dense().dimension("x", 0i64..=99, 10);
        new.attribute_with(attribute).build()
    };
    fill(&[1; 8]).unwrap();
    let refused = fill(&[1; 6]).unwrap_err().to_string();
    assert!(refused.contains("fill value of 6 bytes"), "{refused}");
}

#[test]
fn pictures_are_as_large_as_tiles() {
    let picture = |y_extent, x_extent| {
        let filter = Filter::Webp {
            quality: 90.0,
            input_format: 1,
            lossless: true,
            y_extent,
            x_extent,
        };
        Attribute::new("a", Datatype::UInt8, CellValNum::ONE).filters(filters(vec![filter]))
    };
    let with = |rows: u32, picture: Attribute| {
        let new = ArraySchema::dense()
            .dimension("y", 0u32..=99_999, rows)
            .dimension("x", 0u32..=29, 15);
        new.attribute_with(picture).build()
    };
    let made = with(10, picture(0, 0)).unwrap().schema;
    assert_eq!(made.attributes[0].filters, picture(10, 15).filters);
    let refused = with(70_000, picture(0, 0)).unwrap_err().to_string();
    assert!(refused.contains("no size"), "{refused}");
    let mut added = picture(0, 0);
    added.name = "b".to_owned();
    let evolution = SchemaEvolution {
        add_attributes: vec![added],
        ..SchemaEvolution::default()
    };
    let next = evolution.apply(&made, &[]).unwrap();
    assert_eq!(next.attributes[1].filters, picture(10, 15).filters);
}
