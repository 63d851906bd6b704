import os

import numpy as np
import pytest

import azulejo_db as az
from azulejo_db._index import Box

KEYS = [
    np.s_[...],
    np.s_[:],
    np.s_[3],
    np.s_[-1],
    np.s_[3, 5],
    np.s_[2:9],
    np.s_[2:9, 3:30],
    np.s_[..., 4],
    np.s_[::2, ::3],
    np.s_[5:25:4, -7:],
    np.s_[::-1],
    np.s_[20:3:-5, ::-2],
    np.s_[4:4],
    np.s_[100:],
    np.s_[:, 39:40],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_is_numpys(grid, key):
    array, cells = grid
    found = array[key]
    np.testing.assert_array_equal(found, cells[key])
    assert np.shape(found) == cells[key].shape


def test_lists_of_positions(grid):
    array, cells = grid
    np.testing.assert_array_equal(array.oindex[[1, 9, 10], :], cells[[1, 9, 10], :])
    np.testing.assert_array_equal(array.oindex[[9, 1], [3, 3, 2]], cells[np.ix_([9, 1], [3, 3, 2])])
    np.testing.assert_array_equal(array.vindex[[1, 9, -1], [2, 2, 0]], cells[[1, 9, -1], [2, 2, 0]])
    np.testing.assert_array_equal(array.vindex[[[0], [4]], [[1, 2]]], cells[[[0], [4]], [[1, 2]]])
    flags = np.arange(30) % 7 == 0
    np.testing.assert_array_equal(array.oindex[flags, 3], cells[flags, 3])
    for wrong in (np.s_[30], np.s_[-31], np.s_[0, 0, 0]):
        with pytest.raises(IndexError):
            array[wrong]


def test_what_it_is(grid):
    array, cells = grid
    assert (array.shape, array.ndim, array.dtype, array.chunks) == ((30, 40), 2, np.float64, (7, 9))
    assert len(array) == 30
    assert array.non_empty_domain == ((0, 29), (0, 39))
    np.testing.assert_array_equal(np.asarray(array), cells)
    assert "dense" in repr(array) and "float64" in repr(array)
    assert "<table>" in array._repr_html_()


def test_results_are_lent_not_copied(grid):
    array, _ = grid
    found = array[...]
    assert found.flags.writeable and not found.flags.owndata
    found[0, 0] = -1
    assert array[0, 0] == 0


def test_cells_are_overwritten(grid):
    array, cells = grid
    cells = cells.copy()
    for key, value in [
        (np.s_[2:4, 5:7], 0), (np.s_[3], np.arange(40)), (np.s_[:, 8], 7.5), (np.s_[-1, -1], 9),
    ]:
        array[key] = value
        cells[key] = value
    np.testing.assert_array_equal(array[...], cells)
    assert len(array.fragments) == 5
    with pytest.raises(IndexError):
        array[::2] = 1
    with pytest.raises(TypeError):
        array[0, 0] = "text"


def test_append_grows(grid):
    array, cells = grid
    array.append(np.ones((5, 40)))
    assert array.shape == (35, 40)
    np.testing.assert_array_equal(array[...], np.vstack([cells, np.ones((5, 40))]))
    array.append(np.zeros((35, 2)), axis=1)
    assert array.shape == (35, 42)


def test_loc_takes_coordinates(tmp_path):
    schema = az.Schema(
        [az.Dim("day", ("2024-01-01", "2024-12-31"), 30, "datetime64[D]")], [az.Attr("t", "float32")]
    )
    array = az.create(tmp_path / "days", schema)
    cells = np.arange(366, dtype=np.float32)
    array[...] = cells
    assert array.loc["2024-02-01"] == 31
    np.testing.assert_array_equal(array.loc["2024-05":"2024-06"], cells[121:182])
    np.testing.assert_array_equal(array.loc["2024-12-30":], cells[-2:])
    assert array.loc[np.datetime64("2024-12-31")] == 365
    assert array.domain == ((np.datetime64("2024-01-01"), np.datetime64("2024-12-31")),)


def test_domains_that_begin_elsewhere(tmp_path):
    array = az.create(tmp_path / "a", az.Schema([az.Dim("x", (-5, 4), 5)], [az.Attr("v", "int32")]))
    array[...] = np.arange(10)
    assert (array[-5], array[4], array.loc[-5:-3].tolist()) == (0, 9, [0, 1, 2])
    assert array[-2:1].tolist() == [3, 4, 5]
    with pytest.raises(IndexError):
        array[5]


def test_several_attributes_and_one_view(tmp_path):
    a, b = np.arange(6).reshape(2, 3), np.arange(6.0).reshape(2, 3)
    array = az.write(tmp_path / "two", {"a": a, "b": b})
    found = array[0]
    assert set(found) == {"a", "b"}
    np.testing.assert_array_equal(array["b"][:, 1], b[:, 1])
    with pytest.raises(TypeError, match="choose one"):
        array.dtype
    with pytest.raises(ValueError, match="missing"):
        array[0] = {"a": 1}


@pytest.mark.parametrize(
    "dtype",
    ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64",
     "bool", "datetime64[ns]", "datetime64[D]", "timedelta64[s]"],
)
def test_every_type_comes_back(tmp_path, dtype):
    cells = np.arange(24).reshape(4, 6).astype(dtype)
    array = az.write(tmp_path / "a", cells)
    assert array.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(array[1:, ::2], cells[1:, ::2])


def test_text(tmp_path):
    cells = np.array([["a", "", "ü"], ["long text", "b", "c"]], dtype=object)
    array = az.write(tmp_path / "a", cells)
    np.testing.assert_array_equal(array[...], cells)


def test_time_travel(tmp_path):
    array = az.write(tmp_path / "a", np.zeros(4), at=1000)
    array._ctx.core  # the context is there
    array._write_box(Box.of_pairs(array, [(0, 3)]), {"": np.ones(4)}, at=2000)
    assert az.open(tmp_path / "a", at=1500)[...].tolist() == [0, 0, 0, 0]
    assert az.open(tmp_path / "a", at=2500)[...].tolist() == [1, 1, 1, 1]
    assert az.open(tmp_path / "a", at="1970-01-01")[...].tolist() == [1, 1, 1, 1]
    assert az.open(tmp_path / "a", at=2500).at == np.datetime64(2500, "ms")


def test_modes_of_write(tmp_path):
    az.write(tmp_path / "a", np.zeros(3))
    with pytest.raises(az.ExistsError):
        az.write(tmp_path / "a", np.zeros(3))
    az.write(tmp_path / "a", np.ones(2), mode="w")
    array = az.write(tmp_path / "a", np.full(2, 5.0), mode="a")
    assert array[...].tolist() == [1, 1, 5, 5]


def test_writes_one_after_another_open_nothing_anew(tmp_path, monkeypatch):
    array = az.write(tmp_path / "a", np.zeros((4, 5)), dims=("y", "x"), name="v")
    opened = []
    context = array._ctx.core
    monkeypatch.setattr(type(array._ctx), "core", property(lambda self: Noted(context, opened)))
    for i in range(4):
        array[i, 1:3] = i + 1
    assert opened == []
    assert array[:, 1].tolist() == [1, 2, 3, 4] and opened == [array.uri]
    # What others have changed meanwhile is looked at once a write does not fit.
    array[0, 0] = 7
    other = az.open(array.uri, "w")
    other.append(np.full((1, 5), 9.0))
    array[4, 0] = 8
    assert array.shape == (5, 5) and array[:, 0].tolist() == [7, 0, 0, 0, 8]
    array[0, 0] = 1
    array.evolve(add=[az.Attr("w", "int32", fill=3)])
    with pytest.raises(TypeError):
        array[0, 0] = 2
    array[0, :2] = {"v": [5.0, 6.0], "w": [1, 2]}
    assert array["w"][0].tolist() == [1, 2, 3, 3, 3]
    array.close()
    with pytest.raises(ValueError, match="closed"):
        array[0, :2] = {"v": [5.0, 6.0], "w": [1, 2]}


class Noted:
    """A context that notes what it opens."""

    def __init__(self, context, opened):
        self._context, self._opened = context, opened

    def __getattr__(self, name):
        if name == "open":
            self._opened.append(None)
            return lambda uri, *time: self._opened.__setitem__(-1, uri) or self._context.open(uri, *time)
        return getattr(self._context, name)


@pytest.mark.parametrize("domain", [(-(2**63), 2**63 - 1001), (0, 2**63 - 1001)])
def test_a_walk_without_an_end_is_refused(domain):
    schema = az.Schema([az.Dim("x", domain, 1000)], [az.Attr("v", "int32")])
    a = az.create(f"mem://endless{domain[0]}", schema)
    low = domain[0]
    a[low : low + 11] = np.arange(11, dtype=np.int32)
    query = a.query("v >= 3")
    rows = np.arange(3, 11)
    np.testing.assert_array_equal(query.box(x=(low, low + 10)).to_numpy()["v"], rows)
    np.testing.assert_array_equal(a.query("v >= 3", limit=4).to_numpy()["v"], rows[:4])
    for walk in (query.to_numpy, query.count, lambda: a.agg(max="v"), lambda: a.agg("count", where="v > 1")):
        with pytest.raises(az.BudgetError, match="come to no end"):
            walk()
    assert a.agg("count") == domain[1] - domain[0] + 1


def test_shapes_that_do_not_fit_are_named(tmp_path):
    array = az.write(tmp_path / "a", {"v": np.arange(12).reshape(4, 3)}, dims=["y", "x"])
    for write in (
        lambda: array.__setitem__(slice(0, 2), {"v": np.arange(8).reshape(2, 4)}),
        lambda: array.append({"v": np.arange(24).reshape(4, 3, 2)}),
        lambda: array.__setitem__((0, 0), {"v": np.ma.MaskedArray([1, 2], [True, False])}),
    ):
        with pytest.raises(ValueError, match=r"'v': values of the shape \(.*\) do not fill cells of the shape \("):
            write()
    assert array.shape == (4, 3) and (array[...] == np.arange(12).reshape(4, 3)).all()


def test_names_and_rows(grid, tmp_path):
    array, cells = grid
    assert "v" in array and "y" not in array and 3.0 not in array
    assert [row.tolist() for row in array] == cells.tolist()
    empty = az.write(tmp_path / "e", np.empty((0, 3)))
    assert list(empty) == []
    schema = az.Schema([az.Dim("x", (-2, 1), 2)], [az.Attr("v", "int64")])
    around = az.create(tmp_path / "f", schema)
    around[...] = np.arange(4)
    assert list(around) == [0, 1, 2, 3]


def test_an_array_without_cells_has_no_rows(tmp_path):
    array = az.write(tmp_path / "e", np.empty((0, 3)))
    assert array.query().count() == 0 and array.query().to_pandas().shape[0] == 0
    assert array.agg("count") == 0
    for key in (([0], [0]), ([[0], [0]], [1, 2]), (0, [0, 1])):
        with pytest.raises(IndexError, match="no cells yet"):
            array.vindex[key]
    for key in (0, [0], (0, slice(0)), ([0], [0])):
        with pytest.raises(IndexError):
            array[key]
    nothing, none = np.empty((0, 3)), np.zeros(0, bool)
    for key in (none, (none, [1, 2]), (none, slice(None)), ([], 1), np.zeros((0, 3), bool), slice(0, 1)):
        found = array.oindex[key] if isinstance(key, tuple) else array[key]
        wanted = nothing[np.ix_(*key)] if isinstance(key, tuple) and isinstance(key[1], list) else nothing[key]
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    assert array.vindex[[], []].shape == array.vindex[none, 1].shape == (0,)
    assert array.vindex[np.zeros((0, 2), int), [1, 2]].shape == (0, 2)
    with pytest.raises(IndexError, match="1 flags for 0"):
        array.vindex[np.zeros(1, bool), [0]]
    array.append(np.ones((2, 3)))
    assert array.query().count() == 6 and array.vindex[[1], [0]].tolist() == [1]


def test_views_show_what_they_write(tmp_path):
    array = az.write(tmp_path / "a", np.arange(4), name="v")
    array[...] = np.arange(4)
    view, other = array["v"], array["v"]
    view[1] = 50
    for shown in (view, other, array):
        assert shown[...].tolist() == [0, 50, 2, 3]
    array[2] = 60
    assert view[...].tolist() == [0, 50, 60, 3]
    view.append(np.array([4]))
    assert array.shape == view.shape == (5,)
    view.attrs["k"] = 1
    assert array.attrs["k"] == 1
    array.close()
    assert view[...].tolist() == [0, 50, 60, 3, 4] and dict(view.attrs) == {"k": 1}
    with pytest.raises(ValueError, match="closed"):
        array[...]


def test_who_looks_while_another_writes_sees_it_afterwards(tmp_path):
    array = az.write(tmp_path / "a", np.arange(4))
    array[0] = 7

    def write(before):
        before[1] = 8 if before is not array else 9
        # Another thread's look, between the write and its end.
        array._stale = False

    assert array._stale
    array._as_written(write)
    assert array[...].tolist() == [7, 8, 2, 3]


def test_another_thread_lets_go(tmp_path, monkeypatch):
    """What was open a moment ago is what is returned, never nothing."""
    array = az.write(tmp_path / "a", np.arange(4))
    kept = os.getpid

    def letting_go():
        array._core = None
        return kept()

    core = array.core
    monkeypatch.setattr("azulejo_db._array.os.getpid", letting_go)
    assert array.core is core


def test_boxes_of_queries_restrict_together(grid):
    array, cells = grid
    for query in (array.query().box(y=(3, 4)).box(x=(0, 5)), array.query("v >= 0").box(x=(0, 5)).box(y=(3, 4))):
        assert query.to_numpy()["v"].tolist() == cells[3:5, :6].reshape(-1).tolist()
    assert array.query().box(x=7).to_numpy()["v"].tolist() == cells[:, 7].tolist()
    with pytest.raises(ValueError, match="have a range already"):
        array.query().box(y=1).box(y=2)
    with pytest.raises(ValueError, match="one list of points"):
        array.query().box(y=1).points([2], [3])


def test_cells_of_several_values_in_a_box(tmp_path):
    dims = [az.Dim("y", (0, 1), 2), az.Dim("x", (0, 2), 3)]
    array = az.create(tmp_path / "a", az.Schema(dims, [az.Attr("v", "int64", values=3)]))
    cells = np.arange(18).reshape(2, 3, 3)
    array[...] = cells
    for key in (np.s_[:, 0], np.s_[1], np.s_[1, 2], np.s_[0, 1:], np.s_[...]):
        array[key] = array[key]
        np.testing.assert_array_equal(array[...], cells)
    array[:, 0] = [7, 8, 9]
    assert array[:, 0].tolist() == [[7, 8, 9]] * 2
    rows = np.fromiter([[1, 2, 3], [4, 5, 6], [7, 8, 9]], object)
    array[1] = rows
    assert array[1].tolist() == rows.tolist()


def test_cells_of_any_number_of_values_in_a_box(tmp_path):
    dims = [az.Dim("y", (0, 1), 2), az.Dim("x", (0, 2), 3)]
    array = az.create(tmp_path / "a", az.Schema(dims, [az.Attr("v", "float64", var=True)]))
    array[...] = np.arange(6.0).reshape(2, 3)
    assert [[cell.tolist() for cell in row] for row in array[...]] == [[[0], [1], [2]], [[3], [4], [5]]]
    array[...] = np.arange(12.0).reshape(2, 3, 2)
    assert array[1, 0].tolist() == [6, 7]


def test_writes_to_an_array_without_cells_write_none(tmp_path):
    array = az.write(tmp_path / "e", np.empty((0, 3)))
    array[...] = 5
    array[:, 1] = np.ones(0)
    array[0:0] = 3
    array.loc[:, 1:2] = 3
    array.write(np.ones((0, 3)))
    for key, value in ((0, 1), (..., np.ones((2, 3))), (np.s_[:, 0], np.ones(4))):
        with pytest.raises((IndexError, ValueError)):
            array[key] = value
    for opened in (array, az.open(tmp_path / "e", "w")):
        assert opened.shape == (0, 3) and opened.fragments == []
        opened[...] = 5
        assert opened.shape == (0, 3)
    array.append(np.ones((2, 3)))
    array[...] = 5
    assert array[...].tolist() == [[5] * 3] * 2
