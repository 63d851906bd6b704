"""`azulejo serve --zarr` as zarr-python reads it; `cargo xtask web zarr` runs this.

serve_zarr.py PROGRAM ARRAYS, where ARRAYS has the group `demo` of the browser's tests.
"""

import json
import subprocess
import sys

import numpy as np
import zarr

program, arrays = sys.argv[1:]


def served(uri, *options):
    process = subprocess.Popen(
        [program, "serve", "--zarr", uri, "--json", *options], stdout=subprocess.PIPE, text=True
    )
    text = ""
    while True:
        text += process.stdout.readline()
        try:
            return process, json.loads(text)["url"]
        except json.JSONDecodeError:
            continue


def group(url):
    return zarr.open_group(zarr.storage.FsspecStore.from_url(url, read_only=True), mode="r")


process, url = served(f"{arrays}/demo/grid")
try:
    root = group(url)
    assert root.attrs["unit"] == "m"
    v = root["v"]
    assert v.shape == (1000, 1000) and v.chunks == (100, 100) and v.dtype == np.int32, v
    expected = np.arange(1_000_000, dtype=np.int32).reshape(1000, 1000)
    expected[100:200] = -1
    np.testing.assert_array_equal(v[:], expected)
    np.testing.assert_array_equal(v[95:105, ::37], expected[95:105, ::37])
finally:
    process.terminate()

process, url = served(f"{arrays}/demo/grid", "--at", "1704067200000")
try:
    before = np.arange(1_000_000, dtype=np.int32).reshape(1000, 1000)
    np.testing.assert_array_equal(group(url)["v"][90:210], before[90:210])
finally:
    process.terminate()

process, url = served(f"{arrays}/demo/relief")
try:
    height = group(url)["height"]
    assert height.shape == (4, 1536, 1536) and height.dtype == np.float32
    assert height.metadata.dimension_names == ("season", "y", "x")
    whole = height[1, 500:700, 900:1500]
    again = np.array([[height[1, y, x] for x in (900, 1023, 1024, 1499)] for y in (500, 511, 512, 699)])
    np.testing.assert_array_equal(again, whole[np.ix_((0, 11, 12, 199), (0, 123, 124, 599))])
    assert np.isfinite(whole).all() and whole.std() > 10
finally:
    process.terminate()
print("zarr-python", zarr.__version__, "reads what azulejo serve --zarr serves")
