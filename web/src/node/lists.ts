// Faces, routes and strategies: what there is, each by itself, and changes.
import { button, facts, field, form, h } from "../shared/dom";
import { count, octets, rate } from "../shared/format";
import { Table, type Column } from "../shared/table";
import { get, post, type Choice, type Face, type Live, type Route, type Top } from "./api";
import { run, type View } from "./page";

/** A list with a filter, what is chosen of it, and a form. */
function list<T>(title: string, table: Table<T>, add: HTMLElement): { box: HTMLElement; detail: HTMLElement; told: (n: number) => void } {
  const box = h("div", undefined, { class: "list" });
  const bar = h("div", undefined, { class: "bar" });
  const words = field("filter", `Filter ${title.toLowerCase()}`, { type: "search" });
  words.addEventListener("input", () => {
    table.filter(words.value);
    tell();
  });
  const number = h("span", undefined, { class: "note", role: "status" });
  let all = 0;
  const tell = () => {
    number.textContent = table.shown === all ? count(all) : `${count(table.shown)} of ${count(all)}`;
  };
  bar.append(h("h2", title), number, words);
  const detail = h("section", undefined, { class: "chosen", "aria-label": "Chosen", "aria-live": "polite" });
  detail.hidden = true;
  box.append(bar, table.box, detail, add);
  return { box, detail, told: (n) => { all = n; tell(); } };
}

/** A face with what it counts a second, since the page looked last. */
interface Shown extends Face { in_packets: number; out_packets: number; in_rate: number; out_rate: number; queue: number; losses: number; rtt: number | null }

const packetsIn = (f: Face) => f.in_interests + f.in_data + f.in_nacks;
const packetsOut = (f: Face) => f.out_interests + f.out_data + f.out_nacks;

export function faces(): View {
  let before = new Map<number, Face>(), at = 0, chosen = -1, known: Shown[] = [];
  const right = (name: string, of: (f: Shown) => number, text: (v: number) => string, wide = false): Column<Shown> =>
    ({ name, width: "minmax(3.4rem, 1fr)", text: (f) => text(of(f)), number: of, wide });
  const table = new Table<Shown>([
    { name: "face", width: "3rem", text: (f) => String(f.id), number: (f) => f.id },
    { name: "remote", width: "minmax(6rem, 4fr)", text: (f) => f.remote },
    { name: "local", width: "minmax(8rem, 3fr)", text: (f) => f.local, wide: true },
    { name: "kept", width: "minmax(6.2rem, 1fr)", text: (f) => f.persistency, wide: true },
    right("in/s", (f) => f.in_packets, rate), right("out/s", (f) => f.out_packets, rate),
    right("in B/s", (f) => f.in_rate, octets, true), right("out B/s", (f) => f.out_rate, octets, true),
    right("queue", (f) => f.queue, octets, true), right("lost/s", (f) => f.losses, rate, true),
  ], { label: "Faces", key: (f) => String(f.id), order: [4, true], empty: "No face fits.", chosen: (f) => { chosen = f.id; show(); } });
  const add = form([field("uri", "Remote URI, such as udp4://192.0.2.1:6363", { required: "" })], "Create face", ({ uri }) =>
    void run(`create ${uri}`, () => post("/v1/faces/create", { uri }), refresh));
  const { box, detail, told } = list("Faces", table, add);

  function show(): void {
    const face = known.find((f) => f.id === chosen);
    detail.hidden = !face;
    if (!face || detail.contains(document.activeElement)) return;
    detail.replaceChildren(h("h2", `Face ${face.id}`), facts([
      ["remote", face.remote], ["local", face.local], ["scope", face.scope], ["kept", face.persistency], ["link", face.link],
      ["MTU", face.mtu === null ? "–" : String(face.mtu)], ["flags", face.flags.join(" ") || "–"],
      ["round trip", face.rtt === null ? "–" : `${(face.rtt / 1000).toFixed(2)} ms`],
      ["came", `${count(face.in_interests)} Interests, ${count(face.in_data)} Data, ${count(face.in_nacks)} Nacks, ${octets(face.in_bytes)}`],
      ["went", `${count(face.out_interests)} Interests, ${count(face.out_data)} Data, ${count(face.out_nacks)} Nacks, ${octets(face.out_bytes)}`],
    ]), button(`Destroy face ${face.id}`, () => {
      if (confirm(`Destroy face ${face.id} to ${face.remote} and its routes?`)) void run(`destroy face ${face.id}`, () => post("/v1/faces/destroy", { face: face.id }), refresh);
    }));
  }

  async function refresh(): Promise<void> {
    const [now, live] = await Promise.all([get<Face[]>("/v1/faces"), get<Top>("/v1/top").then((top) => top.now.faces, (): Live["faces"] => [])]);
    const seconds = (performance.now() - at) / 1000, beyond = new Map(live.map((f) => [f.face, f]));
    at = performance.now();
    known = now.map((face) => {
      const past = before.get(face.id), more = beyond.get(face.id);
      const gone = (of: (f: Face) => number) => (past ? Math.max(0, of(face) - of(past)) / seconds : 0);
      return { ...face, in_packets: gone(packetsIn), out_packets: gone(packetsOut), in_rate: gone((f) => f.in_bytes), out_rate: gone((f) => f.out_bytes), queue: more?.queue_bytes ?? 0, losses: more?.losses ?? 0, rtt: more?.rtt_us ?? null };
    });
    before = new Map(now.map((face) => [face.id, face]));
    table.set(known);
    told(known.length);
    show();
  }
  return { box, every: 2000, refresh };
}

export function routes(): View {
  let known: Route[] = [], chosen = "", uris = new Map<number, string>();
  const key = (r: Route) => `${r.prefix} ${r.face} ${r.origin}`;
  const via = (r: Route) => { const uri = uris.get(r.face); return uri ? `${r.face}  ${uri}` : String(r.face); };
  const table = new Table<Route>([
    { name: "prefix", width: "minmax(7rem, 4fr)", text: (r) => r.prefix },
    { name: "face", width: "minmax(5rem, 3fr)", text: via },
    { name: "origin", width: "minmax(5rem, 1fr)", text: (r) => r.origin, wide: true },
    { name: "cost", width: "3.4rem", text: (r) => String(r.cost), number: (r) => r.cost },
    { name: "flags", width: "minmax(7rem, 2fr)", text: (r) => r.flags.join(" "), wide: true },
    { name: "ends in", width: "minmax(5rem, 1fr)", text: (r) => (r.expires_ms === null ? "never" : `${Math.ceil(r.expires_ms / 1000)} s`), wide: true },
  ], { label: "Routes", key, empty: "No route fits.", chosen: (r) => { chosen = key(r); show(); } });
  const add = form([
    field("prefix", "Prefix, such as /example", { required: "" }), field("via", "Face or remote URI", { required: "" }),
    field("cost", "Cost, 0 if empty", { type: "number", min: "0" }),
  ], "Add route", ({ prefix, via, cost }) => void run(`add ${prefix}`, () => post("/v1/routes/add", { prefix, via, cost: Number(cost || 0) }), refresh));
  const { box, detail, told } = list("Routes", table, add);

  function show(): void {
    const route = known.find((r) => key(r) === chosen);
    detail.hidden = !route;
    if (!route || detail.contains(document.activeElement)) return;
    const { prefix, face, origin } = route;
    detail.replaceChildren(h("h2", prefix), facts([
      ["face", via(route)], ["origin", origin], ["cost", String(route.cost)], ["flags", route.flags.join(" ") || "–"],
    ]), button("Remove route", () => void run(`remove ${prefix}`, () => post("/v1/routes/remove", { prefix, face, origin }), refresh)));
  }

  async function refresh(): Promise<void> {
    const [now, list] = await Promise.all([get<Route[]>("/v1/routes"), get<Face[]>("/v1/faces")]);
    known = now;
    uris = new Map(list.map((f) => [f.id, f.remote]));
    table.set(known);
    told(known.length);
    show();
  }
  return { box, every: 5000, refresh };
}

const STRATEGIES = ["best-route", "multicast", "asf", "access", "random", "self-learning"];

export function strategies(): View {
  let known: Choice[] = [], chosen = "";
  const table = new Table<Choice>([
    { name: "prefix", width: "minmax(8rem, 1fr)", text: (c) => c.prefix },
    { name: "strategy", width: "minmax(9rem, 2fr)", text: (c) => c.strategy },
  ], { label: "Strategies", key: (c) => c.prefix, empty: "No strategy fits.", chosen: (c) => { chosen = c.prefix; show(); } });
  const words = h("datalist", undefined, { id: "strategies" });
  words.append(...STRATEGIES.map((s) => h("option", undefined, { value: s })));
  const add = form([words, field("prefix", "Prefix", { required: "" }), field("strategy", "Strategy, such as multicast", { required: "", list: "strategies" })], "Set strategy", (wanted) =>
    void run(`set ${wanted["prefix"]}`, () => post("/v1/strategies/set", wanted), refresh));
  const { box, detail, told } = list("Strategies", table, add);

  function show(): void {
    const choice = known.find((c) => c.prefix === chosen);
    detail.hidden = !choice;
    if (!choice || detail.contains(document.activeElement)) return;
    detail.replaceChildren(h("h2", choice.prefix), facts([["strategy", choice.strategy]]),
      button("Unset", () => void run(`unset ${choice.prefix}`, () => post("/v1/strategies/unset", { prefix: choice.prefix }), refresh)));
  }

  async function refresh(): Promise<void> {
    known = await get<Choice[]>("/v1/strategies");
    table.set(known);
    told(known.length);
    show();
  }
  return { box, every: 5000, refresh };
}
