//! Dense arrays of which few cells were written, far from one another: what is between them is not
//! walked through where it is no result.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use azulejo::column::{ColumnBuffers, ColumnSet};
use azulejo::format::condition::{Comparison, Condition};
use azulejo::format::{ArraySchema, Datatype, NdRectangle, Range};
use azulejo::read::ReadOptions;
use azulejo::read::aggregate::{Aggregate, AggregateValue};
use azulejo::space::{DimSelection, Layout, Subarray};
use azulejo::{Array, Config, Context, WriteOptions};

/// Where the second of two writes begins.
const FAR: i64 = 900_000_000_000_000;

/// Ten cells at the start of a long dimension, ten far behind.
fn far() -> Array {
    let context = Context::new(Config::default(), None).unwrap();
    let schema = ArraySchema::dense()
        .dimension("t", 0i64..=1_000_000_000_000_000, 10_000)
        .attribute("a", Datatype::Int32)
        .build()
        .unwrap();
    context.array("mem://far").create(schema).unwrap();
    for start in [0, FAR] {
        let ranges = vec![Range::of(start, start + 9)];
        let options = WriteOptions::new().subarray(NdRectangle { ranges });
        let mut writer = context.array("mem://far").writer(options).unwrap();
        let cells = ColumnBuffers::of_values("a", (0i32..10).collect());
        writer.write(&ColumnSet::of([cells]).unwrap()).unwrap();
        writer.finish().unwrap();
    }
    context.array("mem://far").open().unwrap()
}

#[test]
fn cells_that_nobody_wrote_take_no_time() {
    let array = far();
    let written: Vec<i64> = (0..10).chain(FAR..FAR + 10).collect();
    for layout in [
        Layout::RowMajor,
        Layout::ColMajor,
        Layout::Global,
        Layout::Unordered,
    ] {
        let options = ReadOptions::new().fields(["t", "a"]).layout(layout);
        let options = options.matching_only();
        let found = array.read(options.clone()).unwrap().read_all().unwrap();
        let times = found.columns[0].values::<i64>();
        assert_eq!(times, Some(written.as_slice()), "{layout:?}");

        let great = Condition::compare("a", Comparison::Ge, 8i32.to_le_bytes());
        let found = array.read(options.condition(great)).unwrap();
        let found = found.read_all().unwrap();
        let times = found.columns[0].values::<i64>();
        assert_eq!(times, Some(&[8, 9, FAR + 8, FAR + 9][..]), "{layout:?}");
    }
    // Ranges keep their order.
    let ranges = vec![Range::of(FAR - 5, FAR + 2), Range::of(7i64, FAR)];
    let options = ReadOptions::new()
        .fields(["t"])
        .subarray(Subarray::Box(vec![DimSelection::Ranges(ranges)]))
        .matching_only();
    let found = array.read(options).unwrap().read_all().unwrap();
    assert_eq!(
        found.columns[0].values::<i64>(),
        Some(&[FAR, FAR + 1, FAR + 2, 7, 8, 9, FAR][..])
    );
}

#[test]
fn aggregates_of_cells_that_are_far_apart() {
    let asked = [
        Aggregate::Count,
        Aggregate::Sum("a".into()),
        Aggregate::Max("t".into()),
    ];
    let array = far();
    let all = array.aggregate(ReadOptions::new(), &asked).unwrap();
    let most = AggregateValue::Cell {
        datatype: Datatype::Int64,
        bytes: (FAR + 9).to_le_bytes().to_vec(),
    };
    assert_eq!(
        all,
        [
            AggregateValue::Unsigned(1_000_000_000_000_001),
            AggregateValue::Signed(90),
            most
        ]
    );
    let great = Condition::compare("a", Comparison::Ge, 8i32.to_le_bytes());
    let options = ReadOptions::new().condition(great);
    let some = array.aggregate(options, &asked).unwrap();
    assert_eq!(
        some[..2],
        [AggregateValue::Unsigned(4), AggregateValue::Signed(34)]
    );
}
