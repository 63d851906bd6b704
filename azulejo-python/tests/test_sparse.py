import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import azulejo_db as az
from azulejo_db import col


def ids(query):
    return sorted(query.to_numpy()["id"].tolist())


def test_cells_come_back(table):
    found = table[...]
    order = np.argsort(found["id"])
    assert found["id"][order].tolist() == [3, 7, 500]
    assert found["name"][order].tolist() == ["Helgoland", "Zugspitze", "Straße"]
    assert found["height"][order].tolist() == [61.0, 2962.0, None]
    assert found["kind"][order].tolist() == ["hill", "peak", "hill"]
    assert table[0:10]["id"].tolist() == [3, 7]
    assert table.loc[7:500]["id"].tolist() == [7, 500]
    assert table["name"][3]["name"].tolist() == ["Helgoland"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (None, [3, 7, 500]),
        ("height > 100", [7]),
        (col("height") > 100, [7]),
        (col("height").is_null(), [500]),
        (~col("height").is_null() & (col("id") < 7), [3]),
        (col("name") == "Straße", [500]),
        (col("name").isin(["Zugspitze", "Helgoland"]), [3, 7]),
        ((col("id") == 3) | (col("kind") == "peak"), [3, 7]),
        (col("id").between(3, 7), [3, 7]),
        ("kind = 'hill' and id > 100", [500]),
    ],
)
def test_conditions(table, where, expected):
    assert ids(table.query(where)) == expected
    assert table.query(where).count() == len(expected)


def test_conditions_have_no_truth():
    with pytest.raises(TypeError, match="truth"):
        bool(col("a") > 3)
    with pytest.raises(TypeError):
        1 < col("a") < 3


def test_limit_fields_points(table):
    query = table.query(fields=["name"], limit=2, order="row")
    assert query.to_numpy()["name"].tolist() == ["Helgoland", "Zugspitze"]
    assert query.to_arrow()["name"].to_pylist() == ["Helgoland", "Zugspitze"]
    assert ids(table.query().points([7, 8, 500])) == [7, 500]
    assert ids(table.query().box(id=(4, 900))) == [7, 500]


def test_boxes_of_other_dimensions_restrict_both(tmp_path):
    schema = az.Schema([az.Dim(n, (0, 9), 10) for n in "yx"], [az.Attr("v", "int64")], sparse=True)
    array = az.create(tmp_path / "a", schema)
    array.write({"y": [1, 1, 2, 2], "x": [3, 4, 3, 4], "v": [13, 14, 23, 24]})
    for query in (array.query().box(y=1).box(x=(4, 9)), array.query().box(x=(4, 9)).box(y=1), array.query().box().box(y=1, x=4)):
        assert query.to_numpy()["v"].tolist() == [14]


def test_what_cannot_be_selected_at_once_is_refused(table):
    box, points = table.query().box(id=(4, 900)), table.query().points([3])
    for wrong in (lambda: box.box(id=3), lambda: box.points([3]), lambda: points.points([7]), lambda: points.box(id=3)):
        with pytest.raises(ValueError, match="one box|one list of points"):
            wrong()
    assert ids(box) == [7, 500] and ids(points) == [3]


def test_arrow_out(table):
    query = table.query(order="row")
    found = pa.table(query)
    assert found["id"].to_pylist() == [3, 7, 500]
    assert found["height"].to_pylist() == [61.0, 2962.0, None]
    assert found["kind"].to_pylist() == ["hill", "peak", "hill"]
    assert pa.table(query) == found, "each stream is a read of its own"
    assert query.to_pandas()["name"].tolist() == ["Helgoland", "Zugspitze", "Straße"]
    assert pl.DataFrame(query)["id"].to_list() == [3, 7, 500]


def test_arrow_in(tmp_path):
    batch = pa.table({"t": pa.array([1, 2, 9], pa.int64()), "s": ["a", None, "c"], "v": [0.5, 1.5, None]})
    array = az.write(tmp_path / "a", batch, index=["t"])
    assert pa.table(array.query(order="row")).to_pylist() == batch.to_pylist()
    array.write(pl.DataFrame({"t": [5], "s": ["p"], "v": [7.0]}))
    assert array.query(col("t") == 5).to_numpy()["s"].tolist() == ["p"]


def test_a_reader_that_fails_is_told_whatever_was_written_before(tmp_path):
    schema = az.Schema([az.Dim("i", (0, 99), 10)], [az.Attr("v", "int32")], sparse=True)
    array = az.create(tmp_path / "a", schema)

    def reader(*tables):
        return pa.RecordBatchReader.from_batches(tables[0].schema, [b for t in tables for b in t.to_batches()])

    def raising(table):
        yield table.to_batches()[0]
        raise ValueError("no more of it")

    def table(i, v, kind=pa.int32()):
        return pa.table({"i": i, "v": pa.array(v, kind)})

    good = table([1, 2], [1, 2])
    for before in (0, 2):
        for wrong in (
            reader(table([3, 100], [3, 4])), reader(good, table([3], [None])), reader(table([3], [0.5], pa.float64())),
            pa.RecordBatchReader.from_batches(good.schema, raising(good)),
        ):
            with pytest.raises(ValueError):
                array.write(wrong)
            assert array.reopen().agg("count") == before
        # From here on the handle has written, and is not opened anew for each write.
        array.write(reader(good))
    # Another one may change the schema meanwhile.
    az.open(tmp_path / "a", "w").evolve(add=[az.Attr("w", "int8")])
    array.write(reader(good.append_column("w", pa.array([1, 2], pa.int8()))))
    assert array.query(order="row").to_numpy()["w"].tolist() == [1, 2]


def test_data_frames(tmp_path):
    frame = pd.DataFrame(
        {"v": [1.5, 2.5], "s": ["x", "y"]},
        index=pd.Index(pd.to_datetime(["2024-01-02", "2024-03-04"]).astype("datetime64[ns]"), name="day"),
    )
    array = az.write(tmp_path / "a", frame)
    found = array.query(order="row").to_pandas().set_index("day")
    assert found["v"].tolist() == [1.5, 2.5]
    assert found.index[1] == pd.Timestamp("2024-03-04")
    frame.index = frame.index + pd.Timedelta(days=1)
    array.write(frame)
    assert array.agg("count") == 4


def test_aggregates(table):
    assert table.agg("count") == 3
    found = table.agg("count", mean="height", max=["height", "name"], nulls="height")
    assert found == {
        "count": 3, "mean_height": 1511.5, "max_height": 2962.0, "max_name": "Zugspitze",
        "nulls_height": 1,
    }
    assert table.agg(sum="id", where=col("id") > 5) == 507


@pytest.mark.parametrize(("ordered", "least", "most"), [(True, "low", "high"), (False, "high", "mid")])
def test_aggregates_of_labels_are_labels(tmp_path, ordered, least, most):
    schema = az.Schema(
        [az.Dim("i", (0, 9), 5)], [az.Attr("k", "uint8", enumeration="kinds", nullable=True)], sparse=True,
        enumerations=[az.enumeration("kinds", ["lowest", "low", "mid", "high"], ordered=ordered)],
    )
    array = az.create(tmp_path / "a", schema)
    assert array.agg(min="k") is None
    array.write({"i": [1, 2, 3, 4], "k": ["mid", "low", "high", None]})
    assert array.agg("count", min="k", max="k", nulls="k") == {"count": 4, "min_k": least, "max_k": most, "nulls_k": 1}
    assert array.agg(max="k", where=col("i") == 2) == "low"
    for wrong in ("sum", "mean"):
        with pytest.raises(TypeError, match="'k' holds labels, which have no sum"):
            array.agg(**{wrong: "k"})


def test_labels_that_nobody_wrote_are_none(tmp_path):
    schema = az.Schema(
        [az.Dim("i", (0, 3), 2)], [az.Attr("k", "int8", enumeration="tens")],
        enumerations=[az.enumeration("tens", [20, 10], ordered=True)],
    )
    array = az.create(tmp_path / "a", schema)
    assert array.agg(min="k") is None
    array[1:3] = [10, 20]
    assert (array.agg(min="k"), array.agg(max="k")) == (20, 10)


@pytest.mark.parametrize("kind", ["M", "m"])
def test_aggregates_of_times_are_times(tmp_path, kind):
    schema = az.Schema([az.Dim("i", (0, 9), 5)], [az.Attr("t", f"{kind}8[s]"), az.Attr("n", "int64")], sparse=True)
    array = az.create(tmp_path / "a", schema)
    times = np.array([10, 13, -5, 7], f"{kind}8[s]")
    array.write({"i": [0, 1, 2], "t": times[:3], "n": [1, 2, 3]})
    assert array.agg(mean="t") == np.array(6, times.dtype)
    # What is no time is left out.
    array.write({"i": [3, 4], "t": np.array(["NaT", 7], times.dtype), "n": [4, 5]})
    found = array.agg("count", mean=["t", "n"], min="t", max="t")
    assert found == {"count": 5, "mean_t": np.array(6, times.dtype), "mean_n": 3, "min_t": times[2], "max_t": times[1]}
    assert array.agg(mean="t", where=col("i") > 1) == np.array(1, times.dtype)
    assert array.agg(min="t", where=col("i") == 3) is None
    if kind == "m":
        assert array.agg(sum="t") == np.timedelta64(25, "s")
    else:
        with pytest.raises(TypeError, match="'t' holds times, which have no sum"):
            array.agg(sum="t")


def test_delete(table):
    table.delete(col("id") == 7)
    assert ids(table.query()) == [3, 500]
    before = az.open(table.uri, at=table.fragments[-1]["timestamps"][1])
    assert ids(before.query()) == [3, 7, 500]


def test_evolve(table):
    table.evolve(add=[az.Attr("depth", "int32", fill=-1)], drop=["kind"])
    assert table.schema.attr_names == ["name", "height", "depth"]
    assert table.query(order="row").to_numpy()["depth"].tolist() == [-1, -1, -1]


def test_enumerations_are_extended(tmp_path):
    schema = az.Schema(
        [az.Dim("i", (0, 9), 5)],
        [az.Attr("k", "int8", enumeration="kinds"), az.Attr("n", "uint8", enumeration="tens")],
        sparse=True,
        enumerations=[az.enumeration("kinds", ["a", "b"], ordered=True), az.enumeration("tens", np.array([10, 20], "i4"))],
    )
    array = az.create(tmp_path / "a", schema)
    array.write({"i": [1], "k": ["b"], "n": [20]})
    before = array.at
    array.evolve(enumerations={"kinds": ["a", "b", "c"], "tens": [10, 20, 30], "more": ["x"]})
    array.write({"i": [2], "k": ["c"], "n": [30]})
    found = array.query(order="row").to_numpy()
    assert found["k"].tolist() == ["b", "c"] and found["n"].tolist() == [20, 30]
    assert array.schema.enumerations == {"kinds": ["a", "b", "c"], "tens": [10, 20, 30], "more": ["x"]}
    then = az.open(tmp_path / "a", at=before)
    assert then.schema.enumerations["kinds"] == ["a", "b"] and then.query("k = 'b'").count() == 1
    assert array.query("k > 'a'").count() == 2
    for wrong in (["b", "a", "c", "d"], ["a", "b"], ["a", "b", "c", "c"], [1, 2]):
        with pytest.raises((ValueError, TypeError)):
            array.evolve(enumerations={"kinds": wrong})
    assert array.reopen().schema.enumerations["kinds"] == ["a", "b", "c"]


def test_consolidate_vacuum_check(table):
    for i in range(3):
        table.write({"id": [i], "name": ["n"], "height": [1.0], "kind": ["hill"]})
    assert len(table.fragments) == 4
    done = table.consolidate()
    assert done[0]["cells"] == 5 + (3 not in range(3))
    assert len(table.fragments) == 1
    paths, size = table.vacuum(dry_run=True)
    assert paths and size > 0
    table.vacuum()
    assert table.vacuum()[0] == []
    assert [f for f in table.check(deep=True) if f[0] == "error"] == []


def test_string_dimensions(tmp_path):
    schema = az.Schema([az.Dim("chr", dtype=str), az.Dim("pos", (0, 10**9), 1000)], [az.Attr("v", "int8")], sparse=True)
    array = az.create(tmp_path / "a", schema)
    array.write({"chr": ["chr7", "chr1", "chr7"], "pos": [5, 6, 1], "v": [1, 2, 3]})
    assert array.loc["chr7", :]["pos"].tolist() == [1, 5]
    assert array.loc["chr1":"chr5"]["v"].tolist() == [2]
    assert array.query().points(["chr7", "chr1"], [1, 7]).to_numpy()["v"].tolist() == [3]


def test_wrong_columns_are_named(table):
    with pytest.raises(ValueError, match="missing.*kind"):
        table.write({"id": [1], "name": ["x"], "height": [1.0]})
    with pytest.raises(ValueError, match="no label 'lake'"):
        table.write({"id": [1], "name": ["x"], "height": [1.0], "kind": ["lake"]})
    with pytest.raises(ValueError, match="no nulls"):
        table.write({"id": [1], "name": [None], "height": [1.0], "kind": ["hill"]})
    with pytest.raises(az.ArgumentError):
        table.query("height >").to_numpy()
    with pytest.raises(az.SchemaError):
        table.query("nothing > 3").to_numpy()


def test_dates_in_conditions(tmp_path):
    schema = az.Schema([az.Dim("i", (0, 9), 10)], [az.Attr("day", "datetime64[D]")], sparse=True)
    array = az.create(tmp_path / "a", schema)
    array.write({"i": [1, 2], "day": np.array(["2024-01-01", "2025-01-01"], "datetime64[D]")})
    assert array.query(col("day") > dt.date(2024, 6, 1)).to_numpy()["i"].tolist() == [2]


def test_both_zeros_are_one_of_several(tmp_path):
    frame = pd.DataFrame({"i": range(4), "x": [0.0, -0.0, 1.0, np.nan], "n": [0, 1, 0, 2]})
    array = az.write(tmp_path / "a", frame, index="i")
    for zero in (0.0, -0.0, 0, np.float32(0)):
        assert array.query(col("x").isin([zero, 1.0]), order="row").to_numpy()["i"].tolist() == [0, 1, 2]
    assert array.query(col("n").isin([0, 2]), order="row").to_numpy()["i"].tolist() == [0, 2, 3]


@pytest.mark.parametrize("nan", [float("nan"), np.float32("nan"), np.float64("nan")])
def test_what_is_no_number_does_not_stand_for_null(tmp_path, nan):
    array = az.write(tmp_path / "a", pa.table({"i": [0, 1, 2], "x": pa.array([np.nan, None, 1.0])}), index="i")
    found = lambda values: sorted(array.query(col("x").isin(values)).to_numpy()["i"].tolist())  # noqa: E731
    assert 1 not in found([nan, 1.0]) and 1 in found([None, 1.0])


def test_text_that_is_no_utf8_is_compared(tmp_path):
    schema = az.Schema([az.Dim("i", (0, 9), 5)], [az.Attr("v", "CHAR", var=True)], sparse=True)
    array = az.create(tmp_path / "a", schema)
    array.write({"i": [1, 2], "v": [b"\xff\x00", b"a"]})
    text = array.query(order="row").to_numpy()["v"][0]
    for where in (col("v") == text, col("v").isin([text]), col("v") == b"\xff\x00"):
        assert array.query(where).to_numpy()["i"].tolist() == [1]


@pytest.mark.parametrize("unit", ["D", "h", "m", "s", "ms", "us", "ns"])
@pytest.mark.parametrize("made", ["numpy", "pandas", "python"])
def test_times_of_a_type_are_one_moment(tmp_path, unit, made):
    """Only text names a whole day."""
    schema = az.Schema([az.Dim("i", (0, 9), 10)], [az.Attr("when", f"datetime64[{unit}]")], sparse=True)
    array = az.create(tmp_path / "a", schema)
    day = np.datetime64("2024-05-01", unit)
    array.write({"i": [1, 2, 3], "when": day + np.array([-1, 0, 1])})
    kinds = {"numpy": np.datetime64("2024-05-01"), "pandas": pd.Timestamp("2024-05-01"), "python": dt.datetime(2024, 5, 1)}
    value, found = kinds[made], lambda where: sorted(array.query(where).to_numpy()["i"].tolist())
    assert found(col("when") > value) == [3] and found(col("when") >= value) == [2, 3]
    assert found(col("when") <= value) == [1, 2] and found(col("when") == value) == [2]
    assert found(col("when") != value) == [1, 3] and found(col("when").isin([value])) == [2]
    assert found(col("when") > "2024-05-01") == ([3] if unit == "D" else [])
    array.delete(col("when") <= value)
    assert found(None) == [3]


def test_times_with_fractions_are_one_moment(tmp_path):
    schema = az.Schema([az.Dim("i", (0, 9), 10)], [az.Attr("when", "datetime64[ns]")], sparse=True)
    array = az.create(tmp_path / "a", schema)
    noon = np.datetime64("2024-05-01T12:00:00.25", "ns")
    array.write({"i": [1, 2], "when": noon + np.array([0, 1])})
    for value in (noon.astype("datetime64[ms]"), pd.Timestamp(noon), noon.astype("datetime64[us]").item()):
        assert array.query(col("when") > value).to_numpy()["i"].tolist() == [2]
    year = az.Schema([az.Dim("i", (0, 9), 10)], [az.Attr("when", "datetime64[Y]")], sparse=True)
    years = az.create(tmp_path / "b", year)
    years.write({"i": [1, 2], "when": np.array(["2023", "2024"], "datetime64[Y]")})
    assert years.query(col("when") >= np.datetime64("2024")).to_numpy()["i"].tolist() == [2]


@pytest.mark.parametrize("take", [lambda a: a.vindex[[500, 3, 8]], lambda a: a.vindex[[3, 3]]])
def test_lists_of_points_are_refused(table, take):
    """Cells come in an order of their own, and those that are not there do not."""
    with pytest.raises(TypeError, match=r"query\(\)\.points"):
        take(table)


def test_points_of_two_dimensions_are_refused(tmp_path):
    schema = az.Schema([az.Dim(n, (0, 9), 10) for n in "yx"], [az.Attr("v", "int64")], sparse=True)
    array = az.create(tmp_path / "a", schema)
    array.write({"y": [1, 2], "x": [3, 4], "v": [5, 6]})
    with pytest.raises(TypeError, match=r"query\(\)\.points"):
        array[[2, 1], [4, 3]]
    assert sorted(array.query().points([2, 1], [4, 3]).to_numpy()["v"].tolist()) == [5, 6]


def test_rows_that_may_be_more_than_memory_holds(tmp_path, monkeypatch):
    """How many cells there may be is no reason to refuse a few of them."""
    from azulejo_db import _query

    context = az.Context({"sm.mem.total_budget": "20000"})
    schema = az.Schema([az.Dim("i", (0, 9999), 100)], [az.Attr("v", "float64")], sparse=True)
    array = az.create(tmp_path / "a", schema, ctx=context)
    array.write({"i": np.arange(5000), "v": np.arange(5000.0)})
    kept, asked = _query._room, []

    def room(types, cells):
        asked.append(cells)
        if cells > 2000:
            raise MemoryError
        return kept(types, cells)

    monkeypatch.setattr(_query, "_room", room)
    found = array.query(order="row").to_numpy()
    assert found["i"].tolist() == list(range(5000)) and found["v"].tolist() == list(range(5000))
    assert array.query(col("v") < 3).to_numpy()["i"].tolist() == [0, 1, 2]
    assert asked[0] == 5001 and asked[1] <= 2000


def test_names_and_rows(table):
    assert "name" in table and "id" not in table and 7 not in table
    with pytest.raises(TypeError, match="query"):
        list(table)
