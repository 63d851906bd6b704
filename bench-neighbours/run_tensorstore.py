"""The same array with TensorStore, and the ratios.  usage: run_tensorstore.py FOLDER rust.json    (wants tensorstore, numpy)"""
import json
import shutil
import sys
import time

import numpy as np
import tensorstore as ts

SIDE, CHUNK, BLOCK, ROUNDS, MASK = 384, 64, 32, 5, (1 << 64) - 1


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


def measure(folder, codec, data, best):
    path = f"{folder}/{codec}.tensorstore"
    shutil.rmtree(path, ignore_errors=True)
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
    if codec != "raw":
        codecs.append({"name": "zstd", "configuration": {"level": 3}})
    store = ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}, create=True, dtype=ts.float32, shape=data.shape,
                    chunk_layout=ts.ChunkLayout(chunk_shape=[CHUNK] * 3), codec=ts.CodecSpec({"driver": "zarr3", "codecs": codecs})).result()

    def timed(phase, work):
        start = time.perf_counter()
        result = work()
        best[codec, phase] = min(best.get((codec, phase), float("inf")), time.perf_counter() - start)
        return result

    # TensorStore waits for the device by itself.
    timed("write, durable", lambda: store.write(data).result())
    assert (timed("full read", lambda: store.read().result()) == data).all()
    random = randoms(42)
    starts = [[next(random) % (SIDE - BLOCK) for _ in range(3)] for _ in range(100)]
    timed("100 blocks", lambda: [store[tuple(slice(s, s + BLOCK) for s in start)].read().result() for start in starts])
    shutil.rmtree(path)


def main():
    folder, rust = sys.argv[1:3]
    data, best, seen = cells(), {}, {}
    for _ in range(ROUNDS):
        for codec in ("raw", "zstd"):
            measure(folder, codec, data, best)
    for line in open(rust):
        row = json.loads(line)
        seen[row["side"], row["codec"], row["phase"]] = row["seconds"]
    for codec in ("raw", "zstd"):
        for phase in ("write, durable", "full read", "100 blocks"):
            ours, zarrs, other = seen["azulejo", codec, phase], seen["zarrs", codec, phase], best[codec, phase]
            print(f"{codec:5} {phase:15} azulejo {ours * 1e3:8.1f} ms  zarrs {zarrs * 1e3:8.1f} ms, {zarrs / ours:5.2f}x  "
                  f"TensorStore {other * 1e3:8.1f} ms, {other / ours:5.2f}x")


main()
