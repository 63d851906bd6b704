// How programs in TypeScript use the package: it is compiled and not run.
import { AzulejoError, Column, open, openArray, type Cell } from "../pkg/index.js";
import { startWorker } from "../pkg/worker.js";
import { AzulejoZarrStore } from "../pkg/zarr.js";

export async function sum(url: string, signal: AbortSignal): Promise<number> {
  const array = await openArray(url, { at: new Date(2024, 0), key: new Uint8Array(32), signal });
  const { columns, shape } = await array.get({ x: [0, 9n], y: { range: [null, 5], step: 2 }, t: "2024-01-01" });
  const column: Column | undefined = columns["v"];
  let total = (shape ?? []).length;
  for (const cell of column ?? []) {
    const value: Cell = cell;
    if (typeof value === "number") total += value;
  }
  for await (const batch of array.batches({ where: "v > 3", onProgress: ({ bytes }) => void bytes })) {
    total += batch.cells;
  }
  const ipc: Uint8Array = await array.query({ fields: ["v"], limit: 10 });
  const { count } = await array.aggregate(["count", "max:v"]);
  return total + ipc.length + Number(count);
}

export async function walk(files: File[]): Promise<string[]> {
  const found = await startWorker().open(files).catch((error: unknown) => {
    if (error instanceof AzulejoError && error.code === "NotFound") return undefined;
    throw error;
  });
  if (found?.kind === "group") return found.members.map((member) => member.location);
  if (found?.dense) return new AzulejoZarrStore(found).origin.map(String);
  const here = await open({ "__schema/x": new Uint8Array() });
  // @ts-expect-error: a group has no cells
  if (here.kind === "group") return here.get();
  return found?.fragments.map((fragment) => fragment.name) ?? [];
}
