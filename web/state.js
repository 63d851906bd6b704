// What is shown, in the page's URL: whoever opens that sees the same.

let state = read();
const listeners = new Set();

function read() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

/** A part of what is shown; undefined where nothing was chosen. */
export const get = (name) => state[name];

/** Parts of it as an object, by names beginning with a prefix such as `i.`. */
export function prefixed(prefix) {
  const parts = Object.entries(state).filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(parts.map(([name, value]) => [name.slice(prefix.length), value]));
}

/** Changes parts; undefined removes one. Nobody is told: whoever changes something shows it. */
export function set(changes, { push = false } = {}) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === null || value === "") delete state[name];
    else state[name] = String(value);
  }
  write(push);
}

/** Everything anew. */
export function replace(next, { push = true } = {}) {
  state = Object.fromEntries(Object.entries(next).filter(([, value]) => value !== undefined));
  write(push);
}

let pending;
function write(push) {
  const apply = () => {
    const hash = `#${new URLSearchParams(state)}`;
    if (hash === location.hash) return;
    history[push ? "pushState" : "replaceState"](null, "", hash);
  };
  clearTimeout(pending);
  // Browsers refuse hundreds of changes in a few seconds, which panning makes.
  if (push) apply();
  else pending = setTimeout(apply, 200);
}

/** Somebody has typed another URL, or gone back. */
export function onChange(listener) {
  listeners.add(listener);
}

for (const event of ["hashchange", "popstate"]) {
  addEventListener(event, () => {
    const next = read();
    if (JSON.stringify(next) === JSON.stringify(state)) return;
    state = next;
    for (const listener of listeners) listener();
  });
}
