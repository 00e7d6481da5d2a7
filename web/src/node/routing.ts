// Routing's map: the routers that this one sees, the ways to them, and who announces what.
import { choose, facts, field, h } from "../shared/dom";
import { count, duration } from "../shared/format";
import { Picture, type Tie, type Vertex } from "../shared/map";
import { Table } from "../shared/table";
import { get, type Neighbour, type Routing } from "./api";
import { Carried } from "./carried";
import { told, type View } from "./page";

interface Announced { prefix: string; by: [string, number][]; ways: string }

const LEGEND = "Solid: a link of this router, with its cost. Dashed: behind that neighbour, with the cost of the whole way from here; how it goes on is not told to this router. Red: the neighbour does not hear this router, its ways are not used. Packets a second are those of the link's face, of all kinds.";

const heard = (n: Neighbour) => (n.usable ? (n.in_step ? "in step" : "its advertisement is being fetched") : "does not hear this router");

export function routing(): View {
  const box = h("div", undefined, { class: "list" });
  const none = h("p", undefined, { class: "note", role: "status" });
  const all = h("div", undefined, { class: "list" });
  const bar = h("div", undefined, { class: "bar" });
  const who = h("span", undefined, { class: "note", role: "status" });
  const words = field("filter", "Filter prefixes", { type: "search" });
  const picture = new Picture("Routers and links", LEGEND);
  const detail = h("section", undefined, { class: "chosen", "aria-label": "Chosen router", "aria-live": "polite" });
  detail.hidden = true;
  const prefixes = new Table<Announced>([
    { name: "prefix", width: "minmax(7rem, 3fr)", text: (p) => p.prefix },
    { name: "announced by", width: "minmax(7rem, 4fr)", text: (p) => p.by.map(([router, cost]) => `${router} (${cost})`).join(", ") },
    { name: "by faces", width: "minmax(6rem, 2fr)", text: (p) => p.ways, wide: true },
  ], { label: "Prefixes", key: (p) => p.prefix, empty: "No prefix fits.", chosen: (p) => { chosen = p.by[0]?.[0] ?? ""; show(); } });
  words.addEventListener("input", () => prefixes.filter(words.value));
  const prefixBar = h("div", undefined, { class: "bar" });
  prefixBar.append(h("h2", "Prefixes and who announces them"), words);
  let network = choose([], "Network");
  bar.append(h("h2", "Routing"), who, network);
  all.append(picture.box, detail, prefixBar, prefixes.box);
  box.append(bar, none, all);
  const carried = new Carried();
  let known: Routing | null = null, announced: Announced[] = [], chosen = "";

  /** A router without the name of its network. */
  const short = (name: string) => {
    const within = known!.map.network;
    return name.startsWith(`${within}/`) ? name.slice(within.length + 1) : name;
  };

  function show(): void {
    const { map, neighbours } = known!;
    const router = map.routers.find((r) => r.name === chosen), neighbour = neighbours.find((n) => n.router === chosen);
    const vertices: Vertex[] = map.routers.map((r) => ({
      id: r.name, title: short(r.name), kind: r.name === map.router ? "up" : "",
      note: r.name === map.router ? "this router" : `cost ${r.cost} · ${count(r.prefixes)} prefix${r.prefixes === 1 ? "" : "es"}`,
    }));
    // Neighbours that do not hear this router lead nowhere, and are drawn all the same.
    const reached = new Set(map.routers.map((r) => r.name));
    for (const { router: id } of neighbours) if (!reached.has(id)) vertices.push({ id, title: short(id), note: "not reached", kind: "missing" });
    const ties = map.links.map((link): Tie => {
      const face = link.is_direct ? neighbours.find((n) => n.router === link.to)?.faces[0] : undefined;
      const way = link.is_direct ? "link" : "way";
      return {
        from: link.from, to: link.to, load: carried.of(face), label: [`cost ${link.cost}`, ...carried.text(face)],
        kind: `${link.is_direct ? "" : "way"} ${link.is_used ? "" : "down"}`, said: `${way} ${link.from} to ${link.to}: ${["cost " + link.cost, ...carried.text(face)].join(", ")}`,
      };
    });
    picture.draw(vertices, ties, map.router, chosen, (id) => { chosen = id; show(); });
    detail.hidden = !router && !neighbour;
    if (detail.hidden) return;
    const own = announced.filter((p) => p.by.some(([by]) => by === chosen));
    const rows: [string, string][] = [];
    if (router && chosen !== map.router) rows.push(["cost", String(router.cost)], ["reached by", router.by.map(short).join(", ")]);
    if (neighbour) {
      rows.push(["link", heard(neighbour)], ["face", neighbour.faces.join(", ") || "–"], ["up for", duration(neighbour.up_s * 1000)],
        ["round trip", neighbour.rtt_ms === null ? "not measured" : `${neighbour.rtt_ms.toFixed(2)} ms`],
        ["probes lost", neighbour.loss_percent === null ? "not measured" : `${neighbour.loss_percent} %`]);
    }
    rows.push(["announces", own.length === 0 ? "nothing that is known here" : own.slice(0, 20).map((p) => p.prefix).join("  ")]);
    if (own.length > 20) rows.push(["", `and ${count(own.length - 20)} more: filter the table below by its name`]);
    detail.replaceChildren(h("h2", chosen), facts(rows));
  }

  async function refresh(): Promise<void> {
    const wanted = network.value;
    const asked = await told(none, all, () => get<Routing>(`/v1/routing?network=${encodeURIComponent(wanted)}`));
    if (!asked) return;
    await carried.look();
    known = asked;
    const { map, networks } = asked;
    if ([...network.options].map((o) => o.value).join("\n") !== networks.join("\n")) {
      const made = choose(networks, "Network");
      made.value = map.network;
      made.addEventListener("change", () => { chosen = ""; void refresh(); });
      network.replaceWith(made);
      network = made;
    }
    network.hidden = networks.length < 2;
    who.textContent = `${map.router} in ${map.network}: ${count(asked.neighbours.length)} neighbours, ${count(map.routers.length)} routers`;
    announced = [
      ...asked.local.map(([prefix, cost]): Announced => ({ prefix, by: [[map.router, cost]], ways: "this node" })),
      ...asked.remote.map(({ prefix, exits, ways }): Announced => ({ prefix, by: exits, ways: ways.map(([face, cost]) => `${face} (${cost})`).join(", ") })),
    ];
    prefixes.set(announced);
    show();
  }
  return { box, every: 3000, refresh };
}
