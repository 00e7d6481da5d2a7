// A table of any length: only the rows that are seen are elements, and these are used again.
import { h } from "./dom";

export interface Column<T> {
  name: string;
  /** Share of the width, as in a grid. */
  width: string;
  text(row: T): string;
  /** By what it is sorted, where that is no text; such a column stands at the right edge. */
  number?(row: T): number;
  /** Left out where the table has little room. */
  wide?: boolean;
}

export interface Options<T> {
  label: string;
  key(row: T): string;
  chosen?(row: T): void;
  /** Column that is sorted by first, and whether from above. */
  order?: [number, boolean];
  /** Shown where there is nothing. */
  empty: string;
}

/** The height of a row and of the head above them, in CSS pixels. */
const HEIGHT = 30;
/** Rows that are drawn beyond the edges. */
const BEYOND = 4;

interface Drawn { row: HTMLElement; cells: HTMLElement[]; at: number }

const numbers = new Intl.Collator("en", { numeric: true });

let made = 0;

export class Table<T> {
  readonly box = h("div", undefined, { class: "table", role: "grid", tabindex: "0" });
  private readonly view = h("div", undefined, { class: "rows", role: "presentation" });
  private readonly space = h("div", undefined, { class: "space", role: "rowgroup" });
  private readonly id = `table-${++made}`;
  private readonly empty: HTMLElement;
  private readonly heads: HTMLElement[];
  private readonly drawn: Drawn[] = [];
  private all: T[] = [];
  private rows: T[] = [];
  private words = "";
  private order: [number, boolean];
  private selected = -1;
  private isDue = false;

  constructor(private readonly columns: readonly Column<T>[], private readonly options: Options<T>) {
    this.order = options.order ?? [0, false];
    this.box.setAttribute("aria-label", options.label);
    this.box.style.setProperty("--columns", columns.map((c) => c.width).join(" "));
    this.box.style.setProperty("--narrow", columns.filter((c) => !c.wide).map((c) => c.width).join(" "));
    const head = h("div", undefined, { class: "head", role: "row" });
    this.heads = columns.map((column, at) => {
      const cell = h("div", undefined, { role: "columnheader", class: this.kind(column) });
      const sort = h("button", column.name, { type: "button" });
      sort.addEventListener("click", () => this.sortBy(at));
      cell.append(sort);
      return cell;
    });
    head.append(...this.heads);
    const group = h("div", undefined, { role: "rowgroup", class: "heads" });
    group.append(head);
    this.empty = h("p", options.empty, { class: "empty" });
    this.view.append(group, this.space, this.empty);
    this.box.append(this.view);
    this.view.addEventListener("scroll", () => this.later(), { passive: true });
    this.box.addEventListener("keydown", (e) => {
      if (e.target === this.box) this.key(e);
    });
    new ResizeObserver(() => this.later()).observe(this.view);
    this.showOrder();
  }

  /** Shows other rows; what was selected stays so. */
  set(rows: T[]): void {
    this.all = rows;
    this.arrange();
  }

  /** Shows the rows in which all words of `words` are found. */
  filter(words: string): void {
    this.words = words.trim().toLowerCase();
    this.arrange();
    this.view.scrollTop = 0;
  }

  get shown(): number {
    return this.rows.length;
  }

  private kind(column: Column<T>): string {
    return `${column.number ? "number" : ""} ${column.wide ? "wide" : ""}`.trim();
  }

  private sortBy(at: number): void {
    // A number is wanted from above first.
    this.order = this.order[0] === at ? [at, !this.order[1]] : [at, this.columns[at]!.number !== undefined];
    this.showOrder();
    this.arrange();
  }

  private showOrder(): void {
    this.heads.forEach((head, at) => head.setAttribute("aria-sort", at !== this.order[0] ? "none" : this.order[1] ? "descending" : "ascending"));
  }

  private arrange(): void {
    const was = this.rows[this.selected];
    const key = was && this.options.key(was);
    const words = this.words.split(/\s+/).filter(Boolean);
    const fits = (row: T) => {
      const text = this.columns.map((c) => c.text(row)).join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    };
    const rows = words.length === 0 ? [...this.all] : this.all.filter(fits);
    const [at, down] = this.order, column = this.columns[at]!, sign = down ? -1 : 1;
    if (column.number) {
      const of = new Map(rows.map((row) => [row, column.number!(row)]));
      rows.sort((a, b) => sign * (of.get(a)! - of.get(b)!));
    } else {
      const of = new Map(rows.map((row) => [row, column.text(row)]));
      rows.sort((a, b) => sign * numbers.compare(of.get(a)!, of.get(b)!));
    }
    this.rows = rows;
    this.selected = key === undefined ? -1 : rows.findIndex((row) => this.options.key(row) === key);
    this.box.setAttribute("aria-rowcount", String(rows.length + 1));
    this.empty.hidden = rows.length > 0;
    this.space.style.height = `${rows.length * HEIGHT}px`;
    this.drawn.forEach((drawn) => { drawn.at = -1; });
    this.draw();
  }

  private later(): void {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.draw();
    });
  }

  private draw(): void {
    const first = Math.max(0, Math.floor(this.view.scrollTop / HEIGHT) - BEYOND);
    const last = Math.min(this.rows.length, first + Math.ceil(this.view.clientHeight / HEIGHT) + 2 * BEYOND);
    while (this.drawn.length < last - first) this.drawn.push(this.make());
    // A row keeps its element while it is seen: which element is by its number.
    const count = this.drawn.length;
    for (let at = first; at < first + count; at++) {
      const drawn = this.drawn[at % count]!;
      if (at >= last) {
        drawn.row.hidden = true;
        drawn.at = -1;
      } else if (drawn.at !== at) {
        this.fill(drawn, at);
      }
      if (at < last) drawn.row.setAttribute("aria-selected", String(at === this.selected));
    }
    const active = this.drawn.find((drawn) => drawn.at >= 0 && drawn.at === this.selected);
    if (active) this.box.setAttribute("aria-activedescendant", active.row.id);
    else this.box.removeAttribute("aria-activedescendant");
  }

  private make(): Drawn {
    const row = h("div", undefined, { role: "row", class: "row", id: `${this.id}-${this.drawn.length}` });
    const cells = this.columns.map((column) => h("div", undefined, { role: "gridcell", class: this.kind(column) }));
    row.append(...cells);
    const drawn = { row, cells, at: -1 };
    row.addEventListener("click", () => this.select(drawn.at, true));
    this.space.append(row);
    return drawn;
  }

  private fill(drawn: Drawn, at: number): void {
    const value = this.rows[at]!;
    drawn.at = at;
    drawn.row.hidden = false;
    drawn.row.style.transform = `translateY(${at * HEIGHT}px)`;
    drawn.row.setAttribute("aria-rowindex", String(at + 2));
    this.columns.forEach((column, i) => {
      const cell = drawn.cells[i]!, text = column.text(value);
      if (cell.textContent !== text) {
        cell.textContent = text;
        cell.title = text;
      }
    });
  }

  private select(at: number, isChosen: boolean): void {
    if (at < 0 || at >= this.rows.length) return;
    this.selected = at;
    // The head covers the first row's height of what is seen.
    const top = at * HEIGHT, { scrollTop } = this.view, seen = this.view.clientHeight - HEIGHT;
    if (top < scrollTop) this.view.scrollTop = top;
    if (top + HEIGHT > scrollTop + seen) this.view.scrollTop = top + HEIGHT - seen;
    this.draw();
    if (isChosen) this.options.chosen?.(this.rows[at]!);
  }

  private key(e: KeyboardEvent): void {
    const page = Math.max(1, Math.floor(this.view.clientHeight / HEIGHT) - 2), last = this.rows.length - 1;
    const to: Record<string, number> = {
      ArrowDown: this.selected + 1, ArrowUp: this.selected - 1,
      PageDown: this.selected + page, PageUp: this.selected - page, Home: 0, End: last,
    };
    if (e.key === "Enter" || e.key === " ") this.select(this.selected, true);
    else if (e.key in to) this.select(Math.min(last, Math.max(0, to[e.key]!)), false);
    else return;
    e.preventDefault();
  }
}
