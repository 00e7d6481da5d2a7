// Packets as they come and go.
import { button, choose, field, h } from "../shared/dom";
import { count } from "../shared/format";
import { Table } from "../shared/table";
import { events, type Seen } from "./api";
import { fault, sentence, type View } from "./page";

/** Packets that are shown; older ones go. */
const PACKETS_MAX = 2000;
/** How often new ones are shown, in milliseconds. */
const EVERY = 250;

interface Packet extends Seen { number: number }

const KINDS = ["every kind", "interest", "data", "nack", "push", "push-app"];
const WAYS = ["both ways", "in", "out"];

const clock = (ns: number | undefined) => {
  if (ns === undefined) return "";
  const at = new Date(ns / 1e6);
  return `${at.toLocaleTimeString("en-GB")}.${String(at.getMilliseconds()).padStart(3, "0")}`;
};

export function live(): View {
  const box = h("div", undefined, { class: "list" });
  const table = new Table<Packet>([
    { name: "time", width: "6.2rem", text: (p) => clock(p.time_ns), number: (p) => p.number },
    { name: "face", width: "4rem", text: (p) => (p.interface ?? "").replace("face ", ""), wide: true },
    { name: "way", width: "2rem", text: (p) => p.direction ?? "" },
    { name: "kind", width: "5rem", text: (p) => p.kind, wide: true },
    { name: "name", width: "minmax(6rem, 4fr)", text: (p) => p.name ?? "" },
    { name: "became", width: "minmax(5rem, 2fr)", text: (p) => [p.comment, p.nack_reason].filter(Boolean).join(" ") },
    { name: "octets", width: "4rem", text: (p) => String(p.length), number: (p) => p.length, wide: true },
  ], { label: "Packets", key: (p) => String(p.number), order: [0, true], empty: "No packet yet." });
  const prefix = field("prefix", "Prefix"), face = field("face", "Face", { type: "number", min: "0" }), verdict = field("verdict", "Verdict, such as no_route");
  const kind = choose(KINDS, "Kind"), way = choose(WAYS, "Direction");
  const told = h("span", undefined, { class: "note", role: "status" });
  const bar = h("form", undefined, { class: "bar" });
  let packets: Packet[] = [], number = 0, missed = 0, isNew = false;
  let ending: AbortController | null = null;
  const go = h("button", "Start"), clear = button("Clear", () => { packets = []; missed = 0; isNew = true; show(); });
  bar.append(prefix, face, kind, way, verdict, go, clear, told);
  bar.addEventListener("submit", (e) => {
    e.preventDefault();
    if (ending) leave();
    else void follow();
  });
  box.append(bar, table.box);

  function show(): void {
    if (!isNew) return;
    isNew = false;
    table.set(packets);
    told.textContent = `${count(packets.length)} shown${missed > 0 ? `, ${count(missed)} more were not kept` : ""}`;
  }

  function leave(): void {
    ending?.abort();
    ending = null;
    go.textContent = "Start";
  }

  async function follow(): Promise<void> {
    fault("");
    const asked = new URLSearchParams();
    for (const input of [prefix, face, verdict]) if (input.value) asked.set(input.name, input.value);
    if (kind.selectedIndex > 0) asked.set("kind", kind.value);
    if (way.selectedIndex > 0) asked.set("direction", way.value);
    const own = (ending = new AbortController());
    go.textContent = "Stop";
    const drawing = setInterval(show, EVERY);
    try {
      await events(`/v1/tail?${asked}`, own.signal, (event, data) => {
        isNew = true;
        if (event === "missed") missed += Number(data);
        else if (event === "end") throw new Error(JSON.parse(data));
        else packets.push({ ...(JSON.parse(data) as Seen), number: ++number });
        if (packets.length > PACKETS_MAX) packets = packets.slice(-PACKETS_MAX);
      });
    } catch (error) {
      if (!own.signal.aborted) fault(sentence(error));
    } finally {
      clearInterval(drawing);
      show();
      if (ending === own) leave();
    }
  }
  return { box, every: 60_000, refresh: () => Promise.resolve(), leave };
}
