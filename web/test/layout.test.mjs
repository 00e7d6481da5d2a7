// Laws of the layout, over the networks that people have and over drawn ones; the seed is printed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";

const bundle = await build({ entryPoints: [new URL("../src/shared/layout.ts", import.meta.url).pathname], bundle: true, format: "esm", write: false });
const { place, line, backs } = await import(`data:text/javascript;base64,${Buffer.from(bundle.outputFiles[0].contents).toString("base64")}`);

const H = 46, LABEL = { width: 64, height: 30 };
const box = (name, kind = "") => ({ name, kind, width: Math.max(116, 7.6 * name.length + 20), height: H });
/** "a>b" is a link with Interests from a to b. */
function network(links, kinds = {}) {
  const edges = links.map((text) => { const [from, to] = text.split(">"); return { from, to, key: text, ...LABEL }; });
  const names = [...new Set(edges.flatMap(({ from, to }) => [from, to]))].sort();
  return { boxes: names.map((name) => box(name, kinds[name])), edges };
}

const networks = {
  // The chain with clients and producers at one dispatcher.
  nfd: network(["pd>cs", "cs>br", "br>nr", "nr>pd"], { pd: "packet-dispatcher" }),
  scaled: network(["pd>cs", "cs>br", "cs>br.1", "cs>br.2", "br>nr", "br.1>nr", "br.2>nr", "nr>pd"], { pd: "packet-dispatcher" }),
  interlinked: network(["br1>nr1", "br2>nr2", "nr1>nr2", "nr2>nr1"]),
  poisoning: network(["cs1>nr", "nr>cs2"]),
  full: network(["pd>cs", "cs>sv", "cs>sv.1", "sv>br", "sv.1>br", "br>nr", "nr>sf", "sf>nr", "nr>pd", "nr>nf", "nf>pd", "a-function-with-a-long-name>cs"], { pd: "packet-dispatcher" }),
};

/** A small generator: the same seed, the same networks. */
function drawn(seed, size) {
  let state = seed;
  const next = (below) => { state = (state * 1103515245 + 12345) % 2 ** 31; return Math.floor((state / 2 ** 31) * below); };
  const count = size ?? 3 + next(10), links = new Set();
  for (let i = 1; i < count; i++) links.add(`f${next(i)}>f${i}`);
  for (let i = 0; i < next(count); i++) {
    const [a, b] = [next(count), next(count)];
    if (a !== b) links.add(`f${a}>f${b}`);
  }
  return network([...links]);
}

/** Points along what is drawn: the curves of `line`, cut fine. */
function along(points) {
  const out = [], numbers = [...line(points).matchAll(/([MQL])([^MQL]*)/g)];
  let at = null;
  for (const [, kind, text] of numbers) {
    const n = text.trim().split(/\s+/).map(Number);
    const end = { x: n.at(-2), y: n.at(-1) };
    const control = kind === "Q" ? { x: n[0], y: n[1] } : null;
    for (let t = 0; at && t <= 1; t += 0.02) {
      const mix = (a, b) => ({ x: a.x + (b.x - a.x) * t, y: a.y + (b.y - a.y) * t });
      out.push(control ? mix(mix(at, control), mix(control, end)) : mix(at, end));
    }
    at = end;
  }
  return out;
}

const inside = (p, r, by = 1) => p.x > r.x + by && p.x < r.x + r.width - by && p.y > r.y + by && p.y < r.y + r.height - by;
const meet = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

function check(name, { boxes, edges }, upright) {
  const made = place(boxes, edges, upright);
  const rects = boxes.map((b) => ({ name: b.name, ...made.boxes.get(b.name), width: b.width, height: b.height }));
  const labels = edges.map((e) => { const { label } = made.edges.get(e.key); return { key: e.key, x: label.x - LABEL.width / 2, y: label.y - LABEL.height / 2, ...LABEL }; });
  const where = `${name}, ${upright ? "upright" : "wide"}`;
  for (const edge of edges) {
    const points = along(made.edges.get(edge.key).points);
    assert.ok(points.length > 0, `${where}: ${edge.key} is drawn`);
    for (const rect of rects) assert.ok(!points.some((p) => inside(p, rect)), `${where}: ${edge.key} runs through ${rect.name}`);
  }
  for (const label of labels) {
    for (const rect of rects) assert.ok(!meet(label, rect), `${where}: the rates of ${label.key} lie on ${rect.name}`);
    for (const other of labels) assert.ok(label === other || !meet(label, other), `${where}: the rates of ${label.key} and ${other.key} lie on each other`);
  }
  for (const [i, a] of rects.entries()) for (const b of rects.slice(i + 1)) assert.ok(!meet(a, b), `${where}: ${a.name} lies on ${b.name}`);
  for (const r of [...rects, ...labels]) assert.ok(r.x >= 0 && r.y >= 0 && r.x + r.width <= made.width && r.y + r.height <= made.height, `${where}: nothing is cut off`);
  return made;
}

test("no link runs through a box, and each rate has a place of its own", () => {
  for (const [name, of] of Object.entries(networks)) for (const upright of [false, true]) check(name, of, upright);
  for (let seed = 1; seed <= 60; seed++) check(`seed ${seed}`, drawn(seed), seed % 2 === 0);
  for (let seed = 1; seed <= 12; seed++) check(`50 functions, seed ${seed}`, drawn(seed, 50), seed % 2 === 0);
});

test("Interests go on from the left to the right, and only the way back is one", () => {
  const at = (of, name) => place(of.boxes, of.edges, false).boxes.get(name).x;
  for (const name of ["nfd", "scaled", "full"]) {
    const of = networks[name];
    assert.ok(of.boxes.every((b) => at(of, b.name) >= at(of, "pd") || b.name.startsWith("a-")), `${name}: the dispatcher comes first`);
    assert.ok(at(of, "cs") < at(of, "br") && at(of, "br") < at(of, "nr"), name);
  }
  assert.deepEqual([...backs(networks.nfd.boxes, networks.nfd.edges)], ["nr>pd"]);
  assert.deepEqual([...backs(networks.poisoning.boxes, networks.poisoning.edges)], []);
  const { boxes, edges } = networks.interlinked;
  assert.equal(backs(boxes, edges).size, 1);
});
