// What runs in the worker that `worker.js` starts.
import { AzulejoError, Column, open } from "./index.js";

const open_things = new Map();
const under_way = new Map();
let last = 0;

/** What the page learns of something that was opened here, and the number by which it asks. */
function described(thing) {
  const handle = ++last;
  open_things.set(handle, thing);
  const { kind, uri, timeRange, listedAt } = thing;
  if (kind === "group") {
    return { handle, kind, uri, timeRange, listedAt, members: thing.members, metadata: thing.metadata };
  }
  const { schema, dense, dimensions, attributes, fragments, nonEmptyDomain, deletes } = thing;
  return {
    ...{ handle, kind, uri, timeRange, listedAt, schema, dense, dimensions, attributes },
    ...{ fragments, nonEmptyDomain, deletes },
  };
}

async function answer(target, method, args, options) {
  if (target === 0) return described(await open(args[0], { ...args[1], ...options }));
  const thing = open_things.get(target);
  if (method === "close") {
    open_things.delete(target);
    return thing?.close?.();
  }
  if (!thing) throw new AzulejoError("InvalidArgument", "the array was closed");
  if (method === "io") return thing.io;
  const all = { ...args.pop(), ...options };
  const result = await thing[method](...args, all);
  return method === "open" || method === "at" ? described(result) : result;
}

/** Memory that goes to the page without a copy. */
function transfers(result) {
  if (result instanceof Uint8Array) return [result.buffer];
  const columns = result instanceof Column ? [result] : Object.values(result?.columns ?? {});
  const buffers = columns.flatMap(({ values, offsets, validity }) => [values, offsets, validity]);
  return [...new Set(buffers.filter((b) => b !== undefined).map(({ buffer }) => buffer))];
}

self.addEventListener("message", async ({ data }) => {
  if (data.cancel !== undefined) return under_way.get(data.cancel)?.abort();
  const { id, target, method, args, progress } = data;
  const controller = new AbortController();
  under_way.set(id, controller);
  const options = { signal: controller.signal };
  if (progress) options.onProgress = (progress) => self.postMessage({ id, progress });
  try {
    const result = await answer(target, method, args, options);
    self.postMessage({ id, result }, transfers(result));
  } catch ({ code, message, uri }) {
    self.postMessage({ id, error: { code, message, uri } });
  } finally {
    under_way.delete(id);
  }
});
