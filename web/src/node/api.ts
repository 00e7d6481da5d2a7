// The console's interface (crates/console/README.md), as far as the page uses it.

export interface About { kind: string; name: string; version: string; node: string | null }
export interface Face { id: number; remote: string; local: string; scope: string; persistency: string; link: string; mtu: number | null; flags: string[]; in_interests: number; in_data: number; in_nacks: number; in_bytes: number; out_interests: number; out_data: number; out_nacks: number; out_bytes: number }
export interface Route { prefix: string; face: number; origin: string; cost: number; flags: string[]; expires_ms: number | null }
export interface Choice { prefix: string; strategy: string }
export interface Store { capacity: number; entries: number; hits: number; misses: number; flags: string[] }
export interface Status { general: { version: string; uptime_ms: number; pit_entries: number }; content_store: Store; node?: { frames_dropped: Record<string, number> } }
export interface Tables { entries: number; entries_max: number; packets_max: number; routes: number; routes_max: number; bytes: number; bytes_max: number; hits: number; misses: number }
export interface LiveFace { face: number; queue_bytes: number; queue_bytes_max: number; losses: number; rtt_us: number | null }
export interface Prefix { prefix: string; interests: number; hits: number; drops: number; data: number; bytes: number }
export interface Live { interval_ms: number; node: { version: string; start_ms: number; now_ms: number; faces_max: number; pit: Tables; cs: Tables; fib: Tables; rib: Tables; dropped: Record<string, number>; unsent: Record<string, number>; frames_dropped: Record<string, number>; satisfied_interests: number; unsatisfied_interests: number }; faces_count: number; faces: LiveFace[]; prefixes: Prefix[]; prefixes_hidden: string | null }
export interface Reason { rule: string; sentence: string }
export interface Top { now: Live; why: Reason[] }
export interface History { now_ms: number; start_ms: number; step_ms: number; rows_max: number; columns: string[]; counts: number; rows: number[][]; face_columns: string[]; busiest: number[][][]; uris: Record<string, string> }
export interface Seen { time_ns?: number; interface?: string; direction?: string; kind: string; name?: string; comment?: string; length: number; nack_reason?: string }
export interface Hop { event: string; hop?: number; depth: number; node?: string; rtt_ms?: number; face?: number; uri?: string; verdict?: string; sentence?: string }
export interface Across { name: string; nodes: number; ends: { reached: boolean; sentence: string }[]; pinged: number | null; hops: Hop[] }

export interface RouterLink { from: string; to: string; cost: number; is_direct: boolean; is_used: boolean }
export interface Neighbour { router: string; faces: number[]; cost: number; up_s: number; heard_s: number; in_step: boolean; usable: boolean; rtt_ms: number | null; loss_percent: number | null }
export interface Routing {
  map: { router: string; network: string; routers: { name: string; cost: number; by: string[]; prefixes: number }[]; links: RouterLink[] };
  networks: string[]; neighbours: Neighbour[]; held: string[];
  /** Prefixes with their costs: those of this router, and those of others with who announces them and by which faces. */
  local: [string, number][]; remote: { prefix: string; exits: [string, number][]; ways: [number, number][] }[];
}
/** The state of another node, as it told it. */
export interface Other {
  node: string; version: string; start_ms: number; now_ms: number; faces: number; faces_max: number; routes: number;
  pit: { entries: number; entries_max: number; bytes: number }; cs: { entries: number; entries_max: number; bytes: number; hits?: number; misses?: number };
  satisfied_interests: number; unsatisfied_interests: number; in_bytes: number; out_bytes: number; dropped: Record<string, number>;
  links: { face: number; remote: string; in_packets: number; out_packets: number; in_bytes: number; out_bytes: number }[]; links_left_out: number;
  neighbours: { router: string; cost: number; usable: boolean }[];
}
export interface LabRun {
  experiment: string; run: string; phase: string | null; why: string | null; total: number; done: number | null; took_s: number; changed_ms: number;
  now: { label: string; replication: number; phase: string; attempts: number; began_ms: number; why: string | null } | null; reports: string[];
}
export interface Lab { now_ms: number; runs: LabRun[]; left_out: number }
export interface Tree {
  publisher: string; path: { number: number; from: string; to: string }[]; hops: number;
  route: { form: string; table?: number; ones?: number; filter?: string; stages?: number } | null;
  beside: number; false_positives: number | null; strays: number[] | null;
}
export interface PushItem { of: string; scope: boolean; ids: string[]; paths: (string | null)[]; strategy: string; publishers: string[]; subscribers: string[] }
export interface PushNode { node: string; inside: number; roles: string[]; links: { to: string; number: number; cost: number }[] }
export interface Push {
  status: { node: string; inside: number; roles: string[]; homes: { node: string; roles: string[] }[]; links: { face: number; uri: string | null; number: number; cost: number; neighbour: string | null; domain: string | null }[] };
  graph: { rendezvous: boolean; rendezvous_nodes: string[]; total: number; vertices: PushItem[] };
  topology: { manager: false; managers: string[] } | { manager: true; nodes: PushNode[]; domains: { domain: string; path: string[] }[]; matches: { ids: string[]; publishers: string[]; subscribers: string[]; trees: Tree[] }[] };
}

/** An answer that says no; `status` is 0 where there was none. */
export class Refusal extends Error {
  constructor(readonly status: number, message: string, readonly next: string | null) {
    super(message);
  }
}

/** Takes the code out of the address and has a cookie for it. */
async function enter(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return;
  history.replaceState(null, "", location.pathname);
  // A code that is used or too old: the cookie of this browser may still be good.
  await fetch("/v1/session", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ code }) }).catch(() => undefined);
}

const entered = enter();

async function answered<T>(work: () => Promise<Response>): Promise<T> {
  await entered;
  let answer: Response, text: string;
  try {
    answer = await work();
    text = await answer.text();
  } catch {
    throw new Refusal(0, "the console does not answer", "start `onym console` again, and open the address that it prints");
  }
  if (answer.ok) return JSON.parse(text) as T;
  let message = text, next: string | null = null;
  try { ({ message, next } = JSON.parse(text).error); } catch { /* it is no JSON: shown as it is */ }
  throw new Refusal(answer.status, message, next);
}

export const get = <T>(path: string) => answered<T>(() => fetch(path));

export const post = <T>(path: string, body: unknown) =>
  answered<T>(() => fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }));

/** Server-sent events of `path`; what `tell` gets is the event's name and its data. Ends with `signal`. */
export async function events(path: string, signal: AbortSignal, tell: (event: string, data: string) => void): Promise<void> {
  await entered;
  const answer = await fetch(path, { signal });
  if (!answer.ok || !answer.body) return answered(() => Promise.resolve(answer));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop()!;
    for (const frame of frames) {
      let event = "message", data = "";
      for (const line of frame.split("\n")) {
        if (line.startsWith("event: ")) event = line.slice(7);
        if (line.startsWith("data: ")) data = line.slice(6);
      }
      if (data) tell(event, data);
    }
  }
}
