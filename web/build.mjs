// Bundles the pages, each into one file without references to anything outside. These are committed
// and compiled into the binary. `node build.mjs --check` fails when a committed one is of another
// version.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";

const UPLOT = "node_modules/uplot/dist/uPlot.min.css";
// What is bundled from others stands in the page with its licence.
const PAGES = [
  { of: "manager", styles: [UPLOT, "src/shared/style.css"], others: ["@dagrejs/dagre", "@dagrejs/graphlib", "uplot"] },
  { of: "console", from: "node", styles: [UPLOT, "src/shared/style.css", "src/shared/table.css", "src/node/node.css"], others: ["@dagrejs/dagre", "@dagrejs/graphlib", "uplot"] },
];

async function licence(name) {
  const folder = new URL(`node_modules/${name}/`, import.meta.url);
  const { version } = JSON.parse(await readFile(new URL("package.json", folder), "utf8"));
  return `${name} ${version}\n${(await readFile(new URL("LICENSE", folder), "utf8")).trim()}`;
}

async function page({ of, from = of, styles, others }) {
  const { outputFiles } = await build({
    stdin: { contents: [`src/${from}/main.ts`, ...styles].map((file) => `import "./${file}";`).join("\n"), resolveDir: "." },
    bundle: true,
    minify: true,
    write: false,
    outdir: "out",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
  });
  const text = (end) => outputFiles.find((f) => f.path.endsWith(end)).text.trim();
  const frame = await readFile(`src/${from}/index.html`, "utf8");
  const licences = await Promise.all(others.map(licence));
  return frame
    .replace("<!--licences-->", () => `<!--\n${licences.join("\n\n").replaceAll("--", "- -")}\n-->`)
    .replace("/*style*/", () => text(".css"))
    .replace("/*script*/", () => text(".js").replaceAll("</script", "<\\/script"));
}

let isOld = false;
for (const one of PAGES) {
  const file = `crates/${one.of}/page/index.html`;
  const target = new URL(`../${file}`, import.meta.url);
  const made = await page(one);
  if (!process.argv.includes("--check")) await writeFile(target, made);
  else if ((await readFile(target, "utf8").catch(() => "")) !== made) {
    console.error(`${file} is of another version: run \`npm run build\` in web/`);
    isOld = true;
  }
}
process.exit(isOld ? 1 : 0);
