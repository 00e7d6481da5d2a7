// The node at a glance: what it has, what slows it down, its last hour, what it drops and why.
import { facts, h } from "../shared/dom";
import { count, duration, octets, percent, rate } from "../shared/format";
import { Series } from "../shared/series";
import { Table } from "../shared/table";
import { get, Refusal, type History, type Prefix, type Top } from "./api";
import type { View } from "./page";

const fill = (part: number, whole: number) => (whole > 0 ? `${count(part)} of ${count(whole)}` : count(part));

/** What a face had in the rows in which it was among the busiest. */
interface Busy { face: number; uri: string; packets: number; bytes: number; losses: number }

/** Rows of the last hour, those that are known and those that came. */
class Hour {
  columns: string[] = [];
  rows: number[][] = [];
  private busiest: number[][][] = [];
  private faceColumns: string[] = [];
  private uris: Record<string, string> = {};
  private counts = 0;
  private start = 0;

  /** The moment after which rows are wanted. */
  get last(): number {
    return this.rows.at(-1)?.[0] ?? 0;
  }

  take(told: History): void {
    if (told.start_ms !== this.start) {
      this.rows = [];
      this.busiest = [];
      this.uris = {};
    }
    this.start = told.start_ms;
    this.columns = told.columns;
    this.counts = told.counts;
    this.faceColumns = told.face_columns;
    this.rows = [...this.rows, ...told.rows].slice(-told.rows_max);
    this.busiest = [...this.busiest, ...told.busiest].slice(-told.rows_max);
    Object.assign(this.uris, told.uris);
  }

  /** The busiest faces, all rows together. */
  faces(): Busy[] {
    const at = (name: string) => this.faceColumns.indexOf(name);
    const [id, inPackets, outPackets, inBytes, outBytes, losses] = ["face", "in_packets", "out_packets", "in_bytes", "out_bytes", "losses"].map(at) as [number, number, number, number, number, number];
    const sums = new Map<number, Busy>();
    for (const face of this.busiest.flat()) {
      const number = face[id] ?? 0;
      const sum = sums.get(number) ?? { face: number, uri: this.uris[number] ?? "gone", packets: 0, bytes: 0, losses: 0 };
      sum.packets += (face[inPackets] ?? 0) + (face[outPackets] ?? 0);
      sum.bytes += (face[inBytes] ?? 0) + (face[outBytes] ?? 0);
      sum.losses += face[losses] ?? 0;
      sums.set(number, sum);
    }
    return [...sums.values()];
  }

  /** Seconds of Unix time, a row each. */
  get at(): number[] {
    return this.rows.map((row) => row[0]! / 1000);
  }

  /** A column; what is counted as so many a second. */
  of(name: string): (number | null)[] {
    const at = this.columns.indexOf(name);
    const isCounted = at >= 1 && at <= this.counts;
    return this.rows.map((row, i) => {
      if (at < 0) return null;
      if (!isCounted) return row[at]!;
      const before = i > 0 ? this.rows[i - 1]![0]! : row[0]! - 5000;
      return (row[at]! * 1000) / Math.max(1, row[0]! - before);
    });
  }
}

const sum = (...lines: (number | null)[][]) => lines[0]!.map((_, i) => lines.reduce((all, line) => all + (line[i] ?? 0), 0));

export function overview(): View {
  const box = h("div", undefined, { class: "overview" });
  const now = h("section", undefined, { "aria-label": "Now" });
  const why = h("ul", undefined, { class: "why" });
  const whyBox = h("section", undefined, { class: "beside", "aria-label": "What slows it down" });
  whyBox.append(h("h2", "What slows it down"), why);
  const hour = new Hour();
  const figures = h("section", undefined, { class: "figures", "aria-label": "The last hour" });
  const packets = new Series("Packets a second", [{ name: "in", colour: "--accent" }, { name: "out", colour: "--good" }], rate);
  const bytes = new Series("Octets a second", [{ name: "in", colour: "--accent" }, { name: "out", colour: "--good" }], octets);
  const drops = new Series("Not forwarded a second", [{ name: "dropped", colour: "--bad" }, { name: "not sent", colour: "--accent" }], rate);
  const hits = new Series("Answered by the cache", [{ name: "share", colour: "--good" }], percent);
  const pit = new Series("Pending Interests", [{ name: "PIT", colour: "--accent" }], count);
  const queue = new Series("Waiting to be sent", [{ name: "queues", colour: "--accent" }], octets);
  const note = h("p", undefined, { class: "note" });
  figures.append(h("h2", "The last hour"), note, ...[packets, bytes, drops, hits, pit, queue].map((s) => s.box));
  const dropsBox = h("section", undefined, { "aria-label": "What it dropped" });
  const dropped = h("dl", undefined, { class: "verdicts" });
  dropsBox.append(h("h2", "What it dropped, and why"), dropped);
  const prefixes = new Table<Prefix>([
    { name: "prefix", width: "minmax(8rem, 3fr)", text: (p) => p.prefix },
    { name: "Interests/s", width: "minmax(5.4rem, 1fr)", text: (p) => rate(p.interests), number: (p) => p.interests },
    { name: "hits/s", width: "minmax(4rem, 1fr)", text: (p) => rate(p.hits), number: (p) => p.hits, wide: true },
    { name: "drops/s", width: "minmax(4rem, 1fr)", text: (p) => rate(p.drops), number: (p) => p.drops, wide: true },
    { name: "Data/s", width: "minmax(4rem, 1fr)", text: (p) => rate(p.data), number: (p) => p.data },
  ], { label: "Prefixes by traffic", key: (p) => p.prefix, order: [1, true], empty: "No traffic at the moment." });
  const prefixBox = h("section", undefined, { class: "short", "aria-label": "Prefixes by traffic" });
  const hidden = h("p", undefined, { class: "note" });
  prefixBox.append(h("h2", "Prefixes by traffic (estimated)"), hidden, prefixes.box);
  const busiest = new Table<Busy>([
    { name: "face", width: "3rem", text: (f) => String(f.face), number: (f) => f.face },
    { name: "remote", width: "minmax(7rem, 3fr)", text: (f) => f.uri },
    { name: "packets", width: "minmax(4.5rem, 1fr)", text: (f) => rate(f.packets), number: (f) => f.packets },
    { name: "octets", width: "minmax(4.5rem, 1fr)", text: (f) => octets(f.bytes), number: (f) => f.bytes, wide: true },
    { name: "lost", width: "minmax(3.5rem, 1fr)", text: (f) => count(f.losses), number: (f) => f.losses, wide: true },
  ], { label: "Busiest faces of the hour", key: (f) => String(f.face), order: [2, true], empty: "No packet within the hour." });
  const busiestBox = h("section", undefined, { class: "short", "aria-label": "Busiest faces" });
  busiestBox.append(h("h2", "Busiest faces of the hour"), busiest.box);
  box.append(now, whyBox, figures, prefixBox, busiestBox, dropsBox);

  let words: Record<string, string> | null = null;
  let looked = 0;

  async function history(): Promise<void> {
    if (Date.now() - looked < 5000) return;
    looked = Date.now();
    try {
      hour.take(await get<History>(`/v1/history?since=${hour.last}`));
    } catch (error) {
      if (!(error instanceof Refusal && error.status === 404)) throw error;
      note.textContent = "This forwarder keeps no history.";
      return;
    }
    note.textContent = hour.rows.length === 0 ? "The first row comes five seconds after the node started." : "";
    note.hidden = note.textContent === "";
    const at = hour.at, column = (name: string) => hour.of(name);
    packets.set(at, [sum(column("in_interests"), column("in_data")), sum(column("out_interests"), column("out_data"))]);
    bytes.set(at, [column("in_bytes"), column("out_bytes")]);
    drops.set(at, [column("dropped"), column("unsent")]);
    const asked = column("cs_hits").map((v, i) => [v ?? 0, column("cs_misses")[i] ?? 0] as const);
    hits.set(at, [asked.map(([hit, miss]) => (hit + miss > 0 ? hit / (hit + miss) : null))]);
    pit.set(at, [column("pit_entries")]);
    queue.set(at, [column("queue_bytes")]);
    busiest.set(hour.faces());
  }

  return {
    box,
    every: 1000,
    async refresh() {
      words ??= await get<Record<string, string>>("/v1/verdicts");
      const { now: live, why: reasons } = await get<Top>("/v1/top");
      const { node } = live, asked = node.cs.hits + node.cs.misses;
      now.replaceChildren(h("h2", "Now"), facts([
        ["version", node.version],
        ["up for", duration(node.now_ms - node.start_ms)],
        ["faces", fill(live.faces_count, node.faces_max)],
        ["routes", fill(node.rib.routes, node.rib.routes_max)],
        ["pending Interests", fill(node.pit.entries, node.pit.entries_max)],
        ["cached packets", fill(node.cs.entries, node.cs.packets_max)],
        ["answered by the cache", asked > 0 ? percent(node.cs.hits / asked) : "–"],
        ["Interests answered", `${count(node.satisfied_interests)}, and ${count(node.unsatisfied_interests)} not`],
      ]));
      const sentences = reasons.map((r) => r.sentence);
      if (sentences.length === 0) sentences.push("Nothing: no queue is long, no table nearly full, no face silent, nothing is lost.");
      why.replaceChildren(...sentences.map((s) => h("li", s)));
      const all = Object.entries({ ...node.dropped, ...node.unsent, ...node.frames_dropped }).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
      dropped.replaceChildren(...all.flatMap(([word, n]) => {
        const term = h("dt");
        term.append(h("code", word), h("span", count(n)));
        return [term, h("dd", words?.[word] ?? "")];
      }));
      if (all.length === 0) dropped.append(h("dd", "Nothing since the node started."));
      hidden.textContent = live.prefixes_hidden ?? "";
      hidden.hidden = live.prefixes_hidden === null;
      prefixes.set(live.prefixes);
      await history();
    },
  };
}
