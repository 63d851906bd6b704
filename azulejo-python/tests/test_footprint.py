"""What the package takes: memory beside a result, and time to be imported."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

import azulejo_db as az
from azulejo_db import _core

PEAK = """
import pathlib, re, sys
import numpy as np
import azulejo_db as az
{imports}
def peak():
    # Of this program alone; getrusage counts what its parent had, too.
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) * 1024
config = {{"sm.mem.total_budget": {budget}}}
a = az.open(sys.argv[1], config=config)
before = peak()
result = {read}
print(peak() - before, {size})
"""
BUDGET = 64 << 20


def grown(script, uri):
    done = subprocess.run(
        [sys.executable, "-c", script, str(uri)], capture_output=True, text=True, timeout=300, check=True
    )
    return tuple(int(n) for n in done.stdout.split())


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """160 MB of numbers that hardly compress, dense and sparse."""
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(1)
    az.write(folder / "dense", rng.random((20, 1_000_000)), tiles=(1, 100_000), name="v")
    schema = az.Schema(
        [az.Dim("d", (0, 10**9), 10**6)], [az.Attr("v", "float64")], sparse=True, capacity=50_000
    )
    az.create(folder / "sparse", schema)
    for part in range(5):
        n = 2_000_000
        az.open(folder / "sparse", "w").write({"d": np.arange(n) + part * n, "v": rng.random(n)})
    return folder


@pytest.mark.parametrize(
    ("name", "read", "size", "imports", "times"),
    [
        ("dense", "a[...]", "result.nbytes", "", 1),
        ("dense", "a.read(out=np.zeros((20, 1_000_000)))", "result.nbytes", "", 1),
        ("sparse", "a.query().to_numpy()", "sum(v.nbytes for v in result.values())", "", 1),
        ("sparse", "a.query().to_arrow()", "result.nbytes", "import pyarrow", 1),
        ("sparse", "a.query().to_pandas()", "result.memory_usage(index=False).sum()", "import pandas", 1),
    ],
)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks are read from /proc")
def test_a_read_takes_its_result_and_its_budget(large, name, read, size, imports, times):
    if imports:
        pytest.importorskip(imports.split()[-1].split(".")[0])
    script = PEAK.format(read=read, size=size, imports=imports, budget=BUDGET)
    peak, result = grown(script, large / name)
    assert result == 160_000_000
    print(f"{name} {read}: {peak / 1e6:.0f} MB for {result / 1e6:.0f} MB and a budget of {BUDGET / 1e6:.0f}")
    assert result * 0.9 < peak < times * result + BUDGET + (24 << 20)


def test_the_import(capsys):
    script = """
import time
import numpy
begun = time.process_time()
import azulejo_db, sys
print(time.process_time() - begun)
assert not {"pandas", "pyarrow", "xarray", "dask", "asyncio", "tiledb"} & set(sys.modules)
"""
    took = min(
        float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    )
    with capsys.disabled():
        print(f"\nimport azulejo_db, after numpy: {took * 1000:.0f} ms of this program's own")
    # Unoptimised builds are many times as large.
    optimised = pathlib.Path(_core.__file__).stat().st_size < 40 << 20
    assert took < (0.1 if optimised else 1)
