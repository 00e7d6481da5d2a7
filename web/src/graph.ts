// The network drawn in layers, in the order in which Interests cross it.
import type { Link, View } from "./api";

export type Choice = { name: string } | { link: Link } | null;

const SHORT: Record<string, string> = { "backward-router": "BR", "content-store": "CS", forwarder: "FW", "name-filter": "NF", "name-router": "NR", "packet-dispatcher": "PD", "signature-verifier": "SV", "strategy-forwarder": "SF" };
const W = 116, H = 46, GAP = 74, ROW = 30;

export function el<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number> = {}): SVGElementTagNameMap[K] {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

export function rate(value: number): string {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(0)}k`;
  return value >= 1e3 ? `${(value / 1e3).toFixed(1)}k` : value.toFixed(0);
}

export const interests = (link: Link): [string, string] => (link.side === "producer" ? [link.to, link.from] : [link.from, link.to]);

/** The layer of each function: one after all that it gets Interests from; loops are cut. */
export function layers(view: View): Map<string, number> {
  const into = new Map<string, string[]>();
  for (const link of view.links) {
    const [from, to] = interests(link);
    into.set(to, [...(into.get(to) ?? []), from]);
  }
  const depth = new Map<string, number>();
  const visit = (name: string, path: Set<string>): number => {
    const known = depth.get(name);
    if (known !== undefined) return known;
    path.add(name);
    let most = 0;
    for (const from of into.get(name) ?? []) if (!path.has(from)) most = Math.max(most, visit(from, path) + 1);
    path.delete(name);
    depth.set(name, most);
    return most;
  };
  for (const name of Object.keys(view.functions)) visit(name, new Set());
  return depth;
}

interface Place { x: number; y: number }

function places(view: View, upright: boolean): { at: Map<string, Place>; width: number; height: number } {
  const depth = layers(view);
  const rows: string[][] = [];
  for (const name of Object.keys(view.functions)) (rows[depth.get(name) ?? 0] ??= []).push(name);
  const widest = Math.max(1, ...rows.map((r) => r?.length ?? 0));
  const at = new Map<string, Place>();
  const [along, across] = upright ? [H + GAP, W + ROW] : [W + GAP, H + ROW];
  rows.forEach((row, layer) => row?.forEach((name, index) => {
    const a = 20 + layer * along;
    const b = 20 + (index + (widest - row.length) / 2) * across;
    at.set(name, upright ? { x: b, y: a } : { x: a, y: b });
  }));
  const length = 40 + rows.length * along - GAP, breadth = 40 + widest * across - ROW;
  return upright ? { at, width: breadth, height: length } : { at, width: length, height: breadth };
}

function curve(a: Place, b: Place, upright: boolean): { d: string; mid: Place } {
  const [ax, ay] = upright ? [a.x + W / 2, a.y + H] : [a.x + W, a.y + H / 2];
  const [bx, by] = upright ? [b.x + W / 2, b.y] : [b.x, b.y + H / 2];
  const bend = 36;
  const [c1x, c1y] = upright ? [ax, ay + bend] : [ax + bend, ay];
  const [c2x, c2y] = upright ? [bx, by - bend] : [bx - bend, by];
  return { d: `M${ax} ${ay}C${c1x} ${c1y} ${c2x} ${c2y} ${bx} ${by}`, mid: { x: (ax + bx) / 2, y: (ay + by) / 2 } };
}

function act(node: SVGElement, label: string, chosen: () => void): void {
  node.setAttribute("tabindex", "0");
  node.setAttribute("role", "button");
  node.setAttribute("aria-label", label);
  node.addEventListener("click", chosen);
  node.addEventListener("keydown", (e) => {
    if (e.key === "Enter" || e.key === " ") { e.preventDefault(); chosen(); }
  });
}

export function draw(box: HTMLElement, view: View, choice: Choice, choose: (choice: Choice) => void): void {
  const focused = document.activeElement?.getAttribute("aria-label");
  if (Object.keys(view.functions).length === 0) {
    const hint = document.createElement("p");
    hint.textContent = "No functions yet: choose a preset, or apply a description.";
    box.replaceChildren(hint);
    return;
  }
  const upright = box.clientWidth < 560;
  const { at, width, height } = places(view, upright);
  const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, role: "group" });
  svg.style.maxWidth = `${width * 1.4}px`;
  const defs = el("defs");
  const marker = el("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto", markerUnits: "userSpaceOnUse" });
  marker.append(el("path", { d: "M0 0L8 4L0 8z", fill: "currentColor" }));
  defs.append(marker);
  svg.append(defs);
  for (const link of view.links) {
    const [from, to] = interests(link);
    const a = at.get(from), b = at.get(to);
    if (!a || !b) continue;
    const same = choice && "link" in choice && choice.link.from === link.from && choice.link.to === link.to && choice.link.side === link.side;
    const group = el("g", { class: `link ${link.state} ${same ? "chosen" : ""}` });
    const { d, mid } = curve(a, b, upright);
    const wide = 1.2 + Math.min(5, Math.log10(1 + link.interests + link.data));
    const text = el("text", { x: mid.x, y: mid.y - 5 });
    text.textContent = `${rate(link.interests)} · ${rate(link.data)}`;
    group.append(el("path", { d, "stroke-width": wide, "marker-end": "url(#tip)" }), el("path", { d, class: "hit" }), text);
    act(group, `link ${link.from} to ${link.to}`, () => choose({ link }));
    svg.append(group);
  }
  for (const [name, fn] of Object.entries(view.functions)) {
    const { x, y } = at.get(name)!;
    const chosen = choice && "name" in choice && choice.name === name ? "chosen" : "";
    const group = el("g", { class: `node ${fn.state} ${fn.origin.why === "declared" ? "" : "auto"} ${chosen}`, transform: `translate(${x} ${y})` });
    group.dataset["name"] = name;
    const title = el("text", { x: W / 2, y: 19 }), kind = el("text", { x: W / 2, y: 34, class: "kind" });
    title.textContent = name;
    kind.textContent = `${SHORT[fn.kind] ?? fn.kind} · ${Math.round(fn.sample.load * 100)}%`;
    const load = el("rect", { x: 4, y: H - 6, width: (W - 8) * Math.min(1, fn.sample.load), height: 3, class: "load" });
    group.append(el("rect", { width: W, height: H, rx: 6 }), title, kind, load);
    act(group, `function ${name}`, () => choose({ name }));
    svg.append(group);
  }
  box.replaceChildren(svg);
  if (focused) box.querySelector<SVGElement>(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}
