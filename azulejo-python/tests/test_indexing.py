"""What stands in square brackets, against numpy; and what it may not be."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import azulejo_db as az

CELLS = np.arange(35).reshape(5, 7)
KEYS = [
    0, -1, -5, (1, 2), (-1, -1), (1,), ..., (..., 1), (1, ...), (), np.s_[1:3], np.s_[::-1], np.s_[::-2, ::-3],
    np.s_[4:1:-1], np.s_[3:1], np.s_[10:20], np.s_[-100:100], np.s_[1:3, 2], np.s_[2, ::-1], np.s_[0:5:100],
    np.s_[2**70:], np.s_[:: 2**70], np.s_[3 :: 2**64, 1], np.s_[:: -(2**70)], [0, 2], [2, 0], [0, 0], [-1, 0], [], ([0, 1], [0, 1]), ([0, 1], slice(None)),
    (slice(None), [6, 1]), ([4, 1], -1), np.array([True, False, True, False, True]), np.zeros(5, bool), CELLS > 10, ([0, 1], ..., [2]),
    np.int8(1), np.uint64(2), np.array(2), np.array([1, 2], np.uint8), np.s_[np.int64(1) : np.uint8(3)], range(2),
    5, -6, (1, 2, 3), (..., ...), 1.0, 1.5, 1j, 2**70, -(2**70), np.array([1.0, 2.0]), np.zeros(4, bool),
]


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    return az.write(tmp_path_factory.mktemp("five") / "a", CELLS, tiles=(2, 3))


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_keys_mean_what_numpy_means(five, key):
    try:
        wanted = CELLS[key]
    except (IndexError, ValueError) as error:
        with pytest.raises(type(error)):
            five[key]
        return
    found = five[key]
    np.testing.assert_array_equal(found, wanted)
    assert (np.shape(found), type(found)) == (np.shape(wanted), type(wanted))


@pytest.mark.parametrize("key", [key for key in KEYS if not (isinstance(key, slice) and (key.step or 1) < 0)], ids=str)
def test_keys_beside_numpy(five, key):
    """What is read into memory that is there is what stands in square brackets."""
    try:
        wanted = CELLS[key]
    except (IndexError, ValueError):
        with pytest.raises((IndexError, ValueError)):
            five.read(key, out=np.empty((5, 7), CELLS.dtype))
        return
    if isinstance(key, tuple) and any(isinstance(part, slice) and (part.step or 1) < 0 for part in key):
        return
    out = np.empty(np.shape(wanted), CELLS.dtype)
    assert five.read(key, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    for wrong in (np.empty((*out.shape, 1), out.dtype), np.empty(out.shape, "f4")):
        with pytest.raises(ValueError, match="are read"):
            five.read(key, out=wrong)


def test_reads_of_nothing_into_memory(tmp_path):
    array = az.write(tmp_path / "a", np.empty((0, 3)))
    assert array.read(out=np.empty((0, 3))).shape == (0, 3) and array.read(np.s_[:, 1], out=np.empty(0)).shape == (0,)
    for key, out in ((..., np.empty((1, 3))), (0, np.empty(3))):
        with pytest.raises((IndexError, ValueError)):
            array.read(key, out=out)


@pytest.mark.parametrize("make", [pd.Series, pd.Index, lambda items: pd.array(items, "int64")])
def test_columns_of_pandas_are_lists(five, make):
    np.testing.assert_array_equal(five[make([2, 0])], CELLS[[2, 0]])
    np.testing.assert_array_equal(five[make([2, 0]), make([1, 1])], CELLS[[2, 0], [1, 1]])
    np.testing.assert_array_equal(five.oindex[make([2, 0]), make([1, 1])], CELLS[np.ix_([2, 0], [1, 1])])
    np.testing.assert_array_equal(five.loc[make([2, 0]), 3], CELLS[[2, 0], 3])
    np.testing.assert_array_equal(five.vindex[make([2, 0]), 3], CELLS[[2, 0], 3])
    np.testing.assert_array_equal(five[pd.Series([True, False, True, False, True])], CELLS[::2])
    np.testing.assert_array_equal(five[pd.DataFrame(CELLS > 10)], CELLS[CELLS > 10])


def test_times_of_pandas_are_lists(days):
    times = pd.DatetimeIndex(["2024-01-06", "2024-01-01"])
    for found in (days.loc[times], days[times], days[times.to_series()], days.vindex[times], days.loc[times.tz_localize("UTC")]):
        assert found.tolist() == [5, 0]


@pytest.mark.parametrize("key", [None, (None, 1), True, [[0, 1]], ([0, 1], [2], slice(None))], ids=str)
def test_what_is_not_numpys_is_refused(five, key):
    with pytest.raises(IndexError):
        five[key]


def test_points(five):
    assert five.vindex[[0, 0, 4], [1, 1, 0]].tolist() == [1, 1, 28]
    assert five.vindex[[[0], [1]], [1, 2]].tolist() == [[1, 2], [8, 9]]
    assert five.vindex[[], []].shape == (0,)
    assert five.vindex[CELLS > 30].tolist() == [31, 32, 33, 34]
    for wrong in (np.s_[[9], [1]], np.s_[[1], :], np.s_[[1]], np.s_[[1.5], [1]]):
        with pytest.raises(IndexError):
            five.vindex[wrong]


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("int32", -5, 5), ("int64", 3, 12), ("int8", -128, 120), ("uint64", 0, 2**64 - 10),
        ("uint64", 2**64 - 20, 2**64 - 10), ("uint64", 2**63 - 5, 2**63 + 5), ("int64", -(2**63), -(2**63) + 20),
        ("int64", 2**63 - 30, 2**63 - 10), ("int64", -(2**63), 2**63 - 10),
    ],
)
def test_domains_anywhere(tmp_path, kind, low, high):
    array = az.create(tmp_path / "a", az.Schema([az.Dim("d", (low, high), 5, kind)], [az.Attr("v", "int64")]))
    first = low or 7
    array[first : first + 4] = [1, 2, 3, 4]
    assert array.shape == (high - low + 1,)
    assert array.non_empty_domain == ((first, first + 3),)
    assert array[first : first + 4].tolist() == array.loc[first : first + 3].tolist() == [1, 2, 3, 4]
    assert array[first : first + 4 : 2].tolist() == array[[first, first + 2]].tolist() == [1, 3]
    assert array.vindex[[first + 2, first]].tolist() == array.loc[[first + 2, first]].tolist() == [3, 1]
    assert array[first + 3] == array.loc[first + 3] == 4
    if low != 0:
        assert array[first + 3 : first : -1].tolist() == [4, 3, 2]
    for outside in (low - 1, high + 1) if low else (high + 1,):
        with pytest.raises(IndexError):
            array[outside]
        with pytest.raises(IndexError):
            array.loc[outside]
    if high - low > 2**60:
        with pytest.raises(MemoryError, match="part"):
            array[...]


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """The days of 2024, numbered."""
    dim = az.Dim("t", ("2024-01-01", "2024-12-31"), np.timedelta64(30, "D"), "datetime64[D]")
    array = az.create(tmp_path_factory.mktemp("days") / "a", az.Schema([dim], [az.Attr("v", "int64")]))
    array[...] = np.arange(366)
    return array


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("2024-02-01", 31), ("2024-02", range(31, 60)), ("2024", range(366)), (dt.date(2024, 1, 6), 5),
        (np.datetime64("2024-01-06T00:00:00"), 5), (pd.Timestamp("2024-01-06"), 5), (19728, 5),
        (slice("2024-01", "2024-02"), range(60)), (slice("2024-12-30", None), (364, 365)),
        # What begins within a day does not hold the day.
        (slice(pd.Timestamp("2024-01-06 12:00"), "2024-01-08"), (6, 7)),
        (slice("2023", np.datetime64("2024-01-02T23:59")), (0, 1)), (slice("2030", None), ()), (slice("0001", "9999"), range(366)),
        (["2024-01-06", "2024-01-05"], (5, 4)), (slice(dt.datetime(2024, 12, 31, tzinfo=dt.timezone.utc), None), (365,)),
    ],
    ids=str,
)
def test_coordinates_of_time(days, key, wanted):
    assert np.array_equal(days.loc[key], wanted if isinstance(wanted, int) else list(wanted))


@pytest.mark.parametrize(
    "key",
    ["2030-01-01", "nonsense", np.datetime64("NaT"), slice(np.datetime64("NaT"), None), slice(None, pd.NaT),
     np.datetime64("2024-01-06T00:00:00.000000001"), pd.Timestamp("2024-01-06 12:00"), ["2024-01-06", "2025-01-06"], 1.5],
    ids=str,
)
def test_times_that_are_no_coordinates(days, key):
    with pytest.raises((IndexError, ValueError)):
        days.loc[key]


def test_positions_of_time(days):
    assert days["2024-01-05":"2024-01-08"].tolist() == [4, 5, 6]
    assert days[np.datetime64("2024-01-06")] == 5
    assert days[np.array(["2024-01-06", "2024-01-01"], "datetime64[ns]")].tolist() == [5, 0]
    assert days.vindex[np.array(["2024-01-06"], "datetime64[h]")].tolist() == [5]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "s", "ms", "us", "ns"])
def test_units_of_time(unit):
    """Bounds in every other unit, against numpy where numpy is exact."""
    from azulejo_db._dimension import Dimension

    names = {"Y": "YEAR", "M": "MONTH", "W": "WEEK", "D": "DAY", "h": "HR", "s": "SEC", "ms": "MS", "us": "US", "ns": "NS"}
    dim = Dimension({"name": "t", "datatype": f"DATETIME_{names[unit]}", "tile_extent": 1, "domain": [-(2**62), 2**62]}, None)
    rng = np.random.default_rng(1)
    for given in ("Y", "M", "D", "h", "m", "s", "ms"):
        for count in rng.integers(-200, 250, 50).tolist():
            value = np.datetime64(count, given)
            floor = int(value.astype(f"datetime64[{unit}]").view(np.int64))
            exact = np.datetime64(floor, unit).astype(f"datetime64[{given}]") == value
            assert dim.last(value) == floor
            assert dim.first(value) == (floor if exact else floor + 1)
    # Far beyond what nanoseconds can count.
    assert dim.first("9999") > dim.last("2262-01-01") and dim.last("0001") < dim.first("1600")


def test_numbers_with_fractions(tmp_path):
    schema = az.Schema([az.Dim("x", (-100.0, 100.0), 10.0, "float64")], [az.Attr("v", "int8")], sparse=True)
    array = az.create(tmp_path / "a", schema)
    array.write({"x": [1.5, -2.0, 0.0], "v": [1, 2, 3]})
    xs = lambda key: sorted(array.loc[key]["x"].tolist())  # noqa: E731
    assert xs(np.s_[-np.inf : np.inf]) == xs(np.s_[:]) == xs(np.s_[-1e9:1e9]) == [-2.0, 0.0, 1.5]
    assert xs(np.s_[:0.5]) == [-2.0, 0.0] and xs(1.5) == [1.5] and xs([0.0, 1.5]) == [0.0, 1.5]
    assert xs(np.s_[1000:2000]) == xs(np.s_[1:0]) == []
    assert array.query().box(x=1.5).count() == 1
    for wrong in (np.s_[np.nan :], np.nan, "1.5", True):
        with pytest.raises((ValueError, TypeError)):
            array.loc[wrong]
    with pytest.raises(IndexError, match="loc"):
        array[0]
    assert array.query().points([0.0, np.nan, 1e9]).to_numpy()["x"].tolist() == [0.0]
    with pytest.raises(TypeError):
        array.query().points(["a"]).count()


def test_whole_numbers_take_no_fractions(five):
    assert five.loc[0.5:2.5].tolist() == CELLS[1:3].tolist()
    assert five.loc[-np.inf : np.inf].shape == (5, 7)
    for wrong in (1.5, "x", np.nan, True):
        with pytest.raises((IndexError, TypeError, ValueError)):
            five.loc[wrong]


@pytest.mark.parametrize(
    "key",
    [(0, slice(None), [1, 0]), ([0, 1, 1], slice(None), 2), (1, ..., np.array([0, 2])), (1, [0, 1]), (slice(None), 1, [0, 3]), ([2, 0], ..., 1, 1),
     (slice(None), [0, 1], slice(1), -1), (-1, slice(0), np.array([True, False, True, False]))],
    ids=str,
)
@pytest.mark.parametrize("ndim", [3, 4])
def test_a_list_behind_a_number_and_a_slice(tmp_path, key, ndim):
    shape = (3, 4, 4, 4)[:ndim]
    cells = np.arange(np.prod(shape)).reshape(shape)
    a = az.write(tmp_path / "a", {"p": cells, "q": -cells})
    try:
        wanted = cells[key]
    except IndexError:
        with pytest.raises(IndexError):
            a[key]
        return
    np.testing.assert_array_equal(a["p"][key], wanted)
    np.testing.assert_array_equal(a["p"].read(key, out=np.empty_like(wanted, order="C")), wanted)
    np.testing.assert_array_equal(a[key]["q"], -wanted)


@pytest.mark.parametrize(
    ("kind", "before", "after", "there"),
    [
        ("timedelta64[s]", np.timedelta64(-1, "s"), np.timedelta64(9, "s"), np.timedelta64(2, "s")),
        ("datetime64[D]", np.datetime64("1969-12-31"), np.datetime64("1970-01-10"), np.datetime64("1970-01-03")),
    ],
)
def test_times_do_not_count_from_the_end(tmp_path, kind, before, after, there):
    """Where positions begin at 0, whole numbers below do, as in numpy."""
    array = az.create(tmp_path / "a", az.Schema([az.Dim("t", (0, 5), 3, kind)], [az.Attr("v", "int64")]))
    array[...] = np.arange(6)
    for key in (before, after, [there, before], [after]):
        with pytest.raises(IndexError):
            array[key]
    assert array[there] == 2 and array[[there, there + 1]].tolist() == [2, 3]
    assert array[before:there].tolist() == [0, 1] and array[before:].tolist() == list(range(6))
    assert array[:before].tolist() == [] and array[there:after].tolist() == [2, 3, 4, 5]
    assert array[-1] == 5 and array[[-1, 0]].tolist() == [5, 0]
    for low, high, step in ((-2, None, 1), (None, -9, 1), (-9, 3, 2), (4, -9, -1), (-9, None, -1), (99, 1, -2), (99, None, 1)):
        assert array[low:high:step].tolist() == list(range(6))[low:high:step]


@pytest.mark.parametrize(("kind", "last"), [("uint64", 2**64 - 3), ("int64", 2**63 - 3), ("uint8", 9)])
def test_lists_that_count_from_a_far_end(tmp_path, kind, last):
    array = az.create(tmp_path / "a", az.Schema([az.Dim("x", (0, last), 2, kind)], [az.Attr("v", "int8")]))
    array[-1] = 7
    array[last - 1] = 6
    assert array.vindex[[-1, -2]].tolist() == array[[-1, -2]].tolist() == [7, 6]
    assert array.vindex[np.array([last, last - 1], kind)].tolist() == [7, 6]
    with pytest.raises(IndexError):
        array.vindex[[-last - 2 if kind == "uint8" else -(2**63), last]] if kind != "uint64" else array[last + 1]


def test_out_that_is_masked_shows_what_is_read(tmp_path):
    array = az.write(tmp_path / "a", np.arange(6).reshape(2, 3))
    out = np.ma.array(np.zeros((2, 3), int), mask=True)
    assert array.read(..., out=out).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_lists_of_several_dimensions(tmp_path):
    """As in numpy, where they stand for all dimensions; dots stand for those that are left, or for none."""
    cells = np.arange(12).reshape(3, 4)
    a, b = az.write(tmp_path / "a", cells), az.write(tmp_path / "b", cells[0])
    square, column = np.array([[0, 1], [2, -1]]), np.array([[0], [2]])
    for key in ((square, 1), (square, square), (column, [0, 3]), (..., square, [0, 3]), ([0, 2], ..., [1, -1]), ([0], [1], ...)):
        np.testing.assert_array_equal(a[key], cells[key])
    np.testing.assert_array_equal(b[square], cells[0][square])
    np.testing.assert_array_equal(b[column, ...], cells[0][column, ...])
    with pytest.raises(IndexError, match="lists of one dimension"):
        a[square]
    with pytest.raises(IndexError, match="lie outside"):
        b[square + 2]
