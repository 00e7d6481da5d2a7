// Where functions and links are drawn: in layers, in the order in which Interests cross them, by dagre.
// A link that leads back goes around the boxes; labels have a place of their own.
import { Graph, layout, type EdgeLabel, type GraphLabel, type NodeLabel } from "@dagrejs/dagre";

export interface Place { x: number; y: number }
export interface Box { name: string; kind: string; width: number; height: number }
export interface Edge { from: string; to: string; key: string; width: number; height: number }
export interface Layout { boxes: Map<string, Place>; edges: Map<string, { points: Place[]; label: Place; back: boolean }>; width: number; height: number }

/** The links that lead back: found from where Interests come in. */
export function backs(boxes: Box[], edges: Edge[]): Set<string> {
  const out = new Map<string, Edge[]>(boxes.map((box) => [box.name, []]));
  const asked = new Set<string>();
  for (const edge of edges) {
    out.get(edge.from)?.push(edge);
    asked.add(edge.to);
  }
  // A dispatcher is a network's edge, whatever leads back to it; else who is asked by nobody.
  const rank = (box: Box) => (box.kind === "packet-dispatcher" ? 0 : asked.has(box.name) ? 2 : 1);
  const found = new Set<string>(), open = new Set<string>(), done = new Set<string>();
  const visit = (name: string): void => {
    open.add(name);
    for (const edge of out.get(name) ?? []) {
      if (open.has(edge.to)) found.add(edge.key);
      else if (!done.has(edge.to)) visit(edge.to);
    }
    open.delete(name);
    done.add(name);
  };
  for (const box of [...boxes].sort((a, b) => rank(a) - rank(b))) if (!done.has(box.name)) visit(box.name);
  return found;
}

export function place(boxes: Box[], edges: Edge[], upright: boolean): Layout {
  const graph = new Graph<GraphLabel, NodeLabel, EdgeLabel>({ multigraph: true });
  graph.setGraph({ rankdir: upright ? "TB" : "LR", nodesep: 34, edgesep: 22, ranksep: upright ? 26 : 30, marginx: 20, marginy: 20 });
  for (const box of boxes) graph.setNode(box.name, { width: box.width, height: box.height });
  const leadBack = backs(boxes, edges);
  for (const edge of edges) {
    const { key, width, height } = edge;
    const [a, b] = leadBack.has(key) ? [edge.to, edge.from] : [edge.from, edge.to];
    graph.setEdge(a, b, { width, height, labelpos: "c" }, key);
  }
  layout(graph);
  const made: Layout = { boxes: new Map(), edges: new Map(), width: graph.graph().width ?? 0, height: graph.graph().height ?? 0 };
  for (const box of boxes) {
    const { x = 0, y = 0 } = graph.node(box.name);
    made.boxes.set(box.name, { x: x - box.width / 2, y: y - box.height / 2 });
  }
  // How far the boxes of each layer reach.
  const reach = new Map<number, number>();
  for (const box of boxes) {
    const { x = 0, y = 0 } = graph.node(box.name), at = Math.round(upright ? y : x);
    reach.set(at, Math.max(reach.get(at) ?? 0, (upright ? box.height : box.width) / 2));
  }
  const middle = graph.edges().map((of) => {
    const { points = [], x = 0, y = 0 } = graph.edge(of);
    const turns = points.slice(1, -1).flatMap((point) => straight(point, reach, upright));
    return { of, turns, label: { x, y } };
  });
  for (const { of, turns, label } of middle) {
    // Those that leave or enter a box by one side share it, in the order of where they go.
    const end = (side: "v" | "w"): Place[] => {
      const beside = middle.filter((other) => other.of[side] === of[side]);
      const toward = (m: (typeof middle)[number]) => (side === "v" ? m.turns[0] : m.turns.at(-1)) ?? m.label;
      beside.sort((p, q) => (upright ? toward(p).x - toward(q).x : toward(p).y - toward(q).y));
      const at = beside.findIndex((other) => other.of === of) - (beside.length - 1) / 2;
      const { x = 0, y = 0, width, height } = graph.node(of[side]);
      const by = at * Math.min(12, ((upright ? width : height) - 12) / beside.length);
      const sign = side === "v" ? 1 : -1;
      const far = reach.get(Math.round(upright ? y : x)) ?? 0;
      const ports = [(upright ? height : width) / 2, far].map((d) => (upright ? { x: x + by, y: y + sign * d } : { x: x + sign * d, y: y + by }));
      return side === "v" ? ports : ports.reverse();
    };
    const points = [...end("v"), ...turns, ...end("w")].filter((p, i, all) => i === 0 || p.x !== all[i - 1]!.x || p.y !== all[i - 1]!.y);
    const back = leadBack.has(of.name ?? "");
    made.edges.set(of.name ?? "", { points: back ? points.reverse() : points, label, back });
  }
  return made;
}

/** A line goes straight past the boxes of a layer, and turns between layers. */
function straight(point: Place, reach: Map<number, number>, upright: boolean): Place[] {
  const far = reach.get(Math.round(upright ? point.y : point.x));
  if (far === undefined) return [point];
  return [-far, far].map((by) => (upright ? { x: point.x, y: point.y + by } : { x: point.x + by, y: point.y }));
}

/** A line along `points`, its corners round. */
export function line(points: Place[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  const at = (p: Place) => `${p.x.toFixed(1)} ${p.y.toFixed(1)}`;
  let d = `M${at(first)}`;
  rest.forEach((point, i) => {
    const next = rest[i + 1];
    d += next ? `Q${at(point)} ${at({ x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 })}` : `L${at(point)}`;
  });
  return d;
}
