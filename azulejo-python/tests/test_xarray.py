import datetime as dt
import time

import numpy as np
import pandas as pd
import pytest

import azulejo_db as az

xr = pytest.importorskip("xarray")
import azulejo_db.xarray  # noqa: E402, F401 - ds.azulejo


@pytest.fixture
def weather():
    time = pd.date_range("2024-01-01", periods=6, freq="D")
    t = 280 + np.arange(6 * 4 * 5, dtype=np.float32).reshape(6, 4, 5)
    t[2, 1, 1] = np.nan
    return xr.Dataset(
        {
            "t": (("time", "lat", "lon"), t, {"units": "K"}),
            "place": (("lat",), np.array(["a", "bc", "", "ü"], dtype=object)),
            "count": ((), np.int64(7)),
            "flag": (("lon",), np.array([True, False, True, True, False])),
        },
        coords={"time": time, "lat": np.linspace(-10.0, 10.0, 4), "lon": np.arange(5)},
        attrs={"title": "weather", "version": 3},
    )


def test_round_trip(weather, tmp_path):
    weather.azulejo.to(tmp_path / "w")
    with xr.open_dataset(tmp_path / "w", engine="azulejo") as found:
        xr.testing.assert_identical(found.load(), weather)
        assert found["t"].dtype == np.float32
    with pytest.raises(FileExistsError):
        weather.azulejo.to(tmp_path / "w")
    weather.isel(lat=[0]).azulejo.to(tmp_path / "w", mode="w")
    assert xr.open_dataset(tmp_path / "w").sizes["lat"] == 1


@pytest.mark.parametrize(
    "key",
    [
        {"time": 2}, {"lat": slice(1, 3), "lon": slice(None, None, 2)}, {"time": [4, 0, 1]},
        {"time": slice(None, None, -1)}, {"lon": -1, "lat": [0, -1]},
        {"time": xr.DataArray([0, 5, 2], dims="p"), "lat": xr.DataArray([3, 0, 1], dims="p")},
    ],
    ids=str,
)
def test_lazy_indexing(weather, tmp_path, key):
    weather.azulejo.to(tmp_path / "w")
    found = xr.open_dataset(tmp_path / "w", engine="azulejo")
    xr.testing.assert_identical(found["t"].isel(key).load(), weather["t"].isel(key))


def test_append_and_region(weather, tmp_path):
    weather.isel(time=slice(0, 4)).azulejo.to(tmp_path / "w")
    weather.isel(time=slice(4, 6)).azulejo.to(tmp_path / "w", append_dim="time")
    xr.testing.assert_equal(xr.open_dataset(tmp_path / "w").load(), weather)
    part = weather[["t"]].isel(time=slice(1, 3)) * 0
    alone = part.drop_vars(["lat", "lon"])
    alone.azulejo.to(tmp_path / "w", region={"time": slice(1, 3)})
    found = xr.open_dataset(tmp_path / "w").load()
    assert float(found["t"][1].sum()) == 0 and float(found["t"][3].sum()) > 0
    part.azulejo.to(tmp_path / "w", region="auto")


def test_dask_reads_and_writes(weather, tmp_path):
    pytest.importorskip("dask")
    weather.chunk({"time": 2}).azulejo.to(tmp_path / "w")
    found = xr.open_dataset(tmp_path / "w", engine="azulejo", chunks={})
    assert found["t"].chunks[0] == (2, 2, 2)
    xr.testing.assert_identical(found.compute(), weather)
    later = weather.chunk({"time": 3}).azulejo.to(tmp_path / "later", compute=False)
    later.compute()
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "later").load(), weather)


def test_time_travel(weather, tmp_path):
    weather.azulejo.to(tmp_path / "w")
    time.sleep(0.02)
    before = int(time.time() * 1000)
    time.sleep(0.02)
    (weather[["t"]] * 0).drop_vars(["lat", "lon"]).azulejo.to(tmp_path / "w", region={"time": slice(0, 6)})
    assert float(xr.open_dataset(tmp_path / "w")["t"].sum()) == 0
    assert float(xr.open_dataset(tmp_path / "w", engine="azulejo", at=before)["t"].sum()) > 0


def test_trees(weather, tmp_path):
    tree = xr.DataTree.from_dict({"/": weather[["count"]], "/a": weather[["t"]], "/a/b": weather[["place"]]})
    for path, node in tree.subtree_with_keys:
        node.to_dataset(inherit=False).azulejo.to(tmp_path / "w", mode="a", group=path if path != "." else None)
    found = xr.open_datatree(tmp_path / "w", engine="azulejo")
    assert set(found.groups) == {"/", "/a", "/a/b"}
    np.testing.assert_array_equal(found["a"]["t"].values, weather["t"].values)


def test_sparse_arrays_say_what_to_do(tmp_path):
    az.create_group(tmp_path / "g")
    schema = az.Schema([az.Dim("x", (0, 9), 10)], [az.Attr("a", "int8")], sparse=True)
    az.create(tmp_path / "g" / "s", schema)
    az.open(tmp_path / "g", "w").add(str(tmp_path / "g" / "s"), "s")
    with pytest.raises(ValueError, match="query"):
        xr.open_dataset(tmp_path / "g", engine="azulejo")


def test_the_reference_sees_the_layout(weather, tmp_path):
    tiledb = pytest.importorskip("tiledb")
    weather.azulejo.to(tmp_path / "w")
    with tiledb.Group(str(tmp_path / "w")) as group:
        assert group.meta["title"] == "weather"
        assert {member.name for member in group} == set(weather.variables)
    with tiledb.open(str(tmp_path / "w" / "lat")) as lat:
        assert lat.schema.attr(0).name == "lat_"
        np.testing.assert_array_equal(lat[0:4]["lat_"], weather["lat"].values)
    with tiledb.open(str(tmp_path / "w" / "t")) as t:
        assert t.meta["__tiledb_attr.t.units"] == "K"


def test_a_write_that_fails_leaves_nothing(tmp_path):
    da = pytest.importorskip("dask.array")

    def fail(block):
        raise ZeroDivisionError("on purpose")

    bad = xr.Dataset({"a": ("x", np.arange(3)), "b": ("x", da.zeros(3, chunks=1).map_blocks(fail, meta=np.empty(0)))})
    with pytest.raises(ZeroDivisionError):
        bad.azulejo.to(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    unknown = xr.Dataset({"a": ("x", np.arange(3)), "c": ("x", np.zeros(3, "c8"))})
    with pytest.raises(TypeError):
        unknown.azulejo.to(tmp_path / "new", group="one/two")
    assert not (tmp_path / "new").exists()
    with pytest.raises(TypeError):
        xr.DataTree.from_dict({"/": bad[["a"]], "/below": unknown}).azulejo.to(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    # What was there stays as it was.
    good = bad[["a"]]
    good.azulejo.to(tmp_path / "there")
    before = sorted(p.name for p in (tmp_path / "there").iterdir())
    for wrong in (bad[["b"]], unknown[["c"]]):
        with pytest.raises((ZeroDivisionError, TypeError)):
            wrong.azulejo.to(tmp_path / "there", mode="a")
        with pytest.raises((ZeroDivisionError, TypeError)):
            wrong.azulejo.to(tmp_path / "there", mode="a", group="deep")
    assert sorted(p.name for p in (tmp_path / "there").iterdir()) == before
    assert list(az.open(tmp_path / "there")) == ["a"]
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "there", engine="azulejo").load(), good)


def test_points_are_read_one_by_one(tmp_path, monkeypatch):
    cells = np.arange(4 * 300 * 200, dtype=np.float64).reshape(4, 300, 200)
    ds = xr.Dataset({"t": (("time", "y", "x"), cells)}, coords={"y": np.arange(300) * 10, "x": np.arange(200)})
    ds.azulejo.to(tmp_path / "d", encoding={"t": {"tiles": (1, 50, 50)}})
    found = xr.open_dataset(tmp_path / "d", engine="azulejo")
    read, read_cells = [], az.Array._read

    def noted(self, fields, **query):
        columns = read_cells(self, fields, **query)
        read.append(len(columns[fields[0]]))
        return columns

    monkeypatch.setattr(az.Array, "_read", noted)
    rng = np.random.default_rng(1)
    y, x = (xr.DataArray(rng.integers(-n, n, 60), dims="station") for n in (300, 200))
    np.testing.assert_array_equal(found["t"].isel(time=2, y=y, x=x), cells[2, y.values, x.values])
    # Of every time; each station has its own series.
    np.testing.assert_array_equal(found["t"].isel(y=y, x=x), cells[:, y.values, x.values])
    assert read == [60, 4 * 60]
    two = xr.DataArray(rng.integers(0, 200, (5, 7)), dims=("a", "b"))
    np.testing.assert_array_equal(found["t"].isel(y=two, x=two), cells[:, two.values, two.values])
    by_label = found["t"].sel(y=xr.DataArray([0, 1490, 2990], dims="p"), x=xr.DataArray([1, 199, 0], dims="p"))
    np.testing.assert_array_equal(by_label, cells[:, [0, 149, 299], [1, 199, 0]])
    # Where the points are all combinations of few, these are read as a box.
    read.clear()
    near = xr.DataArray(rng.integers(0, 5, 100), dims="p")
    np.testing.assert_array_equal(found["t"].isel(y=near, x=near), cells[:, near.values, near.values])
    assert read == [4 * len(np.unique(near)) ** 2]
    # Many are read in parts.
    monkeypatch.setattr("azulejo_db._xarray_cells._POINTS", 32)
    np.testing.assert_array_equal(found["t"].isel(y=y, x=x), cells[:, y.values, x.values])
    none = xr.DataArray(np.arange(0), dims="p")
    assert found["t"].isel(y=none, x=none).values.shape == (4, 0)


def test_times_that_are_appended_stay_what_they_are(tmp_path):
    at = lambda *times: xr.Dataset({"v": ("time", np.arange(len(times)))}, {"time": np.array(times, "M8[ns]")})  # noqa: E731
    at("2024-01-01").azulejo.to(tmp_path / "a")
    at("2024-01-01T06").azulejo.to(tmp_path / "a", append_dim="time")
    assert xr.open_dataset(tmp_path / "a")["time"].values.astype("M8[h]").astype(int).tolist() == [473352, 473358]
    days = {"time": {"units": "days since 1900-01-01 00:00:00.0", "dtype": "int32"}}
    at("2024-01-01").azulejo.to(tmp_path / "b", encoding=days)
    at("2024-01-02").azulejo.to(tmp_path / "b", append_dim="time")
    with pytest.warns(UserWarning, match="faithfully"), pytest.raises(ValueError, match="no whole numbers"):
        at("2024-01-02T06").azulejo.to(tmp_path / "b", append_dim="time")
    assert xr.open_dataset(tmp_path / "b").sizes["time"] == 2


def test_names_that_only_end_as_those_of_coordinates_do(tmp_path):
    """The attribute of a coordinate `x` is `x_`, which may also be a variable's name."""
    ds = xr.Dataset({"x_": ("x", [1, 2]), "y_": ("y", [3.0]), "v": ("x", [4, 5])}, {"x": [7, 8]})
    ds.azulejo.to(tmp_path / "d", encoding={"v": {"attr_name": "cells"}})
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "d").load(), ds)
    assert az.open(tmp_path / "d" / "v").schema.attr_names == ["cells"]
    more = ds.isel(x=[0]).assign_coords(x=[9])
    more.azulejo.to(tmp_path / "d", append_dim="x")
    both = xr.concat([ds, more], "x", data_vars="minimal")
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "d").load(), both)


def _grown(times, **variables):
    return xr.Dataset({name: ("t", values) for name, values in variables.items()}, {"t": times})


def test_an_append_has_all_variables_along_its_dimension(tmp_path):
    """Beyond the shortest of them nothing would be seen."""
    both = _grown([0, 1], v=[1.0, 2.0], w=[1, 2])
    both.azulejo.to(tmp_path / "d")
    for wrong, says in [
        (_grown([2], v=[3.0]), "lacks \\['w'\\]"),
        (_grown([2], v=[3.0], w=[3]).drop_vars("t"), "lacks \\['t'\\]"),
        (_grown([2], v=[3.0], w=[3], u=[3]), "has \\['u'\\]"),
    ]:
        with pytest.raises(ValueError, match=says):
            wrong.azulejo.to(tmp_path / "d", append_dim="t")
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "d", engine="azulejo"), both)
    _grown([2], v=[3.0], w=[3]).azulejo.to(tmp_path / "d", append_dim="t")
    assert xr.open_dataset(tmp_path / "d", engine="azulejo")["w"].values.tolist() == [1, 2, 3]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind, values", [
    ("int8", [300]), ("int8", [1.5]), ("int64", [np.nan]), ("uint8", [-1]), ("int64", [2.0**63]), ("uint64", [-1]),
    ("int64", np.array([2**63], "uint64")), ("bool", [2]),
])
def test_values_appended_never_become_others(tmp_path, kind, values, lazy):
    there = xr.Dataset({"v": ("t", np.array([1, 0], kind))})
    there.azulejo.to(tmp_path / "d")
    new = xr.Dataset({"v": ("t", values)})
    if lazy:
        pytest.importorskip("dask")
        new = new.chunk()
    for options in ({"append_dim": "t"}, {"region": {"t": slice(0, 1)}}):
        with pytest.raises(ValueError, match="'v' holds"):
            new.azulejo.to(tmp_path / "d", **options)
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "d", engine="azulejo"), there)
    # Those that fit are welcome in any type.
    xr.Dataset({"v": ("t", [1.0])}).azulejo.to(tmp_path / "d", append_dim="t")
    assert xr.open_dataset(tmp_path / "d", engine="azulejo")["v"].values.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("values", "encoding"),
    [([1, 1000], {"dtype": "int8"}), ([-1.0, 1], {"dtype": "uint8"}), ([1.0, 12.8], {"dtype": "int8", "scale_factor": 0.1}),
     ([1.0, np.inf], {"dtype": "int16", "_FillValue": -1}), ([5, 2**40], {"dtype": "int8", "add_offset": 5}), ([2**63, 1], {"dtype": "int64"})],
    ids=str,
)
@pytest.mark.parametrize("chunked", [False, True])
def test_what_an_encoding_cannot_hold(tmp_path, values, encoding, chunked):
    ds = xr.Dataset({"v": ("x", np.array(values))})
    ds = ds.chunk({"x": 1}) if chunked else ds
    with pytest.raises(ValueError, match="is kept as"):
        ds.azulejo.to(tmp_path / "a", encoding={"v": encoding})
    assert not (tmp_path / "a").exists()


def test_what_an_encoding_holds_by_rounding(tmp_path):
    ds = xr.Dataset({"v": ("x", np.array([-12.8, 0.04, 12.74, np.nan]))})
    encoding = {"dtype": "int16", "scale_factor": 0.1, "_FillValue": -32768}
    ds.azulejo.to(tmp_path / "a", encoding={"v": encoding})
    with xr.open_dataset(tmp_path / "a", engine="azulejo") as found:
        np.testing.assert_allclose(found["v"], [-12.8, 0.0, 12.7, np.nan])
    far = xr.Dataset({"v": ("x", np.array([4000.0]))})
    with pytest.raises(ValueError, match="is kept as int16"):
        far.azulejo.to(tmp_path / "a", append_dim="x")


def test_two_variables_that_would_be_one_member(tmp_path):
    ds = xr.Dataset({"__z": ("x", [1]), "v__z": ("x", [2])})
    with pytest.raises(ValueError, match="rename one of them"):
        ds.azulejo.to(tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_new_variables_are_as_long_as_the_dataset(weather, tmp_path):
    weather.azulejo.to(tmp_path / "w")
    short = xr.Dataset({"new": (("lat", "lon"), np.ones((3, 5)))})
    with pytest.raises(ValueError, match="'lat' has the size 4, not 3"):
        short.azulejo.to(tmp_path / "w", mode="a")
    with pytest.raises(ValueError, match="has 3 of 4: write all of it first"):
        short.azulejo.to(tmp_path / "w", mode="a", region={"lat": slice(1, 4)})
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "w", engine="azulejo").load(), weather)
    whole = xr.Dataset({"new": (("lat", "more"), np.ones((4, 2)))})
    whole.azulejo.to(tmp_path / "w", mode="a", region={"lat": slice(0, 4)})
    assert xr.open_dataset(tmp_path / "w", engine="azulejo")["new"].shape == (4, 2)


def test_attributes_are_looked_at_before_anything_is_written(weather, tmp_path):
    weather.isel(time=slice(0, 4)).azulejo.to(tmp_path / "w")
    rest = weather.isel(time=slice(4, 6))
    with pytest.raises(TypeError, match="attribute 'bad' of the dataset"):
        rest.assign_attrs(bad={"a": 1}).azulejo.to(tmp_path / "w", append_dim="time")
    assert xr.open_dataset(tmp_path / "w", engine="azulejo").sizes["time"] == 4
    more = xr.Dataset({"x": ("lon", np.zeros(5)), "y": ("lon", np.zeros(5), {"bad": {"a": 1}})})
    with pytest.raises(TypeError, match="attribute 'bad' of variable 'y'"):
        more.azulejo.to(tmp_path / "w", mode="a")
    assert not (tmp_path / "w" / "x").exists()
    rest.azulejo.to(tmp_path / "w", append_dim="time")
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "w", engine="azulejo").load(), weather)


@pytest.mark.parametrize("mode", ["w", "a"])
def test_lists_of_text_are_joined_wherever_they_stand(tmp_path, mode):
    names = ["a", "b"]
    made = xr.Dataset({"x": ("i", np.arange(3), {"names": names})}, attrs={"names": names, "numbers": [1, 2]})
    made.azulejo.to(tmp_path / "d", mode=mode)
    found = xr.open_dataset(tmp_path / "d", engine="azulejo")
    assert found["x"].attrs["names"] == found.attrs["names"] == "a;b"
    assert found.attrs["numbers"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("dtype", "cells", "wanted"),
    [
        ("float32", [1.5, 2], [1.5, None]), ("int32", [1, 2], [1, None]), ("uint8", [1, 2], [1, None]),
        ("datetime64[s]", [1, 2], [dt.datetime(1970, 1, 1, 0, 0, 1), None]), (str, ["a", "b"], ["a", None]),
        ("bool", [True, False], [True, None]), ("bool", [False, True], [False, None]), ("int16", [[1], [2]], [1, None]), (bytes, [b"a", b"b"], [b"a", None]),
    ],
    ids=str,
)
def test_nulls_are_missing(tmp_path, dtype, cells, wanted):
    group = az.create_group(tmp_path / "g")
    kind = "object" if isinstance(dtype, type) else dtype
    fill = {"fill": -1} if cells == [[1], [2]] else {}
    schema = az.Schema([az.Dim("i", (0, 1), 2)], [az.Attr("v", dtype, nullable=True, **fill)])
    array = az.create(tmp_path / "g" / "v", schema)
    array[...] = np.ma.MaskedArray(np.array(cells, kind).reshape(-1), mask=[False, True])
    group.add(tmp_path / "g" / "v", "v")
    found = xr.open_dataset(tmp_path / "g", engine="azulejo")["v"]
    assert [v if v == v else None for v in found.values.tolist()] == wanted


@pytest.mark.parametrize(
    ("values", "encoding"),
    [
        (["2000-01-01", "2001-01-01"], {"dtype": "int8", "units": "days since 2000-01-01"}),
        (["2000-01-01", "NaT"], {"dtype": "int16", "units": "days since 2000-01-01"}),
        (["2000-01-01", "2001-01-01"], {"dtype": "int8", "units": "days since 2000-01-01", "scale_factor": 2.0}),
        (np.array([1, 300], "m8[D]"), {"dtype": "uint8", "units": "days"}),
        ([1.0, np.nan], {"dtype": "int8"}), ([1.0, 1e300], {"dtype": "float32"}), ([0, 5], {"dtype": "bool"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("chunked", [False, True])
def test_what_the_type_of_an_encoding_cannot_hold(tmp_path, values, encoding, chunked):
    cells = np.array(values, "M8[ns]") if isinstance(values[0], str) else np.asarray(values)
    cells = cells.astype("m8[ns]") if cells.dtype.kind == "m" else cells
    ds = xr.Dataset({"v": ("x", cells)})
    if chunked:
        pytest.importorskip("dask")
        ds = ds.chunk({"x": 1})
    with pytest.raises(ValueError, match="is kept as"):
        ds.azulejo.to(tmp_path / "a", encoding={"v": encoding})
    assert az.object_type(tmp_path / "a") is None


def test_times_that_the_type_of_an_encoding_holds(tmp_path):
    cells = np.array(["2000-01-01", "NaT", "2000-06-01"], "M8[ns]")
    encoding = {"dtype": "int16", "units": "days since 2000-01-01", "_FillValue": -1}
    xr.Dataset({"v": ("x", cells)}).azulejo.to(tmp_path / "a", encoding={"v": encoding})
    np.testing.assert_array_equal(xr.open_dataset(tmp_path / "a", engine="azulejo")["v"], cells)
    more = xr.Dataset({"v": ("x", np.array(["2100-01-01"], "M8[ns]"))})
    with pytest.raises(ValueError, match="is kept as int16"):
        more.azulejo.to(tmp_path / "a", append_dim="x")


@pytest.mark.parametrize("name", [".", "..", "../x", "a/../../x", "/x", "a//x"])
def test_variables_lie_in_the_folder_of_their_dataset(tmp_path, name):
    az.create_group(tmp_path / "above")
    with pytest.raises(ValueError, match="names no folder"):
        xr.Dataset({name: ("i", [1])}).azulejo.to(tmp_path / "above" / "d")
    assert [p.name for p in tmp_path.iterdir()] == ["above"] and az.object_type(tmp_path / "above" / "d") is None


@pytest.mark.parametrize("unit", ["D", "us", "ns"])
def test_arrays_whose_dimension_is_a_time(tmp_path, unit):
    """As long as what was written, where there is no current domain."""
    domain = (np.datetime64("2024-01-01", unit), np.datetime64("2024-12-31", unit))
    schema = az.Schema([az.Dim("t", domain, 30, f"datetime64[{unit}]")], [az.Attr("n", "int32", nullable=True)])
    array = az.create(tmp_path / "n", schema)
    array[domain[0] : domain[0] + 3] = np.ma.MaskedArray([1, 2, 3], [0, 1, 0])
    az.create_group(tmp_path / "g").add(array, "n")
    with xr.open_dataset(tmp_path / "g", engine="azulejo") as found:
        assert found.sizes == {"t": 3}
        np.testing.assert_array_equal(found["n"].values, [1, np.nan, 3])
        np.testing.assert_array_equal(found["n"][::-2].values, [3, 1])


def test_a_region_of_nothing_writes_nothing(weather, tmp_path):
    weather.azulejo.to(tmp_path / "w")
    weather[["t"]].isel(time=[], lat=slice(1, 3)).azulejo.to(tmp_path / "w", region="auto")
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "w").load(), weather)


def test_types_of_pandas_own_are_named(tmp_path):
    for values in (pd.array([1, None], "Int64"), pd.Categorical(["a", "b"])):
        with pytest.raises(TypeError, match="variable 'v' has pandas' type"):
            xr.Dataset({"v": ("x", values)}).azulejo.to(tmp_path / "w")
    with pytest.raises(TypeError, match="variable 'x' has pandas' type"):
        xr.Dataset(coords={"x": pd.date_range("2024", periods=2, tz="UTC")}).azulejo.to(tmp_path / "w")
    assert not (tmp_path / "w").exists()
