// The manager's page in a real browser, over real services.
// ONYM: the program (default ../target/release/onym); CHROMIUM: the browser (default /usr/bin/chromium).
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { end, faultsOf, launch, onym, said } from "./browser.mjs";

const state = mkdtempSync(join(tmpdir(), "onym-page-"));
// The manager's socket and token are here, and nobody else's.
const env = { ...process.env, XDG_RUNTIME_DIR: state };
let manager, url, tokenFile, browser;

/** The address that `onym net page` prints: each lets one browser in. */
function address() {
  const told = spawnSync(onym, ["net", "--manager", url, "page"], { encoding: "utf8", env });
  assert.equal(told.status, 0, told.stderr);
  return told.stdout.trim();
}

before(async () => {
  manager = spawn(onym, ["manager", "--listen", "127.0.0.1:0", "--state", state, "--watch-ms", "200"], { stdio: ["ignore", "ignore", "pipe"], env });
  ({ url, token_file: tokenFile } = await said(manager, "stderr", (line) => (line.startsWith("ready ") ? JSON.parse(line.slice(6)) : undefined)));
  // Without ports that others may have.
  const description = { network: "page", functions: { cs: { kind: "content-store" }, br: { kind: "backward-router", scalable: true }, nr: { kind: "name-router" } }, links: [{ from: "cs", to: "br" }, { from: "br", to: "nr" }] };
  const answer = await fetch(`${url}/v1/description?form=json`, { method: "PUT", body: JSON.stringify(description), headers: { "content-type": "application/json", authorization: `Bearer ${readFileSync(tokenFile, "utf8").trim()}` } });
  assert.equal(answer.status, 200, await answer.text());
  browser = await launch();
});

after(async () => {
  await browser?.close();
  if (url) spawnSync(onym, ["net", "--manager", url, "down"], { env });
  // What it still writes would be in the way of the removal.
  await end(manager);
  rmSync(state, { recursive: true, force: true });
});

async function open(options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const faults = faultsOf(page);
  await page.goto(address());
  await page.locator('[data-name="cs"]').waitFor();
  return { page, faults, close: () => context.close() };
}

test("the live graph, its functions and the event log are shown without an error", async () => {
  const { page, faults, close } = await open();
  for (const name of ["cs", "br", "nr"]) await page.locator(`[data-name="${name}"].up`).waitFor();
  assert.equal(await page.locator(".link").count(), 2);
  await page.locator("#events li", { hasText: "cs runs" }).first().waitFor();
  await page.locator("#state", { hasText: "as wanted" }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("an address lets one browser in, which stays in, and nobody else", async () => {
  const once = address();
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(once);
  await page.locator('[data-name="cs"]').waitFor();
  assert.equal(new URL(page.url()).hash, "", "the code is not kept in the history");
  await page.reload();
  await page.locator('[data-name="cs"]').waitFor();
  for (const to of [once, url]) {
    const other = await browser.newContext();
    const stranger = await other.newPage();
    await stranger.goto(to);
    await stranger.locator("#token[open]").waitFor();
    assert.equal(await stranger.locator('[data-name="cs"]').count(), 0);
    await other.close();
  }
  await context.close();
});

test("more than half of the functions go only when that is meant", async () => {
  const { page, close } = await open();
  await page.getByText("Description", { exact: true }).click();
  await page.getByLabel("Description in TOML").fill('network = "page"\nfunctions.cs.kind = "CS"');
  page.once("dialog", (dialog) => { assert.match(dialog.message(), /removes 2 of 3/); void dialog.dismiss(); });
  await page.getByRole("button", { name: "Apply" }).click();
  await page.locator("#fault", { hasText: "removes 2 of 3" }).waitFor();
  assert.equal(await page.locator('[data-name="br"]').count(), 1);
  await close();
});

test("a function is chosen, scaled out and in, all by the keyboard's reach", async () => {
  const { page, close } = await open();
  await page.locator('[aria-label="function br"]').focus();
  await page.keyboard.press("Enter");
  await page.locator("#detail h2", { hasText: "br" }).waitFor();
  assert.ok((await page.locator("#detail .series").count()) >= 3, "statistics over time");
  await page.getByRole("button", { name: "Scale out" }).click();
  await page.locator('[data-name="br.1"].up').waitFor();
  await page.getByRole("button", { name: "Scale in" }).click();
  await page.locator('[data-name="br.1"]').waitFor({ state: "detached" });
  await close();
});

test("a function is inserted on a link and removed by hand", async () => {
  const { page, close } = await open();
  await page.locator('[aria-label="link cs to br"]').focus();
  await page.keyboard.press("Enter");
  await page.getByLabel("Name of the function to insert").fill("nf");
  await page.getByLabel("Kind", { exact: true }).selectOption("name-filter");
  await page.getByRole("button", { name: "Insert" }).click();
  await page.locator('[data-name="nf"].up').waitFor();
  await page.locator('[aria-label="function nf"]').focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Remove" }).click();
  await page.locator('[data-name="nf"]').waitFor({ state: "detached" });
  await close();
});

test("a mistake is told, and text of the network is never taken as markup", async () => {
  const { page, close } = await open();
  await page.getByText("Description", { exact: true }).click();
  await page.getByLabel("Description in TOML").fill('functions.a.kind = "<img src=x onerror=alert(1)>"');
  await page.getByRole("button", { name: "Plan" }).click();
  await page.locator("#fault", { hasText: "line 1: function a" }).waitFor();
  assert.equal(await page.locator("#fault img").count(), 0);
  await close();
});

test("it is readable on a phone, dark and light", async () => {
  for (const colorScheme of ["dark", "light"]) {
    const { page, close } = await open({ viewport: { width: 360, height: 740 }, colorScheme, hasTouch: true });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 360, `nothing is cut off: ${wide}`);
    const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(back, colorScheme === "dark" ? "rgb(20, 23, 28)" : "rgb(246, 247, 249)");
    await page.locator("#theme").click();
    assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), back);
    await close();
  }
});
