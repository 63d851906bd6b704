// Servers that misbehave and files that lie: errors that name them, never a trap.
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { AzulejoError, HttpSource, openArray } from "../pkg/index.js";
import { serve } from "./server.mjs";

const arrays = process.env.AZULEJO_ARRAYS;
const isData = (path) => path.includes("/__fragments/") && path.endsWith("/a0.tdb");

async function withServer(misbehave, work) {
  const server = await serve({ "/arrays": arrays }, misbehave);
  try {
    return await work(`${server.url}/arrays/demo/grid`, server);
  } finally {
    await server.close();
  }
}

async function fails(url, text) {
  await assert.rejects(
    (async () => (await openArray(url)).get({ y: [0, 9], x: [0, 9] }))(),
    (error) => {
      assert.ok(error instanceof AzulejoError, String(error));
      assert.match(error.message, text);
      assert.match(error.message, /http:\/\/127\.0\.0\.1:\d+\/arrays\/demo\/grid/);
      return true;
    },
  );
}

test("a server without ranges", () =>
  withServer(({ path }) => ({ ranges: !isData(path) }), (url) => fails(url, /byte ranges/)));

test("a refusal", () =>
  withServer(({ path }) => (isData(path) ? { status: 403 } : {}), (url) => fails(url, /403/)));

test("a file that is gone: the manifest is stale", () =>
  withServer(({ path }) => (isData(path) ? { status: 404 } : {}), (url) => fails(url, /stale/)));

test("a server out of order is tried again, then named", () =>
  withServer(({ path }) => (isData(path) ? { status: 503 } : {}), async (url, server) => {
    await fails(url, /503/);
    assert.equal(server.take().filter(({ path }) => isData(path)).length % 3, 0);
  }));

test("a body that breaks off is asked for again", async () => {
  let cuts = 1;
  await withServer(({ path }) => (isData(path) && cuts-- > 0 ? { cut: 10 } : {}), async (url) => {
    const found = await (await openArray(url)).get({ y: 3, x: 4 });
    assert.deepEqual([...found.columns.v], [3004]);
  });
});

test("bodies that always break off", () =>
  withServer(({ path }) => (isData(path) ? { cut: 10 } : {}), (url) => fails(url, /broke off/)));

/** A page of an error, as some hosts answer for what is missing. */
test("a server that answers with a page instead of the file", () =>
  withServer(({ path }) => (path.endsWith("/manifest") ? { page: true } : {}), (url) => fails(url, /manifest/)));

test("a file that has grown shorter", async () => {
  // The data file has grown shorter than the metadata says.
  await withServer(({ path }) => (isData(path) ? { size: 100 } : {}), (url) => fails(url, /100 bytes came where/));
});

/** A page of another origin sees the length of what was sent, and not that it was compressed. */
test("a whole file may be longer than it is said to be", async () => {
  const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => (i / 1000) & 255);
  const body = () =>
    new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.length; at += 50_000) controller.enqueue(bytes.slice(at, at + 50_000));
        controller.close();
      },
    });
  for (const said of [undefined, 70_000, 299_999, 300_000, 900_000]) {
    const headers = said === undefined ? {} : { "Content-Length": String(said) };
    const source = new HttpSource({ fetch: async () => new Response(body(), { headers }) });
    const [whole] = await source.read([["http://host/file"]]);
    assert.deepEqual([whole.length, Buffer.compare(whole, bytes)], [300_000, 0], String(said));
    await assert.rejects(source.read([["http://host/file", undefined, undefined, 299_999]]), { code: "Limit" });
    const [fits] = await source.read([["http://host/file", undefined, undefined, 300_000]]);
    assert.equal(fits.length, 300_000);
  }
  // Of a part all of it comes, and no more.
  const part = new HttpSource({ fetch: async () => new Response(body(), { status: 206 }) });
  await assert.rejects(part.read([["http://host/file", 0, 100_000]]), { code: "Cut" });
});

test("what fails asks for nothing more", async () => {
  let asked = 0;
  const source = new HttpSource({
    fetch: async (url) => {
      asked++;
      if (url.endsWith("/0")) return new Response("", { status: 403 });
      await new Promise((resolve) => setTimeout(resolve, 5));
      return new Response(new Uint8Array(4), { status: 206 });
    },
  });
  const requests = Array.from({ length: 200 }, (_, i) => [`http://host/${i}`, 0, 4]);
  await assert.rejects(source.read(requests), { code: "Refused" });
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.ok(asked < 50, `${asked} requests`);
});

/** A server that compresses what is asked for whole, and knows no ranges that count from the end. */
test("the size of a file is not that of what a server makes of it", async () => {
  const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i & 255);
  const answer = (compresses) => async (_, { method, headers: { Range: range } }) => {
    const [, from, to] = /^bytes=(\d*)-(\d*)$/.exec(range ?? "") ?? [];
    if (method === "HEAD") {
      const packed = compresses || !range;
      return new Response(null, { headers: packed ? { "Content-Encoding": "gzip", "Content-Length": "90" } : { "Content-Length": "1000" } });
    }
    if (!from) return new Response(bytes);
    return new Response(bytes.slice(Number(from), Number(to) + 1), { status: 206 });
  };
  const [[tail, size]] = await new HttpSource({ fetch: answer(false) }).tails(["http://host/file"], 10);
  assert.deepEqual([[...tail], size], [[...bytes.slice(990)], 1000]);
  await assert.rejects(new HttpSource({ fetch: answer(true) }).tails(["http://host/file"], 10), { code: "Range" });
});

test("a server that is not there", async () => {
  await assert.rejects(openArray("http://127.0.0.1:9/array"), {
    name: "AzulejoError",
    message: /cannot be reached/,
  });
});

/** A generator of numbers that are the same each time. */
function random(seed) {
  return (below) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
}

async function files(folder) {
  const found = new Map();
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath ?? entry.path, entry.name);
    found.set(path.slice(folder.length + 1), new Uint8Array(await readFile(path)));
  }
  return found;
}

test("damaged files never trap", async () => {
  const pick = random(22);
  let [errors, answers] = [0, 0];
  for (const name of ["demo/points", "demo/grid"]) {
    const whole = await files(join(arrays, name));
    whole.delete("__azulejo/manifest");
    const paths = [...whole.keys()].filter((path) => whole.get(path).length > 0);
    for (let round = 0; round < 250; round++) {
      const damaged = new Map(whole);
      const path = paths[pick(paths.length)];
      const bytes = whole.get(path).slice(0, pick(4) === 0 ? pick(whole.get(path).length) : undefined);
      for (let i = pick(4); i >= 0 && bytes.length > 0; i--) bytes[pick(bytes.length)] = pick(256);
      damaged.set(path, bytes);
      try {
        const array = await openArray(damaged, { memory: 32 << 20 });
        await array.metadata();
        await array.get({ x: [0, 40] });
        array.close();
        answers++;
      } catch (error) {
        assert.ok(error instanceof AzulejoError, `${path}: ${error.stack}`);
        assert.notEqual(error.code, "Internal", `${path}: ${error.message}`);
        errors++;
      }
    }
  }
  assert.ok(errors > 100, `${errors} errors, ${answers} answers`);
});
