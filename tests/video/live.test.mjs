// A live stream, from ffmpeg's picture to the pictures of four players in a browser.
// ONYM: the program; CHROMIUM: the browser; PAGE: the page with its players.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const PATIENCE_MS = 60_000;
// What has to be played before it counts as playing.
const PLAYED_S = 2;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--autoplay-policy=no-user-gesture-required"];
// The octets of this label are the name of a file, now.m3u8.
const ITEM = "/1/6e6f772e6d337538";

const folder = mkdtempSync(join(tmpdir(), "onym-video-"));
const node = `unix://${join(folder, "nfd.sock")}`;
const env = { ...process.env, XDG_RUNTIME_DIR: folder, HOME: folder, NDN_CLIENT_TRANSPORT: node };
const running = [];

/** A program of this test, once it said `text`; what it says is kept. */
function start(args, text) {
  const child = spawn(process.env.ONYM, args, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  const one = { child, said: "", ended: new Promise((done) => child.once("exit", done)) };
  running.push(one);
  return new Promise((done, fail) => {
    const late = setTimeout(() => fail(new Error(`${args}: did not say ${text}: ${one.said}`)), PATIENCE_MS);
    const hear = (octets) => {
      one.said += octets;
      if (one.said.includes(text)) {
        clearTimeout(late);
        done(one);
      }
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    one.ended.then((code) => fail(new Error(`${args}: ended with ${code}: ${one.said}`)));
  });
}

async function stop(one) {
  one.child.kill();
  await one.ended;
}

function freePort() {
  return new Promise((done) => {
    const probe = createSocket().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => done(port));
    });
  });
}

let pages, browser;

before(async () => {
  const page = readFileSync(process.env.PAGE);
  pages = createServer((request, response) => {
    const isScript = request.url === "/page.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? page : '<!doctype html><body><script type="module" src="/page.js"></script>');
  });
  await new Promise((done) => pages.listen(0, "127.0.0.1", done));
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
});

after(async () => {
  await browser?.close();
  pages?.close();
  for (const one of running.reverse()) {
    await stop(one);
  }
  rmSync(folder, { recursive: true, force: true });
});

test("a live stream plays by HTTP and over a WebSocket, HLS and DASH, its playlist asked for or told", async () => {
  const port = await freePort();
  const sets = [`faces.unix.path="${join(folder, "nfd.sock")}"`, "faces.udp.listen=[]", "faces.tcp.listen=[]",
    `faces.websocket.listen=["127.0.0.1:${port}"]`, "push.enabled=true",
    'gateway.map=[{prefix="/tv", scope="/1", freshness_ms=60000}]'];
  await start(["daemon", ...sets.flatMap((set) => ["--set", set])], "ready\n");
  // One picture, once encoded, in both forms. Segments of HLS have paths from the root, so that a
  // playlist may be anywhere.
  const encoder = ["ffmpeg", "-hide_banner", "-loglevel", "warning", "-nostdin", "-re",
    "-f", "lavfi", "-i", "testsrc=size=160x90:rate=10", "-t", "120",
    "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "10", "-sc_threshold", "0", "-flags", "+global_header",
    "-f", "tee", "-map", "0:v",
    "[f=dash:seg_duration=1:use_timeline=1:window_size=8]manifest.mpd"
    + "|[f=hls:hls_time=1:hls_list_size=8:hls_flags=temp_file:hls_base_url=/ndn/alice/live/]now.m3u8"];
  const video = await start(["video", "live", "/alice/live", "--publish", `now.m3u8=${ITEM}`, "--", ...encoder],
    "ready: ");
  const gateway = await start(["gateway", "http", "--listen", "127.0.0.1:0"], "/ndn/\n");
  const names = gateway.said.match(/ready: (\S+)/)[1];
  // Players that find nothing wait long before they ask again.
  for (const file of ["alice/live/manifest.mpd", "alice/live/now.m3u8", "tv/now.m3u8"]) {
    const end = Date.now() + PATIENCE_MS;
    while (!(await fetch(names + file)).ok) {
      assert.ok(Date.now() < end, `${file} did not come: ${video.said}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  }
  const query = new URLSearchParams({ node: `ws://127.0.0.1:${port}/` });
  for (const [player, source] of [
    ["hls", `${names}alice/live/now.m3u8`],
    ["hls", `${names}tv/now.m3u8`],
    ["shaka", `${names}alice/live/manifest.mpd`],
    ["shaka", "ndn:/alice/live/manifest.mpd"],
  ]) {
    query.append(player, source);
  }
  const page = await browser.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.stack));
  await page.goto(`http://127.0.0.1:${pages.address().port}/?${query}`);
  const look = () => page.evaluate(() => (window.players ?? []).map(({ source, video, errors, stalls }) => {
    const { played, currentTime, videoWidth } = video;
    let seconds = 0;
    for (let n = 0; n < played.length; n++) {
      seconds += played.end(n) - played.start(n);
    }
    return { source, seconds, currentTime, videoWidth, errors, stalls };
  }));
  const plays = (all) => all.length === 4 && all.every((one) => one.seconds >= PLAYED_S && one.videoWidth === 160);
  const end = Date.now() + PATIENCE_MS;
  let seen = await look();
  while (!plays(seen)) {
    assert.ok(Date.now() < end, `not all play: ${JSON.stringify(seen, null, 1)} ${faults} ${video.said}`);
    await new Promise((done) => setTimeout(done, 100));
    seen = await look();
  }
  assert.deepEqual(faults, []);
  await page.close();
  await stop(video);
  console.log(seen.map(({ source, seconds, stalls }) => `${source}: ${seconds.toFixed(1)} s, ${stalls} stalls`).join("\n"));
  console.log(video.said.split("\n").filter((line) => line.startsWith("stopped")).join("\n"));
});
