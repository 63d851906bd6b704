"""xarray's own tests of Zarr's appends, regions, modes and late computing, and of trees, on this
engine: ``to_zarr`` and ``to_netcdf`` write, and engines "zarr" and "netcdf4" read, through it.
"""

import contextlib

import pytest

xr = pytest.importorskip("xarray")
backends = pytest.importorskip("xarray.tests.test_backends")
pytest.importorskip("zarr")
pytest.importorskip("dask")

import azulejo_db.xarray  # noqa: E402, F401
from xarray.tests import test_backends_datatree as trees  # noqa: E402
from xarray.tests.conftest import *  # noqa: E402, F401, F403
from xarray.tests.test_backends_datatree import *  # noqa: E402, F401, F403 - fixtures

for _name in [n for n in globals() if n.startswith("Test") or n.startswith("test_")]:
    del globals()[_name]

time_unit = pytest.fixture(params=["s", "ns"])(lambda request: request.param)
default_zarr_format = pytest.fixture(lambda: None)
use_dask = pytest.fixture(params=[False, True])(lambda request: request.param)

#: Of 74 tests. The others look at Zarr's files, chunks, codecs or consolidated metadata; or expect
#: that chunks which cut tiles are refused, which is safe here: each is a fragment of its own.
ZARR = """
test_write_persistence_modes test_group test_dataset_caching test_append_write
test_append_with_mode_rplus_success test_append_with_mode_rplus_fails
test_append_with_invalid_dim_raises test_append_with_no_dims_raises
test_append_with_append_dim_not_set_raises test_append_with_mode_not_a_raises
test_append_with_existing_encoding_raises test_append_with_new_variable
test_append_with_append_dim_no_overwrite test_to_zarr_compute_false_roundtrip
test_to_zarr_append_compute_false_roundtrip test_save_emptydim
test_no_warning_from_open_emptydim_with_chunks test_write_region test_region_scalar
test_write_region_mode test_write_preexisting_override_metadata test_write_region_errors
test_write_read_select_write test_chunked_datetime64_or_timedelta64
test_chunked_cftime_datetime test_manual_chunk test_write_uneven_dask_chunks test_encoding_chunksizes
""".split()
REGIONS = """
test_zarr_region_auto test_zarr_region_auto_noncontiguous test_zarr_region_append test_zarr_region
""".split()
#: Of 12. The others ask for zlib's settings, netCDF4's own view of dimensions, and bytes in memory.
TREES = """
test_to_netcdf test_decode_cf test_to_netcdf_inherited_coords test_write_subgroup test_compute_false
test_open_datatree_chunks test_open_datatree_specific_group test_to_memoryview_compute_false
test_default_write_engine
""".split()


def _write(data, store, *, encoding=None, **options):
    ours = {k: v for k, v in options.items() if k not in ("consolidated", "write_empty_chunks", "zarr_format", "engine", "safe_chunks")}
    if encoding:
        ours["encoding"] = {
            name: {k: v for k, v in one.items() if k != "chunks"} for name, one in encoding.items()
        }
    if isinstance(data, xr.DataArray):
        data = data.to_dataset(name=data.name or "x")
    return data.azulejo.to(store, **ours)


@pytest.fixture(autouse=True)
def ours(monkeypatch):
    """xarray's names for Zarr and netCDF stand for this engine."""
    opened = {name: getattr(xr, name) for name in ("open_dataset", "open_datatree")}

    def opener(name):
        def open_(path, **options):
            kept = {k: v for k, v in options.items() if k not in ("consolidated", "mode", "engine", "zarr_format")}
            return opened[name](str(path), engine="azulejo", **kept)

        return open_

    def tree(self, path=None, **options):
        if path is None:
            raise NotImplementedError("to_netcdf() with compute=False is not yet implemented")
        options.pop("engine", None)
        return self.azulejo.to(str(path), mode="w", **options)

    monkeypatch.setattr(xr.Dataset, "to_zarr", _write)
    monkeypatch.setattr(xr.DataArray, "to_zarr", _write)
    monkeypatch.setattr(xr, "open_zarr", opener("open_dataset"))
    monkeypatch.setattr(xr, "open_dataset", opener("open_dataset"))
    monkeypatch.setattr(xr.DataTree, "to_netcdf", tree)
    monkeypatch.setattr(trees, "open_datatree", opener("open_datatree"))




class _Zarr(backends.ZarrBase):
    @contextlib.contextmanager
    def create_zarr_target(self):
        with backends.create_tmp_file(suffix=".az") as path:
            yield path

    def open(self, path, **kwargs):
        kwargs.pop("backend_kwargs", None)
        return xr.open_dataset(path, **kwargs)


for _name in dir(_Zarr):
    if _name.startswith("test_") and _name not in ZARR:
        setattr(_Zarr, _name, None)


class TestLikeZarr(_Zarr):
    pass


class TestRegions(backends.TestZarrRegionAuto):
    def save(self, target, ds, **kwargs):
        return _write(ds, target, **kwargs)


for _name in dir(TestRegions):
    if _name.startswith("test_") and _name not in REGIONS:
        setattr(TestRegions, _name, None)


class TestTrees(trees.NetCDFIOBase):
    engine = "azulejo"


for _name in dir(TestTrees):
    if _name.startswith("test_") and _name not in TREES:
        setattr(TestTrees, _name, None)
