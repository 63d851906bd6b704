// Cells as rows, with a condition, page by page.
import { condition, conditionInput } from "./condition.js";
import { choice, el } from "./dom.js";
import * as format from "./format.js";
import * as state from "./state.js";

const SIZES = ["50", "200", "1000"];

export class TableView {
  #reading;
  #counting;

  constructor(array, panel, report) {
    this.array = array;
    this.report = report;
    const turn = (by) => () => {
      state.set({ page: Math.max(0, this.page + by) || undefined });
      this.#read();
    };
    this.back = el("button", { type: "button", click: turn(-1), "aria-label": "Previous page" }, "‹");
    this.next = el("button", { type: "button", click: turn(1), "aria-label": "Next page" }, "›");
    this.place = el("output", { class: "mono" });
    this.total = el("span", { class: "faint" });
    const size = choice(SIZES, state.get("rows") ?? SIZES[0], (rows) => {
      state.set({ rows, page: undefined });
      this.#read();
    });
    const arrow = el("button", { type: "button", click: () => this.#save() }, "Save as Arrow");
    const bar = el(
      "div",
      { class: "bar" },
      conditionInput({ size: 44, changed: () => this.#read() }),
      el("label", {}, "rows", size),
      this.back,
      this.place,
      this.next,
      this.total,
      el("span", { class: "grow" }),
      arrow,
    );
    this.scroll = el("div", { class: "scroll", tabindex: 0 });
    panel.append(bar, this.scroll);
    this.#read();
    this.#count();
  }

  get page() {
    // Of a URL that somebody has typed, what makes sense.
    return Math.max(0, Math.trunc(Number(state.get("page") ?? 0)) || 0);
  }

  get rows() {
    const rows = state.get("rows");
    return Number(SIZES.includes(rows) ? rows : SIZES[0]);
  }

  close() {
    this.#reading?.abort();
    this.#counting?.abort();
  }

  show(array) {
    this.array = array;
    this.#read();
    this.#count();
  }

  key(event) {
    if (event.key === "PageDown") this.next.click();
    else if (event.key === "PageUp") this.back.click();
    else return false;
    return true;
  }

  get #query() {
    const fields = [...this.array.dimensions, ...this.array.attributes].map((f) => f.name);
    return { where: condition(), fields: fields.filter((name) => name !== ""), matching: this.array.dense };
  }

  /** Dense arrays are looked at where something was written. */
  get #select() {
    if (!this.array.dense || !this.array.nonEmptyDomain) return {};
    return Object.fromEntries(this.array.dimensions.map((d, i) => [d.name, this.array.nonEmptyDomain[i]]));
  }

  async #count() {
    // One that began with another condition may end later.
    this.#counting?.abort();
    const { signal } = (this.#counting = new AbortController());
    try {
      this.total.textContent = "";
      const found = await this.array.aggregate("count", { where: condition(), select: this.#select, signal });
      if (signal.aborted) return;
      this.total.textContent = `of ${format.count(found.count)}`;
    } catch {
      // The rows say what is wrong.
    }
  }

  async #read() {
    this.#reading?.abort();
    const { signal } = (this.#reading = new AbortController());
    const first = this.page * this.rows;
    this.report({ loading: 1 });
    try {
      const limit = first + this.rows + 1;
      const { cells, columns } = await this.array.get(this.#select, { ...this.#query, limit, signal });
      const labels = await this.#labels(columns, signal);
      const last = Math.min(cells, first + this.rows);
      this.scroll.replaceChildren(this.#table(Object.values(columns), first, last, labels));
      this.place.value = last > first ? `${format.count(first + 1)}–${format.count(last)}` : "none";
      [this.back.disabled, this.next.disabled] = [this.page === 0, cells <= last];
      this.#count();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.scroll.replaceChildren(el("p", { class: "error", style: "padding: 0 14px" }, error.message));
    } finally {
      if (!signal.aborted) this.report({ loading: 0 });
    }
  }

  async #labels(columns, signal) {
    const found = {};
    for (const { name, enumeration } of Object.values(columns)) {
      if (enumeration) found[name] = (await this.array.enumeration(enumeration, { signal })).values;
    }
    return found;
  }

  #table(columns, first, last, labels) {
    const isNumber = ({ datatype, cellValNum, name }) => cellValNum === 1 && !labels[name] && !/STRING|CHAR|BLOB|GEOM|DATETIME/.test(datatype);
    const head = columns.map((column) =>
      el("th", { scope: "col", class: isNumber(column) ? "number" : "" }, column.name || "(no name)", el("small", {}, column.datatype.toLowerCase())),
    );
    const rows = [];
    for (let i = first; i < last; i++) {
      rows.push(el("tr", {}, columns.map((column) => this.#cell(column, i, labels[column.name], isNumber(column)))));
    }
    return el("table", { class: "cells" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows));
  }

  #cell(column, i, labels, number) {
    const value = column.get(i);
    if (value === null) return el("td", { class: "null" }, "null");
    const text = labels ? format.cell(labels[Number(value)] ?? value) : format.cell(value, column.datatype);
    return el("td", { class: number ? "number" : "", title: text.length > 40 ? text : undefined }, text);
  }

  async #save() {
    this.report({ loading: 1 });
    try {
      const bytes = await this.array.query({ ...this.#query, select: this.#select });
      const link = el("a", { href: URL.createObjectURL(new Blob([bytes])), download: "cells.arrows" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    } catch (error) {
      this.scroll.prepend(el("p", { class: "error", style: "padding: 0 14px" }, error.message));
    } finally {
      this.report({ loading: 0 });
    }
  }
}
