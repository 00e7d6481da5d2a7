// The manager's page: the live graph, what is chosen, changes by hand, the event log.
import { ask, type Done, type Event, type View } from "./api";
import { $, button, choose, h, theme } from "../shared/dom";
import { repaint } from "../shared/series";
import { KINDS, show, type Do } from "./detail";
import { draw, type Choice } from "./graph";

let view: View = { network: "", driver: "", settled: false, functions: {}, links: [], registered: {} };
let choice: Choice = null;

const fault = (text: string) => {
  $("fault").textContent = text;
  $("fault").hidden = text === "";
};

const run: Do = async (what, work) => {
  fault("");
  $("state").textContent = `${what} …`;
  try {
    const done: Done = await work();
    $("state").textContent = done.changed ? `${what}: done in ${done.took_ms} ms` : `${what}: nothing to do`;
    await refresh(true);
    actions();
  } catch (error) {
    fault(`${what}: ${(error as Error).message}`);
  }
};

async function refresh(fresh = false): Promise<void> {
  view = await ask<View>("GET", "/v1/network");
  $("network").textContent = view.network ? `${view.network} on ${view.driver}` : "";
  const state = $("state");
  state.className = view.settled ? "good" : "bad";
  if (!state.textContent?.includes("…")) state.textContent = view.network === "" ? "no network" : view.settled ? "as wanted" : "mending";
  draw($("graph"), view, choice, pick);
  await show($("detail"), view, choice, run, fresh);
}

function pick(next: Choice): void {
  choice = next;
  draw($("graph"), view, choice, pick);
  void show($("detail"), view, choice, run, true);
}

function presetForm(): HTMLElement {
  const form = h("form");
  const names = choose(["nfd", "minimal", "interlinked", "scaling", "poisoning"], "Preset");
  form.append(names, button("Start preset", () => void run(names.value, () => ask("PUT", `/v1/presets/${names.value}`))));
  form.append(button("Stop all", () => {
    if (confirm("Stop all functions and forget the description?")) void run("stop", () => ask("DELETE", "/v1/description?confirm=true"));
  }));
  return form;
}

function deployForm(): HTMLElement {
  const form = h("form");
  const name = h("input", undefined, { placeholder: "name", "aria-label": "Name of the new function", required: "" });
  const kind = choose(KINDS, "Kind of the new function");
  form.append(name, kind, h("button", "Deploy"));
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    void run(`deploy ${name.value}`, () => ask("PUT", `/v1/functions/${name.value}`, { kind: kind.value }));
  });
  return form;
}

function linkForm(): HTMLElement {
  const form = h("form");
  const names = Object.keys(view.functions);
  const from = choose(names, "From"), to = choose(names, "To"), side = choose(["consumer", "producer"], "Side");
  form.append(from, to, side, h("button", "Link"));
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    void run("link", () => ask("PUT", "/v1/links", { from: from.value, to: to.value, side: side.value }));
  });
  return form;
}

function describeForm(): HTMLElement {
  const details = h("details");
  const text = h("textarea", undefined, { "aria-label": "Description in TOML", spellcheck: "false" });
  const send = (dry: boolean) => ask<Done>("PUT", `/v1/description?form=toml&dry_run=${dry}`, text.value, "application/toml");
  const plan = h("pre");
  const form = h("form");
  form.append(
    button("Load", () => void ask<string>("GET", "/v1/description?form=toml").then((t) => { text.value = t; }, (e: Error) => fault(e.message))),
    button("Plan", () => void send(true).then((d) => { plan.textContent = d.steps.join("\n") || "nothing to do"; fault(""); }, (e: Error) => fault(e.message))),
    button("Apply", () => void run("apply", () => send(false))),
  );
  details.append(h("summary", "Description"), text, form, plan);
  return details;
}

function actions(): void {
  $("actions").replaceChildren(h("h2", "Change"), presetForm(), deployForm(), linkForm(), describeForm());
}

async function events(): Promise<never> {
  let after = 0;
  for (;;) {
    try {
      const answer = await ask<{ events: Event[]; last: number }>("GET", `/v1/events?after=${after}&wait_ms=${after ? 20000 : 0}`);
      for (const event of answer.events) {
        const row = h("li", undefined, { class: event.kind });
        const at = new Date(event.at_ms);
        row.append(h("time", at.toLocaleTimeString(), { datetime: at.toISOString() }), h("span", event.text));
        $("events").prepend(row);
      }
      while ($("events").childElementCount > 300) $("events").lastElementChild?.remove();
      after = Math.max(1, answer.last);
    } catch {
      await new Promise((r) => setTimeout(r, 1000));
      after = 0;
      $("events").replaceChildren();
    }
  }
}

async function watch(): Promise<never> {
  for (;;) {
    try {
      await refresh();
    } catch (error) {
      $("state").className = "bad";
      $("state").textContent = `no manager: ${(error as Error).message}`;
    }
    await new Promise((r) => setTimeout(r, document.hidden ? 5000 : 1000));
  }
}

theme($("theme"), repaint);
addEventListener("resize", () => draw($("graph"), view, choice, pick));
void refresh(true).catch(() => undefined).then(actions);
void events();
void watch();
