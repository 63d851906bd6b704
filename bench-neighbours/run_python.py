"""The same array with TensorStore and zarr-python, and the ratios.

usage: run_python.py FOLDER rust.json    (wants tensorstore, zarr, numpy)
"""
import json
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import tensorstore as ts
import zarr

SIDE, CHUNK, BLOCK, ROUNDS, MASK = 384, 64, 32, 5, (1 << 64) - 1
PHASES = ("write, durable", "full read", "100 blocks", "100 lines")


def randoms(state):
    while True:
        state ^= state << 13 & MASK
        state ^= state >> 7
        state ^= state << 17 & MASK
        yield state


def cells():
    wave = lambda step: 20 * np.sin(np.arange(SIDE) * step)
    smooth = 280 + np.add.outer(np.add.outer(wave(0.01), wave(0.02)), wave(0.005))
    noise = np.random.default_rng(1).integers(0, 8, smooth.shape)
    return ((np.round(smooth * 64) + noise) / 64).astype("f4")


def blocks():
    random = randoms(42)
    starts = [[next(random) % (SIDE - BLOCK) for _ in range(3)] for _ in range(100)]
    return [tuple(slice(s, s + BLOCK) for s in start) for start in starts]


def lines():
    random = randoms(43)
    return [(slice(0, SIDE), next(random) % SIDE, next(random) % SIDE) for _ in range(100)]


def tensorstore(path, codec, data):
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
    if codec != "raw":
        codecs.append({"name": "zstd", "configuration": {"level": 3}})
    store = ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}, create=True, dtype=ts.float32, shape=data.shape,
                    chunk_layout=ts.ChunkLayout(chunk_shape=[CHUNK] * 3), codec=ts.CodecSpec({"driver": "zarr3", "codecs": codecs})).result()
    # TensorStore waits for the device by itself.
    return lambda: store.write(data).result(), lambda box: store[box].read().result()


def zarr_python(path, codec, data):
    compressors = None if codec == "raw" else zarr.codecs.ZstdCodec(level=3)
    array = zarr.create_array(path, shape=data.shape, chunks=[CHUNK] * 3, dtype="f4", compressors=compressors, zarr_format=3)

    def write():
        array[...] = data
        for folder, _, names in os.walk(path):
            for name in names:
                with open(Path(folder, name)) as file:
                    os.fsync(file.fileno())

    return write, lambda box: array[box]


def measure(folder, side, codec, data, best):
    path = f"{folder}/{codec}.python"
    shutil.rmtree(path, ignore_errors=True)
    write, read = {"TensorStore": tensorstore, "zarr-python": zarr_python}[side](path, codec, data)

    def timed(phase, work):
        start = time.perf_counter()
        result = work()
        key = side, codec, phase
        best[key] = min(best.get(key, float("inf")), time.perf_counter() - start)
        return result

    timed("write, durable", write)
    assert (timed("full read", lambda: read(...)) == data).all()
    for phase, boxes in (("100 blocks", blocks()), ("100 lines", lines())):
        for box, found in zip(boxes, timed(phase, lambda: [read(box) for box in boxes])):
            assert (found == data[box]).all()
    best[side, codec, "stored"] = sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())
    shutil.rmtree(path)


def main():
    folder, rust = sys.argv[1:3]
    data, best = cells(), {}
    for _ in range(ROUNDS):
        for codec in ("raw", "zstd"):
            for side in ("TensorStore", "zarr-python"):
                measure(folder, side, codec, data, best)
    for line in open(rust):
        row = json.loads(line)
        best[row["side"], row["codec"], row["phase"]] = row["seconds"]
    sides = ("zarrs", "TensorStore", "zarr-python")
    print("theirs through ours" + "".join(f"{side:>13}" for side in sides))
    for codec in ("raw", "zstd"):
        for phase in PHASES + ("stored",):
            ratios = (best[side, codec, phase] / best["azulejo", codec, phase] for side in sides)
            print(f"{codec:5}{phase:14}" + "".join(f"{ratio:13.2f}" for ratio in ratios))


main()
