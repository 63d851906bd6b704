// Colour maps. All but grey are even in lightness or diverge evenly, and can be told apart by eyes
// that do not see red and green apart. Anchors, evenly spaced, between which colours are mixed.
const MAPS = {
  viridis: "440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725",
  cividis: "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838",
  magma: "000004 180f3d 440f76 721f81 9e2f7f cd4071 f1605d fd9668 feca8d fcfdbf",
  azulejo: "0c1a33 123466 1f4e8c 3a6fae 6391c6 8fb3d8 b9d1e6 dbe6ee f0f0ea fbf7ea",
  earth: "1b2a49 24506e 3d7a83 6b9c86 9dba8d c9cf9f e2d7ae d9b98e b98f6d 8a6650",
  "blue–orange": "0b3c6f 2d6aa3 6a9bc7 a9c7df e3e9ee f3e6d8 ecbf94 dd9150 bb6420 7a3b08",
  grey: "111111 f4f4f4",
};

export const NAMES = Object.keys(MAPS);

const channels = (hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** 256 colours as RGBA bytes. */
export function table(name, reversed = false) {
  const anchors = (MAPS[name] ?? MAPS.viridis).split(" ").map(channels);
  if (reversed) anchors.reverse();
  const out = new Uint8Array(256 * 4);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (anchors.length - 1);
    const left = Math.min(Math.floor(place), anchors.length - 2);
    const t = place - left;
    for (let c = 0; c < 3; c++) {
      out[i * 4 + c] = Math.round(anchors[left][c] * (1 - t) + anchors[left + 1][c] * t);
    }
    out[i * 4 + 3] = 255;
  }
  return out;
}

/** A legend: the colours from left to right. */
export function paint(canvas, colours) {
  canvas.width = 256;
  canvas.height = 1;
  const image = new ImageData(new Uint8ClampedArray(colours), 256, 1);
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** The range of values that shows most: without the outermost hundredths. */
export function usualRange(values, most = 20_000) {
  const step = Math.max(1, Math.floor(values.length / most));
  const seen = [];
  for (let i = 0; i < values.length; i += step) if (Number.isFinite(values[i])) seen.push(values[i]);
  if (seen.length === 0) return undefined;
  seen.sort((a, b) => a - b);
  const at = (share) => seen[Math.min(seen.length - 1, Math.floor(share * seen.length))];
  const [low, high] = [at(0.01), at(0.99)];
  return low === high ? [seen[0], seen.at(-1) === seen[0] ? seen[0] + 1 : seen.at(-1)] : [low, high];
}
