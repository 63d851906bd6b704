"""Threads and processes that append to one array at the same time: no row is lost, and none is halved."""

import multiprocessing
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import azulejo_db as az

WRITERS, TIMES = 4, 6


def rows_of(writer, time, count=2):
    return np.full((count, 5), writer * 1000 + time, "i4")


def append(uri, axis, writer):
    """What one of several processes does."""
    array = az.open(uri, "w")
    for time in range(TIMES):
        rows = rows_of(writer, time)
        array.append(rows if axis == 0 else rows.T, axis)


def in_processes(task, *given):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=task, args=(*given, writer)) for writer in range(WRITERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * WRITERS


def in_threads(task, *given):
    failed = []

    def run(writer):
        try:
            task(*given, writer)
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    threads = [threading.Thread(target=run, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failed == []


def check(found, first=0):
    """That there are all rows behind the first ones, those of a box together."""
    wanted = sorted(writer * 1000 + time for writer in range(WRITERS) for time in range(TIMES))
    boxes = found[first:].reshape(len(wanted), 2, -1)
    assert (boxes == boxes[:, :1, :1]).all(), "every box is whole"
    assert sorted(boxes[:, 0, 0]) == wanted


@pytest.mark.parametrize("axis", [0, 1])
def test_processes(tmp_path, axis):
    first = rows_of(0, 0) - 7
    array = az.write(tmp_path / "a", first if axis == 0 else first.T, tiles=(3, 4))
    in_processes(append, array.uri, axis)
    found = array.reopen()[...]
    check(found if axis == 0 else found.T, first=2)
    assert not [found for found in array.check(deep=True) if found[0] == "error"]


def test_processes_where_nothing_grows(tmp_path):
    # The end is that of what was written.
    schema = az.Schema([az.Dim("y", (0, 999), 7), az.Dim("x", (0, 4), 5)], [az.Attr("v", "i4")])
    array = az.create(tmp_path / "a", schema)
    in_processes(append, array.uri, 0)
    assert array.reopen().non_empty_domain[0] == (0, 2 * WRITERS * TIMES - 1)
    check(array.reopen()[: 2 * WRITERS * TIMES])


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("place", ["folder", "mem"])
def test_threads(tmp_path, place, shared):
    uri = str(tmp_path / "a") if place == "folder" else f"mem://appended-{shared}"
    array = az.write(uri, np.empty((0, 5), "i4"))

    def task(writer):
        own = array if shared else az.open(uri, "w")
        for time in range(TIMES):
            own.append(rows_of(writer, time))

    in_threads(task)
    check(az.open(uri)[...])


def test_who_looked_long_ago_overwrites_nothing(tmp_path):
    one = az.write(tmp_path / "a", np.zeros((2, 3)), tiles=(2, 3))
    other = az.open(one.uri, "w")
    before = other.shape
    one.append(np.ones((2, 3)))
    names = other.append(np.full((3, 3), 2.0))
    assert before == (2, 3) and other.shape == (7, 3)
    assert other[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert [f["name"] for f in other.fragments][-1:] == names
    assert other.check() == [], "what was written in the wrong place is gone"


def test_all_of_an_append_is_seen_at_once(tmp_path):
    uri = az.write(tmp_path / "a", np.ones((2, 5), "i4")).uri
    done = threading.Event()
    seen = set()

    def look():
        while not done.is_set():
            cells = az.open(uri)[...]
            seen.add(cells.shape[0])
            assert (cells > 0).all()

    watching = threading.Thread(target=look)
    watching.start()
    for _ in range(20):
        array = az.open(uri, "w")
        array.append(np.ones((2, 5), "i4"))
    done.set()
    watching.join()
    assert len(seen) > 1 and all(rows % 2 == 0 for rows in seen)
    # And so at the moment of its cells, not only later.
    moments = [fragment["timestamps"][1] for fragment in array.fragments]
    for number, moment in enumerate(moments):
        assert az.open(uri, at=moment).shape[0] <= 2 * (number + 1)
        assert (az.open(uri, at=moment)[...] > 0).all()


def test_an_append_that_fails_leaves_nothing(tmp_path):
    array = az.write(tmp_path / "a", np.ones((2, 5), "i4"))
    for wrong in (np.ones((2, 4), "i4"), np.full((1, 5), 2**40)):
        with pytest.raises(ValueError):
            array.append(wrong)
    assert array.reopen().shape == (2, 5) and len(array.reopen().fragments) == 1 and array.check() == []
    # It does not hold the array: others go on.
    az.open(array.uri, "w").append(np.ones((1, 5), "i4"))
    assert array.reopen().shape == (3, 5)


def test_two_appends_of_one_moment(tmp_path):
    array = az.write(tmp_path / "a", np.zeros((1, 5), "i4"), at=1_000)
    in_threads(lambda writer: az.open(array.uri, "w").append(rows_of(writer, 0), at=2_000))
    assert az.open(array.uri, at=1_000).shape == (1, 5)
    found = array.reopen()[1:]
    assert found.shape == (2 * WRITERS, 5) and sorted(found[::2, 0]) == [0, 1000, 2000, 3000]


# -- datasets and dask ----------------------------------------------------------------------------


def days(writer, time):
    import xarray as xr

    number = writer * 1000 + time
    return xr.Dataset(
        {"a": (("t", "x"), np.full((2, 5), number)), "b": ("t", [number] * 2)}, coords={"t": [number] * 2, "x": np.arange(5)}
    )


def append_dataset(uri, writer):
    import azulejo_db.xarray  # noqa: F401 - ds.azulejo

    for time in range(TIMES):
        data = days(writer, time)
        (data.chunk({"t": 1}) if time % 2 else data).azulejo.to(uri, append_dim="t")


@pytest.mark.parametrize("how", [in_threads, in_processes])
def test_datasets(tmp_path, how):
    xr = pytest.importorskip("xarray")
    import azulejo_db.xarray  # noqa: F401 - ds.azulejo

    days(9, 0).azulejo.to(tmp_path / "d")
    how(append_dataset, str(tmp_path / "d"))
    found = xr.open_dataset(tmp_path / "d", engine="azulejo").load()
    assert found.sizes["t"] == 2 * (WRITERS * TIMES + 1)
    check(found["a"].values, first=2)
    for name in ("b", "t"):
        np.testing.assert_array_equal(found[name], found["a"][:, 0])
    for name in found.variables:
        assert not [f for f in az.open(tmp_path / "d" / name).check() if f[0] == "error"]


def test_datasets_that_begin_with_nothing(tmp_path):
    xr = pytest.importorskip("xarray")
    import azulejo_db.xarray  # noqa: F401 - ds.azulejo

    days(0, 0).isel(t=slice(0)).azulejo.to(tmp_path / "d")
    in_threads(lambda writer: days(writer, 0).isel(t=slice(1)).azulejo.to(tmp_path / "d", append_dim="t"))
    found = xr.open_dataset(tmp_path / "d", engine="azulejo")
    assert sorted(found["b"].values) == [writer * 1000 for writer in range(WRITERS)]


def test_who_computes_later_is_told(tmp_path):
    xr = pytest.importorskip("xarray")
    import azulejo_db.xarray  # noqa: F401 - ds.azulejo

    place = tmp_path / "d"
    days(0, 0).azulejo.to(place)
    later = days(1, 0).chunk({"t": 1}).azulejo.to(place, append_dim="t", compute=False)
    days(2, 0).azulejo.to(place, append_dim="t")
    with pytest.raises(az.ConflictError, match="append again") as caught:
        later.compute(scheduler="synchronous")
    assert pickle.loads(pickle.dumps(caught.value)).uri == caught.value.uri
    found = xr.open_dataset(place, engine="azulejo")
    assert found["a"].values[:, 0].tolist() == found["b"].values.tolist() == found["t"].values.tolist() == [0, 0, 2000, 2000]
    days(1, 0).azulejo.to(place, append_dim="t")
    assert xr.open_dataset(place, engine="azulejo")["t"].values.tolist() == [0, 0, 2000, 2000, 1000, 1000]


def test_dask_arrays(tmp_path):
    da = pytest.importorskip("dask.array")
    import azulejo_db.dask as azd

    array = az.write(tmp_path / "a", np.full((2, 5), -7, "i4"))

    def task(writer):
        for time in range(TIMES):
            azd.write(array.uri, da.from_array(rows_of(writer, time), chunks=(1, 5)), mode="a")

    in_threads(task)
    check(array.reopen()[...], first=2)


HELD = """
import signal, sys, threading, time
import numpy as np
import azulejo_db as az

array = az.open(sys.argv[1], "w")
hold = array._ctx.core.hold(array.uri)
threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
began = time.monotonic()
try:
    array.append(np.ones((1, 5), "i4"))
except KeyboardInterrupt:
    assert time.monotonic() - began < 5
else:
    raise SystemExit("it did not wait")
hold.release()
array.reopen().append(np.full((1, 5), 2, "i4"))
assert az.open(array.uri)[...].tolist() == [[0] * 5, [2] * 5]
"""


def test_ctrl_c_ends_waiting_for_others(tmp_path):
    uri = az.write(tmp_path / "a", np.zeros((1, 5), "i4")).uri
    subprocess.run([sys.executable, "-c", HELD, uri], check=True, timeout=120)


@pytest.mark.parametrize("error, dropped", [(KeyboardInterrupt, "c"), (az.AzulejoError, "bc")])
def test_what_was_sent_is_not_taken_back(error, dropped):
    """Who is interrupted does not know whether a commit is there; behind an error the engine does."""
    from types import SimpleNamespace

    from azulejo_db._job import Job, Place, _Part

    class Core:
        def __init__(self):
            self.dropped = []

        def commit_fragments(self, uri, names):
            if uri == "mem://b":
                raise error

        def discard_fragments(self, uri, names):
            self.dropped.append((uri, list(names)))

    core = Core()
    ctx = SimpleNamespace(core=core)
    job = Job(ctx)
    for name in "abc":
        job._parts[f"mem://{name}"] = _Part(Place(f"mem://{name}", ctx, 1), names=[f"fragment_of_{name}"])
    with pytest.raises(error):
        job.finish()
    assert core.dropped == [(f"mem://{name}", [f"fragment_of_{name}"]) for name in dropped]
