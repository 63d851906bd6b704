// The types of the package fit how it is used.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

test("the declarations compile, strictly", () => {
  const tsc = fileURLToPath(new URL("node_modules/.bin/tsc", import.meta.url));
  const options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2023,dom,dom.iterable"];
  const found = spawnSync(tsc, [...options, fileURLToPath(new URL("types.ts", import.meta.url))], { encoding: "utf8" });
  assert.equal(found.status, 0, found.stdout + found.stderr);
});
