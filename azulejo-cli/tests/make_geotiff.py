"""Makes the files that `geotiff.rs` imports, as GDAL writes them: `geotiff.tar.gz` beside this file.

    pip install rasterio && python make_geotiff.py

The cell of band b, row r and column c (from 0) is (7 b + 53 r + c) % 100, reals half of one more;
of fewer bits its lowest ones. Rows and columns 16 to 31 of `sparse` were never written.
"""

import pathlib
import tarfile
import tempfile

import numpy as np
import rasterio
from rasterio.transform import Affine, from_origin

SHAPE = (2, 45, 53)


def cells(dtype, shape=SHAPE):
    b, r, c = np.indices(shape)
    plain = (7 * b + 53 * r + c) % 100
    return (plain + 0.5 if np.dtype(dtype).kind == "f" else plain).astype(dtype)


def write(folder, name, dtype, shape=SHAPE, bits=None, **options):
    given = {"crs": "EPSG:32632", "transform": from_origin(300, 5001, 0.1, 0.2), **options}
    profile = {"driver": "GTiff", "count": shape[0], "height": shape[1], "width": shape[2], "dtype": dtype}
    with rasterio.open(folder / f"{name}.tif", "w", **profile, **given) as file:
        file.write(cells(dtype, shape) & ((1 << bits) - 1) if bits else cells(dtype, shape))


def main():
    here = pathlib.Path(__file__).parent
    tiled = {"tiled": True, "blockxsize": 16, "blockysize": 32}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for dtype in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"):
            write(folder, f"{dtype}", dtype)
            write(folder, f"{dtype}-big-endian", dtype, ENDIANNESS="BIG", interleave="band", **tiled)
            predictor = 3 if dtype.startswith("f") else 2
            for compress in ("lzw", "deflate", "zstd", "packbits"):
                more = {} if compress == "packbits" else {"predictor": predictor}
                order = {"ENDIANNESS": "BIG"} if compress == "lzw" else {}
                write(folder, f"{dtype}-{compress}", dtype, compress=compress, **more, **order, **tiled)
            write(folder, f"{dtype}-strips", dtype, compress="lzw", predictor=2, blockysize=7, interleave="band")
        for bits in (1, 2, 4, 12, 20):
            dtype = "uint8" if bits < 8 else "uint16" if bits < 16 else "uint32"
            write(folder, f"{dtype}-bits{bits}", dtype, bits=bits, NBITS=bits, compress="lzw")
        write(folder, "float32-bits16", "float32", NBITS=16, compress="deflate", predictor=3)
        write(folder, "uint16-bigtiff", "uint16", BIGTIFF="YES", **tiled)
        write(folder, "uint8-four", "uint8", shape=(4, 45, 53), photometric="RGB", compress="deflate", **tiled)
        write(folder, "uint16-seven", "uint16", shape=(7, 45, 53), compress="lzw", predictor=2)
        write(folder, "uint8-jpeg", "uint8", shape=(1, 45, 53), compress="jpeg")
        write(folder, "complex64", "complex64")
        with rasterio.open(folder / "uint8-palette.tif", "w", driver="GTiff", count=1, height=45, width=53,
                           dtype="uint8", photometric="palette") as file:
            file.write(cells("uint8", (1, 45, 53)))
            file.write_colormap(1, {i: (i, 2 * i, 255 - i) for i in range(100)})
        with rasterio.open(folder / "sparse.tif", "w", driver="GTiff", count=1, height=45, width=53, dtype="int16",
                           nodata=-1, SPARSE_OK="TRUE", tiled=True, blockxsize=16, blockysize=16) as file:
            data = cells("int16", (1, 45, 53))
            data[0, 16:32, 16:32] = -1
            file.write(data)
        with rasterio.open(folder / "turned.tif", "w", driver="GTiff", count=1, height=45, width=53, dtype="uint8",
                           crs="EPSG:4326", transform=Affine(0.5, 0.25, 10, -0.25, 0.5, 50)) as file:
            file.write(cells("uint8", (1, 45, 53)))
        with rasterio.open(folder / "points.tif", "w", driver="GTiff", count=1, height=45, width=53, dtype="float32",
                           crs="+proj=laea +lat_0=52 +lon_0=10 +datum=WGS84", nodata=float("nan"),
                           transform=from_origin(300, 5001, 2, 2)) as file:
            file.update_tags(AREA_OR_POINT="Point", TIFFTAG_SOFTWARE="made up", kind="test")
            file.set_band_description(1, "height")
            file.scales, file.offsets = (0.5,), (100.0,)
            file.write(cells("float32", (1, 45, 53)))
        with rasterio.open(folder / "int16.tif", "r+") as file:
            file.build_overviews([2, 4])
        with tarfile.open(here / "geotiff.tar.gz", "w:gz") as tar:
            for path in sorted(folder.iterdir()):
                tar.add(path, path.name, filter=plain)


def plain(info):
    info.mtime, info.uid, info.gid, info.uname, info.gname = 0, 0, 0, "", ""
    return info


if __name__ == "__main__":
    main()
