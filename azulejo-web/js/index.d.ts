/** TileDB arrays in browsers and node. */

/** A whole number: a `bigint` where a `number` would round it. */
export type Whole = number | bigint;
/** A coordinate, which is finite. Of datetimes: ticks, a date as text (`2020-01-31T12:00`), or a `Date`. */
export type Coordinate = number | bigint | string | Date;
/** Both ends are included; `null` is open. */
export type Bounds = [low: Coordinate | null, high: Coordinate | null];
/**
 * What is selected along a dimension; an empty list selects nothing. A `step` takes the first coordinate
 * and each so many after it.
 */
export type Selection =
  | Coordinate
  | Bounds
  | Bounds[]
  | { range: Bounds; step?: number | bigint }
  | { ranges: Bounds[] };
/** By dimension; others are selected whole. */
export type Select = Record<string, Selection>;

/** A moment, or a span of time with both ends included: milliseconds since 1970, dates, or texts of dates. */
export type Moment = Whole | string | Date;
export type At = Moment | [from: Moment | undefined, to: Moment | undefined];

export interface Entry {
  name: string;
  isDir: boolean;
  size?: number;
}

/** Where bytes come from. Paths are URLs, or relative to the source's root where it has none. */
export interface Source {
  /** All of an object without `start`, which is an error beyond `limit` bytes. */
  read(
    requests: [path: string, start?: number, end?: number, limit?: number][],
    signal: AbortSignal,
  ): Promise<Uint8Array[]>;
  /** The last `length` bytes (fewer of shorter objects) and the size of each object. */
  tails(paths: string[], length: number, signal: AbortSignal): Promise<[Uint8Array, number][]>;
  /** What lies in folders; an error with the code `Unlisted` where that cannot be known. */
  list(paths: string[], signal: AbortSignal): Promise<Entry[][]>;
  /** An answer was copied; its bytes will not be looked at any more. */
  release?(answers: Uint8Array[] | [Uint8Array, number][] | Entry[][]): void;
  /** What was asked for; for `io` and `onProgress`. */
  counts?: { requests: number; bytes: number; listen(listener: () => void): () => void };
}

export class HttpSource implements Source {
  constructor(options?: { fetch?: typeof fetch; query?: string; listing?: boolean });
  read: Source["read"];
  tails: Source["tails"];
  list: Source["list"];
  counts: NonNullable<Source["counts"]>;
}

export class FileSource implements Source {
  constructor(files: Iterable<[string, Blob | Uint8Array | ArrayBuffer]>);
  read: Source["read"];
  tails: Source["tails"];
  list: Source["list"];
  counts: NonNullable<Source["counts"]>;
  /** The one folder in which everything lies, or "". */
  readonly root: string;
}

export class DirectorySource implements Source {
  constructor(root: FileSystemDirectoryHandle);
  read: Source["read"];
  tails: Source["tails"];
  list: Source["list"];
  counts: NonNullable<Source["counts"]>;
}

/**
 * A URL of a web server that knows byte ranges (an array there needs a manifest: `azulejo
 * manifest`), a folder or files that a user has chosen, files in memory by their paths, or a source
 * of one's own.
 */
export type Where =
  | string
  | URL
  | FileSystemDirectoryHandle
  | Iterable<File>
  | Map<string, Blob | Uint8Array | ArrayBuffer>
  | Record<string, Blob | Uint8Array | ArrayBuffer>
  | Source;

export interface OpenOptions {
  /** Shows the array as it was. */
  at?: At;
  /** The 32 bytes of an encrypted array's key. */
  key?: Uint8Array | string;
  /** Used instead of `fetch`, for example to authorize. */
  fetch?: typeof fetch;
  /** The server answers a folder's URL with `?list` by its entries as JSON, as `azulejo view` does. */
  listing?: boolean;
  /** Where the array lies among files; not needed if all lie in one folder. */
  path?: string;
  /** The URL by which a source of one's own knows the array. */
  url?: string;
  /** Bytes that a query may hold, 256 MiB: three eighths for reading, the rest for its result. */
  memory?: number;
  /** Bytes of files that never change which stay for later queries: 32 MiB. */
  cache?: number;
  /** Where the WebAssembly module lies, or its bytes; otherwise beside this script. */
  module?: URL | string | Response | BufferSource | WebAssembly.Module;
  signal?: AbortSignal;
}

export interface Progress {
  requests: number;
  /** Bytes that have come from the source. */
  bytes: number;
  /** Cells read. */
  cells: number;
}

export interface ReadOptions {
  /**
   * Exactly these cells, instead of a box: of each dimension the coordinates of all points. Dense
   * arrays give them in this order, sparse ones those that there are.
   */
  points?: Record<string, Iterable<Coordinate>>;
  /** Names of columns. Otherwise all attributes and, of sparse arrays, all dimensions before them. */
  fields?: string[];
  /** A condition such as `a > 3 and b in ("x", "y")`. Cells of a dense array that do not meet it read as fill values. */
  where?: string;
  layout?: "row-major" | "col-major" | "global" | "unordered";
  /** Leaves out the cells of a dense array that do not meet the condition, or that nobody wrote. */
  matching?: boolean;
  /** Cells after which the result ends. */
  limit?: number | bigint;
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

export type Values =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

export type Cell = number | bigint | string | Values | null;

/** The cells of one field. */
export class Column implements Iterable<Cell> {
  readonly name: string;
  /** TileDB's name of the type, such as `FLOAT64`. */
  readonly datatype: string;
  /** Values in a cell; 0 where cells vary in length. */
  readonly cellValNum: number;
  readonly nullable: boolean;
  /** Name of the enumeration whose entries the values index. */
  readonly enumeration?: string;
  /** All values, cell after cell; of text, its bytes. */
  readonly values: Values;
  /** Cells of varying length: where each begins in `values`, and the end. */
  readonly offsets?: Uint32Array;
  /** Nullable fields: a byte a cell, 0 for null. */
  readonly validity?: Uint8Array;
  /** Number of cells. */
  readonly length: number;
  get(cell: number): Cell;
  [Symbol.iterator](): Iterator<Cell>;
}

export class Batch {
  cells: number;
  columns: Column[];
  /**
   * Gives back the memory of all columns, which are empty afterwards; the collector does it too,
   * often many batches later. Does nothing where `ArrayBuffer.prototype.transfer` is missing.
   */
  free(): void;
}

export interface Result {
  cells: number;
  /** Names of the dimensions. */
  dims: string[];
  /** Of dense arrays: coordinates selected along each dimension. */
  shape?: number[];
  columns: Record<string, Column>;
}

export interface Pipeline {
  chunk_size: number;
  filters: ({ filter: string } & Record<string, unknown>)[];
}

export interface Dimension {
  name: string;
  datatype: string;
  cell_val_num: number | "var";
  domain: [Whole, Whole] | null;
  tile_extent: Whole | null;
  filters: Pipeline;
}

export interface Attribute {
  name: string;
  datatype: string;
  cell_val_num: number | "var";
  nullable: boolean;
  fill_value: unknown;
  fill_validity: boolean;
  order: "unordered" | "increasing" | "decreasing";
  enumeration: string | null;
  filters: Pipeline;
}

/** A schema, in the form that `azulejo schema --json` prints, without the values of enumerations. */
export interface Schema {
  version: number;
  array_type: "dense" | "sparse";
  allows_dups: boolean;
  tile_order: string;
  cell_order: string;
  capacity: number;
  coords_filters: Pipeline;
  offsets_filters: Pipeline;
  validity_filters: Pipeline;
  dimensions: Dimension[];
  attributes: Attribute[];
  dimension_labels: { name: string; dimension: number; datatype: string; uri: string; attribute: string }[];
  current_domain: [Whole | string, Whole | string][] | null;
}

export interface Fragment {
  name: string;
  /** Format version that it was written in. */
  version: number;
  /** Milliseconds since 1970. */
  timeRange: [Whole, Whole];
  dense: boolean;
  cells: Whole;
  tiles: number;
  /** Bytes of its data files. */
  bytes: number;
  /** The box around its cells. */
  domain: [Whole | string, Whole | string][] | null;
}

export interface Enumeration {
  name: string;
  datatype: string;
  ordered: boolean;
  values: unknown[];
}

/** An array as it was at a time. */
export class AzulejoArray {
  readonly kind: "array";
  readonly uri: string;
  readonly schema: Schema;
  readonly dense: boolean;
  readonly dimensions: Dimension[];
  readonly attributes: Attribute[];
  readonly fragments: Fragment[];
  /** The box around all cells. */
  readonly nonEmptyDomain?: [Whole | string, Whole | string][];
  readonly timeRange: [Whole, Whole];
  /** The moment that the manifest shows, if there is one. */
  readonly listedAt?: number;
  /** Times of deletes. */
  readonly deletes: Whole[];
  /** What was asked of the source by all that was opened in it. */
  readonly io: { requests: number; bytes: number };
  /** The same array at another time, through the same source and cache. */
  at(at?: At, options?: { signal?: AbortSignal }): Promise<AzulejoArray>;
  metadata(options?: { signal?: AbortSignal }): Promise<Map<string, unknown>>;
  /** Moments that have a name (`azulejo snapshot`), by time. The array opens at one as `url@name`. */
  snapshots(options?: { signal?: AbortSignal }): Promise<{ name: string; at: number }[]>;
  enumeration(name: string, options?: { signal?: AbortSignal }): Promise<Enumeration>;
  /** The values of a dimension label, at the coordinates of a range or at all that have one. */
  labels(
    name: string,
    range?: [low: Coordinate, high: Coordinate],
    options?: { signal?: AbortSignal },
  ): Promise<Column>;
  /** The boxes around the tiles of a sparse fragment, by its index in `fragments`. */
  boxes(
    fragment: number,
    options?: { signal?: AbortSignal },
  ): Promise<[Whole | string, Whole | string][][]>;
  /** The cells in a box. */
  get(select?: Select, options?: ReadOptions): Promise<Result>;
  /** The same batch by batch, for results beyond memory. */
  batches(options?: ReadOptions & { select?: Select }): AsyncGenerator<Batch, void>;
  /**
   * An Arrow IPC stream, for example for `tableFromIPC` of `apache-arrow`. Dense arrays give the
   * cells that match, with their coordinates. `raw`: ticks, indices and bytes as they are stored.
   */
  query(options?: ReadOptions & { select?: Select; raw?: boolean }): Promise<Uint8Array>;
  /** Each written like `count`, `sum:a`, `min:a`, `max:a`, `mean:a`, `nulls:a`. */
  aggregate(
    wanted: string | string[],
    options?: ReadOptions & { select?: Select },
  ): Promise<Record<string, Whole | string | null>>;
  /** Gives back memory before the collector does. */
  close(): void;
}

export interface Member {
  name: string | null;
  uri: string;
  /** Where it lies, whole. */
  location: string;
  relative: boolean;
  kind: "array" | "group" | null;
}

/** A group as it was at a time. */
export class Group {
  readonly kind: "group";
  readonly uri: string;
  readonly members: Member[];
  readonly metadata: Map<string, unknown>;
  readonly timeRange: [Whole, Whole];
  readonly listedAt?: number;
  open(
    member: string | Member,
    options?: { at?: At; signal?: AbortSignal },
  ): Promise<AzulejoArray | Group>;
}

/** Errors have a `code`, by which programs tell them apart, and a message that names the object. */
export class AzulejoError extends Error {
  readonly code:
    | "NotFound"
    | "InvalidArgument"
    | "SchemaMismatch"
    | "Corrupt"
    | "Unsupported"
    | "Encryption"
    | "Storage"
    | "Budget"
    | "Internal"
    | (string & {});
  readonly uri?: string;
}

/** Loads the module; `open` does it by itself. */
export function load(module?: OpenOptions["module"]): Promise<void>;
/** Opens the array or group at a place. */
export function open(where: Where, options?: OpenOptions): Promise<AzulejoArray | Group>;
export function openArray(where: Where, options?: OpenOptions): Promise<AzulejoArray>;
export function openGroup(where: Where, options?: OpenOptions): Promise<Group>;
