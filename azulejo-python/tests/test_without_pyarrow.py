"""What comes and goes by Arrow's C interfaces, or by numpy, needs no pyarrow. Runs in a process that has none."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
sys.modules["pyarrow"] = None                      # importing it fails
import numpy as np
import azulejo_db as az

class Passed:
    "A table that only hands streams on, as any producer does."
    def __init__(self, query):
        self.query = query
    def __arrow_c_stream__(self, requested_schema=None):
        return self.query.__arrow_c_stream__(requested_schema)

words = ["b", None, "ß"]
made = az.write("cells", {"id": [3, 1, 2], "word": words, "x": np.array([1, 2, 3], "f4")}, index=["id"])
assert made.query(order="row").to_numpy()["word"].tolist() == [None, "ß", "b"]
assert made.schema.attr("x")["datatype"] == "FLOAT32" and made.schema.attr("word")["nullable"]

again = az.write("again", Passed(made.query()), index=["id"])
assert again.schema.attrs == made.schema.attrs
assert again.query(order="row").to_numpy()["x"].tolist() == [2.0, 3.0, 1.0]
again.write(Passed(made.query("id = 3")))
assert again.agg("count") == 3

lists = az.Schema.from_arrow(made.query(), ["id"])
assert [a["name"] for a in lists.attrs] == ["word", "x"]
stream = made.query().__arrow_c_stream__()
az.write("once", type("Once", (), {"__arrow_c_stream__": lambda self: stream})(), index=["id"])
for wrong in ([], ["nowhere"]):
    try:
        az.write("wrong", Passed(made.query()), index=wrong)
    except ValueError as error:
        assert az.object_type("wrong") is None
    else:
        raise AssertionError(wrong)
try:
    az.write("wrong", type("Spent", (), {"__arrow_c_stream__": lambda self: stream})(), index=["id"])
except ValueError as error:
    assert "read already" in str(error), error
else:
    raise AssertionError("a stream gives its rows once")

try:
    import pandas as pd
except ImportError:
    sys.exit(0)
frame = pd.DataFrame({"id": [5, 6], "n": pd.array([1, None], dtype="Int32"), "t": pd.to_datetime(["2024-01-01", None])})
kept = az.write("frame", frame, index=["id"])
kept.write(frame.assign(id=[7, 8]))
found = kept.query(order="row").to_numpy()
assert found["id"].tolist() == [5, 6, 7, 8] and found["n"].tolist() == [1, None, 1, None]
numbers = made.query(fields=["id", "x"], order="row").to_pandas()
assert numbers["x"].tolist() == [2.0, 3.0, 1.0]
"""


def test_without_pyarrow(tmp_path):
    subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, check=True, timeout=120)


def test_lists_and_types_of_tables(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import azulejo_db as az

    table = pa.table({
        "id": pa.array([1, 2], pa.int32()),
        "many": pa.array([[1, 2, 3], []], pa.list_(pa.int16())),
        "two": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        "day": pa.array([0, 1], pa.date32()),
        "flag": pa.array([True, None]),
    })
    array = az.write(tmp_path / "a", table, index=["id"])
    kinds = [(a["datatype"], a["cell_val_num"], a["nullable"]) for a in array.schema.attrs]
    assert kinds == [("INT16", "var", True), ("FLOAT32", 2, True), ("DATETIME_DAY", 1, True), ("BOOL", 1, True)]
    found = pa.table(array.query(order="row"))
    assert found["many"].to_pylist() == [[1, 2, 3], []] and found["flag"].to_pylist() == [True, None]
    assert pa.schema(array.query()) == found.schema
    with pytest.raises(TypeError, match="dimension"):
        az.write(tmp_path / "b", table, index=["flag"])
    assert az.object_type(tmp_path / "b") is None
