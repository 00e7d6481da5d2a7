// Elements, made without markup: text is only ever set as text.

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, text?: string, attributes: Record<string, string> = {}): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export function button(text: string, work: () => void): HTMLButtonElement {
  const made = h("button", text, { type: "button" });
  made.addEventListener("click", work);
  return made;
}

export function choose(options: readonly string[], label: string): HTMLSelectElement {
  const made = h("select", undefined, { "aria-label": label });
  for (const option of options) made.append(h("option", option, { value: option }));
  return made;
}

export const $ = (id: string) => document.getElementById(id)!;

/** A form whose fields are read by their names when it is sent. */
export function form(fields: Node[], send: string, work: (fields: Record<string, string>) => void): HTMLFormElement {
  const made = h("form");
  made.append(...fields, h("button", send));
  made.addEventListener("submit", (e) => {
    e.preventDefault();
    const values: Record<string, string> = {};
    new FormData(made).forEach((value, key) => { values[key] = String(value); });
    work(values);
  });
  return made;
}

/** A field with a label that is read out; what it is for is also in the empty field. */
export function field(name: string, label: string, attributes: Record<string, string> = {}): HTMLInputElement {
  return h("input", undefined, { name, placeholder: label, "aria-label": label, autocomplete: "off", spellcheck: "false", ...attributes });
}

/** Pairs of a word and a value. */
export function facts(rows: readonly (readonly [string, string])[]): HTMLDListElement {
  const list = h("dl");
  for (const [key, value] of rows) list.append(h("dt", key), h("dd", value));
  return list;
}

/** What becomes of the page's theme; `changed` draws anew what has colours of its own. */
export function theme(control: HTMLElement, changed: () => void = () => undefined): void {
  const root = document.documentElement;
  const kept = localStorage.getItem("onym-theme");
  if (kept) root.dataset["theme"] = kept;
  control.addEventListener("click", () => {
    const dark = root.dataset["theme"] ? root.dataset["theme"] === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset["theme"] = dark ? "light" : "dark";
    localStorage.setItem("onym-theme", root.dataset["theme"]);
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}
