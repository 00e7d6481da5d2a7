// The network drawn: functions as boxes, links with their rates.
import type { Link, View } from "./api";
import { rate } from "../shared/format";
import { line, place, type Layout } from "../shared/layout";
import { act, el, label } from "../shared/svg";

export type Choice = { name: string } | { link: Link } | null;

const SHORT: Record<string, string> = { "backward-router": "BR", "content-store": "CS", forwarder: "FW", "name-filter": "NF", "name-router": "NR", "packet-dispatcher": "PD", "signature-verifier": "SV", "strategy-forwarder": "SF" };
const W = 116, H = 46, LABEL = 64, LINE = 15;

export const interests = (link: Link): [string, string] => (link.side === "producer" ? [link.to, link.from] : [link.from, link.to]);

/** Interests and Data of a link, each a second. */
export function rates(link: Link): string[] {
  return link.interests < 0.5 && link.data < 0.5 ? ["idle"] : [`${rate(link.interests)} I/s`, `${rate(link.data)} D/s`];
}

const key = (link: Link) => `${link.from} ${link.to} ${link.side}`;
const wide = (name: string) => Math.max(W, 7.6 * name.length + 20);

let last: { of: string; layout: Layout } | null = null;

/** The layout, made anew only when functions or links are others: rates change each second. */
function layoutOf(view: View, upright: boolean): Layout {
  const boxes = Object.entries(view.functions).map(([name, { kind }]) => ({ name, kind, width: wide(name), height: H }));
  const known = new Set(boxes.map((box) => box.name));
  const edges = view.links.map((link) => {
    const [from, to] = interests(link);
    return { from, to, key: key(link), width: LABEL, height: 2 * LINE };
  }).filter((edge) => known.has(edge.from) && known.has(edge.to));
  const of = JSON.stringify([boxes, edges, upright]);
  if (last?.of !== of) last = { of, layout: place(boxes, edges, upright) };
  return last.layout;
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
  const { boxes, edges, width, height } = layoutOf(view, upright);
  const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, role: "group" });
  // Larger than drawn only a little, and never so small that rates cannot be read: then it scrolls.
  svg.style.maxWidth = `${width * 1.4}px`;
  svg.style.minWidth = `${width * 0.8}px`;
  const defs = el("defs");
  const marker = el("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto", markerUnits: "userSpaceOnUse" });
  marker.append(el("path", { d: "M0 0L8 4L0 8z", fill: "currentColor" }));
  defs.append(marker);
  svg.append(defs);
  const labels: SVGElement[] = [];
  for (const link of view.links) {
    const edge = edges.get(key(link));
    if (!edge) continue;
    const same = choice && "link" in choice && key(choice.link) === key(link);
    const group = el("g", { class: `link ${link.state} ${edge.back ? "back" : ""} ${same ? "chosen" : ""}` });
    const d = line(edge.points);
    const thick = 1.2 + Math.min(5, Math.log10(1 + link.interests + link.data));
    group.append(el("path", { d, "stroke-width": thick, "marker-end": "url(#tip)" }), el("path", { d, class: "hit" }));
    const said = rates(link);
    labels.push(...label(edge.label, said, said.length === 1 ? "idle" : ""));
    const title = el("title");
    title.textContent = `${link.from} to ${link.to}: ${link.interests.toFixed(0)} Interests and ${link.data.toFixed(0)} Data a second`;
    group.append(title);
    act(group, `link ${link.from} to ${link.to}`, () => choose({ link }));
    svg.append(group);
  }
  for (const [name, fn] of Object.entries(view.functions)) {
    const { x, y } = boxes.get(name)!, w = wide(name);
    const chosen = choice && "name" in choice && choice.name === name ? "chosen" : "";
    const group = el("g", { class: `node ${fn.state} ${fn.origin.why === "declared" ? "" : "auto"} ${chosen}`, transform: `translate(${x} ${y})` });
    group.dataset["name"] = name;
    const title = el("text", { x: w / 2, y: 19 }), kind = el("text", { x: w / 2, y: 34, class: "kind" });
    title.textContent = name;
    kind.textContent = `${SHORT[fn.kind] ?? fn.kind} · ${Math.round(fn.sample.load * 100)}%`;
    const load = el("rect", { x: 4, y: H - 6, width: (w - 8) * Math.min(1, fn.sample.load), height: 3, class: "load" });
    group.append(el("rect", { width: w, height: H, rx: 6 }), title, kind, load);
    act(group, `function ${name}`, () => choose({ name }));
    svg.append(group);
  }
  // No line runs over a rate.
  svg.append(...labels);
  box.replaceChildren(svg);
  if (focused) box.querySelector<SVGElement>(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}
