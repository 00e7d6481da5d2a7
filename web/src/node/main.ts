// The page of a node: one view at a time, each asks while it is seen.
import { $, h, theme } from "../shared/dom";
import { repaint } from "../shared/series";
import { get, Refusal, type About } from "./api";
import { ask } from "./ask";
import { lab } from "./lab";
import { faces, routes, strategies } from "./lists";
import { live } from "./live";
import { nodes } from "./nodes";
import { overview } from "./overview";
import { fault, sentence, type View } from "./page";
import { push } from "./push";
import { routing } from "./routing";
import { store } from "./store";

const VIEWS: Record<string, [string, () => View]> = {
  overview: ["Overview", overview],
  faces: ["Faces", faces],
  routes: ["Routes", routes],
  strategies: ["Strategies", strategies],
  store: ["Cache and PIT", store],
  routing: ["Routing map", routing],
  push: ["Push topology", push],
  nodes: ["Other nodes", nodes],
  live: ["Live packets", live],
  ask: ["Explain and trace", ask],
  lab: ["Laboratory", lab],
};

const made = new Map<string, View>();
let seen: { word: string; view: View } | null = null;
let wake: () => void = () => undefined;
let isAway = false;

/** Who was not let in is shown nothing; when the node is away, what was. */
function away(error: unknown): void {
  isAway = true;
  $("view").hidden = error instanceof Refusal && error.status === 401;
  fault(sentence(error));
}

function open(): void {
  const word = location.hash.slice(1) in VIEWS ? location.hash.slice(1) : "overview";
  if (seen?.word === word) return;
  seen?.view.leave?.();
  fault("");
  const [title, make] = VIEWS[word]!;
  const view = made.get(word) ?? make();
  made.set(word, view);
  seen = { word, view };
  $("view").replaceChildren(view.box);
  $("view").setAttribute("aria-label", title);
  document.title = `${title} · Onym`;
  for (const link of $("views").querySelectorAll("a")) {
    if (link.hash === `#${word}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  wake();
}

async function about(): Promise<void> {
  const { name, version } = await get<About>("/v1/about");
  $("network").textContent = `${name} · ${version}`;
}

async function watch(): Promise<never> {
  let isKnown = false, of: typeof seen = null;
  for (;;) {
    try {
      of = seen!;
      if (!isKnown && !of.view.alone) {
        await about();
        isKnown = true;
      }
      await of.view.refresh();
      if (isAway) {
        isAway = false;
        $("view").hidden = false;
        fault("");
      }
    } catch (error) {
      isKnown = false;
      away(error);
    }
    // Another view was opened meanwhile: it is asked at once.
    if (of !== seen && !isAway) continue;
    const pause = isAway ? 2000 : Math.max(of!.view.every, document.hidden ? 5000 : 0);
    await new Promise<void>((done) => {
      const timer = setTimeout(done, pause);
      wake = () => { clearTimeout(timer); done(); };
    });
  }
}

$("views").append(...Object.entries(VIEWS).map(([word, [title]]) => h("a", title, { href: `#${word}` })));
theme($("theme"), repaint);
addEventListener("hashchange", open);
open();
void watch();
