// Points as colours, by WebGL.
import { cellTexture, program } from "./raster-gl.js";

const VERTEX = `#version 300 es
in vec2 place;
in float value;
uniform vec4 view; // middle and half of what is seen, the second negative if places grow upwards
uniform float size;
out float shade;
void main() {
  gl_Position = vec4((place - view.xy) / view.zw, 0.0, 1.0);
  gl_PointSize = size;
  shade = value;
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in float shade;
uniform sampler2D colours;
uniform float opacity;
out vec4 colour;
void main() {
  float edge = length(gl_PointCoord - 0.5) * 2.0;
  float inside = 1.0 - smoothstep(0.75, 1.0, edge);
  if (inside <= 0.0) discard;
  float t = clamp(shade, 0.0, 1.0);
  vec3 found = texture(colours, vec2(t * 255.0 / 256.0 + 0.5 / 256.0, 0.5)).rgb;
  colour = vec4(found, 1.0) * inside * opacity;
}`;

/** Draws points; their places are relative to an origin, for 32 bits are few. */
export class Points {
  constructor(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: true, premultipliedAlpha: true });
    if (!gl) throw new Error("this browser has no WebGL 2, which pictures of arrays need");
    Object.assign(this, { canvas, gl, count: 0 });
    this.program = program(gl, VERTEX, FRAGMENT);
    gl.useProgram(this.program);
    this.uniforms = Object.fromEntries(
      ["view", "size", "colours", "opacity"].map((name) => [name, gl.getUniformLocation(this.program, name)]),
    );
    for (const [name, width] of [["place", 2], ["value", 1]]) {
      this[name] = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, this[name]);
      const at = gl.getAttribLocation(this.program, name);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, width, gl.FLOAT, false, 0, 0);
    }
    cellTexture(gl);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  setColours(table) {
    const { gl } = this;
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, table);
  }

  /** Pairs of places, and a number from 0 to 1 each. */
  set(places, values) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.place);
    gl.bufferData(gl.ARRAY_BUFFER, places, gl.STATIC_DRAW);
    this.shade(values);
    this.count = places.length / 2;
  }

  shade(values) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.value);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
  }

  draw(view, { size, opacity }, [width, height]) {
    const { gl, canvas } = this;
    const ratio = devicePixelRatio || 1;
    const pixels = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
    gl.viewport(0, 0, ...pixels);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform4f(this.uniforms.view, ...view);
    gl.uniform1f(this.uniforms.size, size * ratio);
    gl.uniform1f(this.uniforms.opacity, opacity);
    gl.drawArrays(gl.POINTS, 0, this.count);
  }
}
