// Where bytes come from. A source has three methods, which the engine calls with paths that are
// URLs for web servers and paths relative to the source's root for everything else:
//
//   read(requests, signal)       [path, start, end, limit] each; all of an object without `start`,
//                                at most `limit` bytes where that is given -> Uint8Array[]
//   tails(paths, length, signal) the last bytes of objects -> [Uint8Array, size of the object][]
//   list(paths, signal)          folders -> {name, isDir, size}[][]; throws `Unlisted` where there
//                                are no listings
//
// and may have a fourth:
//
//   release(answers)             an answer was copied: its bytes are of no use any more
import { AzulejoError, reasonOf, unlessAborted } from "./errors.js";

/** Ranges at most this far apart are one request: about what a round trip's time could carry. */
const GAP = 256 * 1024;
/** Requests are joined up to this size. */
const LARGEST = 8 << 20;
/** Requests under way at a time. */
const SIDE_BY_SIDE = 24;
/** How often a request that the network or the server let down is made again. */
const TRIES = 3;
/** Answers that may be longer than this are taken piece by piece. */
const PIECEWISE = 64 << 10;
const MANIFEST = "/__azulejo/manifest";

const pause = (ms, signal) =>
  new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });

/** Counts what a source has brought, and tells whoever wants to know. */
export class Counts {
  requests = 0;
  bytes = 0;
  #listeners = new Set();

  add(requests, bytes) {
    this.requests += requests;
    this.bytes += bytes;
    for (const listener of this.#listeners) listener(this);
  }

  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** Ranges of one object that are near each other, as one request: pure. */
export function coalesce(ranges, gap = GAP, largest = LARGEST) {
  const order = ranges.map((_, i) => i).filter((i) => ranges[i].end > ranges[i].start);
  order.sort((a, b) => ranges[a].start - ranges[b].start || ranges[a].end - ranges[b].end);
  const joined = [];
  for (const i of order) {
    const { start, end } = ranges[i];
    const last = joined.at(-1);
    const to = last && Math.max(last.end, end);
    if (last && start <= last.end + gap && (to - last.start <= largest || to === last.end)) {
      last.end = to;
      last.members.push(i);
    } else {
      joined.push({ start, end, members: [i] });
    }
  }
  return joined;
}

/** Runs tasks, so many at a time; the first error ends them all. */
async function sideBySide(tasks, most) {
  let next = 0;
  const lane = async () => {
    try {
      while (next < tasks.length) await tasks[next++]();
    } catch (error) {
      // Nobody waits for what the other lanes would still ask for.
      next = tasks.length;
      throw error;
    }
  };
  await Promise.all(Array.from({ length: Math.min(most, tasks.length) }, lane));
}

/** Files of a web server that knows ranges. */
export class HttpSource {
  counts = new Counts();
  #fetch;
  #query;
  #listing;
  #knowsTails = true;
  #manifests = new Map();

  /**
   * @param {{fetch?: typeof fetch, query?: string, listing?: boolean}} options `query` is added to
   *   every URL; `listing` says that a folder's URL with `?list` gives its entries as JSON
   */
  constructor({ fetch: own, query = "", listing = false } = {}) {
    this.#fetch = own ?? ((url, init) => globalThis.fetch(url, init));
    this.#query = query;
    this.#listing = listing;
  }

  async read(requests, signal) {
    const answers = new Array(requests.length);
    const tasks = [];
    const byPath = new Map();
    requests.forEach(([path, start, end, limit], i) => {
      if (start === undefined) {
        tasks.push(async () => {
          answers[i] = await this.#whole(path, limit, signal);
        });
        return;
      }
      if (!byPath.has(path)) byPath.set(path, []);
      byPath.get(path).push({ start, end, i });
    });
    for (const [path, ranges] of byPath) {
      for (const { i, start, end } of ranges) if (start >= end) answers[i] = new Uint8Array();
      for (const { start, end, members } of coalesce(ranges)) {
        tasks.push(async () => {
          const bytes = await this.#range(path, start, end, signal);
          for (const m of members) {
            const range = ranges[m];
            answers[range.i] = bytes.subarray(range.start - start, range.end - start);
          }
        });
      }
    }
    await sideBySide(tasks, SIDE_BY_SIDE);
    return answers;
  }

  /** Frees memory now that the collector would free some time: of a scan, hundreds of megabytes. */
  release(answers) {
    for (const answer of answers.flat()) {
      if (answer instanceof Uint8Array && answer.buffer.byteLength > 0) answer.buffer.transfer?.(0);
    }
  }

  async tails(paths, length, signal) {
    const answers = new Array(paths.length);
    const tasks = paths.map((path, i) => async () => {
      answers[i] = await this.#tail(path, length, signal);
    });
    await sideBySide(tasks, SIDE_BY_SIDE);
    return answers;
  }

  async list(paths, signal) {
    if (this.#listing) {
      const list = (path) => this.#request(path, { query: "list", signal }, entries);
      return Promise.all(paths.map(list));
    }
    const text =
      `cannot list ${paths[0]}: web servers have no listings; run \`azulejo manifest\` on the ` +
      "array where it can be listed, and publish it again";
    throw new AzulejoError("Unlisted", text, { uri: paths[0] });
  }

  /** A manifest is read once as long as the source lives: it shows one moment. */
  async #whole(path, limit, signal) {
    if (!path.endsWith(MANIFEST)) return this.#request(path, { limit, signal }, whole);
    let reading = this.#manifests.get(path);
    if (!reading) {
      // Others may wait for it too: no signal of one ends it.
      reading = this.#request(path, { limit }, whole);
      this.#manifests.set(path, reading);
      reading.catch((error) => {
        if (error.code !== "NotFound" && this.#manifests.get(path) === reading) this.#manifests.delete(path);
      });
    }
    // Answers are released.
    return (await unlessAborted(reading, signal)).slice();
  }

  #range(path, start, end, signal) {
    return this.#request(path, { range: `bytes=${start}-${end - 1}`, start, end, signal }, part);
  }

  async #tail(path, length, signal) {
    if (this.#knowsTails) {
      try {
        return await this.#request(path, { range: `bytes=-${length}`, length, signal, tries: 1 }, ending);
      } catch (error) {
        if (error.code !== "Range" && error.code !== "Network") throw error;
        this.#knowsTails = false;
      }
    }
    // Not every server knows ranges that count from the end, and browsers ask those of other origins
    // beforehand whether such may be asked for.
    // With a range it is sent as it is: of what a server compresses, the length would be that of the
    // compressed bytes.
    const size = await this.#request(path, { method: "HEAD", range: "bytes=0-", signal }, sizeOf);
    const start = Math.max(0, size - length);
    return [size === 0 ? new Uint8Array() : await this.#range(path, start, size, signal), size];
  }

  /** Makes a request until it is answered; `take` makes of the response what is wanted. */
  async #request(path, asked, take) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(path, asked, take);
      } catch (error) {
        if (asked.signal?.aborted) throw reasonOf(asked.signal);
        if (!error.again || attempt >= (asked.tries ?? TRIES)) throw error;
        await pause(100 * 4 ** (attempt - 1), asked.signal);
      }
    }
  }

  async #once(path, asked, take) {
    const query = asked.query ?? this.#query;
    const url = query ? `${path}?${query}` : path;
    const { range, method, signal } = asked;
    const init = { signal, method: method ?? "GET", headers: range ? { Range: range } : {} };
    this.counts.add(1, 0);
    let response;
    try {
      response = await this.#fetch(url, init);
    } catch (error) {
      const text = `the server cannot be reached, or does not allow this page to read (CORS)`;
      throw failure("Network", path, `${text}: ${error.message}`, error, true);
    }
    const status = response.status;
    if (status === 404 || status === 410) throw failure("NotFound", path, "there is no such file");
    if (status === 401 || status === 403) {
      const text = `the server refuses: ${status} ${response.statusText}`;
      throw failure("Refused", path, text);
    }
    if (status === 416) throw failure("Short", path, `the file is shorter than ${range}`);
    if (status === 501) throw failure("Unlisted", path, "its folders cannot be listed");
    if (!response.ok) {
      const text = `the server answers ${status} ${response.statusText}`;
      throw failure("Status", path, text, undefined, status >= 500 || status === 429);
    }
    return take(response, path, asked, this.counts);
  }
}

function failure(code, path, text, cause, again = false) {
  const error = new AzulejoError(code, text, { uri: path, cause });
  error.again = again;
  return error;
}

/** A body. Of one with more than `most` bytes there are some beyond these. */
async function body(response, path, counts, most = Infinity) {
  let bytes;
  try {
    bytes =
      most > PIECEWISE && response.body
        ? await inPieces(response.body, Number(response.headers.get("Content-Length")), most)
        : new Uint8Array(await response.arrayBuffer());
  } catch (error) {
    throw failure("Cut", path, `the answer broke off: ${error.message}`, error, true);
  }
  counts.add(0, bytes.length);
  return bytes;
}

/**
 * Piece by piece into memory of our own, which `release` can free: what a browser hands out it
 * holds on to until its collector comes, which in a scan is hundreds of megabytes later. How long
 * it is said to be is a hint: of what a server compressed that is the compressed length, and from
 * another origin a page does not see that it was.
 */
async function inPieces(stream, hint, most) {
  let bytes = new Uint8Array(Math.min(hint || PIECEWISE, most));
  const { reader, next, end } = pieceReader(stream);
  let at = 0;
  for (;;) {
    const { done, value } = await next();
    if (done) {
      end();
      return at === bytes.length ? bytes : bytes.subarray(0, at);
    }
    if (at + value.length > bytes.length) bytes = grown(bytes, at, at + value.length);
    bytes.set(value, at);
    at += value.length;
    if (at > most) {
      reader.cancel().catch(() => {});
      return bytes.subarray(0, at);
    }
  }
}

/** The first `at` bytes in a buffer that has room for `least`, and for as many again. */
function grown(bytes, at, least) {
  const larger = new Uint8Array(Math.max(2 * bytes.length, least));
  larger.set(bytes.subarray(0, at));
  bytes.buffer.transfer?.(0);
  return larger;
}

/** The most that is asked of a body at a time. */
const PIECE = 256 << 10;
/** Memory in which pieces came, of bodies that were read to their end. */
const carriers = [];

/** A body's reader; where the body takes memory of ours, all its pieces come in the same. */
function pieceReader(stream) {
  let reader;
  try {
    reader = stream.getReader({ mode: "byob" });
  } catch {
    reader = stream.getReader();
    return { reader, next: () => reader.read(), end: () => {} };
  }
  let carrier = carriers.pop() ?? new ArrayBuffer(PIECE);
  const next = async () => {
    const piece = await reader.read(new Uint8Array(carrier));
    // It comes back with every piece, with the last, empty one as well.
    carrier = piece.value?.buffer;
    return piece;
  };
  return { reader, next, end: () => carrier && carriers.push(carrier) };
}

async function whole(response, path, { limit = Infinity }, counts) {
  const bytes = await body(response, path, counts, limit);
  if (bytes.length <= limit) return bytes;
  throw failure("Limit", path, `the file has more than the ${limit} bytes allowed`);
}

const NO_RANGES =
  "the server does not know byte ranges: it answers a request for a part with the whole file";

async function part(response, path, { start, end }, counts) {
  if (response.status !== 206) {
    // Of a file that is asked for whole both mean the same.
    const length = Number(response.headers.get("Content-Length") ?? -1);
    if (start !== 0 || length !== end) {
      response.body?.cancel();
      throw failure("Range", path, NO_RANGES);
    }
  }
  const bytes = await body(response, path, counts, end - start);
  if (bytes.length !== end - start) {
    const text = `${bytes.length} bytes came where ${end - start} were asked for`;
    // More than asked for will not get better.
    throw failure("Cut", path, `the answer is cut: ${text}`, undefined, bytes.length < end - start);
  }
  return bytes;
}

async function ending(response, path, { length }, counts) {
  const range = /\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "");
  if (response.status === 206 && range) {
    const size = Number(range[1]);
    const bytes = await body(response, path, counts, length);
    if (bytes.length === Math.min(length, size)) return [bytes, size];
    throw failure("Cut", path, "the answer is cut", undefined, true);
  }
  response.body?.cancel();
  throw failure("Range", path, NO_RANGES);
}

async function entries(response, path, asked, counts) {
  return JSON.parse(new TextDecoder().decode(await body(response, path, counts)));
}

async function sizeOf(response, path) {
  const encoding = response.headers.get("Content-Encoding") ?? "identity";
  if (encoding !== "identity") {
    throw failure("Range", path, `the server compresses it (${encoding}), and does not tell the file's size`);
  }
  const length = response.headers.get("Content-Length");
  if (length === null) throw failure("Range", path, "the server does not tell the file's size");
  return Number(length);
}

/** Files by their paths: `Blob`s (a folder that a user has chosen) or bytes in memory. */
export class FileSource {
  counts = new Counts();
  #files;
  #folders = new Map();

  /** @param {Iterable<[string, Blob | Uint8Array | ArrayBuffer]>} files */
  constructor(files) {
    this.#files = new Map();
    for (const [path, file] of files) {
      const parts = path.split("/").filter((part) => part !== "");
      this.#files.set(parts.join("/"), file instanceof ArrayBuffer ? new Uint8Array(file) : file);
      for (let i = 0; i < parts.length; i++) {
        const folder = parts.slice(0, i).join("/");
        if (!this.#folders.has(folder)) this.#folders.set(folder, new Map());
        const isDir = i < parts.length - 1;
        const size = isDir ? 0 : (file.size ?? file.byteLength);
        this.#folders.get(folder).set(parts[i], { name: parts[i], isDir, size });
      }
    }
  }

  /** The one folder in which everything lies, if there is such. */
  get root() {
    const entries = [...(this.#folders.get("")?.values() ?? [])];
    return entries.length === 1 && entries[0].isDir ? entries[0].name : "";
  }

  #file(path) {
    const file = this.#files.get(path);
    if (file === undefined) throw failure("NotFound", path, "there is no such file");
    return file;
  }

  async #slice(file, start, end) {
    this.counts.add(1, end - start);
    if (file instanceof Uint8Array) return file.subarray(start, end);
    return new Uint8Array(await file.slice(start, end).arrayBuffer());
  }

  read(requests) {
    const read = ([path, start, end, limit]) => {
      const file = this.#file(path);
      const size = file.size ?? file.byteLength;
      if (start === undefined && size > (limit ?? Infinity)) {
        throw failure("Limit", path, `the file has ${size} bytes, more than the ${limit} allowed`);
      }
      if (end > size) throw failure("Short", path, `the file has ${size} bytes, not ${end}`);
      return this.#slice(file, start ?? 0, end ?? size);
    };
    return Promise.all(requests.map(async (request) => read(request)));
  }

  tails(paths, length) {
    const tail = async (path) => {
      const file = this.#file(path);
      const size = file.size ?? file.byteLength;
      return [await this.#slice(file, Math.max(0, size - length), size), size];
    };
    return Promise.all(paths.map(tail));
  }

  async list(paths) {
    return paths.map((path) => [...(this.#folders.get(path)?.values() ?? [])]);
  }
}

/** A folder that a user has given access to (`showDirectoryPicker`), looked at as needed. */
export class DirectorySource {
  counts = new Counts();
  #root;
  #handles = new Map();

  /** @param {FileSystemDirectoryHandle} root */
  constructor(root) {
    this.#root = root;
  }

  async #folder(path) {
    let folder = this.#root;
    for (const name of path.split("/").filter((part) => part !== "")) {
      folder = await folder.getDirectoryHandle(name);
    }
    return folder;
  }

  async #file(path) {
    if (!this.#handles.has(path)) {
      const at = path.lastIndexOf("/");
      try {
        const folder = await this.#folder(at < 0 ? "" : path.slice(0, at));
        this.#handles.set(path, await folder.getFileHandle(path.slice(at + 1)));
      } catch (error) {
        throw failure(error.name === "NotFoundError" ? "NotFound" : "File", path, error.message, error);
      }
    }
    return this.#handles.get(path).getFile();
  }

  async #as(paths) {
    const files = await Promise.all(paths.map(async (path) => [path, await this.#file(path)]));
    const source = new FileSource(files);
    source.counts = this.counts;
    return source;
  }

  async read(requests) {
    const source = await this.#as([...new Set(requests.map(([path]) => path))]);
    return source.read(requests);
  }

  async tails(paths, length) {
    return (await this.#as(paths)).tails(paths, length);
  }

  async list(paths) {
    const list = async (path) => {
      let folder;
      try {
        folder = await this.#folder(path);
      } catch (error) {
        if (error.name === "NotFoundError" || error.name === "TypeMismatchError") return [];
        throw failure("File", path, error.message, error);
      }
      const entries = [];
      for await (const handle of folder.values()) {
        const isDir = handle.kind === "directory";
        entries.push({ name: handle.name, isDir, size: isDir ? 0 : undefined });
      }
      return entries;
    };
    return Promise.all(paths.map(list));
  }
}
