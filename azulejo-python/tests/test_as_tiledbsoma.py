"""An untouched ``tiledbsoma`` on this engine, and beside its own library. It is asked for by nothing
else: this runs where it is. All of its own tests: ``cargo xtask as-tiledb --release soma --from DIR``.
"""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tiledbsoma") is None or not sys.platform.startswith("linux"), reason="no tiledbsoma"
)

#: Writes an experiment, appends to it, and says what it reads of it.
PROGRAM = """
import json, pathlib, re, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, pandas as pd, pyarrow as pa, scipy.sparse as sp
import anndata, tiledbsoma, tiledbsoma.io as io

uri, write = sys.argv[1], sys.argv[2] == "write"
maps = pathlib.Path("/proc/self/maps").read_text()
theirs = bool(re.search(r"/libtiledb(-[0-9a-f]{8})?\\.so", maps))
assert theirs != ("azulejo_db.as_tiledb" in sys.modules), (theirs, "azulejo_db/_core" in maps)

def cells(first, n):
    rng = np.random.default_rng(first)
    obs = pd.DataFrame({
        "kind": pd.Categorical(rng.choice(["B", "T", "NK"], n), ["B", "T", "NK"]),
        "score": rng.normal(size=n).astype("float32"), "good": rng.random(n) < 0.5, "n": rng.integers(0, 99, n),
    }, index=[f"cell{i}" for i in range(first, first + n)])
    var = pd.DataFrame({"length": np.arange(40)}, index=[f"gene{i}" for i in range(40)])
    x = sp.random(n, 40, 0.3, "csr", "float32", rng)
    return anndata.AnnData(x, obs, var, {"title": "made up"}, obsm={"pca": rng.random((n, 3))})

if write:
    io.from_anndata(uri, cells(0, 60), "RNA", uns_keys=["title"])
    more = cells(60, 25)
    both = io.register_anndatas(uri, [more], measurement_name="RNA", obs_field_name="obs_id", var_field_name="var_id", append_obsm_varm=True)
    if hasattr(both, "prepare_experiment"):
        both.prepare_experiment(uri)
    io.from_anndata(uri, more, "RNA", registration_mapping=both)
    with tiledbsoma.open(uri, "w") as e:
        e.metadata["by"] = "a test"
    with tiledbsoma.DataFrame.create(
        uri + "/places", schema=pa.schema([("x", pa.float64()), ("name", pa.large_string())]),
        index_column_names=["x"], domain=[[0.0, 10.0]],
    ) as places:
        places.write(pa.table({"soma_joinid": pa.array([0, 1, 2]), "x": [0.5, 2.5, 9.0], "name": ["a", "", "ß"]}))
    with tiledbsoma.DenseNDArray.create(uri + "/dense", type=pa.int32(), shape=(6, 7)) as dense:
        dense.write((slice(1, 4), slice(2, 6)), pa.Tensor.from_numpy(np.arange(20, dtype="int32").reshape(4, 5)))

def plain(table):
    return json.loads(table.to_pandas().sort_values("soma_joinid").to_json(orient="split", default_handler=str))

out = {}
with tiledbsoma.open(uri) as e:
    out["obs"], out["by"] = plain(e.obs.read().concat()), e.metadata["by"]
    out["var"] = plain(e.ms["RNA"].var.read(column_names=["soma_joinid", "var_id"]).concat())
    x = e.ms["RNA"].X["data"]
    found = x.read().tables().concat()
    out["x"] = [x.nnz, list(x.shape), float(found["soma_data"].to_numpy().sum()), found.num_rows]
    part = x.read((slice(10, 19), [1, 3, 5])).coos((85, 40)).concat().to_scipy()
    out["part"] = sorted(zip(part.row.tolist(), part.col.tolist(), part.data.tolist()))
    out["some"] = plain(e.obs.read(value_filter="kind in ['B', 'NK'] and score > 0.25", column_names=["soma_joinid", "obs_id", "kind"]).concat())
    with e.axis_query("RNA", obs_query=tiledbsoma.AxisQuery(value_filter="kind == 'T' and n > 30"),
                      var_query=tiledbsoma.AxisQuery(value_filter="length < 7")) as q:
        made = q.to_anndata("data")
        out["query"] = [q.n_obs, q.n_vars, made.obs_names.tolist(), made.X.toarray().tolist()]
    out["pca"] = np.round(e.ms["RNA"].obsm["pca"].read().tables().concat()["soma_data"].to_numpy(), 6).tolist()
back = io.to_anndata(tiledbsoma.open(uri), "RNA")
out["anndata"] = [list(back.shape), back.obs["kind"].tolist(), float(back.X.sum()), back.uns["title"]]
with tiledbsoma.open(uri + "/places") as places:
    out["places"] = plain(places.read((slice(1.0, 9.0),)).concat())
    out["count"] = places.count
with tiledbsoma.open(uri + "/dense") as dense:
    out["dense"] = dense.read((slice(0, 5), slice(1, 3))).to_numpy().tolist()
print(json.dumps(out))
"""


def ran(program, *words, ours):
    runner = ("-m", "azulejo_db.run") if ours else ()
    done = subprocess.run(
        [sys.executable, *runner, str(program), *map(str, words)], capture_output=True, text=True, timeout=300,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(done.stdout)


def test_an_experiment(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    mine = ran(program, tmp_path / "ours", "write", ours=True)
    theirs = ran(program, tmp_path / "theirs", "write", ours=False)
    assert mine == theirs
    assert mine["x"][1] == [85, 40] and len(mine["obs"]["data"]) == 85 and mine["query"][0] > 3 and mine["part"]
    # Each reads what the other has written.
    assert ran(program, tmp_path / "ours", "read", ours=False) == theirs
    assert ran(program, tmp_path / "theirs", "read", ours=True) == theirs
