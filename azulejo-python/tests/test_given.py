"""What callers give to be written: it comes back as it was, or is refused."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import azulejo_db as az

M8 = "datetime64[ns]"


@pytest.mark.parametrize(
    "cells",
    [
        np.array([2**64 - 1, 0], "u8"), np.array([-(2**63), 2**63 - 1]), np.array([-0.0, np.nan, np.inf, -np.inf]),
        np.arange(4).astype(">i4"), np.arange(4).astype(">M8[s]"), np.array(["2024-01-01", "NaT"], M8),
        np.arange(24).reshape(4, 6)[::2, ::-1], np.asfortranarray(np.arange(12).reshape(3, 4)),
        np.broadcast_to(np.float32(3), (3, 4)), np.arange(2**10).reshape((2,) * 10), [1, 2, 3], [[1, 2], [3, 4]], range(3),
        np.array([b"a", b"b"]), np.array([b"a", b"bcdef"]), np.array(["a", "ß\U0001f600", ""]),
        np.array(["a", "ß"], dtype=np.dtypes.StringDType()), np.array([b"\xff\x00", b"x"], object),
        np.array([1, None, 3], object), np.array(["a", None, ""], object), np.array([True, None], object),
        np.array([1.5, None], object), np.array([dt.datetime(2024, 1, 2, 3), None], object),
        np.ma.MaskedArray([1, 2, 3], [0, 1, 0]), np.ma.MaskedArray([1.0, 2.0], [0, 1]), np.array([2**63, 1], object),
        np.empty((0,)), np.empty((0, 3), "i4"), np.empty((3, 0), "i4"), np.empty((0,), "U3"), [],
    ],
    ids=lambda cells: f"{type(cells).__name__} {getattr(cells, 'dtype', '')} {np.shape(cells)}",
)
def test_arrays_come_back(tmp_path, cells):
    found = az.write(tmp_path / "a", cells)[...]
    wanted = cells if isinstance(cells, np.ma.MaskedArray) else np.asarray(cells)
    assert found.shape == wanted.shape
    if wanted.dtype.kind in "OUST":
        plain = lambda v: None if v is None or pd.isna(v) else v  # noqa: E731
        times = [np.datetime64(v) if isinstance(v, dt.datetime) else v for v in wanted.reshape(-1).tolist()]
        assert list(map(plain, found.reshape(-1).tolist())) == [
            v.item() if isinstance(v, np.datetime64) else v for v in times
        ]
        return
    assert found.dtype == wanted.dtype.newbyteorder("=")
    if isinstance(wanted, np.ma.MaskedArray):
        assert found.tolist() == wanted.tolist()
    else:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "data",
    [
        np.zeros(2, "f2"), np.zeros(2, "c8"), np.zeros(2, "V2"), np.zeros(2, "i4,f8"), np.array(5), 5, "abc", None, {},
        np.array([1, "x"], object), np.array([[1], "x"], object), {"a": [1, 2], "b": [1]}, np.zeros(2, "m8[D]"), np.zeros(2, "M8[25s]"),
    ],
    ids=repr,
)
def test_what_cannot_be_written_leaves_nothing(tmp_path, data):
    with pytest.raises((TypeError, ValueError)):
        az.write(tmp_path / "a", data)
    assert az.object_type(tmp_path / "a") is None


def _ends_badly():
    yield pa.record_batch({"i": pa.array([1]), "v": pa.array([1])})
    raise RuntimeError("no more of it")


@pytest.mark.parametrize("wrong", [
    {"data": np.zeros(2, "c8")}, {"data": np.arange(3), "dims": ("x", "y")}, {"data": np.arange(3), "tiles": (0,)},
    {"data": np.zeros((2, 2)), "dims": ("x", "x")}, {"data": np.arange(3), "name": "__x"},
    {"data": np.arange(3), "filters": ["nope"]}, {"data": np.arange(3), "at": "nope"}, {"data": np.arange(3), "key": b"x"},
    {"data": pd.DataFrame({"v": [1, 2]}, index=pd.Index([1, 1], name="i"))},
    {"data": pd.DataFrame({"v": [1, 2]}, index=pd.Index(["a", None], name="i"))},
    {"data": pd.DataFrame({"v": [{"a": 1}]}, index=pd.Index([1], name="i"))},
    {"data": pa.table({"a": [1]}), "index": "zz"}, {"data": pa.table({"a": [1]})}, {"data": pa.table({"a": [1]}), "index": "a", "tiles": 3},
    {"data": {"i": [1, 1], "v": [1, 2]}, "index": "i"}, {"data": {"i": [1], "v": [1, 2]}, "index": "i"},
    {"data": {"i": [1], "v": [1]}, "index": "i", "filters": "nope"},
    {"data": pa.RecordBatchReader.from_batches(pa.schema({"i": pa.int64(), "v": pa.int64()}), _ends_badly()), "index": "i"},
])
def test_an_error_deletes_nothing(tmp_path, wrong):
    az.write(tmp_path / "a", np.arange(3))
    with pytest.raises((TypeError, ValueError, az.UnsupportedError)):
        az.write(tmp_path / "a", mode="w", **wrong)
    assert az.open(tmp_path / "a")[...].tolist() == [0, 1, 2]
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_an_array_is_replaced_by_what_is_made_of_it(tmp_path):
    made = az.write(tmp_path / "a", {"i": [1, 2, 3], "v": [10, 20, 30]}, index="i", filters="gzip")
    assert [attr["filters"]["filters"][0]["filter"] for attr in made.schema.attrs] == ["gzip"]
    again = az.write(tmp_path / "a", made.query("v > 10"), index="i", mode="w")
    assert again.query(order="row").to_numpy()["v"].tolist() == [20, 30]
    # What is none of it stays where it was.
    (tmp_path / "a" / "README").write_text("mine")
    az.write(tmp_path / "a", np.arange(2), mode="w")
    assert az.open(tmp_path / "a")[...].tolist() == [0, 1]
    assert (tmp_path / "a" / "README").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert az.write("mem://replaced", np.arange(2)).shape == (2,)
    assert az.write("mem://replaced", np.arange(3), mode="w")[...].tolist() == [0, 1, 2]
    az.create_group(tmp_path / "g")
    with pytest.raises(az.ExistsError, match="is a group"):
        az.write(tmp_path / "g", np.arange(2), mode="w")


def test_an_array_behind_a_link_is_replaced_where_it_lies(tmp_path):
    (tmp_path / "disk").mkdir()
    az.write(tmp_path / "disk" / "a", np.arange(3))
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "a")
    for uri in (tmp_path / "link", (tmp_path / "link").as_uri()):
        assert az.write(uri, np.arange(2), mode="w").shape == (2,)
        assert (tmp_path / "link").is_symlink()
        assert az.open(tmp_path / "disk" / "a")[...].tolist() == [0, 1]
        assert [p.name for p in (tmp_path / "disk").iterdir()] == ["a"]
        assert sorted(p.name for p in tmp_path.iterdir()) == ["disk", "link"]


def test_empty_arrays_grow(tmp_path):
    array = az.write(tmp_path / "a", np.empty((0, 3), "i4"))
    assert (array.shape, len(array), array[:].shape, array[:, 1].shape) == ((0, 3), 0, (0, 3), (0,))
    with pytest.raises(IndexError):
        array[0]
    array.append(np.ones((2, 3), "i4"))
    assert az.open(tmp_path / "a").shape == (2, 3)
    array.append(np.zeros((1, 3), "i4"))
    assert array[...].tolist() == [[1] * 3] * 2 + [[0] * 3]


@pytest.mark.parametrize(
    ("shape", "added", "axis", "grown"),
    [
        ((0, 3), (2, 5), 0, None), ((0, 3), (2, 2), 1, None), ((0, 3), (2, 4), 1, (2, 4)), ((3, 0), (3, 2), 1, (3, 2)), ((3, 0), (2, 2), 1, None),
        ((3, 0), (2, 5), 0, None), ((0, 0), (2, 5), 0, (2, 5)), ((0, 0), (2, 5), 1, (2, 5)), ((0, 3, 0), (2, 4, 5), 0, None),
    ],
)
def test_empty_arrays_grow_by_what_fits(tmp_path, shape, added, axis, grown):
    """No cell that nobody has written shows up, and nothing that was there is cut off."""
    array, cells = az.write(tmp_path / "a", np.empty(shape)), np.ones(added)
    if grown is None:
        with pytest.raises(ValueError, match="grows by its like"):
            array.append(cells, axis)
        assert array.reopen().shape == shape
        return
    array.append(cells, axis)
    assert array.shape == grown
    np.testing.assert_array_equal(array[...], cells)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("int32", [2**40]), ("int64", [2**70]), ("int32", np.array([2**40])), ("int64", np.array([2**63], "u8")), ("uint8", [-1]), ("uint8", [256]),
        ("int64", [1.5]), ("int64", ["7"]), ("int64", [None]), ("float32", [1e300]), ("bool", [2]), ("float64", ["x"]), (str, [5]), (str, [None]),
        ("datetime64[D]", np.array(["2024-01-01T12:00"], M8)), (M8, np.array(["3000-01-01"], "M8[D]")), ("datetime64[D]", [5]),
        (bytes, ["text"]), ("int64", [decimal.Decimal("1.5")]), ("int64", [[1, 2]]),
    ],
    ids=str,
)
def test_values_never_become_others(tmp_path, kind, values):
    sparse = az.create(tmp_path / "s", az.Schema([az.Dim("d", (0, 9), 5)], [az.Attr("v", kind)], sparse=True))
    dense = az.create(tmp_path / "d", az.Schema([az.Dim("d", (0, 0), 1)], [az.Attr("v", kind)]))
    with pytest.raises((TypeError, ValueError)):
        sparse.write({"d": [1], "v": values})
    with pytest.raises((TypeError, ValueError)):
        dense[...] = values
    assert sparse.fragments == dense.fragments == []


def column(kind, nullable, tmp_path, values):
    schema = az.Schema([az.Dim("d", (0, 99), 5)], [az.Attr("v", kind, nullable=nullable)], sparse=True)
    array = az.create(tmp_path / "a", schema)
    array.write({"d": np.arange(len(values)), "v": values})
    return array.query(order="row").to_numpy()["v"].tolist()


@pytest.mark.parametrize(
    ("kind", "values", "wanted"),
    [
        ("int32", pd.Series([1, None], dtype="Int32"), [1, None]), ("int32", pd.array([3, pd.NA], dtype="Int64"), [3, None]),
        (str, pd.Series(["a", None, "ß"]), ["a", None, "ß"]), (str, pd.Series(["a", "b"], dtype="category"), ["a", "b"]),
        ("bool", pd.Series([True, None], dtype="boolean"), [True, None]), ("float64", pd.Series([1.5, np.nan]), None),
        ("int32", pa.array([1, None], pa.int32()), [1, None]), (str, pa.array(["x", None]), ["x", None]),
        (str, pa.chunked_array([["x"], ["y"]]), ["x", "y"]), ("bool", pa.array([True, None]), [True, None]),
        (str, pa.array(["x", "y"]).dictionary_encode(), ["x", "y"]), ("int64", pl.Series([1, None]), [1, None]),
        (str, pl.Series(["p", None]), ["p", None]), ("int64", [1, None], [1, None]), ("int8", (1, 2), [1, 2]), ("float32", [1, 2], [1, 2]),
        ("datetime64[ns]", pl.Series([1, None, 10**18 + 7]).cast(pl.Datetime("ns")), [1, None, 10**18 + 7]),
        ("timedelta64[ns]", pl.Series([1, None, 10**18 + 7]).cast(pl.Duration("ns")), [1, None, 10**18 + 7]),
        ("datetime64[ns]", pl.Series([1, None]).cast(pl.Datetime("us", "Europe/Berlin")), [1000, None]),
        ("datetime64[D]", pl.Series([dt.date(1970, 1, 2), None]), [dt.date(1970, 1, 2), None]),
        ("timedelta64[ns]", pl.Series([dt.time(0, 0, 1), None]), [10**9, None]), ("timedelta64[s]", pl.Series([dt.time(0, 0, 1)]), [dt.timedelta(seconds=1)]),
        (M8, pd.Series(pd.to_datetime(["2024-01-02T03:04"]).tz_localize("Europe/Berlin")).astype("datetime64[ns, Europe/Berlin]"),
         [np.datetime64("2024-01-02T02:04", "ns").view("i8").item()]),
    ],
    ids=lambda v: str(v).replace("\n", " ")[:40],
)
def test_columns_of_every_maker(tmp_path, kind, values, wanted):
    found = column(kind, True, tmp_path, values)
    if wanted is None:
        np.testing.assert_array_equal(found, values)
    else:
        assert found == wanted


def test_data_frames_are_cast_if_nothing_is_lost(tmp_path):
    schema = az.Schema([az.Dim("d", (0, 99), 5)], [az.Attr("n", "int32"), az.Attr("x", "float32")], sparse=True)
    array = az.create(tmp_path / "a", schema)
    array.write(pd.DataFrame({"d": [1, 2], "n": [3, 4], "x": [0.5, 1.5]}))
    assert array.query(order="row").to_pandas()["n"].tolist() == [3, 4]
    with pytest.raises(ValueError, match="'n'"):
        array.write(pd.DataFrame({"d": [1], "n": [2**40], "x": [0.5]}))
    with pytest.raises(ValueError, match="'x' takes FLOAT32, which does not hold 1e\\+300"):
        array.write(pd.DataFrame({"d": [1, 2, 3], "n": [1, 1, 1], "x": [np.inf, None, 1e300]}))
    for wrong in ([1, 2], None, 5, pa.table({"d": [1]})):
        with pytest.raises((TypeError, ValueError)):
            array.write(wrong)


def test_data_frames_with_values_that_are_none(tmp_path):
    """Where an attribute has no nulls, they are NaN and NaT, whatever the unit."""
    kinds = {"x": "float64", "y": "float32", "day": "datetime64[D]", "at": "datetime64[ns]", "took": "timedelta64[ms]"}
    schema = az.Schema([az.Dim("d", (0, 99), 5)], [az.Attr(n, k) for n, k in kinds.items()], sparse=True)
    array = az.create(tmp_path / "a", schema)
    days = pd.to_datetime(["2024-01-02", None])
    frame = pd.DataFrame({
        "d": [1, 2], "x": [0.5, np.nan], "y": [1.5, np.nan], "day": days.astype("datetime64[s]"), "at": days.astype("datetime64[us]"),
        "took": pd.to_timedelta([3, None], "s").astype("timedelta64[s]"),
    })
    array.write(frame)
    array.write(frame.assign(d=[3, 4], x=np.nan, y=np.nan))
    found = array.query(order="row").to_numpy()
    assert [np.isnan(found[n]).tolist() for n in "xy"] == [[False, True, True, True]] * 2
    for name, one in {"day": days[0], "at": days[0], "took": pd.Timedelta(seconds=3)}.items():
        assert np.isnat(found[name]).tolist() == [False, True] * 2
        assert found[name][0] == one.to_numpy()
    for nulls in (pd.array([0.5, None], "Float64"), [0.5, None]):
        with pytest.raises(ValueError, match="cell 1 is null"):
            array.write(frame.assign(x=pd.Series(nulls, dtype=object if isinstance(nulls, list) else None)))
    # What Arrow is given comes back.
    other = az.create(tmp_path / "b", schema)
    other.write(array.query().to_arrow())
    for name, cells in other.query(order="row").to_numpy().items():
        np.testing.assert_array_equal(cells, found[name])


@pytest.mark.parametrize("make", [
    lambda rows: pa.array(rows, pa.list_(pa.int32(), 2)), lambda rows: pa.chunked_array([pa.array(rows, pa.list_(pa.int32()))]),
    lambda rows: pl.Series(rows, dtype=pl.Array(pl.Int32, 2)), lambda rows: pl.Series(rows), lambda rows: pd.Series(rows), list,
    lambda rows: np.fromiter(rows, object), lambda rows: np.fromiter([r and np.array(r) for r in rows], object),
])
@pytest.mark.parametrize("var", [False, True])
@pytest.mark.parametrize("rows", [[[1, 2], [3, 4]], [[1, 2], None, [3, 4]]], ids=["", "null"])
def test_rows_are_cells_of_several_numbers(tmp_path, make, var, rows):
    several = {"var": True} if var else {"values": 2}
    nullable = None in rows
    attr = az.Attr("v", "int32", nullable=nullable, **several)
    array = az.create(tmp_path / "a", az.Schema([az.Dim("d", (0, 9), 5)], [attr], sparse=True))
    array.write({"d": range(len(rows)), "v": make(rows)})
    assert array.query(order="row").to_arrow()["v"].to_pylist() == rows
    dense = az.create(tmp_path / "b", az.Schema([az.Dim("d", (0, len(rows) - 1), 1)], [attr]))
    dense[...] = make(rows)
    assert dense.query().to_arrow()["v"].to_pylist() == rows


def test_rows_of_another_length_are_refused(tmp_path):
    schema = az.Schema([az.Dim("d", (0, 9), 5)], [az.Attr("v", "int32", values=2, nullable=True)], sparse=True)
    array = az.create(tmp_path / "a", schema)
    for wrong, what in (([[1, 2], [3]], "takes 2 values a cell"), (pa.array([[1, 2], [3, None]]), "is a list with a null")):
        with pytest.raises(ValueError, match=what):
            array.write({"d": [0, 1], "v": wrong})


def test_fill_values_of_several_numbers():
    dim = az.Dim("d", (0, 1), 2)
    for kind, several, fill, wanted in (
        ("int64", {"values": 2}, [0, 1], [0, 1]), ("int64", {"values": 2}, 7, [7, 7]), ("float32", {"values": 3}, np.array([1, 2, 3]), [1, 2, 3]),
        ("int8", {"var": True}, [4, 5, 6], [4, 5, 6]), ("int8", {"var": True}, 4, [4]), ("int8", {}, 3, 3),
        ("datetime64[D]", {"values": 2}, "1970-01-03", [dt.date(1970, 1, 3)] * 2), (str, {}, "none", "none"), ("BLOB", {"values": 2}, b"xy", b"xy"),
    ):
        found = az.create(f"mem://fill-{kind}-{several}-{fill}", az.Schema([dim], [az.Attr("v", kind, fill=fill, **several)]))[...]
        assert (found[0].tolist() if isinstance(found[0], np.ndarray) else found[0]) == wanted
    with pytest.raises(ValueError, match="has 3 values, a cell 2"):
        az.Schema([dim], [az.Attr("v", values=2, fill=[1, 2, 3])])


def test_types_have_numpys_names_and_tiledbs():
    names = {"U5": ("STRING_UTF8", "var"), "S5": ("BLOB", "var"), "O": ("STRING_UTF8", "var"), "S1": ("CHAR", 1), "M8[D]": ("DATETIME_DAY", 1),
             "INT32": ("INT32", 1), "CHAR": ("CHAR", "var"), "BLOB": ("BLOB", "var"), "TIME_NS": ("TIME_NS", 1), "STRING_ASCII": ("STRING_ASCII", "var")}
    for name, wanted in names.items():
        made = az.Attr("a", name)._json()
        assert (made["datatype"], made["cell_val_num"]) == wanted
    for wrong in ("INT7", "TIME_DAY", "DATETIME_"):
        with pytest.raises(TypeError):
            az.Attr("a", wrong)._json()


def test_cells_of_several_numbers(tmp_path):
    schema = az.Schema([az.Dim("d", (0, 9), 5)], [az.Attr("v", "int32", var=True)], sparse=True)
    array = az.create(tmp_path / "a", schema)
    array.write({"d": [0, 1, 2], "v": [[1, 2], [3], []]})
    array.write({"d": [3, 4], "v": np.array([[5, 6], [7, 8]])})
    assert [v.tolist() for v in array.query(order="row").to_numpy()["v"]] == [[1, 2], [3], [], [5, 6], [7, 8]]


def test_labels(tmp_path):
    schema = az.Schema(
        [az.Dim("d", (0, 3), 4)], [az.Attr("k", "uint8", enumeration="kinds"), az.Attr("n", "int8", enumeration="tens")],
        enumerations=[az.enumeration("kinds", ["hill", "peak"]), az.enumeration("tens", [10, 20])],
    )
    array = az.create(tmp_path / "a", schema)
    array[...] = {"k": pd.Series(["peak", "hill", "peak", "peak"], dtype="category"), "n": [10, 20, 20, 10]}
    found = array[...]
    assert found["k"].tolist() == ["peak", "hill", "peak", "peak"] and found["n"].tolist() == [10, 20, 20, 10]
    array[0:2] = {"k": [0, 1], "n": [20, 20]}
    assert array["k"][:2].tolist() == ["hill", "peak"] and array["k"].dtype == object
    for wrong in ({"k": [2], "n": [10]}, {"k": ["lake"], "n": [10]}, {"k": [0], "n": [1]}):
        with pytest.raises(ValueError, match="enumeration"):
            array[0:1] = wrong


@pytest.mark.parametrize("made", [
    lambda: pd.DataFrame({"d": [1, 2], "k": pd.Categorical(["peak", "hill"], ["lake", "peak", "hill"])}),
    lambda: pl.DataFrame({"d": [1, 2], "k": ["peak", "hill"]}, schema={"d": pl.Int64, "k": pl.Enum(["lake", "peak", "hill"])}),
    lambda: pa.table({"d": [1, 2], "k": pa.DictionaryArray.from_arrays(pa.array([1, 2]), ["lake", "peak", "hill"])}),
])
def test_categories_that_no_row_has_need_no_label(tmp_path, made):
    schema = az.Schema(
        [az.Dim("d", (0, 9), 4)], [az.Attr("k", "uint8", enumeration="kinds")], sparse=True,
        enumerations=[az.enumeration("kinds", ["hill", "peak"])],
    )
    array = az.create(tmp_path / "a", schema)
    array.write(made())
    assert array.query(order="row").to_pandas()["k"].tolist() == ["peak", "hill"]
    with pytest.raises(ValueError, match="cell 1 is no index of the 2 labels"):
        array.write(pa.table({"d": [3, 4], "k": pa.array([0, 2], pa.uint8())}))


def test_nulls_in_plain_numpy(tmp_path):
    array = az.write(tmp_path / "a", {"x": np.ma.MaskedArray([1.0, 2.0], [0, 1]), "n": np.ma.MaskedArray([1, 2], [0, 1])})
    assert np.isnan(np.asarray(array["x"])[1])
    with pytest.raises(TypeError, match="nulls"):
        np.asarray(array["n"])
    assert array["n"][...].tolist() == [1, None]


def test_writes_of_nothing(grid, table):
    array, cells = grid
    array[3:3] = 5
    assert table.write({"id": [], "name": [], "height": [], "kind": []}) == []
    np.testing.assert_array_equal(array[...], cells)


def test_conditions_refuse_what_they_cannot_say(table):
    height, name = az.col("height"), az.col("name")
    assert table.query(height == pd.NA).count() == table.query(height.is_null()).count() == 1
    assert table.query(az.col("height").isin([61.0, None])).count() == 2
    assert table.query(name.isin([])).count() == 0
    assert table.query(height > np.float32(61)).count() == table.query(height > decimal.Decimal(61)).count() == 1
    for wrong in (
        lambda: height > height, lambda: height == [1], lambda: height > np.datetime64("NaT"), lambda: height > pd.NA,
        lambda: table.query((height > 0) & True), lambda: table.query(5), lambda: table.query(limit=-1),
        lambda: table.query(limit=1.5), lambda: table.query(memory=-1), lambda: table.query(fields=[]), lambda: table.delete(5),
    ):
        with pytest.raises((TypeError, ValueError)):
            wrong()
    assert table.query(fields="name").count() == 3


def test_odd_names(tmp_path):
    odd = "a`b \\ 'c' ß"
    array = az.write(tmp_path / "a", {odd: np.arange(4)})
    assert array.query(az.col(odd) > 1).to_numpy()[odd].tolist() == [2, 3]


@pytest.mark.parametrize("at", ["yesterday", -1, 1.5, True, np.datetime64("NaT"), 2**64])
def test_moments_that_are_none(grid, at):
    with pytest.raises(ValueError):
        az.open(grid[0].uri, at=at)


def test_appends_fit_or_change_nothing(grid):
    array, cells = grid
    for wrong, how in (
        (np.ones((2, 41)), {}), (np.ones(30), {}), (5, {}), (np.array([["a"] * 40]), {}), (np.ones((3, 1)), {"axis": 1}),
        (np.ones((2, 40)), {"axis": 5}), (np.ma.MaskedArray(np.ones((1, 40)), mask=True), {}), ({"w": np.ones((1, 40))}, {}),
    ):
        with pytest.raises((ValueError, TypeError, IndexError)):
            array.append(wrong, **how)
        assert az.open(array.uri).shape == (30, 40)
    assert array.append(np.ones((0, 40))) == []
    array.append(np.ones((30, 2)), axis=-1)
    array.append([[2] * 42])
    wanted = np.vstack([np.hstack([cells, np.ones((30, 2))]), np.full((1, 42), 2)])
    np.testing.assert_array_equal(az.open(array.uri)[...], wanted)


def test_what_is_opened_to_be_read_is_not_written_to(grid, table, tmp_path):
    array, rows = az.open(grid[0].uri), az.open(table.uri)
    group = az.create_group(tmp_path / "g")
    group.add(array.uri, "a")
    read = az.open(group.uri)
    for write in (
        lambda: array.__setitem__(0, 1), lambda: array.append(np.ones((1, 40))), lambda: array.attrs.update(a=1),
        lambda: array.evolve(drop=["v"]), lambda: rows.write({"id": [1], "name": ["x"], "height": [1.0], "kind": ["hill"]}),
        lambda: rows.delete("id = 3"), lambda: array["v"].__setitem__(0, 1), lambda: array.reopen().__setitem__(0, 1),
        lambda: read.add(table.uri, "t"), lambda: read.remove("a"), lambda: read.attrs.update(a=1), lambda: read["a"].__setitem__(0, 1),
    ):
        with pytest.raises(OSError, match="opened to be read"):
            write()
    assert len(array.reopen().fragments) == len(rows.reopen().fragments) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: az.Schema(["x"], ["v"]), lambda: az.Schema([az.Dim("x", (0.5, 9), 5)], [az.Attr("v")]),
        lambda: az.Schema([az.Dim("x", (0, 9), 5)], [az.Attr("v", "int8", fill=1.5)]), lambda: az.Schema([az.Dim("x")], [az.Attr("v")]),
        lambda: az.Schema([az.Dim("x", (0, 9), 5)], [az.Attr("v")], current_domain=[(0, 2), (0, 2)]),
        lambda: az.create("mem://x", None), lambda: az.Schema([az.Dim("x", (0, 9), 5, "int7")], [az.Attr("v")]),
    ],
)
def test_schemas_that_cannot_be(make):
    with pytest.raises((TypeError, ValueError)):
        make()


def test_bytes_that_are_no_text(tmp_path):
    """CHAR, as TileDB-Py writes bytes: read as text, and nothing is lost."""
    schema = az.Schema([az.Dim("d", (0, 9), 5)], [az.Attr("v", "CHAR", var=True)], sparse=True)
    array = az.create(tmp_path / "a", schema)
    cells = [b"\xff\x00", "ß".encode(), b""]
    array.write({"d": [0, 1, 2], "v": cells})
    found = array.query(order="row").to_numpy()["v"]
    assert found[1] == "ß" and [v.encode("utf-8", "surrogateescape") for v in found] == cells
    array.write({"d": [5, 6, 7], "v": found})
    query = array.query(order="row", raw=True)
    assert query.to_arrow()["v"].to_pylist() == cells * 2 and pa.schema(query).field("v").type == pa.large_binary()
    with pytest.raises(az.ArgumentError, match="raw"):
        array.query().to_arrow()


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_whole_numbers_as_an_index(tmp_path, kind):
    info = np.iinfo(kind)
    ids = np.array([info.min, info.min + 1, 5, info.max - 1], kind)
    array = az.write(tmp_path / "a", pd.DataFrame({"id": ids, "v": ids}), index="id")
    assert array.query(order="row").to_pandas()["v"].tolist() == ids.tolist()
    assert array.loc[info.max - 1]["v"].tolist() == [info.max - 1]


def test_tables_of_nothing(tmp_path):
    """Without rows, or without a value in a column, there is no telling what it holds: text."""
    empty = pd.DataFrame({"i": np.array([], "i8"), "s": np.array([], object)})
    array = az.write(tmp_path / "a", empty, index="i")
    assert array.agg("count") == len(array.query().to_pandas()) == 0
    array.write(pd.DataFrame({"i": [1], "s": ["x"]}))
    array.write(pd.DataFrame({"i": [2], "s": [None]}))
    assert array.query(order="row").to_numpy()["s"].tolist() == ["x", None]
    numbers = az.write(tmp_path / "b", pd.DataFrame({"i": [1], "n": pd.array([4], "Int32")}), index="i")
    numbers.write(pd.DataFrame({"i": [2], "n": [None]}))
    assert numbers.query(order="row").to_numpy()["n"].tolist() == [4, None]


def test_frames_without_a_named_index(tmp_path):
    array = az.write(tmp_path / "a", pd.DataFrame({"v": [1, 2]}))
    array.write(pd.DataFrame({"v": [5]}, index=[7]))
    assert array.query(order="row").to_pandas().values.tolist() == [[0, 1], [1, 2], [7, 5]]


def test_moments_of_pandas(grid):
    assert az.open(grid[0].uri, at=pd.Timestamp("2099-01-01")).shape == grid[1].shape
    assert az.open(grid[0].uri, at=pd.Timestamp("2099-01-01", tz="Europe/Berlin")).shape == grid[1].shape


def test_periods_and_intervals_do_not_become_numbers(tmp_path):
    for values in (pd.period_range("2020", periods=3, freq="M"), pd.interval_range(0, 3)):
        for frame in (pd.DataFrame({"p": values}), pd.DataFrame({"v": [1, 2, 3]}, index=values.rename("p"))):
            with pytest.raises(TypeError, match="'p': no attribute holds values of pandas' type"):
                az.write(tmp_path / "a", frame)
            assert not (tmp_path / "a").exists()


def test_attributes_without_a_name_are_seen(tmp_path):
    one = az.write(tmp_path / "one", np.zeros((2, 3), "i4"))
    assert one.schema.attr_names == [""]
    shown = "'' (no name)"
    assert f"{{{shown}: int32}}" in repr(one) and f"attr {shown}: INT32" in repr(one.schema)
    assert "(no name)" in one._repr_html_() and shown in repr(one.query())
    for wrong in (lambda: one.query("b > 3").to_numpy(), lambda: one.query(fields=["b"]).to_numpy()):
        with pytest.raises(az.SchemaError, match=r'the array has .*"" \(no name\)'):
            wrong()


@pytest.mark.parametrize("kind", ["M", "m"])
def test_objects_of_time_keep_their_fractions(tmp_path, kind):
    times = np.empty(3, object)
    times[:] = [np.array(5, f"{kind}8[ns]")[()], None, dt.datetime(2020, 1, 1) if kind == "M" else dt.timedelta(days=1)]
    a = az.write(tmp_path / "a", times)
    assert a.dtype == np.dtype(f"{kind}8[ns]")
    assert a[...].view(np.int64)[0] == 5 and np.isnat(a[1])
    assert a[2] == np.array(times[2], f"{kind}8[ns]")
    far = np.empty(2, object)
    far[:] = [np.array(5, f"{kind}8[as]")[()], np.array(10**9, f"{kind}8[D]")[()]]
    with pytest.raises(ValueError, match="no unit of time"):
        az.write(tmp_path / "b", far)


def test_lists_of_large_whole_numbers(tmp_path):
    large = [2**63 + 1, 1]
    a = az.write(tmp_path / "a", large)
    assert a[...].tolist() == large
    a[...] = [3, 2**64 - 1]
    assert a[...].tolist() == [3, 2**64 - 1]
    with pytest.raises(ValueError, match="does not hold -1"):
        a[...] = [-1, 2**63]
    for data in ([-1, 2**63], np.array([1, 2**64], object)):
        with pytest.raises(ValueError, match="no attribute holds whole numbers from"):
            az.write(tmp_path / "b", data)


@pytest.mark.parametrize("null", [None, np.nan])
def test_nulls_in_text_of_numpys_own(tmp_path, null):
    cells = np.array(["a", null, "ü"], np.dtypes.StringDType(na_object=null))
    assert az.write(tmp_path / "a", cells)[...].tolist() == ["a", None, "ü"]


def test_several_levels_of_an_index_without_names(tmp_path):
    index = pd.MultiIndex.from_tuples([(1, "a"), (0, "b")])
    a = az.write(tmp_path / "a", pd.DataFrame({"v": [1, 2]}, index=index))
    assert a.schema.dim_names == ["level_0", "level_1"]
    a.write(pd.DataFrame({"v": [3]}, index=index[:1]))
    assert a.query(order="row").to_numpy()["v"].tolist() == [2, 3]


@pytest.mark.parametrize("kind", [pa.list_(pa.int32(), 2), pa.list_(pa.int32())])
def test_lists_that_are_null(tmp_path, kind):
    table = pa.table({"k": [1, 2, 3], "v": pa.array([[1, 2], None, [3, 4]], kind)})
    for part in (table, table.slice(1)):
        a = az.write(tmp_path / "a", part, index="k", mode="w")
        assert a.query(order="row").to_arrow()["v"].to_pylist() == part["v"].to_pylist()
    holed = pa.table({"k": [1, 2, 3], "v": pa.array([[1, 2], None, [3, None]], kind)})
    with pytest.raises(ValueError, match="cell 2 is a list with a null"):
        az.write(tmp_path / "b", holed, index="k")


@pytest.mark.parametrize("kind", [">i4", ">f8", ">M8[s]", ">u2"])
def test_key_values_of_the_other_order_of_bytes(tmp_path, kind):
    a = az.write(tmp_path / "a", np.zeros(2))
    several = np.array([1, 2, 500], kind)
    a.attrs.update(several=several, one=several[2])
    found = az.open(tmp_path / "a").attrs
    np.testing.assert_array_equal(found["several"], several)
    assert found["one"] == several[2]


@pytest.mark.parametrize("dtype, value", [
    ("datetime64[s]", dt.datetime(2024, 1, 1, 0, 0, 0, 500_000)),
    ("datetime64[us]", np.datetime64("2024-01-01T00:00:00.000000001", "ns")),
    ("datetime64[D]", dt.datetime(2024, 1, 1, 5)),
    ("datetime64[ns]", dt.datetime(9999, 1, 1)),
    ("datetime64[s]", "2024-05-01T00:00:00.5"),
    ("timedelta64[s]", dt.timedelta(microseconds=5)),
])
def test_objects_of_time_that_a_type_does_not_hold_are_refused(dtype, value):
    schema = az.Schema([az.Dim("x", (0, 1), 2)], [az.Attr("v", dtype, nullable=True)])
    array = az.create(f"mem://times-{dtype}-{value}", schema)
    with pytest.raises(ValueError, match="does not hold"):
        array[...] = np.array([value, None], object)


def test_objects_of_time_keep_their_moment():
    schema = az.Schema([az.Dim("x", (0, 4), 5)], [az.Attr("v", "datetime64[ns]", nullable=True)])
    array = az.create("mem://times-kept", schema)
    zone = dt.timezone(dt.timedelta(hours=1))
    array[...] = np.array([
        pd.Timestamp("2024-01-01T00:00:00.000000001"), dt.datetime(2024, 1, 1, tzinfo=zone), None, "2024-01-01", 7,
    ], object)
    found = array[...]
    assert np.ma.getmaskarray(found).tolist() == [False, False, True, False, False]
    assert np.ma.getdata(found)[[0, 1, 3, 4]].tolist() == [
        np.datetime64(t, "ns").view(np.int64).item()
        for t in ("2024-01-01T00:00:00.000000001", "2023-12-31T23:00", "2024-01-01", "1970-01-01T00:00:00.000000007")
    ]


def test_key_values_of_time_keep_nanoseconds():
    array = az.write("mem://key-times", np.arange(2))
    array.attrs["at"] = pd.Timestamp("2024-01-01T00:00:00.000000001")
    array.attrs["for"] = dt.timedelta(seconds=3)
    found = array.reopen().attrs
    assert found["at"] == np.datetime64("2024-01-01T00:00:00.000000001", "ns")
    assert found["for"] == np.timedelta64(3, "s")
    with pytest.raises(ValueError):
        array.attrs["at"] = pd.NaT


@pytest.mark.parametrize("at", [-5, dt.datetime(1960, 1, 1), "1960"])
def test_moments_before_1970_are_refused(at):
    array = az.write(f"mem://before-{at}", np.arange(2))
    with pytest.raises(ValueError, match="since 1970"):
        array.reopen(at=at)


@pytest.mark.parametrize("labels", [
    ["", "a\0", "é"], [1.5, np.inf, -np.inf], [np.datetime64("2024-01-01"), np.datetime64("2025-01-01")],
    [False, True], [b"a", b"\xff"], [2**63, 2**64 - 1],
])
def test_labels_of_all_types_come_back(labels):
    schema = az.Schema(
        [az.Dim("x", (0, len(labels) - 1), 2)], [az.Attr("v", "int8", enumeration="E")],
        enumerations=[az.enumeration("E", labels)],
    )
    array = az.create(f"mem://labels-{labels}", schema)
    array[...] = labels
    found = array[...].tolist()
    assert found == labels and list(map(type, found)) == list(map(type, labels))
    assert array.schema.enumerations["E"] == labels


def test_labels_are_of_one_type():
    with pytest.raises(TypeError, match="one type"):
        az.enumeration("E", [1, "a"])


def test_a_tile_is_a_whole_number():
    with pytest.raises(TypeError, match="whole number"):
        az.Schema([az.Dim("x", (0, 9), 2.5)], [az.Attr("v")])


@pytest.mark.parametrize("low, tile", [
    (np.datetime64("2024-01-01T12"), 2), (dt.datetime(2024, 1, 1, 12), 2), ("2024-01-01T12", 2),
    (np.datetime64("2024-01-01"), np.timedelta64(36, "h")),
])
def test_domains_of_times_that_a_type_does_not_hold_are_refused(low, tile):
    with pytest.raises(ValueError, match="does not hold"):
        az.Schema([az.Dim("x", (low, np.datetime64("2024-02-01")), tile, "datetime64[D]")], [az.Attr("v", "int8")])


def test_domains_and_fills_of_times_that_a_type_holds():
    bounds = (np.datetime64("2024-01-01T00"), dt.datetime(2024, 2, 1))
    dim = az.Dim("x", bounds, np.timedelta64(48, "h"), "datetime64[D]")
    array = az.create("mem://held-bounds", az.Schema([dim], [az.Attr("v", "datetime64[s]", fill=np.datetime64("NaT"))]))
    assert array.domain == ((np.datetime64("2024-01-01"), np.datetime64("2024-02-01")),) and array.chunks == (2,)
    assert np.isnat(array[...]).all()


def test_appends_of_several_attributes_are_of_one_length(tmp_path):
    array = az.write(tmp_path / "a", {"p": np.arange(3), "q": np.arange(3)})
    with pytest.raises(ValueError, match="all attributes grow by the same cells"):
        array.append({"p": np.arange(2), "q": np.array([7])})
    array.append({"p": np.arange(2), "q": np.array([7, 8])})
    assert array[...]["q"].tolist() == [0, 1, 2, 7, 8]


@pytest.mark.parametrize(
    ("kind", "values", "wanted"),
    [
        ("int8", np.ma.MaskedArray([1, 10**10], [0, 1]), [1, None]), ("float32", np.ma.MaskedArray([1.5, 1e300], [0, 1]), [1.5, None]),
        ("datetime64[D]", np.ma.MaskedArray(np.array(["2024-01-01", "2024-01-01T12"], "M8[h]"), [0, 1]), [dt.date(2024, 1, 1), None]),
    ],
    ids=str,
)
def test_what_lies_under_a_mask_may_be_anything(tmp_path, kind, values, wanted):
    assert column(kind, True, tmp_path, values) == wanted
    dense = az.create(tmp_path / "b", az.Schema([az.Dim("x", (0, 1), 2)], [az.Attr("v", kind, nullable=True)]))
    dense[...] = values
    assert dense[...].tolist() == wanted
    with pytest.raises(ValueError, match="does not hold"):
        dense[...] = values.data


@pytest.mark.parametrize("nulls", [0, 1])
@pytest.mark.parametrize(
    ("kind", "made", "first"),
    [
        ("datetime64[D]", pa.date32(), dt.date(1970, 1, 2)), ("datetime64[ms]", pa.date64(), dt.datetime(1970, 1, 2)),
        ("TIME_SEC", pa.time32("s"), dt.timedelta(seconds=86399)), ("TIME_US", pa.time64("us"), dt.timedelta(seconds=1)),
        ("timedelta64[ms]", pa.duration("ms"), dt.timedelta(seconds=1)), ("float32", pa.float16(), 0.5),
    ],
    ids=str,
)
def test_arrow_types_with_nulls(tmp_path, kind, made, first, nulls):
    ticks = {pa.date32(): 1, pa.date64(): 86_400_000, pa.time32("s"): 86399, pa.time64("us"): 10**6, pa.duration("ms"): 1000}
    one = pa.array([np.float16(0.5)]) if made == pa.float16() else pa.array([ticks[made]], f"int{made.bit_width}").view(made)
    values = pa.chunked_array([one, pa.array([None] * nulls, made)])
    assert column(kind, True, tmp_path, values) == [first] + [None] * nulls


def test_times_under_a_mask_where_there_are_no_nulls(tmp_path):
    """They are NaT, as in tables of Arrow's."""
    attrs = [az.Attr("t", "datetime64[s]"), az.Attr("u", "timedelta64[ms]", values=2), az.Attr("n", "int32")]
    several = np.ma.MaskedArray(np.arange(6).reshape(3, 2).astype("m8[s]"), [[0, 1], [0, 0], [1, 1]])
    days = np.ma.MaskedArray(np.array(["2024-01-01"] * 3, "M8[D]"), [0, 1, 0])
    cells = {"t": days, "u": several, "n": [1, 2, 3]}
    dense = az.create(tmp_path / "d", az.Schema([az.Dim("x", (0, 2), 3)], attrs))
    sparse = az.create(tmp_path / "s", az.Schema([az.Dim("x", (0, 9), 3)], attrs, sparse=True))
    dense[...] = cells
    sparse.write({"x": [0, 1, 2], **cells})
    for found in (dense[...], sparse.query(order="row").to_numpy()):
        assert np.isnat(found["t"]).tolist() == [False, True, False]
        assert found["t"][0] == np.datetime64("2024-01-01", "s")
        assert np.isnat(found["u"]).tolist() == several.mask.tolist()
        assert found["u"][1].tolist() == [dt.timedelta(seconds=2), dt.timedelta(seconds=3)]
    dense[...] = {**cells, "t": [dt.datetime(2024, 1, 1), None, pd.NaT]}
    assert np.isnat(dense["t"][...]).tolist() == [False, True, True]
    assert np.ma.getdata(days)[1] == np.datetime64("2024-01-01"), "what the caller has is left alone"
    with pytest.raises(ValueError, match="'n' has no nulls"):
        dense[...] = {**cells, "n": np.ma.MaskedArray([1, 2, 3], [0, 1, 0])}


def test_labels_that_are_none_or_too_many_for_a_type():
    assert az.enumeration("E", [])["datatype"] == "STRING_UTF8"
    with pytest.raises(ValueError, match="no type holds all labels"):
        az.enumeration("E", [-1, 2**63])
    schema = az.Schema(
        [az.Dim("x", (0, 1), 2)], [az.Attr("v", "int8", enumeration="E")], enumerations=[az.enumeration("E", [])]
    )
    array = az.create("mem://labels-to-come", schema)
    array.evolve(enumerations={"E": ["a", "b"]})
    array[...] = ["b", "a"]
    assert array[...].tolist() == ["b", "a"]


def test_columns_of_arrow_that_are_null_throughout(tmp_path):
    table = pa.table({"i": [1, 2], "s": pa.nulls(2)})
    array = az.write(tmp_path / "a", table, index="i")
    assert array.query(order="row").to_numpy()["s"].tolist() == [None, None]
    times = az.Schema([az.Dim("i", (0, 9), 5)], [az.Attr("s", "datetime64[s]")], sparse=True)
    array = az.create(tmp_path / "b", times)
    array.write(table)
    assert np.isnat(array.query().to_numpy()["s"]).all()


@pytest.mark.parametrize("kind", ["int64", "float32", "bool", "datetime64[s]", str, bytes])
def test_a_null_that_was_read_is_written(tmp_path, kind):
    array = az.create(tmp_path / "a", az.Schema([az.Dim("x", (0, 2), 3)], [az.Attr("v", kind, nullable=True)]))
    array[...] = None
    array[0] = np.ma.masked
    array[1] = array[0]
    assert np.ma.getmaskarray(array[...]).all()
    plain = az.create(tmp_path / "b", az.Schema([az.Dim("x", (0, 2), 3)], [az.Attr("v", "int64")]))
    with pytest.raises(ValueError, match="has no nulls"):
        plain[0] = np.ma.masked


def test_lists_are_cells_of_any_number_of_values(tmp_path):
    given = {"a": [[1, 2], [3], None, []], "b": [[1.5], [2, float("nan")], [], [0.0]]}
    for uri, columns, options in (
        (str(tmp_path / "dense"), given, {}),
        (str(tmp_path / "sparse"), {"i": [1, 2, 3, 4], **given}, {"index": ["i"]}),
    ):
        az.write(uri, columns, **options)
        with az.open(uri) as a:
            found = a.query().to_arrow()
            assert found["a"].to_pylist() == given["a"]
            assert str(found["b"].to_pylist()) == str([[1.5], [2.0, float("nan")], [], [0.0]])
    for wrong in ([["a"], ["b", "c"]], [[1, None], [2]], [[1.5, None], [2]], [[[1]], [[2], [3]]], [[[1], [2, 3]], [4]]):
        with pytest.raises((TypeError, ValueError)):
            az.write(str(tmp_path / "wrong"), {"a": wrong})
    assert not (tmp_path / "wrong").exists()


def test_lists_in_tables_keep_their_types(tmp_path):
    nan = float("nan")
    given = {
        "i": [1, 2],
        # A grid of its own where there are no rows.
        "same": [[1, 2], [3, 4]],
        "small": [np.array([1, 2], "int8"), np.array([3], "int8")],
        "no_number": [[nan], [nan, nan]],
        "mixed": [[1, nan], [2]],
    }
    uri = str(tmp_path / "a")
    az.write(uri, given, index=["i"])
    with az.open(uri) as a:
        found = a.query().to_arrow()
        assert found["same"].to_pylist() == given["same"]
        assert found["small"].type.value_type == pa.int8()
        assert str(found["no_number"].to_pylist()) == str(given["no_number"])
        assert str(found["mixed"].to_pylist()) == "[[1.0, nan], [2.0]]"
        names = [attr["name"] for attr in a.schema.attrs]
        assert names == ["same", "small", "no_number", "mixed"]


def test_lists_of_truth_values(tmp_path):
    flags = [[True, False], None, [], [True]]
    uri = str(tmp_path / "a")
    az.write(uri, pa.table({"i": range(4), "a": pa.array(flags, pa.list_(pa.bool_()))}), index=["i"])
    with az.open(uri) as a:
        found = a.query().to_arrow()["a"]
        assert found.type.value_type == pa.bool_() and found.to_pylist() == flags
        az.write(str(tmp_path / "again"), a.query().to_arrow(), index=["i"])
    with az.open(str(tmp_path / "again")) as a:
        assert a.schema.attr("a")["datatype"] == "BOOL"
        assert a.query(order="row").to_arrow()["a"].to_pylist() == flags


def test_data_frames_of_large_whole_numbers(tmp_path):
    """pandas keeps them as objects, of which Arrow takes none beyond 63 bits."""
    large = [1, 2**63 + 5, None]
    frame = pd.DataFrame({"a": pd.Series(large, dtype=object), "b": ["x", "y", "z"]})
    uri = str(tmp_path / "a")
    az.write(uri, frame)
    with az.open(uri) as a:
        assert a.query().to_arrow()["a"].to_pylist() == large
    reals = pd.Series([2.5, 2**63, None], dtype=object)
    az.write(str(tmp_path / "lists"), pd.DataFrame({"a": [[1, 2**63], None, [3]], "b": reals}))
    with az.open(str(tmp_path / "lists")) as a:
        found = a.query().to_arrow()
        assert found["a"].to_pylist() == [[1, 2**63], None, [3]]
        assert found["b"].to_pylist()[:2] == [2.5, 2.0**63]
    for wrong in ([-1, 2**63], [1, 2**64]):
        with pytest.raises(ValueError, match="no attribute holds whole numbers"):
            az.write(str(tmp_path / "wrong"), pd.DataFrame({"a": pd.Series(wrong, dtype=object)}))


def test_numbers_of_numpys_own_keep_their_types(tmp_path):
    """As cells, in lists and as objects beside nulls."""
    made = {
        "int8": [np.array([1, 2], "i1"), np.array([3], "i1"), np.array([], "i1")],
        "float32": [np.array([1.5], "f4"), np.array([], "f4"), np.array([np.nan, 2], "f4")],
        "datetime64[D]": [np.array(["2024-01-01"], "M8[D]"), np.array([], "M8[D]"), np.array(["NaT"], "M8[D]")],
        "uint16": [[np.uint16(7)], [], [np.uint16(1), np.uint16(2)]],
        "uint64": [np.array([1], "i1"), np.array([2, 300], "i2"), np.array([2**63], "u8")],
        "int32": [np.array([], "i4")] * 3,
    }
    for kind, rows in made.items():
        a = az.write(f"mem://own-{kind}", {"i": [1, 2, 3], "v": rows}, index="i")
        found = a.query(order="row").to_numpy()["v"]
        assert [cell.dtype for cell in found] == [np.dtype(kind)] * 3
        assert [str(list(cell)) for cell in found] == [str(list(np.asarray(row, kind))) for row in rows]
    for cells, kind in (
        ([np.int8(1), None, np.int8(3)], "int8"), ([np.float32(1.5), None], "float32"), ([np.uint64(5), None], "uint64"),
        ([np.uint64(2**63 + 1), 1], "uint64"), ([np.int8(1), np.int16(2)], "int64"), ([np.float16(1), None], "float64"),
    ):
        objects = np.fromiter(cells, object)
        a = az.write(f"mem://objects-{cells}", objects)
        assert a.dtype == kind and np.ma.filled(a[0]) == cells[0]
    # numpy makes reals of numbers with a sign beside those without.
    a = az.write(tmp_path / "signs", [np.uint64(5), 3])
    assert a.dtype == "int64" and a[...].tolist() == [5, 3]
    a[...] = [7, np.uint64(8)]
    assert a[...].tolist() == [7, 8]


def test_data_frames_of_numpys_largest_numbers(tmp_path):
    frame = pd.DataFrame({"v": pd.Series([np.uint64(2**63 + 1), 1, None], dtype=object)})
    a = az.write(tmp_path / "a", frame)
    assert a.query(order="row").to_arrow()["v"].to_pylist() == [2**63 + 1, 1, None]


def test_columns_of_several_numbers_a_row(tmp_path):
    cells = np.arange(6, dtype="i2").reshape(3, 2)
    a = az.write(tmp_path / "a", {"i": [1, 2, 3], "v": cells}, index="i")
    assert (a.schema.attr("v")["datatype"], a.schema.attr("v")["cell_val_num"]) == ("INT16", 2)
    a.write({"i": [4], "v": cells[:1]})
    assert a.query(order="row").to_numpy()["v"].tolist() == [[0, 1], [2, 3], [4, 5], [0, 1]]
    # Lists may be of other lengths next time.
    b = az.write(tmp_path / "b", {"i": [1, 2], "v": [[1, 2], [3, 4]]}, index="i")
    b.write({"i": [3], "v": [[5]]})
    assert b.query(order="row").to_arrow()["v"].to_pylist() == [[1, 2], [3, 4], [5]]
    for wrong in ([[1, None], [3, 4]], np.zeros((2, 2, 2)), np.array([["a", "b"]] * 2)):
        with pytest.raises((TypeError, ValueError), match="'v'"):
            az.write(tmp_path / "c", {"i": [1, 2], "v": wrong}, index="i")


@pytest.mark.parametrize("several", [{"values": 2}, {"var": True}])
def test_a_part_of_a_cell_is_not_null(several, tmp_path):
    """The values beside it would be lost."""
    attr = az.Attr("v", "int64", nullable=True, **several)
    a = az.create(tmp_path / "a", az.Schema([az.Dim("x", (0, 1), 2)], [attr]))
    a[...] = np.ma.MaskedArray([[1, 2], [3, 4]], mask=[[1, 1], [0, 0]])
    assert a.query().to_arrow()["v"].to_pylist() == [None, [3, 4]]
    with pytest.raises(ValueError, match="cell 1 has values beside nulls"):
        a[...] = np.ma.MaskedArray([[1, 2], [3, 4]], mask=[[1, 1], [0, 1]])


def test_lists_of_other_lengths_are_appended(tmp_path):
    a = az.write(tmp_path / "a", {"v": [[1, 2], [3]]})
    a.append({"v": [[4, 5], [6]]})
    a.append([[7, 8], [9, 10]])
    assert a.query().to_arrow()["v"].to_pylist() == [[1, 2], [3], [4, 5], [6], [7, 8], [9, 10]]


def test_an_index_with_a_name_is_a_column_among_others(tmp_path):
    frame = pd.DataFrame({"id": [7, 8], "v": [1, 2]}, index=pd.Index([5, 6], name="day"))
    a = az.write(tmp_path / "a", frame, index="id")
    assert (a.schema.dim_names, a.schema.attr_names) == (["id"], ["day", "v"])
    a.write(frame.assign(id=[9, 10]))
    assert a.query(order="row").to_numpy()["day"].tolist() == [5, 6, 5, 6]
    assert az.write(tmp_path / "b", frame, index="day").schema.dim_names == ["day"]
    assert az.write(tmp_path / "c", frame, index=["id", "day"]).schema.attr_names == ["v"]
    for one in (frame, frame.rename_axis(index=None), frame.rename_axis(index=0)):
        assert az.optimized(az.Schema.from_pandas(one), one, "size").dim_names == az.Schema.from_pandas(one).dim_names
    # Its column may still be there.
    kept = frame.set_index("id", drop=False)
    a = az.write(tmp_path / "kept", kept, index="id")
    a.write(kept.assign(v=3).set_index("v", append=True))
    assert (a.schema.dim_names, a.schema.attr_names) == (["id"], ["v"])
    assert a.query().to_pandas()["v"].tolist() == [3, 3]
    with pytest.raises(ValueError, match="already exists"):
        az.write(tmp_path / "other", kept.assign(id=0), index="id")
    # A count of rows is none of the data.
    assert az.write(tmp_path / "d", frame.reset_index(drop=True), index="id").schema.attr_names == ["v"]


def test_names_that_are_no_text(tmp_path):
    for name in (0, 1):
        frame = pd.DataFrame({2: [1, 2]}, index=pd.Index([5, 6], name=name))
        a = az.write(tmp_path / str(name), frame)
        a.write(frame.set_axis(pd.Index([7, 8], name=name)))
        assert (a.schema.dim_names, a.schema.attr_names) == ([str(name)], ["2"])
        assert a.query(order="row").to_numpy()["2"].tolist() == [1, 2, 1, 2]
    columns = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    frame = pd.DataFrame([[1, 2]], columns=columns, index=pd.Index([1], name="i"))
    a = az.write(tmp_path / "levels", frame)
    a.write(frame.set_axis(pd.Index([2], name="i")))
    assert a.schema.attr_names == ["('a', 'x')", "('a', 'y')"] and a.agg("count") == 2


@pytest.mark.parametrize("kind", ["Int8", "UInt16", "Int64", "UInt64"])
def test_whole_numbers_beside_nulls_stay_whole_numbers(kind, tmp_path):
    """As reals, large ones would be others."""
    most = np.iinfo(kind.lower()).max
    frame = pd.DataFrame({"n": pd.array([1, None, most], dtype=kind), "m": [1, 2, 3]})
    a = az.write(tmp_path / "a", frame)
    found = a.query(order="row").to_pandas()
    assert (str(found["n"].dtype), str(found["m"].dtype)) == (kind, "int64")
    assert found["n"].iloc[2] == most and found["n"].isna().tolist() == [False, True, False]
    assert a.query(order="row").to_pandas(split_blocks=True, self_destruct=True)["n"].iloc[2] == most
    assert str(a.query(order="row").to_pandas(types_mapper=pd.ArrowDtype)["n"].dtype) == f"{kind.lower()}[pyarrow]"
    assert a.query(order="row").to_pandas(integer_object_nulls=True)["n"].dtype == object
    assert a.query(order="row").to_pandas(categories=["n"])["n"].dtype == "category"


@pytest.mark.parametrize("kind", ["datetime64[ns]", "timedelta64[ns]", "datetime64[s]"])
def test_all_times_are_an_index(kind, tmp_path):
    """The last one of pandas, too, which often stands for none."""
    ticks = [-(2**63) + 1, 0, 2**63 - 1] if "ns" in kind else [-(2**40), 0, 2**40]
    times = pd.Index(np.array(ticks).view(kind), name="t")
    a = az.write(tmp_path / "a", pd.DataFrame({"v": ticks}, index=times))
    a.write(pd.DataFrame({"v": ticks[:1]}, index=times[:1]))
    a.consolidate()
    found = a.query(order="row").to_pandas()
    assert found["v"].tolist() == ticks and (found["t"] == times).all()
    assert a.loc[times.to_numpy()[1]:]["v"].tolist() == ticks[1:]


@pytest.mark.parametrize("make", [
    lambda: pd.Series([1, None], dtype="Int16"), lambda: pa.array([1, None], pa.int16()), lambda: pa.chunked_array([[1], [None]], pa.int16()),
    lambda: pl.Series([1, None], dtype=pl.Int16), lambda: pd.array([1, None], dtype="Int16"),
    lambda: az.write(f"mem://column-{np.random.randint(2**40)}", np.ma.MaskedArray([1, 2], [0, 1], dtype="i2"))[...],
])
def test_columns_make_arrays(make, tmp_path):
    a = az.write(tmp_path / "a", make())
    assert a.dtype == "int16" and a[...].tolist() == [1, None]
    az.write(tmp_path / "a", make(), mode="a")
    assert az.open(tmp_path / "a")[...].tolist() == [1, None, 1, None]
    masked = np.ma.MaskedArray([1, 2], [0, 1], dtype="i2")
    assert az.optimized(a.schema, make(), "size").to_json() == az.optimized(a.schema, masked, "size").to_json()
    rows = pa.chunked_array([[{"i": 1, "v": 2}]])
    assert az.write(tmp_path / "rows", rows, index="i").query().to_arrow().to_pylist() == [{"i": 1, "v": 2}]
    # Of an array that is sparse these would be cells without coordinates.
    with pytest.raises(TypeError, match="not Array"):
        az.write(tmp_path / "c", a)
    frame = pd.DataFrame([[1, 2], [3, 4]])
    assert az.write(tmp_path / "b", {"v": frame})[...].tolist() == frame.to_numpy().tolist()


@pytest.mark.parametrize("make", [
    lambda rows: pa.array(rows, pa.list_(pa.int16())), lambda rows: pa.array(rows, pa.large_list(pa.int16())),
    lambda rows: pa.chunked_array([rows[:1], rows[1:]], pa.list_(pa.int16())), lambda rows: pl.Series(rows, dtype=pl.List(pl.Int16)),
])
def test_lists_of_others_keep_their_type(make, tmp_path):
    rows = [[1, 2], None, [], [3]]
    a = az.write(tmp_path / "a", {"i": range(4), "v": make(rows)}, index="i")
    assert (a.schema.attr("v")["datatype"], a.schema.attr("v")["cell_val_num"]) == ("INT16", "var")
    assert a.query(order="row").to_arrow()["v"].to_pylist() == rows
    with pytest.raises(ValueError, match="list with a null"):
        az.write(tmp_path / "b", {"i": range(2), "v": make([[1, None], [2]])}, index="i")
    with pytest.raises(ValueError, match="list with a null"):
        az.write(tmp_path / "b", {"i": range(2), "v": pa.array([[0.5, None], [2]])}, index="i")


def test_a_column_beside_an_index_without_a_name(tmp_path):
    """What pandas calls it then."""
    a = az.write(tmp_path / "a", pd.DataFrame({"index": [5, 6]}))
    a.write(pd.DataFrame({"index": [7]}, index=[9]))
    assert a.query(order="row").to_pandas().to_dict("list") == {"level_0": [0, 1, 9], "index": [5, 6, 7]}
