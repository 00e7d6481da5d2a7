// Parts of drawings: elements made without markup, and those that can be chosen, by the keyboard as well.

export function el<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number> = {}): SVGElementTagNameMap[K] {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

/** Makes `node` a button with a name that is read out. */
export function act(node: SVGElement, label: string, chosen: () => void): void {
  node.setAttribute("tabindex", "0");
  node.setAttribute("role", "button");
  node.setAttribute("aria-label", label);
  node.addEventListener("click", chosen);
  node.addEventListener("keydown", (e) => {
    if (e.key === "Enter" || e.key === " ") { e.preventDefault(); chosen(); }
  });
}

/** Lines of text around a place, and what keeps other lines from running through them. */
export function label(at: { x: number; y: number }, lines: readonly string[], kind = ""): SVGElement[] {
  const LINE = 15, wide = 8 + 6.6 * Math.max(...lines.map((text) => text.length)), high = lines.length * LINE + 2;
  const text = el("text", { class: `rates ${kind}` }), top = at.y - ((lines.length - 1) * LINE) / 2 + 4;
  lines.forEach((line, i) => {
    const row = el("tspan", { x: at.x, y: top + i * LINE });
    row.textContent = line;
    text.append(row);
  });
  return [el("rect", { class: "behind", x: at.x - wide / 2, y: at.y - high / 2, width: wide, height: high, rx: 4 }), text];
}
