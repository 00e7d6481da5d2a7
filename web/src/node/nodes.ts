// Other nodes, each asked by its name over the network: those that routing knows, or any that is typed.
import { button, facts, field, h } from "../shared/dom";
import { count, duration, octets, percent } from "../shared/format";
import { Table } from "../shared/table";
import { get, post, Refusal, type Other, type Routing } from "./api";
import { fault, sentence, type View } from "./page";

interface Known { name: string; cost: number | null; shows: boolean; state: string }

/** What stands behind the name of a node that shows its state. */
const STATUS = "/32=status";

const fill = (table: Other["pit"]) => `${count(table.entries)} of ${count(table.entries_max)}`;

export function nodes(): View {
  const box = h("div", undefined, { class: "list" });
  const question = h("form", undefined, { class: "bar" });
  const name = field("name", "Name of a node, such as /net/b", { required: "" });
  question.append(h("h2", "Other nodes"), name, h("button", "Ask"));
  const hint = h("p", "A node shows its state to the keys of its management.shown_to. What it answers travels unencrypted, and nothing proves who answered.", { class: "note" });
  const answer = h("section", undefined, { class: "chosen", "aria-label": "State of the node", "aria-live": "polite" });
  answer.hidden = true;
  const table = new Table<Known>([
    { name: "node", width: "minmax(8rem, 3fr)", text: (n) => n.name },
    { name: "cost", width: "3.6rem", text: (n) => (n.cost === null ? "–" : String(n.cost)), number: (n) => n.cost ?? Number.MAX_SAFE_INTEGER },
    { name: "shows its state", width: "minmax(6.4rem, 1fr)", text: (n) => (n.shows ? "yes" : "not announced"), wide: true },
    { name: "told", width: "minmax(7rem, 2fr)", text: (n) => n.state },
  ], { label: "Nodes", key: (n) => n.name, order: [1, false], empty: "Routing knows no node: type the name of one.", chosen: (n) => void ask(n.name) });
  const links = new Table<Other["links"][number]>([
    { name: "face", width: "2.8rem", text: (l) => String(l.face), number: (l) => l.face },
    { name: "remote", width: "minmax(5rem, 3fr)", text: (l) => l.remote },
    { name: "pkts in", width: "minmax(3.8rem, 1fr)", text: (l) => count(l.in_packets), number: (l) => l.in_packets },
    { name: "pkts out", width: "minmax(4rem, 1fr)", text: (l) => count(l.out_packets), number: (l) => l.out_packets },
    { name: "octets in", width: "minmax(4.6rem, 1fr)", text: (l) => octets(l.in_bytes), number: (l) => l.in_bytes, wide: true },
    { name: "octets out", width: "minmax(4.6rem, 1fr)", text: (l) => octets(l.out_bytes), number: (l) => l.out_bytes, wide: true },
  ], { label: "Links of the node", key: (l) => String(l.face), order: [2, true], empty: "It has no links." });
  const known = h("div", undefined, { class: "short" });
  known.append(table.box);
  box.append(question, hint, known, answer);
  const found = new Map<string, Known>(), told = new Map<string, string>();
  let seen = "";

  function list(): void {
    table.set([...found.values()].map((n) => ({ ...n, state: told.get(n.name) ?? "" })));
  }

  function show(other: Other): void {
    const asked = (other.cs.hits ?? 0) + (other.cs.misses ?? 0);
    const words = Object.entries(other.dropped).sort((a, b) => b[1] - a[1]);
    const rows: HTMLElement[] = [h("h2", other.node), facts([
      ["version", other.version], ["up for", duration(other.now_ms - other.start_ms)], ["faces", `${count(other.faces)} of ${count(other.faces_max)}`],
      ["routes", count(other.routes)], ["pending Interests", fill(other.pit)], ["cached packets", fill(other.cs)],
      ["answered by the cache", asked > 0 ? percent((other.cs.hits ?? 0) / asked) : "–"],
      ["Interests answered", `${count(other.satisfied_interests)}, and ${count(other.unsatisfied_interests)} not`],
      ["octets", `${octets(other.in_bytes)} in, ${octets(other.out_bytes)} out`],
      ["dropped", words.map(([word, n]) => `${word} ${count(n)}`).join(", ") || "nothing"],
    ])];
    if (other.neighbours.length > 0) {
      const beside = h("div", undefined, { class: "bar" });
      beside.append(h("h3", "Its neighbours"), ...other.neighbours.map((n) => button(`${n.router}, cost ${n.cost}${n.usable ? "" : ", does not hear it"}`, () => void ask(n.router))));
      rows.push(beside);
    }
    const more = other.links_left_out > 0 ? h("p", `${count(other.links_left_out)} more are left out: those with less traffic.`, { class: "note" }) : null;
    const short = h("div", undefined, { class: "short" });
    short.append(h("h3", "Its links"), links.box);
    answer.replaceChildren(...rows, short, ...(more ? [more] : []));
    links.set(other.links);
  }

  async function ask(of: string): Promise<void> {
    seen = of;
    name.value = of;
    fault("");
    answer.hidden = false;
    answer.replaceChildren(h("p", `asking ${of} …`, { class: "note" }));
    try {
      const other = await post<Other>("/v1/nodes/ask", { name: of });
      told.set(of, `onym ${other.version}, up ${duration(other.now_ms - other.start_ms)}`);
      if (!found.has(of)) found.set(of, { name: of, cost: null, shows: true, state: "" });
      if (seen === of) show(other);
    } catch (error) {
      told.set(of, error instanceof Refusal ? error.message : "no answer");
      if (seen === of) answer.replaceChildren(h("p", sentence(error), { class: "answer bad" }));
    }
    list();
  }

  question.addEventListener("submit", (e) => {
    e.preventDefault();
    void ask(name.value.trim());
  });

  async function refresh(): Promise<void> {
    // Without a router there is nobody to list; names can be typed all the same.
    const routing = await get<Routing>("/v1/routing?network=").catch((error: unknown) => {
      if (error instanceof Refusal && error.status === 404) return null;
      throw error;
    });
    if (!routing) return list();
    const announced = new Set([...routing.local, ...routing.remote.map((p) => [p.prefix, 0] as const)].map(([prefix]) => prefix).filter((p) => p.endsWith(STATUS)).map((p) => p.slice(0, -STATUS.length)));
    for (const { name, cost } of routing.map.routers) found.set(name, { name, cost, shows: announced.has(name), state: "" });
    for (const name of announced) if (!found.has(name)) found.set(name, { name, cost: null, shows: true, state: "" });
    list();
  }
  return { box, every: 5000, refresh };
}
