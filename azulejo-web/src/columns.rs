//! Cells on their way to JavaScript.

use azulejo::format::CellValNum;
use azulejo::{ColumnBuffers, ColumnSet};
use js_sys::{Array, Object, Reflect, Uint8Array, Uint32Array};
use wasm_bindgen::JsValue;

/// `{cells, columns: [{name, datatype, cellValNum, nullable, enumeration, data, offsets,
/// validity}]}`; `cellValNum` is 0 for cells of varying length. Everything is copied out of the
/// module's memory, which JavaScript cannot hold on to.
pub(crate) fn batch(cells: &ColumnSet) -> JsValue {
    let columns: Array = cells.columns.iter().map(column).collect();
    object(&[
        ("cells", JsValue::from_f64(cells.cell_num as f64)),
        ("columns", columns.into()),
    ])
}

fn column(column: &ColumnBuffers) -> JsValue {
    let of = &column.column_type;
    let values = match of.cell_val_num {
        CellValNum::Fixed(n) => n,
        CellValNum::Var => 0,
    };
    // Memory has 32-bit addresses, so that offsets into it fit.
    let offsets = column.offsets.as_ref().map(|offsets| {
        let offsets: Vec<u32> = offsets
            .typed_data::<u64>()
            .iter()
            .map(|&o| o as u32)
            .collect();
        Uint32Array::from(&offsets[..])
    });
    let validity = column.validity.as_ref();
    let enumeration = of.enumeration.as_ref().map(|e| e.name.as_str());
    object(&[
        ("name", JsValue::from_str(&of.name)),
        ("datatype", JsValue::from_str(of.datatype.name())),
        ("cellValNum", JsValue::from_f64(values.into())),
        ("nullable", JsValue::from_bool(of.nullable)),
        ("enumeration", enumeration.into()),
        ("data", Uint8Array::from(&column.data[..]).into()),
        ("offsets", offsets.into()),
        (
            "validity",
            validity.map(|v| Uint8Array::from(&v[..])).into(),
        ),
    ])
}

fn object(fields: &[(&str, JsValue)]) -> JsValue {
    let object = Object::new();
    for (name, value) in fields {
        // A fresh object takes properties.
        let _ = Reflect::set(&object, &JsValue::from_str(name), value);
    }
    object.into()
}
