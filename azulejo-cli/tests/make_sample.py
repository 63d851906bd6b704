#!/usr/bin/env python3
"""Makes sample.pack: the group that the tests of the command line read, written by TileDB itself.

usage: make_sample.py OUTPUT      (needs: pip install tiledb numpy)

The group holds `tile`, a picture painted in three fragments on three days, and `orders`, a sparse array with a date and
a string dimension. The pack is a plain list of files: u16 length of the path, path, u32 length, bytes; little-endian.
"""
import os, struct, sys, tempfile
import numpy as np, tiledb

SIDE = 40
WHITE, COBALT, SKY, YELLOW = (244, 241, 230), (24, 58, 140), (120, 160, 214), (232, 180, 46)
DAY = 86_400_000
MAY_1 = 1_714_521_600_000  # 2024-05-01T00:00:00Z
NOON = DAY // 2


def paint():
    """The tile after each of the three days."""
    y, x = np.mgrid[0:SIDE, 0:SIDE] - (SIDE - 1) / 2
    r, a = np.hypot(x, y), np.arctan2(y, x)
    picture = np.empty((SIDE, SIDE, 3), np.uint8)
    picture[:] = WHITE
    edge = np.maximum(abs(x), abs(y))
    picture[(edge > 18) | ((edge > 15) & (edge <= 16))] = COBALT
    first = picture.copy()
    corner = np.hypot(abs(x) - 15, abs(y) - 15)
    picture[(corner < 9) & (edge <= 15)] = SKY
    picture[(corner < 9) & (corner > 7) & (edge <= 15)] = COBALT
    second = picture.copy()
    petals = r < 7 + 5 * np.cos(4 * a)
    picture[petals] = COBALT
    picture[r < 5 + 3 * np.cos(4 * a)] = SKY
    picture[r < 3] = YELLOW
    return first, second, picture


def changed(old, new):
    """The box around the pixels that differ."""
    rows, columns = np.nonzero((old != new).any(axis=2))
    return rows.min(), rows.max() + 1, columns.min(), columns.max() + 1


def make_tile(uri):
    dims = [tiledb.Dim(n, domain=(0, SIDE - 1), tile=10, dtype=np.int32, filters=[tiledb.ZstdFilter()]) for n in "yx"]
    pixel = np.dtype([("", np.uint8)] * 3)
    attr = tiledb.Attr("colour", dtype=pixel, filters=[tiledb.ZstdFilter(level=9)])
    tiledb.Array.create(uri, tiledb.ArraySchema(tiledb.Domain(*dims), [attr]))
    first, second, third = paint()
    before = None
    for day, picture in enumerate((first, second, third)):
        r0, r1, c0, c1 = (0, SIDE, 0, SIDE) if before is None else changed(before, picture)
        with tiledb.open(uri, "w", timestamp=MAY_1 + day * DAY + NOON) as array:
            array[r0:r1, c0:c1] = np.ascontiguousarray(picture[r0:r1, c0:c1]).view(pixel).reshape(r1 - r0, c1 - c0)
            if day == 2:
                array.meta["title"] = "Estrela, four petals"
                array.meta["size_cm"] = 14.0
        before = picture


def make_orders(uri):
    dims = [
        tiledb.Dim("day", domain=(np.datetime64("2024-01-01"), np.datetime64("2033-12-31")), tile=np.timedelta64(30, "D"),
                   dtype="datetime64[D]"),
        tiledb.Dim("town", dtype="ascii"),
    ]
    glazes = tiledb.Enumeration("glazes", True, np.array(["white", "sky", "cobalt"], dtype=np.str_))
    zstd = [tiledb.ZstdFilter()]
    attrs = [
        tiledb.Attr("tiles", dtype=np.int32, filters=zstd),
        tiledb.Attr("price", dtype=np.float64, filters=zstd),
        tiledb.Attr("glaze", dtype=np.int8, enum_label="glazes", filters=zstd),
        tiledb.Attr("note", dtype=np.str_, nullable=True, var=True, filters=zstd),
    ]
    schema = tiledb.ArraySchema(tiledb.Domain(*dims), attrs, sparse=True, capacity=32, enums=[glazes])
    tiledb.Array.create(uri, schema)
    rng = np.random.default_rng(14)
    towns = np.array(["Aveiro", "Braga", "Coimbra", "Lisboa", "Porto", "Vila Real"])
    notes = np.array(["", "for a fountain", "for a church", "two broke", "paid in wine"])
    for fragment in range(2):
        days = np.repeat(np.arange(20) + 20 * fragment, len(towns))
        places = np.tile(towns, 20)
        keep = rng.random(len(days)) < 0.5
        days, places = days[keep], places[keep]
        n = len(days)
        note = notes[rng.integers(0, len(notes), n)].astype(object)
        note[rng.random(n) < 0.6] = None
        with tiledb.open(uri, "w", timestamp=MAY_1 + (20 * (fragment + 1)) * DAY + NOON) as array:
            array[np.datetime64("2024-05-01") + days.astype("timedelta64[D]"), places] = {
                "tiles": rng.integers(1, 400, n).astype(np.int32),
                "price": np.round(rng.gamma(4, 0.3, n), 2),
                "glaze": rng.integers(0, 3, n).astype(np.int8),
                "note": note,
            }
        if fragment == 1:
            with tiledb.open(uri, "w", timestamp=MAY_1 + 40 * DAY) as array:
                array.meta["currency"] = "EUR"


def main(output):
    folder = tempfile.mkdtemp()
    group = os.path.join(folder, "azulejo")
    tiledb.Group.create(group)
    make_tile(os.path.join(group, "tile"))
    make_orders(os.path.join(group, "orders"))
    with tiledb.Group(group, "w") as g:
        g.add("tile", name="tile", relative=True)
        g.add("orders", name="orders", relative=True)
        g.meta["workshop"] = "Rua do Almada"
    with open(output, "wb") as pack:
        for where, _, files in sorted(os.walk(folder)):
            for name in sorted(files):
                path = os.path.join(where, name)
                data = open(path, "rb").read()
                name = os.path.relpath(path, folder).encode()
                pack.write(struct.pack("<H", len(name)) + name + struct.pack("<I", len(data)) + data)
    print(output, os.path.getsize(output), "bytes")


main(sys.argv[1])
