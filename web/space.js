// A sparse array of three or more dimensions as points in space.
import { Axis } from "./axes.js";
import * as colours from "./colours.js";
import { conditionInput } from "./condition.js";
import { choice, eachFrame, el } from "./dom.js";
import * as format from "./format.js";
import { Orbit } from "./orbit.js";
import { planar } from "./points.js";
import { shown } from "./raster.js";
import { Reading } from "./reading.js";
import { SpacePoints } from "./space-gl.js";
import * as state from "./state.js";

/** Cells that are read, at most. */
const MOST = 1_000_000;
const NAMES = ["x", "y", "z"];

export class SpaceView {
  #hover;
  cells = 0;

  constructor(array, panel, report) {
    this.array = array;
    this.report = report;
    const all = planar(array).map(({ i }) => new Axis(array, i));
    this.axes = [];
    for (const name of NAMES) {
      const free = all.filter((axis) => !this.axes.includes(axis));
      this.axes.push(free.find((axis) => axis.name === state.get(name)) ?? free[0]);
    }
    this.attributes = [...all.map((axis) => axis.name), ...shown(array).map((a) => a.name)];
    const chosen = state.get("attr");
    this.attribute = this.attributes.includes(chosen) ? chosen : (shown(array)[0]?.name ?? this.axes[2].name);
    this.#build(panel, all.map((axis) => axis.name));
    this.points = new SpacePoints(this.canvas);
    this.draw = eachFrame(() => this.#draw());
    this.orbit = new Orbit(this.stage, () => {
      state.set({ eye: this.orbit.text });
      this.draw();
    });
    if (state.get("eye")) this.orbit.text = state.get("eye");
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.stage);
    this.#colours();
    this.#read();
  }

  close() {
    this.reading.stop();
    this.observer.disconnect();
  }

  show(array) {
    this.array = array;
    this.#read();
  }

  key(event) {
    if (event.key !== "0" && event.key !== "f") return false;
    this.orbit.reset();
    state.set({ eye: undefined });
    return true;
  }

  #build(panel, names) {
    /** Chooses an axis; what it was before goes to where the chosen one came from. */
    const choose = (i) => (name) => {
      const now = this.axes.map((axis) => axis.name);
      const other = now.indexOf(name);
      if (other >= 0) now[other] = now[i];
      now[i] = name;
      state.set(Object.fromEntries(NAMES.map((key, k) => [key, now[k]])));
      this.onAgain();
    };
    const axes = ["east", "north", "up"].map((way, i) => el("label", {}, way, choice(names, this.axes[i].name, choose(i))));
    const bar = el(
      "div",
      { class: "bar" },
      axes,
      el("label", {}, "show", choice(this.attributes, this.attribute, (attr) => {
        this.attribute = attr;
        state.set({ attr });
        this.#shade();
      })),
      el("label", {}, "colours", choice(colours.NAMES, state.get("map") ?? "viridis", (map) => (state.set({ map }), this.#colours()))),
      conditionInput({ size: 28, changed: () => this.#read() }),
      el("button", { type: "button", click: () => this.orbit.reset(), title: "As at first (0)" }, "Fit"),
    );
    this.canvas = el("canvas");
    this.over = el("canvas");
    this.stage = el("div", { class: "stage", tabindex: 0, role: "img", "aria-label": "Points in space" }, this.canvas, this.over);
    this.readout = el("div", { class: "readout", hidden: true });
    this.legendCanvas = el("canvas");
    this.legendEnds = el("div", {}, el("span"), el("span"), el("span"));
    const message = el("div", { class: "message", hidden: true });
    this.reading = new Reading(message, this.report);
    this.stage.append(this.readout, el("div", { class: "legend" }, this.legendCanvas, this.legendEnds), message);
    panel.append(bar, this.stage);
    for (const [name, place] of [["pointermove", (event) => [event.offsetX, event.offsetY]], ["pointerleave", () => undefined]]) {
      this.stage.addEventListener(name, (event) => {
        this.#hover = place(event);
        this.draw();
      });
    }
  }

  #colours() {
    const table = colours.table(state.get("map") ?? "viridis");
    this.points.setColours(table);
    colours.paint(this.legendCanvas, table);
    this.draw();
  }

  #read() {
    const fields = [...new Set([...this.axes.map((axis) => axis.name), ...this.attributes])];
    this.reading.read(this.array, {}, { fields, most: MOST, take: (found) => this.#set(found) });
  }

  #set({ cells, columns }) {
    this.cells = cells;
    this.columns = columns;
    this.places = new Float32Array(cells * 3);
    this.axes.forEach((axis, d) => {
      const [low, high] = axis.written;
      const scale = 2 / (high - low || 1);
      const values = columns[axis.name]?.values ?? [];
      for (let i = 0; i < cells; i++) this.places[3 * i + d] = (axis.place(values[i]) - low) * scale - 1;
    });
    this.#shade();
  }

  #shade() {
    if (!this.places) return;
    const { values = [], validity } = this.columns[this.attribute] ?? {};
    const numbers = Float32Array.from(values, Number);
    const [low, high] = colours.usualRange(numbers) ?? [0, 1];
    const texts = [format.short(low), this.attribute, format.short(high)];
    texts.forEach((text, i) => (this.legendEnds.children[i].textContent = text));
    this.points.set(this.places, numbers.map((value, i) => (validity?.[i] === 0 ? 0 : (value - low) / (high - low || 1))));
    this.draw();
  }

  #draw() {
    const [width, height] = this.orbit.size;
    const few = Math.min(1, 40_000 / (this.cells || 1));
    const style = getComputedStyle(this.stage);
    const line = style.getPropertyValue("--faint").trim();
    const ink = [1, 3, 5].map((at) => parseInt(line.slice(at, at + 2), 16) / 255);
    this.points.draw(this.orbit.matrix, { size: 9 + 14 * few, ink: [...ink, 1] }, [width, height]);
    this.#label(style, [width, height]);
    this.#tell();
  }

  /** The names of the axes and their ends, at the edges of the box that are nearest. */
  #label(style, [width, height]) {
    const ratio = devicePixelRatio || 1;
    [this.over.width, this.over.height] = [width * ratio, height * ratio];
    const paint = this.over.getContext("2d");
    paint.scale(ratio, ratio);
    paint.font = "11px system-ui, sans-serif";
    paint.textAlign = "center";
    paint.fillStyle = style.getPropertyValue("--text");
    this.axes.forEach((axis, d) => {
      const place = (along, others) => {
        const at = [...others];
        at.splice(d, 0, along);
        return at;
      };
      const edges = [[-1, -1], [-1, 1], [1, -1], [1, 1]];
      // Upright edges are labelled at the left, the others below.
      const score = (others) => this.orbit.pixel(place(0, others))[d === 2 ? 0 : 1] * (d === 2 ? -1 : 1);
      const edge = edges.reduce((best, others) => (score(others) > score(best) ? others : best));
      const [low, high] = axis.written.map((end) => axis.text(end));
      for (const [along, says] of [[-1, low], [0, axis.name], [1, high]]) {
        const [x, y] = this.orbit.pixel(place(along, edge));
        paint.fillText(says, d === 2 ? x - 26 : x, d === 2 ? y : y + 16);
      }
    });
  }

  /** The point under the pointer that is nearest to the eye. */
  #tell() {
    this.readout.hidden = true;
    if (!this.#hover || !this.places) return;
    const [hx, hy] = this.#hover;
    const m = this.orbit.matrix;
    const [width, height] = this.orbit.size;
    let [best, near] = [-1, Infinity];
    for (let i = 0; i < this.cells; i++) {
      const [x, y, z] = [this.places[3 * i], this.places[3 * i + 1], this.places[3 * i + 2]];
      const w = m[3] * x + m[7] * y + m[11] * z + m[15];
      if (w >= near) continue;
      const dx = ((m[0] * x + m[4] * y + m[8] * z + m[12]) / w / 2 + 0.5) * width - hx;
      const dy = (0.5 - (m[1] * x + m[5] * y + m[9] * z + m[13]) / w / 2) * height - hy;
      if (dx * dx + dy * dy < 36) [best, near] = [i, w];
    }
    if (best < 0) return;
    const lines = Object.values(this.columns).map((column) => `${column.name} ${format.cell(column.get(best), column.datatype)}`);
    this.readout.textContent = lines.join("\n");
    this.readout.hidden = false;
  }
}
