// Columns of results: typed arrays over what the engine gives.

const NUMBERS = {
  INT8: Int8Array,
  UINT8: Uint8Array,
  INT16: Int16Array,
  UINT16: Uint16Array,
  INT32: Int32Array,
  UINT32: Uint32Array,
  INT64: BigInt64Array,
  UINT64: BigUint64Array,
  FLOAT32: Float32Array,
  FLOAT64: Float64Array,
  BOOL: Uint8Array,
  STRING_UTF16: Uint16Array,
  STRING_UCS2: Uint16Array,
  STRING_UTF32: Uint32Array,
  STRING_UCS4: Uint32Array,
};

const TEXT = new Set(["CHAR", "STRING_ASCII", "STRING_UTF8", "GEOM_WKT"]);
// What a text begins with is its own, U+FEFF too.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The typed array of a TileDB datatype; datetimes and times are ticks of 64 bits. */
export function arrayOf(datatype) {
  if (/^(DATETIME|TIME)_/.test(datatype)) return BigInt64Array;
  return NUMBERS[datatype] ?? Uint8Array;
}

/** Whether cells of a datatype are shown as text. */
export const isText = (datatype) => TEXT.has(datatype);

/** The cells of one field. */
export class Column {
  constructor({ name, datatype, cellValNum, nullable, enumeration, data, offsets, validity }) {
    /** Name of the attribute or dimension. */
    this.name = name;
    /** TileDB's name of the type. */
    this.datatype = datatype;
    /** Values in a cell; 0 where cells vary in length. */
    this.cellValNum = cellValNum;
    this.nullable = nullable;
    /** Name of the enumeration whose entries the values index. */
    this.enumeration = enumeration ?? undefined;
    const Values = arrayOf(datatype);
    /** All values, cell after cell: `cellValNum` each, or as `offsets` say. */
    this.values = new Values(data.buffer, data.byteOffset, data.byteLength / Values.BYTES_PER_ELEMENT);
    /** Cells of varying length: where each begins in `values`, and the end. */
    this.offsets = offsets && inValues(offsets, Values.BYTES_PER_ELEMENT);
    /** Nullable fields: a byte a cell, 0 for null. */
    this.validity = validity ?? undefined;
  }

  /** Number of cells. */
  get length() {
    return this.offsets ? this.offsets.length - 1 : this.values.length / this.cellValNum;
  }

  /** A cell: a number, a bigint, a string, several values, or null. */
  get(i) {
    if (this.validity && this.validity[i] === 0) return null;
    if (!this.offsets && this.cellValNum === 1 && !isText(this.datatype)) return this.values[i];
    const [from, to] = this.offsets
      ? [this.offsets[i], this.offsets[i + 1]]
      : [i * this.cellValNum, (i + 1) * this.cellValNum];
    const cell = this.values.subarray(from, to);
    return isText(this.datatype) ? decoder.decode(cell) : cell;
  }

  *[Symbol.iterator]() {
    for (let i = 0; i < this.length; i++) yield this.get(i);
  }
}

/** Some cells of a result. */
export class Batch {
  constructor({ cells, columns }) {
    this.cells = cells;
    this.columns = columns.map((column) => new Column(column));
  }

  /** Gives back the cells' memory; the collector does it too, often many batches later. */
  free() {
    this.columns.forEach(free);
  }
}

function free({ values, offsets, validity }) {
  for (const part of [values, offsets, validity]) {
    if (part?.buffer.byteLength > 0) part.buffer.transfer?.(0);
  }
}

function inValues(offsets, size) {
  return size === 1 ? offsets : offsets.map((offset) => offset / size);
}

/**
 * The cells of batches, put together. Where it is known how many there will be, columns of
 * fixed-length cells are made at once, so that no batch is held beside the whole.
 */
export class Gathered {
  /** Bytes of all that was added. */
  bytes = 0;
  #cells = 0;
  #expected;
  #parts = [];

  /** @param {number | undefined} expected cells, where it is known */
  constructor(expected) {
    this.#expected = expected;
  }

  get cells() {
    return this.#cells;
  }

  add({ cells, columns }) {
    columns.forEach((column, i) => {
      this.bytes += sizeOf(column);
      const whole = this.#parts[i]?.whole;
      if (whole) return fill(whole, column, this.#cells);
      this.#parts[i] ??= { batches: [] };
      const { batches } = this.#parts[i];
      if (batches.length === 0 && !column.offsets && cells < (this.#expected ?? 0)) {
        this.#parts[i] = { whole: empty(column, this.#expected) };
        return fill(this.#parts[i].whole, column, 0);
      }
      batches.push(column);
    });
    this.#cells += cells;
  }

  /** The columns, after which this is empty. */
  take() {
    const columns = this.#parts.map(({ whole, batches }) => {
      if (!whole) return concat(batches);
      return this.#cells < this.#expected ? cut(whole, this.#cells) : whole;
    });
    this.#parts = [];
    return columns;
  }
}

const sizeOf = ({ values, offsets, validity }) =>
  values.byteLength + (offsets?.byteLength ?? 0) + (validity?.byteLength ?? 0);

const like = (column, parts) => Object.assign(Object.create(Column.prototype), column, parts);

function empty(column, cells) {
  const values = new column.values.constructor(cells * column.cellValNum);
  return like(column, { values, validity: column.validity && new Uint8Array(cells) });
}

/** Moves a column's cells into their place in the whole. */
function fill(whole, column, at) {
  whole.values.set(column.values, at * column.cellValNum);
  whole.validity?.set(column.validity, at);
  free(column);
}

function cut(column, cells) {
  const values = column.values.slice(0, cells * column.cellValNum);
  return like(column, { values, validity: column.validity?.slice(0, cells) });
}

/** One column of the cells of several, in their order. */
function concat(columns) {
  if (columns.length === 1) return columns[0];
  const [first] = columns;
  const values = new first.values.constructor(total(columns, (c) => c.values.length));
  const offsets = first.offsets && new Uint32Array(total(columns, (c) => c.length) + 1);
  const validity = first.validity && new Uint8Array(total(columns, (c) => c.length));
  let [cells, at] = [0, 0];
  for (const column of columns) {
    values.set(column.values, at);
    if (offsets) for (let i = 0; i <= column.length; i++) offsets[cells + i] = at + column.offsets[i];
    validity?.set(column.validity, cells);
    cells += column.length;
    at += column.values.length;
  }
  return like(first, { values, offsets, validity });
}

function total(columns, count) {
  return columns.reduce((sum, column) => sum + count(column), 0);
}
