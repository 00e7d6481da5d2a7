"""What a replicate took from the machine, noted in a file so that it can be given back."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from onym_lab.results import read_json, write_json

FILE = "owned.json"


def started(pid: int) -> int | None:
    """Tell when a process started, in ticks since boot: with the number it names one process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


class Owned:
    """The list of processes, namespaces and groups of one replicate."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.things: dict[str, list[Any]] = {"processes": [], "namespaces": [], "groups": []}

    def add(self, kind: str, thing: Any) -> None:
        """Note something, before or as soon as it is there."""
        self.things[kind].append(thing)
        write_json(self.path, self.things)

    def process(self, pid: int) -> None:
        """Note a process of ours."""
        self.add("processes", [pid, started(pid)])

    def release(self) -> None:
        """Give everything back."""
        give_back(self.things)
        self.path.unlink(missing_ok=True)


def clean_up(folder: Path) -> None:
    """Give back what a killed attempt noted in `folder`."""
    things = read_json(folder / FILE)
    if things:
        give_back(things)
        (folder / FILE).unlink(missing_ok=True)


def give_back(things: dict[str, list[Any]]) -> None:
    """End the processes, then take away namespaces and groups. Only what is noted is touched."""
    alive = [(pid, begun) for pid, begun in things["processes"] if begun and started(pid) == begun]
    for number, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
        for pid, _ in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        end = time.monotonic() + patience
        while alive and time.monotonic() < end:
            for pid, _ in alive:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            alive = [(pid, begun) for pid, begun in alive if started(pid) == begun]
            if alive:
                time.sleep(0.02)
    for name in things["namespaces"]:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    for group in reversed(things["groups"]):
        with contextlib.suppress(OSError):
            Path(group).rmdir()
