// Points in space, and the edges of the box that they lie in, by WebGL.
import { cellTexture, program } from "./raster-gl.js";

const TURNED = `
uniform mat4 camera;
vec4 turned(vec3 place) { return camera * vec4(place, 1.0); }`;

const POINTS = [
  `#version 300 es
in vec3 place;
in float value;
uniform float size;
out float shade;
${TURNED}
void main() {
  gl_Position = turned(place);
  gl_PointSize = clamp(size / gl_Position.w, 1.5, 24.0);
  shade = value;
}`,
  `#version 300 es
precision highp float;
in float shade;
uniform sampler2D colours;
out vec4 colour;
void main() {
  if (length(gl_PointCoord - 0.5) > 0.5) discard;
  float t = clamp(shade, 0.0, 1.0);
  colour = vec4(texture(colours, vec2(t * 255.0 / 256.0 + 0.5 / 256.0, 0.5)).rgb, 1.0);
}`,
];

const EDGES = [
  `#version 300 es
in vec3 place;
${TURNED}
void main() { gl_Position = turned(place); }`,
  `#version 300 es
precision highp float;
uniform vec4 ink;
out vec4 colour;
void main() { colour = ink; }`,
];

/** The edges of the cube from -1 to 1, as pairs of corners. */
const CUBE = new Float32Array(
  [0, 1, 2].flatMap((axis) =>
    [[-1, -1], [-1, 1], [1, -1], [1, 1]].flatMap((others) =>
      [-1, 1].flatMap((end) => {
        const corner = [...others];
        corner.splice(axis, 0, end);
        return corner;
      }),
    ),
  ),
);

export class SpacePoints {
  count = 0;

  constructor(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: true, alpha: true, premultipliedAlpha: true });
    if (!gl) throw new Error("this browser has no WebGL 2, which pictures of arrays need");
    Object.assign(this, { canvas, gl });
    this.points = this.#program(POINTS, ["camera", "size"], { place: 3, value: 1 });
    this.edges = this.#program(EDGES, ["camera", "ink"], { place: 3 });
    this.#fill(this.edges.place, CUBE);
    cellTexture(gl);
    gl.enable(gl.DEPTH_TEST);
  }

  #program([vertex, fragment], uniforms, attributes) {
    const { gl } = this;
    const made = { program: program(gl, vertex, fragment), vertices: gl.createVertexArray() };
    for (const name of uniforms) made[name] = gl.getUniformLocation(made.program, name);
    gl.bindVertexArray(made.vertices);
    for (const [name, width] of Object.entries(attributes)) {
      made[name] = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, made[name]);
      const at = gl.getAttribLocation(made.program, name);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, width, gl.FLOAT, false, 0, 0);
    }
    return made;
  }

  #fill(buffer, numbers) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, numbers, gl.STATIC_DRAW);
  }

  setColours(table) {
    const { gl } = this;
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, table);
  }

  /** Triples of places from -1 to 1, and a number from 0 to 1 each. */
  set(places, values) {
    this.#fill(this.points.place, places);
    this.#fill(this.points.value, values);
    this.count = values.length;
  }

  draw(camera, { size, ink }, [width, height]) {
    const { gl, canvas } = this;
    const ratio = devicePixelRatio || 1;
    const pixels = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
    gl.viewport(0, 0, ...pixels);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    const begin = (made) => {
      gl.useProgram(made.program);
      gl.bindVertexArray(made.vertices);
      gl.uniformMatrix4fv(made.camera, false, camera);
    };
    begin(this.edges);
    gl.uniform4f(this.edges.ink, ...ink);
    gl.drawArrays(gl.LINES, 0, CUBE.length / 3);
    begin(this.points);
    gl.uniform1f(this.points.size, size * ratio);
    gl.drawArrays(gl.POINTS, 0, this.count);
  }
}
