// A sparse array as points: two dimensions lie in the plane. Many points are shown by how densely
// they lie, few by the value of an attribute.
import { Axis, isAxis } from "./axes.js";
import { Camera } from "./camera.js";
import * as colours from "./colours.js";
import { conditionInput } from "./condition.js";
import { choice, eachFrame, el, later } from "./dom.js";
import * as format from "./format.js";
import { Points } from "./points-gl.js";
import { shown } from "./raster.js";
import { Reading } from "./reading.js";
import * as state from "./state.js";

/** Cells that are read at a time, at most. */
const MOST = 2_000_000;
/** Of more points in sight than this, density is shown. */
const DENSE = 60_000;

/** The dimensions that can lie in the plane. */
export const planar = (array) =>
  array.dimensions.map((dimension, i) => ({ dimension, i })).filter(({ dimension }) => isAxis(dimension));

export class PointsView {
  #hover;
  cells = 0;

  constructor(array, panel, report) {
    this.array = array;
    this.report = report;
    const axes = planar(array).map(({ i }) => new Axis(array, i));
    const find = (name, usual) => axes.find((axis) => axis.name === name) ?? axes[usual];
    this.x = find(state.get("x"), 0);
    this.y = find(state.get("y"), 1);
    if (this.x === this.y) this.y = axes.find((axis) => axis !== this.x);
    this.attributes = [...axes.filter((a) => a !== this.x && a !== this.y).map((a) => a.name), ...shown(array).map((a) => a.name)];
    const chosen = state.get("attr");
    this.attribute = chosen === "density" || this.attributes.includes(chosen) ? chosen : undefined;
    this.#build(panel, axes.map((axis) => axis.name));
    this.points = new Points(this.canvas);
    this.draw = eachFrame(() => this.#draw());
    this.read = later(160, () => this.#read());
    const geographic = /lon|x/i.test(this.x.name) && /lat|y/i.test(this.y.name) && this.x.real;
    this.camera = new Camera(this.stage, () => this.#moved(), { square: geographic });
    this.camera.up = true;
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.stage);
    this.#colours();
    if (state.get("view")) this.camera.text = state.get("view");
    else this.fit();
    this.#read();
  }

  fit() {
    state.set({ view: undefined });
    this.camera.fit(this.x.written, this.y.written);
  }

  close() {
    this.reading.stop();
    this.observer.disconnect();
  }

  show(array) {
    this.array = array;
    this.region = undefined;
    this.#read();
  }

  key(event) {
    if (event.key !== "0" && event.key !== "f") return false;
    this.fit();
    return true;
  }

  #build(panel, names) {
    const again = (changes) => {
      state.set({ ...changes, view: undefined });
      this.onAgain();
    };
    const kinds = [["", "as suits"], ["density", "density"], ...this.attributes.map((name) => [name, name])];
    const bar = el(
      "div",
      { class: "bar" },
      el("label", {}, "across", choice(names, this.x.name, (x) => again({ x, y: x === this.y.name ? this.x.name : this.y.name }))),
      el("label", {}, "up", choice(names, this.y.name, (y) => again({ y, x: y === this.x.name ? this.y.name : this.x.name }))),
      el("label", {}, "show", choice(kinds, this.attribute ?? "", (attr) => {
        this.attribute = attr || undefined;
        state.set({ attr });
        this.#shade();
      })),
      el("label", {}, "colours", choice(colours.NAMES, state.get("map") ?? "viridis", (map) => (state.set({ map }), this.#colours()))),
      conditionInput({
        size: 28,
        changed: () => {
          this.region = undefined;
          this.#read();
        },
      }),
      el("button", { type: "button", click: () => this.fit(), title: "All that was written (0)" }, "Fit"),
    );
    this.canvas = el("canvas");
    this.stage = el("div", { class: "stage", tabindex: 0, role: "img", "aria-label": "Map of points" }, this.canvas);
    this.readout = el("div", { class: "readout", hidden: true });
    this.legendCanvas = el("canvas");
    this.legendEnds = el("div", {}, el("span"), el("span"), el("span"));
    const message = el("div", { class: "message", hidden: true });
    this.reading = new Reading(message, this.report);
    this.stage.append(this.readout, el("div", { class: "legend" }, this.legendCanvas, this.legendEnds), message);
    panel.append(bar, this.stage);
    this.stage.addEventListener("pointermove", (event) => {
      this.#hover = [event.offsetX, event.offsetY];
      this.#tell();
    });
    this.stage.addEventListener("pointerleave", () => {
      this.#hover = undefined;
      this.#tell();
    });
  }

  #colours() {
    this.table = colours.table(state.get("map") ?? "viridis");
    this.points.setColours(this.table);
    colours.paint(this.legendCanvas, this.table);
    this.draw();
  }

  #moved() {
    state.set({ view: this.camera.text });
    this.draw();
    this.read?.();
  }

  /** Reads what is seen and as much around it, unless that is here. */
  #read() {
    const seen = this.camera.seen;
    const { region } = this;
    const inside = region && seen[0] >= region.box[0] && seen[1] <= region.box[1] && seen[2] >= region.box[2] && seen[3] <= region.box[3];
    if (inside && (region.whole || (seen[1] - seen[0]) * 4 > region.box[1] - region.box[0])) return;
    const [w, h] = [seen[1] - seen[0], seen[3] - seen[2]];
    const cut = (axis, from, to) => [Math.max(from, axis.written[0]), Math.min(to, axis.written[1])];
    const [x, y] = [cut(this.x, seen[0] - w / 2, seen[1] + w / 2), cut(this.y, seen[2] - h / 2, seen[3] + h / 2)];
    if (x[0] > x[1] || y[0] > y[1]) return;
    const select = { [this.x.name]: this.x.bounds(...x), [this.y.name]: this.y.bounds(...y) };
    const fields = [this.x.name, this.y.name, ...this.attributes];
    const ends = ({ written }, [from, to]) => [from === written[0] ? -Infinity : from, to === written[1] ? Infinity : to];
    const box = [...ends(this.x, x), ...ends(this.y, y)];
    const take = (found) => {
      this.region = { box, whole: found.cells < MOST };
      this.#set(found);
    };
    this.reading.read(this.array, select, { fields, most: MOST, where: " here; zoom in to see all", take });
  }

  #set({ cells, columns }) {
    const column = (name) => columns[name]?.values ?? new Float32Array();
    this.cells = cells;
    this.columns = columns;
    const low = this.x.real && this.y.real ? [0, 0] : [this.x, this.y].map((axis) => axis.low);
    const place = (axis, values, low) => (axis.real ? values : Float64Array.from(values, (v) => Number(BigInt(v) - BigInt(low))));
    this.xs = place(this.x, column(this.x.name), low[0]);
    this.ys = place(this.y, column(this.y.name), low[1]);
    this.origin = [this.camera.x, this.camera.y];
    this.places = new Float32Array(cells * 2);
    for (let i = 0; i < cells; i++) {
      this.places[2 * i] = this.xs[i] - this.origin[0];
      this.places[2 * i + 1] = this.ys[i] - this.origin[1];
    }
    this.index = undefined;
    this.#shade();
  }

  /** Whether density is shown. */
  get #byDensity() {
    if (this.attribute) return this.attribute === "density";
    return this.cells > DENSE || this.attributes.length === 0;
  }

  #shade() {
    if (!this.places) return;
    const shades = this.#byDensity ? this.#density() : this.#values();
    this.points.set(this.places, shades);
    this.draw();
  }

  #values() {
    const name = this.attribute ?? this.attributes[0];
    const { values, validity } = this.columns[name];
    const numbers = Float32Array.from(values, Number);
    const [low, high] = colours.usualRange(numbers) ?? [0, 1];
    this.#legend(format.short(low), name, format.short(high));
    return numbers.map((value, i) => (validity?.[i] === 0 ? 0 : (value - low) / (high - low)));
  }

  /** How many points share a small square with each, as a logarithm. */
  #density() {
    const [left, right, bottom, top] = this.camera.seen;
    const [w, h] = [right - left, top - bottom];
    const side = 320;
    const bins = new Uint32Array(side * side * 4);
    const at = (i) => {
      const column = Math.floor(((this.xs[i] - left + w / 2) / (2 * w)) * side * 2);
      const row = Math.floor(((this.ys[i] - bottom + h / 2) / (2 * h)) * side * 2);
      return column >= 0 && row >= 0 && column < side * 2 && row < side * 2 ? row * side * 2 + column : -1;
    };
    let most = 1;
    for (let i = 0; i < this.cells; i++) {
      const bin = at(i);
      if (bin >= 0) most = Math.max(most, ++bins[bin]);
    }
    this.#legend("1", "points to a spot", format.count(most));
    const scale = 1 / Math.log(most + 1);
    const shades = new Float32Array(this.cells);
    for (let i = 0; i < this.cells; i++) shades[i] = Math.log((bins[at(i)] ?? 0) + 1) * scale;
    return shades;
  }

  #legend(...texts) {
    texts.forEach((text, i) => (this.legendEnds.children[i].textContent = text));
  }

  #draw() {
    const { camera } = this;
    if (!this.origin) return;
    const half = [(camera.width / 2) * camera.sx, (camera.height / 2) * camera.sy];
    const few = Math.min(1, 40_000 / (this.cells || 1));
    const size = 2.2 + 4.5 * few;
    const view = [camera.x - this.origin[0], camera.y - this.origin[1], ...half];
    this.points.draw(view, { size, opacity: 0.55 + 0.4 * few }, [camera.width, camera.height]);
    this.#tell();
  }

  /** The point nearest to the pointer. */
  #tell() {
    this.readout.hidden = true;
    if (!this.#hover || !this.xs) return;
    const [x, y] = this.camera.at(...this.#hover);
    const { sx, sy } = this.camera;
    let [best, near] = [-1, 10 ** 2];
    for (let i = 0; i < this.cells; i++) {
      const [dx, dy] = [(this.xs[i] - x) / sx, (this.ys[i] - y) / sy];
      const distance = dx * dx + dy * dy;
      if (distance < near) [best, near] = [i, distance];
    }
    this.readout.hidden = false;
    if (best < 0) {
      const at = (axis, place) => `${axis.name} ${axis.text(place)}`;
      this.readout.textContent = `${at(this.x, x)}   ${at(this.y, y)}`;
      return;
    }
    const lines = Object.values(this.columns).map((column) => `${column.name} ${format.cell(column.get(best), column.datatype)}`);
    this.readout.textContent = lines.join("\n");
  }
}
