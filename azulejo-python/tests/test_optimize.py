"""Filters chosen by the cells: az.write(.., optimize=), az.optimized."""

import numpy as np
import pytest

import azulejo_db as az

pa = pytest.importorskip("pyarrow")
GOALS = ["size", "balanced", "speed"]


def _filters(schema, field):
    fields = {f["name"]: f for f in (*schema.dims, *schema.attrs)}
    return [step["filter"] for step in fields[field]["filters"]["filters"]]


def _table(n, seed=1):
    rng = np.random.default_rng(seed)
    return {
        "t": np.arange(n).astype("datetime64[s]"),
        "x": rng.normal(size=n),
        "n": rng.integers(0, 10_000, n).astype("int32"),
        "word": np.array([f"word {i % 7}" for i in range(n)], dtype=object),
    }


@pytest.mark.parametrize("goal", GOALS)
def test_a_table_comes_back(tmp_path, goal):
    cells = pa.table(_table(20_000))
    plain = az.write(tmp_path / "plain", cells, index=["t"])
    array = az.write(tmp_path / "chosen", cells, index=["t"], optimize=goal)
    assert pa.table(array.query()).equals(pa.table(plain.query()))
    # Seconds that follow one another.
    assert _filters(array.schema, "t") != _filters(plain.schema, "t")
    # A stream that comes once.
    reader = cells.to_reader(1_000)
    again = az.write(tmp_path / "stream", reader, index=["t"], optimize=goal)
    assert again.schema == array.schema
    assert pa.table(again.query()).equals(pa.table(plain.query()))


@pytest.mark.parametrize("goal", GOALS)
def test_columns_frames_and_arrays_choose_alike(tmp_path, goal):
    pd = pytest.importorskip("pandas")
    columns = _table(5_000)
    by_columns = az.write(tmp_path / "columns", columns, index=["t"], optimize=goal)
    by_frame = az.write(tmp_path / "frame", pd.DataFrame(columns), index=["t"], optimize=goal)
    for name in columns:
        assert _filters(by_columns.schema, name) == _filters(by_frame.schema, name)
    grid = np.arange(40_000.0).reshape(200, 200)
    array = az.write(tmp_path / "grid", {"a": grid, "b": np.ma.masked_greater(grid, 30_000.0)}, optimize=goal)
    assert (array[...]["a"] == grid).all() and array[...]["b"].mask.sum() == 9_999
    assert _filters(array.schema, "a") != ["zstd"]


def test_what_there_is_nothing_to_choose_by(tmp_path):
    for goal in GOALS:
        array = az.write(tmp_path / goal, pa.table(_table(1)).slice(0, 0), index=["t"], optimize=goal)
        assert array.query().count() == 0
        for n in (1, 2):
            array = az.write(tmp_path / f"{goal}{n}", pa.table(_table(n)), index=["t"], optimize=goal)
            assert array.query().count() == n
        nothing = az.write(tmp_path / f"{goal}none", np.zeros((0, 3)), optimize=goal)
        assert nothing.shape == (0, 3)
        nan = az.write(tmp_path / f"{goal}nan", np.full(100_000, np.nan), optimize=goal)
        assert np.isnan(nan[:]).all()


def test_wrong_wishes_are_told():
    with pytest.raises(ValueError, match="size, balanced, speed"):
        az.write("mem://wrong", np.arange(3), optimize="fast")
    with pytest.raises(ValueError, match="either"):
        az.write("mem://wrong", np.arange(3), optimize="size", filters="lz4")
    schema = az.Schema([az.Dim("x", (0, 99), 10)], [az.Attr("a", "int32")], sparse=True)
    with pytest.raises(KeyError, match="no fields"):
        az.optimized(schema, {"x": np.arange(3), "b": np.arange(3)})
    with pytest.raises(ValueError, match="goal"):
        az.optimized(schema, {"x": np.arange(3), "a": np.arange(3)}, "quick")


def test_labels_are_looked_at_as_they_are_stored():
    labels = az.enumeration("colours", ["red", "green", "blue"])
    schema = az.Schema(
        [az.Dim("x", (0, 9_999), 1_000)], [az.Attr("c", "uint8", enumeration="colours")], enumerations=[labels], sparse=True,
    )
    cells = {"x": np.arange(9_000), "c": np.array(["red", "green", "blue"] * 3_000)}
    found = az.optimized(schema, cells, "size")
    assert found != schema and found.enumerations == schema.enumerations
    array = az.create("mem://labels", found)
    array.write(cells)
    assert array.query(fields=["c"]).to_pandas()["c"].tolist()[:3] == ["red", "green", "blue"]


KINDS = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64",
    "datetime64[D]", "datetime64[ns]", "timedelta64[ms]", str, bytes,
]


def _values(kind, n, seed, shape):
    rng = np.random.default_rng(seed)
    if kind in (str, bytes):
        words = [f"{'w' * int(k)}{k}" for k in rng.integers(0, {"few": 5, "steps": 40, "noise": 1 << 40}[shape] % 60 + 1, n)]
        return np.array([w.encode() if kind is bytes else w for w in words], dtype=object)
    kind = np.dtype(kind)
    if kind.kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if shape == "noise":
        raw = np.frombuffer(rng.bytes(n * kind.itemsize), kind)
        if kind.kind in "mM":
            raw = (raw.view("int64") >> 20).view(kind)
        return np.nan_to_num(raw) if kind.kind == "f" else raw
    steps = rng.integers(0, 2 if shape == "steps" else 4, n)
    whole = np.cumsum(steps) % 100 if shape == "steps" else steps
    return whole.astype("int64").astype(kind) if kind.kind in "mM" else whole.astype(kind)


@pytest.mark.parametrize("shape", ["few", "steps", "noise"])
@pytest.mark.parametrize("goal", GOALS)
def test_tiledb_reads_what_was_chosen(tmp_path, goal, shape):
    tiledb = pytest.importorskip("tiledb")
    n = 3_000
    for nullable in (False, True):
        columns = {}
        for number, kind in enumerate(KINDS):
            values = _values(kind, n, number, shape)
            columns[f"a{number}"] = np.ma.MaskedArray(values, np.arange(n) % 3 == 0) if nullable else values
        columns["x"] = np.sort(_values("float64", n, 50, shape)) if shape == "noise" else np.arange(n) / 4
        columns["s"] = np.array([f"k{i:05}" for i in range(n)], dtype=object)
        columns["d"] = np.arange(n).astype("datetime64[h]")
        uri = str(tmp_path / f"{nullable}")
        array = az.write(uri, columns, index=["x", "s", "d"], optimize=goal)
        ours = array.query().to_numpy()
        with tiledb.open(uri) as theirs:
            read = theirs[:]
        for name, values in ours.items():
            found = read[name]
            if isinstance(values, np.ma.MaskedArray):
                gone = np.ma.getmaskarray(values)
                mask = np.array([v is None or (hasattr(v, "dtype") and v is np.ma.masked) for v in found]) if found.dtype.kind == "O" else np.ma.getmaskarray(found)
                if mask.any():
                    assert (mask == gone).all(), name
                values, found = np.ma.getdata(values)[~gone], np.ma.getdata(found)[~gone]
            assert list(map(_bytes, values.tolist())) == list(map(_bytes, found.tolist())), (name, goal, shape)


def _bytes(value):
    return bytes(value) if isinstance(value, (bytes, memoryview, np.ndarray)) else str(value).encode()


def test_streams_that_need_python_on_other_threads(tmp_path):
    """Such as those of files that are read with Python's means: nobody waits for the other."""
    import subprocess
    import sys

    code = f"""
import azulejo_db as az, pyarrow as pa, pyarrow.dataset as ds, pyarrow.parquet as pq
from pyarrow.fs import FSSpecHandler, LocalFileSystem, PyFileSystem, FileSystemHandler

class Slow(FileSystemHandler):
    def __init__(self): self.fs = LocalFileSystem()
    def __getattr__(self, name): return getattr(self.fs, name)
    def get_type_name(self): return "slow"
    def normalize_path(self, path): return path
    def get_file_info(self, paths): return self.fs.get_file_info(paths)
    def get_file_info_selector(self, selector): return self.fs.get_file_info(selector)
    def open_input_file(self, path): return pa.PythonFile(open(path, "rb"))
    def open_input_stream(self, path): return pa.PythonFile(open(path, "rb"))
    def create_dir(self, *_): pass
    delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = move = copy_file = create_dir
    open_output_stream = open_append_stream = create_dir

pq.write_table(pa.table({{"i": range(50000), "v": [1.5] * 50000}}), {str(tmp_path / "f.parquet")!r}, row_group_size=5000)
dataset = ds.dataset({str(tmp_path / "f.parquet")!r}, filesystem=PyFileSystem(Slow()))
array = az.write({str(tmp_path / "a")!r}, dataset.scanner().to_reader(), index=["i"], optimize="size")
assert array.query().count() == 50000
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
