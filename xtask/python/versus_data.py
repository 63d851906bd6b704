"""The arrays of `cargo xtask versus`, written by the reference.  usage: versus_data.py OUT [--quick]"""
import os
import shutil
import sys

import numpy as np
import tiledb


def dense(uri, side, filters, dtype="i4"):
    dom = tiledb.Domain(*[tiledb.Dim(n, domain=(0, side - 1), tile=64, dtype=np.int32) for n in "xyz"])
    tiledb.Array.create(uri, tiledb.ArraySchema(domain=dom, attrs=[tiledb.Attr("a", dtype=dtype, filters=tiledb.FilterList(filters))]))
    r = np.random.default_rng(1)
    base = np.add.outer(np.add.outer(np.arange(side), 3 * np.arange(side)), 7 * np.arange(side))
    with tiledb.open(uri, "w") as a:
        a[:] = (base + r.integers(0, 16, base.shape)).astype(dtype)


def sparse(uri, cells, fragments, dups=False):
    n = 100_000
    dom = tiledb.Domain(*[tiledb.Dim(d, domain=(0, n - 1), tile=1000, dtype=np.int64, filters=tiledb.FilterList([tiledb.ZstdFilter()])) for d in "xy"])
    schema = tiledb.ArraySchema(domain=dom, sparse=True, capacity=10_000, allows_duplicates=dups,
                                attrs=[tiledb.Attr("a", dtype="f8", filters=tiledb.FilterList([tiledb.ZstdFilter()])), tiledb.Attr("b", dtype="i4", filters=tiledb.FilterList([tiledb.ZstdFilter()]))])
    tiledb.Array.create(uri, schema)
    r = np.random.default_rng(2)
    for _ in range(fragments):
        m = cells // fragments
        key = np.unique(r.integers(0, n * n, m))
        r.shuffle(key)
        with tiledb.open(uri, "w") as a:
            a[key // n, key % n] = {"a": r.normal(size=len(key)), "b": r.integers(0, 10_000, len(key)).astype("i4")}


def main():
    out, quick = sys.argv[1], "--quick" in sys.argv
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    side, cells, many = (128, 300_000, 300) if quick else (256, 3_000_000, 2_000)
    dense(out + "/dense_raw", side, [])
    dense(out + "/dense_zstd", side, [tiledb.ZstdFilter()])
    dense(out + "/dense_shuffle_lz4", side, [tiledb.ByteShuffleFilter(), tiledb.LZ4Filter()])
    sparse(out + "/sparse", cells, 1)
    sparse(out + "/sparse_20", cells, 20)
    sparse(out + "/sparse_20_dups", cells, 20, dups=True)
    sparse(out + "/fragments", many * 50, many)
    # Read by versus/phases.rs.
    open(out + "/done", "w").write("%d %d %d" % (side, cells, many))


main()
