// What an Interest for a name would meet: at this node, and over nodes.
import { button, facts, field, h } from "../shared/dom";
import { get, post, type Across, type Hop } from "./api";
import { fault, sentence, type View } from "./page";

interface NextHop { face: number; cost: number; uri: string; up: boolean; barred: string | null }
interface Told { sentence: string; verdict: string; decides: string; scope: string; shard: number; cached: boolean; pending: number[] | null; asked: number[]; fib_prefix: string | null; next_hops: NextHop[]; strategy: string; strategy_prefix: string; chosen: number[]; discovery: { sentence: string } }

function hopText(hop: NextHop, chosen: number[]): string {
  const how = hop.barred ? `, not used: ${hop.barred}` : chosen.includes(hop.face) ? ", chosen" : "";
  return `face ${hop.face} cost ${hop.cost} ${hop.uri}${hop.up ? "" : ", down"}${how}`;
}

function explained(told: Told): Node[] {
  const pending = told.pending ? `asked for by faces ${told.pending.join(", ") || "none"}, asked of faces ${told.asked.join(", ") || "none"}` : "no";
  const hops = h("ul");
  hops.append(...told.next_hops.map((hop) => h("li", hopText(hop, told.chosen))));
  return [h("p", told.sentence, { class: "answer" }), facts([
    ["verdict", told.verdict], ["decided by", told.decides], ["scope", told.scope], ["shard", String(told.shard)],
    ["cached", told.cached ? "yes" : "no"], ["pending", pending], ["route", told.fib_prefix ?? "none"],
    ["strategy", `${told.strategy} for ${told.strategy_prefix}`], ["if it may be a prefix", told.discovery.sentence],
  ]), ...(told.next_hops.length ? [h("h3", "Next hops"), hops] : [])];
}

function hopLine(hop: Hop): HTMLElement {
  const row = h("li");
  row.style.paddingInlineStart = `${hop.depth * 1.5}rem`;
  if (hop.event === "branch") row.append(`by face ${hop.face} ${hop.uri} of ${hop.node}:`);
  else if (hop.event === "silent") row.append(h("b", String(hop.hop)), " * (no answer)");
  else {
    row.append(h("b", String(hop.hop)), ` ${hop.node}  ${(hop.rtt_ms ?? 0).toFixed(2)} ms  `, h("span", hop.sentence ?? hop.verdict ?? "", { class: "note" }));
  }
  return row;
}

function traced(told: Across): Node[] {
  const hops = h("ol", undefined, { class: "hops" });
  hops.append(...told.hops.map(hopLine));
  const ends = told.ends.map((end) => h("p", end.sentence, { class: `answer ${end.reached ? "good" : "bad"}` }));
  return [...ends, h("h3", "Way"), hops];
}

export function ask(): View {
  const box = h("div", undefined, { class: "ask" });
  const question = h("form", undefined, { class: "bar" });
  const name = field("name", "Name, such as /example/file", { required: "" });
  const answer = h("section", undefined, { "aria-label": "Answer", "aria-live": "polite" });
  answer.hidden = true;
  const go = async (what: string, work: () => Promise<Node[]>) => {
    if (!question.reportValidity()) return;
    fault("");
    answer.hidden = false;
    answer.replaceChildren(h("p", `${what} …`, { class: "note" }));
    try {
      answer.replaceChildren(...await work());
    } catch (error) {
      answer.hidden = true;
      fault(`${what}: ${sentence(error)}`);
    }
  };
  const explain = () => go(`explain ${name.value}`, async () => explained(await get<Told>(`/v1/explain?name=${encodeURIComponent(name.value)}`)));
  const trace = () => go(`trace ${name.value}`, async () => traced(await post<Across>("/v1/trace", { name: name.value })));
  question.append(name, h("button", "Explain"), button("Trace", () => void trace()));
  question.addEventListener("submit", (e) => {
    e.preventDefault();
    void explain();
  });
  box.append(question, h("p", "Explain asks this node what it would do with an Interest, and sends nothing. Trace follows the name from node to node.", { class: "note" }), answer);
  return { box, every: 60_000, refresh: () => Promise.resolve() };
}
