"""Makes tests/zarr.tar.gz, stores as zarr-python and xarray write them.

    pip install zarr==3.1.6 xarray==2026.9 numcodecs==0.16.6; python azulejo-cli/tests/make_zarr.py

Each array but those of `ds2` and `ds3` holds 0, 0, 0, 1, 1, 1, 2 .. in its own type.
"""

import io
import tarfile
import tempfile
from pathlib import Path

import numcodecs
import numpy as np
import xarray as xr
import zarr
from zarr import codecs as c

root = Path(tempfile.mkdtemp())
cells = (np.arange(40 * 50) // 3).reshape(40, 50)


def add(group, name, values=cells.astype("<i4"), chunks=(16, 20), **more):
    array = group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=chunks, **more)
    array[:] = values


v3 = zarr.open_group(root / "v3.zarr", mode="w", zarr_format=3, attributes={"title": "codecs"})
add(v3, "raw", compressors=None)
add(v3, "gzip", compressors=c.GzipCodec())
add(v3, "zstd", compressors=c.ZstdCodec(checksum=True))
for codec in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
    for shuffle in ("noshuffle", "shuffle", "bitshuffle"):
        add(v3, f"blosc_{codec}_{shuffle}", compressors=c.BloscCodec(cname=codec, shuffle=shuffle, clevel=5, typesize=4))
add(v3, "crc", compressors=[c.ZstdCodec(), c.Crc32cCodec()])
add(v3, "big", compressors=None, serializer=c.BytesCodec(endian="big"))
add(v3, "turned", filters=[c.TransposeCodec(order=(1, 0))], compressors=c.GzipCodec())
add(v3, "sharded", chunks=(4, 10), shards=(16, 20), compressors=c.ZstdCodec())
add(v3, "half", cells.astype("f2"))
add(v3, "double", cells.astype("f8"), fill_value=float("nan"))
add(v3, "byte", (cells % 100).astype("u1"), chunk_key_encoding={"name": "v2", "separator": "."})
holes = v3.create_array("holes", shape=(40, 50), chunks=(16, 20), dtype="i4", fill_value=7)
holes[:16, :20] = cells[:16, :20]

v2 = zarr.open_group(root / "v2.zarr", mode="w", zarr_format=2)
add(v2, "raw", compressors=None)
add(v2, "zlib", compressors=numcodecs.Zlib())
add(v2, "gzip", compressors=numcodecs.GZip())
add(v2, "bz2", compressors=numcodecs.BZ2())
add(v2, "lz4", compressors=numcodecs.LZ4())
add(v2, "zstd", compressors=numcodecs.Zstd())
add(v2, "blosc", compressors=numcodecs.Blosc(cname="snappy") if "snappy" in numcodecs.blosc.list_compressors() else numcodecs.Blosc())
add(v2, "shuffled", filters=[numcodecs.Shuffle(4)], compressors=numcodecs.Zlib())
add(v2, "fortran", order="F", compressors=numcodecs.Zlib())
add(v2, "big", cells.astype(">i8"), compressors=None)
add(v2, "nested", chunk_key_encoding={"name": "v2", "separator": "/"}, compressors=None)

ds = xr.Dataset(
    {
        "t2m": (("time", "y", "x"), np.linspace(250, 300, 4 * 6 * 5, dtype="f4").reshape(4, 6, 5), {"units": "K"}),
        "count": (("y", "x"), np.arange(30, dtype="i2").reshape(6, 5), {"levels": [1, 2, 3]}),
        "station": ("y", np.array(["a", "bb", "", "é", "eeeee", "f"])),
        "crs": ((), 0, {"grid_mapping_name": "latitude_longitude"}),
    },
    coords={
        "time": np.array(["2024-05-01", "2024-05-02", "2024-05-03", "2024-05-04"], "M8[ns]"),
        "x": np.arange(5) * 0.5,
        "lat": (("y", "x"), np.arange(30.0).reshape(6, 5)),
    },
    attrs={"title": "a small dataset", "version": 3},
)
ds["t2m"][0, 0, 0] = np.nan
for version in (2, 3):
    encoding = {"t2m": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 270.0, "_FillValue": -32768, "chunks": (2, 3, 5)}}
    ds.to_zarr(root / f"ds{version}.zarr", mode="w", zarr_format=version, encoding=encoding)

out = Path(__file__).with_name("zarr.tar.gz")
with tarfile.open(out, "w:gz", compresslevel=9) as tar:
    for path in sorted(root.rglob("*")):
        if path.is_file():
            info = tarfile.TarInfo(str(path.relative_to(root)))
            data = path.read_bytes()
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
print(out, out.stat().st_size)
