"""Datasets of TileDB-CF-Py 0.9.1, both ways.

What it has written lies in `data/`. What is written here is read by it where AZULEJO_TILEDB_CF names an
interpreter that has it: it cannot be imported beside a recent `tiledb` (`cargo xtask wheel` makes one).
"""

import os
import pathlib
import subprocess
import tarfile

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
import azulejo_db.xarray  # noqa: E402, F401

DATA = pathlib.Path(__file__).parent / "data"
DATASET = """
xr.Dataset(
    {"t": (("time", "x"), np.arange(12.0).reshape(3, 4), {"units": "K"}), "n": (("x",), np.arange(4, dtype=np.int32))},
    coords={"x": np.linspace(0, 1, 4)}, attrs={"title": "cf"},
)
"""
THEIRS = """
import sys
import numpy as np, tiledb.cf, xarray as xr
what, uri = sys.argv[1:]
wanted = """ + DATASET.strip() + """
if what == "write":
    tiledb.cf.from_xarray(wanted, uri)
else:
    found = xr.open_dataset(uri, engine="tiledb").load()
    for name in wanted.variables:
        assert found[name].dims == wanted[name].dims
        np.testing.assert_array_equal(found[name].values, wanted[name].values)
    assert found["t"].attrs == wanted["t"].attrs and found.attrs == wanted.attrs
"""


@pytest.fixture
def dataset():
    return eval(DATASET.strip())  # noqa: S307


def theirs(what, uri):
    python = os.environ.get("AZULEJO_TILEDB_CF")
    if not python:
        pytest.skip("AZULEJO_TILEDB_CF names no interpreter")
    subprocess.run([python, "-c", THEIRS, what, str(uri)], check=True, timeout=120)


def test_what_it_wrote_once(dataset, tmp_path):
    with tarfile.open(DATA / "tiledb_cf.tar.gz") as pack:
        pack.extractall(tmp_path, filter="data")
    found = xr.open_dataset(tmp_path / "by_theirs", engine="azulejo").load()
    xr.testing.assert_identical(found, dataset)
    assert found["n"].dtype == np.int32


def test_what_it_writes(dataset, tmp_path):
    theirs("write", tmp_path / "d")
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "d", engine="azulejo").load(), dataset)


def test_what_it_reads(dataset, tmp_path):
    dataset.azulejo.to(tmp_path / "d")
    theirs("read", tmp_path / "d")
    dataset.isel(time=slice(2)).azulejo.to(tmp_path / "grown")
    dataset.isel(time=slice(2, 3)).drop_vars(["x", "n"]).azulejo.to(tmp_path / "grown", append_dim="time")
    theirs("read", tmp_path / "grown")
