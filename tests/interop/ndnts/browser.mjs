// An unmodified NDNts page in Chromium fetches a segmented object over the transport that URI names.
//
// browser.mjs URI NAME CERTIFICATE-FILE  prints what the page found, a line of JSON: octets, sha256, milliseconds.
//
// URI is wss:// or https:// (WebTransport). Chromium believes the certificate by its hash: a page that asks for
// WebTransport says it itself, for wss a fresh profile is told to.
import { build } from "esbuild";
import { spawn } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PATIENCE_MS = 50_000;
const [uri, name, file] = process.argv.slice(2);
const certificate = new X509Certificate(await readFile(file));
const sha256 = (octets, form) => createHash("sha256").update(octets).digest(form);
const key = sha256(certificate.publicKey.export({ type: "spki", format: "der" }), "base64");
const query = new URLSearchParams({ uri, name, hash: sha256(certificate.raw, "hex") });

const page = new URL("page.mjs", import.meta.url).pathname;
const bundle = await build({ entryPoints: [page], bundle: true, format: "esm", target: "es2022", write: false });
const script = bundle.outputFiles[0].contents;

/** What the page says at the end; the page asks here for its script, too. */
const said = new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error("the page said nothing in time")), PATIENCE_MS).unref();
  globalThis.server = createServer((request, response) => {
    if (request.method === "POST") {
      const parts = [];
      request.on("data", (part) => parts.push(part)).on("end", () => {
        response.end();
        resolve(Buffer.concat(parts).toString());
      });
    } else if (request.url === "/page.js") {
      response.setHeader("content-type", "text/javascript").end(script);
    } else {
      response.setHeader("content-type", "text/html").end('<!doctype html><script type="module" src="/page.js"></script>');
    }
  });
});
await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });

const profile = await mkdtemp(join(tmpdir(), "onym-page-"));
const browser = spawn("chromium", [
  "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", `--user-data-dir=${profile}`,
  `--ignore-certificate-errors-spki-list=${key}`, `http://127.0.0.1:${server.address().port}/?${query}`,
], { stdio: ["ignore", "ignore", "pipe"] });
let complaints = "";
browser.stderr.on("data", (text) => { complaints = (complaints + text).slice(-4000); });
try {
  const found = JSON.parse(await said);
  if (found.error) throw new Error(found.error);
  console.log(JSON.stringify(found));
} catch (error) {
  console.error(`${error}\n${complaints}`);
  process.exitCode = 1;
} finally {
  const gone = new Promise((resolve) => { browser.once("exit", resolve); });
  browser.kill();
  await gone;
  server.closeAllConnections();
  server.close();
  await rm(profile, { recursive: true, force: true, maxRetries: 5 });
}
