// What of the plane is seen: its middle, and how much a pixel shows. Pointers, wheels and keys move
// it.

export class Camera {
  x = 0;
  y = 0;
  /** Places along each axis to a CSS pixel. Points may have other scales along x and y. */
  sx = 1;
  sy = 1;
  /** Whether places grow upwards. */
  up = false;

  constructor(element, changed, { square }) {
    this.element = element;
    this.changed = changed;
    this.square = square;
    this.#listen();
  }

  get width() {
    return this.element.clientWidth || 1;
  }

  get height() {
    return this.element.clientHeight || 1;
  }

  /** Shows ranges of places, with a little room around them. */
  fit([left, right], [top, bottom], room = 1.06) {
    this.x = (left + right) / 2;
    this.y = (top + bottom) / 2;
    this.sx = (((right - left) * room) || 1) / this.width;
    this.sy = (((bottom - top) * room) || 1) / this.height;
    if (this.square) this.sx = this.sy = Math.max(this.sx, this.sy);
    this.changed();
  }

  /** The place under a pixel. */
  at(px, py) {
    const dy = (py - this.height / 2) * this.sy;
    return [this.x + (px - this.width / 2) * this.sx, this.y + (this.up ? -dy : dy)];
  }

  /** The pixel of a place. */
  pixel(x, y) {
    const dy = (y - this.y) / this.sy;
    return [this.width / 2 + (x - this.x) / this.sx, this.height / 2 + (this.up ? -dy : dy)];
  }

  /** What is seen: `[left, right, low, high]`, in places. */
  get seen() {
    const [dx, dy] = [(this.width / 2) * this.sx, (this.height / 2) * this.sy];
    return [this.x - dx, this.x + dx, this.y - dy, this.y + dy];
  }

  pan(px, py) {
    this.x -= px * this.sx;
    this.y -= (this.up ? -py : py) * this.sy;
    this.changed();
  }

  /** Zooms by a factor around a pixel, which stays where it is. */
  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const [x, y] = this.at(px, py);
    this.sx *= factor;
    this.sy *= factor;
    const [nx, ny] = this.at(px, py);
    this.x += x - nx;
    this.y += y - ny;
    this.changed();
  }

  /** As text for the page's URL, and back. */
  get text() {
    const digits = (v) => Number(v.toPrecision(6));
    return [this.x, this.y, this.sx, this.sy].map(digits).join(",");
  }

  set text(text) {
    const parts = text.split(",").map(Number);
    if (parts.length !== 4 || !parts.every(Number.isFinite) || parts[2] <= 0 || parts[3] <= 0) return;
    [this.x, this.y, this.sx, this.sy] = parts;
  }

  #listen() {
    const pointers = new Map();
    const { element } = this;
    const place = (event) => [event.offsetX, event.offsetY];
    element.addEventListener("pointerdown", (event) => {
      element.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, place(event));
    });
    element.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) return;
      const now = place(event);
      if (pointers.size === 1) {
        this.pan(now[0] - before[0], now[1] - before[1]);
      } else {
        const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
        const distance = ([x, y]) => Math.hypot(x - other[0], y - other[1]) || 1;
        this.zoom(distance(before) / distance(now), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      }
      pointers.set(event.pointerId, now);
    });
    for (const end of ["pointerup", "pointercancel"]) {
      element.addEventListener(end, (event) => pointers.delete(event.pointerId));
    }
    const wheel = (event) => {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      this.zoom(Math.exp(event.deltaY * lines * 0.0016), ...place(event));
    };
    element.addEventListener("wheel", wheel, { passive: false });
    element.addEventListener("dblclick", (event) => this.zoom(0.5, ...place(event)));
    element.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = event.shiftKey ? 200 : 60;
      const moves = {
        ArrowLeft: () => this.pan(step, 0),
        ArrowRight: () => this.pan(-step, 0),
        ArrowUp: () => this.pan(0, step),
        ArrowDown: () => this.pan(0, -step),
        "+": () => this.zoom(0.7),
        "=": () => this.zoom(0.7),
        "-": () => this.zoom(1 / 0.7),
      };
      if (!moves[event.key]) return;
      event.preventDefault();
      moves[event.key]();
    });
  }
}
