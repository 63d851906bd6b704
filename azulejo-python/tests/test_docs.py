"""The guide's blocks run."""

import pathlib
import re

import pytest

GUIDE = pathlib.Path(__file__).parents[2] / "docs/python/guide.md"


def test_the_guide_runs(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    for name in ("xarray", "dask.dataframe", "netCDF4", "zarr", "rioxarray"):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)
    assert len(blocks) >= 5
    names = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)  # noqa: S102
