"""Makes the pictures of docs/python/pictures.md from data that it generates: `pictures.py FOLDER`.

Needs azulejo-db and matplotlib.
"""

import pathlib
import sys
import tempfile

import azulejo_db as az
import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.dates import ConciseDateFormatter


def terrain(n, rng):
    """Hills of all sizes: noise whose waves are the higher the longer they are."""
    waves = np.hypot(*np.meshgrid(np.fft.fftfreq(n), np.fft.fftfreq(n)))
    waves[0, 0] = 1
    noise = np.fft.fft2(rng.normal(size=(n, n))) / waves**1.9
    heights = np.real(np.fft.ifft2(noise))
    return (1200 * (heights - heights.min()) / np.ptp(heights)).astype(np.float32)


def saved(figure, path):
    figure.savefig(path, dpi=80, bbox_inches="tight")
    plt.close(figure)


def map_slice(work, out, rng):
    """A window of a large dense array: only its tiles are read."""
    heights = terrain(1024, rng)
    a = az.write(work / "heights", heights, dims=("y", "x"), tiles=(128, 128), name="m")
    window = np.s_[300:620, 420:900]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), gridspec_kw={"width_ratios": [1, 1.5]})
    left.imshow(a[::8, ::8], cmap="terrain")
    left.add_patch(plt.Rectangle((420 / 8, 300 / 8), 480 / 8, 320 / 8, fill=False, lw=2))
    left.set_title("a[::8, ::8]")
    shown = right.imshow(a[window], cmap="terrain", extent=(420, 900, 620, 300))
    right.contour(np.arange(420, 900), np.arange(300, 620), a[window], 12, colors="k", linewidths=0.3)
    right.set_title("a[300:620, 420:900]")
    figure.colorbar(shown, label="height, m")
    saved(figure, out / "python-map.png")


def point_cloud(work, out, rng):
    """Points as a sparse array: a box and a condition leave what is looked for."""
    n = 60_000
    x, y = rng.uniform(0, 100, (2, n))
    ground = 4 * np.sin(x / 9) + 3 * np.cos(y / 7)
    tree = (np.hypot((x % 20) - 10, (y % 20) - 10) < 5) & (rng.random(n) < 0.7)
    z = ground + np.where(tree, rng.uniform(2, 12, n), rng.normal(0, 0.2, n))
    dims = [az.Dim("x", (0.0, 100.0), 10.0, "float64"), az.Dim("y", (0.0, 100.0), 10.0, "float64")]
    kinds = az.enumeration("kinds", ["ground", "tree"])
    attrs = [az.Attr("z", "float32"), az.Attr("kind", "uint8", enumeration="kinds")]
    a = az.create(work / "points", az.Schema(dims, attrs, sparse=True, duplicates=True, enumerations=[kinds]))
    a.write({"x": x, "y": y, "z": z.astype(np.float32), "kind": np.where(tree, "tree", "ground")})
    box = a.query().box(x=(20, 80), y=(20, 60)).to_numpy()
    trees = a.query("kind = 'tree' and z > 8").to_numpy()
    figure = plt.figure(figsize=(10, 4.6))
    left = figure.add_subplot(1, 2, 1, projection="3d")
    left.scatter(box["x"], box["y"], box["z"], c=box["z"], s=0.4, cmap="viridis")
    left.set_box_aspect((60, 40, 20))
    left.set_title("a.query().box(x=(20, 80), y=(20, 60))")
    right = figure.add_subplot(1, 2, 2)
    right.scatter(trees["x"], trees["y"], c=trees["z"], s=1, cmap="viridis")
    right.set_aspect("equal")
    right.set_title("a.query(\"kind = 'tree' and z > 8\")")
    saved(figure, out / "python-points.png")


def time_series(work, out, rng):
    """Readings by time, corrected later; the array still knows what it said before."""
    hours = np.arange("2024-01-01", "2025-01-01", dtype="datetime64[h]")
    day = np.arange(len(hours)) / 24
    cells = 9 - 9 * np.cos(2 * np.pi * (day - 15) / 366) - 4 * np.cos(2 * np.pi * day)
    cells = cells + np.convolve(rng.normal(0, 2, len(hours) + 47), np.ones(48) / 7, "valid")
    wrong = cells.copy()
    bad = (hours >= np.datetime64("2024-06-03")) & (hours < np.datetime64("2024-06-20"))
    wrong[bad] += 12
    schema = az.Schema([az.Dim("time", (hours[0], hours[-1]), 24 * 30, "datetime64[h]")], [az.Attr("t", "float64")])
    a = az.create(work / "series", schema)
    a.loc[:] = wrong
    before = a.reopen().at
    a.loc["2024-06-03":"2024-06-19"] = cells[bad]
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(10, 5))
    top.plot(hours, a.reopen()[...], lw=0.4)
    top.set_title("a[...]: a year of hours")
    june = np.s_["2024-05-25":"2024-06-30"]
    span = hours[(hours >= np.datetime64("2024-05-25")) & (hours < np.datetime64("2024-07-01"))]
    bottom.plot(span, a.reopen(at=before).loc[june], lw=0.8, color="tab:red", label="as it was before the correction")
    bottom.plot(span, a.reopen().loc[june], lw=0.8, label="as it is")
    bottom.set_title('a.loc["2024-05-25":"2024-06-30"]')
    bottom.legend()
    bottom.xaxis.set_major_formatter(ConciseDateFormatter(bottom.xaxis.get_major_locator()))
    figure.tight_layout()
    saved(figure, out / "python-series.png")


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for draw in (map_slice, point_cloud, time_series):
            draw(pathlib.Path(folder), out, np.random.default_rng(7))


if __name__ == "__main__":
    main()
