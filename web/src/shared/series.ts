// Values over time, drawn by uPlot, with what a screen reader says of them.
import uPlot from "uplot";
import { h } from "./dom";

export interface Line { name: string; colour: "--accent" | "--good" | "--bad" }

const HEIGHT = 132;

/** A colour of the style sheet as a canvas takes it: the one of now, dark or light. */
function drawn(name: string): string {
  const probe = h("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const all = new Set<Series>();

/** Draws all anew: the colours are others. */
export function repaint(): void {
  for (const series of all) series.repaint();
}

export class Series {
  readonly box = h("figure", undefined, { class: "series" });
  private readonly said = h("span", undefined, { class: "said" });
  private readonly place = h("div", undefined, { class: "plot", role: "img" });
  private plot: uPlot | null = null;
  private colours = new Map<string, string>();

  constructor(private readonly title: string, private readonly lines: readonly Line[], private readonly shown: (value: number) => string) {
    const caption = h("figcaption");
    const keys = h("span", undefined, { class: "keys" });
    if (lines.length > 1) {
      for (const line of lines) {
        const key = h("span", line.name, { class: "key" });
        key.style.setProperty("--key", `var(${line.colour})`);
        keys.append(key);
      }
    }
    caption.append(h("strong", title), keys, this.said);
    this.box.append(caption, this.place);
    new ResizeObserver(() => this.fit()).observe(this.place);
    all.add(this);
  }

  /** Shows values at moments in seconds; a gap is null. */
  set(at: number[], values: (number | null)[][]): void {
    const last = values.map((line) => line.at(-1) ?? null);
    const most = Math.max(0, ...values.flat().map((v) => v ?? 0));
    const words = this.lines.map((line, i) => `${this.lines.length > 1 ? `${line.name} ` : ""}${last[i] === null ? "–" : this.shown(last[i]!)}`);
    this.said.textContent = at.length === 0 ? "nothing yet" : `${words.join(", ")}; at most ${this.shown(most)}`;
    this.place.setAttribute("aria-label", `${this.title} over time: ${this.said.textContent}`);
    const data = [at, ...values] as uPlot.AlignedData;
    if (this.plot) this.plot.setData(data);
    else if (this.place.clientWidth > 0) this.make(data);
    else this.waiting = data;
  }

  private waiting: uPlot.AlignedData | null = null;

  /** It is shown no more. */
  end(): void {
    all.delete(this);
    this.plot?.destroy();
  }

  repaint(): void {
    this.colours.clear();
    this.plot?.redraw(false);
  }

  private colour(name: string): string {
    let found = this.colours.get(name);
    if (found === undefined) this.colours.set(name, found = drawn(name));
    return found;
  }

  private fit(): void {
    const width = this.place.clientWidth;
    if (width === 0) return;
    if (this.plot) this.plot.setSize({ width, height: HEIGHT });
    else if (this.waiting) this.make(this.waiting);
  }

  private make(data: uPlot.AlignedData): void {
    const axis = { stroke: () => this.colour("--dim"), grid: { stroke: () => this.colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const options: uPlot.Options = {
      width: this.place.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { sync: { key: "onym" }, drag: { x: false, y: false }, points: { size: 5 } },
      padding: [6, 8, 0, 0],
      scales: { y: { range: (_, _low, high) => [0, high > 0 ? high * 1.08 : 1] } },
      axes: [
        { ...axis, size: 22, space: 60, values: (_, moments) => moments.map((m) => new Date(m * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })) },
        { ...axis, size: 56, space: 30, values: (_, levels) => levels.map((v) => this.shown(v)) },
      ],
      series: [{}, ...this.lines.map((line) => ({ label: line.name, stroke: () => this.colour(line.colour), width: 1.5, points: { show: false } }))],
    };
    this.waiting = null;
    this.plot = new uPlot(options, data, this.place);
  }
}
