"""What tests of several nodes share: namespaces, programs that end with their test, conditions with a deadline."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import which

PATIENCE = 30.0


def until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: did not come within {PATIENCE:.0f} s")
        time.sleep(0.02)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextmanager
def space(name: str) -> Iterator[str]:
    """A network namespace."""
    ip("netns", "add", name)
    try:
        ip("-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        ip("netns", "del", name)


def inside(netns: str, *words: str) -> list[str]:
    """A command within a namespace."""
    return ["ip", "netns", "exec", netns, *words]


def free_ports(kind: int, count: int) -> list[int]:
    """Ports of this machine that nobody has now, for `socket.SOCK_DGRAM` or `SOCK_STREAM`."""
    with ExitStack() as held:
        ends = [held.enter_context(socket.socket(socket.AF_INET, kind)) for _ in range(count)]
        for end in ends:
            end.bind(("127.0.0.1", 0))
        return [end.getsockname()[1] for end in ends]


def settings(sets: Iterable[str]) -> list[str]:
    """Settings of a daemon as words of its command."""
    return [word for setting in sets for word in ("--set", setting)]


@contextmanager
def running(words: list[str], log: Path, ready: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A program that ends with the test; what it says is in `log`, and is shown when the test fails.

    The test goes on when it has said `ready`.
    """
    with log.open("w") as out:
        program = subprocess.Popen(words, stdout=out, stderr=out, cwd=log.parent)
    try:
        until(lambda: ready in log.read_text() or program.poll() is not None, f"{ready}: {log}")
        assert ready in log.read_text(), f"{words[0]} ended with {program.returncode}"
        yield program
    finally:
        program.terminate()
        try:
            program.wait(PATIENCE)
        finally:
            program.kill()
        if sys.exc_info()[0]:
            print(f"{log.stem}: {log.read_text()[-4000:]}", file=sys.stderr)


def is_root_with(*programs: str) -> bool:
    """Whether network namespaces can be made, and these programs are there; says what is missing."""
    missing = [program for program in ("ip", *programs) if not which(program)]
    if os.geteuid() != 0:
        missing.insert(0, "root")
    if missing:
        print(f"skipped, missing: {' '.join(missing)}")
    return not missing
