"""GeoTIFF and Zarr through the command line, beside rioxarray, rasterio and xarray. Runs where ``azulejo`` is."""

import datetime as dt
import decimal
import os
import pathlib
import shutil
import subprocess
import tarfile

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
import azulejo_db as az  # noqa: E402
import azulejo_db.xarray  # noqa: E402, F401

_REPOSITORY = pathlib.Path(__file__).parents[2]


def _program():
    return os.environ.get("AZULEJO_PROGRAM") or shutil.which("azulejo")


pytestmark = pytest.mark.skipif(_program() is None, reason="no program azulejo is named by AZULEJO_PROGRAM")


def azulejo(*words):
    """Runs the program; what it has to say."""
    return subprocess.run([_program(), *map(str, words)], check=True, capture_output=True, text=True).stderr


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    pytest.importorskip("rioxarray")
    folder = tmp_path_factory.mktemp("tiff")
    with tarfile.open(_REPOSITORY / "azulejo-cli/tests/geotiff.tar.gz") as tar:
        tar.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "int16", "uint8-big-endian", "uint16-bigtiff", "float32-deflate", "float64-lzw", "uint16-seven", "uint8-four",
        "sparse", "points", "turned", "uint8-palette", "int64-zstd", "uint8-bits1", "float32-bits16",
    ],
)
def test_imported_equals_rioxarrays_reading(files, tmp_path, name):
    rasterio = pytest.importorskip("rasterio")
    source = files / f"{name}.tif"
    azulejo("import", source, tmp_path / "a")
    for masked in (True, False):
        ours = xr.open_dataset(tmp_path / "a", engine="azulejo", decode_coords="all", mask_and_scale=masked)
        theirs = xr.open_dataset(source, engine="rasterio", mask_and_scale=masked)
        # Of turned rasters rioxarray computes the coordinates of every cell.
        theirs = theirs.drop_vars(["xc", "yc"], errors="ignore")
        assert set(ours.variables) == set(theirs.variables) and set(ours.coords) == set(theirs.coords)
        data, wanted = ours["band_data"], theirs["band_data"]
        assert data.dims == wanted.dims
        if not masked:
            assert data.dtype == wanted.dtype
        np.testing.assert_array_equal(data.values, wanted.values.astype(data.dtype))
        for coordinate in ("band", "x", "y"):
            if coordinate in theirs.coords:
                np.testing.assert_array_equal(ours[coordinate].values, theirs[coordinate].values)
                assert ours[coordinate].dtype == theirs[coordinate].dtype
        assert data.rio.transform() == wanted.rio.transform()
        if name != "points":  # A system of its own, without a code: its keys are kept, see below.
            assert data.rio.crs == wanted.rio.crs
        assert data.attrs.get("AREA_OR_POINT") == wanted.attrs.get("AREA_OR_POINT")
        if not masked:
            np.testing.assert_equal(data.attrs.get("_FillValue"), wanted.attrs.get("_FillValue"))

    azulejo("export", tmp_path / "a", tmp_path / "b.tif")
    with rasterio.open(source) as before, rasterio.open(tmp_path / "b.tif") as after:
        np.testing.assert_array_equal(after.read(), before.read())
        assert after.transform == before.transform and after.crs == before.crs
        np.testing.assert_equal(after.nodata, before.nodata)
        assert after.scales == before.scales and after.offsets == before.offsets
        assert after.descriptions == before.descriptions
        if name == "uint8-palette":
            assert after.colormap(1) == before.colormap(1)
        if name == "uint8-four":
            assert after.colorinterp == before.colorinterp


def test_what_python_has_written_is_exported(tmp_path):
    rasterio, rioxarray = pytest.importorskip("rasterio"), pytest.importorskip("rioxarray")
    image = xr.DataArray(
        np.arange(2 * 300 * 280, dtype=np.float32).reshape(2, 300, 280), dims=("band", "y", "x"),
        coords={"band": [1, 2], "y": 5000.5 - np.arange(300) * 0.1, "x": 300.5 + np.arange(280) * 0.1},
    ).rio.write_crs("EPSG:32632").rio.write_nodata(-9999.0)
    image.to_dataset(name="image").azulejo.to(tmp_path / "a")
    azulejo("export", tmp_path / "a", tmp_path / "a.tif")
    found = rioxarray.open_rasterio(tmp_path / "a.tif")
    np.testing.assert_array_equal(found.values, image.values)
    np.testing.assert_allclose(found.x, image.x, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.y, image.y, rtol=0, atol=1e-9)
    assert found.rio.crs.to_epsg() == 32632 and found.rio.nodata == -9999.0
    # A part of it lies where it should, although it keeps the transform of the whole.
    part = xr.open_dataset(tmp_path / "a", engine="azulejo", decode_coords="all", mask_and_scale=False)
    part.isel(x=slice(40, 90), y=slice(10, 100)).azulejo.to(tmp_path / "part")
    azulejo("export", tmp_path / "part", tmp_path / "part.tif")
    found = rioxarray.open_rasterio(tmp_path / "part.tif")
    np.testing.assert_allclose(found.x, image.x[40:90], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found.values, image.values[:, 10:100, 40:90])
    # A system that has no code stands beside the file, where GDAL finds it, and goes when the file is replaced.
    own = image.rio.write_crs("+proj=lcc +lat_1=47 +lat_2=49 +lat_0=48 +lon_0=11 +ellps=GRS80 +units=m")
    own.to_dataset(name="image").azulejo.to(tmp_path / "own")
    assert "own.tif.aux.xml" in azulejo("export", tmp_path / "own", tmp_path / "own.tif")
    assert rioxarray.open_rasterio(tmp_path / "own.tif").rio.crs == own.rio.crs
    azulejo("import", tmp_path / "own.tif", tmp_path / "own-again")
    again = xr.open_dataset(tmp_path / "own-again", engine="azulejo", decode_coords="all", mask_and_scale=False)
    assert again.rio.crs == own.rio.crs
    azulejo("export", tmp_path / "own-again", tmp_path / "twice.tif")
    assert rioxarray.open_rasterio(tmp_path / "twice.tif").rio.crs == own.rio.crs
    assert "EPSG" not in azulejo("export", tmp_path / "part", tmp_path / "own.tif", "--force")
    assert rioxarray.open_rasterio(tmp_path / "own.tif").rio.crs.to_epsg() == 32632
    assert not (tmp_path / "own.tif.aux.xml").exists()
    # Rows and columns alone.
    image.isel(band=0, drop=True).to_dataset(name="flat").azulejo.to(tmp_path / "flat")
    azulejo("export", tmp_path / "flat", tmp_path / "flat.tif")
    with rasterio.open(tmp_path / "flat.tif") as file:
        np.testing.assert_array_equal(file.read(1), image.values[0])


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_imported_is_what_xarray_sees(tmp_path, version):
    pytest.importorskip("zarr")
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    t = np.round(280 + rng.random((5, 4, 6)), 2)
    t[1, 2, 3] = np.nan
    ds = xr.Dataset(
        {
            "t2m": (("time", "lat", "lon"), t, {"units": "K"}),
            "wind": (("time", "lat"), rng.random((5, 4)).astype("float32"), {"levels": [1, 2, 3]}),
            "station": (("lat",), np.array(["a", "bcd", "", "é"], dtype=object if version == 2 else str)),
            "n": ((), np.int32(3)),
            "flag": (("lon",), np.array([True, False, True, True, False, False])),
            "span": (("time",), np.arange(5).astype("timedelta64[h]").astype("timedelta64[ns]")),
        },
        coords={
            "time": pd.date_range("2024-01-01", periods=5, freq="6h"),
            "lat": np.linspace(50, 47, 4), "lon": np.linspace(5, 10, 6),
            "height": (("lat", "lon"), rng.random((4, 6))),
        },
        attrs={"Conventions": "CF-1.8", "numbers": [1.5, 2.5]},
    )
    ds["t2m"].encoding = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768}
    ds.to_zarr(tmp_path / "in.zarr", zarr_format=version, consolidated=False)
    azulejo("import", tmp_path / "in.zarr", tmp_path / "a")
    for decoded in (True, False):
        theirs = xr.open_zarr(tmp_path / "in.zarr", consolidated=False, decode_cf=decoded).load()
        ours = xr.open_dataset(tmp_path / "a", engine="azulejo", decode_cf=decoded).load()
        xr.testing.assert_equal(ours, theirs)
        if decoded:
            assert set(ours.coords) == set(theirs.coords)
            for name, variable in theirs.variables.items():
                assert ours[name].dtype.kind in ("O" if variable.dtype.kind in "UTO" else variable.dtype.kind)
                np.testing.assert_equal(dict(ours[name].attrs), dict(variable.attrs))
            np.testing.assert_equal(ours.attrs, theirs.attrs)
    # And what Python writes of the same store is the same dataset.
    xr.open_zarr(tmp_path / "in.zarr", consolidated=False).azulejo.to(tmp_path / "b")
    written = xr.open_dataset(tmp_path / "b", engine="azulejo").load()
    xr.testing.assert_equal(written, xr.open_dataset(tmp_path / "a", engine="azulejo").load())
    assert set(az.open(tmp_path / "a")) == set(az.open(tmp_path / "b"))


@pytest.mark.parametrize("made", [
    [True, False, True], [decimal.Decimal("1.5"), None, decimal.Decimal("2.5")], [b"ab", b"cd", b"ab"],
    [dt.date(2024, 1, 1), None, dt.date(2024, 1, 1)], [1.5, 2.5, None], ["a", None, "b"],
])
def test_parquet_files_that_say_a_column_was_a_dictionary(tmp_path, made):
    """As pandas writes categories of any type: of some the reader of Parquet would panic."""
    kind = pa.binary(2) if isinstance(made[0], bytes) else None
    pq.write_table(pa.table({"c": pa.array(made, kind).dictionary_encode()}), tmp_path / "in.parquet")
    azulejo("import", tmp_path / "in.parquet", tmp_path / "a")
    azulejo("export", tmp_path / "a", tmp_path / "out.parquet")
    found = pq.read_table(tmp_path / "out.parquet")["c"].to_pylist()
    assert found == [float(v) if isinstance(v, decimal.Decimal) else v for v in made]


def test_labels_of_a_fixed_length_are_read_by_others(tmp_path):
    made = [b"ab", b"cd", b"ab"]
    table = pa.table({"c": pa.array(made, pa.binary(2)).dictionary_encode(), "n": [1, 2, 1]})
    with pa.ipc.new_file(tmp_path / "in.arrow", table.schema) as file:
        file.write_table(table)
    azulejo("import", tmp_path / "in.arrow", tmp_path / "a")
    assert az.open(tmp_path / "a").schema.enumerations["c"]
    azulejo("export", tmp_path / "a", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["c"].to_pylist() == made
    with pytest.raises(subprocess.CalledProcessError) as refused:
        azulejo("import", tmp_path / "out.parquet", tmp_path / "b", "--enumerate", "n")
    assert "holds INT64, not text" in refused.value.stderr


@pytest.mark.parametrize("unit", ["Y", "M", "W", "h", "m", "s"])
def test_parquet_keeps_times_as_times(tmp_path, unit):
    times = np.array([0, -1, 100], f"datetime64[{unit}]")
    az.write(tmp_path / "a", times, name="t")
    azulejo("export", tmp_path / "a", tmp_path / "t.parquet")
    found = pq.read_table(tmp_path / "t.parquet")["t"]
    assert found.type == pa.timestamp("ms")
    assert found.to_numpy().tolist() == times.astype("datetime64[ms]").tolist()
    azulejo("import", tmp_path / "t.parquet", tmp_path / "b")
    again = az.open(tmp_path / "b")[...]
    assert again.dtype == times.dtype and (again == times).all()


def test_no_time_stays_none_in_parquet(tmp_path):
    az.write(tmp_path / "a", np.array(["NaT", "2024-01-01"], "datetime64[s]"), name="t")
    azulejo("export", tmp_path / "a", tmp_path / "t.parquet")
    azulejo("import", tmp_path / "t.parquet", tmp_path / "b")
    assert az.open(tmp_path / "b")[...].tolist() == np.array(["NaT", "2024-01-01"], "datetime64[s]").tolist()


@pytest.mark.parametrize("version", ["zarr", "zarr2"])
def test_axes_without_coordinates_are_exported_as_such(tmp_path, version):
    ds = xr.Dataset({"z": ("q", np.array([], "i4")), "w": (("q", "r"), np.zeros((0, 2))), "v": ("r", [1.0, 2.0])})
    ds.azulejo.to(tmp_path / "d")
    azulejo("export", tmp_path / "d", tmp_path / "d.zarr", "--format", version)
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "d.zarr", consolidated=False).load(), ds)
    azulejo("import", tmp_path / "d.zarr", tmp_path / "again")
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "again", engine="azulejo").load(), ds)


def test_named_snapshots(tmp_path):
    uri = str(tmp_path / "a")
    az.write(uri, np.arange(6.0))
    azulejo("snapshot", "create", uri, "first")
    with az.open(uri, "w") as array:
        array[2:4] = np.array([-1.0, -2.0])
    assert az.open(uri)[...].tolist() == [0, 1, -1, -2, 4, 5]
    then = az.open(f"{uri}@first")
    assert then[...].tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(az.NotFoundError, match="second"):
        az.open(f"{uri}@second")
