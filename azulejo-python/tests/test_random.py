"""Random keys, writes, queries and windows beside numpy, pandas and xarray on numpy.

``AZULEJO_CASES`` says how many of each (60), ``AZULEJO_SEED`` which ones (1).
"""

import os

import numpy as np
import pandas as pd
import pytest

import azulejo_db as az

CASES = int(os.environ.get("AZULEJO_CASES", 60))
SEED = int(os.environ.get("AZULEJO_SEED", 1))
TYPES = [
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64", "bool",
    "datetime64[ns]", "datetime64[D]", "timedelta64[s]", "text", "null",
]


def cells_of(rng, kind, shape):
    """Random cells: the least and greatest values of a type among them."""
    if kind == "text":
        words = ["", "a", "bc", "Straße", "\U0001f600", "x" * 50]
        return rng.choice(np.array(words, object), shape)
    if kind == "null":
        mask = rng.random(shape) < 0.3
        mask.reshape(-1)[:1] = True  # the first of an array decides whether it takes nulls
        return np.ma.MaskedArray(rng.integers(-9, 9, shape), mask)
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        some = np.array([np.nan, np.inf, -np.inf, -0.0, np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)
        return np.where(rng.random(shape) < 0.1, rng.choice(some, shape), rng.random(shape).astype(dtype))
    raw = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    return (raw[..., 0] & 1).astype(bool) if dtype.kind == "b" else raw.view(dtype)[..., 0]


def same(found, wanted):
    assert np.shape(found) == np.shape(wanted)
    if isinstance(wanted, np.ma.MaskedArray):
        assert found.tolist() == wanted.tolist()
        return
    if np.shape(wanted) and np.size(wanted):
        assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def slice_of(rng, n):
    """Any slice: ends outside, steps backwards, nothing at all."""
    end = lambda: None if rng.random() < 0.25 else int(rng.integers(-n - 3, n + 4))  # noqa: E731
    step = None if rng.random() < 0.4 else int(rng.choice([-5, -3, -2, -1, 1, 2, 3, 7]))
    return slice(end(), end(), step)


def steps_of(rng, n):
    """Slices that xarray's own lazy arrays take: of others they give cells that numpy does not."""
    low, high = sorted(rng.integers(0, n + 1, 2).tolist())
    step = int(rng.integers(1, 4))
    return slice(low, high, step) if rng.random() < 0.7 else slice(None, None, -step)


def list_of(rng, n):
    if rng.random() < 0.2:
        return rng.random(n) < 0.4
    found = rng.integers(-n, n, rng.integers(0, 6))
    return found.tolist() if rng.random() < 0.5 else found.astype(rng.choice(["int64", "int32", "int16"]))


def basic(rng, shape):
    key = [int(rng.integers(-n, n)) if rng.random() < 0.3 else slice_of(rng, n) for n in shape]
    if rng.random() < 0.3:
        at = int(rng.integers(0, len(key) + 1))
        key[at : at + int(rng.integers(0, 3))] = [Ellipsis]
    elif rng.random() < 0.3:
        key = key[: int(rng.integers(0, len(key) + 1))]
    return key[0] if len(key) == 1 and rng.random() < 0.5 else tuple(key)


def made(rng, name, kind):
    """An array and its cells, written in one piece or in several."""
    shape = tuple(rng.integers(1, 13, rng.integers(1, 5)).tolist())
    cells = cells_of(rng, kind, shape)
    tiles = [int(rng.integers(1, n + 3)) for n in shape]
    array = az.write(f"mem://random{SEED}-{name}", cells, tiles=tiles)
    for _ in range(int(rng.integers(0, 4))):
        ends = [sorted(rng.integers(0, n + 1, 2).tolist()) for n in shape]
        box = tuple(slice(a, b) for a, b in ends)
        part = cells_of(rng, kind, tuple(b - a for a, b in ends))
        array[box] = part
        cells[box] = part
    return array, cells


@pytest.mark.parametrize("kind", TYPES)
def test_keys_beside_numpy(kind):
    rng = np.random.default_rng([SEED, TYPES.index(kind)])
    for case in range(max(CASES // 20, 1)):
        array, cells = made(rng, f"{kind}{case}", kind)
        shape = cells.shape
        for _ in range(20):
            key = basic(rng, shape)
            same(array[key], cells[key])
            lists = [list_of(rng, n) if rng.random() < 0.5 else slice_of(rng, n) for n in shape]
            wanted = cells
            for axis, part in enumerate(lists):
                wanted = wanted[(slice(None),) * axis + (part if isinstance(part, slice) else np.asarray(part, bool if np.asarray(part).dtype == bool else int),)]
            same(array.oindex[tuple(lists)], wanted)
            many = tuple(rng.integers(0, 4, rng.integers(1, 3)).tolist())
            points = tuple(rng.integers(-n, n, many) for n in shape)
            same(array.vindex[points], cells[points])
            flags = rng.random(shape) < 0.2
            same(array.vindex[flags], cells[flags])
            if kind not in ("text", "null"):
                forward = tuple(slice(int(rng.integers(0, n)), None, int(rng.integers(1, 4))) for n in shape)
                out = np.empty_like(cells[forward], order="C")
                assert array.read(forward, out=out) is out
                same(out, cells[forward])


def test_keys_where_domains_begin_elsewhere():
    rng = np.random.default_rng([SEED, 100])
    for case in range(max(CASES // 10, 1)):
        low = int(rng.choice([-20, -5, 1, 7, -(2**31) + 1, 2**30, -(2**63), 2**62]))
        kind = "int64" if abs(low) > 2**31 else "int32"
        n = int(rng.integers(1, 30))
        dims = [az.Dim("x", (low, low + n - 1), int(rng.integers(1, n + 1)), kind)]
        array = az.create(f"mem://elsewhere{SEED}-{case}", az.Schema(dims, [az.Attr("v", "int16")]))
        cells = cells_of(rng, "int16", (n,))
        array[...] = cells
        for _ in range(10):
            a, b = sorted(rng.integers(0, n + 1, 2).tolist())
            step = int(rng.integers(1, 5))
            same(array[low + a : low + b : step], cells[a:b:step])
            if b > a:
                same(array.loc[low + a : low + b - 1], cells[a:b])
                back = cells[a:b][::-1][::step]
                stop = low + a - 1
                same(array[low + b - 1 : stop if stop >= -(2**63) else None : -step], back)
            some = rng.integers(0, n, 4)
            same(array.oindex[(some + low).tolist()], cells[some])
            same(array.loc[(some + low).tolist()], cells[some])


def test_appends_and_times_beside_numpy():
    rng = np.random.default_rng([SEED, 200])
    for case in range(max(CASES // 20, 1)):
        cells = rng.random(tuple(rng.integers(1, 6, 2).tolist()))
        uri, begun = f"mem://appended{SEED}-{case}", 1_700_000_000_000
        array = az.write(uri, cells, at=begun)
        states = [cells]
        for at in range(begun + 1, begun + 8):
            if rng.random() < 0.6:
                axis = int(rng.integers(0, 2))
                more = rng.random(tuple(int(rng.integers(1, 4)) if i == axis else n for i, n in enumerate(cells.shape)))
                array.append(more, axis, at=at)
                cells = np.concatenate([cells, more], axis)
            else:
                cells = np.full_like(cells, at)
                array.write(cells, at=at)
            states.append(cells)
        same(az.open(uri)[...], cells)
        for at, state in enumerate(states, begun):
            same(az.open(uri, at=at)[...], state)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng([SEED, 300])
    n = 500
    return pd.DataFrame({
        "i": rng.permutation(2 * n)[:n].astype("int64") - n,
        "j": rng.integers(0, 20, n).astype("uint16"),
        "x": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(2)),
        "n": pd.array(np.where(rng.random(n) < 0.2, None, rng.integers(-5, 5, n)), "Int32"),
        "s": pd.array(np.where(rng.random(n) < 0.1, None, rng.choice(["", "a", "ab", "b", "ß"], n)), "str"),
        "t": (np.datetime64("2024-01-01", "s") + rng.integers(0, 10**6, n)).astype("datetime64[s]"),
    })


@pytest.fixture(scope="module")
def cells(frame):
    pytest.importorskip("pyarrow")
    array = az.write(f"mem://table{SEED}", frame.iloc[:200], index=["i", "j"])
    array.write(frame.iloc[200:400])
    array.write(frame.iloc[400:])
    return array


def condition_of(rng, frame, depth=2):
    """A condition, and the rows of which it is true."""
    if depth and rng.random() < 0.4:
        (a, mask), (b, other) = condition_of(rng, frame, depth - 1), condition_of(rng, frame, depth - 1)
        return (a & b, mask & other) if rng.random() < 0.5 else (a | b, mask | other)
    name = str(rng.choice(["i", "j", "x", "n", "s", "t"]))
    column = frame[name]
    # Not a number is null, as Arrow takes it from pandas.
    if name in "xns" and rng.random() < 0.2:
        null = column.isna().to_numpy()
        return (az.col(name).is_null(), null) if rng.random() < 0.5 else (~az.col(name).is_null(), ~null)
    present = column.dropna()
    value = present.iloc[int(rng.integers(0, len(present)))]
    value = value.item() if hasattr(value, "item") else value
    plain = value.to_datetime64() if name == "t" else value
    known = column.notna().to_numpy(bool)
    col = az.col(name)
    kind = int(rng.integers(0, 7))
    if kind == 6:
        some = [v.to_datetime64() if name == "t" else v for v in present.iloc[rng.integers(0, len(present), 3)].tolist()]
        return col.isin(some), column.isin(some).to_numpy(bool) & known
    asked, wanted = [
        (col == plain, column == value), (col != plain, column != value), (col < plain, column < value),
        (col <= plain, column <= value), (col > plain, column > value), (col >= plain, column >= value),
    ][kind]
    wanted = wanted.fillna(False).to_numpy(bool)
    return asked, wanted & known


def rows(frame):
    plain = lambda v: None if pd.isna(v) else v.item() if hasattr(v, "item") else v  # noqa: E731
    return [tuple(map(plain, row)) for row in frame.itertuples(index=False)]


def test_queries_beside_pandas(frame, cells):
    rng = np.random.default_rng([SEED, 400])
    ordered = frame.sort_values(["i", "j"])
    for _ in range(CASES):
        where, mask = condition_of(rng, ordered)
        wanted = ordered[mask]
        low, high = sorted(rng.integers(-500, 500, 2).tolist())
        query = cells.query(where, order="row")
        if rng.random() < 0.4:
            query = query.box(i=(low, high), j=(2, 15))
            wanted = wanted[wanted["i"].between(low, high) & wanted["j"].between(2, 15)]
        assert rows(query.to_pandas()) == rows(wanted), where
        assert query.count() == len(wanted)
        limit = int(rng.integers(0, 30))
        fields = list(rng.choice(["i", "j", "x", "n", "s", "t"], int(rng.integers(1, 5)), replace=False))
        part = cells.query(where, fields, order="row", limit=limit)
        assert rows(part.to_pandas()[fields]) == rows(ordered[mask][fields].head(limit)), (where, limit)
        free = cells.query(where, limit=limit)
        assert set(rows(free.to_pandas())) <= set(rows(ordered[mask]))
        assert free.count() == min(limit, int(mask.sum()))
        assert cells.agg("count", where=where) == int(mask.sum())


def test_points_and_loc_beside_pandas(frame, cells):
    rng = np.random.default_rng([SEED, 500])
    by = frame.set_index("i")
    for _ in range(CASES):
        low, high = sorted(rng.integers(-600, 600, 2).tolist())
        found = cells.loc[low:high, 3:9]
        wanted = frame[frame["i"].between(low, high) & frame["j"].between(3, 9)].sort_values(["i", "j"])
        assert found["i"].tolist() == wanted["i"].tolist() and found["j"].tolist() == wanted["j"].tolist()
        some = frame.iloc[rng.integers(0, len(frame), 5)]
        asked = cells.query(fields=["i", "x"]).points(some["i"].to_numpy(), some["j"].to_numpy()).to_numpy()
        assert set(asked["i"].tolist()) == set(some["i"])
        for i, x in zip(asked["i"], asked["x"]):
            np.testing.assert_equal(x, by.loc[i, "x"])


def test_rows_at_each_time_beside_a_dict():
    """Writes over one another, deletes and consolidations: what was there at each time."""
    rng = np.random.default_rng([SEED, 520])
    for case in range(max(CASES // 20, 1)):
        dims = [az.Dim("k", dtype=str), az.Dim("i", (-50, 50), 7, "int8")]
        schema = az.Schema(dims, [az.Attr("v", "int64"), az.Attr("s", str, nullable=True)], sparse=True)
        array, begun = az.create(f"mem://rows{SEED}-{case}", schema, at=1_600_000_000_000), 1_700_000_000_000
        rows, states = {}, []
        for at in range(begun, begun + 12):
            rows = dict(rows)
            what = rng.random()
            if what < 0.6 or not rows:
                places = {(str(rng.choice(["", "a", "b", "ab", "z"])), int(rng.integers(-50, 51))) for _ in range(10)}
                new = {p: (int(rng.integers(-99, 99)), None if rng.random() < 0.3 else str(rng.choice(["", "x", "ß"]))) for p in places}
                array.write({
                    "k": [k for k, _ in new], "i": [i for _, i in new], "v": [v for v, _ in new.values()],
                    "s": np.array([t for _, t in new.values()], object),
                }, at=at)
                rows.update(new)
            elif what < 0.85:
                least = int(rng.integers(-99, 99))
                array.delete((az.col("v") > least) & (az.col("k") != "a"), at=at)
                rows = {p: r for p, r in rows.items() if not (r[0] > least and p[0] != "a")}
            else:
                array.consolidate()
            states.append(rows)
        def told(opened):
            found = opened.query(order="row").to_numpy()
            return list(zip(found["k"], found["i"].tolist(), found["v"].tolist(), found["s"].tolist()))
        for at, state in enumerate(states, begun):
            wanted = sorted((k.encode(), i, v, t) for (k, i), (v, t) in state.items())
            assert [(k.encode(), *rest) for k, *rest in told(az.open(array.uri, at=at))] == wanted
            assert az.open(array.uri, at=at).agg("count") == len(state)
        array.consolidate(purge_deleted=True)
        array.vacuum()
        assert [(k.encode(), *rest) for k, *rest in told(az.open(array.uri))] == wanted
        assert [f for f in array.check(deep=True) if f[0] == "error"] == []


def test_queries_of_grids_beside_numpy():
    rng = np.random.default_rng([SEED, 550])
    for case in range(max(CASES // 20, 1)):
        shape = tuple(rng.integers(1, 9, int(rng.integers(1, 4))).tolist())
        values, nulls = rng.integers(-9, 9, shape), rng.random(shape) < 0.3
        data = {"v": values, "n": np.ma.MaskedArray(values * 2, nulls), "s": cells_of(rng, "text", shape)}
        tiles = [int(rng.integers(1, n + 2)) for n in shape]
        array = az.write(f"mem://grids{SEED}-{case}", data, tiles=tiles)
        names = array.schema.dim_names
        for _ in range(20):
            at = int(rng.integers(-9, 9))
            where, mask = [
                (az.col("v") > at, values > at), (az.col("n") <= at, (values * 2 <= at) & ~nulls), (az.col("n").is_null(), nulls),
                (az.col("s") == "a", data["s"] == "a"), (az.col(names[0]) >= 2, np.indices(shape)[0] >= 2),
                ((az.col("v") == at) | (az.col("s") != ""), (values == at) | (data["s"] != "")), (None, np.ones(shape, bool)),
            ][int(rng.integers(0, 7))]
            order, limit = str(rng.choice(["row", "col"])), None if rng.random() < 0.5 else int(rng.integers(0, 20))
            ends = {n: tuple(sorted(rng.integers(0, size, 2).tolist())) for n, size in zip(names, shape)}
            inside = np.zeros(shape, bool)
            inside[tuple(slice(a, b + 1) for a, b in ends.values())] = True
            query = array.query(where, order=order, limit=limit)
            if rng.random() < 0.6:
                query, mask = query.box(**ends), mask & inside
            places = np.argwhere(mask) if order == "row" else np.argwhere(mask.T)[:, ::-1]
            places = places[:limit]
            found, key = query.to_numpy(), tuple(places.T)
            for axis, name in enumerate(names):
                assert found[name].tolist() == places[:, axis].tolist(), (where, order, limit)
            assert found["v"].tolist() == values[key].tolist() and found["s"].tolist() == data["s"][key].tolist()
            assert found["n"].tolist() == data["n"][key].tolist()
            assert query.count() == len(places)
            if where is not None:
                assert array.agg("count", sum="v", nulls="n", where=where)["count"] >= len(places)


def test_windows_beside_xarray():
    xr = pytest.importorskip("xarray")
    import azulejo_db.xarray  # noqa: F401

    rng = np.random.default_rng([SEED, 600])
    for case in range(max(CASES // 50, 1)):
        nt, ny, nx = rng.integers(2, 12, 3).tolist()
        ds = xr.Dataset(
            {
                "t": (("time", "y", "x"), cells_of(rng, "float32", (nt, ny, nx)), {"units": "K"}),
                "n": (("y", "x"), rng.integers(-9, 9, (ny, nx))),
                "name": (("x",), cells_of(rng, "text", (nx,))),
            },
            coords={
                "time": pd.date_range("2024-01-01", periods=nt, freq="6h").as_unit("ns"),
                "y": np.sort(rng.random(ny))[::-1] * 90, "x": np.arange(nx) * 10,
            },
        )
        uri = f"mem://windows{SEED}-{case}"
        cut = int(rng.integers(1, nt + 1))
        ds.isel(time=slice(0, cut)).azulejo.to(uri, encoding={"t": {"tiles": tuple(rng.integers(1, 5, 3).tolist())}})
        if cut < nt:
            ds.isel(time=slice(cut, nt)).azulejo.to(uri, append_dim="time")
        if rng.random() < 0.5:
            a, b = sorted(rng.integers(0, ny + 1, 2).tolist())
            if b > a:
                part = ds[["t", "n"]].isel(y=slice(a, b)) * 2
                part["n"] = part["n"].astype(ds["n"].dtype)
                part.azulejo.to(uri, region="auto")
                ds["t"][:, a:b], ds["n"][a:b] = part["t"], part["n"]
        found = xr.open_dataset(uri, engine="azulejo")
        xr.testing.assert_identical(found.compute(), ds)
        sizes = {"time": nt, "y": ny, "x": nx}
        for _ in range(25):
            key = {}
            for dim in rng.choice(list(sizes), int(rng.integers(1, 4)), replace=False):
                n = sizes[str(dim)]
                key[str(dim)] = [
                    lambda: int(rng.integers(-n, n)), lambda: steps_of(rng, n), lambda: rng.integers(-n, n, 3),
                    lambda: xr.DataArray(rng.integers(-n, n, 4), dims="p"),
                ][int(rng.integers(0, 4))]()
            xr.testing.assert_identical(found.isel(key).compute(), ds.isel(key))
        for _ in range(10):
            i, j = sorted(rng.integers(0, nt, 2).tolist())
            key = {"time": slice(ds.time.values[i], ds.time.values[j]), "x": slice(10, 10 * nx)}
            xr.testing.assert_identical(found.sel(key).compute(), ds.sel(key))
