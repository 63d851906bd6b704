import asyncio
import copy
import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import azulejo_db as az


def test_errors_have_types(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        az.open(tmp_path / "nothing")
    assert isinstance(caught.value, az.NotFoundError) and "nothing" in caught.value.uri
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.uri == caught.value.uri
    with pytest.raises(KeyError, match="did you mean 'vfs.s3.region'"):
        az.open(tmp_path, config={"vfs.s3.regoin": "x"})
    with pytest.raises(ValueError):
        az.open(tmp_path / "nothing", "x")


def test_damage_is_an_error(grid):
    array, _ = grid
    files = [p for p in __import__("pathlib").Path(array.uri).rglob("a0*.tdb")]
    files[0].write_bytes(files[0].read_bytes()[: files[0].stat().st_size // 2])
    with pytest.raises(az.CorruptError):
        az.open(array.uri)[...]
    # The same error through what takes Arrow.
    query = az.open(array.uri).query()
    for read in (query.to_arrow, query.to_polars, lambda: query.to_pandas(split_blocks=True)):
        with pytest.raises(az.CorruptError) as raised:
            read()
        assert str(files[0].name) in str(raised.value)


def test_metadata(grid):
    array, _ = grid
    array.attrs["unit"] = "mm"
    array.attrs.update({"n": 3, "x": 0.5, "row": np.arange(3), "raw": b"\0\1"})
    found = az.open(array.uri).attrs
    assert (found["unit"], found["n"], found["x"], found["raw"]) == ("mm", 3, 0.5, b"\0\1")
    assert found["row"].tolist() == [0, 1, 2]
    del array.attrs["n"]
    assert sorted(az.open(array.uri).attrs) == ["raw", "row", "unit", "x"]
    with pytest.raises(KeyError):
        array.attrs["n"]


def test_groups(tmp_path):
    group = az.create_group(tmp_path / "g")
    az.write(tmp_path / "g" / "a", np.arange(3))
    az.create_group(tmp_path / "g" / "inner")
    group.add(str(tmp_path / "g" / "a"), "first")
    group["below"] = str(tmp_path / "g" / "inner")
    group.attrs["title"] = "all"
    again = az.open(tmp_path / "g", "w")
    assert isinstance(again, az.Group) and sorted(again) == ["below", "first"]
    assert again["first"][...].tolist() == [0, 1, 2]
    assert again.attrs["title"] == "all"
    assert again.tree() == "below/\nfirst"
    assert "first" in again and "below" in again and "second" not in again and "first/x" not in again and 1 not in again
    again["below"].add(str(tmp_path / "g" / "a"), "deep")
    assert "below/deep" in again and "below/none" not in again
    az.delete(tmp_path / "g" / "a")
    assert "first" in again and "below/deep" in again
    with pytest.raises(az.NotFoundError):
        again["first"]
    del again["first"]
    assert list(az.open(tmp_path / "g")) == ["below"]


def test_members_are_given_as_what_they_are_and_replaced(tmp_path):
    group = az.create_group(tmp_path / "g")
    array = az.write(tmp_path / "g" / "a", np.arange(3))
    other = az.write(tmp_path / "b", np.arange(5))
    group.add(tmp_path / "g" / "a", "path")
    group.add(array, "array")
    group["of"] = az.create_group(tmp_path / "inner")
    assert group["path"].shape == group["array"].shape == (3,) and isinstance(group["of"], az.Group)
    with pytest.raises(az.ExistsError):
        group.add(other, "array")
    group["array"] = other
    assert az.open(tmp_path / "g")["array"].shape == (5,)
    for wrong in (None, 3, b"a"):
        with pytest.raises(TypeError):
            group.add(wrong, "wrong")
    az.delete(tmp_path / "b")
    group.clear()
    assert list(group) == list(az.open(tmp_path / "g")) == []
    group.clear()
    assert az.open(tmp_path / "g" / "a").shape == (3,)
    with pytest.raises(io.UnsupportedOperation):
        az.open(tmp_path / "g").clear()


def test_encryption(tmp_path):
    key = b"0" * 32
    az.write(tmp_path / "a", np.arange(5), key=key)
    assert az.open(tmp_path / "a", key=key)[...].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(az.EncryptionError):
        az.open(tmp_path / "a")


def test_copies_and_moves(grid, tmp_path):
    array, cells = grid
    az.copy(array.uri, tmp_path / "b")
    az.move(tmp_path / "b", tmp_path / "c")
    np.testing.assert_array_equal(az.open(tmp_path / "c")[...], cells)
    az.delete(tmp_path / "c")
    assert az.object_type(tmp_path / "c") is None


def test_schemas_come_back(table):
    schema = table.schema
    assert az.Schema.from_json(schema.to_json()) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert az.create(table.uri + "2", schema).schema == schema


def test_pickle_shows_the_same_moment(grid):
    array, cells = grid
    away = pickle.dumps(array)
    array[...] = 0
    np.testing.assert_array_equal(pickle.loads(away)[...], cells)
    np.testing.assert_array_equal(copy.copy(pickle.loads(away))["v"][0], cells[0])


def test_a_write_at_once_after_pickling_is_not_seen(tmp_path):
    az.write(tmp_path / "a", np.arange(3))
    for i in range(100):
        array = az.open(tmp_path / "a", "w")
        before = array[0]
        away = pickle.dumps(array)
        array[0] = i + 10
        assert pickle.loads(away)[0] == before
        assert az.open(tmp_path / "a")[0] == i + 10


def test_a_pickle_shows_its_fragments_whatever_older_ones_come(table):
    array = az.open(table.uri, "w")
    now = int(array.at.astype(np.int64))
    view = array["height"]
    away, part = pickle.dumps(array), pickle.dumps(view)
    # Written later, with a time before those of all the others, and at their very time.
    late = {"id": np.array([8]), "name": ["late"], "height": np.ma.MaskedArray([1.0]), "kind": ["hill"]}
    writer = az.open(table.uri, "w")
    writer.write(late, at=1)
    writer.write({**late, "id": np.array([9])}, at=now)
    assert len(az.open(table.uri, at=now).query(fields=["id"]).to_numpy()["id"]) == 5
    for _ in range(2):
        opened = pickle.loads(away)
        assert sorted(opened.query(fields=["id"]).to_numpy()["id"]) == [3, 7, 500]
        assert opened.at == array.at
        assert pickle.loads(part)._attr == "height"
        away = pickle.dumps(opened)
    # What was consolidated is still there until a vacuum, which is then said.
    writer.consolidate()
    assert sorted(pickle.loads(away).query(fields=["id"]).to_numpy()["id"]) == [3, 7, 500]
    writer.vacuum()
    with pytest.raises(FileNotFoundError, match="pinned"):
        pickle.loads(away)


def test_pickles_are_small_and_hold_no_secrets(tmp_path):
    array = az.write(tmp_path / "a", np.arange(300, dtype=np.int32), tiles=(1,))
    sizes = [len(pickle.dumps(array))]
    writer = az.open(tmp_path / "a", "w")
    for i in range(200):
        writer[i] = i
    sizes.append(len(pickle.dumps(az.open(tmp_path / "a"))))
    assert sizes[0] < 500
    assert (sizes[1] - sizes[0]) / 200 < 40, "bytes for each fragment"
    ctx = az.Context({"vfs.s3.aws_secret_access_key": "hush-hush", "sm.mem.total_budget": "1000000000"})
    away = pickle.dumps(az.open(tmp_path / "a", ctx=ctx))
    assert b"hush" not in away and b"hush" not in b"".join(
        zlib.decompress(part) for part in pickle.loads(away).__reduce__()[1] if isinstance(part, bytes)
    )


def _sum(array):
    return float(array[...].sum())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(grid, method):
    array, cells = grid
    assert array[0, 0] == 0
    with ProcessPoolExecutor(2, mp_context=get_context(method)) as pool:
        assert list(pool.map(_sum, [array] * 4)) == [cells.sum()] * 4


def test_an_open_array_survives_a_fork(grid):
    array, cells = grid
    assert _sum(array) == cells.sum()
    child = os.fork()
    if child == 0:
        os._exit(0 if _sum(array) == cells.sum() else 1)
    deadline = time.monotonic() + 20
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            pytest.fail("the child hangs")
        time.sleep(0.01)
    assert os.waitstatus_to_exitcode(status) == 0


def test_threads_share_an_array(grid):
    array, cells = grid
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: array[i % 30].sum(), range(200)))
    assert found == [cells[i % 30].sum() for i in range(200)]


def test_the_gil_is_free_while_the_engine_works(tmp_path):
    array = az.write(tmp_path / "a", np.random.default_rng(1).random((2000, 1000)))
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks.append(1)

    ticker = threading.Thread(target=tick)
    ticker.start()
    for _ in range(5):
        array[...]
    stop.set()
    ticker.join()
    assert ticks


def test_ctrl_c_ends_a_read(tmp_path):
    script = """
import sys, threading, os, signal, time
import numpy as np, azulejo_db as az
a = az.write(sys.argv[1], np.zeros(4000000), filters=["bzip2"])
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        a.reopen()[...]
except KeyboardInterrupt:
    print("stopped", a[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a")], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "stopped 0.0\n", done.stderr


def test_asyncio(grid):
    array, cells = grid

    async def main():
        opened = await az.open_async(array.uri)
        return await asyncio.to_thread(lambda: opened[...])

    np.testing.assert_array_equal(asyncio.run(main()), cells)


class _Samples:
    """What torch's loaders take for a dataset."""

    def __init__(self, array):
        self.array = array

    def __len__(self):
        return len(self.array)

    def __getitem__(self, i):
        return self.array[i]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_torch_loads_in_workers(grid, method):
    """Torch is asked for by nothing else: this runs where it is."""
    torch = pytest.importorskip("torch")
    array, cells = grid
    loader = torch.utils.data.DataLoader(
        _Samples(array), batch_size=7, num_workers=4, multiprocessing_context=method, persistent_workers=True
    )
    # All of it was read here before, on this process's threads.
    np.testing.assert_array_equal(array[...], cells)
    for _ in range(2):
        np.testing.assert_array_equal(torch.cat(list(loader)).numpy(), cells)
        assert array[3, 4] == cells[3, 4]


def _rows(job):
    array, rows = job
    return [array[i].sum() for i in rows]


def test_workers_as_torch_has_them(grid):
    """Children that were forked from a program with threads, and read what was open before."""
    array, cells = grid
    array[...], list(array.query(fields=["v"]))
    context = get_context("fork")
    with ThreadPoolExecutor(4) as threads, context.Pool(3) as pool:
        busy = [threads.submit(lambda: array[...].sum()) for _ in range(8)]
        jobs = [(array, range(start, 30, 3)) for start in range(3)]
        for start, sums in enumerate(pool.map(_rows, jobs)):
            assert sums == [cells[i].sum() for i in range(start, 30, 3)]
        assert {done.result() for done in busy} == {cells.sum()}


def test_members_whose_folders_are_gone_can_be_taken_out(tmp_path):
    group = az.create_group(tmp_path / "g")
    for name in "abc":
        az.write(tmp_path / "g" / name, np.arange(3))
        group.add(tmp_path / "g" / name, name)
    assert group.pop("a").shape == (3,) and sorted(group) == ["b", "c"]
    az.delete(tmp_path / "g" / "b")
    az.delete(tmp_path / "g" / "c")
    assert group.pop("b") is None and list(az.open(tmp_path / "g")) == ["c"]
    assert group.pop("x", 5) == group.pop("x", default=5) == 5
    with pytest.raises(KeyError):
        group.pop("x")
    assert group.popitem() == ("c", None) and list(group) == []
    with pytest.raises(KeyError):
        group.popitem()


def test_members_in_a_groups_folder_move_with_it_however_they_are_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    group = az.create_group("g")
    az.write("g/a", np.arange(3))
    group.add("g/a", "text")
    group.add(tmp_path / "g" / "a", "whole")
    group.add((tmp_path / "g" / "a").as_uri(), "uri")
    group.add(tmp_path / "g" / "a", "said", relative=True)
    az.move("g", "h")
    moved = az.open("h")
    assert {name: moved[name].shape for name in moved} == dict.fromkeys(["said", "text", "uri", "whole"], (3,))
    # What is said to be relative is not looked for from the current folder.
    group = az.open(tmp_path / "h", "w")
    az.create_group(tmp_path / "h" / "below")
    monkeypatch.chdir(tmp_path / "h" / "below")
    group.add("a", "near", relative=True)
    assert az.open(tmp_path / "h")["near"].shape == (3,)


@pytest.mark.parametrize("value", [np.ma.masked, np.ma.MaskedArray([1, 2], [0, 1]), [-1, 2**63], None, [[1]]], ids=repr)
def test_key_values_never_become_others(grid, value):
    array, _ = grid
    with pytest.raises(TypeError, match="a key's value is"):
        array.attrs["k"] = value
    assert "k" not in array.reopen().attrs
    array.attrs["k"] = np.ma.MaskedArray([1, 2], [0, 0])
    assert array.reopen().attrs["k"].tolist() == [1, 2]
