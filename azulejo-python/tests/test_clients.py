"""What programs do with arrays and datasets that no other test does: other folders, other formats, other threads."""

import datetime as dt
import os
import pickle

import numpy as np
import pytest

import azulejo_db as az

CELLS = np.arange(12.0).reshape(3, 4)


def test_what_is_opened_by_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    array, read = az.write("a", CELLS), az.open("a")
    sent = pickle.dumps(read)
    group = az.create_group("g")
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    # Another array of this name lies in the folder where the program is now.
    az.write("a", CELLS * 100)
    array[0] = 7
    array.append(np.ones((1, 4)))
    array.attrs["unit"] = "mm"
    group.attrs["k"] = 1
    group.add(array, "m")
    assert array[:, 0].tolist() == [7, 4, 8, 1] and array.uri == str(tmp_path / "a")
    assert read.reopen().attrs["unit"] == "mm" and az.open(tmp_path / "g")["m"].shape == (4, 4)
    assert pickle.loads(sent)[...].tolist() == CELLS.tolist()
    assert az.open("a")[...].tolist() == (CELLS * 100).tolist() and len(az.open("a").fragments) == 1


def test_places_that_are_no_relative_paths(tmp_path):
    assert az.write("mem://clients", CELLS).uri == "mem://clients"
    assert az.write((tmp_path / "a").as_uri(), CELLS).uri == (tmp_path / "a").as_uri()
    assert az.open(tmp_path / "a").uri == str(tmp_path / "a")
    with pytest.raises(az.ArgumentError, match="an empty URI"):
        az.open("")


def test_what_dask_writes_later_lies_where_it_was_named(tmp_path, monkeypatch):
    pytest.importorskip("dask.array")
    import azulejo_db.dask as azd

    monkeypatch.chdir(tmp_path)
    az.write("a", CELLS)
    later = azd.write("b", azd.read("a", chunks=(1, 4)) * 2, compute=False)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    later.compute()
    assert az.open(tmp_path / "b")[...].tolist() == (CELLS * 2).tolist()


@pytest.fixture
def dataset():
    xr = pytest.importorskip("xarray")
    import azulejo_db.xarray  # noqa: F401

    return xr.Dataset({"v": (("y", "x"), CELLS)}, {"x": [1, 2, 3, 4]})


@pytest.mark.parametrize("place", ["d", "./d", "{}//d", "/{}/d", "file://{}/d"])
def test_a_replaced_dataset_leaves_nothing_behind(dataset, tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    place = place.format(tmp_path)
    for _ in range(3):
        dataset.azulejo.to(place, mode="w")
    assert len([name for name in os.listdir(tmp_path / "d") if not name.startswith("__")]) == 2
    import xarray as xr

    xr.testing.assert_equal(xr.open_dataset(tmp_path / "d"), dataset)


def test_a_dataset_in_the_users_own_folder(dataset, tmp_path, monkeypatch):
    import xarray as xr

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    dataset.azulejo.to("~/d")
    assert os.listdir(tmp_path) == ["d"]
    for engine in ("azulejo", None):
        xr.testing.assert_equal(xr.open_dataset("~/d", engine=engine), dataset)


@pytest.mark.parametrize("filters", [[], ["gzip"], "lz4", [{"filter": "zstd", "level": 3}], None])
def test_filters_of_an_encoding(dataset, tmp_path, filters):
    import xarray as xr

    def names(place):
        return [step["filter"] for step in xr.open_dataset(place, engine="azulejo")["v"].encoding["tiledb_filters"]]

    wanted = {None: ["zstd"], "lz4": ["lz4"]}.get(filters if not isinstance(filters, list) else 0)
    wanted = wanted or [step if isinstance(step, str) else step["filter"] for step in filters or ()]
    dataset.azulejo.to(tmp_path / "given", encoding={"v": {"filters": filters}})
    assert names(tmp_path / "given") == wanted
    dataset["v"].encoding["tiledb_filters"] = filters
    dataset.azulejo.to(tmp_path / "kept")
    assert names(tmp_path / "kept") == wanted
    # A copy has those of the original.
    xr.open_dataset(tmp_path / "given", engine="azulejo").azulejo.to(tmp_path / "copied")
    assert names(tmp_path / "copied") == wanted


@pytest.mark.parametrize("version", [2, 3])
def test_codecs_of_zarr_are_no_filters_of_ours(dataset, tmp_path, version):
    import xarray as xr

    pytest.importorskip("zarr")
    if version == 2:
        numcodecs = pytest.importorskip("numcodecs")
        dataset["n"] = "x", np.arange(4)
        dataset["n"].encoding["filters"] = [numcodecs.Delta(dtype="i8")]
    # Zarr keeps text of any length by a filter of its own.
    dataset["s"] = "x", np.array(["a", "bcd", "", "ß"], object)
    dataset.to_zarr(tmp_path / "z", zarr_format=version, consolidated=False)
    there = xr.open_zarr(tmp_path / "z", consolidated=False)
    there.azulejo.to(tmp_path / "d")
    found = xr.open_dataset(tmp_path / "d", engine="azulejo")
    xr.testing.assert_equal(found, dataset)
    assert found["v"].encoding["tiledb_filters"][0]["filter"] == "zstd"


@pytest.mark.parametrize("name", [None, "x", "heights"])
def test_a_data_array(dataset, tmp_path, name):
    import xarray as xr

    array = dataset["v"].rename(name)
    array.azulejo.to(tmp_path / "d")
    assert xr.open_dataarray(tmp_path / "d", engine="azulejo").identical(array)
    if name == "heights":
        array.azulejo.to(tmp_path / "d", append_dim="y")
        assert xr.open_dataarray(tmp_path / "d", engine="azulejo").shape == (6, 4)


def test_columns_of_times_of_day(tmp_path):
    pa = pytest.importorskip("pyarrow")
    for i, kind in enumerate([pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]):
        table = pa.table({"i": [1, 2], "t": pa.array([5, None], kind)})
        found = az.write(tmp_path / str(i), table, index="i").query(order="row").to_arrow()["t"]
        assert found.type == pa.duration(kind.unit) and found.cast(pa.int64()).to_pylist() == [5, None]
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"i": [1, 2], "t": [dt.time(0, 0, 5), None]})
    found = az.write(tmp_path / "frame", frame, index="i").query(order="row").to_numpy()["t"]
    assert found[0] == np.timedelta64(5, "s") and (np.ma.getmaskarray(found) | np.isnat(np.ma.getdata(found))).tolist() == [False, True]


def test_times_of_day_among_columns(tmp_path):
    times = [dt.time(1, 2, 3, 4), None, dt.time.min]
    array = az.write(tmp_path / "a", {"i": [1, 2, 3], "t": times}, index="i")
    wanted = np.array([3_723_000_004, "NaT", 0], "m8[us]")
    np.testing.assert_array_equal(array.query(order="row").to_numpy()["t"], wanted)
    array.write({"i": [1, 2, 3], "t": times[::-1]})
    np.testing.assert_array_equal(array.query(order="row").to_numpy()["t"], wanted[::-1])
    with pytest.raises((TypeError, ValueError)):
        array.write({"i": [1], "t": [dt.time(1, tzinfo=dt.timezone.utc)]})


def test_a_plain_array_has_no_columns_to_be_an_index(tmp_path):
    for rows in ([1, 2], np.arange(3), [object()]):
        with pytest.raises(TypeError):
            az.write(tmp_path / "a", rows, index="i")
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="counts the threads of Linux")
def test_contexts_share_threads(tmp_path):
    az.write(tmp_path / "a", CELLS)
    az.open(tmp_path / "a")[...]
    before = len(os.listdir("/proc/self/task"))
    for size in range(50):
        config = {"sm.tile_cache_size": str(1000 + size)}
        assert az.open(tmp_path / "a", config=config)[...].tolist() == CELLS.tolist()
        az.write("mem://clients-threads", CELLS, config=config)
    assert len(os.listdir("/proc/self/task")) <= before + 2
    # What one of them has in memory is not there for others.
    assert az.open("mem://clients-threads", config=config).shape == (3, 4)
    with pytest.raises(az.NotFoundError):
        az.open("mem://clients-threads")
    # As many as are asked for.
    before = len(os.listdir("/proc/self/task"))
    az.open(tmp_path / "a", config={"sm.compute_concurrency_level": "3"})[...]
    assert before + 3 <= len(os.listdir("/proc/self/task")) <= before + 5


def test_places_by_one_name(tmp_path, monkeypatch):
    """By which is told what lies in a group's folder: members that are named from it, and what a replaced dataset leaves."""
    from azulejo_db._group import whole

    monkeypatch.chdir(tmp_path)
    for given in ("a", "./a/", str(tmp_path / "a"), f"/{tmp_path}//a", (tmp_path / "a").as_uri()):
        assert whole(given) == str(tmp_path / "a")
    assert whole("s3a://bucket/a/") == whole("S3://bucket/a") == "s3://bucket/a"
    assert whole("az://box/a") == "azure://box/a" and whole("gcs://box/a") == "gs://box/a"


@pytest.mark.parametrize("kind", ["M8[s]", "M8[ms]", "M8[us]", "M8[ns]", "M8[D]", "m8[s]", "m8[ms]", "m8[ns]"])
@pytest.mark.parametrize("nullable", [False, True])
def test_what_is_no_time_is_null_in_tables(tmp_path, kind, nullable):
    """polars ended in a panic, or showed 1970; DuckDB a year before all others."""
    pa = pytest.importorskip("pyarrow")
    schema = az.Schema([az.Dim("i", (0, 9), 5)], [az.Attr("t", kind, nullable=nullable)], sparse=True)
    array = az.create(tmp_path / "a", schema)
    times = np.array([86_400_000_000_000, "NaT", 0], "m8[ns]").astype("m8[D]").astype("i8").astype(kind)
    times[1] = "NaT"
    array.write({"i": [1, 2, 3], "t": times})
    query = array.query(order="row")
    assert np.isnat(query.to_numpy()["t"]).tolist() == [False, True, False]
    for table in (query.to_arrow(), array.dataset().to_table().sort_by("i")):
        table.validate(full=True)
        assert table["t"].is_null().to_pylist() == [False, True, False]
    import pyarrow.dataset as pads

    for found, ids in ((pads.field("t").is_null(), [2]), (pads.field("t").is_valid(), [1, 3]), (~pads.field("t").is_null(), [1, 3])):
        assert sorted(array.dataset().to_table(filter=found)["i"].to_pylist()) == ids
    assert array.query("i > 5").to_arrow().num_rows == 0
    raw = array.query(order="row", raw=True).to_arrow()["t"]
    assert pa.types.is_int64(raw.type) and raw.to_pylist()[1] == -(2**63)
    if kind[0] == "M":
        duckdb = pytest.importorskip("duckdb")
        cells = array.dataset()
        assert duckdb.sql("select i from cells where t is null").fetchall() == [(2,)]
        assert len(duckdb.sql("select t from cells where t < '1980-01-01'").fetchall()) == 2
    pytest.importorskip("polars")
    frame = query.to_polars()
    assert frame["t"].is_null().to_list() == [False, True, False]
    assert frame["t"].to_list()[0] is not None and array.query("i > 5").to_polars().schema == frame.schema


def test_names_of_columns_of_times_are_no_patterns(tmp_path):
    """polars takes ``*`` for all columns and ``^t.*$`` for some: one had the values of another."""
    pytest.importorskip("polars")
    names = ["*", "^t.*$", "t2", ""]
    schema = az.Schema([az.Dim("i", (0, 9), 5)], [az.Attr(name, "M8[ms]") for name in names], sparse=True)
    array = az.create(tmp_path / "a", schema)
    given = {name: np.array([n, "NaT"], "M8[ms]") for n, name in enumerate(names)}
    array.write({"i": [1, 2], **given})
    for rows in (None, "i == 1", "i > 5"):
        found = array.query(rows, order="row").to_polars()
        for n, name in enumerate(names):
            column = found.get_column(name)
            assert column.cast(int).to_list() == {None: [n, None], "i == 1": [n]}.get(rows, [])


@pytest.mark.parametrize("place", [5, b"d", None])
def test_a_dataset_lies_where_a_path_leads(dataset, tmp_path, monkeypatch, place):
    import xarray as xr

    monkeypatch.chdir(tmp_path)
    for given in (dataset, dataset["v"], xr.DataTree(dataset)):
        with pytest.raises(TypeError):
            given.azulejo.to(place)
    assert not os.listdir(tmp_path)


def test_what_lies_beside_a_replaced_dataset_stays(tmp_path, monkeypatch):
    """Members may be named by a way back, by other libraries at least: these were deleted."""
    from azulejo_db._replace import _lies_in

    monkeypatch.chdir(tmp_path)
    base = str(tmp_path / "d")
    for uri in ("d", "./d/", base, (tmp_path / "d").as_uri()):
        for inside in (f"file://{base}/a", f"{base}/a.1234", f"file://{base}//a/b", f"{base}/..a"):
            assert _lies_in(inside, uri)
        for beside in (base, f"{base}e/a", f"file://{base}/../other", f"{base}/a/../../other", f"file://{base}/..", "mem://d/a"):
            assert not _lies_in(beside, uri)
    assert _lies_in("s3://bucket/d/a", "s3a://bucket/d") and not _lies_in("s3://bucket/de", "s3a://bucket/d")


def test_columns_of_polars_that_are_null_throughout(tmp_path):
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    frame = pl.DataFrame({"i": [1, 2], "none": [None, None], "x": [0.5, 1.5]})
    array = az.write(tmp_path / "a", frame, index="i")
    assert array.query(order="row").to_polars()["none"].to_list() == [None, None]
    schema = az.Schema([az.Dim("i", (0, 9), 5)], [az.Attr("none", "int8", nullable=True), az.Attr("x")], sparse=True)
    array = az.create(tmp_path / "b", schema)
    array.write(frame)
    assert array.query(order="row").to_polars()["none"].to_list() == [None, None]


def test_columns_of_polars_that_hold_objects_are_refused(tmp_path):
    """They are where the objects lie in memory."""
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"i": [1], "what": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(TypeError, match="column 'what'.* Object"):
        az.write(tmp_path / "a", frame, index="i")
    assert az.object_type(tmp_path / "a") is None
    # Names say nothing of a type.
    labels = pl.Series(["Object"], dtype=pl.Enum(["Object"]))
    az.write(tmp_path / "b", pl.DataFrame({"i": [1], "Object": labels}), index="i")
    assert az.open(tmp_path / "b").query().to_polars()["Object"].to_list() == ["Object"]


@pytest.mark.parametrize("kind", ["M8[s]", "M8[ns]", "M8[D]", "m8[s]"])
def test_what_is_no_time_is_null_for_who_takes_a_query(tmp_path, kind):
    pa = pytest.importorskip("pyarrow")
    array = az.write(tmp_path / "a", {"i": [1, 2], "t": np.array([1, "NaT"], kind)}, index="i")
    assert pa.table(array.query(order="row"))["t"].is_null().to_pylist() == [False, True]
    again = az.write(tmp_path / "b", array.query(order="row"), index="i")
    assert not again.schema.attr("t")["nullable"]
    assert np.isnat(again.query(order="row").to_numpy()["t"]).tolist() == [False, True]


def test_an_empty_chunk_of_text_out_of_the_midst(tmp_path):
    pa = pytest.importorskip("pyarrow")
    text = pa.array(["a", None, "bcd"])
    table = pa.table({"i": [0, 1, 2], "v": pa.chunked_array([text.slice(0, 1), text.slice(1, 0), text.slice(1)])})
    assert az.write(tmp_path / "a", table, index="i").query(order="row").to_arrow()["v"].to_pylist() == ["a", None, "bcd"]


def test_cells_are_not_there_without_a_copy(tmp_path):
    array = az.write(tmp_path / "a", CELLS)
    with pytest.raises(ValueError, match="copy=False"):
        array.__array__(copy=False)
    assert np.asarray(array).tolist() == CELLS.tolist()
