// TileDB arrays in browsers and node. `index.d.ts` describes the interface.
import init, { Cancel, Session } from "./azulejo_web.js";
import { Batch, Column, Gathered } from "./columns.js";
import { AzulejoError, reasonOf, thrown, unlessAborted } from "./errors.js";
import { DirectorySource, FileSource, HttpSource } from "./sources.js";

export { AzulejoError, Batch, Column, DirectorySource, FileSource, HttpSource };

const MEMORY = 256 << 20;
const CACHE = 32 << 20;
/** What of `memory` is for reading; the rest is for the result. */
const READING = 3 / 8;

let ready;

/** Loads the module; `open` does it by itself. `module` is where it lies, or its bytes. */
export function load(module) {
  ready ??= start(module).catch((error) => {
    ready = undefined;
    throw error;
  });
  return ready;
}

async function start(module) {
  module ??= new URL("./azulejo_web_bg.wasm", import.meta.url);
  if (module instanceof URL && module.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    module = await readFile(module);
  }
  await init({ module_or_path: module });
}

/** Runs work of the module's that a signal can end. */
async function run(signal, work) {
  if (signal?.aborted) throw reasonOf(signal);
  const cancel = new Cancel();
  const stop = () => cancel.cancel();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await work(cancel);
  } catch (error) {
    throw thrown(error, signal);
  } finally {
    signal?.removeEventListener("abort", stop);
    cancel.free();
  }
}

const bytesOfBatch = ({ columns }) =>
  columns.reduce((sum, { values, validity }) => sum + values.byteLength + (validity?.byteLength ?? 0), 0);

/** What the module says as JSON: whole numbers that a number would round come as bigints. */
function parse(text) {
  const revive = (_, value) =>
    typeof value?.$ === "string" && Object.keys(value).length === 1 ? BigInt(value.$) : value;
  return JSON.parse(text, revive);
}

/** Milliseconds since 1970 of a moment, or of the two ends of a span. */
function times(at) {
  const ms = (t) => {
    if (t === undefined || t === null) return undefined;
    return Number(new Date(typeof t === "bigint" ? Number(t) : t));
  };
  const [start, end] = Array.isArray(at) ? at.map(ms) : [undefined, ms(at)];
  if (Number.isNaN(start) || Number.isNaN(end)) {
    throw new AzulejoError("InvalidArgument", `${at} is no time`);
  }
  return [start, end];
}

const bytesOf = (key) => (typeof key === "string" ? new TextEncoder().encode(key) : key);

function urlOf(place) {
  try {
    return new URL(place, globalThis.location?.href);
  } catch (cause) {
    throw new AzulejoError("InvalidArgument", `${place} is no URL`, { cause });
  }
}

/** A source, the URI of its root, and what is to be opened in it. */
function locate(place, options) {
  if (typeof place === "string" || place instanceof URL) {
    const url = urlOf(place);
    if (url.protocol !== "http:" && url.protocol !== "https:") {
      const text = `${place}: only http:// and https:// are URLs that a browser reads`;
      throw new AzulejoError("Unsupported", text);
    }
    const query = url.search.slice(1);
    const source = new HttpSource({ fetch: options.fetch, query, listing: options.listing });
    const uri = `${url.origin}${url.pathname}`.replace(/\/+$/, "");
    return { source, root: url.origin, uri };
  }
  const path = (root) => `local://${(options.path ?? root).replace(/^\/+|\/+$/g, "")}`;
  if (typeof place?.read === "function" && typeof place.list === "function") {
    if (options.url) return { source: place, root: new URL(options.url).origin, uri: options.url };
    return { source: place, root: "local://x", uri: path(place.root ?? "") };
  }
  if (place?.kind === "directory") {
    return { source: new DirectorySource(place), root: "local://x", uri: path("") };
  }
  const source = new FileSource(filesOf(place));
  return { source, root: "local://x", uri: path(source.root) };
}

/** Files by path: a map, an object, or a list of `File`s of a folder that was chosen. */
function filesOf(place) {
  if (place instanceof Map) return place;
  if (typeof place?.[Symbol.iterator] === "function" || typeof place?.item === "function") {
    return [...place].map((file) => [file.webkitRelativePath || file.name, file]);
  }
  if (place && typeof place === "object") return Object.entries(place);
  throw new AzulejoError("InvalidArgument", "a URL, a folder, or files by their paths is needed");
}

/** What all that is opened in one source shares. */
class Place {
  constructor({ source, root, uri }, options) {
    this.source = source;
    this.root = root;
    this.uri = uri;
    this.options = options;
    const { key, memory = MEMORY, cache = CACHE } = options;
    try {
      this.session = new Session(source, root, bytesOf(key), memory * READING, cache);
    } catch (error) {
      throw thrown(error);
    }
  }

  /** Bytes that a result may have. */
  get room() {
    return (this.options.memory ?? MEMORY) * (1 - READING);
  }

  /** Of what a URI names, be it itself a snapshot's. */
  async snapshots(text, { signal } = {}) {
    const uri = text.replace(/@[A-Za-z][\w.-]*$/, "");
    return parse(await run(signal, (cancel) => this.session.snapshots(uri, cancel)));
  }

  async array(uri, { at, signal } = {}) {
    const [start, end] = times(at);
    const opened = await run(signal, (cancel) => this.session.array(uri, start, end, cancel));
    return new AzulejoArray(this, uri, opened);
  }

  async group(uri, { at, signal } = {}) {
    const [start, end] = times(at);
    const text = await run(signal, (cancel) => this.session.group(uri, start, end, cancel));
    return new Group(this, uri, parse(text), { at });
  }

  /** Whichever lies there. */
  async either(uri, options) {
    try {
      return await this.array(uri, options);
    } catch (error) {
      if (error.code !== "NotFound") throw error;
      try {
        return await this.group(uri, options);
      } catch (other) {
        throw other.code === "NotFound" ? error : other;
      }
    }
  }
}

async function place(where, options) {
  await load(options.module);
  return new Place(locate(where, options), options);
}

/** Opens the array or group at a place. */
export async function open(where, options = {}) {
  const found = await place(where, options);
  return found.either(found.uri, options);
}

/** Opens an array. */
export async function openArray(where, options = {}) {
  const found = await place(where, options);
  return found.array(found.uri, options);
}

/** Opens a group. */
export async function openGroup(where, options = {}) {
  const found = await place(where, options);
  return found.group(found.uri, options);
}

/** A group as it was at a time. */
export class Group {
  kind = "group";
  #place;
  #at;

  constructor(place, uri, described, { at }) {
    this.#place = place;
    this.#at = at;
    this.uri = uri;
    this.members = described.members;
    this.metadata = metadataOf(described.metadata);
    this.timeRange = described.timeRange;
    this.listedAt = described.listedAt ?? undefined;
  }

  /** Opens a member, by its name or the member itself, at the group's time. */
  async open(member, options = {}) {
    const found =
      typeof member === "string"
        ? this.members.find((m) => m.name === member || m.uri === member)
        : member;
    if (!found) {
      throw new AzulejoError("NotFound", `${this.uri}: the group has no member ${member}`);
    }
    const { location } = found;
    const all = { at: this.#at, ...options };
    const root = this.#place.root.replace(/\/\/x$/, "//");
    if (!location.startsWith(root)) return open(location, { ...this.#place.options, ...all });
    return this.#place.either(location, all);
  }
}

function metadataOf(entries) {
  return new Map(entries.map(({ key, value }) => [key, value]));
}

/** An array as it was at a time. */
export class AzulejoArray {
  kind = "array";
  #place;
  /** What the module has open, until it is closed. */
  #opened;
  #metadata;
  #enumerations = new Map();
  /** Open label arrays, or those being opened, by the names of labels. */
  #labels = new Map();

  constructor(place, uri, opened) {
    this.#place = place;
    this.#opened = opened;
    this.uri = uri;
    const described = parse(opened.describe());
    /** The schema, in the form of `docs/schema-json.md`, without the enumerations' values. */
    this.schema = described.schema;
    this.fragments = described.fragments;
    this.nonEmptyDomain = described.nonEmptyDomain ?? undefined;
    this.timeRange = described.timeRange;
    this.listedAt = described.listedAt ?? undefined;
    this.deletes = described.deletes;
  }

  get dense() {
    return this.schema.array_type === "dense";
  }

  get dimensions() {
    return this.schema.dimensions;
  }

  get attributes() {
    return this.schema.attributes;
  }

  /** What was asked of the source so far, by all that was opened in it. */
  get io() {
    const { requests, bytes } = this.#place.source.counts ?? { requests: 0, bytes: 0 };
    return { requests, bytes };
  }

  /** The same array at another time, through the same source and cache. */
  at(at, { signal } = {}) {
    return this.#place.array(this.uri, { at, signal });
  }

  /** Moments that have a name, by time: `{name, at}`. */
  snapshots(options) {
    return this.#place.snapshots(this.uri, options);
  }

  /** Key-values. */
  async metadata({ signal } = {}) {
    this.#metadata ??= metadataOf(parse(await run(signal, (c) => this.#open.metadata(c))));
    return this.#metadata;
  }

  /** An enumeration: `{name, datatype, ordered, values}`. */
  async enumeration(name, { signal } = {}) {
    if (!this.#enumerations.has(name)) {
      const text = await run(signal, (cancel) => this.#open.enumeration(name, cancel));
      this.#enumerations.set(name, parse(text));
    }
    return this.#enumerations.get(name);
  }

  /**
   * The values of a dimension label at the coordinates from `low` to `high` of its dimension, which
   * are all that were written unless they are given.
   */
  async labels(name, [low, high] = [null, null], { signal } = {}) {
    const label = this.schema.dimension_labels.find((l) => l.name === name);
    if (!label) throw new AzulejoError("NotFound", `${this.uri}: there is no label ${name}`);
    const whole = this.uri.replace(/@[A-Za-z][\w.-]*$/, "");
    const uri = label.relative ? `${whole}/${label.uri}` : label.uri;
    let opening = this.#labels.get(name);
    if (!opening) {
      // Others may wait for it too: no signal of one ends it.
      opening = this.#place.array(uri, { at: this.timeRange[1] });
      this.#labels.set(name, opening);
      opening.catch(() => {
        if (this.#labels.get(name) === opening) this.#labels.delete(name);
      });
    }
    const array = await unlessAborted(opening, signal);
    const [dimension] = array.dimensions;
    const select = { [dimension.name]: [low ?? array.nonEmptyDomain?.[0][0], high ?? array.nonEmptyDomain?.[0][1]] };
    const { columns } = await array.get(select, { fields: [label.attribute], signal });
    return columns[label.attribute];
  }

  /** The boxes around the tiles of a sparse fragment, by its index in `fragments`. */
  async boxes(fragment, { signal } = {}) {
    return parse(await run(signal, (cancel) => this.#open.boxes(fragment, cancel)));
  }

  /**
   * The cells in a box, as typed arrays. Dense arrays: all of the box, with `shape`; sparse ones:
   * the cells that there are, with their coordinates.
   */
  async get(select = {}, options = {}) {
    const dims = this.dimensions.map((d) => d.name);
    const { points, matching, limit } = options;
    const shape = this.dense && !points && !matching ? this.#shape({ ...options, select }) : undefined;
    const all = shape?.reduce((product, n) => product * n, 1);
    const expected = all >= 0 ? Math.min(all, Number(limit ?? all)) : undefined;
    const found = new Gathered(expected);
    const within = (bytes) => {
      if (bytes <= this.#place.room) return;
      const text =
        `the result has more than the ${this.#place.room} bytes that \`memory\` leaves for it; ` +
        "select less, or use batches()";
      throw new AzulejoError("Budget", text, { uri: this.uri });
    };
    for await (const batch of this.batches({ ...options, select })) {
      // Too much is known by the first cells, before there is memory for all of them.
      if (found.cells === 0 && batch.cells > 0 && expected > 0) {
        within((bytesOfBatch(batch) / batch.cells) * expected);
      }
      found.add(batch);
      within(found.bytes);
    }
    const { cells } = found;
    const columns = Object.fromEntries(found.take().map((column) => [column.name, column]));
    return { cells, dims, shape, columns };
  }

  /** A query, batch by batch: what `get` puts together. */
  async *batches(options = {}) {
    const { signal } = options;
    const finish = this.#progress(options);
    let cells = 0;
    let reading;
    try {
      const request = this.#request(options);
      reading = await run(signal, (cancel) => this.#open.read(request, cancel));
      for (;;) {
        const batch = await run(signal, (cancel) => reading.next(cancel));
        if (batch === undefined) return;
        cells += batch.cells;
        finish.report(cells);
        yield new Batch(batch);
      }
    } finally {
      reading?.free();
      finish();
    }
  }

  /**
   * A query as an Arrow IPC stream. Dense arrays give the cells that match, with their
   * coordinates.
   */
  async query(options = {}) {
    const finish = this.#progress(options);
    try {
      const names = [...this.dimensions, ...this.attributes].map((field) => field.name);
      const request = this.#request({ fields: names, matching: this.dense, ...options });
      const { raw = false, signal } = options;
      const { room } = this.#place;
      return await run(signal, (cancel) => this.#open.arrow(request, raw, room, cancel));
    } finally {
      finish();
    }
  }

  /** Aggregates, each written like `count` or `sum:a`, in an object by these names. */
  async aggregate(wanted, options = {}) {
    const list = [wanted].flat();
    const finish = this.#progress(options);
    try {
      const request = this.#request(options);
      const work = (cancel) => this.#open.aggregate(request, list, cancel);
      const values = parse(await run(options.signal, work));
      return Object.fromEntries(list.map((name, i) => [name, values[i]]));
    } finally {
      finish();
    }
  }

  /** Gives back the module's memory; the collector does it too, some time. */
  close() {
    this.#opened?.free();
    this.#opened = undefined;
  }

  get #open() {
    if (this.#opened) return this.#opened;
    throw new AzulejoError("InvalidArgument", `${this.uri} was closed`, { uri: this.uri });
  }

  #progress({ onProgress }) {
    const { counts } = this.#place.source;
    if (!onProgress || !counts) return Object.assign(() => {}, { report() {} });
    const before = { requests: counts.requests, bytes: counts.bytes };
    let cells = 0;
    const report = () =>
      onProgress({
        requests: counts.requests - before.requests,
        bytes: counts.bytes - before.bytes,
        cells,
      });
    const end = counts.listen(report);
    return Object.assign(end, {
      report(all) {
        cells = all;
        report();
      },
    });
  }

  /** Options as JSON for the module. */
  #request({ select = {}, points, fields, where, layout, matching, limit }) {
    // Properties of its own, whatever dimensions are called.
    const selections = Object.entries(select).map(([name, selection]) => [name, selectionOf(selection)]);
    return JSON.stringify({
      select: Object.fromEntries(selections),
      points: points && Object.fromEntries(Object.entries(points).map(([name, all]) => [name, [...all].map(plain)])),
      fields: fields ?? [],
      where: where ?? null,
      layout: layout ?? null,
      matching: matching ?? false,
      limit: limit === Infinity ? null : countOf("limit", limit),
    });
  }

  /** Coordinates selected along each dimension of a dense array. */
  #shape(options) {
    const request = this.#request(options);
    try {
      return [...this.#open.shape(request)];
    } catch (error) {
      throw thrown(error);
    }
  }
}

/** A coordinate as JSON, which has no numbers but finite ones: its null is an open bound. */
function plain(bound) {
  const number = bound instanceof Date ? bound.getTime() : bound;
  if (typeof number === "number" && !Number.isFinite(number)) {
    throw new AzulejoError("InvalidArgument", `${bound} is no coordinate; null leaves a bound open`);
  }
  if (bound instanceof Date) return bound.toISOString().replace(/\.000Z$|Z$/, "");
  return typeof bound === "bigint" ? bound.toString() : (bound ?? null);
}

/** A count as JSON, which would make none of what is no number. */
function countOf(name, count) {
  if (count === undefined || count === null) return null;
  const number = Number(count);
  if (typeof count === "string" || !Number.isSafeInteger(number) || number < 0) {
    throw new AzulejoError("InvalidArgument", `${name} is a whole number from 0, not ${count}`);
  }
  return number;
}

/** `[low, high]`, a single coordinate, a list of ranges, or `{range, step}`. */
function selectionOf(selection) {
  const pair = (bounds) => {
    if (!Array.isArray(bounds) || bounds.length !== 2) {
      throw new AzulejoError("InvalidArgument", `a range is [low, high], not ${shown(bounds)}`);
    }
    return bounds.map(plain);
  };
  if (!Array.isArray(selection)) {
    if (selection === null || typeof selection !== "object" || selection instanceof Date) {
      return { ranges: [pair([selection, selection])] };
    }
    const { range, ranges, step } = selection;
    return { ranges: (ranges ?? [range]).map(pair), step: countOf("step", step) };
  }
  const isList = selection.length === 0 || Array.isArray(selection[0]);
  return { ranges: isList ? selection.map(pair) : [pair(selection)] };
}

const shown = (value) => (Array.isArray(value) ? `[${value.join(", ")}]` : String(value));
