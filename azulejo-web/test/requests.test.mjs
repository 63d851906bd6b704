// Requests and rounds: the plan of IO is part of the contract.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openArray } from "../pkg/index.js";
import { roundsOf } from "./rounds.mjs";
import { serve } from "./server.mjs";

const arrays = process.env.AZULEJO_ARRAYS;
let server;
before(async () => {
  server = await serve({ "/arrays": arrays }, () => ({ delay: 150 }));
});
after(() => server.close());

/** Work, its requests, and how many rounds they took. */
async function measured(work) {
  server.take();
  const result = await work();
  const requests = server.take();
  const bytes = requests.reduce((sum, request) => sum + (request.bytes ?? 0), 0);
  return { result, requests, rounds: roundsOf(requests), bytes };
}

const box = { y: [250, 349], x: [420, 519] };

test("opening with a manifest and a first box take two rounds, a warm box one", async () => {
  const cold = await measured(async () => {
    const array = await openArray(`${server.url}/arrays/demo/grid`);
    return [array, await array.get(box)];
  });
  const [array, first] = cold.result;
  assert.equal(first.columns.v.get(0), 250420);
  // The manifest, which holds the schema and the footers with where tiles lie; then the four tiles,
  // which are near each other two by two.
  assert.equal(cold.rounds, 2);
  assert.ok(cold.requests.length <= 3, `${cold.requests.map((r) => r.path).join("\n")}`);
  const warm = await measured(() => array.get({ y: [550, 649], x: [420, 519] }));
  assert.equal(warm.rounds, 1, `${warm.rounds} rounds`);
  assert.ok(warm.requests.length <= 4, `${warm.requests.length} requests`);
  const again = await measured(() => array.get({ y: [550, 649], x: [420, 519] }));
  assert.deepEqual(again.requests, [], "what never changes is asked for once");
});

test("a window reads only its chunks", async () => {
  const array = await openArray(`${server.url}/arrays/demo/grid`);
  const whole = array.fragments.reduce((sum, fragment) => sum + fragment.bytes, 0);
  const { bytes } = await measured(() => array.get({ y: [300, 399], x: [300, 399] }));
  // One of a hundred tiles.
  assert.ok(bytes < whole / 30, `${bytes} of ${whole} bytes`);
});

test("another time of an open array asks for little", async () => {
  const array = await openArray(`${server.url}/arrays/demo/grid`);
  const [{ timeRange }] = array.fragments;
  const earlier = await measured(() => array.at(timeRange[0]));
  assert.equal(earlier.result.fragments.length, 1);
  assert.deepEqual(earlier.requests, []);
});

test("a manifest of the first version takes four rounds at most", async () => {
  const url = `${server.url}/arrays/old/grid`;
  const { rounds, result } = await measured(async () => (await openArray(url)).get(box));
  assert.equal(result.columns.v.get(0), 250420);
  assert.ok(rounds <= 4, `${rounds} rounds`);
});

test("a sparse box takes few rounds", async () => {
  const cold = await measured(async () => {
    const array = await openArray(`${server.url}/arrays/demo/points`);
    return array.get({ x: [100, 110] });
  });
  assert.equal(cold.result.cells, 11);
  // The manifest, coordinates, the other fields.
  assert.ok(cold.rounds <= 3, `${cold.rounds} rounds`);
});
