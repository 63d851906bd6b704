"""A dataset in the place of another: old or new, never neither and never a mixture."""

import multiprocessing
import shutil
import threading

import numpy as np
import pytest

import azulejo_db as az

xr = pytest.importorskip("xarray")
import azulejo_db.xarray  # noqa: E402, F401 - ds.azulejo
from azulejo_db import _replace  # noqa: E402


def dataset(number, size=6, names=("a", "b")):
    return xr.Dataset(
        {name: (("y", "x"), np.full((size, 5), number)) for name in names},
        coords={"y": np.arange(size) * number},
        attrs={"number": number},
    )


def found(place):
    return xr.open_dataset(place, engine="azulejo").load()


def folders(place):
    """What lies in a group's folder that is not the group's own."""
    return sorted(p.name for p in place.iterdir() if not p.name.startswith("__"))


def test_replacing_leaves_only_the_new(tmp_path):
    place = tmp_path / "d"
    old = dataset(1, names=("a", "gone"))
    old.attrs["also gone"] = "x"
    old.azulejo.to(place, mode="w")
    assert folders(place) == ["a", "gone", "y"]
    for number in (2, 3, 4):
        new = dataset(number, size=4 + number)
        new.azulejo.to(place, mode="w")
        xr.testing.assert_identical(found(place), new)
        assert sorted(az.open(place)) == ["a", "b", "y"]
        assert len(folders(place)) == 3, "what was replaced is deleted"
    extra = xr.Dataset({"more": ("x", np.arange(5))})
    extra.azulejo.to(place, mode="a")
    assert set(found(place).variables) == {"a", "b", "y", "more"}


def test_who_has_the_old_one_open_is_told(tmp_path):
    place = tmp_path / "d"
    dataset(1).azulejo.to(place)
    old = xr.open_dataset(place, engine="azulejo")
    np.testing.assert_array_equal(old["a"][:2], 1)
    dataset(2).azulejo.to(place, mode="w")
    with pytest.raises(az.NotFoundError, match="took its place.*open it again") as caught:
        old["a"].load()
    assert caught.value.uri == str(place)
    assert found(place).attrs["number"] == 2
    # What is missing for another reason is said as it is.
    new = xr.open_dataset(place, engine="azulejo")
    shutil.rmtree(az.open(place).location("a").removeprefix("file://"))
    with pytest.raises(az.NotFoundError) as caught:
        new["a"].load()
    assert "took its place" not in str(caught.value)


@pytest.mark.parametrize("step", ["cells", "type", "attributes", "members"])
def test_a_write_that_fails_leaves_the_old(tmp_path, monkeypatch, step):
    place = tmp_path / "d"
    old = dataset(1)
    old.azulejo.to(place)
    before = folders(place)
    new = dataset(2, names=("a", "c"))
    expected = ZeroDivisionError
    with monkeypatch.context() as patch:
        if step == "cells":
            da = pytest.importorskip("dask.array")

            def fail(block):
                raise ZeroDivisionError("on purpose")

            cells = da.zeros((6, 5), chunks=3).map_blocks(fail, meta=np.empty((0, 0)))
            new["z"] = (("y", "x"), cells)
        elif step == "type":
            new["z"], expected = (("y", "x"), np.zeros((6, 5), "c8")), TypeError
        else:
            real = _replace._put

            def put(*given):
                if step == "members":
                    real(*given)
                patch.setattr(_replace, "_put", real)
                raise ZeroDivisionError("on purpose")

            # Before the attributes are written, and between them and the members.
            patch.setattr(_replace, "_put", put)
        with pytest.raises(expected):
            new.azulejo.to(place, mode="w")
    xr.testing.assert_identical(found(place), old)
    assert folders(place) == before, "nothing is left of the failed write"
    good = dataset(3)
    good.azulejo.to(place, mode="w")
    xr.testing.assert_identical(found(place), good)


def test_a_killed_write_blocks_nothing(tmp_path):
    place = tmp_path / "d"
    old = dataset(1)
    old.azulejo.to(place)
    fork = multiprocessing.get_context("spawn")
    child = fork.Process(target=_killed, args=(str(place),))
    child.start()
    child.join()
    assert child.exitcode == 7
    xr.testing.assert_identical(found(place), old)
    assert len(folders(place)) == 6, "the new arrays lie there, and nobody looks at them"
    new = dataset(3)
    new.azulejo.to(place, mode="w")
    xr.testing.assert_identical(found(place), new)
    dataset(4).azulejo.to(place, mode="w")


def _killed(place):
    import os

    _replace.swap = lambda *_: os._exit(7)
    dataset(2).azulejo.to(place, mode="w")


def test_an_array_is_not_replaced_by_a_dataset(tmp_path):
    az.write(tmp_path / "a", np.arange(4))
    with pytest.raises(FileExistsError, match="no dataset"):
        dataset(1).azulejo.to(tmp_path / "a", mode="w")
    np.testing.assert_array_equal(az.open(tmp_path / "a")[:], np.arange(4))


def test_members_elsewhere_stay(tmp_path):
    dataset(1).azulejo.to(tmp_path / "d")
    az.write(tmp_path / "away", np.arange(4), dims=("q",), name="away")
    az.open(tmp_path / "d", "w").add(str(tmp_path / "away"), "away")
    assert "away" in found(tmp_path / "d")
    dataset(2).azulejo.to(tmp_path / "d", mode="w")
    assert "away" not in found(tmp_path / "d")
    np.testing.assert_array_equal(az.open(tmp_path / "away")[:], np.arange(4))


def test_readers_see_old_or_new(tmp_path):
    place = tmp_path / "d"
    dataset(1).azulejo.to(place)
    stop, wrong, seen = threading.Event(), [], set()

    def read():
        while not stop.is_set():
            try:
                # Opening always comes to one of them; cells may be gone by the time they are read.
                opened = xr.open_dataset(place, engine="azulejo")
            except Exception as error:  # noqa: BLE001
                wrong.append(error)
                return
            try:
                opened.load()
            except FileNotFoundError:
                continue
            number = opened.attrs["number"]
            seen.add(number)
            if not opened.identical(dataset(number, size=3 + number)) and number > 1:
                wrong.append(opened)
                return

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(2, 14):
        dataset(number, size=3 + number).azulejo.to(place, mode="w")
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong, wrong
    assert seen


def _writes(place, numbers):
    for number in numbers:
        names = ("a", f"own{number % 2}")
        dataset(number, names=names).azulejo.to(place, mode="w")


def test_two_at_once_come_one_after_the_other(tmp_path):
    place = tmp_path / "d"
    spawn = multiprocessing.get_context("spawn")
    both = [
        spawn.Process(target=_writes, args=(str(place), range(2 + parity, 18, 2))) for parity in (0, 1)
    ]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    last = found(place)
    number = last.attrs["number"]
    xr.testing.assert_identical(last, dataset(number, names=("a", f"own{number % 2}")))
    assert len(folders(place)) == 3, "each deleted what it replaced"


def leaf(number):
    return dataset(number).drop_vars("y")


def test_trees_are_replaced_whole(tmp_path):
    place = tmp_path / "t"

    def tree(number, names):
        return xr.DataTree.from_dict({"/": dataset(number), **{n: leaf(number) for n in names}})

    def part(group):
        return xr.open_dataset(place, engine="azulejo", group=group).load()

    tree(1, ("/p", "/p/deep")).azulejo.to(place)
    xr.testing.assert_identical(part("p/deep"), leaf(1))
    tree(2, ("/p", "/q", "/q/deep")).azulejo.to(place, mode="w")
    opened = xr.open_datatree(place, engine="azulejo")
    assert set(opened.groups) == {"/", "/p", "/q", "/q/deep"}
    for group in ("p", "q", "q/deep"):
        xr.testing.assert_identical(part(group), leaf(2))
    xr.testing.assert_identical(opened["/"].to_dataset().load(), dataset(2))
    before = folders(place)
    assert len(before) == 5
    bad = xr.DataTree.from_dict({"/": dataset(3), "/p": xr.Dataset({"z": ("x", np.zeros(5, "c8"))})})
    with pytest.raises(TypeError):
        bad.azulejo.to(place, mode="w")
    assert folders(place) == before
    xr.testing.assert_identical(part("q/deep"), leaf(2))
    # A group within is a dataset too.
    leaf(5).azulejo.to(place, mode="w", group="p")
    xr.testing.assert_identical(part("p"), leaf(5))
    leaf(6).azulejo.to(place, group="p/new")
    assert set(xr.open_datatree(place, engine="azulejo").groups) == {"/", "/p", "/p/new", "/q", "/q/deep"}
    xr.testing.assert_identical(found(place), dataset(2))


@pytest.mark.parametrize("mode", ["a", "w"])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_deleted_variable_is_written_again(tmp_path, mode, replaced):
    place = tmp_path / "d"
    for number in (1, 2) if replaced else (2,):
        dataset(number).azulejo.to(place, mode="w")
    shutil.rmtree(az.open(place).location("b").removeprefix("file://"))
    with pytest.raises(az.NotFoundError, match="'b'.*mode='a'.*remove"):
        found(place)
    with pytest.raises(az.NotFoundError, match="'b'"):
        # It is not what this writes.
        dataset(5)[["a"]].azulejo.to(place, mode="a")
    with pytest.raises(az.NotFoundError, match="'b'"):
        # What is left of it would be its end alone.
        dataset(5).azulejo.to(place, append_dim="y")
    dataset(3).azulejo.to(place, mode=mode)
    xr.testing.assert_identical(found(place), dataset(3))
    assert len(az.open(place)) == 3
    dataset(4).azulejo.to(place, append_dim="y")
    assert found(place).sizes["y"] == 12
    dataset(6).azulejo.to(place, mode="w")
    xr.testing.assert_identical(found(place), dataset(6))
    assert len(folders(place)) == 3


def test_a_deleted_variable_is_done_without(tmp_path):
    place = tmp_path / "d"
    dataset(1).azulejo.to(place)
    shutil.rmtree(place / "b")
    az.Group(place, "w").remove("b")
    xr.testing.assert_identical(found(place), dataset(1)[["a"]])


def test_trees_take_three_modes(tmp_path):
    tree = xr.DataTree.from_dict({"/": dataset(1), "/b2": leaf(2)})
    tree.azulejo.to(tmp_path / "t")
    for mode in ("r+", "a-", "x", "W", None):
        with pytest.raises(ValueError, match="mode is one of"):
            xr.DataTree.from_dict({"/": dataset(3)}).azulejo.to(tmp_path / "t", mode=mode)
    xr.testing.assert_identical(xr.open_datatree(tmp_path / "t", engine="azulejo").load(), tree)


def test_a_variable_does_not_take_the_place_of_a_group(tmp_path):
    tree = xr.DataTree.from_dict({"/": dataset(1), "/b2": leaf(2)})
    tree.azulejo.to(tmp_path / "t")
    with pytest.raises(FileExistsError, match="'b2' is a group"):
        dataset(1, names=("b2",)).azulejo.to(tmp_path / "t", mode="a")
    xr.testing.assert_identical(xr.open_datatree(tmp_path / "t", engine="azulejo").load(), tree)


def test_what_another_program_is_about_to_add_stays(tmp_path):
    place = tmp_path / "d"
    dataset(1).azulejo.to(place)
    # An array that is no member yet.
    other = az.write(place / "c", np.arange(3))
    dataset(1, names=("c",)).azulejo.to(place, mode="a")
    assert found(place)["c"].values.tolist() == np.ones((6, 5)).tolist()
    assert az.open(other.uri)[...].tolist() == [0, 1, 2]


@pytest.mark.parametrize("group", [None, "g", "g/h"])
def test_of_two_that_make_a_dataset_one_is_refused(tmp_path, monkeypatch, group):
    from azulejo_db import xarray as module

    place, begun = tmp_path / "d", []

    def late(*given):
        # Between the look at what is there and the making.
        if not begun:
            begun.append(True)
            dataset(1).azulejo.to(place, group=group)
        return kept(*given)

    kept = module._parents
    monkeypatch.setattr(module, "_parents", late)
    with pytest.raises(FileExistsError):
        dataset(2).azulejo.to(place, group=group)
    xr.testing.assert_identical(xr.open_dataset(place, engine="azulejo", group=group).load(), dataset(1))
