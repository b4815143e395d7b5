// Copies the packages that the dashboard uses from node_modules into `vendor/`.
//
//     cd web-tools && npm ci && npm run vendor
//
// package.json pins the versions and package-lock.json what npm may unpack. Browsers
// resolve no package names, so imports between the files become relative ones. What was
// written is listed with its SHA-256 in `hashes.json`, which a test compares.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const HERE = new URL("./", import.meta.url);
const VENDOR = new URL("../src/grass/web/static/vendor/", HERE);

/** Packages by name: [source, target, module whose types it has]. */
const FILES = {
  preact: [
    ["dist/preact.mjs", "preact.mjs", "preact"],
    ["hooks/dist/hooks.mjs", "hooks.mjs", "preact/hooks"],
  ],
  "@preact/signals-core": [
    ["dist/signals-core.mjs", "signals-core.mjs", "@preact/signals-core"],
  ],
  "@preact/signals": [["dist/signals.mjs", "signals.mjs", "@preact/signals"]],
  htm: [["dist/htm.mjs", "htm.mjs", "htm"]],
  uplot: [
    ["dist/uPlot.iife.min.js", "uplot.mjs", "uplot"],
    ["dist/uPlot.min.css", "uplot.css", ""],
  ],
};
const NAMES = {
  preact: "./preact.mjs",
  "preact/hooks": "./hooks.mjs",
  "@preact/signals-core": "./signals-core.mjs",
};
const HAS_DEFAULT = ["htm", "uplot"];

const written = {};

function write(name, text) {
  writeFileSync(new URL(name, VENDOR), text);
  written[name] = createHash("sha256").update(text).digest("hex");
}

function read(path) {
  return readFileSync(new URL(`node_modules/${path}`, HERE), "utf8");
}

function asModule(text, target) {
  const plain = text.replace(/\n?\/\/# sourceMappingURL=.*\s*$/, "\n");
  if (target === "uplot.mjs") return `${plain.trimEnd()}\nexport default uPlot;\n`;
  return plain.replace(/(from\s*|import\s*)"([^".][^"]*)"/g, (whole, word, name) => {
    if (!NAMES[name]) throw new Error(`${target} imports ${name}`);
    return `${word}"${NAMES[name]}"`;
  });
}

function typesOf(name) {
  const named = `export * from "${name}";\n`;
  return HAS_DEFAULT.includes(name)
    ? `export { default } from "${name}";\n`
    : named;
}

function licenceOf(name) {
  const found = readdirSync(new URL(`node_modules/${name}/`, HERE)).find((one) =>
    /^licen[cs]e/i.test(one),
  );
  if (!found) throw new Error(`${name} comes without a licence`);
  return read(`${name}/${found}`);
}

rmSync(VENDOR, { recursive: true, force: true });
mkdirSync(VENDOR, { recursive: true });
const versions = {};
for (const [name, files] of Object.entries(FILES)) {
  versions[name] = JSON.parse(read(`${name}/package.json`)).version;
  write(`LICENSE.${name.replace("@", "").replace("/", "-")}`, licenceOf(name));
  for (const [source, target, types] of files) {
    write(target, asModule(read(`${name}/${source}`), target));
    if (types) write(target.replace(".mjs", ".d.mts"), typesOf(types));
  }
}
const told = { packages: versions, sha256: written };
writeFileSync(new URL("hashes.json", VENDOR), `${JSON.stringify(told, null, 2)}\n`);
process.stdout.write(`${Object.keys(written).length} files in ${fileURLToPath(VENDOR)}\n`);
