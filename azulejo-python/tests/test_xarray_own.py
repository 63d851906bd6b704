"""xarray's own tests of backends, on this one."""

import contextlib

import pytest

xr = pytest.importorskip("xarray")
backends = pytest.importorskip("xarray.tests.test_backends")

import azulejo_db.xarray  # noqa: E402, F401
from xarray.tests.conftest import *  # noqa: E402, F401, F403
from xarray.tests.test_backends import CFEncodedBase  # noqa: E402

_use_dask = getattr(backends, "use_dask", None)
_time_unit = getattr(backends, "time_unit", None)


class TestAzulejo(CFEncodedBase):
    engine = "azulejo"
    file_format = None

    @contextlib.contextmanager
    def create_store(self):
        import tempfile

        from azulejo_db.xarray import AzulejoStore

        with tempfile.TemporaryDirectory() as folder:
            yield AzulejoStore(folder + "/store", mode="w")

    def save(self, dataset, path, **kwargs):
        kwargs.pop("format", None), kwargs.pop("engine", None)
        kwargs.setdefault("mode", "w")
        return dataset.azulejo.to(path, **kwargs)

    @contextlib.contextmanager
    def open(self, path, **kwargs):
        with xr.open_dataset(path, engine=self.engine, **kwargs) as dataset:
            yield dataset

    @contextlib.contextmanager
    def roundtrip(self, data, save_kwargs=None, open_kwargs=None, allow_cleanup_failure=False):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            self.save(data, folder + "/ds", **(save_kwargs or {}))
            with self.open(folder + "/ds", **(open_kwargs or {})) as dataset:
                yield dataset
