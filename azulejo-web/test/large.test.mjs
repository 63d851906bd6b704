// An array of 1 GB: how long the first window takes, what is asked for, and how much memory.
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openArray } from "../pkg/index.js";
import { skip } from "./browser.mjs";
import { isKnown, measured } from "./memory.mjs";
import { roundsOf } from "./rounds.mjs";
import { serve } from "./server.mjs";

const large = process.env.AZULEJO_LARGE;
const here = fileURLToPath(new URL(".", import.meta.url));
const SIDE = 16_384;
const TILE = 512;

async function withServer(delay, work) {
  const server = await serve({ "/arrays": large }, () => ({ delay }));
  try {
    return await work(server);
  } finally {
    await server.close();
  }
}

const window = (y, x, size = TILE) => ({ y: [y, y + size - 1], x: [x, x + size - 1] });
const sum = (requests) => requests.reduce((bytes, request) => bytes + (request.bytes ?? 0), 0);

/** Whether other work keeps the machine so busy that times say nothing of ours. */
const isBusy = loadavg()[0] > 2 * availableParallelism();

test("the first window of 1 GB takes two rounds, less than 1 s and 5 MB", (t) =>
  withServer(100, async (server) => {
    // What the module's first calls compile is not what is timed.
    const warm = await openArray(`${server.url}/arrays/big`);
    await warm.get(window(0, 0));
    warm.close();
    server.take();
    const begun = performance.now();
    const array = await openArray(`${server.url}/arrays/big`);
    const { shape, columns } = await array.get(window(4000, 5000));
    const took = performance.now() - begun;
    const requests = server.take();
    assert.deepEqual([shape, columns.v.length], [[TILE, TILE], TILE * TILE]);
    // Waves of 1000 and noise of 10.
    const wave = (y, x) => Math.sin(y / 700) * 1000 * Math.cos(Math.floor(x / 8) / 110);
    for (const [row, column] of [[0, 0], [511, 511], [100, 300]]) {
      const off = columns.v.get(row * TILE + column) - wave(4000 + row, 5000 + column);
      assert.ok(off > -0.1 && off < 10.1, `${off} at ${row}, ${column}`);
    }
    // The manifest, which holds the schema and where the tiles lie; then four tiles.
    assert.equal(roundsOf(requests), 2, requests.map((r) => `${r.path} ${r.range}`).join("\n"));
    t.diagnostic(`${Math.round(took)} ms`);
    assert.ok(isBusy || took < 1000, `${took} ms`);
    assert.ok(sum(requests) < 5e6, `${sum(requests)} bytes`);
  }));

test("a view of 512 x 512 reads only its chunks, and each once", () =>
  withServer(0, async (server) => {
    const array = await openArray(`${server.url}/arrays/big`);
    // Where tiles lie is looked up once.
    await array.get(window(0, 0));
    server.take();
    const { size } = await stat(join(large, "big/__fragments", array.fragments[0].name, "a0.tdb"));
    const tile = size / (SIDE / TILE) ** 2;
    await array.get(window(8 * TILE, 9 * TILE));
    const one = server.take();
    assert.equal(one.length, 1);
    assert.ok(Math.abs(sum(one) - tile) < tile / 20, `${sum(one)} bytes of tiles of ${tile}`);
    // Half a tile further: three more.
    await array.get(window(8.5 * TILE, 9.5 * TILE));
    const more = server.take();
    assert.ok(Math.abs(sum(more) - 3 * tile) < tile / 5, `${sum(more)} bytes of tiles of ${tile}`);
    await array.get(window(8.25 * TILE, 9.25 * TILE));
    assert.deepEqual(server.take(), []);
  }));

/** Reads all of an array, batch by batch; `done` says what becomes of a batch. */
const scan = (done) => `
export default async function (origin) {
  const { openArray } = await import(origin + "/pkg/index.js");
  const array = await openArray(origin + "/arrays/big");
  let cells = 0;
  for await (const batch of array.batches()) {
    cells += batch.cells;
    ${done}
  }
  return { cells, bytes: array.io.bytes };
}`;

const frees = { skip: ArrayBuffer.prototype.transfer ? false : "this engine cannot give back memory" };

test("a batch that was freed is empty", frees, () =>
  withServer(0, async (server) => {
    const array = await openArray(`${server.url}/arrays/big`);
    for await (const batch of array.batches({ select: window(0, 0) })) {
      assert.equal(batch.columns[0].values.length, batch.cells);
      batch.free();
      assert.equal(batch.columns[0].values.length, 0);
      batch.free();
    }
  }));

/** Looks at windows here and there, as a map does. */
const windows = `
export default async function (origin) {
  const { openArray } = await import(origin + "/pkg/index.js");
  const array = await openArray(origin + "/arrays/big");
  let cells = 0;
  for (let i = 0; i < 120; i++) {
    const [y, x] = [(i * 1237) % 15872, (i * 2411) % 15872];
    cells += (await array.get({ y: [y, y + 511], x: [x, x + 511] })).cells;
  }
  return { cells, bytes: array.io.bytes };
}`;

const folders = { "/pkg": join(here, "../pkg"), "/test": here, "/arrays": large };
const options = { skip: skip || (isKnown ? false : "this system does not tell what a process takes") };

/** At most: with what the browser's collector leaves of what was fetched and shown before. */
function staysBelow({ median, most }, limit) {
  assert.ok(most < limit, `${most} MB at most, ${median} MB in the middle`);
}

// Batches that nobody frees stay until Chromium's collector comes: as many as 100 MB of them.
const scans = [["left to the collector", "", 360], ["freed", "batch.free();", 250]];
for (const [name, done, limit] of scans) {
  test(`a scan of 1 GB in a browser stays below ${limit} MB, its batches ${name}`, options, async (t) => {
    const { answer, ...memory } = await measured(scan(done), folders);
    t.diagnostic(`${memory.median} MB in the middle, ${memory.most} MB at most`);
    assert.equal(answer.cells, SIDE * SIDE);
    staysBelow(memory, limit);
  });
}

test("windows of 1 GB in a browser stay below 250 MB", options, async (t) => {
  const { answer, ...memory } = await measured(windows, folders);
  t.diagnostic(`${memory.median} MB in the middle, ${memory.most} MB at most`);
  assert.equal(answer.cells, 120 * TILE * TILE);
  staysBelow(memory, 250);
});
