// What all views share: the node as it is asked, what went wrong, and work that is told of.
import { $ } from "../shared/dom";
import { Refusal } from "./api";

/** A view: made when it is opened, told to look again while it is seen. */
export interface View {
  box: HTMLElement;
  /** Asks and shows what is new. */
  refresh(): Promise<void>;
  /** Milliseconds until it wants to be asked again. */
  every: number;
  /** It needs no node. */
  alone?: boolean;
  /** It is seen no more. */
  leave?(): void;
}

export function fault(text: string): void {
  if ($("fault").textContent !== text) $("fault").textContent = text;
  $("fault").hidden = text === "";
}

export function sentence(error: unknown): string {
  if (error instanceof Refusal) return error.next ? `${error.message}\n${error.next}` : error.message;
  return (error as Error).message;
}

/** What the node told; where it has no such part, it says so in `none`, in place of `all`. */
export async function told<T>(none: HTMLElement, all: HTMLElement, work: () => Promise<T>): Promise<T | null> {
  try {
    const found = await work();
    none.hidden = true;
    all.hidden = false;
    return found;
  } catch (error) {
    if (!(error instanceof Refusal && (error.status === 404 || error.status === 403))) throw error;
    if (none.textContent !== sentence(error)) none.textContent = sentence(error);
    none.hidden = false;
    all.hidden = true;
    return null;
  }
}

/** Does what was asked for and tells how it went; what the node refuses is its own sentence. */
export async function run(what: string, work: () => Promise<unknown>, then: () => Promise<void>): Promise<void> {
  fault("");
  $("state").className = "";
  $("state").textContent = `${what} …`;
  try {
    await work();
    $("state").className = "good";
    $("state").textContent = `${what}: done`;
    await then();
  } catch (error) {
    $("state").textContent = "";
    fault(`${what}: ${sentence(error)}`);
  }
}
