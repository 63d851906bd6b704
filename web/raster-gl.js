// Tiles of numbers as colours, by WebGL: the numbers stay numbers on the card, so that another range
// or colour map takes no more than another frame.

const VERTEX = `#version 300 es
in vec2 corner;
uniform vec4 box;
out vec2 place;
void main() {
  place = corner;
  gl_Position = vec4(mix(box.xy, box.zw, corner), 0.0, 1.0);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
precision highp sampler2D;
in vec2 place;
uniform sampler2D cells;
uniform sampler2D colours;
uniform vec2 range;
out vec4 colour;
void main() {
  float value = texture(cells, place).r;
  if (isnan(value)) discard;
  float t = clamp((value - range.x) / (range.y - range.x), 0.0, 1.0);
  colour = texture(colours, vec2(t * 255.0 / 256.0 + 0.5 / 256.0, 0.5));
}`;

/** Compiles a program. */
export function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) {
      throw new Error(`WebGL: ${gl.getShaderInfoLog(shader)}`);
    }
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  return made;
}

/** A new texture that is looked up cell by cell; it is bound. */
export function cellTexture(gl) {
  const texture = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, texture);
  for (const [name, value] of [
    [gl.TEXTURE_MIN_FILTER, gl.NEAREST],
    [gl.TEXTURE_MAG_FILTER, gl.NEAREST],
    [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE],
    [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE],
  ]) {
    gl.texParameteri(gl.TEXTURE_2D, name, value);
  }
  return texture;
}

/** Draws tiles. */
export class Raster {
  constructor(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: true, premultipliedAlpha: true });
    if (!gl) throw new Error("this browser has no WebGL 2, which pictures of arrays need");
    this.canvas = canvas;
    this.gl = gl;
    this.program = program(gl, VERTEX, FRAGMENT);
    gl.useProgram(this.program);
    this.uniforms = Object.fromEntries(
      ["box", "range", "cells", "colours"].map((name) => [name, gl.getUniformLocation(this.program, name)]),
    );
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([0, 0, 1, 0, 0, 1, 1, 1]), gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.bindAttribLocation(this.program, 0, "corner");
    gl.vertexAttribPointer(gl.getAttribLocation(this.program, "corner"), 2, gl.FLOAT, false, 0, 0);
    gl.uniform1i(this.uniforms.cells, 0);
    gl.uniform1i(this.uniforms.colours, 1);
    this.colours = cellTexture(gl);
  }

  /** A texture of numbers, row by row. */
  upload(values, width, height) {
    const { gl } = this;
    gl.activeTexture(gl.TEXTURE0);
    const texture = cellTexture(gl);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 4);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.R32F, width, height, 0, gl.RED, gl.FLOAT, values);
    return texture;
  }

  free(texture) {
    this.gl.deleteTexture(texture);
  }

  setColours(table) {
    const { gl } = this;
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, this.colours);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, table);
  }

  /** Draws textures, each in a box of the canvas in CSS pixels. */
  draw(tiles, range, [width, height]) {
    const { gl, canvas } = this;
    const ratio = devicePixelRatio || 1;
    const size = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
    gl.viewport(0, 0, ...size);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform2f(this.uniforms.range, range[0], range[1] > range[0] ? range[1] : range[0] + 1);
    gl.activeTexture(gl.TEXTURE0);
    for (const { texture, box: [left, top, right, bottom] } of tiles) {
      gl.bindTexture(gl.TEXTURE_2D, texture);
      const x = (px) => (Math.round(px * ratio) / size[0]) * 2 - 1;
      const y = (py) => 1 - (Math.round(py * ratio) / size[1]) * 2;
      gl.uniform4f(this.uniforms.box, x(left), y(top), x(right), y(bottom));
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    }
  }
}
