// Every array of the packed corpus over HTTP: cells as the reference read them.
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { AzulejoError, open } from "../pkg/index.js";
import { compare, decodeCells } from "./expected.mjs";
import { serve } from "./server.mjs";

const arrays = process.env.AZULEJO_ARRAYS;
let server;
before(async () => {
  server = await serve({ "/arrays": arrays });
});
after(() => server.close());

async function* expectations(folder = "expected") {
  for (const entry of await readdir(join(arrays, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) yield* expectations(path);
    else if (path.endsWith(".json")) yield path.slice("expected/".length, -".json".length);
  }
}

const json = async (path) => JSON.parse(await readFile(join(arrays, path), "utf8"));

async function check(name, keys) {
  const expected = await json(`expected/${name}.json`);
  const key = Object.entries(keys).find(([part]) => name.includes(part))?.[1];
  const url = `${server.url}/arrays/${name}`;
  if (expected.readable === false) {
    // The reference refuses it: a clear error is as good as an answer.
    await open(url, { key })
      .then((array) => array.get())
      .catch((error) => assert.ok(error instanceof AzulejoError && error.code !== "Internal", error));
    return;
  }
  const opened = await open(url, { key });
  assert.equal(opened.kind, expected.kind);
  if (opened.kind === "group") {
    assert.deepEqual(
      opened.members.map((m) => m.name ?? m.uri).sort(),
      expected.members.map((m) => m.name ?? m.uri).sort(),
    );
    assert.deepEqual([...opened.metadata.keys()].sort(), expected.metadata.map((m) => m.key).sort());
    return;
  }
  assert.equal(opened.fragments.length, expected.fragments.length, "fragments");
  const metadata = await opened.metadata();
  assert.deepEqual([...metadata.keys()].sort(), expected.metadata.map((m) => m.key).sort());
  const cells = await readFile(join(arrays, `expected/${name}.cells`)).catch(() => undefined);
  if (cells === undefined) return;
  const select = {};
  if (opened.dense && expected.read_box) {
    opened.dimensions.forEach((d, i) => (select[d.name] = expected.read_box[i]));
  }
  const found = await opened.get(select);
  compare(decodeCells(new Uint8Array(cells)), Object.values(found.columns), opened.dense);
  opened.close();
}

test("every array of the packed corpus reads as expected", async () => {
  const keys = await json("keys.json");
  const failures = [];
  let passed = 0;
  for await (const name of expectations()) {
    try {
      await check(name, keys);
      passed++;
    } catch (error) {
      failures.push(`${name}: ${String(error.message).slice(0, 300)}`);
    }
  }
  assert.deepEqual(failures, []);
  assert.ok(passed > 600, `only ${passed} objects`);
});
