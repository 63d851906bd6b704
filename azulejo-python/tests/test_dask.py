"""Reads and writes of many tasks, in threads and in processes."""

import os
import pathlib
import signal
import time

import numpy as np
import pytest

import azulejo_db as az

da = pytest.importorskip("dask.array")
import azulejo_db.dask as azd  # noqa: E402


@pytest.fixture
def cells():
    return np.random.default_rng(3).random((50, 40))


def test_chunks_there_and_back(cells, tmp_path):
    array = azd.write(tmp_path / "a", da.from_array(cells, chunks=(20, 15)), dims=("y", "x"), name="v")
    assert len(array.fragments) == 9 and array.chunks == (20, 15)
    np.testing.assert_array_equal(array[...], cells)
    found = azd.read(tmp_path / "a", chunks="tiles")
    assert found.chunks == ((20, 20, 10), (15, 15, 10))
    np.testing.assert_array_equal(found.compute(), cells)
    np.testing.assert_array_equal(found[3:45:7, ::-2].compute(), cells[3:45:7, ::-2])
    assert azd.read(tmp_path / "a").numblocks == (1, 1)
    # The same moment for all tasks, whatever is written meanwhile.
    array[...] = 0
    np.testing.assert_array_equal(found.compute(), cells)


def test_nothing_yet(tmp_path):
    array = azd.write(tmp_path / "a", da.zeros((0, 3), dtype="i4"))
    assert array.shape == (0, 3) and array[...].shape == (0, 3)
    with pytest.raises(ValueError, match="grows by its like"):
        azd.write(array, da.ones((2, 5), dtype="i4"), mode="a")
    assert azd.write(array, da.ones((2, 3), dtype="i4", chunks=(1, 3)), mode="a")[...].tolist() == [[1] * 3] * 2


def test_boxes_and_growth(cells, tmp_path):
    array = azd.write(tmp_path / "a", da.from_array(cells, chunks=25), name="v")
    part = da.ones((10, 5), chunks=(5, 5))
    azd.write(array, part, mode="r+", low=(7, 30))
    expected = cells.copy()
    expected[7:17, 30:35] = 1
    np.testing.assert_array_equal(az.open(array.uri)[...], expected)
    later = azd.write(array.uri, da.zeros((12, 40), chunks=(5, 40)), mode="a", compute=False)
    assert az.open(array.uri).shape == (50, 40)
    later.compute()
    np.testing.assert_array_equal(az.open(array.uri)[...], np.vstack([expected, np.zeros((12, 40))]))
    assert not [f for f in array.reopen().check(deep=True) if f[0] == "error"]


def test_attributes_of_other_chunks(cells, tmp_path):
    data = {"a": da.from_array(cells, chunks=(20, 40)), "b": da.from_array(cells * 2, chunks=(50, 30))}
    found = azd.write(tmp_path / "a", data)[...]
    np.testing.assert_array_equal(found["a"], cells)
    np.testing.assert_array_equal(found["b"], cells * 2)


def _fail_at(block, block_info=None):
    if block_info[0]["chunk-location"] == (2, 2):
        raise ZeroDivisionError("on purpose")
    return block


def test_a_failed_job_leaves_nothing_to_be_seen(cells, tmp_path):
    array = az.write(tmp_path / "a", cells, name="v")
    data = da.from_array(cells * 0, chunks=(20, 15)).map_blocks(_fail_at, dtype=float, meta=cells[:0])
    for mode in ("r+", "a"):
        with pytest.raises(ZeroDivisionError):
            azd.write(tmp_path / "a", data, mode=mode)
        found = az.open(tmp_path / "a")
        assert len(found.fragments) == 1 and found.shape == (50, 40)
        np.testing.assert_array_equal(found[...], cells)
    # What goes on from here is not disturbed by what was left.
    azd.write(tmp_path / "a", da.ones((3, 40)), mode="a")
    np.testing.assert_array_equal(az.open(tmp_path / "a")[...], np.vstack([cells, np.ones((3, 40))]))
    assert len(array.reopen().append(np.ones((1, 40)))) == 1


@pytest.fixture
def frame():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    return pd.DataFrame({
        "id": rng.permutation(10_000)[:3000].astype(np.int64),
        "x": rng.random(3000),
        "name": [f"n{i % 7}" for i in range(3000)],
    })


def test_tables(frame, tmp_path, monkeypatch):
    dd = pytest.importorskip("dask.dataframe")
    array = azd.write_table(tmp_path / "t", dd.from_pandas(frame, npartitions=5), index=["id"])
    assert len(array.fragments) == 5
    expected = frame.sort_values("id").reset_index(drop=True)
    found = azd.read_table(tmp_path / "t", npartitions=4)
    assert 2 <= found.npartitions <= 4
    rows = found.compute().sort_values("id").reset_index(drop=True)
    assert rows.equals(expected.astype(rows.dtypes.to_dict()))
    some = azd.read_table(tmp_path / "t", az.col("x") > 0.5, ["id", "x"]).compute()
    assert sorted(some["id"]) == sorted(expected[expected["x"] > 0.5]["id"])
    asked, query = set(), az.Array.query
    monkeypatch.setattr(az.Array, "query", lambda self, *of, **how: asked.add(tuple(of[1])) or query(self, *of, **how))
    lazy = azd.read_table(array)
    asked.clear()
    assert lazy["x"].max().compute(scheduler="sync") == frame["x"].max()
    assert asked == {("x",)}, "columns that nobody uses are not read"
    monkeypatch.undo()
    sums = azd.read_table(array).groupby("name")["x"].sum().compute().sort_index()
    np.testing.assert_allclose(sums, expected.groupby("name")["x"].sum())
    azd.write_table(array, dd.from_pandas(frame.assign(id=frame["id"] + 20_000), npartitions=2), mode="a")
    assert az.open(tmp_path / "t").agg("count") == 6000


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float64", "datetime64[D]", "S"])
def test_partitions_hold_every_cell_once(tmp_path, dtype):
    rng = np.random.default_rng(7)
    if dtype == "S":
        dim, values = az.Dim("d", dtype=str), [f"k{i}" for i in range(50)]
    else:
        domain = (0.0, 100.0) if dtype == "float64" else (0, 100)
        dim = az.Dim("d", domain, None if dtype == "float64" else 7, dtype)
        values = rng.permutation(100)[:50].astype(dtype)
    schema = az.Schema([dim], [az.Attr("a", "int32")], sparse=True)
    array = az.create(tmp_path / "a", schema)
    assert azd.partitions(array) == []
    array.write({"d": values, "a": np.arange(50, dtype=np.int32)})
    parts = azd.partitions(array, 5)
    assert len(parts) == (1 if dtype == "S" else 5)
    found = azd.read_table(tmp_path / "a", npartitions=5).compute()
    assert sorted(found["a"]) == list(range(50))


def _slow(block, folder, block_info=None):
    """Says that it has begun, and waits for a while."""
    place = "-".join(map(str, block_info[0]["chunk-location"]))
    (pathlib.Path(folder) / f"{place}.{os.getpid()}").touch()
    time.sleep(0.3)
    return block


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster, distributed.Client(cluster) as client:
        yield client


def test_a_worker_that_is_killed_loses_nothing(cluster, cells, tmp_path):
    (tmp_path / "begun").mkdir()
    data = da.from_array(cells, chunks=(10, 10)).map_blocks(
        _slow, str(tmp_path / "begun"), dtype=float, meta=cells[:0]
    )
    job = azd.write(tmp_path / "a", data, name="v", compute=False)
    future = cluster.compute(job)
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "begun").iterdir())) < 6 and time.monotonic() < deadline:
        time.sleep(0.02)
    workers = {int(file.suffix[1:]) for file in (tmp_path / "begun").iterdir()}
    assert len(workers) > 1, "several processes are at work"
    assert az.open(tmp_path / "a").fragments == []
    os.kill(workers.pop(), signal.SIGKILL)
    future.result(timeout=120)
    array = az.open(tmp_path / "a")
    np.testing.assert_array_equal(array[...], cells)
    assert len(array.fragments) == 20
    assert not [f for f in array.check(deep=True) if f[0] == "error"]


def test_reads_and_datasets_on_workers(cluster, cells, tmp_path):
    xr = pytest.importorskip("xarray")
    import azulejo_db.xarray  # noqa: F401

    ds = xr.Dataset({"t": (("time", "x"), cells)}, coords={"time": np.arange(50)})
    ds.chunk({"time": 10}).azulejo.to(tmp_path / "d")
    with xr.open_dataset(tmp_path / "d", engine="azulejo", chunks={}) as found:
        assert found["t"].chunks[0] == (10,) * 5
        xr.testing.assert_allclose(found.mean().compute(), ds.mean())
    more = ds.assign_coords(time=ds.time + 50).chunk({"time": 7})
    more.azulejo.to(tmp_path / "d", append_dim="time")
    with xr.open_dataset(tmp_path / "d", engine="azulejo") as found:
        xr.testing.assert_identical(found.load(), xr.concat([ds, more.compute()], "time"))


@pytest.mark.parametrize("chunks", ["auto", "tiles", (3,)])
def test_several_values_a_cell(chunks, tmp_path):
    schema = az.Schema([az.Dim("x", (0, 3), 2)], [az.Attr("v", "int32", values=3), az.Attr("w", "int32")])
    array = az.create(tmp_path / "a", schema)
    cells = np.arange(12, dtype="int32").reshape(4, 3)
    array[...] = {"v": cells, "w": cells[:, 0]}
    found = azd.read(array, "v", chunks=chunks)
    assert found.shape == (4, 3) and found.chunks[1] == (3,)
    np.testing.assert_array_equal(found.compute(), cells)
    np.testing.assert_array_equal(found[1:, ::2].compute(), cells[1:, ::2])
    assert azd.read(array, "w").shape == (4,)


def test_masked_chunks_are_nulls(tmp_path):
    cells = np.ma.MaskedArray(np.arange(6), mask=[0, 1, 0, 0, 0, 1])
    array = azd.write(tmp_path / "a", {"m": da.from_array(cells, chunks=2), "p": da.from_array(np.arange(6), chunks=3)})
    assert [array.schema.attr(n)["nullable"] for n in ("m", "p")] == [True, False]
    assert array[...]["m"].tolist() == cells.tolist()
    assert azd.write(tmp_path / "b", da.from_array(cells, chunks=2))[...].tolist() == cells.tolist()


def test_adds_behind_the_last_cell_of_a_fixed_domain(tmp_path):
    schema = az.Schema([az.Dim("x", (-7, 5), 3)], [az.Attr("v", "int64", fill=-1)])
    for name in ("a", "b"):
        array = az.create(tmp_path / name, schema)
        array[-7:-4] = [1, 2, 3]
    azd.write(tmp_path / "a", da.from_array(np.array([4, 5, 6]), chunks=2), mode="a")
    az.open(tmp_path / "b", "w").append(np.array([4, 5, 6]))
    found = [az.open(tmp_path / name) for name in ("a", "b")]
    assert found[0].non_empty_domain == found[1].non_empty_domain
    assert found[0][...].tolist() == found[1][...].tolist() == [1, 2, 3, 4, 5, 6] + [-1] * 7


def test_dimensions_of_time(tmp_path):
    first = np.datetime64("2024-05-01")
    for name in ("a", "b"):
        schema = az.Schema(
            [az.Dim("day", (first, first + 999), 5, "datetime64[D]")], [az.Attr("v", "int64")],
            current_domain=[(first, first + 3)],
        )
        array = az.create(tmp_path / name, schema)
        array[...] = np.arange(4)
    assert azd.read(tmp_path / "a", chunks=(3,)).compute().tolist() == [0, 1, 2, 3]
    azd.write(tmp_path / "a", da.from_array(np.array([4, 5, 6]), chunks=2), mode="a")
    assert az.open(tmp_path / "a")[...].tolist() == list(range(7))
    azd.write(tmp_path / "b", da.from_array(np.array([8, 9]), chunks=2), mode="r+", low=[first + 1])
    assert az.open(tmp_path / "b")[...].tolist() == [0, 8, 9, 3]


def test_what_is_added_fits(cells, tmp_path):
    """As in append: nothing grows along other dimensions."""
    array = azd.write(tmp_path / "a", da.from_array(cells, chunks=20), dims=("y", "x"))
    for wrong in (cells[:, :30], np.hstack([cells, cells]), cells[0]):
        with pytest.raises(ValueError, match="grows by its like"):
            azd.write(tmp_path / "a", da.from_array(wrong, chunks=20), mode="a")
    assert array.reopen().shape == (50, 40) and len(array.reopen().fragments) == len(array.fragments)


def test_several_values_a_cell_are_written(tmp_path):
    dims = [az.Dim("y", (0, 99), 2)]
    attrs = [az.Attr("v", "int32", values=3), az.Attr("w", "int32")]
    array = az.create(tmp_path / "a", az.Schema(dims, attrs, current_domain=[(0, 3)]))
    cells = np.arange(12, dtype="int32").reshape(4, 3)
    # Chunks within cells are put together.
    named = {"v": da.from_array(cells, chunks=(2, 2)), "w": da.from_array(cells[:, 0], chunks=3)}
    azd.write(array, named, mode="r+")
    azd.write(array, named, mode="a")
    found = array.reopen()[...]
    np.testing.assert_array_equal(found["v"], np.concatenate([cells, cells]))
    np.testing.assert_array_equal(found["w"], np.concatenate([cells, cells])[:, 0])


def test_cells_beyond_an_array_are_refused(tmp_path):
    for shape, wrong, low in (((4, 3), (5, 3), None), ((4, 3), (3, 3), (2, 0)), ((4, 3), (4, 3), (-1, 0)), ((0, 3), (1, 3), None)):
        uri = tmp_path / f"{shape} {wrong} {low}"
        array = az.write(uri, np.zeros(shape))
        with pytest.raises(IndexError, match="do not lie in"):
            azd.write(uri, da.ones(wrong, chunks=2), mode="r+", low=low)
        assert array.reopen().shape == shape and len(array.reopen().fragments) == (0 not in shape)
    array = azd.write(tmp_path / "(4, 3) (3, 3) (2, 0)", da.ones((2, 3), chunks=1), mode="r+", low=(2, 0))
    assert array[...].tolist() == [[0] * 3] * 2 + [[1] * 3] * 2


def test_tables_keep_what_dask_would_make_text_of(tmp_path):
    """Objects: bytes, days, lists and truth values beside nulls. All partitions have the types that were promised."""
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    days = pa.array([1, None, 3], pa.date32())
    table = pa.table({
        "i": [1, 20_000, 40_000], "b": [b"a", b"\xff", None], "l": [[1], None, [2, 3]], "f": [True, None, False], "k": pa.array([b"ab", None, b"cd"], pa.binary(2)),
        "n": pa.array([2**53 + 1, None, 3]), "u": pa.array([1, 2, 3], pa.uint8()), "d": days, "s": ["a", None, "b"], "x": [0.5, None, 1.5],
    })
    array = az.write(tmp_path / "a", table, index="i")
    lazy = azd.read_table(array, npartitions=3)
    found = lazy.compute().sort_values("i")
    assert lazy.npartitions > 1
    for part in lazy.partitions:
        assert part.compute().dtypes.to_dict() == lazy.dtypes.to_dict() == found.dtypes.to_dict()
    assert found["i"].dtype == "int64" and found["n"].dtype == "Int64" and found["f"].dtype == "boolean"
    plain = lambda v: None if v is None or v is pd.NA else list(v) if not isinstance(v, bytes) and hasattr(v, "__len__") else v  # noqa: E731
    for name in "blkfn":
        assert [plain(v) for v in found[name].tolist()] == table[name].to_pylist()
    assert found["d"].isna().tolist() == [False, True, False] and found["d"].iloc[0] == pd.Timestamp("1970-01-02")
    assert lazy["f"].sum().compute() == 1 and lazy["n"].max().compute() == 2**53 + 1
    again = azd.write_table(tmp_path / "b", lazy, index=["i"]).query(order="row").to_arrow()
    assert again["d"].cast(pa.date32()).to_pylist() == days.to_pylist()
    for name in ("b", "l", "f", "k", "n", "u", "s", "x"):
        assert again[name].to_pylist() == table[name].to_pylist()
    # Of a dimension, too.
    by_day = az.write(tmp_path / "c", pa.table({"day": pa.array([1, 3], pa.date32()), "v": [1, 2]}), index="day")
    assert azd.read_table(by_day).compute()["day"].tolist() == [pd.Timestamp("1970-01-02"), pd.Timestamp("1970-01-04")]
