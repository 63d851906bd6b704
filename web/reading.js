// The cells of a view: one read at a time, which a newer one ends, of so many cells at most.
import { condition } from "./condition.js";
import * as format from "./format.js";

export class Reading {
  #under;

  /** `message` says what is missing or went wrong, `report` that cells are coming. */
  constructor(message, report) {
    this.message = message;
    this.report = report;
  }

  stop() {
    this.#under?.abort();
  }

  /**
   * Gives the cells of a selection under the condition to `take`, `most` of them at most; if there
   * are more, says that these are so many of the cells `where` they lie.
   */
  async read(array, select, { fields, most, where = "", take }) {
    this.stop();
    const { signal } = (this.#under = new AbortController());
    this.report({ loading: 1 });
    try {
      const found = await array.get(select, { fields, where: condition(), layout: "unordered", limit: most, signal });
      take(found);
      this.#say(found.cells < most ? undefined : `These are ${format.count(most)} of the cells${where}.`, false);
    } catch (error) {
      if (error.name !== "AbortError") this.#say(error.message, true);
    } finally {
      if (!signal.aborted) this.report({ loading: 0 });
    }
  }

  #say(text, wrong) {
    this.message.hidden = text === undefined;
    this.message.textContent = text ?? "";
    this.message.classList.toggle("error", wrong);
  }
}
