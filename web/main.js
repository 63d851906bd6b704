// The page: opens what its URL names and shows it.
import { startWorker } from "./azulejo/worker.js";
import { about, aboutGroup } from "./about.js";
import { el } from "./dom.js";
import { History } from "./history.js";
import { PointsView, planar } from "./points.js";
import { RasterView, shown } from "./raster.js";
import { SpaceView } from "./space.js";
import * as state from "./state.js";
import { TableView } from "./table.js";
import { Tree } from "./tree.js";

const by = (id) => document.getElementById(id);
const app = by("app");
const worker = startWorker();
const history = new History(by("time"), travel);
const tree = new Tree(by("tree"), choose);

/** What is open: the root, and the array that is shown. */
let root;
let array;
let view;
/** Files that were dropped here, which no URL names. */
let files;
/** What was asked for last: whatever was begun before it and comes later is not shown. */
let opening = 0;
let drawing = 0;
let travelling = 0;

function lastPart(uri) {
  const last = uri.replace(/[/]+$/, "").split("/").at(-1);
  try {
    return decodeURIComponent(last) || uri;
  } catch {
    return last; // A name with a % of its own.
  }
}

function busy(text) {
  by("busy").textContent = text;
}

async function report({ loading }) {
  document.body.dataset.loading = loading;
  const { requests, bytes } = array ? await array.io() : { requests: 0, bytes: 0 };
  const size = bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
  busy(`${loading > 0 ? "reading… " : ""}${requests} requests, ${size}`);
}

/** Opens what the page's URL or dropped files name. */
async function openRoot() {
  const mine = ++opening;
  const url = state.get("url");
  by("url").value = url ?? (files ? "" : "");
  if (!url && !files) return void app.classList.add("empty");
  app.classList.remove("empty");
  drawing++;
  closeView();
  // What it leads to is of another place.
  by("tree").hidden = true;
  busy("opening…");
  try {
    const listing = state.get("listing") === "1";
    const opened = await worker.open(files ?? url, { listing });
    if (mine !== opening) return;
    root = opened;
    const name = lastPart(root.uri);
    document.title = `${name} – Azulejo`;
    tree.show(root, name);
    const path = state.get("array");
    if (root.kind === "array") await show(root);
    else if (path) {
      const found = await follow(root, path.split("/"));
      if (mine !== opening) return;
      if (found.kind === "group") showGroup(found, path.split("/").map(decodeURIComponent));
      else await show(found);
    } else showGroup(root, []);
  } catch (error) {
    if (mine !== opening) return;
    fail(error);
  }
}

/** A member of members, by their names. */
async function follow(group, [name, ...rest]) {
  const member = group.members.find((m) => (m.name ?? m.uri) === decodeURIComponent(name));
  if (!member) throw new Error(`the group has no member ${name}`);
  const opened = await group.open(member);
  return rest.length > 0 ? follow(opened, rest) : opened;
}

function fail(error) {
  busy("");
  by("about").replaceChildren();
  by("tabs").replaceChildren();
  history.hide();
  by("panel").replaceChildren(el("p", { class: "error", role: "alert", style: "padding: 14px" }, error.message));
}

/** A member was chosen in the tree: the one to which these names lead from the root. */
async function choose(member, opened, names) {
  const mine = ++opening;
  const path = names.map(encodeURIComponent).join("/");
  const open = async () => opened ?? (path ? await follow(root, path.split("/")) : root);
  try {
    if (member.kind === "group") {
      const group = await open();
      if (mine === opening) showGroup(group, names);
      return;
    }
    if (path !== (state.get("array") ?? "")) {
      const [url, listing, map] = ["url", "listing", "map"].map(state.get);
      state.replace({ url, listing, array: path || undefined, map });
    }
    const chosen = await open();
    if (mine === opening) await show(chosen);
  } catch (error) {
    if (mine === opening) fail(error);
  }
}

function showGroup(group, names) {
  closeView();
  drawing++;
  array = undefined;
  tree.mark(group.uri);
  aboutGroup(by("about"), group, lastPart(group.uri));
  busy("");
  const arrays = group.members.map((member) =>
    el("li", {}, el("button", { type: "button", click: () => choose(member, undefined, [...names, member.name ?? member.uri]) }, member.name ?? member.uri)),
  );
  by("panel").replaceChildren(
    el("div", { style: "padding: 18px 20px" }, el("p", { class: "faint" }, "Choose an array."), el("ul", { style: "list-style: none; padding: 0; display: grid; gap: 6px; justify-content: start" }, arrays)),
  );
}

/** Shows an array: now first, which tells its history, then at the time that is wanted. */
async function show(opened) {
  array = opened;
  tree.mark(array.uri);
  document.title = `${lastPart(array.uri)} – Azulejo`;
  about(by("about"), array, lastPart(array.uri));
  history.show(array);
  await draw();
}

async function draw() {
  const mine = ++drawing;
  closeView();
  const at = state.get("at");
  let shownAt = array;
  try {
    if (at !== undefined) shownAt = await array.at(Number(at));
  } catch (error) {
    if (mine === drawing) throw error;
  }
  if (mine !== drawing) return;
  const kinds = viewsOf(array);
  const tab = kinds.some(([name]) => name === state.get("tab")) ? state.get("tab") : kinds[0][0];
  const tabs = kinds.map(([name]) =>
    el(
      "button",
      {
        type: "button",
        role: "tab",
        "aria-selected": String(name === tab),
        click: () => {
          state.set({ tab: name });
          draw().catch(fail);
        },
      },
      name,
    ),
  );
  by("tabs").replaceChildren(...tabs);
  const View = kinds.find(([name]) => name === tab)[1];
  try {
    view = new View(shownAt, by("panel"), report);
    view.onAgain = () => draw().catch(fail);
  } catch (error) {
    by("panel").replaceChildren(el("p", { class: "error", style: "padding: 14px" }, error.message));
  }
}

/** What an array can be shown as. */
function viewsOf(array) {
  const views = [];
  if (array.dense && shown(array).length > 0) views.push(["Map", RasterView]);
  if (!array.dense && planar(array).length > 1) views.push(["Points", PointsView]);
  if (!array.dense && planar(array).length > 2) views.push(["Space", SpaceView]);
  views.push(["Table", TableView]);
  return views;
}

function closeView() {
  view?.close();
  view = undefined;
  by("panel").replaceChildren();
}

/** Shows another time. */
async function travel(at) {
  const mine = ++travelling;
  const now = array;
  const isWanted = () => mine === travelling && now === array;
  try {
    const then = at === undefined ? now : await now.at(at);
    if (isWanted()) view?.show(then);
  } catch (error) {
    if (isWanted()) fail(error);
  }
}

by("address").addEventListener("submit", (event) => {
  event.preventDefault();
  files = undefined;
  state.replace({ url: by("url").value.trim() || undefined });
  openRoot();
});

function openFiles(chosen) {
  files = chosen;
  state.replace({});
  openRoot();
}

by("folder").addEventListener("click", async () => {
  if (!window.showDirectoryPicker) return by("files").click();
  try {
    openFiles(await window.showDirectoryPicker());
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
});
by("files").addEventListener("change", (event) => openFiles([...event.target.files]));

addEventListener("dragover", (event) => {
  event.preventDefault();
  by("drop").hidden = false;
});
addEventListener("dragleave", (event) => (by("drop").hidden = event.relatedTarget === null || by("drop").hidden));
addEventListener("drop", async (event) => {
  event.preventDefault();
  by("drop").hidden = true;
  const [item] = event.dataTransfer.items;
  const handle = await item?.getAsFileSystemHandle?.();
  if (handle?.kind === "directory") openFiles(handle);
  else if (event.dataTransfer.files.length > 0) openFiles([...event.dataTransfer.files]);
});

function theme(wanted) {
  const dark = wanted ?? localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = dark;
  if (wanted) localStorage.setItem("theme", wanted);
  view?.draw?.();
}
const otherTheme = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
by("theme").addEventListener("click", otherTheme);

const KEYS = {
  "/": "type a URL",
  "arrows, + and −": "move and zoom the picture, turn points in space (with Shift further)",
  "0": "all that was written",
  r: "the range of values that is seen",
  "[ and ]": "along the first slider",
  ", and .": "earlier and later",
  t: "light or dark",
  "?": "this list",
};
by("keys").querySelector("dl").append(...Object.entries(KEYS).flatMap(([key, text]) => [el("dt", {}, key), el("dd", {}, text)]));
by("help").addEventListener("click", () => by("keys").showModal());

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const keys = {
    "/": () => by("url").focus(),
    "?": () => by("keys").showModal(),
    t: otherTheme,
    ",": () => history.step(-1),
    ".": () => history.step(1),
  };
  if (keys[event.key]) keys[event.key]();
  else if (!view?.key(event)) return;
  event.preventDefault();
});

state.onChange(() => openRoot());
theme();
openRoot();
