// What the tests of both pages share.
import { resolve } from "node:path";
import { chromium } from "playwright-core";

export const onym = resolve(process.env.ONYM ?? "../target/release/onym");

const flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });

/** Notes what goes wrong in a page. */
export function faultsOf(page) {
  const faults = [];
  page.on("pageerror", (e) => faults.push(e.message));
  page.on("console", (m) => m.type() === "error" && faults.push(m.text()));
  return faults;
}

/** What a program writes on a side until a line that `found` makes something of. */
export function said(program, side, found) {
  return new Promise((done, fail) => {
    let text = "";
    const look = (more) => {
      text += more;
      // The last line may not be whole yet.
      for (const line of text.split("\n").slice(0, -1)) {
        const made = found(line);
        if (made !== undefined) {
          program[side].off("data", look);
          program.off("exit", ended);
          return done(made);
        }
      }
    };
    const ended = () => fail(new Error(`it ended: ${text}`));
    program[side].on("data", look);
    program.once("exit", ended);
  });
}

/** Ends a program and waits for that. */
export async function end(program) {
  if (!program || program.exitCode !== null) return;
  const ended = new Promise((done) => program.once("exit", done));
  program.kill();
  await ended;
}
