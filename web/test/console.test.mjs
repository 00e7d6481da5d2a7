// The page of a node in a real browser, over a real node.
// ONYM: the program (default ../target/release/onym); CHROMIUM: the browser (default /usr/bin/chromium).
// SHOTS: a folder for pictures of the views. FIGURES: a file for what was measured.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { end, faultsOf, launch, onym, said } from "./browser.mjs";
import { fakes } from "./fakes.mjs";
import { maps } from "./maps.mjs";

const state = mkdtempSync(join(tmpdir(), "onym-console-"));
const socket = join(state, "nfd.sock");
// This node and no other.
const env = { ...process.env, HOME: state, XDG_RUNTIME_DIR: state, ONYM_KEYSTORE: join(state, "keys"), NDN_CLIENT_TRANSPORT: `unix://${socket}` };
const SECRET = "/private/thing";
const shots = process.env.SHOTS;
let daemon, console_, browser, first;

const isAddress = (line) => (line.includes("#code=") ? line : undefined);

/** An address that lets one browser in. */
function address() {
  if (first) {
    const own = first;
    first = null;
    return Promise.resolve(own);
  }
  const next = said(console_, "stdout", isAddress);
  console_.stdin.write("\n");
  return next;
}

/** Results of a campaign: a run that is done, with a report that would like to run a script, and one under way. */
function results() {
  const order = Array.from({ length: 12 }, (_, i) => [i % 2 ? "c2" : "c1", 1 + Math.floor(i / 2)]);
  const cells = [{ cell: "c1", label: "strength=25% subject=onym" }, { cell: "c2", label: "strength=50% subject=onym" }];
  const files = {
    "ccnx-fig8/sim/plan.json": { order, cells }, "ccnx-fig8/sim/state.json": { phase: "done", ended: 1_700_000_900, took: 402.5, why: null },
    "ccnx-fig8/sim/report.html": "<!doctype html><title>still</title><style>p{color:green}</style><p>numbers</p><script>document.title = 'ran'; fetch('/v1/status')</script>",
    "ccnx-fig8/sim/report.pdf": "%PDF-1.4", "ccnx-fig8/sim/plots/hops.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>", "ccnx-fig8/sim/plots/hops.csv": "a,b",
    "routing-hub/netns/plan.json": { order, cells }, "routing-hub/netns/state.json": { phase: "replicates", ended: null },
  };
  order.slice(0, 5).forEach(([cell, k], i) => {
    files[`routing-hub/netns/cells/${cell}/r${k}/state.json`] = i < 4 ? { phase: "done", took: 30 } : { phase: "measure", attempts: 1, began: Date.now() / 1000 };
  });
  const folder = join(state, "results");
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), typeof content === "string" ? content : JSON.stringify(content));
  }
  return folder;
}

before(async () => {
  const sets = [`faces.unix.path=${socket}`, "faces.udp.listen=", "faces.tcp.listen=", "faces.websocket.listen=", "shards=1", "push.enabled=true", "push.node=a1", "routing.network=/lab", "routing.router=/lab/a", "routing.insecure=true", `routing.folder=${join(state, "routing")}`];
  daemon = spawn(onym, ["daemon", ...sets.flatMap((set) => ["--set", set])], { stdio: ["ignore", "pipe", "pipe"], env });
  await Promise.race(["stdout", "stderr"].map((side) => said(daemon, side, (line) => (line === "ready" ? true : undefined))));
  console_ = spawn(onym, ["console", "--listen", "127.0.0.1:0", "--lab", results()], { stdio: ["pipe", "pipe", "pipe"], env });
  first = await said(console_, "stdout", isAddress);
  browser = await launch();
  if (shots) mkdirSync(shots, { recursive: true });
});

after(async () => {
  await browser?.close();
  await end(console_);
  await end(daemon);
  rmSync(state, { recursive: true, force: true });
});

async function open(view = "overview", options = {}, prepare = async () => undefined) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const faults = faultsOf(page);
  await prepare(page);
  await page.goto(await address());
  await page.locator("#network", { hasText: "onym" }).waitFor();
  await page.evaluate((to) => { location.hash = to; }, view);
  await page.locator(`nav a[href="#${view}"][aria-current=page]`).waitFor();
  return { page, faults, close: () => context.close() };
}

const row = (page, text) => page.locator(".row:not([hidden])", { hasText: text });

test("the node, its faces, tables and verdicts are shown without an error", async () => {
  const { page, faults, close } = await open();
  await page.locator("dd", { hasText: /^0\.\d/ }).first().waitFor();
  for (const view of ["faces", "routes", "strategies", "store", "routing", "push", "nodes", "live", "ask", "lab", "overview"]) {
    await page.locator(`nav a[href="#${view}"]`).click();
    await page.locator(`nav a[href="#${view}"][aria-current=page]`).waitFor();
    assert.ok(await page.locator("#view > div").isVisible(), view);
  }
  await page.locator('nav a[href="#strategies"]').click();
  await row(page, "best-route").waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("an address lets one browser in, which stays in, and nobody else", async () => {
  const once = await address();
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(once);
  await page.locator("#network", { hasText: "onym" }).waitFor();
  assert.ok(!page.url().includes("code="), "the code is not kept in the history");
  const [cookie] = await context.cookies();
  assert.ok(cookie.httpOnly && cookie.sameSite === "Strict", JSON.stringify(cookie));
  assert.equal(await page.evaluate(() => document.cookie), "");
  await page.reload();
  await page.locator("#network", { hasText: "onym" }).waitFor();
  for (const to of [once, once.split("#")[0]]) {
    const other = await browser.newContext();
    const stranger = await other.newPage();
    await stranger.goto(to);
    await stranger.locator("#fault", { hasText: "has not been let in" }).waitFor();
    assert.equal(await stranger.locator("dd").count(), 0);
    await other.close();
  }
  await context.close();
});

test("another page can neither read nor change nor frame it", async () => {
  const { page, close } = await open();
  const at = page.url().split("#")[0];
  const tried = await page.context().newPage();
  // Of this host, by another name: what a server of somebody else here would serve.
  await tried.route("http://localhost:1/", (route) => route.fulfill({ contentType: "text/html", body: "<p>elsewhere</p>" }));
  await tried.goto("http://localhost:1/");
  const outcome = await tried.evaluate(async (to) => {
    const ask = (path, init) => fetch(to + path, { credentials: "include", ...init }).then((a) => a.status, () => "refused");
    const frame = document.createElement("iframe");
    frame.src = to;
    document.body.append(frame);
    await new Promise((done) => frame.addEventListener("load", done));
    let framed = "framed";
    try { framed = frame.contentDocument === null ? "out of reach" : "in reach"; } catch { framed = "out of reach"; }
    return [await ask("v1/status"), await ask("v1/cs/erase", { method: "POST", body: '{"prefix":"/"}' }), framed];
  }, at);
  assert.deepEqual(outcome, ["refused", "refused", "out of reach"]);
  await close();
});

test("faces and routes are made and removed, by the keyboard as well", async () => {
  const { page, faults, close } = await open("faces");
  await page.getByLabel(/^Remote URI/).fill("udp4://127.0.0.1:9");
  await page.getByRole("button", { name: "Create face" }).click();
  await row(page, "udp4://127.0.0.1:9").waitFor();
  await page.locator('nav a[href="#routes"]').click();
  await page.getByLabel(/^Prefix/).fill("/made/here");
  await page.getByLabel("Face or remote URI").fill("udp4://127.0.0.1:9");
  await page.getByRole("button", { name: "Add route" }).click();
  await row(page, "/made/here").waitFor();
  await page.getByLabel("Filter routes").fill("/made udp4");
  await page.locator(".table").focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await page.locator(".chosen h2", { hasText: "/made/here" }).waitFor();
  await page.getByRole("button", { name: "Remove route" }).click();
  await row(page, "/made/here").waitFor({ state: "detached" }).catch(async () => {
    await page.locator(".empty:not([hidden])").waitFor();
  });
  await page.locator('nav a[href="#faces"]').click();
  await row(page, "udp4://127.0.0.1:9").click();
  page.once("dialog", (dialog) => void dialog.accept());
  await page.getByRole("button", { name: /^Destroy face/ }).click();
  await page.locator("#state", { hasText: "done" }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("what the node refuses is its own sentence", async () => {
  const { page, close } = await open("strategies");
  await page.getByLabel("Prefix").fill("/a");
  await page.getByLabel(/^Strategy/).fill("nonsense");
  await page.getByRole("button", { name: "Set strategy" }).click();
  await page.locator("#fault", { hasText: /set \/a: .*404/ }).waitFor();
  await close();
});

test("live packets come with their verdict, and explain says why", async () => {
  const { page, faults, close } = await open("live");
  await page.getByLabel("Prefix").fill(SECRET);
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  for (let tries = 0; tries < 100 && (await row(page, "no_route").count()) === 0; tries++) {
    spawnSync(onym, ["peek", `${SECRET}/%3Cimg%3E`, "--lifetime", "50"], { env });
  }
  await row(page, "no_route").first().waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator('nav a[href="#ask"]').click();
  await page.getByLabel(/^Name/).fill(SECRET);
  await page.getByRole("button", { name: "Explain" }).click();
  await page.locator("dd", { hasText: "no_route" }).waitFor();
  await page.getByRole("button", { name: "Trace" }).click();
  await page.locator(".answer.bad").first().waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("the node's router and push half are on their maps", async () => {
  const { page, faults, close } = await open("routing");
  await page.getByRole("button", { name: "/lab/a: this router" }).waitFor();
  await page.locator('nav a[href="#push"]').click();
  const own = page.getByRole("button", { name: /a1: this node/ });
  await own.focus();
  await page.keyboard.press("Enter");
  await page.locator(".chosen dd", { hasText: "rendezvous, topology" }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("the routing map shows links, ways, who announces what, and who does not hear", async () => {
  const { page, faults, close } = await open("routing", {}, (page) => maps(page));
  await page.getByRole("button", { name: "/net/r9: cost 3 · 0 prefixes" }).waitFor();
  assert.equal(await page.locator(".map .node").count(), 14);
  // A line that is level has no height, and counts as unseen.
  for (const said of ["link /net/r0 to /net/r2: cost 2", "way /net/r1 to /net/r9: cost 3"]) await page.getByRole("img", { name: said }).waitFor({ state: "attached" });
  assert.equal(await page.locator(".map .link.down").count(), 1);
  // A prefix leads to who announces it, a router to what it announces.
  await page.getByLabel("Filter prefixes").fill("r2/p1");
  await row(page, "/net/r2/p1").click();
  await page.locator(".chosen h2", { hasText: "/net/r2" }).waitFor();
  await page.locator(".chosen dd", { hasText: "/net/r2/p0  /net/r2/p1" }).waitFor();
  await page.locator(".chosen dd", { hasText: "2.50 ms" }).waitFor();
  assert.equal(await page.locator(".map .node.chosen").count(), 1);
  assert.deepEqual(faults, []);
  await close();
});

test("the tree of an item is drawn in the map with its filter and what that matches beside it", async () => {
  const { page, faults, close } = await open("push", {}, (page) => maps(page));
  await page.getByRole("button", { name: /^40: this node/ }).waitFor();
  assert.equal(await page.locator(".map .link.tree").count(), 0);
  await row(page, "/sensors/roof").click();
  await page.locator(".map .link.tree").first().waitFor();
  assert.equal(await page.locator(".map .link.tree").count(), 4);
  assert.equal(await page.locator(".map .link.stray").count(), 1);
  await page.locator(".chosen dd", { hasText: "flat, table 3, 25 ones of 256: 00c0ffee" }).waitFor();
  await page.getByRole("button", { name: "53: subscriber" }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("of a large map the nearest are drawn, and the rest is told", async () => {
  const { page, faults, close } = await open("push", {}, (page) => maps(page, { nodes: 400 }));
  await page.locator(".map .note", { hasText: "300 more are not drawn" }).waitFor();
  assert.equal(await page.locator(".map .node").count(), 100);
  assert.deepEqual(faults, []);
  await close();
});

test("other nodes are asked from one page, and what they refuse is said", async () => {
  const { page, faults, close } = await open("nodes", {}, (page) => maps(page));
  await row(page, "/net/r2").click();
  await page.locator(".chosen h2", { hasText: "/net/r2" }).waitFor();
  await page.locator(".chosen dd", { hasText: "41 of 10,000" }).waitFor();
  await page.getByText("8 more are left out").waitFor();
  // On from there, to its neighbour.
  await page.getByRole("button", { name: "/net/r9, cost 2" }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".chosen h2", { hasText: "/net/r9" }).waitFor();
  await page.getByLabel(/^Name of a node/).fill("/net/r5");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.locator(".answer.bad", { hasText: "does not show its state to this key" }).waitFor();
  await row(page, "does not show its state").waitFor();
  assert.deepEqual(faults.filter((f) => !f.includes("403")), []);
  await close();
});

test("a node that nothing leads to is told by the real one", async () => {
  assert.equal(spawnSync(onym, ["key", "new", "/asker"], { env }).status, 0);
  const { page, close } = await open("nodes");
  await page.getByLabel(/^Name of a node/).fill("/lab/nobody");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.locator(".answer.bad", { hasText: "there is no way to /lab/nobody" }).waitFor();
  await close();
});

test("runs of the laboratory are followed, and their reports run no script", async () => {
  const { page, faults, close } = await open("lab");
  const meter = page.getByRole("progressbar", { name: "routing-hub/netns: replicates done" });
  await meter.waitFor();
  assert.equal(await meter.getAttribute("value"), "4");
  await page.getByText("strength=25% subject=onym, replication 3: measure. About 4 min 0 s of measuring are left.").waitFor();
  await row(page, "ccnx-fig8").click();
  assert.deepEqual(await page.locator(".files a").allTextContents(), ["report.html", "report.pdf", "plots/hops.csv", "plots/hops.svg"]);
  const asked = [];
  page.context().on("request", (request) => asked.push(new URL(request.url()).pathname));
  const [tab] = await Promise.all([page.context().waitForEvent("page"), page.getByRole("link", { name: "report.html" }).click()]);
  await tab.waitForLoadState();
  const cdp = await page.context().newCDPSession(tab);
  const { targetInfo } = await cdp.send("Target.getTargetInfo");
  assert.equal(targetInfo.title, "still");
  assert.ok(asked.includes("/v1/lab/file/ccnx-fig8/sim/report.html") && !asked.includes("/v1/status"), `${asked}`);
  assert.deepEqual(faults, []);
  await close();
});

test("text of the network is never taken as markup", async () => {
  const evil = "<img src=x onerror=alert(1)>";
  const { page, faults, close } = await open("faces", {}, async (page) => {
    await fakes(page, { faces: 3, routes: 3, evil });
    await maps(page, { evil });
  });
  await row(page, evil).first().waitFor();
  await row(page, evil).first().click();
  await page.locator(".chosen dd", { hasText: evil }).first().waitFor();
  for (const view of ["routes", "routing", "push", "nodes", "overview"]) {
    await page.locator(`nav a[href="#${view}"]`).click();
    if (view === "nodes") await row(page, evil).first().click();
    await page.getByText(evil).filter({ visible: true }).first().waitFor();
  }
  assert.equal(await page.locator("img").count(), 0);
  const made = await page.evaluate(() => { try { document.body.innerHTML = "<b>x</b>"; return true; } catch { return false; } });
  assert.equal(made, false, "the policy lets no text become markup");
  assert.deepEqual(faults.filter((f) => !f.includes("TrustedHTML")), []);
  await close();
});

/** Script time of a frame while the rows scroll, in milliseconds; and how many rows are elements. */
async function scrolled(page) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable");
  const script = async () => (await cdp.send("Performance.getMetrics")).metrics.find((m) => m.name === "ScriptDuration").value;
  const before = await script();
  const frames = await page.locator(".rows").evaluate(async (view) => {
    const steps = 120, far = view.scrollHeight - view.clientHeight;
    for (let step = 1; step <= steps; step++) {
      view.scrollTop = (far * step) / steps;
      await new Promise((done) => requestAnimationFrame(() => done()));
    }
    return steps;
  });
  const took = ((await script()) - before) * 1000;
  return { frame: took / frames, rows: await page.locator(".row").count() };
}

test("10,000 routes and 2,000 faces scroll", async () => {
  const { page, faults, close } = await open("routes", { viewport: { width: 1280, height: 900 } }, (page) => fakes(page, { faces: 2000, routes: 10_000 }));
  for (const [view, count] of [["routes", "10,000"], ["faces", "2,000"]]) {
    await page.locator(`nav a[href="#${view}"]`).click();
    await page.locator(".bar .note", { hasText: count }).waitFor();
    const { frame, rows } = await scrolled(page);
    if (process.env.FIGURES) appendFileSync(process.env.FIGURES, `${count} ${view}: ${frame.toFixed(2)} ms of script a frame, ${rows} rows are elements\n`);
    // A 60th of a second is 16.7 ms: other programs of a busy machine are in it.
    assert.ok(frame < 10, `${frame} ms`);
    assert.ok(rows < 60, `${rows}`);
    await page.locator(".table").focus();
    await page.keyboard.press("End");
    assert.equal(await page.locator('.row[aria-selected="true"]').getAttribute("aria-rowindex"), String(Number(count.replace(",", "")) + 1));
  }
  assert.deepEqual(faults, []);
  await close();
});

test("everything that can be used has a name, and tables say where a row is", async () => {
  const { page, close } = await open("overview", {}, async (page) => {
    await fakes(page, { faces: 40, routes: 40 });
    await maps(page);
  });
  for (const view of ["overview", "faces", "routes", "strategies", "store", "routing", "push", "nodes", "live", "ask", "lab"]) {
    await page.locator(`nav a[href="#${view}"]`).click();
    await page.locator(`#view[aria-label]`).waitFor();
    const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, select, a, [tabindex='0'], [role=img], [role=grid], section")]
      .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim())).map((e) => e.outerHTML.slice(0, 80)));
    assert.deepEqual(nameless, [], view);
  }
  await page.locator('nav a[href="#routes"]').click();
  await row(page, "/site").first().waitFor();
  assert.equal(await page.getByRole("grid", { name: "Routes" }).getAttribute("aria-rowcount"), "41");
  await page.getByRole("button", { name: "cost" }).click();
  assert.equal(await page.locator('[role=columnheader][aria-sort="descending"]').count(), 1);
  await close();
});

test("it is readable on a phone, dark and light", async () => {
  for (const colorScheme of ["dark", "light"]) {
    const { page, close } = await open("overview", { viewport: { width: 360, height: 740 }, colorScheme, hasTouch: true }, async (page) => {
      await fakes(page, { faces: 50, routes: 50 });
      await maps(page);
    });
    for (const view of ["overview", "faces", "routes", "strategies", "store", "routing", "push", "nodes", "live", "ask", "lab"]) {
      await page.locator(`nav a[href="#${view}"]`).click();
      if (view === "nodes") {
        await row(page, "/net/r2").click();
        await row(page, "udp4://10.0.0.31:6363").waitFor();
      }
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 360, `${view}: nothing is cut off: ${wide}`);
      const cut = await page.evaluate(() => [...document.querySelectorAll(".rows")].filter((rows) => rows.scrollWidth > rows.clientWidth).length);
      assert.equal(cut, 0, `${view}: a column is cut off`);
    }
    const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(back, colorScheme === "dark" ? "rgb(20, 23, 28)" : "rgb(246, 247, 249)");
    await page.locator("#theme").click();
    assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), back);
    await close();
  }
});

test("the last hour of the node is drawn", async () => {
  const { page, faults, close } = await open();
  const figure = page.locator("figure", { hasText: "Packets a second" });
  await figure.locator(".said", { hasText: "at most" }).waitFor({ timeout: 20_000 });
  await figure.locator("canvas").waitFor();
  assert.match(await figure.locator("[role=img]").getAttribute("aria-label"), /^Packets a second over time: in /);
  assert.deepEqual(faults, []);
  await close();
});

test("pictures of the views", { skip: !shots }, async () => {
  for (const [name, view, options] of [
    ["overview-light", "overview", { viewport: { width: 1280, height: 900 }, colorScheme: "light" }],
    ["overview-dark", "overview", { viewport: { width: 1280, height: 900 }, colorScheme: "dark" }],
    ["overview-phone", "overview", { viewport: { width: 360, height: 740 }, colorScheme: "light", hasTouch: true }],
    ["faces-light", "faces", { viewport: { width: 1280, height: 900 }, colorScheme: "light" }],
    ["faces-phone", "faces", { viewport: { width: 360, height: 740 }, colorScheme: "dark", hasTouch: true }],
    ["routes-dark", "routes", { viewport: { width: 1280, height: 900 }, colorScheme: "dark" }],
    ["store-light", "store", { viewport: { width: 1280, height: 900 }, colorScheme: "light" }],
    ...["routing", "push", "nodes", "lab"].flatMap((view) => [
      [`${view}-light`, view, { viewport: { width: 1280, height: 900 }, colorScheme: "light" }],
      [`${view}-dark`, view, { viewport: { width: 1280, height: 900 }, colorScheme: "dark" }],
      [`${view}-phone`, view, { viewport: { width: 360, height: 740 }, colorScheme: "light", hasTouch: true }],
    ]),
  ]) {
    const { page, close } = await open(view, options, async (page) => {
      await fakes(page, { faces: 2000, routes: 10_000 });
      await maps(page);
    });
    const choice = { push: "/sensors/roof", routing: "/net/r5/p1", nodes: "/net/r2", lab: "ccnx-fig8" }[view];
    if (choice) await row(page, choice).click();
    if (view === "faces" || view === "routes") await row(page, view === "faces" ? "udp4" : "/site").nth(3).click();
    await page.waitForTimeout(2500);
    await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
    await close();
  }
  const { page, close } = await open("ask", { viewport: { width: 1280, height: 900 } });
  await page.getByLabel(/^Name/).fill(SECRET);
  await page.getByRole("button", { name: "Explain" }).click();
  await page.locator("dd", { hasText: "no_route" }).waitFor();
  await page.screenshot({ path: join(shots, "ask-light.png"), fullPage: true });
  await close();
});
