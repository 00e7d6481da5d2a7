// The laboratory: how far the runs of a campaign are, and their reports.
import { facts, field, h } from "../shared/dom";
import { count, duration } from "../shared/format";
import { Table } from "../shared/table";
import { get, type Lab, type LabRun } from "./api";
import { told, type View } from "./page";

/** A step that is longer ago than this is told with how long: the run may have been stopped. */
const QUIET = 120_000;

const key = (r: LabRun) => `${r.experiment}/${r.run}`;
const share = (r: LabRun) => (r.done === null || r.total === 0 ? 0 : r.done / r.total);

function phase(r: LabRun): string {
  if (r.phase === "done") return r.why ? `done: ${r.why}` : "done";
  return r.phase === null ? "not begun" : r.phase;
}

/** What is under way, in a sentence. */
function sentence(r: LabRun, now: number): string {
  const quiet = now - r.changed_ms, since = quiet > QUIET ? ` Nothing has changed for ${duration(quiet)}: it is a long step, or the run was stopped.` : "";
  const rest = r.done ? (r.took_s / r.done) * (r.total - r.done) : 0;
  const left = r.done && r.total > r.done ? ` About ${duration(rest * 1000)} of measuring are left.` : "";
  if (!r.now) return `${phase(r)}.${left}${since}`;
  const again = r.now.attempts > 1 ? `, attempt ${r.now.attempts}` : "";
  return `${r.now.label}, replication ${r.now.replication}${again}: ${r.now.phase}${r.now.why ? ` (${r.now.why})` : ""}.${left}${since}`;
}

export function lab(): View {
  const box = h("div", undefined, { class: "list" });
  const none = h("p", undefined, { class: "note", role: "status" });
  const all = h("div", undefined, { class: "list" });
  const under = h("section", undefined, { "aria-label": "Under way" });
  const detail = h("section", undefined, { class: "chosen", "aria-label": "Chosen run", "aria-live": "polite" });
  detail.hidden = true;
  const words = field("filter", "Filter runs", { type: "search" });
  const number = h("span", undefined, { class: "note", role: "status" });
  const bar = h("div", undefined, { class: "bar" });
  bar.append(h("h2", "Runs"), number, words);
  const table = new Table<LabRun>([
    { name: "experiment", width: "minmax(7rem, 3fr)", text: (r) => r.experiment },
    { name: "run", width: "minmax(4rem, 1fr)", text: (r) => r.run },
    { name: "state", width: "minmax(5.4rem, 1fr)", text: phase, wide: true },
    { name: "replicates", width: "minmax(5rem, 1fr)", text: (r) => `${r.done === null ? "?" : count(r.done)} of ${count(r.total)}`, number: share },
    { name: "measured for", width: "minmax(6rem, 1fr)", text: (r) => duration(r.took_s * 1000), number: (r) => r.took_s, wide: true },
    { name: "reports", width: "4.4rem", text: (r) => count(r.reports.length), number: (r) => r.reports.length, wide: true },
  ], { label: "Runs", key, empty: "No run fits.", chosen: (r) => { chosen = key(r); show(); } });
  words.addEventListener("input", () => table.filter(words.value));
  all.append(under, bar, table.box, detail);
  box.append(h("h2", "Laboratory"), none, all);
  let known: Lab | null = null, chosen = "", shown = "";

  function show(): void {
    const run = known!.runs.find((r) => key(r) === chosen);
    detail.hidden = !run;
    // It is made anew only when something of it is another: who goes through the links stays there.
    const of = JSON.stringify(run ?? null);
    if (!run || of === shown) return;
    shown = of;
    const links = h("ul", undefined, { class: "files" });
    links.append(...run.reports.map((file) => {
      const item = h("li");
      item.append(h("a", file, { href: `/v1/lab/file/${[run.experiment, run.run, ...file.split("/")].map(encodeURIComponent).join("/")}`, target: "_blank", rel: "noopener" }));
      return item;
    }));
    detail.replaceChildren(h("h2", key(run)), facts([
      ["state", phase(run)], ["replicates", `${run.done === null ? "not counted" : count(run.done)} of ${count(run.total)}`], ["measured for", duration(run.took_s * 1000)],
      ["last step", new Date(run.changed_ms).toLocaleString("en-GB")],
    ]), h("h3", "Reports"), run.reports.length > 0 ? links : h("p", "None yet: they are written when the run is done.", { class: "note" }));
  }

  async function refresh(): Promise<void> {
    const asked = await told(none, all, () => get<Lab>("/v1/lab"));
    if (!asked) return;
    known = asked;
    const running = asked.runs.filter((r) => r.phase !== "done");
    under.replaceChildren(h("h2", "Under way"), ...running.slice(0, 20).flatMap((r) => {
      const meter = h("progress", undefined, { max: String(Math.max(1, r.total)), value: String(r.done ?? 0), "aria-label": `${key(r)}: replicates done` });
      const line = h("div", undefined, { class: "run" });
      line.append(h("b", key(r)), meter, h("span", `${r.done === null ? "?" : count(r.done)} of ${count(r.total)}`, { class: "note" }));
      return [line, h("p", sentence(r, asked.now_ms), { class: "note" })];
    }));
    if (running.length === 0) under.append(h("p", asked.runs.length > 0 ? "Every run is done." : "There is no run in this folder.", { class: "note" }));
    if (running.length > 20) under.append(h("p", `and ${count(running.length - 20)} more in the table`, { class: "note" }));
    number.textContent = `${count(asked.runs.length)}${asked.left_out > 0 ? `, and ${count(asked.left_out)} that are not shown` : ""}`;
    table.set(asked.runs);
    show();
  }
  return { box, every: 3000, refresh, alone: true };
}
