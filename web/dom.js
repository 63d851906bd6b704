// Elements, and what they say.

/** An element with attributes (functions listen to events) and children. */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== false));
  return element;
}

/** A choice among texts, or `[value, text]` pairs. */
export function choice(options, value, change) {
  const items = options.map((option) => {
    const [key, text] = Array.isArray(option) ? option : [option, option];
    return el("option", { value: key, selected: key === value }, text);
  });
  return el("select", { change: (event) => change(event.target.value) }, items);
}

/** Calls at most once a frame. */
export function eachFrame(work) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
}

/** Calls when nothing more has come for a while. */
export function later(ms, work) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...args), ms);
  };
}
