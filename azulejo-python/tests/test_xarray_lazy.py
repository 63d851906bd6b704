"""A dataset is opened without a look at its fragments; it still is what it was at that moment."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

import azulejo_db as az

xr = pytest.importorskip("xarray")
import azulejo_db.xarray  # noqa: E402, F401 - ds.azulejo


@pytest.fixture
def two(tmp_path):
    cells = np.arange(40.0).reshape(4, 10)
    ds = xr.Dataset({name: (("y", "x"), cells + i, {"n": i}) for i, name in enumerate("ab")})
    ds.azulejo.to(tmp_path / "d")
    return tmp_path / "d", ds


def opened(place):
    return xr.open_dataset(place, engine="azulejo", cache=False)


def footers(array: Path):
    return sorted(array.glob("__fragments/*/__fragment_metadata.tdb"))


def test_what_is_wrong_with_a_fragment_is_said_when_it_is_read(two):
    place, ds = two
    (footer,) = footers(place / "a")
    whole = footer.read_bytes()
    # Names of today are young: a file that is cut off may be under way, and is waited for.
    footer.write_bytes(whole[:-16] + bytes(16))
    found = opened(place)
    assert found.sizes == {"y": 4, "x": 10} and found["a"].attrs == {"n": 0}
    xr.testing.assert_identical(found["b"].load(), ds["b"])
    for _ in range(2):
        with pytest.raises(az.CorruptError):
            found["a"].values  # noqa: B018
    footer.write_bytes(whole)
    xr.testing.assert_identical(found["a"].load(), ds["a"])


def test_what_is_written_later_is_not_seen(two):
    place, ds = two
    found = opened(place)
    array = az.open(place / "a", "w")
    array[1:3] = -1.0
    np.testing.assert_array_equal(found["a"], ds["a"])
    assert (opened(place)["a"].values[1:3] == -1).all()


def test_a_vacuum_may_come_between(two):
    place, ds = two
    array = az.open(place / "a", "w")
    array[0] = 7.0
    then = opened(place)["a"].values
    found, later = opened(place), opened(place)
    array.consolidate()
    array.vacuum()
    np.testing.assert_array_equal(found["a"], then)
    # What was there has gone into a fragment with later cells: it is read as it is now.
    array[1] = 8.0
    array.consolidate()
    array.vacuum()
    now = opened(place)["a"].values
    assert (now[1] == 8).all()
    np.testing.assert_array_equal(later["a"], now)


def test_a_fork_reads_what_was_open(two):
    place, ds = two
    found = opened(place)
    az.open(place / "a", "w")[1] = -1.0
    child = os.fork()
    if child == 0:
        os._exit(0 if (found["a"].values == ds["a"].values).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(found["a"], ds["a"])


def test_a_pickle_of_what_nobody_has_read(two):
    place, ds = two
    found = opened(place)
    pickled = pickle.dumps(found)
    az.open(place / "a", "w")[1] = -1.0
    xr.testing.assert_identical(pickle.loads(pickled).load(), ds)
    xr.testing.assert_identical(pickle.loads(pickle.dumps(found)).load(), ds)


def test_an_array_of_a_dataset_is_one_as_any_other(two):
    place, ds = two
    cells = az.open(place)._arrays()["b"]
    assert cells.schema == az.open(place / "b").schema
    assert cells.shape == (4, 10) and cells.dtype == np.float64 and len(cells.fragments) == 1
    assert cells.agg("count") == 40 and "[y: int64, x: int64] {b: float64}" in repr(cells)
    np.testing.assert_array_equal(cells[...], ds["b"])


def test_datasets_of_fixed_domains_say_their_sizes(tmp_path):
    """As TileDB-CF-Py writes them: how long a dimension is, cells tell."""
    az.create_group(tmp_path / "g")
    for name, rows in (("a", 3), ("b", 5)):
        dims = [az.Dim("y", (0, 99), 10), az.Dim("x", (0, 3), 4)]
        array = az.create(tmp_path / "g" / name, az.Schema(dims, [az.Attr(name, "int32", fill=-1)]))
        array[:rows] = np.arange(rows * 4, dtype=np.int32).reshape(rows, 4)
        az.open(tmp_path / "g", "w")[name] = tmp_path / "g" / name
    found = opened(tmp_path / "g")
    assert found.sizes == {"y": 3, "x": 4}
    np.testing.assert_array_equal(found["b"], np.arange(12).reshape(3, 4))
    assert found["a"].encoding["_FillValue"] == -1 and found["a"].encoding["tiles"] == (10, 4)
