// Answers of a node with much to show, in place of those of the console.

/** Numbers that look drawn by lot and are the same each time. */
export function lot(seed) {
  return () => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed / 2147483648;
  };
}

export async function fakes(page, { faces, routes, evil }) {
  const draw = lot(7);
  const list = Array.from({ length: faces }, (_, i) => ({
    id: 257 + i, remote: evil ?? `udp4://10.${(i >> 8) & 255}.${i & 255}.${1 + (i % 250)}:6363`, local: "udp4://10.0.0.1:6363", scope: "non-local",
    persistency: i % 3 ? "on-demand" : "permanent", link: "point-to-point", expires_ms: null, mtu: 1400, flags: i % 5 ? [] : ["reliability"],
    in_interests: 1000 * i, in_data: 900 * i, in_nacks: i % 7, in_bytes: 1_000_000 * i, out_interests: 950 * i, out_data: 990 * i, out_nacks: 0, out_bytes: 1_200_000 * i,
  }));
  const grown = () => list.map((f) => {
    const packets = Math.floor(4000 * draw() ** 6);
    f.in_interests += packets;
    f.in_bytes += 80 * packets;
    f.out_data += packets;
    f.out_bytes += 1100 * packets;
    return f;
  });
  const table = Array.from({ length: routes }, (_, i) => ({
    prefix: evil ? `/${evil}/${i}` : `/site/${i % 97}/building/${i % 13}/sensor/${i}`, face: 257 + (i % faces), origin: ["static", "nlsr", "app"][i % 3], cost: (i * 7) % 100, flags: ["child-inherit"], expires_ms: i % 4 ? null : 3_600_000,
  }));
  const now = Date.now();
  const columns = ["at_ms", "in_interests", "in_data", "out_interests", "out_data", "in_bytes", "out_bytes", "dropped", "unsent", "cs_hits", "cs_misses", "pit_entries", "cs_entries", "queue_bytes", "faces"];
  const rows = Array.from({ length: 720 }, (_, i) => {
    const level = 20_000 + 9000 * Math.sin(i / 60) + 2500 * draw(), n = Math.floor(level);
    const burst = i > 500 && i < 530 ? 1 : 0;
    return [now - 5000 * (720 - i), n, Math.floor(n * 0.8), Math.floor(n * 0.6), n, n * 900, n * 1200, Math.floor(20 * draw()) + burst * 3000, burst * 400, Math.floor(n * (0.35 + 0.1 * Math.sin(i / 90))), Math.floor(n * 0.6), 800 + Math.floor(300 * draw()) + burst * 9000, 65_536, burst * 900_000 + Math.floor(3000 * draw()), faces];
  });
  const node = {
    version: "0.1.0", start_ms: now - 9_000_000, now_ms: now, faces_max: 10_000,
    pit: { entries: 912, entries_max: 65_536, bytes: 480_000, bytes_max: 33_554_432 }, cs: { entries: 65_536, packets_max: 65_536, bytes: 88_000_000, bytes_max: 134_217_728, hits: 81_234_567, misses: 99_000_000 },
    fib: { entries: routes, routes_max: 0 }, rib: { entries: 0, routes, routes_max: 100_000 },
    satisfied_interests: 170_000_000, unsatisfied_interests: 31_234, dropped: { no_route: 12_345, duplicate_nonce: 811, pit_share: 77 }, unsent: { queue_full: 4021 }, frames_dropped: { lp_malformed: 3 },
  };
  const live = list.slice(0, 100).map((f) => ({ face: f.id, queue_bytes: Math.floor(40_000 * draw() ** 4), queue_bytes_max: 262_144, losses: draw() < 0.05 ? 12 : 0, rtt_us: Math.floor(900 + 8000 * draw()) }));
  const prefixes = Array.from({ length: 24 }, (_, i) => ({ prefix: evil ? `/${evil}` : `/site/${i}`, interests: 9000 / (i + 1), hits: 3000 / (i + 1), drops: i % 5 ? 0 : 4, data: 8000 / (i + 1), bytes: 9e6 / (i + 1) }));
  const answers = {
    "/v1/faces": grown,
    "/v1/routes": () => table,
    "/v1/top": () => ({ now: { interval_ms: 1000, node: { ...node, now_ms: Date.now() }, faces_count: faces, faces: live, prefixes, prefixes_hidden: null, push: null }, why: evil ? [{ rule: "x", sentence: evil }] : [{ rule: "queue", sentence: "The send queue of Face 263 (udp4://10.0.6.7:6363) is 63 % full. The link or the peer is slower than what is sent to it." }] }),
    "/v1/history": (url) => ({ now_ms: Date.now(), start_ms: node.start_ms, step_ms: 5000, rows_max: 720, columns, counts: 10, rows: rows.filter((r) => r[0] > Number(url.searchParams.get("since") ?? 0)), face_columns: ["face", "in_packets", "out_packets", "in_bytes", "out_bytes", "losses", "queue_bytes"], busiest: rows.map(() => list.slice(0, 8).map((f, i) => [f.id, 9000 - 1000 * i, 8000 - 900 * i, 9e6 / (i + 1), 9e6 / (i + 1), i === 3 ? 4 : 0, 0])), uris: Object.fromEntries(list.slice(0, 8).map((f) => [f.id, f.remote])) }),
  };
  await page.route(/\/v1\//, (route) => {
    const url = new URL(route.request().url()), answer = answers[url.pathname];
    return answer ? route.fulfill({ contentType: "application/json", body: JSON.stringify(answer(url)) }) : route.fallback();
  });
}
