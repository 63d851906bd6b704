// A condition, typed once and the same in every view of an array.
import { el } from "./dom.js";
import * as state from "./state.js";

/** The field in which it is typed; `changed()` is called when there is another one. */
export function conditionInput({ size, changed }) {
  const input = el("input", {
    type: "text",
    class: "mono",
    size,
    placeholder: 'condition, such as a > 3 and b in ("x", "y")',
    value: state.get("where") ?? "",
    "aria-label": "Condition",
    change: () => {
      state.set({ where: input.value.trim(), page: undefined });
      changed();
    },
  });
  return el("label", {}, "where", input);
}

/** The condition as queries take it. */
export const condition = () => state.get("where") || undefined;
