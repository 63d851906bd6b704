// How much memory a page takes in Chromium. No debugger is attached to it: that would keep what is
// fetched.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { path as chromium } from "./browser.mjs";
import { serve } from "./server.mjs";

/** Whether the system tells how much memory a process takes. */
export const isKnown = process.platform === "linux";

/** Memory of its own, in MB, of the largest page among the processes that `pid` has started. */
async function pageMemory(pid) {
  const parents = new Map();
  const pages = new Map();
  for (const id of await readdir("/proc")) {
    if (!/^\d+$/.test(id)) continue;
    try {
      const status = await readFile(`/proc/${id}/status`, "utf8");
      const number = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]);
      parents.set(Number(id), number("PPid"));
      const command = await readFile(`/proc/${id}/cmdline`, "utf8");
      if (command.includes("--type=renderer")) pages.set(Number(id), number("RssAnon") / 1000);
    } catch {
      // It has ended.
    }
  }
  const isBelow = (id) => id === pid || (parents.has(id) && isBelow(parents.get(id)));
  return Math.max(0, ...[...pages].filter(([id]) => isBelow(id)).map(([, size]) => size));
}

/**
 * Runs a module's text in a page of its own, with the package at `/pkg`: what it answers by
 * `report(value)`, and the page's memory meanwhile, in MB.
 */
export async function measured(script, folders) {
  const profile = await mkdtemp(join(tmpdir(), "azulejo-page-"));
  let told;
  const reported = new Promise((resolve) => (told = resolve));
  const sink = createServer((request, response) => {
    let text = "";
    request.on("data", (piece) => (text += piece));
    request.on("end", () => {
      response.writeHead(200, { "Access-Control-Allow-Origin": "*" }).end();
      told(JSON.parse(text));
    });
  });
  await new Promise((resolve) => sink.listen(0, "127.0.0.1", resolve));
  const pages = await serve(folders);
  const url = new URL(`${pages.url}/test/page.html`);
  url.hash = new URLSearchParams({ script, sink: `http://127.0.0.1:${sink.address().port}` });
  const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"];
  const browser = spawn(chromium, [...flags, `--user-data-dir=${profile}`, url.href], { stdio: "ignore" });
  const sizes = [];
  let watching = true;
  const watch = (async () => {
    while (watching) {
      sizes.push(await pageMemory(browser.pid));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })();
  try {
    const answer = await reported;
    if (answer.error) throw new Error(answer.error);
    watching = false;
    await watch;
    sizes.sort((a, b) => a - b);
    const at = (share) => Math.round(sizes[Math.floor(share * (sizes.length - 1))]);
    return { answer, median: at(0.5), most: at(1) };
  } finally {
    watching = false;
    browser.kill();
    await new Promise((resolve) => browser.once("exit", resolve));
    sink.closeAllConnections();
    sink.close();
    await pages.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}
