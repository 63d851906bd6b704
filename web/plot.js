// A line of values.
import { short } from "./format.js";

/** Draws values one beside the other; NaN is a gap. `tick(i)` says what stands under a value. */
export function drawPlot(canvas, values, { tick, mark }) {
  const ratio = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  const paint = canvas.getContext("2d");
  paint.scale(ratio, ratio);
  const style = getComputedStyle(canvas);
  const colour = (name) => style.getPropertyValue(name);
  const finite = values.filter(Number.isFinite);
  let [low, high] = [Infinity, -Infinity];
  for (const value of finite) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (finite.length === 0) [low, high] = [0, 1];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const box = { left: 64, right: width - 16, top: 26, bottom: height - 22 };
  const x = (i) => box.left + (values.length > 1 ? i / (values.length - 1) : 0.5) * (box.right - box.left);
  const y = (value) => box.bottom - ((value - low) / (high - low)) * (box.bottom - box.top);
  paint.font = "10px system-ui, sans-serif";
  paint.fillStyle = colour("--faint");
  paint.strokeStyle = colour("--line");
  paint.textBaseline = "middle";
  for (const value of [low, (low + high) / 2, high]) {
    paint.beginPath();
    paint.moveTo(box.left, Math.round(y(value)) + 0.5);
    paint.lineTo(box.right, Math.round(y(value)) + 0.5);
    paint.stroke();
    paint.textAlign = "right";
    paint.fillText(short(value), box.left - 8, y(value));
  }
  paint.textBaseline = "top";
  for (let k = 0; k <= 4; k++) {
    const i = Math.round((k / 4) * (values.length - 1));
    paint.textAlign = k === 0 ? "left" : k === 4 ? "right" : "center";
    paint.fillText(tick(i), x(i), box.bottom + 6);
  }
  if (mark >= 0 && mark < values.length) {
    paint.strokeStyle = colour("--faint");
    paint.setLineDash([3, 3]);
    paint.beginPath();
    paint.moveTo(x(mark), box.top);
    paint.lineTo(x(mark), box.bottom);
    paint.stroke();
    paint.setLineDash([]);
  }
  paint.strokeStyle = colour("--blue");
  paint.lineWidth = 1.5;
  paint.lineJoin = "round";
  paint.beginPath();
  let drawing = false;
  values.forEach((value, i) => {
    if (!Number.isFinite(value)) return void (drawing = false);
    if (drawing) paint.lineTo(x(i), y(value));
    else paint.moveTo(x(i), y(value));
    drawing = true;
  });
  paint.stroke();
}
