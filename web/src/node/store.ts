// The content store and the PIT: how full, how useful, and what management lets change.
import { button, choose, facts, field, form, h } from "../shared/dom";
import { count, octets, percent } from "../shared/format";
import { get, post, type Status, type Top } from "./api";
import { run, type View } from "./page";

export function store(): View {
  const box = h("div", undefined, { class: "overview" });
  const cache = h("section", undefined, { "aria-label": "Content store" });
  const pending = h("section", undefined, { "aria-label": "Pending Interests" });
  const change = h("section", undefined, { "aria-label": "Change the content store" });
  const onOff = (name: string, label: string) => {
    const made = choose([`${label}: as it is`, `${label}: on`, `${label}: off`], label);
    made.name = name;
    return made;
  };
  const said = (text: string | undefined) => (text?.endsWith("on") ? true : text?.endsWith("off") ? false : undefined);
  change.append(h("h2", "Change"),
    form([field("capacity", "Packets at most", { type: "number", min: "0" }), onOff("admit", "Admit"), onOff("serve", "Serve")], "Change store", ({ capacity, admit, serve }) => {
      const wanted = { ...(capacity ? { capacity: Number(capacity) } : {}), admit: said(admit), serve: said(serve) };
      void run("change the store", () => post("/v1/cs/config", wanted), refresh);
    }),
    form([field("prefix", "Prefix", { required: "" })], "Erase", ({ prefix }) => void run(`erase ${prefix}`, () => post("/v1/cs/erase", { prefix }), refresh)),
    button("Erase all", () => { if (confirm("Erase everything that is cached?")) void run("erase all", () => post("/v1/cs/erase", { prefix: "/" }), refresh); }));
  box.append(cache, pending, change);

  async function refresh(): Promise<void> {
    const [{ content_store: cs }, { now: { node } }] = await Promise.all([get<Status>("/v1/status"), get<Top>("/v1/top")]);
    const asked = cs.hits + cs.misses;
    cache.replaceChildren(h("h2", "Content store"), facts([
      ["packets", `${count(cs.entries)} of ${count(cs.capacity)}`],
      ["memory", `${octets(node.cs.bytes)} of ${octets(node.cs.bytes_max)}`],
      ["hits", count(cs.hits)], ["misses", count(cs.misses)],
      ["answered", asked > 0 ? percent(cs.hits / asked) : "–"],
      ["admits", cs.flags.includes("admit") ? "yes" : "no"], ["serves", cs.flags.includes("serve") ? "yes" : "no"],
    ]));
    pending.replaceChildren(h("h2", "Pending Interests"), facts([
      ["entries", `${count(node.pit.entries)} of ${count(node.pit.entries_max)}`],
      ["memory", `${octets(node.pit.bytes)} of ${octets(node.pit.bytes_max)}`],
      ["answered", count(node.satisfied_interests)], ["not answered", count(node.unsatisfied_interests)],
    ]));
  }
  return { box, every: 2000, refresh };
}
