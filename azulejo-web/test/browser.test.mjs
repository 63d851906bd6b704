// The package in a browser: arrays of every format version over HTTP from another origin, in the
// page and in a worker.
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch, skip } from "./browser.mjs";
import { compare, decodeCells } from "./expected.mjs";
import { serve } from "./server.mjs";

const arrays = process.env.AZULEJO_ARRAYS;
const here = fileURLToPath(new URL(".", import.meta.url));
let [pages, data, browser, page] = [];

before(async () => {
  if (skip) return;
  pages = await serve({ "/pkg": join(here, "../pkg"), "/test": here });
  data = await serve({ "/arrays": arrays });
  browser = await launch();
  page = await browser.newPage();
  await page.goto(`${pages.url}/test/blank.html`);
});
after(async () => {
  await browser?.close();
  await pages?.close();
  await data?.close();
});

async function expectations() {
  const found = [];
  for (const entry of await readdir(join(arrays, "expected"), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith(".json")) continue;
    const folder = (entry.parentPath ?? entry.path).slice(join(arrays, "expected/").length);
    found.push(join(folder, entry.name).slice(0, -".json".length));
  }
  return found.sort();
}

const json = async (path) => JSON.parse(await readFile(join(arrays, path), "utf8"));

/** Reads an array in the page; values as lists of bytes. */
async function inPage(url, options, box, worker) {
  return page.evaluate(
    async ({ url, options, box, worker }) => {
      const { open } = await import("/pkg/index.js");
      const { startWorker } = await import("/pkg/worker.js");
      globalThis.shared ??= startWorker();
      const opened = await (worker ? globalThis.shared.open(url, options) : open(url, options));
      if (opened.kind === "group") return { kind: "group", members: opened.members.length };
      const select = {};
      if (opened.dense && box) opened.dimensions.forEach((d, i) => (select[d.name] = box[i]));
      const { columns } = await opened.get(select);
      const listed = Object.values(columns).map((c) => ({
        name: c.name,
        cellValNum: c.cellValNum,
        length: c.length,
        size: c.values.BYTES_PER_ELEMENT,
        bytes: [...new Uint8Array(c.values.buffer, c.values.byteOffset, c.values.byteLength)],
        offsets: c.offsets && [...c.offsets],
        validity: c.validity && [...c.validity],
      }));
      const { dense, schema, fragments } = opened;
      const filters = [...schema.attributes, ...schema.dimensions].flatMap((f) => f.filters.filters.map((x) => x.filter));
      const more = ["coords", "offsets", "validity"].flatMap((n) => schema[`${n}_filters`].filters.map((x) => x.filter));
      const versions = [schema.version, ...fragments.map((f) => f.version)];
      await opened.close();
      return { kind: "array", dense, columns: listed, versions, filters: [...filters, ...more] };
    },
    { url, options, box, worker },
  );
}

/** A column as `compare` takes it. */
const column = ({ bytes, size, ...rest }) => {
  const values = new { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: BigUint64Array }[size](Uint8Array.from(bytes).buffer);
  return { ...rest, values };
};

test("arrays of the corpus read as expected in the page and in a worker", { skip }, async () => {
  const keys = await json("keys.json");
  const [versions, filters] = [new Set(), new Set()];
  const failures = [];
  let [arrays_read, groups] = [0, 0];
  for (const [i, name] of (await expectations()).entries()) {
    const expected = await json(`expected/${name}.json`);
    if (expected.readable === false) continue;
    const key = Object.entries(keys).find(([part]) => name.includes(part))?.[1];
    try {
      const found = await inPage(`${data.url}/arrays/${name}`, { key }, expected.read_box, i % 2 === 1);
      assert.equal(found.kind, expected.kind);
      if (found.kind === "group") {
        assert.equal(found.members, expected.members.length);
        groups++;
        continue;
      }
      const cells = await readFile(join(arrays, `expected/${name}.cells`)).catch(() => undefined);
      if (cells) compare(decodeCells(new Uint8Array(cells)), found.columns.map(column), found.dense);
      for (const version of found.versions) versions.add(version);
      for (const filter of found.filters) filters.add(filter);
      arrays_read++;
    } catch (error) {
      failures.push(`${name}: ${String(error.message).slice(0, 300)}`);
    }
  }
  assert.deepEqual(failures, []);
  assert.ok(arrays_read > 540, `${arrays_read} arrays, ${groups} groups`);
  const missing = ["gzip", "zstd", "lz4", "rle", "bzip2", "double_delta", "bit_width_reduction", "bitshuffle", "byteshuffle", "positive_delta", "checksum_md5", "checksum_sha256", "dictionary", "float_scale", "xor", "delta", "webp"].filter((f) => !filters.has(f));
  assert.deepEqual(missing, [], "filters that no array had");
  const missed = Array.from({ length: 22 }, (_, i) => i + 1).filter((version) => !versions.has(version));
  assert.deepEqual(missed, [], "format versions that no array had");
});

test("a worker cancels, tells progress and names errors", { skip }, async () => {
  const found = await page.evaluate(async (url) => {
    const { startWorker } = await import("/pkg/worker.js");
    const worker = startWorker();
    const grid = await worker.open(url);
    const progress = [];
    const { columns, shape } = await grid.get({ y: [0, 1], x: [0, 2] }, { onProgress: (p) => progress.push(p) });
    const aborted = await grid.get({}, { signal: AbortSignal.abort() }).catch((error) => error.name);
    const controller = new AbortController();
    const reading = grid.get({}, { signal: controller.signal });
    controller.abort();
    const late = await reading.catch((error) => error.name);
    const wrong = await grid.get({ z: 1 }).catch((error) => [error.name, error.code]);
    const before = await grid.at(grid.fragments[0].timeRange[0]);
    const cell = await before.get({ y: 150, x: 0 });
    const io = await grid.io();
    worker.close();
    return {
      ...{ values: [...columns.v], shape, told: progress.at(-1).cells, aborted, late, wrong },
      ...{ before: columns.v.get(1), earlier: cell.columns.v.get(0), requests: io.requests },
    };
  }, `${data.url}/arrays/demo/grid`);
  assert.deepEqual(found.values, [0, 1, 2, 1000, 1001, 1002]);
  assert.deepEqual(found.shape, [2, 3]);
  assert.equal(found.told, 6);
  assert.equal(found.aborted, "AbortError");
  assert.equal(found.late, "AbortError");
  assert.deepEqual(found.wrong, ["AzulejoError", "SchemaMismatch"]);
  assert.equal(found.earlier, 150000);
  assert.ok(found.requests > 3);
});

test("errors in a page: no permission from the server (CORS), no ranges, nothing there", { skip }, async () => {
  const told = async (misbehave) => {
    const server = await serve({ "/arrays": arrays }, misbehave);
    try {
      return await page.evaluate(async (url) => {
        const { openArray } = await import("/pkg/index.js");
        return openArray(url)
          .then((array) => array.get({ x: 1, y: 1 }))
          .then(() => "no error", ({ name, code, message }) => `${name} ${code} ${message}`);
      }, `${server.url}/arrays/demo/grid`);
    } finally {
      await server.close();
    }
  };
  const isData = (path) => path.endsWith("/a0.tdb");
  assert.match(await told(() => ({ cors: false })), /^AzulejoError Storage .*demo\/grid.*CORS/);
  assert.match(await told(({ path }) => ({ ranges: !isData(path) })), /^AzulejoError Storage .*a0\.tdb.*byte ranges/);
  assert.match(await told(({ path }) => (isData(path) ? { status: 404 } : {})), /^AzulejoError NotFound .*a0\.tdb.*stale/);
  assert.match(await told(({ path }) => (isData(path) ? { cut: 100 } : {})), /^AzulejoError Storage .*a0\.tdb.*broke off/);
});

test("a worker that has ended answers at once", { skip }, async () => {
  const codes = await page.evaluate(async (url) => {
    const { startWorker } = await import("/pkg/worker.js");
    const late = () => new Promise((resolve) => setTimeout(resolve, 5000, "late"));
    const named = (error) => (typeof error.code === "string" ? error.code : error.name);
    const code = (work) => Promise.race([work, late()]).catch(named);
    const worker = startWorker();
    const array = await worker.open(url);
    // What cannot be sent is no call.
    const unsent = await code(array.get({ x: () => 1 }));
    const under = code(array.get());
    worker.close();
    return [unsent, await under, await code(array.get()), await code(worker.open(url))];
  }, `${data.url}/arrays/demo/grid`);
  assert.deepEqual(codes, ["DataCloneError", "Cancelled", "Cancelled", "Cancelled"]);
});
