// Bundles the page into one file without references to anything outside:
// crates/manager/page/index.html, which is committed and compiled into the binary.
// `node build.mjs --check` fails when the committed one is of another version.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";

const target = new URL("../crates/manager/page/index.html", import.meta.url);
const bundle = await build({
  entryPoints: ["src/main.ts", "src/style.css"],
  bundle: true,
  minify: true,
  write: false,
  outdir: "out",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
});
const text = (end) => bundle.outputFiles.find((f) => f.path.endsWith(end)).text.trim();
const frame = await readFile("src/index.html", "utf8");
// What is bundled from others stands there with its licence.
const others = ["@dagrejs/dagre", "@dagrejs/graphlib"];
const licences = await Promise.all(others.map(async (name) => {
  const folder = new URL(`node_modules/${name}/`, import.meta.url);
  const { version } = JSON.parse(await readFile(new URL("package.json", folder), "utf8"));
  return `${name} ${version}\n${(await readFile(new URL("LICENSE", folder), "utf8")).trim()}`;
}));
const page = frame
  .replace("<!--licences-->", () => `<!--\n${licences.join("\n\n").replaceAll("--", "- -")}\n-->`)
  .replace("/*style*/", () => text(".css"))
  .replace("/*script*/", () => text(".js").replaceAll("</script", "<\\/script"));
if (process.argv.includes("--check")) {
  if ((await readFile(target, "utf8")) !== page) {
    console.error("crates/manager/page/index.html is of another version: run `npm run build` in web/");
    process.exit(1);
  }
} else {
  await writeFile(target, page);
}
