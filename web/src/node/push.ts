// The push half: the map of its domain with links and costs, items, and the tree of a chosen one with its filter.
import { facts, field, h } from "../shared/dom";
import { count } from "../shared/format";
import { Picture, type Tie, type Vertex } from "../shared/map";
import { Table } from "../shared/table";
import { get, type Push, type PushItem, type PushNode, type Tree } from "./api";
import { Carried } from "./carried";
import { told, type View } from "./page";

const LEGEND = "Each line is a link with its cost. Thick: of the tree of the chosen item. Red: the tree's filter matches it beside the tree, so copies go there in vain. Packets a second are those of the link's face, of all kinds, and known for links of this node only.";

const named = (item: PushItem) => item.ids.map((id, at) => item.paths[at] ?? id).join(" = ");

/** The filter of a tree in words. */
function filterText(tree: Tree): string {
  const { route } = tree;
  if (!route) return "nothing leaves the publisher's node";
  if (route.filter === undefined) return route.stages === undefined ? `form ${route.form}` : `${route.form}, ${route.stages} stages`;
  return `${route.form}, table ${route.table}, ${route.ones} ones of 256: ${route.filter}`;
}

/** A link once, whichever end tells it. */
interface Link { from: string; to: string; costs: Set<number>; numbers: Set<number> }

/** The links of a map, one for each pair of nodes. */
function links(nodes: readonly PushNode[]): Map<string, Link> {
  const found = new Map<string, Link>();
  for (const { node, links } of nodes) {
    for (const { to, number, cost } of links) {
      const key = [node, to].sort().join(" ");
      const link = found.get(key) ?? { from: node, to, costs: new Set<number>(), numbers: new Set<number>() };
      link.costs.add(cost);
      link.numbers.add(number);
      found.set(key, link);
    }
  }
  return found;
}

export function push(): View {
  const box = h("div", undefined, { class: "list" });
  const none = h("p", undefined, { class: "note", role: "status" });
  const all = h("div", undefined, { class: "list" });
  const bar = h("div", undefined, { class: "bar" });
  const who = h("span", undefined, { class: "note", role: "status" });
  bar.append(h("h2", "Push"), who);
  const part = h("p", undefined, { class: "note" });
  const picture = new Picture("Nodes and links of the push half", LEGEND);
  const node = h("section", undefined, { class: "chosen", "aria-label": "Chosen node", "aria-live": "polite" });
  node.hidden = true;
  const tree = h("section", undefined, { class: "chosen", "aria-label": "Tree of the chosen item", "aria-live": "polite" });
  tree.hidden = true;
  const words = field("filter", "Filter items", { type: "search" });
  const items = new Table<PushItem>([
    { name: "item", width: "minmax(8rem, 4fr)", text: named },
    { name: "kind", width: "3.6rem", text: (i) => (i.scope ? "scope" : "item") },
    { name: "known in", width: "minmax(5rem, 1fr)", text: (i) => i.of, wide: true },
    { name: "strategy", width: "minmax(7rem, 2fr)", text: (i) => i.strategy, wide: true },
    { name: "pub.", width: "3.4rem", text: (i) => count(i.publishers.length), number: (i) => i.publishers.length },
    { name: "sub.", width: "3.4rem", text: (i) => count(i.subscribers.length), number: (i) => i.subscribers.length },
  ], { label: "Items and scopes", key: (i) => `${i.of} ${i.ids[0]}`, order: [5, true], empty: "No item fits.", chosen: (i) => { item = i; void refresh(); } });
  words.addEventListener("input", () => items.filter(words.value));
  const itemBar = h("div", undefined, { class: "bar" });
  const number = h("span", undefined, { class: "note", role: "status" });
  itemBar.append(h("h2", "Items and scopes"), number, words);
  all.append(part, picture.box, node, tree, itemBar, items.box);
  box.append(bar, none, all);
  const carried = new Carried();
  let known: Push | null = null, item: PushItem | null = null, chosen = "";

  /** The map as far as this node knows it. */
  function nodes(): PushNode[] {
    const { status, topology } = known!;
    if (topology.manager) return topology.nodes;
    const own = status.links.flatMap(({ neighbour, number, cost }) => (neighbour ? [{ to: neighbour, number, cost }] : []));
    const beside = new Set(own.map((link) => link.to));
    return [{ node: status.node, inside: status.inside, roles: status.roles, links: own }, ...[...beside].map((to) => ({ node: to, inside: 0, roles: [], links: [] }))];
  }

  function trees(): Tree[] {
    const { topology } = known!;
    return topology.manager && item ? topology.matches.flatMap((m) => m.trees) : [];
  }

  function show(): void {
    const { status, topology } = known!, drawn = nodes(), found = trees();
    const ofTree = new Set(found.flatMap((t) => t.path.map(({ from, to }) => [from, to].sort().join(" "))));
    const strays = new Set(found.flatMap((t) => t.strays ?? []));
    const roots = new Set(found.map((t) => t.publisher)), ends = new Set<string>(topology.manager && item ? topology.matches.flatMap((m) => m.subscribers) : []);
    const note = (n: PushNode) => [...(n.node === status.node ? ["this node"] : []), ...(roots.has(n.node) ? ["publisher"] : []), ...(ends.has(n.node) ? ["subscriber"] : []), ...n.roles].slice(0, 2).join(", ") || "node";
    const vertices = drawn.map((n): Vertex => ({ id: n.node, title: n.node, note: note(n), kind: roots.has(n.node) || ends.has(n.node) ? "up" : "" }));
    const ties = [...links(drawn)].map(([key, link]): Tie => {
      const own = status.links.find((l) => [status.node, l.neighbour ?? ""].sort().join(" ") === key);
      const cost = `cost ${[...link.costs].join(" and ")}`, stray = [...link.numbers].some((n) => strays.has(n));
      const kind = ofTree.has(key) ? "tree" : stray ? "stray" : "";
      const more = kind === "tree" ? ["of the tree"] : stray ? ["matched beside the tree"] : [];
      return { from: link.from, to: link.to, kind, load: carried.of(own?.face), label: [cost, ...carried.text(own?.face)], said: `link ${link.from} to ${link.to}: ${[cost, ...carried.text(own?.face), ...more].join(", ")}` };
    });
    picture.draw(vertices, ties, found[0]?.publisher ?? status.node, chosen, (id) => { chosen = id; show(); });
    const one = drawn.find((n) => n.node === chosen);
    node.hidden = !one;
    if (one) {
      node.replaceChildren(h("h2", `Node ${one.node}`), facts([
        ["roles", one.roles.join(", ") || "none"], ["number within", one.inside ? String(one.inside) : "–"],
        ...one.links.map(({ to, number, cost }): [string, string] => [`link ${number}`, `to ${to}, cost ${cost}`]),
      ]));
    }
    tree.hidden = !item;
    if (!item) return;
    const rows: Node[] = [h("h2", `Tree of ${named(item)}`)];
    if (!topology.manager) rows.push(h("p", `Trees are made by topology managers: ${topology.managers.join(", ") || "none is known here"}. Open the console of such a node.`, { class: "note" }));
    else if (item.scope) rows.push(h("p", "It is a scope: its items have trees.", { class: "note" }));
    else if (found.length === 0) rows.push(h("p", "It has no tree: no publisher or no subscriber, or both are on one node, or another topology manager serves it.", { class: "note" }));
    for (const one of found) {
      rows.push(facts([
        ["from", one.publisher], ["links", one.path.map((l) => `${l.number} (${l.from} to ${l.to})`).join(", ") || "none"], ["hops", String(one.hops)], ["filter", filterText(one)],
        ["tested beside it", `${count(one.beside)} links${one.false_positives === null ? "" : `, each matches with probability ${one.false_positives.toPrecision(2)}`}`],
        ["go astray", one.strays === null ? "not known for this form" : one.strays.length === 0 ? "none" : `links ${one.strays.join(", ")}`],
      ]));
    }
    tree.replaceChildren(...rows);
  }

  async function refresh(): Promise<void> {
    const id = item && !item.scope ? item.ids[0]! : "";
    const asked = await told(none, all, () => get<Push>(`/v1/push?item=${encodeURIComponent(id)}`));
    // Another one was chosen meanwhile: it is asked for by itself.
    if (!asked || id !== (item && !item.scope ? item.ids[0]! : "")) return;
    await carried.look();
    known = asked;
    const { status, graph, topology } = asked;
    who.textContent = `node ${status.node}, ${status.roles.join(", ") || "no role"}`;
    part.textContent = topology.manager ? "" : `This node is no topology manager: it knows its own links only. The map is at ${topology.managers.join(", ") || "no node that it knows"}.`;
    part.hidden = topology.manager;
    const rest = graph.rendezvous ? "" : `; what the domain has is known to ${graph.rendezvous_nodes.join(" and ") || "nobody that it knows"}`;
    number.textContent = `${count(graph.vertices.length)} of ${count(graph.total)}${rest}`;
    items.set(graph.vertices);
    show();
  }
  return { box, every: 3000, refresh };
}
