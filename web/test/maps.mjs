// Answers about a network with much to show, in place of those of the console.

import { lot } from "./fakes.mjs";

function routing(routers, evil) {
  const name = (i) => (evil && i > 0 ? `/net/${evil}${i}` : `/net/r${i}`);
  const others = Array.from({ length: routers - 1 }, (_, i) => i + 1), near = 4;
  return {
    map: {
      router: name(0), network: "/net",
      routers: [{ name: name(0), cost: 0, by: [], prefixes: 2 }, ...others.map((i) => ({ name: name(i), cost: 1 + Math.floor(i / near), by: [name(1 + ((i - 1) % near))], prefixes: i % 3 }))],
      links: [
        ...others.slice(0, near).map((i) => ({ from: name(0), to: name(i), cost: i, is_direct: true, is_used: i !== 3 })),
        ...others.slice(near).map((i) => ({ from: name(1 + ((i - 1) % near)), to: name(i), cost: 1 + Math.floor(i / near), is_direct: false, is_used: true })),
      ],
    },
    networks: ["/net"], links: [], held: [], outside: [],
    neighbours: others.slice(0, near).map((i) => ({ router: name(i), faces: [256 + i], cost: i, up_s: 4000 + i, heard_s: 2, seq: 9, in_step: true, extended: true, usable: i !== 3, rtt_ms: 1.25 * i, loss_percent: 0, full_size: true, clock_ahead_ms: 0, fetches_failed: 0 })),
    local: [["/net/r0/files", 0], ["/net/r0/repo", 0]],
    remote: [1, 2, 5].map((i) => ({ prefix: `${name(i)}/32=status`, exits: [[name(i), 0]], ways: [[257, i]] })).concat(others.flatMap((i) => Array.from({ length: i % 3 }, (_, k) => ({ prefix: `${name(i)}/p${k}`, exits: [[name(i), 0]], ways: [[257, i]] })))),
  };
}

function push(nodes, item, evil) {
  const draw = lot(3), label = (i) => (0x40 + i).toString(16);
  const links = Array.from({ length: nodes }, () => []);
  let number = 1;
  const tie = (a, b, cost) => {
    links[a].push({ to: label(b), number: number++, cost });
    links[b].push({ to: label(a), number: number++, cost });
  };
  for (let i = 1; i < nodes; i++) tie(Math.floor((i - 1) / 2), i, 1 + (i % 3));
  for (let i = 0; i < nodes / 5; i++) tie(Math.floor(draw() * (nodes / 2)), Math.floor(nodes / 2 + draw() * (nodes / 2)), 4);
  // The way from the first to the last node.
  const path = [];
  for (let at = nodes - 1; at > 0;) {
    const up = Math.floor((at - 1) / 2);
    path.unshift({ number: links[up].find((l) => l.to === label(at)).number, from: label(up), to: label(at) });
    at = up;
  }
  const stray = links[0].find((l) => !path.some((p) => p.number === l.number));
  const vertices = [
    { of: "domain", scope: true, ids: ["/1"], paths: [evil ? `/${evil}` : "/sensors"], strategy: "domain-local", publishers: [label(0)], subscribers: [] },
    { of: "domain", scope: false, ids: ["/1/2"], paths: [evil ? `/${evil}/x` : "/sensors/roof"], strategy: "domain-local", publishers: [label(0)], subscribers: [label(nodes - 1)] },
    ...Array.from({ length: 40 }, (_, i) => ({ of: "domain", scope: false, ids: [`/1/${(16 + i).toString(16)}`], paths: [null], strategy: "domain-local", publishers: [label(i % nodes)], subscribers: [] })),
  ];
  return {
    status: { node: label(0), inside: 7, roles: ["rendezvous", "topology"], homes: [], links: links[0].map((l, i) => ({ face: 257 + i, uri: "udp4://10.0.0.2:6363", number: l.number, cost: l.cost, neighbour: l.to, domain: null })) },
    graph: { node: label(0), rendezvous: true, rendezvous_nodes: [label(0)], total: vertices.length, vertices },
    topology: {
      node: label(0), manager: true, trees_made: 9, domains: [],
      nodes: links.map((of, i) => ({ node: label(i), inside: 900 + i, roles: i === 0 ? ["rendezvous", "topology"] : [], links: of })),
      matches: item !== "/1/2" ? [] : [{ ids: ["/1/2"], paths: [null], publishers: [label(0)], subscribers: [label(nodes - 1)], trees: [{ publisher: label(0), links: path.map((p) => p.number), path, hops: path.length, route: { form: "flat", table: 3, ones: 25, filter: "00c0ffee".repeat(8) }, beside: 11, false_positives: 0.0000123, strays_expected: 0.0001, strays: stray ? [stray.number] : [] }] }],
    },
  };
}

function other(name, evil) {
  return {
    node: evil ? `/${evil}` : name, version: evil ?? "0.1.0", start_ms: 1000, now_ms: 9_001_000, faces: 41, faces_max: 10_000, routes: 912,
    pit: { entries: 80, entries_max: 65_536, bytes: 9000 }, cs: { entries: 4096, entries_max: 65_536, bytes: 9_000_000, hits: 300, misses: 900 },
    satisfied_interests: 12_345, unsatisfied_interests: 67, in_bytes: 9_000_000, out_bytes: 5_000_000, dropped: { [evil ?? "no_route"]: 12 },
    links: Array.from({ length: 32 }, (_, i) => ({ face: 256 + i, remote: evil ?? `udp4://10.0.0.${i}:6363`, in_packets: 900 * i, out_packets: 800 * i, in_bytes: 9000 * i, out_bytes: 9000 * i })), links_left_out: 8,
    neighbours: [{ router: evil ? `/${evil}/n` : "/net/r9", cost: 2, usable: true }, { router: "/net/r1", cost: 1, usable: false }],
  };
}

export async function maps(page, { routers = 14, nodes = 20, evil } = {}) {
  const answers = {
    "/v1/routing": () => routing(routers, evil),
    "/v1/push": (url) => push(nodes, url.searchParams.get("item"), evil),
  };
  await page.route(/\/v1\/nodes\/ask/, (route) => {
    const { name } = JSON.parse(route.request().postData());
    if (name === "/net/r5") return route.fulfill({ status: 403, contentType: "application/json", body: JSON.stringify({ error: { code: "refused", message: "/net/r5 does not show its state to this key", next: "its certificate belongs into management.shown_to" } }) });
    return route.fulfill({ contentType: "application/json", body: JSON.stringify(other(name, evil)) });
  });
  await page.route(/\/v1\/(routing|push)/, (route) => {
    const url = new URL(route.request().url());
    return route.fulfill({ contentType: "application/json", body: JSON.stringify(answers[url.pathname](url)) });
  });
}
