// Bundles src/ and the layout library into one file that pages embed. The hash of all sources is written into it, so that
// a test notices a bundle that is older than they are.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "clew", "viewer", "static");
const library = JSON.parse(readFileSync(join(here, "node_modules/@dagrejs/dagre/package.json"), "utf8"));
const licence = readFileSync(join(here, "node_modules/@dagrejs/dagre/LICENSE"), "utf8").trim();

const hash = createHash("sha256");
for (const name of readdirSync(join(here, "src")).sort()) hash.update(name).update(readFileSync(join(here, "src", name)));
hash.update(readFileSync(join(here, "package.json")));

const made = await build({
  entryPoints: [join(here, "src", "main.js")],
  bundle: true,
  minify: true,
  write: false,
  format: "iife",
  target: "es2020",
  charset: "ascii",
  legalComments: "none",
  loader: { ".css": "text" },
});
const banner = `/* sources sha256:${hash.digest("hex")}
 * The page of Clew, with ${library.name} ${library.version} (${library.license}) for the layout; its licence:
 *
${licence.replace(/\*\//g, "* /").split("\n").map((line) => ` * ${line}`.trimEnd()).join("\n")}
 */
`;
writeFileSync(join(target, "view.js"), banner + made.outputFiles[0].text.trimEnd() + "\n");
writeFileSync(join(target, "LICENSE.dagre.txt"), licence + "\n");
console.log(`view.js: ${Math.round((banner.length + made.outputFiles[0].text.length) / 1024)} kB`);
