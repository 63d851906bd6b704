// A dense array as virtual Zarr version 3: a store that makes metadata and chunks as they are asked
// for. What reads Zarr through such a store (zarrita, map layers on top of it) reads the array.
import { AzulejoError } from "./errors.js";

const TYPES = {
  BOOL: "bool",
  INT8: "int8",
  UINT8: "uint8",
  INT16: "int16",
  UINT16: "uint16",
  INT32: "int32",
  UINT32: "uint32",
  INT64: "int64",
  UINT64: "uint64",
  FLOAT32: "float32",
  FLOAT64: "float64",
};

/** Chunks of arrays whose tiles are larger than this have fewer rows. */
const LARGEST_CHUNK = 4 << 20;

/** Zarr's type of an attribute, if it has one: one number a cell. */
export function zarrType({ datatype, cell_val_num }) {
  if (cell_val_num !== 1) return undefined;
  return /^(DATETIME|TIME)_/.test(datatype) ? "int64" : TYPES[datatype];
}

/**
 * A store as zarrita takes it (`get(key)`): a group with an array for each attribute that Zarr has
 * a type for. Index 0 of each axis is the low end of the domain (or current domain), or of what was
 * written where the domain has more than 2^53 coordinates.
 */
export class AzulejoZarrStore {
  #array;
  #axes;

  /** @param array an open dense array */
  constructor(array) {
    if (!array.dense) {
      throw new AzulejoError("Unsupported", `${array.uri}: only dense arrays are shown as Zarr`);
    }
    this.#array = array;
    const { current_domain: current } = array.schema;
    this.#axes = array.dimensions.map((dimension, i) => {
      const whole = current?.[i] ?? dimension.domain;
      const length = ([low, high]) => BigInt(high) - BigInt(low) + 1n;
      const fits = length(whole) <= BigInt(Number.MAX_SAFE_INTEGER);
      const bounds = fits ? whole : (array.nonEmptyDomain?.[i] ?? [whole[0], whole[0]]);
      const extent = BigInt(dimension.tile_extent ?? length(bounds));
      // Chunks are tiles: where only a part is shown, it begins with a whole one.
      const start = BigInt(dimension.domain[0]);
      const aligned = start + ((BigInt(bounds[0]) - start) / extent) * extent;
      const low = fits || aligned < BigInt(whole[0]) ? BigInt(bounds[0]) : aligned;
      const size = Number(BigInt(bounds[1]) - low + 1n);
      return { name: dimension.name, low, size, extent: Math.min(Number(extent), size) };
    });
    let cells = this.#axes.reduce((product, axis) => product * axis.extent, 1);
    for (const axis of this.#axes) {
      while (cells * 8 > LARGEST_CHUNK && axis.extent > 1) {
        const half = Math.ceil(axis.extent / 2);
        cells = (cells / axis.extent) * half;
        axis.extent = half;
      }
    }
  }

  /** The low end of each axis: what index 0 stands for. */
  get origin() {
    return this.#axes.map((axis) => axis.low);
  }

  /** What lies under a key such as `/zarr.json`, `/a/zarr.json`, `/a/c/0/1`. */
  async get(key, { signal } = {}) {
    const parts = key.split("/").filter((part) => part !== "");
    if (parts.length === 1 && parts[0] === "zarr.json") return json(await this.#group(signal));
    const attribute = this.#array.attributes.find((a) => pathOf(a.name) === parts[0]);
    if (!attribute || !zarrType(attribute)) return undefined;
    if (parts.length === 2 && parts[1] === "zarr.json") return json(this.#metadata(attribute));
    if (parts[1] !== "c" || parts.length !== this.#axes.length + 2) return undefined;
    const index = parts.slice(2).map(Number);
    return this.#chunk(attribute, index, signal);
  }

  async #group(signal) {
    const metadata = await this.#array.metadata({ signal });
    const attributes = Object.fromEntries(metadata);
    return { zarr_format: 3, node_type: "group", attributes };
  }

  #metadata(attribute) {
    const type = zarrType(attribute);
    return {
      zarr_format: 3,
      node_type: "array",
      shape: this.#axes.map((axis) => axis.size),
      data_type: type,
      chunk_grid: {
        name: "regular",
        configuration: { chunk_shape: this.#axes.map((axis) => axis.extent) },
      },
      chunk_key_encoding: { name: "default", configuration: { separator: "/" } },
      fill_value: fillOf(attribute, type),
      codecs: [
        type === "int8" || type === "uint8" || type === "bool"
          ? { name: "bytes" }
          : { name: "bytes", configuration: { endian: "little" } },
      ],
      dimension_names: this.#axes.map((axis) => axis.name),
      attributes: {
        tiledb_datatype: attribute.datatype,
        tiledb_origin: this.#axes.map((axis) => axis.low),
      },
    };
  }

  async #chunk(attribute, index, signal) {
    const axes = this.#axes;
    const inside = index.every(
      (at, d) => Number.isInteger(at) && at >= 0 && at * axes[d].extent < axes[d].size,
    );
    if (!inside) return undefined;
    const select = {};
    const have = axes.map(({ name, low, size, extent }, d) => {
      const cells = Math.min(extent, size - index[d] * extent);
      const from = low + BigInt(index[d]) * BigInt(extent);
      select[name] = [from, from + BigInt(cells) - 1n];
      return cells;
    });
    const { columns } = await this.#array.get(select, { fields: [attribute.name], signal });
    const column = columns[attribute.name];
    const { values } = column;
    if (column.validity) {
      const fill = values.constructor.from([typed(values, attribute.fill_value)])[0];
      for (let i = 0; i < values.length; i++) if (column.validity[i] === 0) values[i] = fill;
    }
    const whole = pad(values, have, axes.map((axis) => axis.extent), attribute);
    return new Uint8Array(whole.buffer, whole.byteOffset, whole.byteLength);
  }
}

function typed(values, value) {
  if (values instanceof BigInt64Array || values instanceof BigUint64Array) return BigInt(value);
  return Number(real(value));
}

const real = (value) => ({ inf: Infinity, "-inf": -Infinity, NaN: NaN })[value] ?? value;

/** Chunks at the edge are whole ones too. */
function pad(values, have, want, attribute) {
  if (have.every((cells, d) => cells === want[d])) return values;
  const out = new values.constructor(want.reduce((a, b) => a * b, 1));
  out.fill(typed(values, attribute.fill_value));
  const row = have.at(-1);
  for (let at = 0, cell = 0; at < values.length; at += row, cell++) {
    let [rest, place, stride] = [cell, 0, want.at(-1)];
    for (let d = have.length - 2; d >= 0; d--) {
      place += (rest % have[d]) * stride;
      rest = Math.floor(rest / have[d]);
      stride *= want[d];
    }
    out.set(values.subarray(at, at + row), place);
  }
  return out;
}

function fillOf({ fill_value: fill }, type) {
  if (type === "bool") return fill !== 0;
  if (type.startsWith("float")) return { inf: "Infinity", "-inf": "-Infinity" }[fill] ?? fill;
  return fill;
}

/** A name as part of a key; attributes may have none. */
export function pathOf(name) {
  return name === "" ? "_" : encodeURIComponent(name);
}

/** JSON in which bigints are numbers with all their digits. */
function json(value) {
  const mark = "\u0001";
  const text = JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `${mark}${v}` : v));
  return new TextEncoder().encode(text.replace(/"\\u0001(-?\d+)"/g, "$1"));
}

