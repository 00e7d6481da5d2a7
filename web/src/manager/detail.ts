// What is chosen: a function with its statistics over time, or a link; and what can be done with it.
import { ask, type Done, type Fn, type Link, type Sample, type View } from "./api";
import { button, choose, facts, h } from "../shared/dom";
import { percent, rate } from "../shared/format";
import { Series } from "../shared/series";
import type { Choice } from "./graph";

export type Do = (what: string, work: () => Promise<Done>) => Promise<void>;

export const KINDS = ["content-store", "backward-router", "signature-verifier", "name-filter", "strategy-forwarder", "name-router", "packet-dispatcher", "forwarder"];
const STRATEGIES = ["make-before-break", "break-and-buffer", "break-and-drop"];

/** The curves of one function, kept while it is chosen. */
interface Charts { name: string; curves: [Series, (s: Sample) => number | null][] }
let charts: Charts | null = null;

function chartsOf(name: string, kind: string): Charts {
  if (charts?.name === name) return charts;
  charts?.curves.forEach(([curve]) => curve.end());
  const one = (title: string, shown: (v: number) => string) => new Series(title, [{ name: title, colour: "--accent" }], shown);
  const curves: Charts["curves"] = [
    [one("load", percent), (s) => s.load],
    [one("Interests/s", rate), (s) => s.interests],
    [one("Data/s", rate), (s) => s.data],
  ];
  if (kind === "content-store") curves.push([one("hit ratio", percent), (s) => s.hit_ratio]);
  return (charts = { name, curves });
}

async function functionDetail(name: string, fn: Fn, view: View, run: Do): Promise<Node[]> {
  const samples = await ask<Sample[]>("GET", `/v1/functions/${name}/samples`).catch(() => []);
  const rows: [string, string][] = [["kind", fn.kind], ["state", fn.state], ["runs as", fn.handle], ["listens", Object.values(fn.listeners).filter((u) => u.startsWith("tcp")).join(" ") || "–"]];
  if (fn.origin.why !== "declared") rows.push(["placed as", `${fn.origin.why} ${fn.origin.of ?? ""}`]);
  if (fn.quota !== null) rows.push(["quota", `${fn.quota} cores`]);
  const prefixes = view.registered[name];
  if (prefixes?.length) rows.push(["registered", prefixes.join(" ")]);
  const { curves } = chartsOf(name, fn.kind);
  const at = samples.map((s) => s.at_ms / 1000);
  for (const [curve, of] of curves) curve.set(at, [samples.map(of)]);
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
  return [h("h2", name), facts(rows), ...curves.map(([curve]) => curve.box), actions];
}

function linkDetail(link: Link, run: Do): Node[] {
  const rows: [string, string][] = [["state", link.state], ["carried by", link.transport], ["Interests/s", rate(link.interests)], ["Data/s", rate(link.data)], ["octets/s", rate(link.bytes)]];
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
  return [h("h2", `${link.from} ${link.side === "producer" ? "⇒" : "→"} ${link.to}`), facts(rows), form, button("Unlink", () => void unlink())];
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
