"""Async twins, cancelling, progress, memory of the caller's, DLPack, views."""

import asyncio
import threading
import time

import numpy as np
import pytest

import azulejo_db as az


def test_twins(grid, table, tmp_path):
    array, cells = grid

    async def main():
        opened = await az.open_async(array.uri)
        both = await asyncio.gather(opened.read_async(np.s_[2:5]), opened.read_async())
        rows = await table.query("id < 100").to_numpy_async()
        await table.write_async({
            "id": np.array([9]), "name": ["x"], "height": np.array([1.0]), "kind": ["hill"],
        })
        made = await az.write_async(tmp_path / "new", cells[:2])
        return *both, rows, made

    some, everything, rows, made = asyncio.run(main())
    np.testing.assert_array_equal(some, cells[2:5])
    np.testing.assert_array_equal(everything, cells)
    assert sorted(rows["id"].tolist()) == [3, 7]
    assert az.open(table.uri).agg("count") == 4
    assert made[...].tolist() == cells[:2].tolist()


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """An array that takes a while to read."""
    cells = np.random.default_rng(1).random((3000, 1000))
    return az.write(tmp_path_factory.mktemp("slow") / "a", cells, tiles=(10, 1000), filters=["bzip2"])


def test_a_cancelled_task_ends_its_read_and_no_other(slow):
    async def main():
        begun = time.monotonic()
        task = asyncio.create_task(slow.read_async())
        other = asyncio.create_task(slow.read_async(np.s_[:30]))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        waited = time.monotonic() - begun
        return waited, (await other).shape

    waited, shape = asyncio.run(main())
    assert shape == (30, 1000)
    begun = time.monotonic()
    slow[...]
    assert waited < max(0.5, (time.monotonic() - begun) / 2)


def test_ends_come_from_other_threads(slow):
    reader = slow.core.read({
        "ranges": None, "points": None, "fields": [""], "condition": None, "order": "row",
        "memory": None, "matching_only": False, "limit": None, "work": None,
    })
    threading.Timer(0.05, reader.cancel).start()
    with pytest.raises(az.CancelledError):
        reader.read_all()
    assert slow[0].shape == (1000,)


@pytest.mark.parametrize("key", [np.s_[...], np.s_[3:20, 1::3], np.s_[7], np.s_[:, [1, 5, 6]], np.s_[4, 4]])
def test_out(grid, key):
    array, cells = grid
    out = np.full(np.shape(cells[key]), -1.0)
    assert array.read(key, out=out) is out
    np.testing.assert_array_equal(out, cells[key])
    np.testing.assert_array_equal(array.read(key), cells[key])


def test_out_must_fit(grid, table):
    array, _ = grid
    with pytest.raises(ValueError, match="shape"):
        array.read(np.s_[:3], out=np.empty((2, 40)))
    with pytest.raises(ValueError, match="contiguous"):
        array.read(np.s_[:3], out=np.empty((40, 3)).T)
    with pytest.raises(ValueError, match="type"):
        array.read(np.s_[:3], out=np.empty((3, 40), np.float32))
    with pytest.raises(TypeError):
        table["height"].read(out=np.empty(3))


def test_progress(grid, capsys):
    array, cells = grid
    for i in range(5):
        array[i] = i
    seen = []
    array.consolidate(progress=lambda unit, done, total: seen.append((unit, done, total)))
    assert seen and all(done <= total for _, done, total in seen)
    array.check(deep=True, progress=True)
    assert " of " in capsys.readouterr().err
    array.vacuum(progress=False)
    np.testing.assert_array_equal(array[5:], cells[5:])


def test_dlpack(grid):
    array, cells = grid
    np.testing.assert_array_equal(np.from_dlpack(array), cells)
    np.testing.assert_array_equal(np.from_dlpack(array[3:5]), cells[3:5])


def test_views_of_text(table):
    pa = pytest.importorskip("pyarrow")
    query = table.query(order="row", strings="view")
    found = pa.table(query)
    assert found.schema.field("name").type == pa.string_view()
    assert found["name"].to_pylist() == ["Helgoland", "Zugspitze", "Straße"]
    assert pa.table(table.query(order="row"))["name"].to_pylist() == found["name"].to_pylist()
    with pytest.raises(ValueError, match="view"):
        table.query(strings="short")


def test_limits(table):
    assert len(table.query(limit=2, order="row").to_numpy()["id"]) == 2
    assert table.query(limit=2, order="row").to_numpy()["id"].tolist() == [3, 7]
    assert table.query(limit=0).count() == 0
    assert table.query(limit=9).count() == 3
