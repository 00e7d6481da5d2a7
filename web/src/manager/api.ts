// The manager's interface (spec/openapi.json), as far as the page uses it.

export interface Sample { at_ms: number; cores: number; load: number; memory: number; interests: number; data: number; bytes: number; hit_ratio: number | null }
export interface Fn { kind: string; origin: { why: string; of?: string }; state: string; instance: string; handle: string; control: string; listeners: Record<string, string>; quota: number | null; scalable: { Ok: null } | { Err: string }; sample: Sample }
export interface Link { from: string; to: string; side: "consumer" | "producer"; transport: string; state: string; interests: number; data: number; bytes: number }
export interface View { network: string; driver: string; settled: boolean; functions: Record<string, Fn>; links: Link[]; registered: Record<string, string[]> }
export interface Event { seq: number; at_ms: number; kind: string; object: string; text: string }
export interface Done { changed: boolean; steps: string[]; took_ms: number }

const TOKEN = "onym-token";

/** Takes the code of `onym net page` out of the address and has a token for it. */
async function enter(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return;
  history.replaceState(null, "", location.pathname);
  const answer = await fetch("/v1/session", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ code }) });
  // A code that is used or too old: the token of this tab may still be good.
  if (answer.ok) sessionStorage.setItem(TOKEN, JSON.parse(await answer.text()).token);
}

const entered = enter();

/** Asks for the token when the manager wants one. */
async function askToken(): Promise<void> {
  const dialog = document.querySelector<HTMLDialogElement>("#token")!;
  const input = dialog.querySelector("input")!;
  if (!dialog.open) dialog.showModal();
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  sessionStorage.setItem(TOKEN, input.value);
}

export async function ask<T>(method: string, path: string, body?: unknown, kind = "application/json"): Promise<T> {
  await entered;
  for (;;) {
    const headers: Record<string, string> = {};
    const token = sessionStorage.getItem(TOKEN);
    if (token) headers["authorization"] = `Bearer ${token}`;
    if (body !== undefined) headers["content-type"] = kind;
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const answer = await fetch(path, { method, headers, ...(body === undefined ? {} : { body: text }) });
    if (answer.status === 401) {
      await askToken();
      continue;
    }
    const octets = await answer.text();
    if (!answer.ok) {
      let message = octets, code = "";
      try { ({ message, code } = JSON.parse(octets).error); } catch { /* it is no JSON: shown as it is */ }
      if (code === "confirm" && !path.includes("confirm=") && confirm(`${message.split(";")[0]}. Go on?`)) {
        path += `${path.includes("?") ? "&" : "?"}confirm=true`;
        continue;
      }
      throw new Error(message);
    }
    return (answer.headers.get("content-type") ?? "").includes("json") ? JSON.parse(octets) : (octets as T);
  }
}
