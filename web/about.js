// What an array is: dimensions, attributes, key-values, fragments.
import { el } from "./dom.js";
import * as format from "./format.js";

const rows = (all) => el("table", {}, all.map(([name, value]) => el("tr", {}, el("td", {}, name), el("td", {}, value))));

const small = (text) => el("small", {}, text);

/** Fills the side panel. */
export async function about(box, array, name) {
  const { schema } = array;
  const written = array.fragments.reduce((sum, f) => sum + Number(f.bytes), 0);
  const cells = array.fragments.reduce((sum, f) => sum + Number(f.cells), 0);
  const dimension = (d, i) => [
    [d.name || "(no name)", small(d.datatype.toLowerCase())],
    [
      d.domain ? format.range(d.domain, d.datatype) : "text",
      small([d.tile_extent !== null && `tiles of ${format.count(d.tile_extent)}`, format.filters(d)].filter(Boolean).join(" · ")),
      array.nonEmptyDomain && d.domain ? small(`written ${format.range(array.nonEmptyDomain[i], d.datatype)}`) : "",
    ],
  ];
  const attribute = (a) => {
    const kind = [a.datatype.toLowerCase(), a.cell_val_num === "var" ? "of varying length" : a.cell_val_num > 1 && `× ${a.cell_val_num}`, a.nullable && "nullable"];
    return [
      [a.name || "(no name)", small(kind.filter(Boolean).join(", "))],
      [format.filters(a) || "no filters", a.enumeration ? small(`one of ${a.enumeration}`) : ""],
    ];
  };
  const facts = [
    ["Kind", `${schema.array_type}${schema.allows_dups ? ", duplicates allowed" : ""}`],
    ["Format", `version ${schema.version}`],
    ["Order", `cells ${schema.cell_order}, tiles ${schema.tile_order}`],
    ["Fragments", format.count(array.fragments.length)],
    ["Cells stored", format.count(cells)],
    ["Size", format.bytes(written)],
  ];
  if (array.listedAt) facts.push(["Manifest of", format.moment(array.listedAt)]);
  const metadata = el("div");
  box.replaceChildren(
    el("h2", {}, name),
    el("div", { class: "address faint mono", title: array.uri }, array.uri),
    el("h3", {}, "Array"),
    rows(facts),
    el("h3", {}, "Dimensions"),
    rows(array.dimensions.map(dimension)),
    el("h3", {}, "Attributes"),
    rows(array.attributes.map(attribute)),
    metadata,
  );
  try {
    metadata.replaceChildren(...keyValues(await array.metadata()));
  } catch (error) {
    metadata.replaceChildren(el("p", { class: "error" }, error.message));
  }
}

/** What a group is. */
export function aboutGroup(box, group, name) {
  box.replaceChildren(
    el("h2", {}, name),
    el("div", { class: "address faint mono", title: group.uri }, group.uri),
    el("h3", {}, "Group"),
    rows([["Members", format.count(group.members.length)]]),
    ...keyValues(group.metadata),
  );
}

function keyValues(metadata) {
  if (metadata.size === 0) return [];
  const text = (value) => (typeof value === "object" ? JSON.stringify(value, (_, v) => (typeof v === "bigint" ? String(v) : v)) : String(value));
  const short = (value) => (value.length > 300 ? `${value.slice(0, 300)}…` : value);
  return [el("h3", {}, "Key-values"), rows([...metadata].map(([key, value]) => [key, short(text(value))]))];
}
