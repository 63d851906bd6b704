// How long things take, beside zarrita on the same cells: node bench.mjs ARRAYS [--zarr NAME].
//
// ARRAYS is a folder with a dense array `big` (with a manifest) of two dimensions `y` and `x` and an
// attribute `v`, and, for the comparison, the same as Zarr in `big.zarr/v`. Answers of the server
// take 100 ms to begin.
import { serve } from "./server.mjs";
import { openArray } from "../pkg/index.js";
import * as zarr from "zarrita";

const folder = process.argv[2];
const server = await serve({ "/arrays": folder }, () => ({ delay: 100 }));
const SIDE = 512;

/** Windows as a user pans: each overlaps the one before by three quarters. */
const windows = Array.from({ length: 50 }, (_, i) => [4000 + i * 64, 5000 + i * 128]);

async function measured(name, work) {
  server.take();
  const begun = performance.now();
  const result = await work();
  const took = performance.now() - begun;
  const requests = server.take();
  const bytes = requests.reduce((sum, request) => sum + (request.bytes ?? 0), 0);
  console.log(`${name}: ${took.toFixed(0)} ms, ${requests.length} requests, ${(bytes / 1e6).toFixed(2)} MB`);
  return result;
}

const memory = () => `${(process.memoryUsage().rss / 1e6).toFixed(0)} MB resident`;

const check = [];
{
  await openArray(`${server.url}/arrays/big`).then((array) => array.close());
  const read = (array, [y, x]) => array.get({ y: [y, y + SIDE - 1], x: [x, x + SIDE - 1] });
  const array = await measured("azulejo-web, opening and a first window", async () => {
    const array = await openArray(`${server.url}/arrays/big`);
    check.push((await read(array, windows[0])).columns.v.get(77));
    return array;
  });
  await measured("azulejo-web, 50 pans", async () => {
    for (const window of windows) await read(array, window);
  });
  await measured("azulejo-web, all cells, batch by batch", async () => {
    let cells = 0;
    for await (const batch of array.batches()) cells += batch.cells;
    console.log(`${cells} cells, ${memory()}`);
  });
}
{
  const store = () => new zarr.FetchStore(`${server.url}/arrays/big.zarr`);
  const read = (v, [y, x]) => zarr.get(v, [zarr.slice(y, y + SIDE), zarr.slice(x, x + SIDE)]);
  const v = await measured("zarrita, opening and a first window", async () => {
    const v = await zarr.open.v3(zarr.root(store()).resolve("v"), { kind: "array" });
    check.push((await read(v, windows[0])).data[77]);
    return v;
  });
  await measured("zarrita, 50 pans", async () => {
    for (const window of windows) await read(v, window);
  });
}
if (check[0] !== check[1]) throw new Error(`different cells: ${check}`);
await server.close();
