"""Shared fixtures."""

import numpy as np
import pytest

import azulejo_db as az


@pytest.fixture
def grid(tmp_path):
    """A dense array of 30 x 40 numbers and the numbers."""
    cells = np.arange(1200, dtype=np.float64).reshape(30, 40)
    return az.write(tmp_path / "grid", cells, dims=("y", "x"), tiles=(7, 9), name="v"), cells


@pytest.fixture
def table(tmp_path):
    """A sparse array with text, nulls and labels, and its columns."""
    schema = az.Schema(
        [az.Dim("id", (0, 999), 100, "int64")],
        [
            az.Attr("name", str),
            az.Attr("height", "float64", nullable=True),
            az.Attr("kind", "uint8", enumeration="kinds"),
        ],
        sparse=True,
        enumerations=[az.enumeration("kinds", ["hill", "peak"])],
    )
    array = az.create(tmp_path / "table", schema)
    columns = {
        "id": np.array([7, 3, 500]),
        "name": ["Zugspitze", "Helgoland", "Straße"],
        "height": np.ma.MaskedArray([2962.0, 61.0, 0.0], mask=[False, False, True]),
        "kind": ["peak", "hill", "hill"],
    }
    array.write(columns)
    return array
