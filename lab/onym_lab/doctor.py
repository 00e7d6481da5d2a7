"""What this machine can do, and how to mend what it cannot."""

from __future__ import annotations

import gzip
import importlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from onym_lab import backend, design, experiment, tools
from onym_lab.backend import groups

Row = tuple[str, str, str]


def _onym() -> Row:
    try:
        return "ok", "onym", str(tools.onym())
    except tools.MissingToolError as error:
        return "failed", "onym", str(error)


def _program(name: str, what: str, package: str) -> Row:
    found = tools.on_path(name)
    if found:
        return "ok", name, str(found)
    return "warning", name, f"not on PATH: {what} ({package})"


def _netns() -> Row:
    if os.geteuid() != 0:
        return (
            "warning",
            "network namespaces",
            "not root: the backend netns is refused; use loopback or sim",
        )
    if tools.on_path("ip") is None:
        return "warning", "network namespaces", "the program ip is missing (Debian: iproute2)"
    name = f"olprobe{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return "warning", "network namespaces", made.stderr.strip()
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return "ok", "network namespaces", "can be made"


def _netem() -> Row:
    """Netem is not needed; it is said because everybody asks."""
    config = Path("/proc/config.gz")
    modules = Path("/lib/modules") / os.uname().release / "kernel/net/sched/sch_netem.ko"
    known = modules.is_file() or modules.with_suffix(".ko.xz").is_file()
    if not known and config.is_file():
        known = b"CONFIG_NET_SCH_NETEM=" in gzip.decompress(config.read_bytes())
    text = "is there" if known else "not seen"
    return "ok", "netem", f"{text}; not needed: faces delay and lose frames by a seed"


def _groups() -> Row:
    version = groups.version()
    if not version:
        return "warning", "control groups", "no cpu controller: netns refuses cpu limits and hogs"
    if os.geteuid() != 0:
        return "warning", "control groups", f"version {version}, but not root"
    return "ok", "control groups", f"version {version}"


def _buffers() -> Row:
    try:
        most = int(Path("/proc/sys/net/core/rmem_max").read_text())
    except OSError:
        return "warning", "rmem_max", "cannot be read"
    if most < 2**21:
        return (
            "warning",
            "rmem_max",
            f"{most}: UDP loses at high rates; sysctl net.core.rmem_max=8388608",
        )
    return "ok", "rmem_max", str(most)


def _module(name: str, what: str) -> Row:
    try:
        importlib.import_module(name)
    except ImportError:
        return "warning", name, f"is not installed: {what}"
    return "ok", name, "installed"


def _experiments() -> Iterator[Row]:
    """Tell which experiments of the library none of their backends can run here, and why."""
    able = total = 0
    refused = []
    for path in experiment.library():
        one = experiment.load(path)
        spec = one.spec(design.cells(one)[0].settings, 1)
        reasons: list[str] = []
        for name in one.backends:
            try:
                backend.make(name, spec, Path())
            except backend.Refused as error:
                reasons += error.reasons
            else:
                able += 1
                break
        else:
            refused.append(("warning", one.name, "; ".join(dict.fromkeys(reasons))))
        total += 1
    yield "ok" if able == total else "warning", "experiments", f"{able} of {total} can be run"
    yield from refused


def checks() -> Iterator[Row]:
    """Check everything."""
    yield _onym()
    yield "ok", "sim", "needs nothing but onym"
    yield "ok", "loopback", "needs nothing but onym"
    yield _netns()
    yield _groups()
    yield _netem()
    yield _program("tcpdump", "netns captures with it", "Debian: tcpdump")
    yield _program("ndnd", "experiments skip it by name", "github.com/named-data/ndnd")
    yield _program("nfd", "experiments skip it by name", "github.com/named-data/NFD")
    yield _buffers()
    yield _module("distributed", "--dask needs it: pip install onym-lab[cluster]")
    yield _module(
        "topohub", "topologies of SNDlib and the Zoo need it: pip install onym-lab[topologies]"
    )
    yield from _experiments()


def show() -> int:
    """Show the checks; 3 when something that is always needed is missing."""
    worst = 0
    for state, name, text in checks():
        print(f"{state:8} {name:20} {text}")
        worst = max(worst, 3 if state == "failed" else 0)
    return worst
