// A dense array as a map: two dimensions lie in the plane, sliders choose a place along the others.
import { Axis } from "./axes.js";
import { Camera } from "./camera.js";
import * as colours from "./colours.js";
import { choice, eachFrame, el } from "./dom.js";
import * as format from "./format.js";
import { drawPlot } from "./plot.js";
import { Raster } from "./raster-gl.js";
import * as state from "./state.js";
import { Tiles, levelOf, tileSize } from "./tiles.js";

/** Attributes that are numbers. */
export const shown = (array) =>
  array.attributes.filter((a) => a.cell_val_num === 1 && !/STRING|CHAR|BLOB|GEOM|ANY/.test(a.datatype));

export class RasterView {
  #tiles;
  #range;
  #hover;
  #line;

  constructor(array, panel, report) {
    this.array = array;
    this.report = report;
    this.axes = array.dimensions.map((_, i) => new Axis(array, i));
    const names = this.axes.map((axis) => axis.name);
    const last = names.length - 1;
    const named = (name, usual) => Math.max(0, names.includes(state.get(name)) ? names.indexOf(state.get(name)) : usual);
    this.xAt = named("x", last);
    this.yAt = named("y", Math.max(0, last - 1));
    if (this.xAt === this.yAt && last > 0) this.yAt = this.xAt === 0 ? 1 : this.xAt - 1;
    const attributes = shown(array).map((a) => a.name);
    this.attribute = attributes.includes(state.get("attr")) ? state.get("attr") : attributes[0];
    this.#build(panel, names, attributes);
    this.raster = new Raster(this.canvas);
    this.draw = eachFrame(() => this.#draw());
    this.camera = new Camera(this.stage, () => this.#moved(), { square: last > 0 });
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.stage);
    this.#colours();
    this.#reload();
    if (state.get("view")) this.camera.text = state.get("view");
    else this.fit();
    this.draw();
    this.#label();
    if (state.get("line")) this.#plot(...state.get("line").split(",").map(Number));
  }

  get x() {
    return this.axes[this.xAt];
  }

  /** None of an array of one dimension, which is a band. */
  get y() {
    return this.axes.length > 1 ? this.axes[this.yAt] : undefined;
  }

  fit() {
    state.set({ view: undefined });
    const whole = ([low, high]) => [low, high + 1];
    this.camera.fit(whole(this.x.written), this.y ? whole(this.y.written) : [0, this.x.written[1] / 4 + 1]);
  }

  close() {
    this.#tiles.close();
    this.observer.disconnect();
    this.#line?.abort();
  }

  /** The same view of the array at another time. */
  show(array) {
    this.array = array;
    this.#reload();
    if (this.lastLine) this.#plot(...this.lastLine);
  }

  key(event) {
    const slider = this.sliders[0];
    if (slider && (event.key === "[" || event.key === "]")) {
      slider.value = Number(slider.value) + (event.key === "]" ? 1 : -1);
      slider.dispatchEvent(new Event("input"));
      return true;
    }
    if (event.key === "0" || event.key === "f") this.fit();
    else return false;
    return true;
  }

  #build(panel, names, attributes) {
    const again = (changes) => {
      state.set(changes);
      this.onAgain();
    };
    this.inputs = {
      low: el("input", { type: "number", step: "any", "aria-label": "Least value", change: () => this.#typed() }),
      high: el("input", { type: "number", step: "any", "aria-label": "Greatest value", change: () => this.#typed() }),
    };
    const axes = names.length > 1 && [
      el("label", {}, "across", choice(names, this.x.name, (x) => again({ x, y: x === this.y.name ? this.x.name : this.y.name, view: undefined }))),
      el("label", {}, "down", choice(names, this.y?.name, (y) => again({ y, x: y === this.x.name ? this.y.name : this.x.name, view: undefined }))),
    ];
    this.reversed = el("input", { type: "checkbox", checked: state.get("reversed") === "1", change: () => this.#colours() });
    this.boxes = el("input", { type: "checkbox", checked: state.get("boxes") === "1", change: () => (state.set({ boxes: this.boxes.checked ? 1 : undefined }), this.draw()) });
    const bar = el(
      "div",
      { class: "bar" },
      attributes.length > 1 && el("label", {}, "attribute", choice(attributes, this.attribute, (attr) => again({ attr, range: undefined }))),
      axes,
      el("label", {}, "colours", choice(colours.NAMES, state.get("map") ?? "viridis", (map) => (state.set({ map }), this.#colours()))),
      el("label", {}, this.reversed, "reversed"),
      el("label", {}, "from", this.inputs.low),
      el("label", {}, "to", this.inputs.high),
      el("button", { type: "button", click: () => this.#auto(), title: "The range of what is seen (r)" }, "Range"),
      el("button", { type: "button", click: () => this.fit(), title: "All that was written (0)" }, "Fit"),
      el("label", {}, this.boxes, "fragments"),
    );
    const others = this.axes.map((axis, i) => ({ axis, i })).filter(({ i }) => i !== this.xAt && i !== this.yAt);
    this.places = this.axes.map((axis) => axis.written[0]);
    this.sliders = [];
    /** What to say anew when labels have come. */
    this.told = [];
    const sliders = others.map(({ axis, i }) => {
      const chosen = Number(state.get(`i.${axis.name}`) ?? axis.written[0]);
      this.places[i] = Math.min(Math.max(chosen, axis.domain[0]), axis.domain[1]);
      const output = el("output", { class: "mono" });
      const tell = () => (output.value = axis.text(this.places[i]));
      const input = el("input", {
        type: "range",
        min: axis.written[0],
        max: axis.written[1],
        value: this.places[i],
        "aria-label": axis.name,
        input: () => {
          this.places[i] = Number(input.value);
          state.set({ [`i.${axis.name}`]: this.places[i] });
          tell();
          this.#reload();
          if (this.lastLine) this.#plot(...this.lastLine);
        },
      });
      tell();
      this.told.push(tell);
      this.sliders.push(input);
      return el("label", {}, axis.name, input, output);
    });
    this.canvas = el("canvas");
    this.over = el("canvas");
    this.stage = el(
      "div",
      { class: "stage", tabindex: 0, role: "img", "aria-label": `Map of ${this.attribute}` },
      this.canvas,
      this.over,
    );
    this.readout = el("div", { class: "readout", hidden: true });
    this.legendCanvas = el("canvas");
    this.legendEnds = el("div", {}, el("span"), el("span", {}, this.attribute), el("span"));
    this.message = el("div", { class: "message error", hidden: true });
    this.stage.append(this.readout, el("div", { class: "legend" }, this.legendCanvas, this.legendEnds), this.message);
    this.plotCanvas = el("canvas");
    this.plotWhere = el("span");
    const along = choice(names, this.#alongName(names), (name) => {
      state.set({ profile: name });
      this.#plot(...this.lastLine);
    });
    const close = el("button", { type: "button", class: "quiet", "aria-label": "Close the plot", click: () => this.#unplot() }, "✕");
    const label = el("div", { class: "label" }, `${this.attribute} along`, names.length > 1 ? along : names[0], this.plotWhere, close);
    this.plotBox = el("div", { class: "plot", hidden: true }, this.plotCanvas, label);
    panel.append(bar, ...(sliders.length > 0 ? [el("div", { class: "bar" }, sliders)] : []), this.stage, this.plotBox);
    this.stage.addEventListener("pointermove", (event) => {
      this.#hover = [event.offsetX, event.offsetY];
      this.draw();
    });
    this.stage.addEventListener("pointerleave", () => {
      this.#hover = undefined;
      this.draw();
    });
    let down;
    this.stage.addEventListener("pointerdown", (event) => (down = [event.offsetX, event.offsetY]));
    this.stage.addEventListener("click", (event) => {
      if (down && Math.hypot(event.offsetX - down[0], event.offsetY - down[1]) > 4) return;
      this.#plot(...this.camera.at(event.offsetX, event.offsetY).map(Math.floor));
    });
    this.stage.addEventListener("keydown", (event) => {
      if (event.key !== "r" || event.ctrlKey || event.metaKey) return;
      this.#auto();
    });
  }

  /** Labels come after the picture, which does without them where they cannot be read. */
  async #label() {
    const read = this.axes.map((axis) => axis.readLabels(this.array).catch(() => {}));
    await Promise.all(read);
    for (const tell of this.told) tell();
    if (this.lastLine && this.axes.some((axis) => axis.labels)) this.#plot(...this.lastLine);
    this.draw();
  }

  #colours() {
    this.table = colours.table(state.get("map") ?? "viridis", this.reversed.checked);
    state.set({ reversed: this.reversed.checked ? 1 : undefined });
    this.raster.setColours(this.table);
    colours.paint(this.legendCanvas, this.table);
    this.draw();
  }

  #setRange(range) {
    this.#range = range;
    [this.inputs.low.value, this.inputs.high.value] = range.map((v) => Number(v.toPrecision(6)));
    const [low, , high] = this.legendEnds.children;
    [low.textContent, high.textContent] = range.map(format.short);
    this.draw();
  }

  #typed() {
    const range = [Number(this.inputs.low.value), Number(this.inputs.high.value)];
    if (!range.every(Number.isFinite) || range[0] >= range[1]) return;
    state.set({ range: range.join(",") });
    this.#setRange(range);
  }

  /** The range of the tiles that are seen. */
  #auto() {
    const all = this.#visible().map((tile) => tile.values);
    const range = colours.usualRange(Float32Array.from(all.flatMap((v) => [...v.filter((_, i) => i % 7 === 0)])));
    if (!range) return;
    state.set({ range: undefined });
    this.#setRange(range);
  }

  #reload() {
    const old = this.#tiles;
    this.#tiles = new Tiles((place, signal) => this.#load(place, signal), {
      changed: () => this.draw(),
      dropped: ({ texture }) => this.raster.free(texture),
      failed: (error) => this.#fail(error),
    });
    this.message.hidden = true;
    // The picture before stays until the first tile of the next one has come.
    this.before?.close();
    this.before = old;
    this.draw?.();
  }

  #fail(error) {
    this.message.textContent = error.message;
    this.message.hidden = false;
  }

  /** What a selection takes along the dimensions that are not in the plane. */
  #elsewhere() {
    const select = {};
    this.axes.forEach((axis, i) => {
      if (i !== this.xAt && (i !== this.yAt || !this.y)) select[axis.name] = axis.coordinate(this.places[i]);
    });
    return select;
  }

  async #read(select, signal) {
    const { columns } = await this.array.get({ ...this.#elsewhere(), ...select }, { fields: [this.attribute], signal });
    const { values, validity } = columns[this.attribute];
    const out = new Float32Array(values.length);
    for (let i = 0; i < out.length; i++) out[i] = validity?.[i] === 0 ? NaN : Number(values[i]);
    return this.#blank(out);
  }

  /** Cells that nobody wrote have the fill value, and are no data. */
  #blank(values) {
    const { fill_value: fill } = this.array.attributes.find((a) => a.name === this.attribute);
    const none = Math.fround(Number(fill));
    if (!Number.isFinite(none) || none === 0) return values;
    for (let i = 0; i < values.length; i++) if (values[i] === none) values[i] = NaN;
    return values;
  }

  async #load({ level, column, row }, signal) {
    const step = 2 ** level;
    const along = (axis, at) => {
      const size = tileSize(axis.extent) * step;
      const [from, to] = [at * size, Math.min((at + 1) * size, axis.size) - 1];
      return { from, to, cells: Math.floor((to - from) / step) + 1 };
    };
    const [x, y] = [along(this.x, column), this.y && along(this.y, row)];
    const select = { [this.x.name]: { range: this.x.bounds(x.from, x.to), step } };
    if (this.y) select[this.y.name] = { range: this.y.bounds(y.from, y.to), step };
    let values = await this.#read(select, signal);
    const [width, height] = [x.cells, y?.cells ?? 1];
    // Results are in the order of the dimensions.
    if (this.y && this.xAt < this.yAt) values = transposed(values, width, height);
    if (!this.#range) {
      const given = state.get("range")?.split(",").map(Number);
      const range = given?.every(Number.isFinite) ? given : colours.usualRange(values);
      if (range) this.#setRange(range);
    }
    const texture = this.raster.upload(values, width, height);
    return { texture, values, width, height, x: x.from, y: y?.from ?? 0 };
  }

  /** Tiles of the level that suits the scale, nearest to the middle first. */
  #seen() {
    const level = levelOf(Math.max(this.camera.sx, this.y ? this.camera.sy : 0));
    const [left, right, top, bottom] = this.camera.seen;
    const span = (axis, low, high) => {
      const size = tileSize(axis.extent) * 2 ** level;
      const [first, last] = [Math.max(low, 0), Math.min(high, axis.size - 1)];
      return first > last ? [0, -1] : [Math.floor(first / size), Math.floor(last / size)];
    };
    const [c0, c1] = span(this.x, left, right);
    const [r0, r1] = this.y ? span(this.y, top, bottom) : [0, 0];
    const all = [];
    for (let row = r0; row <= r1; row++) {
      for (let column = c0; column <= c1; column++) all.push({ level, column, row });
    }
    const middle = ({ column, row }) => Math.hypot(column - (c0 + c1) / 2, row - (r0 + r1) / 2);
    return all.sort((a, b) => middle(a) - middle(b)).slice(0, 120);
  }

  #visible() {
    const { level } = this.#seen()[0] ?? { level: 0 };
    return this.#tiles.here().filter((tile) => tile.level === level);
  }

  #moved() {
    state.set({ view: this.camera.text });
    this.draw();
  }

  #placed(tile) {
    const step = 2 ** tile.level;
    const top = this.y ? tile.y : 0;
    const bottom = this.y ? tile.y + tile.height * step : this.x.written[1] / 4 + 1;
    const [x0, y0] = this.camera.pixel(tile.x, top);
    const [x1, y1] = this.camera.pixel(tile.x + tile.width * step, bottom);
    return { texture: tile.texture, box: [x0, y0, x1, y1] };
  }

  #draw() {
    const { camera } = this;
    const wanted = this.#seen();
    this.#tiles.want(wanted);
    let here = this.#tiles.here();
    if (this.before && (here.length >= wanted.length || this.#tiles.loading === 0)) {
      this.before.close();
      this.before = undefined;
    }
    if (this.before) here = [...this.before.here(), ...here];
    this.raster.draw(here.map((tile) => this.#placed(tile)), this.#range ?? [0, 1], [camera.width, camera.height]);
    this.#drawOver();
    this.#tell();
    this.report({ loading: this.#tiles.loading });
  }

  #drawOver() {
    const { camera, over } = this;
    const ratio = devicePixelRatio || 1;
    [over.width, over.height] = [Math.round(camera.width * ratio), Math.round(camera.height * ratio)];
    const paint = over.getContext("2d");
    paint.scale(ratio, ratio);
    const style = getComputedStyle(this.stage);
    if (this.boxes.checked && this.y) {
      paint.strokeStyle = style.getPropertyValue("--text");
      paint.lineWidth = 1;
      this.array.fragments.forEach(({ domain }) => {
        if (!domain) return;
        const [left, right] = domain[this.xAt].map((c) => this.x.place(c));
        const [top, bottom] = domain[this.yAt].map((c) => this.y.place(c));
        const [x0, y0] = camera.pixel(left, top);
        const [x1, y1] = camera.pixel(right + 1, bottom + 1);
        paint.strokeRect(Math.round(x0) + 0.5, Math.round(y0) + 0.5, Math.round(x1 - x0) - 1, Math.round(y1 - y0) - 1);
      });
    }
    if (this.lastLine) {
      const across = this.#alongName(this.axes.map((a) => a.name)) !== this.y?.name;
      const [px, py] = camera.pixel(this.lastLine[0] + 0.5, this.lastLine[1] + 0.5);
      paint.strokeStyle = style.getPropertyValue("--text");
      paint.setLineDash([4, 4]);
      paint.beginPath();
      paint.moveTo(across ? 0 : px, across ? py : 0);
      paint.lineTo(across ? camera.width : px, across ? py : camera.height);
      paint.stroke();
      paint.setLineDash([]);
      paint.beginPath();
      paint.arc(px, py, 4, 0, 7);
      paint.stroke();
    }
  }

  /** The value under the pointer. */
  #tell() {
    if (!this.#hover) return void (this.readout.hidden = true);
    const [x, y] = this.camera.at(...this.#hover).map(Math.floor);
    const [w, h] = [this.x.size, this.y?.size ?? Infinity];
    if (x < 0 || x >= w || (this.y && (y < 0 || y >= h))) return void (this.readout.hidden = true);
    const holds = (t) => {
      const step = 2 ** t.level;
      return x >= t.x && x < t.x + t.width * step && (!this.y || (y >= t.y && y < t.y + t.height * step));
    };
    const tile = this.#tiles.here().reverse().find(holds);
    const step = tile ? 2 ** tile.level : 1;
    const value = tile?.values[(this.y ? Math.floor((y - tile.y) / step) : 0) * tile.width + Math.floor((x - tile.x) / step)];
    const at = (axis, place) => `${axis.labelled ?? axis.name} ${axis.text(place)}`;
    const { datatype } = this.array.attributes.find((a) => a.name === this.attribute);
    const text = value === undefined ? "…" : Number.isNaN(value) ? "no data" : format.cell(/FLOAT/.test(datatype) ? value : Math.round(value), datatype);
    this.readout.textContent = `${this.y ? `${at(this.y, y)}   ` : ""}${at(this.x, x)}   ${this.attribute} ${text}`;
    this.readout.hidden = false;
  }

  /** The dimension along which values are plotted. */
  #alongName(names) {
    const chosen = state.get("profile");
    return names.includes(chosen) ? chosen : this.x.name;
  }

  #unplot() {
    this.lastLine = undefined;
    state.set({ line: undefined });
    this.plotBox.hidden = true;
    this.draw();
  }

  /** The line of cells through a place. */
  async #plot(x, y) {
    if (x < 0 || x >= this.x.size || (this.y && (y < 0 || y >= this.y.size))) return;
    this.#line?.abort();
    this.#line = new AbortController();
    this.lastLine = [x, y];
    state.set({ line: `${x},${y}` });
    const along = this.axes.find((axis) => axis.name === this.#alongName(this.axes.map((a) => a.name)));
    const [low, high] = along.written;
    const step = Math.max(1, Math.floor((high - low + 1) / 4096));
    const select = { [this.x.name]: this.x.coordinate(x) };
    if (this.y) select[this.y.name] = this.y.coordinate(y);
    const at = this.axes.map((axis, i) => (axis === this.x ? x : axis === this.y ? y : this.places[i]));
    select[along.name] = { range: along.bounds(low, high), step };
    this.draw();
    try {
      const values = await this.#read(select, this.#line.signal);
      this.plotBox.hidden = false;
      const others = this.axes.flatMap((axis, i) => (axis === along ? [] : [`${axis.labelled ?? axis.name} ${axis.text(at[i])}`]));
      this.plotWhere.textContent = others.length > 0 ? `at ${others.join(", ")}` : "";
      const tick = (i) => along.text(low + i * step);
      drawPlot(this.plotCanvas, values, { tick, mark: (at[this.axes.indexOf(along)] - low) / step });
    } catch (error) {
      if (error.name !== "AbortError") this.#fail(error);
    }
  }
}

function transposed(values, width, height) {
  const out = new Float32Array(values.length);
  for (let x = 0; x < width; x++) for (let y = 0; y < height; y++) out[y * width + x] = values[x * height + y];
  return out;
}
