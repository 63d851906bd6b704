// The same interface in a worker: decoding does not hold up the page. `worker.d.ts` describes it.
import { Column } from "./columns.js";
import { AzulejoError, reasonOf } from "./errors.js";

/** Calls into a worker. */
class Calls {
  #worker;
  #last = 0;
  #pending = new Map();
  /** Why no call is answered any more. */
  #ended;

  constructor(worker) {
    this.#worker = worker;
    worker.addEventListener("message", ({ data }) => this.#answer(data));
    worker.addEventListener("error", (event) => {
      this.#end(new AzulejoError("Internal", `the worker failed: ${event.message}`));
    });
    worker.addEventListener("messageerror", () => {
      this.#end(new AzulejoError("Internal", "the worker's answer cannot be read"));
    });
  }

  call(target, method, args, { signal, onProgress } = {}) {
    if (signal?.aborted) return Promise.reject(reasonOf(signal));
    if (this.#ended) return Promise.reject(this.#ended);
    const id = ++this.#last;
    const stop = () => this.#worker.postMessage({ cancel: id });
    signal?.addEventListener("abort", stop, { once: true });
    const done = new Promise((resolve, reject) => {
      this.#worker.postMessage({ id, target, method, args, progress: onProgress !== undefined });
      // Not what cannot be sent: the promise is rejected with what `postMessage` throws.
      this.#pending.set(id, { resolve, reject, signal, onProgress });
    });
    return done.finally(() => signal?.removeEventListener("abort", stop));
  }

  close() {
    this.#end(new AzulejoError("Cancelled", "the worker was closed"));
  }

  /** Ends the worker; of several reasons the first counts. */
  #end(error) {
    this.#ended ??= error;
    this.#worker.terminate();
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }

  #answer({ id, progress, result, error }) {
    const pending = this.#pending.get(id);
    if (!pending) return;
    if (progress) return pending.onProgress?.(progress);
    this.#pending.delete(id);
    if (!error) return pending.resolve(result);
    if (pending.signal?.aborted) return pending.reject(reasonOf(pending.signal));
    pending.reject(new AzulejoError(error.code ?? "Internal", error.message, { uri: error.uri }));
  }
}

/** Starts a worker, in which any number of arrays may be open. */
export function startWorker() {
  const url = new URL("./worker-main.js", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  const calls = new Calls(worker);
  return {
    open: async (where, { signal, ...options } = {}) => {
      const place = whole(where);
      if (options.module !== undefined) options.module = whole(options.module);
      return remote(calls, await calls.call(0, "open", [place, options], { signal }));
    },
    close: () => calls.close(),
  };
}

/** A place as it can be sent. Relative URLs are the page's: the worker lies in another folder. */
function whole(place) {
  if (typeof place !== "string" && !(place instanceof URL)) return place;
  try {
    return new URL(place, globalThis.location?.href).href;
  } catch {
    // The worker says so.
    return place;
  }
}

function remote(calls, { handle, ...described }) {
  const call = (method, args, { signal, onProgress, ...options } = {}) =>
    calls.call(handle, method, [...args, options], { signal, onProgress });
  if (described.kind === "group") {
    const open = async (member, options) => remote(calls, await call("open", [member], options));
    return { ...described, open };
  }
  const columnsOf = (columns) => {
    const entries = Object.entries(columns);
    return Object.fromEntries(entries.map(([name, column]) => [name, revived(column)]));
  };
  return {
    ...described,
    get: async (select = {}, options) => {
      const found = await call("get", [select], options);
      return { ...found, columns: columnsOf(found.columns) };
    },
    query: (options) => call("query", [], options),
    aggregate: (wanted, options) => call("aggregate", [wanted], options),
    metadata: (options) => call("metadata", [], options),
    snapshots: (options) => call("snapshots", [], options),
    enumeration: (name, options) => call("enumeration", [name], options),
    labels: async (name, range, options) => revived(await call("labels", [name, range], options)),
    boxes: (fragment, options) => call("boxes", [fragment], options),
    at: async (at, options) => remote(calls, await call("at", [at], options)),
    io: () => call("io", []),
    close: () => call("close", []),
  };
}

function revived(column) {
  return Object.assign(Object.create(Column.prototype), column);
}
