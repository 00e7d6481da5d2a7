// What is chosen: a function with its statistics over time, or a link; and what can be done with it.
import { ask, type Done, type Fn, type Link, type Sample, type View } from "./api";
import { el, rate, type Choice } from "./graph";

export type Do = (what: string, work: () => Promise<Done>) => Promise<void>;

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, text?: string, attributes: Record<string, string> = {}): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export function button(text: string, work: () => void): HTMLButtonElement {
  const made = h("button", text, { type: "button" });
  made.addEventListener("click", work);
  return made;
}

export function choose(options: string[], label: string): HTMLSelectElement {
  const made = h("select", undefined, { "aria-label": label });
  for (const option of options) made.append(h("option", option, { value: option }));
  return made;
}

export const KINDS = ["content-store", "backward-router", "signature-verifier", "name-filter", "strategy-forwarder", "name-router", "packet-dispatcher", "forwarder"];
const STRATEGIES = ["make-before-break", "break-and-buffer", "break-and-drop"];

function series(title: string, samples: Sample[], of: (s: Sample) => number | null, shown: (v: number) => string): HTMLElement {
  const values = samples.map(of).map((v) => v ?? NaN);
  const good = values.filter((v) => !Number.isNaN(v));
  const most = Math.max(1e-9, ...good);
  const figure = h("figure", undefined, { class: "series" });
  const caption = h("figcaption");
  const last = good.at(-1);
  caption.append(h("span", title), h("span", last === undefined ? "–" : `${shown(last)} of ${shown(most)}`));
  const svg = el("svg", { viewBox: "0 0 600 56", preserveAspectRatio: "none", role: "img", "aria-label": title });
  let d = "", pen = "M";
  values.forEach((v, i) => {
    if (Number.isNaN(v)) { pen = "M"; return; }
    d += `${pen}${((i / Math.max(1, values.length - 1)) * 600).toFixed(1)} ${(54 - (v / most) * 52).toFixed(1)}`;
    pen = "L";
  });
  svg.append(el("path", { d: d || "M0 54" }));
  figure.append(caption, svg);
  return figure;
}

const percent = (v: number) => `${Math.round(v * 100)}%`;

async function functionDetail(name: string, fn: Fn, view: View, run: Do): Promise<Node[]> {
  const samples = await ask<Sample[]>("GET", `/v1/functions/${name}/samples`).catch(() => []);
  const facts = h("dl");
  const rows: [string, string][] = [["kind", fn.kind], ["state", fn.state], ["runs as", fn.handle], ["listens", Object.values(fn.listeners).filter((u) => u.startsWith("tcp")).join(" ") || "–"]];
  if (fn.origin.why !== "declared") rows.push(["placed as", `${fn.origin.why} ${fn.origin.of ?? ""}`]);
  if (fn.quota !== null) rows.push(["quota", `${fn.quota} cores`]);
  const prefixes = view.registered[name];
  if (prefixes?.length) rows.push(["registered", prefixes.join(" ")]);
  for (const [key, value] of rows) facts.append(h("dt", key), h("dd", value));
  const charts = [
    series("load", samples, (s) => s.load, percent),
    series("Interests/s", samples, (s) => s.interests, rate),
    series("Data/s", samples, (s) => s.data, rate),
  ];
  if (fn.kind === "content-store") charts.push(series("hit ratio", samples, (s) => s.hit_ratio, percent));
  const actions = h("form");
  if ("Ok" in fn.scalable) {
    const clones = Object.values(view.functions).filter((f) => f.origin.why === "clone" && f.origin.of === name).length + 1;
    const scale = (to: number) => run(`scale ${name} to ${to}`, () => ask("PUT", `/v1/functions/${name}/instances`, { instances: to }));
    actions.append(h("span", `${clones} instance${clones > 1 ? "s" : ""}`), button("Scale out", () => void scale(clones + 1)));
    if (clones > 1) actions.append(button("Scale in", () => void scale(clones - 1)));
  }
  if (fn.origin.why === "declared") {
    actions.append(button("Remove", () => void run(`remove ${name}`, () => ask("DELETE", `/v1/functions/${name}?join=${view.links.some((l) => l.to === name)}`))));
  }
  return [h("h2", name), facts, ...charts, actions];
}

function linkDetail(link: Link, run: Do): Node[] {
  const facts = h("dl");
  for (const [key, value] of [["state", link.state], ["carried by", link.transport], ["Interests/s", rate(link.interests)], ["Data/s", rate(link.data)], ["octets/s", rate(link.bytes)]]) facts.append(h("dt", key), h("dd", value));
  const form = h("form");
  const name = h("input", undefined, { placeholder: "name", "aria-label": "Name of the function to insert", required: "" });
  const kind = choose(KINDS, "Kind"), strategy = choose(STRATEGIES, "Strategy");
  form.append(name, kind, strategy, h("button", "Insert"));
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    const on = { from: link.from, to: link.to, side: link.side };
    void run(`insert ${name.value}`, () => ask("POST", "/v1/insert", { on, name: name.value, function: { kind: kind.value }, strategy: strategy.value }));
  });
  const unlink = () => run("unlink", () => ask("DELETE", `/v1/links?from=${link.from}&to=${link.to}&side=${link.side}`));
  return [h("h2", `${link.from} ${link.side === "producer" ? "⇒" : "→"} ${link.to}`), facts, form, button("Unlink", () => void unlink())];
}

/** Shows the choice; a form that is being filled in is left alone. */
export async function show(box: HTMLElement, view: View, choice: Choice, run: Do, fresh: boolean): Promise<void> {
  if (!fresh && box.contains(document.activeElement)) return;
  let rows: Node[] = [];
  if (choice && "name" in choice) {
    const fn = view.functions[choice.name];
    if (fn) rows = await functionDetail(choice.name, fn, view, run);
  } else if (choice) {
    if (!fresh) return;
    rows = linkDetail(choice.link, run);
  }
  box.hidden = rows.length === 0;
  box.replaceChildren(...rows);
}
