"""The guide's lines for NetCDF, Zarr, GeoTIFF and GRIB, on files that are made here."""

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
pd = pytest.importorskip("pandas")
import azulejo_db.xarray  # noqa: E402, F401


@pytest.fixture
def weather():
    """What files of weather have: packed numbers, gaps, times, text, attributes."""
    rng = np.random.default_rng(1)
    t = 280 + 10 * rng.random((5, 4, 6))
    t[1, 2, 3] = np.nan
    ds = xr.Dataset(
        {
            "t2m": (("time", "lat", "lon"), np.round(t, 2), {"units": "K", "long_name": "2 metre temperature"}),
            "station": (("lat",), np.array(["a", "bcd", "", "é"], dtype=object)),
            "n": ((), np.int32(3)),
        },
        coords={
            "time": pd.date_range("2024-01-01", periods=5, freq="6h"),
            "lat": ("lat", np.linspace(50, 47, 4), {"units": "degrees_north"}),
            "lon": ("lon", np.linspace(5, 10, 6), {"units": "degrees_east"}),
        },
        attrs={"Conventions": "CF-1.8", "history": "made up"},
    )
    ds["t2m"].encoding = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768}
    return ds


def test_netcdf(weather, tmp_path, monkeypatch):
    pytest.importorskip("netCDF4")
    monkeypatch.chdir(tmp_path)
    weather.to_netcdf("in.nc", engine="netcdf4")
    xr.open_dataset("in.nc").azulejo.to("weather")
    xr.open_dataset("weather", engine="azulejo").to_netcdf("out.nc", engine="netcdf4")
    with xr.open_dataset("in.nc") as before, xr.open_dataset("out.nc") as after:
        xr.testing.assert_identical(after.load(), before.load())
        assert after["t2m"].encoding["dtype"] == np.int16 and after["t2m"].encoding["scale_factor"] == 0.01
    with azulejo_db.open("weather/t2m") as raw:
        assert raw.dtype == np.int16, "packed as in the file"


@pytest.mark.parametrize("version", [2, 3])
def test_zarr(weather, tmp_path, monkeypatch, version):
    pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    if version == 3:
        weather["station"] = weather["station"].astype(str)
    weather.to_zarr("in.zarr", zarr_format=version, consolidated=False)
    xr.open_zarr("in.zarr", consolidated=False).azulejo.to("weather")
    found = xr.open_dataset("weather", engine="azulejo")
    xr.testing.assert_identical(
        found.load(), xr.open_zarr("in.zarr", consolidated=False).load()
    )
    found.to_zarr("out.zarr", zarr_format=version, consolidated=False)
    xr.testing.assert_equal(xr.open_zarr("out.zarr", consolidated=False).load(), found)


def test_geotiff(tmp_path, monkeypatch):
    rioxarray = pytest.importorskip("rioxarray")
    monkeypatch.chdir(tmp_path)
    cells = np.arange(2 * 30 * 40, dtype=np.int16).reshape(2, 30, 40)
    image = xr.DataArray(
        cells, dims=("band", "y", "x"),
        coords={"band": [1, 2], "y": 5000.5 - np.arange(30), "x": 300.5 + np.arange(40)},
    )
    image.rio.write_crs("EPSG:32632").rio.write_nodata(-1).rio.to_raster("in.tif")
    rioxarray.open_rasterio("in.tif").to_dataset(name="image").azulejo.to("image")
    found = xr.open_dataset("image", engine="azulejo", decode_coords="all", mask_and_scale=False)
    found["image"].rio.to_raster("out.tif")
    before, after = rioxarray.open_rasterio("in.tif"), rioxarray.open_rasterio("out.tif")
    np.testing.assert_array_equal(after.values, cells)
    assert after.rio.crs == before.rio.crs and after.rio.crs.to_epsg() == 32632
    assert after.rio.transform() == before.rio.transform()
    assert after.rio.nodata == before.rio.nodata == -1


def test_grib(tmp_path, monkeypatch):
    """cfgrib and ecCodes are asked for by nothing else: this runs where they are."""
    pytest.importorskip("cfgrib")
    eccodes = pytest.importorskip("eccodes")
    monkeypatch.chdir(tmp_path)
    values = np.random.default_rng(2).random((19, 36)).round(3) + 280
    message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    keys = {
        "Ni": 36, "Nj": 19, "iDirectionIncrementInDegrees": 10.0, "jDirectionIncrementInDegrees": 10.0,
        "longitudeOfFirstGridPointInDegrees": 0.0, "longitudeOfLastGridPointInDegrees": 350.0,
        "latitudeOfFirstGridPointInDegrees": 90.0, "latitudeOfLastGridPointInDegrees": -90.0,
        "dataDate": 20240501, "dataTime": 1200, "shortName": "2t", "bitsPerValue": 24,
    }
    for key, value in keys.items():
        eccodes.codes_set(message, key, value)
    eccodes.codes_set_values(message, values.ravel())
    with open("in.grib2", "wb") as file:
        eccodes.codes_write(message, file)
    eccodes.codes_release(message)
    xr.open_dataset("in.grib2", engine="cfgrib").azulejo.to("grib")
    found = xr.open_dataset("grib", engine="azulejo").load()
    before = xr.open_dataset("in.grib2", engine="cfgrib").load()
    found.attrs.pop("history"), before.attrs.pop("history")  # says when
    xr.testing.assert_identical(found, before)
    np.testing.assert_allclose(found["t2m"].values, values, atol=1e-3)
    assert found["t2m"].attrs["units"] == "K"
