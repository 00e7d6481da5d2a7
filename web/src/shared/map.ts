// A map drawn: nodes as boxes, what links them as lines, in layers by their distance from one of them.
import { h } from "./dom";
import { line, place, type Box, type Edge, type Layout } from "./layout";
import { act, el, label } from "./svg";

export interface Vertex {
  id: string;
  /** Its name as it is drawn, and what stands under it. */
  title: string;
  note: string;
  /** Classes: `up`, `missing`. */
  kind: string;
}

export interface Tie {
  from: string;
  to: string;
  /** Lines beside it. */
  label: string[];
  /** Classes: `way`, `down`, `tree`, `stray`. */
  kind: string;
  /** How thick it is: what it carries a second. */
  load: number;
  /** What it is, in a sentence. */
  said: string;
}

/** Nodes that are drawn; those that are farther away are in tables only. */
const DRAWN_MAX = 100;
/** Letters of a name that are drawn. */
const LETTERS = 26;
const W = 96, H = 44, LINE = 15;

const shortened = (name: string) => (name.length > LETTERS ? `…${name.slice(1 - LETTERS)}` : name);
const key = (tie: Tie) => `${tie.from}\n${tie.to}`;

/** The nodes near `root` first, then those that nothing leads to; a number for each. */
export function order(vertices: readonly { id: string }[], ties: readonly { from: string; to: string }[], root: string): Map<string, number> {
  const beside = new Map<string, string[]>(vertices.map((v) => [v.id, []]));
  for (const { from, to } of ties) {
    if (!beside.has(from) || !beside.has(to)) continue;
    beside.get(from)!.push(to);
    beside.get(to)!.push(from);
  }
  const found = new Map<string, number>();
  for (const start of [root, ...beside.keys()]) {
    if (found.has(start) || !beside.has(start)) continue;
    const row = [start];
    found.set(start, found.size);
    for (let at = 0; at < row.length; at++) {
      for (const next of beside.get(row[at]!)!) {
        if (found.has(next)) continue;
        found.set(next, found.size);
        row.push(next);
      }
    }
  }
  return found;
}

export class Picture {
  readonly box = h("section", undefined, { class: "map" });
  private readonly view = h("div", undefined, { class: "drawing", role: "group" });
  private readonly left = h("p", undefined, { class: "note" });
  private last: { of: string; layout: Layout } | null = null;

  constructor(name: string, legend: string) {
    this.box.setAttribute("aria-label", name);
    this.view.setAttribute("aria-label", name);
    this.box.append(this.view, this.left, h("p", legend, { class: "note" }));
  }

  /** Draws it; `root` stands first, `chosen` is marked, and `choose` is told who was chosen. */
  draw(vertices: readonly Vertex[], ties: readonly Tie[], root: string, chosen: string, choose: (id: string) => void): void {
    const number = order(vertices, ties, root);
    const drawn = vertices.filter((v) => number.get(v.id)! < DRAWN_MAX);
    const known = new Set(drawn.map((v) => v.id));
    const shown = ties.filter((tie) => known.has(tie.from) && known.has(tie.to) && tie.from !== tie.to);
    const out = vertices.length - drawn.length;
    this.left.textContent = out > 0 ? `${out} more are not drawn: they are farther away.` : "";
    this.left.hidden = out <= 0;
    const wide = (v: Vertex) => Math.max(W, 7.4 * Math.max(shortened(v.title).length, 0.85 * v.note.length) + 20);
    const boxes: Box[] = drawn.map((v) => ({ name: v.id, kind: "", width: Math.round(wide(v)), height: H }));
    const edges: Edge[] = shown.map((tie) => {
      // Away from the first one: so no line leads back.
      const [from, to] = number.get(tie.from)! < number.get(tie.to)! ? [tie.from, tie.to] : [tie.to, tie.from];
      return { from, to, key: key(tie), width: 12 + 6.6 * Math.max(0, ...tie.label.map((text) => text.length)), height: 4 + tie.label.length * LINE };
    });
    // Rates change each time, where things are does not: only the shape decides.
    const of = JSON.stringify([boxes.map((b) => [b.name, b.width]), edges.map((e) => e.key)]);
    // From left to right on a phone, too: there the first one is seen, and the rest by scrolling.
    if (this.last?.of !== of) this.last = { of, layout: place(boxes, edges, false) };
    const { layout } = this.last;
    const svg = el("svg", { viewBox: `0 0 ${layout.width} ${layout.height}`, role: "group" });
    svg.style.maxWidth = `${layout.width * 1.3}px`;
    svg.style.minWidth = `${layout.width * 0.8}px`;
    const labels: SVGElement[] = [];
    for (const tie of shown) {
      const edge = layout.edges.get(key(tie));
      if (!edge) continue;
      const group = el("g", { class: `link ${tie.kind}` }), title = el("title");
      title.textContent = tie.said;
      group.append(el("path", { d: line(edge.points), "stroke-width": 1.2 + Math.min(5, Math.log10(1 + tie.load)) }), title);
      group.setAttribute("role", "img");
      group.setAttribute("aria-label", tie.said);
      if (tie.label.length > 0) labels.push(...label(edge.label, tie.label));
      svg.append(group);
    }
    for (const vertex of drawn) {
      const { x, y } = layout.boxes.get(vertex.id)!, w = Math.round(wide(vertex));
      const group = el("g", { class: `node ${vertex.kind} ${vertex.id === chosen ? "chosen" : ""}`, transform: `translate(${x} ${y})` });
      const name = el("text", { x: w / 2, y: 19 }), note = el("text", { x: w / 2, y: 34, class: "kind" }), title = el("title");
      name.textContent = shortened(vertex.title);
      note.textContent = vertex.note;
      title.textContent = vertex.id;
      group.append(el("rect", { width: w, height: H, rx: 6 }), name, note, title);
      act(group, `${vertex.id}: ${vertex.note}`, () => choose(vertex.id));
      group.dataset["id"] = vertex.id;
      svg.append(group);
    }
    svg.append(...labels);
    const focused = this.view.contains(document.activeElement) ? (document.activeElement as SVGElement).dataset["id"] : undefined;
    this.view.replaceChildren(svg);
    if (focused !== undefined) this.view.querySelector<SVGElement>(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  }
}
