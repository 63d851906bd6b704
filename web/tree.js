// Groups and arrays as a tree.
import { el } from "./dom.js";

/** Shows what lies in a group; `choose(member, opened, names)` shows one of them: `names` lead to it. */
export class Tree {
  constructor(box, choose) {
    this.box = box;
    this.choose = choose;
  }

  show(root, name) {
    this.nodes = [];
    const list = el("ul", { role: "group" });
    this.box.replaceChildren(list);
    this.#add(list, { name, kind: root.kind, location: root.uri }, async () => root, [], true);
    this.box.hidden = root.kind === "array";
  }

  /** Marks what is shown. */
  mark(uri) {
    for (const { button, location } of this.nodes) {
      button.setAttribute("aria-selected", location === uri);
      button.tabIndex = location === uri ? 0 : -1;
    }
    if (!this.nodes.some(({ location }) => location === uri) && this.nodes[0]) this.nodes[0].button.tabIndex = 0;
  }

  #add(list, member, open, names, expanded) {
    const sign = el("span", { class: "sign", "aria-hidden": "true" }, member.kind === "array" ? "▦" : "▸");
    const button = el("button", { type: "button", role: "treeitem", tabindex: -1 }, sign, member.name ?? member.uri);
    const below = el("ul", { role: "group", hidden: true });
    const item = el("li", { role: "none" }, button, below);
    const node = { button, location: member.location, below };
    this.nodes.push(node);
    list.append(item);
    let opened;
    const expand = async (wanted = below.hidden) => {
      if (member.kind === "array") return;
      try {
        opened ??= await open();
      } catch (error) {
        button.title = error.message;
        sign.textContent = "!";
        return;
      }
      if (opened.kind === "array") {
        member.kind = "array";
        sign.textContent = "▦";
        return;
      }
      if (below.childElementCount === 0) {
        for (const each of opened.members) {
          this.#add(below, each, () => opened.open(each), [...names, each.name ?? each.uri]);
        }
      }
      below.hidden = !wanted;
      sign.textContent = wanted ? "▾" : "▸";
      button.setAttribute("aria-expanded", wanted);
    };
    button.addEventListener("click", async () => {
      await expand();
      this.choose(member, opened, names);
    });
    button.addEventListener("keydown", (event) => this.#key(event, node, expand));
    if (expanded) expand(true);
  }

  #key(event, node, expand) {
    const visible = this.nodes.filter(({ button }) => button.offsetParent !== null);
    visible.sort((a, b) => (a.button.compareDocumentPosition(b.button) & 4 ? -1 : 1));
    const at = visible.indexOf(node);
    const moves = {
      ArrowDown: () => visible[at + 1]?.button.focus(),
      ArrowUp: () => visible[at - 1]?.button.focus(),
      ArrowRight: () => expand(true),
      ArrowLeft: () => expand(false),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }
}
