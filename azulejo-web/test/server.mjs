// A web server as plain hosting has them: files, byte ranges, CORS. It counts, and misbehaves when
// asked to.
import { createServer } from "node:http";
import { open } from "node:fs/promises";
import { extname, join, normalize } from "node:path";

const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
  ".css": "text/css",
  ".json": "application/json",
  ".svg": "image/svg+xml",
};

/**
 * Serves folders: `{"/arrays": "/path/to/arrays"}`. `misbehave(request)` may return `status`,
 * `ranges: false`, `cut: bytes` to send fewer, `delay` in ms, `page: true` to send a page, `size` for
 * a file that ends there, `cors: false`.
 */
export async function serve(folders, misbehave = () => ({})) {
  const log = [];
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://x");
    const path = decodeURIComponent(url.pathname);
    const entry = { method: request.method, path, range: request.headers.range };
    entry.begun = performance.now();
    log.push(entry);
    response.on("close", () => (entry.ended = performance.now()));
    const headers = {
      "Access-Control-Allow-Origin": "*",
      "Access-Control-Allow-Headers": "Range",
      "Access-Control-Expose-Headers": "Content-Range, Content-Length",
      "Accept-Ranges": "bytes",
    };
    const odd = misbehave({ method: request.method, path, range: request.headers.range, url }) ?? {};
    if (odd.delay) await new Promise((resolve) => setTimeout(resolve, odd.delay));
    const end = (status, body) => {
      response.writeHead(status, headers);
      response.end(body);
    };
    if (request.method === "OPTIONS") return end(204);
    if (odd.cors === false) for (const name of Object.keys(headers)) if (/^Access/.test(name)) delete headers[name];
    if (odd.status) return end(odd.status, "no");
    if (odd.page) return end(200, "<!doctype html><title>Not here</title>");
    const mount = Object.keys(folders).find((prefix) => path.startsWith(`${prefix}/`));
    if (mount === undefined || normalize(path) !== path) return end(404);
    let file;
    try {
      file = await open(join(folders[mount], path.slice(mount.length)));
      const size = Math.min((await file.stat()).size, odd.size ?? Infinity);
      if (!(await file.stat()).isFile()) return end(404);
      headers["Content-Type"] = TYPES[extname(path)] ?? "application/octet-stream";
      let [start, stop] = [0, size];
      const range = odd.ranges === false ? null : /^bytes=(\d*)-(\d*)$/.exec(request.headers.range);
      if (range) {
        const [, from, to] = range;
        start = from === "" ? Math.max(0, size - Number(to)) : Number(from);
        stop = from === "" || to === "" ? size : Math.min(size, Number(to) + 1);
        if (start >= stop) {
          headers["Content-Range"] = `bytes */${size}`;
          return end(416);
        }
        headers["Content-Range"] = `bytes ${start}-${stop - 1}/${size}`;
      }
      const body = Buffer.alloc(stop - start);
      await file.read(body, 0, body.length, start);
      headers["Content-Length"] = body.length;
      entry.bytes = body.length;
      response.writeHead(range ? 206 : 200, headers);
      if (request.method === "HEAD") return response.end();
      if (odd.cut !== undefined) {
        response.write(body.subarray(0, odd.cut));
        return setTimeout(() => response.destroy(), 20);
      }
      response.end(body);
    } catch (error) {
      end(error.code === "ENOENT" || error.code === "ENOTDIR" ? 404 : 500);
    } finally {
      await file?.close();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  return {
    url: `http://127.0.0.1:${port}`,
    log,
    /** What was asked for since the last call. */
    take: () => log.splice(0),
    close: () => new Promise((resolve) => server.close(resolve) && server.closeAllConnections()),
  };
}
