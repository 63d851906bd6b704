// Looking at a box from around it: the turn, the height and the distance of an eye. Pointers,
// wheels and keys move it.

/** Radians that a pixel of a drag turns. */
const TURN = 0.008;
const STEEPEST = Math.PI / 2 - 0.01;

export class Orbit {
  turn = -0.6;
  height = 0.45;
  distance = 4.4;

  constructor(element, changed) {
    this.element = element;
    this.changed = changed;
    this.#listen();
  }

  get size() {
    return [this.element.clientWidth || 1, this.element.clientHeight || 1];
  }

  reset() {
    [this.turn, this.height, this.distance] = [-0.6, 0.45, 4.4];
    this.changed();
  }

  /** What makes places of the box places of the picture: a matrix, column by column. */
  get matrix() {
    const [sin, cos] = [Math.sin(this.turn), Math.cos(this.turn)];
    const [up, flat] = [Math.sin(this.height), Math.cos(this.height)];
    const [width, height] = this.size;
    const lens = 1.9;
    const [fx, fy] = [(lens * Math.min(width, height)) / width, (lens * Math.min(width, height)) / height];
    const [near, far] = [0.05, this.distance + 6];
    const [a, b] = [(far + near) / (far - near), (-2 * far * near) / (far - near)];
    // The third dimension is upright. Rows: to the right, up, and away from the eye.
    const right = [cos, sin, 0];
    const upward = [-sin * up, cos * up, flat];
    const away = [-sin * flat, cos * flat, -up];
    const column = (i) => [fx * right[i], fy * upward[i], a * away[i], away[i]];
    return new Float32Array([...column(0), ...column(1), ...column(2), 0, 0, a * this.distance + b, this.distance]);
  }

  /** The pixel of a place, and how far it is. */
  pixel([x, y, z]) {
    const m = this.matrix;
    const [px, py, , w] = [0, 1, 2, 3].map((row) => m[row] * x + m[4 + row] * y + m[8 + row] * z + m[12 + row]);
    const [width, height] = this.size;
    return [(px / w / 2 + 0.5) * width, (0.5 - py / w / 2) * height, w];
  }

  /** As text for the page's URL, and back. */
  get text() {
    return [this.turn, this.height, this.distance].map((v) => Number(v.toFixed(3))).join(",");
  }

  set text(text) {
    const [turn, height, distance, ...rest] = text.split(",").map(Number);
    if (rest.length > 0 || ![turn, height].every(Number.isFinite) || !(distance > 0)) return;
    [this.turn, this.height, this.distance] = [turn, height, distance];
  }

  rotate(px, py) {
    this.turn = (this.turn - px * TURN) % (2 * Math.PI);
    this.height = Math.min(STEEPEST, Math.max(-STEEPEST, this.height + py * TURN));
    this.changed();
  }

  zoom(factor) {
    this.distance = Math.min(12, Math.max(1.2, this.distance * factor));
    this.changed();
  }

  #listen() {
    const { element } = this;
    let before;
    element.addEventListener("pointerdown", (event) => {
      element.setPointerCapture(event.pointerId);
      before = [event.offsetX, event.offsetY];
    });
    element.addEventListener("pointermove", (event) => {
      if (!before) return;
      this.rotate(event.offsetX - before[0], event.offsetY - before[1]);
      before = [event.offsetX, event.offsetY];
    });
    for (const end of ["pointerup", "pointercancel"]) element.addEventListener(end, () => (before = undefined));
    const wheel = (event) => {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * (event.deltaMode === 1 ? 16 : 1) * 0.0012));
    };
    element.addEventListener("wheel", wheel, { passive: false });
    element.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = event.shiftKey ? 60 : 15;
      const moves = {
        ArrowLeft: () => this.rotate(step, 0),
        ArrowRight: () => this.rotate(-step, 0),
        ArrowUp: () => this.rotate(0, step),
        ArrowDown: () => this.rotate(0, -step),
        "+": () => this.zoom(0.85),
        "=": () => this.zoom(0.85),
        "-": () => this.zoom(1 / 0.85),
      };
      if (!moves[event.key]) return;
      event.preventDefault();
      moves[event.key]();
    });
  }
}
