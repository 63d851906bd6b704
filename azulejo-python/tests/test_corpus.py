"""Arrays that 31 releases of TileDB have written, read through Python, against what the reference reads.

The packed fixtures of the engine's own tests; all of the larger corpus, with what others have written, with
AZULEJO_CORPUS=FOLDER.
"""

import json
import os
import pathlib
import struct
import tarfile

import numpy as np
import pytest

import azulejo_db as az
from azulejo_db._query import request
from azulejo_db._cells import column_to_numpy
from azulejo_db._types import is_text

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

PACK = pathlib.Path(__file__).parents[2] / "azulejo/tests/fixtures/made.tar.zst"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    if folder := os.environ.get("AZULEJO_CORPUS"):
        return pathlib.Path(folder)
    if not PACK.exists():
        pytest.skip("no fixtures beside the package")
    folder = tmp_path_factory.mktemp("corpus")
    with pa.CompressedInputStream(str(PACK), "zstd") as stream, tarfile.open(fileobj=stream, mode="r|") as pack:
        pack.extractall(folder, filter="data")
    return folder


def cell(value):
    """A cell as something that can be compared and sorted, bit by bit."""
    masked = isinstance(value, np.ma.MaskedArray) and value.size > 0 and np.ma.getmaskarray(value).all()
    if value is None or value is np.ma.masked or masked:
        return (0, b"")
    if isinstance(value, (np.datetime64, np.timedelta64)):
        value = int(value.view(np.int64))
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return (1, int(value))
    if isinstance(value, (float, np.floating)):
        return (1, struct.pack("<d", value) if value == value else b"nan")
    if isinstance(value, (list, tuple, np.ndarray)):
        return (1, tuple(cell(v)[1] for v in value))
    return (1, bytes(value))


def numbers(value):
    """Bytes and rows of small numbers look alike: cells of letters are either, by who reads them. numpy
    does not show zeros at the end of strings of one length.
    """
    row = (value,) if isinstance(value, int) else tuple(value)
    while row and row[-1] == 0:
        row = row[:-1]
    return row


def columns_of(array, expected):
    schema, ranges = array.schema, None
    names = schema.attr_names if not schema.sparse else schema.dim_names + schema.attr_names
    if not schema.sparse and expected.get("read_box"):
        ranges = [
            [(dim.pack(dim.exact(low)), dim.pack(dim.exact(high)))]
            for (low, high), dim in zip(expected["read_box"], schema.axes)
        ]
    order = "unordered" if schema.sparse else "row"
    cells, found = array.core.read(request(names, ranges=ranges, order=order)).read_all()
    return {name: [cell(v) for v in _items(found[name], cells)] for name in names}


def _items(column, cells):
    datatype, number, labels, buffers = column
    if is_text(datatype):
        # As bytes: cells that are no text are not shown as such.
        datatype = "BLOB"
    values = column_to_numpy((datatype, number, labels, buffers))
    assert len(values) == cells
    return values


def compared(array, expected, path):
    table = parquet.read_table(path)
    found = columns_of(array, expected)
    want = {"" if n == "attr_" and "" in found else n: [cell(v) for v in table[n].to_pylist()] for n in table.column_names}
    assert sorted(want) == sorted(found)
    for name in want:
        kinds = {type(v[1]) for v in want[name] + found[name] if v[0]}
        if len(kinds) > 1 and float not in kinds:
            want[name] = [(f, numbers(v)) for f, v in want[name]]
            found[name] = [(f, numbers(v)) for f, v in found[name]]
    rows = [list(zip(*(side[name] for name in sorted(want)))) for side in (want, found)]
    if array.schema.sparse:
        rows = [sorted(side) for side in rows]
    assert rows[0] == rows[1]


def test_every_array_reads_as_expected(corpus):
    keys = json.loads((corpus / "keys.json").read_text()) if (corpus / "keys.json").exists() else {}
    read, wrong = 0, []
    for path in sorted((corpus / "expected").glob("[fm]*/**/*.parquet")):
        name = path.relative_to(corpus / "expected").with_suffix("")
        expected = json.loads(path.with_suffix(".json").read_text())
        if expected.get("readable") is False:
            continue
        key = next((v for part, v in keys.items() if part in str(name)), None)
        try:
            compared(az.open(corpus / name, key=key), expected, path)
            read += 1
        except Exception as error:  # noqa: BLE001 - all are named at the end
            wrong.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
    assert not wrong, f"{len(wrong)} of {len(wrong) + read}:\n" + "\n".join(wrong[:20])
    assert read > 500
