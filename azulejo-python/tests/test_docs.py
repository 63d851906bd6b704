"""The guide's blocks run."""

import pathlib
import re
import subprocess
import sys

import pytest

GUIDE = pathlib.Path(__file__).parents[2] / "docs/python/guide.md"


def test_the_guide_runs(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    for name in ("xarray", "dask.dataframe", "netCDF4", "zarr", "rioxarray", "duckdb"):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)
    assert len(blocks) >= 5
    names = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)  # noqa: S102


def test_the_pictures_are_made(tmp_path):
    pytest.importorskip("matplotlib")
    script = GUIDE.parents[2] / "azulejo-python/examples/pictures.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    made = {file.name for file in tmp_path.glob("*.png")}
    page = (GUIDE.parent / "pictures.md").read_text()
    assert made == set(re.findall(r"\(\.\./images/(.*?)\)", page)) and len(made) == 3
    assert all((GUIDE.parents[1] / "images" / name).exists() for name in made)
