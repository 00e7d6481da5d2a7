#!/usr/bin/env python3
"""Runs every command of the manual and compares what it prints: tests/manual/run.py BINARY [PAGE...]

With --cast FILE it records the one page that is named, as a terminal would show it (asciicast, text).

A block of a page (docs/manual/src) is one of these:

  ```console            commands after "$ ", continued after "> ", and under each what it prints
  ```console,host=b     the same on another machine of the page: a is 192.0.2.1, b is 192.0.2.2, ...
  ```console,exit=5     the last command of the block ends with this exit code, all others with 0
  ```console,in=FILE    run by another test, FILE, which must have each of its commands
  ```toml,file=NAME     written to NAME in the home of the machine (any language; host= as above)

In what is printed … stands for anything within a line, and alone on its line for any lines. A
command with & at its end goes on; it is waited for until it has printed what the page shows, and not
looked at when the page shows nothing.

Each page has machines of its own: network namespaces with loopback and eth0 on one bridge, an empty
home, an empty /run, an own process namespace whose end is the end of all that the page started.
Examples (docs/examples/*/README.md) are pages, too; each machine has the files of their folder. scp
copies from one machine of a page to another.
Exit codes: 0 the manual is true, 1 it is not, 77 this machine has no namespaces.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "docs/manual/src"
EXAMPLES = ROOT / "docs/examples"
COMMAND_S = 60.0  # longest time of a command, and of a background one until it has said its text
FENCE = re.compile(r"^(`{3,})\s*([^`]*)$")
LANGUAGES_NOT_RUN = {"sh", "bash", "shell"}


class Untrue(Exception):
    """A sentence of the manual that does not hold, with where it is."""


@dataclass
class Command:
    line: int
    text: str
    expected: list[str] = field(default_factory=list)


@dataclass
class Block:
    line: int
    language: str
    options: dict[str, str]
    body: list[str]

    @property
    def host(self) -> str:
        return self.options.get("host", "a")

    def commands(self) -> list[Command]:
        found: list[Command] = []
        continued = False
        for number, text in enumerate(self.body, self.line + 1):
            if text.startswith("$ "):
                found.append(Command(number, text[2:]))
            elif text.startswith("> ") and found and continued:
                found[-1].text += "\n" + text[2:]
            elif found:
                found[-1].expected.append(text.rstrip())
            else:
                raise Untrue(f"{number}: output before the first command of a block")
            continued = text.startswith(("$ ", "> "))
        return found


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page. A fence that is not closed is an error, not the rest of the page."""
    found: list[Block] = []
    opened: tuple[str, Block] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if opened:
            if fence and fence[1] == opened[0] and not fence[2].strip():
                found.append(opened[1])
                opened = None
            else:
                opened[1].body.append(line)
        elif fence:
            words = [w.strip() for w in fence[2].split(",")]
            options = dict(w.split("=", 1) for w in words[1:] if "=" in w)
            unknown = set(options) - {"host", "exit", "in", "file"}
            if unknown:
                raise Untrue(f"{number}: unknown option {', '.join(sorted(unknown))} of a block")
            opened = (fence[1], Block(number, words[0], options, []))
    if opened:
        raise Untrue(f"{opened[1].line}: this block is not closed")
    return found


def matches(expected: list[str], printed: list[str]) -> bool:
    """Whether the lines are those expected, with … for anything."""
    pattern = ""
    for line in expected:
        if line == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += "[^\n]*?".join(re.escape(part) for part in line.split("…")) + r"[ \t]*\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


class Cast:
    """What a terminal would show of a page, typed at a steady pace: asciicast version 2."""

    TYPED_S, READ_S = 0.04, 1.2

    def __init__(self) -> None:
        self.now = 0.0
        self.events: list[tuple[float, str, str]] = []

    def show(self, text: str, after: float) -> None:
        self.now += after
        self.events.append((round(self.now, 3), "o", text.replace("\n", "\r\n")))

    def command(self, command: Command, printed: list[str], took: float) -> None:
        self.show("$ ", 0)
        for letter in command.text:
            self.show(letter, self.TYPED_S)
        self.show("\n", self.TYPED_S)
        if printed:
            self.show("\n".join(printed) + "\n", took)
        self.now += self.READ_S

    def write(self, file: Path) -> None:
        head = {"version": 2, "width": 100, "height": 30, "title": "Onym: the first file"}
        rows = [head, *(list(event) for event in self.events)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))


class Host:
    """A machine of a page: a shell in namespaces of its own, which keeps its folder and jobs."""

    def __init__(self, name: str, folder: Path, path: str, given: list[Path]):
        self.name, self.folder, self.count = name, folder, 0
        self.home = folder / "place"
        self.home.mkdir(parents=True)
        for file in given:
            shutil.copy(file, self.home)
        environment = {
            "PATH": path,
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": "/run/user/0",
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "100",
            "USER": "root",
        }
        begin = "mount -t tmpfs tmpfs /run && mkdir -p /run/user/0 && ip link set lo up && exec bash --norc --noprofile"
        self.shell = subprocess.Popen(
            ["unshare", "--net", "--mount", "bash", "--norc", "--noprofile", "-c", begin],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=open(folder / "shell", "w"),
            env=environment,
            cwd=self.home,
            text=True,
        )
        self.run(Command(0, "true"), 0)

    def connect(self, number: int) -> None:
        pid, port = str(self.shell.pid), f"port{number}"
        for words in (
            ["link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", pid],
            ["link", "set", port, "master", "lan", "up"],
        ):
            subprocess.run(["ip", *words], check=True)
        address = f"ip address add 192.0.2.{number}/24 dev eth0 && ip link set eth0 up && ip route add default dev eth0"
        self.run(Command(0, address), 0)

    def run(self, command: Command, status: int) -> list[str]:
        self.count += 1
        base = self.folder / str(self.count)
        said, ended, text = base.with_suffix(".out"), base.with_suffix(".rc"), base.with_suffix(".cmd")
        text.write_text(command.text)
        assert self.shell.stdin
        self.shell.stdin.write(
            f'eval "$(cat {text})" </dev/null >{said} 2>&1; echo $? >{ended}.new; mv {ended}.new {ended}\n'
        )
        self.shell.stdin.flush()
        background = command.text.rstrip().endswith("&")
        deadline = time.monotonic() + COMMAND_S
        printed: list[str] = []
        while True:
            over = ended.exists()
            if said.exists():
                printed = lines(said.read_text(errors="replace"))
            if over and background and not command.expected:
                return printed
            if over and (not background or matches(command.expected, printed)):
                break
            late = time.monotonic() > deadline
            if late or self.shell.poll() is not None:
                raise Untrue(self.difference(command, printed, "does not end" if not over else "does not say so"))
            time.sleep(0.005)
        came = int(ended.read_text())
        if came != status:
            raise Untrue(self.difference(command, printed, f"ends with {came} and not {status}"))
        if command.line and not matches(command.expected, printed):
            raise Untrue(self.difference(command, printed, "prints something else"))
        return printed

    def difference(self, command: Command, printed: list[str], what: str) -> str:
        shown = "\n".join(f"    {line}" for line in printed) or "    (nothing)"
        wanted = "\n".join(f"    {line}" for line in command.expected) or "    (nothing)"
        return f"{command.line}: `{command.text}` {what}\n  expected\n{wanted}\n  printed\n{shown}"


def elsewhere(block: Block) -> int:
    """A block that another test runs must be in it, command by command."""
    text = (ROOT / block.options["in"]).read_text()
    for command in block.commands():
        if command.text not in text:
            raise Untrue(f"{command.line}: {block.options['in']} does not run `{command.text}`")
    return len(block.commands())


def run_page(page: Path, folder: Path, path: str, cast: Cast) -> str:
    """All of a page, in the namespaces of this process."""
    found = blocks(page.read_text())
    subprocess.run(["ip", "link", "add", "lan", "type", "bridge"], check=True)
    subprocess.run(["ip", "link", "set", "lan", "up"], check=True)
    hosts: dict[str, Host] = {}
    ran = other = 0
    is_example = page.is_relative_to(EXAMPLES)
    given = [f for f in sorted(page.parent.iterdir()) if f.is_file() and f != page] if is_example else []
    scp = folder / "bin/scp"
    scp.parent.mkdir()
    scp.write_text(f'#!/bin/sh\ncp "$1" {folder}/"${{2%%:*}}"/place/"${{2#*:}}"\n')
    scp.chmod(0o755)
    path = f"{scp.parent}:{path}"

    def host(name: str) -> Host:
        if name not in hosts:
            hosts[name] = Host(name, folder / name, path, given)
            hosts[name].connect(ord(name) - ord("a") + 1)
        return hosts[name]

    for name in sorted({b.host for b in found if b.language == "console" or "file" in b.options}):
        if not re.fullmatch("[a-z]", name):
            raise Untrue(f"a machine is called by one letter, not {name}")
        host(name)
    for block in found:
        if block.language in LANGUAGES_NOT_RUN:
            raise Untrue(f"{block.line}: a block of commands is ```console, so that it is run")
        if "file" in block.options:
            target = host(block.host).home / block.options["file"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n".join(block.body) + "\n")
        elif block.language == "console" and "in" in block.options:
            other += elsewhere(block)
        elif block.language == "console":
            commands = block.commands()
            for command in commands:
                status = int(block.options.get("exit", 0)) if command is commands[-1] else 0
                begun = time.monotonic()
                printed = host(block.host).run(command, status)
                cast.command(command, printed, time.monotonic() - begun)
                ran += 1
    return f"{ran} commands on {len(hosts)} machines" + (f", {other} in other tests" if other else "")


def inside(page: Path, path: str, file: Path | None) -> int:
    with tempfile.TemporaryDirectory(prefix="onym-manual-") as folder:
        try:
            cast = Cast()
            print(run_page(page, Path(folder), path, cast))
            if file:
                cast.write(file)
            return 0
        except Untrue as wrong:
            print(wrong)
            return 1
        finally:
            # This process is the first of its process namespace: everything else there is the page's.
            if os.getpid() == 1:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)


def namespaces() -> list[str] | None:
    """The command that gives a process namespaces of its own, or nothing where that is refused."""
    words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        words += ["--user", "--map-root-user"]
    tried = subprocess.run([*words, "ip", "link", "add", "lan", "type", "bridge"], capture_output=True)
    return words if tried.returncode == 0 else None


def check_book(pages: list[Path]) -> list[str]:
    """Every page is in the table of contents, and every link leads somewhere."""
    wrong = []
    summary = (BOOK / "SUMMARY.md").read_text()
    listed = {BOOK / target for target in re.findall(r"\]\(([^)]+\.md)\)", summary)}
    for page in pages:
        if page.name != "SUMMARY.md" and page not in listed:
            wrong.append(f"{page.relative_to(ROOT)}: SUMMARY.md does not have it")
    for page in pages:
        text = page.read_text()
        included = re.findall(r"\{\{#include ([^}:]+)[^}]*\}\}", text)
        text += "".join((page.parent / p).read_text() for p in included if (page.parent / p).exists())
        targets = included + re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
        for target in targets:
            if "://" not in target and not (page.parent / target).exists():
                wrong.append(f"{page.relative_to(ROOT)}: there is no {target}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=Path)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--cast", type=Path, metavar="FILE")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    binary = args.binary.resolve()
    if not os.access(binary, os.X_OK):
        parser.error(f"{binary} is no program; build it: make build")
    path = f"{binary.parent}:/usr/sbin:/usr/bin:/sbin:/bin"
    if args.inside:
        return inside(args.pages[0], path, args.cast)

    words = namespaces() if shutil.which("ip") and shutil.which("unshare") else None
    if not words:
        print("manual: skipped, namespaces cannot be made here (root, or user namespaces; iproute2)", file=sys.stderr)
        return 77
    every = sorted(BOOK.rglob("*.md"))
    examples = [p for p in sorted(EXAMPLES.glob("*/README.md")) if "```console" in p.read_text()]
    pages = [p.resolve() for p in args.pages] or [p for p in every if p.name != "SUMMARY.md"] + examples
    failed = check_book(every) if not args.pages else []
    for text in failed:
        print(f"manual: {text}", file=sys.stderr)

    if args.cast and len(pages) != 1:
        parser.error("--cast records one page")
    recorded = ["--cast", args.cast.resolve()] if args.cast else []

    def one(page: Path) -> tuple[Path, int, str, float]:
        begun = time.monotonic()
        done = subprocess.run(
            [*words, sys.executable, __file__, "--inside", *recorded, binary, page], capture_output=True, text=True
        )
        return page, done.returncode, done.stdout + done.stderr, time.monotonic() - begun

    wrong = len(failed)
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for page, status, text, seconds in pool.map(one, pages):
            name = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page
            if status == 0 and not text.startswith("0 commands on 0"):
                print(f"{name}: {text.strip()} ({seconds:.1f} s)")
            elif status != 0:
                wrong += 1
                print(f"{name}:{text.rstrip()}", file=sys.stderr)
    print(f"manual: {len(pages)} pages, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
