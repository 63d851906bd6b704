// A headless Chromium, where the machine has one.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
export const path = process.env.CHROMIUM ?? PLACES.find((place) => existsSync(place));

/** Why tests with a browser are passed over, if they are. */
export const skip = path ? false : "this machine has no Chromium";

export const launch = () =>
  chromium.launch({
    executablePath: path,
    args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
  });
