// The interface: selections, types, Arrow, aggregates, time travel, groups, files, Zarr, errors.
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { tableFromIPC } from "apache-arrow";
import * as zarr from "zarrita";
import { AzulejoError, Column, HttpSource, open, openArray, openGroup } from "../pkg/index.js";
import { AzulejoZarrStore } from "../pkg/zarr.js";
import { coalesce } from "../pkg/sources.js";
import { serve } from "./server.mjs";

const arrays = process.env.AZULEJO_ARRAYS;
const demo = (name) => `${server.url}/arrays/demo/${name}`;
let server;
before(async () => {
  server = await serve({ "/arrays": arrays });
});
after(() => server.close());

// `grid`: dense, y and x from 0 to 999 in tiles of 100, v = 1000 y + x; rows 100 to 199 once more,
// with v = -1, 1000 ms later. `points`: sparse, 10000 cells, x = i, y = i^2 mod 1009, class i mod 3.

test("a box of a dense array is a typed array with a shape", async () => {
  const grid = await openArray(demo("grid"));
  assert.deepEqual(grid.dimensions.map((d) => d.name), ["y", "x"]);
  const box = await grid.get({ y: [98, 101], x: [5, 6] });
  assert.deepEqual(box.shape, [4, 2]);
  assert.ok(box.columns.v.values instanceof Int32Array);
  assert.deepEqual([...box.columns.v.values], [98005, 98006, 99005, 99006, -1, -1, -1, -1]);
  const strided = await grid.get({ y: { range: [0, 50], step: 25 }, x: 7 });
  assert.deepEqual(strided.shape, [3, 1]);
  assert.deepEqual([...strided.columns.v], [7, 25007, 50007]);
});

test("time travel reads through the same source", async () => {
  const grid = await openArray(demo("grid"));
  assert.equal(grid.fragments.length, 2);
  const [first, second] = grid.fragments.map((f) => f.timeRange[0]);
  const before = await grid.at(second - 1);
  assert.equal(before.fragments.length, 1);
  const cell = { y: 150, x: 3 };
  assert.deepEqual([...(await before.get(cell)).columns.v], [150003]);
  assert.deepEqual([...(await grid.get(cell)).columns.v], [-1]);
  const later = await openArray(demo("grid"), { at: [first + 1, undefined] });
  assert.equal(later.fragments.length, 1);
});

test("queries come as Arrow, with conditions and coordinates", async () => {
  const points = await openArray(demo("points"));
  const ipc = await points.query({ where: "class = 'b' and x < 10", fields: ["x", "y", "class"] });
  const table = tableFromIPC(ipc);
  assert.deepEqual([...table.getChild("x")], [1n, 4n, 7n]);
  assert.deepEqual([...table.getChild("y")], [1, 16, 49]);
  assert.deepEqual([...table.getChild("class")], ["b", "b", "b"]);
  const grid = await openArray(demo("grid"));
  const few = tableFromIPC(await grid.query({ where: "v >= 999998" }));
  assert.deepEqual(few.toArray().map((row) => [row.y, row.x, row.v]), [
    [999, 998, 999998],
    [999, 999, 999999],
  ]);
});

test("sparse cells have coordinates, text, nulls and enumerations", async () => {
  const points = await openArray(demo("points"));
  const found = await points.get({ x: [3n, 5n] }, { layout: "row-major" });
  const { x, y, class: kind, note } = found.columns;
  assert.deepEqual([...x], [3n, 4n, 5n]);
  assert.deepEqual([...y], [9, 16, 25]);
  assert.deepEqual([...kind], [0, 1, 2]);
  assert.equal(kind.enumeration, "classes");
  assert.deepEqual((await points.enumeration("classes")).values, ["a", "b", "c"]);
  assert.deepEqual([...note], ["note 3", null, "note 5"]);
  assert.equal(found.shape, undefined);
});

test("points are cells here and there", async () => {
  const grid = await openArray(demo("grid"));
  const { cells, shape, columns } = await grid.get({}, { points: { y: [900, 3, 150], x: [1, 2n, 3] } });
  assert.deepEqual([cells, shape, [...columns.v]], [3, undefined, [900001, 3002, -1]]);
  const points = await openArray(demo("points"));
  const found = await points.get({}, { points: { x: [4, 5, 6], y: [16, 0, 36] }, layout: "row-major" });
  assert.deepEqual([...found.columns.x], [4n, 6n]);
  await assert.rejects(grid.get({}, { points: { y: [1] } }), { code: "InvalidArgument", message: /dimension "x"/ });
  await assert.rejects(grid.get({ x: 1 }, { points: { y: [1], x: [1] } }), { code: "InvalidArgument" });
});

test("named snapshots", async () => {
  const relief = await openArray(demo("relief"));
  const [{ name, at }] = await relief.snapshots();
  assert.deepEqual([name, at], ["first-survey", relief.fragments[0].timeRange[0]]);
  const first = await openArray(demo("relief@first-survey"));
  assert.equal(first.fragments.length, 1);
  assert.deepEqual(await first.snapshots(), [{ name, at }]);
  await assert.rejects(openArray(demo("relief@never")), { code: "Unsupported", message: /azulejo manifest/ });
  assert.deepEqual(await (await openArray(demo("grid"))).snapshots(), []);
});

test("labels of a dimension", async () => {
  const relief = await openArray(demo("relief"));
  const north = await relief.labels("northing", [3, 5]);
  assert.deepEqual([...north], [5200090, 5200120, 5200150]);
  assert.equal((await relief.labels("northing")).length, 1536);
  await assert.rejects(relief.labels("easting"), { code: "NotFound" });
});

test("a result is put together without holding it twice", async () => {
  const grid = await openArray(demo("grid"), { memory: 8 << 20 });
  const { columns, shape } = await grid.get();
  assert.deepEqual(shape, [1000, 1000]);
  const cell = (y, x) => (y >= 100 && y < 200 ? -1 : 1000 * y + x);
  const wrong = columns.v.values.findIndex((v, i) => v !== cell(Math.floor(i / 1000), i % 1000));
  assert.equal(wrong, -1);
  const half = await grid.get({}, { limit: 500_500 });
  assert.deepEqual([half.cells, half.columns.v.values.length], [500_500, 500_500]);
  const ends = await grid.get({ y: [0, 1] }, { where: "v > 1997", matching: true });
  assert.deepEqual([...ends.columns.v], [1998, 1999]);
  // 4 MB do not fit the five eighths of 6 MiB that are for results.
  const small = await openArray(demo("grid"), { memory: 6 << 20 });
  await assert.rejects(small.get(), { code: "Budget" });
});

test("aggregates", async () => {
  const points = await openArray(demo("points"));
  const all = await points.aggregate(["count", "sum:x", "max:y", "min:note", "nulls:note"]);
  assert.deepEqual(all, {
    count: 10000,
    "sum:x": 49995000,
    "max:y": 1008,
    "min:note": "note 1",
    "nulls:note": 5000,
  });
  const some = await points.aggregate("count", { where: "x >= 9990" });
  assert.deepEqual(some, { count: 10 });
});

test("groups open their members", async () => {
  const group = await open(`${server.url}/arrays/demo`);
  assert.equal(group.kind, "group");
  assert.deepEqual(group.members.map((m) => m.name), ["grid", "points", "quakes", "relief"]);
  assert.equal(group.metadata.get("title"), "A demonstration");
  const grid = await group.open("grid");
  assert.equal(grid.kind, "array");
  assert.equal((await grid.metadata()).get("unit"), "m");
  await assert.rejects(group.open("nothing"), { code: "NotFound" });
  await assert.rejects(openGroup(demo("grid")), { code: "NotFound" });
});

test("boxes of fragments and of their tiles", async () => {
  const points = await openArray(demo("points"));
  assert.deepEqual(points.fragments[0].domain[0], [0, 9999]);
  const boxes = await points.boxes(0);
  assert.equal(boxes.length, points.fragments[0].tiles);
  assert.ok(boxes.every(([[low, high]]) => low <= high && low >= 0 && high <= 9999));
  await assert.rejects(points.boxes(7), { code: "InvalidArgument" });
});

async function files(folder) {
  const found = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    if (entry.isFile()) found[path.slice(folder.length + 1)] = new Uint8Array(await readFile(path));
  }
  return found;
}

test("files in memory and files that a user has chosen", async () => {
  const all = await files(join(arrays, "demo/points"));
  // A listing counts, not a manifest.
  delete all["__azulejo/manifest"];
  const memory = await openArray(all);
  assert.deepEqual(await memory.aggregate("count"), { count: 10000 });
  const chosen = Object.entries(all).map(([path, bytes]) =>
    Object.assign(new File([bytes], path.split("/").at(-1)), { webkitRelativePath: `points/${path}` }),
  );
  // node's File has no such property of its own.
  const fromList = await openArray(chosen);
  assert.equal(fromList.uri, "local://points");
  assert.deepEqual([...(await fromList.get({ x: 9 })).columns.y], [81]);
});

test("a folder handle", async () => {
  const all = await files(join(arrays, "demo"));
  const folder = (prefix) => ({
    kind: "directory",
    name: prefix.split("/").at(-2) ?? "",
    async getDirectoryHandle(name) {
      const inside = Object.keys(all).some((path) => path.startsWith(`${prefix}${name}/`));
      if (!inside) throw new DOMException("missing", "NotFoundError");
      return folder(`${prefix}${name}/`);
    },
    async getFileHandle(name) {
      const bytes = all[`${prefix}${name}`];
      if (!bytes) throw new DOMException("missing", "NotFoundError");
      return { kind: "file", name, getFile: async () => new File([bytes], name) };
    },
    async *values() {
      const below = Object.keys(all).filter((path) => path.startsWith(prefix));
      const names = new Map(
        below.map((path) => {
          const [name, ...rest] = path.slice(prefix.length).split("/");
          return [name, rest.length > 0 ? "directory" : "file"];
        }),
      );
      for (const [name, kind] of names) yield { name, kind };
    },
  });
  const group = await open(folder(""));
  assert.equal(group.kind, "group");
  const grid = await group.open("grid");
  assert.deepEqual([...(await grid.get({ y: 1, x: 1 })).columns.v], [1001]);
});

test("a dense array is a Zarr store", async () => {
  const grid = await openArray(demo("grid"));
  const store = new AzulejoZarrStore(grid);
  const root = await zarr.open.v3(store, { kind: "group" });
  assert.equal(root.attrs.unit, "m");
  const v = await zarr.open.v3(root.resolve("v"), { kind: "array" });
  assert.deepEqual(v.shape, [1000, 1000]);
  assert.deepEqual(v.chunks, [100, 100]);
  const part = await zarr.get(v, [zarr.slice(98, 101), zarr.slice(998, 1000)]);
  assert.deepEqual([...part.data], [98998, 98999, 99998, 99999, -1, -1]);
  assert.throws(() => new AzulejoZarrStore({ dense: false, uri: "x" }), AzulejoError);
});

test("errors say what is wrong, and where", async () => {
  const grid = await openArray(demo("grid"));
  const refused = async (work, code, text) => {
    await assert.rejects(work, (error) => {
      assert.ok(error instanceof AzulejoError, String(error));
      assert.equal(error.code, code, error.message);
      assert.match(error.message, text);
      return true;
    });
  };
  await refused(grid.get({ z: 1 }), "SchemaMismatch", /no dimension "z"; there are y, x/);
  await refused(grid.get({ x: [0, 1000] }), "InvalidArgument", /dimension "x"/);
  await refused(grid.get({}, { fields: ["w"] }), "SchemaMismatch", /w/);
  await refused(grid.query({ where: "v >" }), "InvalidArgument", /v >/);
  await refused(grid.aggregate("median:v"), "InvalidArgument", /median/);
  await refused(open(`${server.url}/arrays/nothing`), "Unsupported", /azulejo manifest/);
  await refused(open("ftp://host/array"), "Unsupported", /ftp/);
  await refused(openArray(demo("grid"), { key: "short" }), "InvalidArgument", /32 bytes/);
  const small = await openArray(demo("grid"), { memory: 1 << 20 });
  await refused(small.get(), "Budget", /bytes/);
});

test("signals end what is under way, and progress is told", async () => {
  const slow = await serve({ "/arrays": arrays }, ({ path }) =>
    path.includes("/a") && path.endsWith(".tdb") && path.includes("__fragments/") && !path.includes("__fragment_metadata")
      ? { delay: 300 }
      : {},
  );
  try {
    const grid = await openArray(`${slow.url}/arrays/demo/grid`);
    const controller = new AbortController();
    const reading = grid.get({}, { signal: controller.signal });
    setTimeout(() => controller.abort(), 50);
    const begun = Date.now();
    await assert.rejects(reading, { name: "AbortError" });
    assert.ok(Date.now() - begun < 280, "it did not wait for the answer");
    await assert.rejects(grid.get({}, { signal: AbortSignal.abort() }), { name: "AbortError" });
    const seen = [];
    await grid.get({}, { onProgress: (progress) => seen.push(progress) });
    assert.ok(seen.length > 1);
    assert.equal(seen.at(-1).cells, 1_000_000);
    assert.ok(seen.at(-1).bytes > 1000);
  } finally {
    await slow.close();
  }
});

test("counts are whole numbers", async () => {
  const grid = await openArray(demo("grid"));
  for (const limit of [NaN, -1, 1.5, "3"]) {
    await assert.rejects(grid.get({ x: 1 }, { limit }), { code: "InvalidArgument" });
  }
  for (const step of [NaN, -1, 1.5]) {
    await assert.rejects(grid.get({ x: { range: [0, 9], step } }), { code: "InvalidArgument" });
  }
  const found = await grid.get({ x: { range: [0, 9], step: 4n }, y: [1, 2] }, { limit: 4n });
  assert.equal(found.cells, 4);
  assert.equal((await grid.get({ x: [0, 1], y: [1, 2] }, { limit: Infinity })).cells, 4);
});

test("bounds are finite, and ranges have two of them", async () => {
  const grid = await openArray(demo("grid"));
  const wrong = [NaN, [NaN, 5], [0, Infinity], [5], [1, 2, 3], [[1, 2], [3]], [new Date(NaN), null], {}];
  for (const x of wrong) {
    await assert.rejects(grid.get({ x }), { code: "InvalidArgument" }, String(x));
    await assert.rejects(grid.aggregate("count", { select: { x } }), { code: "InvalidArgument" });
  }
  for (const x of [[], { ranges: [] }]) {
    const { cells, shape, columns } = await grid.get({ x, y: [0, 4] });
    assert.deepEqual([cells, shape, columns.v.length], [0, [5, 0], 0]);
  }
  const all = await grid.get({ x: null, y: [null, 1] });
  assert.deepEqual(all.shape, [2, 1000]);
  const steps = await grid.get({ x: { range: [0, 9], step: 4 }, y: [[1, 2], [7, 7]] });
  assert.deepEqual([steps.shape, steps.cells], [[3, 3], 9]);
});

test("a query that finds nothing has columns", async () => {
  const points = await openArray(demo("points"));
  const { cells, columns } = await points.get({}, { where: "x < 0" });
  assert.equal(cells, 0);
  assert.deepEqual(Object.keys(columns).sort(), ["class", "note", "x", "y"]);
  for (const column of Object.values(columns)) assert.deepEqual([column.length, [...column]], [0, []]);
  const table = tableFromIPC(await points.query({ where: "x < 0" }));
  assert.deepEqual([table.numRows, table.schema.fields.map((f) => f.name)], [0, ["x", "y", "class", "note"]]);
  const grid = await openArray(demo("grid"));
  assert.equal((await grid.get({}, { where: "v > 9999999", matching: true })).columns.v.length, 0);
});

test("what one call no longer wants others still get", async () => {
  const slow = await serve({ "/arrays": arrays }, ({ path }) =>
    path.endsWith("/manifest") || path.includes("__labels") ? { delay: 150 } : {},
  );
  try {
    const controller = new AbortController();
    const relief = await openArray(`${slow.url}/arrays/demo/relief`);
    const wanted = [relief.labels("northing", [3, 5], { signal: controller.signal }), relief.labels("northing", [3, 5])];
    setTimeout(() => controller.abort(), 30);
    const [first, second] = await Promise.allSettled(wanted);
    assert.equal(first.reason?.name, "AbortError");
    assert.deepEqual([...second.value], [5200090, 5200120, 5200150]);
  } finally {
    await slow.close();
  }
});

test("a manifest that two wait for is not lost with one of them", async () => {
  const answers = [];
  const fetch = () => new Promise((resolve) => answers.push(() => resolve(new Response("manifest"))));
  const source = new HttpSource({ fetch });
  const controller = new AbortController();
  const read = (signal) => source.read([["http://host/a/__azulejo/manifest"]], signal);
  const [first, second] = [read(controller.signal), read()];
  controller.abort();
  await assert.rejects(first, { name: "AbortError" });
  assert.equal(answers.length, 1);
  answers[0]();
  assert.equal(new TextDecoder().decode((await second)[0]), "manifest");
});

test("texts keep a mark that they begin with", () => {
  const bytes = new TextEncoder().encode("\uFEFFab");
  const column = new Column({
    name: "s",
    datatype: "STRING_UTF8",
    cellValNum: 0,
    data: bytes,
    offsets: Uint32Array.of(0, bytes.length),
  });
  assert.deepEqual([...column], ["\uFEFFab"]);
});

test("near ranges are one request", () => {
  const ranges = [
    [10, 20],
    [0, 5],
    [5, 8],
    [100, 100],
    [1000, 1010],
  ].map(([start, end]) => ({ start, end }));
  assert.deepEqual(coalesce(ranges, 2, 100), [
    { start: 0, end: 20, members: [1, 2, 0] },
    { start: 1000, end: 1010, members: [4] },
  ]);
  assert.equal(coalesce(ranges, 1, 100).length, 3);
  assert.equal(coalesce(ranges, 2, 8).length, 3);
});

test("what is closed says so, and may be closed again", async () => {
  const grid = await openArray(demo("grid"));
  grid.close();
  grid.close();
  const closed = { name: "AzulejoError", code: "InvalidArgument", message: /grid was closed/ };
  await assert.rejects(grid.get({ y: 0, x: 0 }), closed);
  await assert.rejects(grid.aggregate("count"), closed);
  await assert.rejects(grid.query(), closed);
  await assert.rejects(grid.metadata(), closed);
});

test("moments that were given may be asked for, and what is no URL is said", async () => {
  const grid = await openArray(demo("grid"));
  const [first] = grid.fragments.map((f) => f.timeRange[0]);
  assert.equal((await grid.at(BigInt(first))).fragments.length, 1);
  assert.equal((await grid.at([0n, BigInt(first)])).fragments.length, 1);
  await assert.rejects(open("no url"), { name: "AzulejoError", code: "InvalidArgument", message: /no url is no URL/ });
});

/** They were looked for beside the worker's own script. */
test("a worker is told URLs as the page means them", async () => {
  const { Worker: worker, location } = globalThis;
  const sent = [];
  globalThis.Worker = class extends EventTarget {
    postMessage(message) {
      sent.push(message);
    }
    terminate() {}
  };
  globalThis.location = { href: "https://host/maps/index.html" };
  try {
    const { startWorker } = await import("../pkg/worker.js");
    const started = startWorker();
    const opened = ["data/t", new URL("https://other/t")].map((where) => started.open(where, { module: "x.wasm" }));
    const ended = Promise.allSettled(opened);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(sent.map(({ args: [place] }) => place), ["https://host/maps/data/t", "https://other/t"]);
    assert.equal(sent[0].args[1].module, "https://host/maps/x.wasm");
    started.close();
    assert.deepEqual((await ended).map(({ reason }) => reason.code), ["Cancelled", "Cancelled"]);
  } finally {
    Object.assign(globalThis, { Worker: worker, location });
    if (worker === undefined) delete globalThis.Worker;
    if (location === undefined) delete globalThis.location;
  }
});
