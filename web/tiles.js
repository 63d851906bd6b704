// Tiles of a picture: which are seen, which are here, which to ask for next.

/** Bytes of tiles that stay, at most, unless more are seen: as many again lie on the graphics card. */
const KEPT = 64 << 20;
/** Asked for at a time. */
const SIDE_BY_SIDE = 6;

/** Cells along the sides of a tile: whole tiles of the array, so that nothing is read twice. */
export function tileSize(extent) {
  if (extent === undefined || extent > 768) return 512;
  return extent * Math.max(1, Math.round(384 / extent));
}

/** A number of the strides 1, 2, 4, ... for a scale of so many cells to a pixel. */
export const levelOf = (scale) => Math.max(0, Math.floor(Math.log2(Math.max(scale, 1e-9)) + 0.35));

/** Loads tiles of one picture; another picture (another time or attribute) takes another of these. */
export class Tiles {
  #tiles = new Map();
  #loading = new Map();
  #wanted = [];
  /** Tiles that could not be had: what is wrong is said once, and nobody is asked again. */
  #missing = new Set();
  #bytes = 0;
  #clock = 0;

  /**
   * @param load `({level, column, row}, signal) => Promise<tile>`
   * @param changed called when a tile has come
   */
  constructor(load, { changed, dropped, failed }) {
    this.load = load;
    this.changed = changed;
    this.dropped = dropped;
    this.failed = failed;
  }

  /** Tiles that are here, coarse ones first, so that finer ones lie on them. */
  here() {
    return [...this.#tiles.values()].sort((a, b) => b.level - a.level);
  }

  get loading() {
    return this.#loading.size + this.#wanted.length;
  }

  /** What is to be seen now, the most wanted first; what is not is not loaded any more. */
  want(all) {
    const keys = new Set(all.map(keyOf));
    for (const [key, controller] of this.#loading) if (!keys.has(key)) controller.abort();
    this.#clock++;
    for (const key of keys) {
      const tile = this.#tiles.get(key);
      if (tile) tile.used = this.#clock;
    }
    const known = [this.#tiles, this.#loading, this.#missing];
    this.#wanted = all.filter((tile) => !known.some((some) => some.has(keyOf(tile))));
    this.#next();
  }

  close() {
    this.#wanted = [];
    for (const controller of this.#loading.values()) controller.abort();
    for (const tile of this.#tiles.values()) this.dropped(tile);
    this.#tiles.clear();
  }

  async #next() {
    while (this.#loading.size < SIDE_BY_SIDE && this.#wanted.length > 0) {
      const place = this.#wanted.shift();
      const controller = new AbortController();
      this.#loading.set(keyOf(place), controller);
      this.load(place, controller.signal)
        .then((tile) => this.#came(place, tile))
        .catch((error) => {
          if (error.name === "AbortError") return;
          this.#missing.add(keyOf(place));
          this.failed(error);
        })
        .finally(() => {
          this.#loading.delete(keyOf(place));
          this.changed();
          this.#next();
        });
    }
  }

  #came(place, tile) {
    this.#tiles.set(keyOf(place), { ...place, ...tile, used: this.#clock });
    this.#bytes += tile.values.byteLength;
    if (this.#bytes <= KEPT) return;
    const oldest = [...this.#tiles].sort(([, a], [, b]) => a.used - b.used);
    for (const [key, old] of oldest) {
      // What is seen stays.
      if (this.#bytes <= KEPT * 0.9 || old.used === this.#clock) return;
      this.#tiles.delete(key);
      this.#bytes -= old.values.byteLength;
      this.dropped(old);
    }
  }
}

const keyOf = ({ level, column, row }) => `${level}/${column}/${row}`;
