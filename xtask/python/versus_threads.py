"""What a second thread takes off: the same work with one and with two, in turn. The serial fraction is what Amdahl's law
makes of it: 2 * (time of two) / (time of one) - 1; a machine that others use makes it too large.

usage: versus_threads.py FOLDER [--rounds N] [--only TEXT]
"""

import argparse
import pathlib
import shutil

import azulejo_db as az
import numpy as np
from ratios import seconds

SIDE, CELLS = 4_000, 2_000_000


class Bench:
    def __init__(self, folder, rounds, only):
        self.folder, self.rounds, self.only = folder, rounds, only
        self.contexts = {n: az.Context({"sm.compute_concurrency_level": n}) for n in (1, 2)}

    def run(self, name, work, before=lambda uri, ctx: None):
        """`work` gets the place of its array and a context; `before` is not timed."""
        if self.only and self.only not in name:
            return
        best = {1: float("inf"), 2: float("inf")}
        for number in range(self.rounds):
            for threads in (1, 2) if number % 2 == 0 else (2, 1):
                made = before(self.folder, self.contexts[threads])
                took, _ = seconds(lambda: work(made, self.contexts[threads]))
                best[threads] = min(best[threads], took)
        print(
            f"| {name} | {best[1] * 1e3:.1f} | {best[2] * 1e3:.1f} | {best[1] / best[2]:.2f} |"
            f" {max(0.0, 2 * best[2] / best[1] - 1) * 100:.0f} % |",
            flush=True,
        )


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--rounds", type=int, default=7)
    words.add_argument("--only")
    given = words.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    bench, rng = Bench(given.folder, given.rounds, given.only), np.random.default_rng(7)
    print("| work | one thread, ms | two, ms | faster | serial |\n|---|---|---|---|---|")
    fresh = given.folder / "fresh"

    def place():
        shutil.rmtree(fresh, ignore_errors=True)
        return str(fresh)

    grid = np.round(rng.normal(size=(SIDE, SIDE)), 2)
    for name, filters in (("none", []), ("zstd", ["byteshuffle", {"filter": "zstd", "level": 3}])):
        dense = az.Schema([az.Dim(d, (0, SIDE - 1), 500) for d in "yx"], [az.Attr("v", filters=filters)])
        uri = str(given.folder / f"dense-{name}")
        az.create(uri, dense)[:] = grid

        def made(_, ctx, schema=dense):
            return az.create(place(), schema, ctx=ctx)

        bench.run(f"dense, {name}: write", lambda array, ctx: array.__setitem__(..., grid), made)
        opened = lambda _, ctx, uri=uri: az.open(uri, ctx=ctx)  # noqa: E731
        bench.run(f"dense, {name}: read", lambda array, ctx: array[:], opened)
        bench.run(f"dense, {name}: 50 windows", lambda array, ctx: [array[i * 70: i * 70 + 300, i * 60: i * 60 + 300] for i in range(50)], opened)
        bench.run(f"dense, {name}: sum, least, most", lambda array, ctx: array.query("v < 3").count(), opened)

    codes = rng.permutation(CELLS * 16)[:CELLS]
    words = np.array([f"word {i % 997} of many" for i in range(CELLS)], dtype=object)
    cells = {"x": codes // 8_192, "y": codes % 8_192, "v": np.round(rng.normal(size=CELLS), 2), "n": rng.integers(0, 10_000, CELLS).astype("int32")}
    text = {"x": np.arange(CELLS), "s": words}
    zstd = ["byteshuffle", {"filter": "zstd", "level": 3}]
    sparse = az.Schema(
        [az.Dim("x", (0, 8_191), 512, filters=zstd), az.Dim("y", (0, 8_191), 512, filters=zstd)],
        [az.Attr("v", filters=zstd), az.Attr("n", "int32", filters=zstd)], sparse=True, duplicates=True,
    )
    texts = az.Schema([az.Dim("x", (0, CELLS), 10_000, filters=zstd)], [az.Attr("s", str)], sparse=True, duplicates=True)
    for what, schema, data in (("sparse", sparse, cells), ("texts", texts, text)):
        uri = str(given.folder / what)
        az.create(uri, schema).write(data)
        bench.run(f"{what}: write", lambda array, ctx, data=data: array.write(data), lambda _, ctx, schema=schema: az.create(place(), schema, ctx=ctx))
        opened = lambda _, ctx, uri=uri: az.open(uri, ctx=ctx)  # noqa: E731
        bench.run(f"{what}: read", lambda array, ctx: array.query().to_arrow(), opened)
    uri = str(given.folder / "sparse")
    opened = lambda _, ctx: az.open(uri, ctx=ctx)  # noqa: E731
    bench.run("sparse: read in row-major order", lambda array, ctx: array.query(order="row").to_arrow(), opened)
    bench.run("sparse: 1 % by a condition", lambda array, ctx: array.query("n < 100", ["v", "n"]).to_arrow(), opened)
    bench.run("sparse: 50 boxes", lambda array, ctx: [array.query().box(x=(i * 100, i * 100 + 200), y=(i * 90, i * 90 + 200)).to_arrow() for i in range(50)], opened)
    bench.run("sparse: sum under a condition", lambda array, ctx: array.agg("count", sum="v", where="n < 5000"), opened)

    def parts(_, ctx):
        array = az.create(place(), sparse, ctx=ctx)
        for i in range(10):
            array.write({k: v[i::10] for k, v in cells.items()})
        return array

    bench.run("sparse: consolidate 10 fragments", lambda array, ctx: array.consolidate(), parts)
    shutil.rmtree(given.folder)


if __name__ == "__main__":
    main()
