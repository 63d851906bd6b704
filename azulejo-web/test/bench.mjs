// How long things take, beside zarrita on the same cells: `cargo xtask web bench`, which makes the
// folder with the array `big` and the same as Zarr in `big.zarr/v`. Answers of the server take 100 ms
// to begin.
import { openArray } from "../pkg/index.js";
import { serve } from "./server.mjs";
import * as zarr from "zarrita";

const SIDE = 512;
const ROUNDS = 3;
const server = await serve({ "/arrays": process.argv[2] }, () => ({ delay: 100 }));

/** Windows as a user pans: each overlaps the one before. */
const windows = Array.from({ length: 50 }, (_, i) => [4000 + i * 64, 5000 + i * 128]);

async function measured(work) {
  server.take();
  const begun = [performance.now(), process.cpuUsage()];
  const result = await work();
  const ms = performance.now() - begun[0];
  const { user, system } = process.cpuUsage(begun[1]);
  const requests = server.take();
  const bytes = requests.reduce((sum, request) => sum + (request.bytes ?? 0), 0);
  return { result, ms, cpu: (user + system) / 1000, requests: requests.length, bytes };
}

/** Opens, reads a first window, then pans; each works with what it keeps of earlier reads. */
const sides = {
  "azulejo-web": async () => {
    const array = await openArray(`${server.url}/arrays/big`);
    const read = ([y, x]) => array.get({ y: [y, y + SIDE - 1], x: [x, x + SIDE - 1] });
    return async (window) => (await read(window)).columns.v.values;
  },
  zarrita: async () => {
    const store = new zarr.FetchStore(`${server.url}/arrays/big.zarr`);
    const v = await zarr.open.v3(zarr.root(store).resolve("v"), { kind: "array" });
    return async ([y, x]) => (await zarr.get(v, [zarr.slice(y, y + SIDE), zarr.slice(x, x + SIDE)])).data;
  },
};

const rows = {};
const sums = {};
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, open] of Object.entries(sides)) {
    const first = await measured(async () => {
      const read = await open();
      return { read, cells: await read(windows[0]) };
    });
    let sum = first.result.cells[77];
    const pans = await measured(async () => {
      for (const window of windows.slice(1)) sum += (await first.result.read(window))[77];
    });
    sums[name] = sum;
    for (const [what, { ms, cpu, requests, bytes }] of Object.entries({ "first window": first, "49 pans": pans })) {
      const row = (rows[`${name}, ${what}`] ??= { ms: Infinity, cpu: Infinity, requests, MB: bytes / 1e6 });
      [row.ms, row.cpu] = [Math.min(row.ms, ms), Math.min(row.cpu, cpu)];
    }
  }
}
const [ours, theirs] = Object.values(sums);
if (ours !== theirs) throw new Error(`different cells: ${JSON.stringify(sums)}`);
for (const row of Object.values(rows)) for (const key of ["ms", "cpu", "MB"]) row[key] = Number(row[key].toFixed(1));
console.table(rows);
await server.close();
