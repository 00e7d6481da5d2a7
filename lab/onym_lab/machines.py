"""A run over several machines by their addresses: what each is given, and in which order.

`plan` writes a folder for each node: the configuration of its forwarder, the scenarios of its
applications, and `run.sh up | measure | down`. The folders lie at the same place on each machine,
which has `onym` on PATH; `go.sh` brings them there by ssh, takes every step on all machines before
the next one, and fetches what the applications achieved. What this cannot do it refuses by name:
nothing on those machines is changed, so that limits, competing load, faults, and captures are those
of `netns`; delay, loss and rate of a link are made by the faces' seeded fault wrapper.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from onym_lab import subject, tools
from onym_lab.backend import scenario
from onym_lab.backend.base import Refused
from onym_lab.backend.processes import Processes
from onym_lab.results import write_atomically
from onym_lab.spec import App, Link, Spec

STEPS = ("up", "measure", "down")
"""Of `run.sh`; each is done on all machines before the next."""

_RUN = """#!/bin/sh
# {node} at {address}: {experiment}
#   up       the node, and its producers once it is ready
#   measure  the other applications, to their end; each writes APPLICATION.json
#   down     ends what was started
set -eu
cd {folder}
start() {{ name=$1; shift; "$@" </dev/null >"$name.json" 2>"$name.err" & echo $! >"$name.pid"; }}
ready() {{
  i=0
  until "$@" >/dev/null 2>&1; do
    i=$((i + 1)); [ $i -lt 300 ] || {{ echo "{node}: not ready: $*" >&2; exit 1; }}; sleep 0.1
  done
}}
case ${{1:-}} in
  up)
{up}
    ;;
  measure)
{measure}
    ;;
  down)
    for file in *.pid; do kill "$(cat "$file")" 2>/dev/null || :; rm -f "$file"; done
    ;;
  *) sed -n '2,5s/^# *//p' "$0"; exit 2 ;;
esac
"""

_GO = """#!/bin/sh
# {experiment} over {count} machines: every step on all of them before the next one.
# RUN and COPY say how a machine is reached; ssh and rsync without them.
set -eu
run() {{ ${{RUN:-ssh}} "$1" sh "$2/run.sh" "$3"; }}
copy() {{ ${{COPY:-rsync -a}} "$1" "$2"; }}
trap 'for one in {pairs}; do run "${{one%%=*}}" "${{one#*=}}" down; done' EXIT
for one in {pairs}; do copy "${{one#*=}}/" "${{one%%=*}}:${{one#*=}}/"; done
for one in {pairs}; do run "${{one%%=*}}" "${{one#*=}}" up; done
pids=
for one in {pairs}; do run "${{one%%=*}}" "${{one#*=}}" measure & pids="$pids $!"; done
for pid in $pids; do wait "$pid"; done
for one in {pairs}; do copy "${{one%%=*}}:${{one#*=}}/" "${{one#*=}}/"; done
"""


class _Machines(Processes):
    """Real processes whose neighbours are at addresses of other machines."""

    name = "machines"

    def __init__(self, spec: Spec, folder: Path, addresses: Mapping[str, str]) -> None:
        super().__init__(spec, folder)
        self.addresses = dict(addresses)

    def refusals(self) -> list[str]:
        reasons = super().refusals()
        names = [node.name for node in self.spec.nodes]
        reasons += [f"{name} has no address" for name in names if name not in self.addresses]
        reasons += [f"{name!r} is no node of it" for name in self.addresses if name not in names]
        for node in self.spec.nodes:
            if node.cpu is not None or node.memory is not None or node.hog:
                reasons.append(f"machines are taken as they are: no limits, no load ({node.name})")
        if self.subject.name != "onym":
            reasons.append(f"machines are given onym's whole node, not {self.subject.name}")
        if self.spec.faults:
            reasons.append("machines have no faults on a timeline")
        for app in self.spec.apps:
            if app.kind not in scenario.SIMULATED:
                reasons.append(f"{app.id}: {app.kind} is started by hand on its machine")
        return reasons

    def address(self, node: str, peer: str) -> str:
        return self.addresses[peer]

    def own_addresses(self, node: str) -> list[str]:
        return [self.addresses[node]]

    def make_network(self) -> None:
        """The machines' network is there."""

    def enter(self, node: str, argv: list[str]) -> list[str]:
        return argv

    def is_kernels(self, link: Link) -> bool:
        return False

    def capture(self) -> None:
        """Nothing is captured."""

    def collect_captures(self) -> None:
        """Nothing was captured."""

    def node_folder(self, name: str) -> Path:
        return self.folder / name


def plan(
    experiment: str, spec: Spec, addresses: Mapping[str, str], folder: Path, port: int = 6363
) -> list[Path]:
    """Write what each machine is given; gives the folders, and `go.sh` beside them.

    Raises:
        Refused: The experiment asks for what cannot be had on machines as they are.
    """
    bed = _Machines(spec, folder.absolute(), addresses)
    bed.port = port
    reasons = bed.refusals()
    if reasons:
        raise Refused(bed.name, reasons)
    made = [_node(experiment, bed, name) for name in bed.addresses]
    pairs = " ".join(
        shlex.quote(f"{address}={bed.folder / name}") for name, address in bed.addresses.items()
    )
    text = _GO.format(experiment=experiment, count=len(made), pairs=pairs)
    write_atomically(folder / "go.sh", text)
    return made


def _node(experiment: str, bed: _Machines, name: str) -> Path:
    place = bed.place(name)
    apps = [app for app in bed.spec.apps if app.node == name]
    up = [
        _start("node", bed.subject.prepare(place)),
        f"    ready onym status --node unix://{place.socket}",
    ]
    for app in apps:
        if app.kind == "producer":
            up += [
                _start(app.id, _command(bed.spec, app, place)),
                f"    ready grep -q ready {app.id}.err",
            ]
    others = [app for app in apps if app.kind != "producer"]
    measure = [_probe(bed.spec, app, place) for app in others if app.ends]
    measure += [_start(app.id, _command(bed.spec, app, place)) for app in others]
    measure += [f'    wait "$(cat {app.id}.pid)"; rm {app.id}.pid' for app in others if app.ends]
    text = _RUN.format(
        node=name,
        address=bed.addresses[name],
        experiment=experiment,
        folder=shlex.quote(str(place.folder)),
        up="\n".join(up),
        measure="\n".join(measure or ["    :"]),
    )
    write_atomically(place.folder / "run.sh", text)
    return place.folder


def _command(spec: Spec, app: App, place: subject.Place) -> list[str]:
    return scenario.command(spec, app, f"unix://{place.socket}", place.folder)


def _probe(spec: Spec, app: App, place: subject.Place) -> str:
    """A line that waits until a Data comes to a consumer: faces and routes work everywhere."""
    for one in spec.apps:
        inside = (app.prefix + "/").startswith(one.prefix.rstrip("/") + "/")
        if one.kind == "producer" and one.options.get("answers", True) and inside:
            name = f"{one.prefix.rstrip('/')}/onym-lab-probe/{app.id}"
            return f"    ready onym peek {shlex.quote(name)} --node unix://{place.socket}"
    return "    :"


def _start(name: str, argv: list[str]) -> str:
    """A line of `run.sh`; the program is the machine's own."""
    words = ["onym" if word == str(tools.onym()) else word for word in argv]
    return f"    start {shlex.quote(name)} {shlex.join(words)}"
