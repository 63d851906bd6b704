// How an array came to be: its fragments over time and along a dimension, and a slider through time.
import { Axis, isAxis } from "./axes.js";
import { choice, el, svg } from "./dom.js";
import * as format from "./format.js";
import * as state from "./state.js";

const HEIGHT = 74;
/** Fragments that are drawn, at most: the latest. */
const MOST = 400;

/** The panel below a view. `travel(ms)` shows the array at another time; undefined is now. */
export class History {
  constructor(box, travel) {
    this.box = box;
    this.travel = travel;
  }

  /** An array as it is now, with all that is known of its past. */
  show(array) {
    this.array = array;
    const times = new Set(array.fragments.map((f) => Number(f.timeRange[1])));
    for (const time of array.deletes) times.add(Number(time));
    this.times = [...times].sort((a, b) => a - b);
    this.box.hidden = this.times.length === 0;
    if (this.box.hidden) return;
    this.axes = array.dimensions.map((d, i) => ({ name: d.name, i })).filter(({ i }) => isAxis(array.dimensions[i]));
    const chosen = state.get("along");
    this.along = this.axes.some(({ name }) => name === chosen) ? chosen : this.#usual();
    this.slider = el("input", {
      type: "range",
      min: 0,
      max: this.times.length - 1,
      "aria-label": "Time",
      input: () => this.#choose(this.times[this.slider.value]),
    });
    this.output = el("output", { class: "mono" });
    this.named = el("span");
    this.latest = el("button", { type: "button", click: () => this.#choose(undefined) }, "Now");
    const row = el(
      "div",
      { class: "row" },
      el("strong", {}, "As of"),
      this.output,
      this.slider,
      this.named,
      this.latest,
      this.axes.length > 1 &&
        el("label", { class: "faint" }, "along ", choice(this.axes.map((a) => a.name), this.along, (along) => {
          state.set({ along });
          this.along = along;
          this.#picture();
        })),
    );
    this.picture = el("div");
    this.box.replaceChildren(row, this.picture);
    this.snapshots = [];
    this.mark();
    this.#name(array);
    this.observer?.disconnect();
    this.observer = new ResizeObserver(() => this.#picture());
    this.observer.observe(this.box);
  }

  /** Offers the moments that have a name. */
  async #name(array) {
    // Without them the slider is enough.
    const snapshots = await array.snapshots().catch(() => []);
    if (array !== this.array || snapshots.length === 0) return;
    this.snapshots = snapshots;
    const names = snapshots.map(({ name, at }) => [String(at), name]);
    const choose = (at) => at !== "" && this.#choose(Number(at));
    const list = choice([["", "snapshots"], ...names], state.get("at") ?? "", choose);
    list.setAttribute("aria-label", "Named snapshots");
    this.named.replaceChildren(list);
    this.mark();
  }

  /** The dimension along which fragments differ most. */
  #usual() {
    const kinds = ({ i }) => new Set(this.array.fragments.map(({ domain }) => String(domain?.[i]))).size;
    return [...this.axes].sort((a, b) => kinds(b) - kinds(a))[0]?.name ?? "";
  }

  hide() {
    this.observer?.disconnect();
    this.box.hidden = true;
  }

  /** One step earlier or later. */
  step(by) {
    if (this.box.hidden) return;
    const next = Math.min(this.times.length - 1, Math.max(0, Number(this.slider.value) + by));
    this.#choose(this.times[next]);
  }

  /** Shows the time that the page's URL says. */
  mark() {
    const at = state.get("at");
    const time = at === undefined ? this.times.at(-1) : Number(at);
    const index = this.times.findLastIndex((t) => t <= time);
    this.slider.value = Math.max(0, index);
    const name = this.snapshots.find((snapshot) => snapshot.at === time)?.name;
    const said = at === undefined ? "now" : name;
    this.output.value = `${format.moment(time)}${said ? ` (${said})` : ""}`;
    const list = this.named.firstChild;
    if (list) list.value = name === undefined || at === undefined ? "" : String(time);
    this.latest.disabled = at === undefined;
    this.#picture();
  }

  #choose(time) {
    const at = time === this.times.at(-1) ? undefined : time;
    state.set({ at });
    this.mark();
    this.travel(at);
  }

  #picture() {
    const width = this.picture.clientWidth;
    const at = this.axes.find(({ name }) => name === this.along)?.i;
    if (!width || at === undefined) return void this.picture.replaceChildren();
    const axis = new Axis(this.array, at);
    const fragments = this.array.fragments.slice(-MOST);
    const now = state.get("at") === undefined ? Infinity : Number(state.get("at"));
    const [first, last] = [this.times[0], this.times.at(-1)];
    const left = 84;
    // Moments in their order, each at a place of its own, where time itself would crowd them.
    const order = new Map(this.times.map((time, i) => [time, i]));
    const slot = (width - left - 20) / this.times.length;
    const x = (time) => left + (order.get(time) ?? 0) * slot;
    const [low, high] = axis.written;
    const span = high - low || 1;
    const y = (place) => 4 + ((place - low) / span) * (HEIGHT - 8);
    const bars = fragments.filter((f) => f.domain).map((fragment) => {
      const [from, to] = fragment.domain[at].map((c) => axis.place(c));
      const [start, end] = fragment.timeRange.map(Number);
      const x1 = x(end);
      const x0 = start < end ? Math.min(x1, x(this.times.find((t) => t >= start) ?? end)) : x1;
      const title =
        `${format.moment(end)}\n${format.count(fragment.cells)} cells, ${format.bytes(fragment.bytes)}, format ${fragment.version}\n` +
        fragment.domain.map((bounds, i) => `${this.array.dimensions[i].name} ${format.range(bounds, this.array.dimensions[i].datatype)}`).join("\n");
      const choose = () => this.#choose(end);
      return svg(
        "rect",
        {
          class: `fragment${end > now ? " later" : ""}`,
          x: x0 + 1,
          width: Math.max(2, x1 - x0 + slot - 3),
          y: y(from),
          height: Math.max(2, y(to) - y(from)),
          rx: 1.5,
          tabindex: 0,
          click: choose,
          keydown: (event) => event.key === "Enter" && choose(),
        },
        svg("title", {}, title),
      );
    });
    const line = now === Infinity ? [] : [svg("line", { class: "now", x1: x(this.#known(now)) + slot - 1, x2: x(this.#known(now)) + slot - 1, y1: 0, y2: HEIGHT })];
    const label = (place, anchor, ...rest) => svg("text", { x: place, "text-anchor": anchor, ...rest[0] }, rest[1]);
    const ends = [low, high].map((place) => format.cell(axis.real ? Number(place.toPrecision(5)) : axis.coordinate(place), axis.datatype));
    this.picture.replaceChildren(
      svg(
        "svg",
        { class: "history", height: HEIGHT + 16, viewBox: `0 0 ${width} ${HEIGHT + 16}`, role: "group", "aria-label": "Fragments by time and domain" },
        svg("line", { class: "axis", x1: left, x2: width - 20, y1: HEIGHT, y2: HEIGHT }),
        label(left - 8, "end", { y: 12 }, ends[0]),
        label(left - 8, "end", { y: HEIGHT - 2 }, ends[1]),
        label(left - 8, "end", { y: HEIGHT / 2 + 4 }, this.along),
        bars,
        line,
        label(left, "start", { y: HEIGHT + 13 }, format.moment(first)),
        first === last ? undefined : label(width - 20, "end", { y: HEIGHT + 13 }, format.moment(last)),
      ),
    );
  }

  #known(time) {
    return this.times.findLast((t) => t <= time) ?? this.times[0];
  }
}
