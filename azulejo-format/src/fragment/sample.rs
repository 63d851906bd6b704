//! Schemas and damaged bytes for this module's tests.

use crate::datatype::{CellValNum, Datatype};
use crate::filter::Pipeline;
use crate::range::Range;
use crate::schema::{
    ArraySchema, ArrayType, Attribute, CurrentDomain, DataOrder, Dimension, Domain, Layout,
};
use crate::version::FormatVersion;

/// A domain with one dimension a type: integers get a domain and an extent, strings neither.
pub fn domain(datatypes: &[Datatype]) -> Domain {
    let dimension = |(i, datatype): (usize, &Datatype)| Dimension {
        domain: (!datatype.is_string())
            .then(|| Range::new(vec![0; datatype.size()], vec![1; datatype.size()])),
        ..Dimension::of_type(format!("d{i}"), *datatype)
    };
    Domain {
        dimensions: datatypes.iter().enumerate().map(dimension).collect(),
    }
}

pub fn attribute(
    name: &str,
    datatype: Datatype,
    cell_val_num: CellValNum,
    nullable: bool,
) -> Attribute {
    Attribute {
        name: name.into(),
        datatype,
        cell_val_num,
        nullable,
        filters: Pipeline::default(),
        fill_value: Vec::new(),
        fill_validity: false,
        order: DataOrder::Unordered,
        enumeration: None,
    }
}

/// A sparse schema with dimensions of these types and three attributes: fixed, var-length,
/// nullable.
pub fn schema(version: FormatVersion, datatypes: &[Datatype]) -> ArraySchema {
    ArraySchema {
        version,
        array_type: ArrayType::Sparse,
        allows_dups: true,
        tile_order: Layout::RowMajor,
        cell_order: Layout::RowMajor,
        capacity: 100,
        coords_filters: Pipeline::default(),
        offsets_filters: Pipeline::default(),
        validity_filters: Pipeline::default(),
        domain: domain(datatypes),
        attributes: vec![
            attribute("a", Datatype::Int32, CellValNum::ONE, false),
            attribute("s", Datatype::StringAscii, CellValNum::Var, false),
            attribute("n", Datatype::Float64, CellValNum::ONE, true),
        ],
        dimension_labels: Vec::new(),
        enumerations: Vec::new(),
        current_domain: CurrentDomain::Empty,
    }
}

/// Calls `check` with every proper prefix of `bytes`, which must all be refused, and with every
/// byte changed, which must not panic.
pub fn damage<T, E: std::fmt::Debug>(bytes: &[u8], check: impl Fn(&[u8]) -> Result<T, E>) {
    for len in 0..bytes.len() {
        assert!(
            check(&bytes[..len]).is_err(),
            "{len} of {} bytes were accepted",
            bytes.len()
        );
    }
    let mut changed = bytes.to_vec();
    for i in 0..bytes.len() {
        for bits in [0xff, 0x80, 0x01] {
            changed[i] ^= bits;
            let _ = check(&changed);
            changed[i] = bytes[i];
        }
    }
}
