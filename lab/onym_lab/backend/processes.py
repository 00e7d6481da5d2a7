"""Real processes: what `netns` and `loopback` share, and what sets them apart."""

from __future__ import annotations

import abc
import hashlib
import itertools
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from onym_lab import subject
from onym_lab.backend import applications, groups, scenario, told
from onym_lab.backend.base import Backend, BackendError, Progress
from onym_lab.backend.owned import Owned
from onym_lab.backend.program import READY_S, Program, wait_for
from onym_lab.collect import formats, samples
from onym_lab.collect.client import Client, UnansweredError
from onym_lab.collect.sampler import Sampler, Watched, cpu_seconds
from onym_lab.results import compress, write_json
from onym_lab.spec import App, Fault, Link, Spec

COUNTED_S = 1.1
"""How long to wait before the counters of a phase are asked for."""


class Processes(Backend, abc.ABC):
    """The processes of a forwarder for each node, one process for each application."""

    def __init__(self, spec: Spec, folder: Path) -> None:
        super().__init__(spec, folder)
        self.subject = subject.make(spec.subject)
        self.tag = "ol" + hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:6]
        self.places: dict[str, subject.Place] = {}
        #: Of each node: one process, or those that a node is taken apart into.
        self.daemons: dict[str, list[Program]] = {}
        self.programs: dict[str, Program] = {}
        self.captures: list[Program] = []
        self.began = self.ended = 0.0
        self.before: dict[str, Any] = {}
        self.used: dict[str, float] = {}
        self.counted: dict[str, Any] = {}
        self.stops = threading.Event()
        self.threads: list[threading.Thread] = []
        self.sampler: Sampler | None = None
        self.owned: Owned | None = None
        self.port = 6363
        self.temporary: tempfile.TemporaryDirectory[str] | None = None

    # What the two differ in.

    @abc.abstractmethod
    def address(self, node: str, peer: str) -> str:
        """Give the address of `peer` as `node` sees it."""

    @abc.abstractmethod
    def own_addresses(self, node: str) -> list[str]:
        """Give the addresses that a node listens on; empty for all."""

    @abc.abstractmethod
    def make_network(self) -> None:
        """Make what is between the nodes."""

    @abc.abstractmethod
    def enter(self, node: str, argv: list[str]) -> list[str]:
        """Give the command line that runs `argv` at a node."""

    @abc.abstractmethod
    def is_kernels(self, link: Link) -> bool:
        """Tell whether the kernel, not the faces, makes what the link says."""

    @abc.abstractmethod
    def capture(self) -> None:
        """Start the captures."""

    def group(self, node: str) -> groups.Group | None:
        """Give the control group of a node, where it has one."""
        del node
        return None

    # The phases.

    def refusals(self) -> list[str]:
        """Name what cannot be done, by the subject and by real processes."""
        reasons = self.subject.refusals(self.spec)
        impaired = [
            link for link in self.spec.links if needs_impairing(link) and not self.is_kernels(link)
        ]
        if impaired and not self.subject.impairs:
            reasons.append(
                f"{self.subject.name} has no faults on its faces, and {self.name} cannot give "
                f"{impaired[0].name} its delay or loss"
            )
        if self.spec.transport == "ether":
            reasons.append(f"{self.name} joins nodes by udp or tcp, not by ether")
        return reasons

    def provision(self) -> None:
        """Make network, nodes, faces, routes; producers are up and registered at the end."""
        self.owned = Owned(self.folder)
        (self.raw / "log").mkdir(parents=True)
        # Paths of sockets are short; results may lie deep.
        self.temporary = tempfile.TemporaryDirectory(prefix=f"{self.tag}-")
        self.make_network()
        for node in self.spec.nodes:
            self.places[node.name] = self.place(node.name)
        for name in self.places:
            self.start_node(name)
        for name, place in self.places.items():
            self.settled(name, place)
        for app in self.spec.apps:
            if app.kind in ("producer", "put"):
                self.start_app(app)
        for app in self.spec.apps:
            if app.kind == "producer":
                wait_for(f"application {app.id}", partial(self.programs[app.id].says, "ready"))
            elif app.kind == "put":
                wait_for(f"application {app.id}", partial(self.serves, app))
        self.probe()

    def place(self, name: str) -> subject.Place:
        """Say how a node's forwarder sees its surroundings."""
        folder = self.node_folder(name)
        folder.mkdir(parents=True)
        hops = self.spec.next_hops()
        ports = []
        for index, peer in enumerate(self.spec.neighbours(name)):
            link = self.spec.link(name, peer)
            prefixes = [prefix for node, prefix, via in hops if node == name and via == peer]
            ports.append(
                subject.Port(
                    peer=peer,
                    address=self.address(name, peer),
                    number=self.port,
                    link=link,
                    prefixes=prefixes,
                    impaired=needs_impairing(link) and not self.is_kernels(link),
                    seed=self.spec.seed + index,
                )
            )
        place = subject.Place(
            node=self.spec.node(name),
            folder=folder,
            addresses=self.own_addresses(name),
            number=self.port,
            ports=ports,
            transport=self.spec.transport,
            strategies=dict(self.spec.strategies),
            spec=self.spec,
            space=self.space(name),
        )
        self.adorn(place)
        return place

    def node_folder(self, name: str) -> Path:
        """Where a node has its files."""
        return Path(self.temporary.name if self.temporary else "") / name

    def adorn(self, place: subject.Place) -> None:
        """Add to a place what only this backend has."""

    def spawn(self, name: str, argv: list[str], **options: Any) -> Program:
        """Start a process of ours."""
        out, log = self.raw / "log" / f"{name}.out", self.raw / "log" / f"{name}.err"
        self.facts.setdefault("commands", {})[name] = argv
        with out.open("wb") as stdout, log.open("ab") as stderr:
            process = subprocess.Popen(
                argv, stdout=stdout, stderr=stderr, start_new_session=True, **options
            )
        if self.owned:
            self.owned.process(process.pid)
        return Program(process, out, log)

    def start_node(self, name: str) -> None:
        """Start the processes of a forwarder, in its group when it has one."""
        place = self.places[name]
        processes = self.subject.processes(place)
        for file in place.folder.glob("*.*"):
            if file.suffix in (".toml", ".yml", ".conf"):
                (self.raw / "log" / f"{name}{file.suffix}").write_bytes(file.read_bytes())
        group = self.group(name)
        self.daemons[name] = []
        for part, words in processes.items():
            argv = self.enter(name, words)
            # Into the group first: a namespace's programs do not see the files of groups.
            argv = group.wrap(argv) if group else argv
            self.daemons[name].append(self.spawn(f"{name}-{part}" if part else name, argv))

    def pids(self, name: str) -> tuple[int, ...]:
        """Give the numbers of a forwarder's processes."""
        return tuple(daemon.process.pid for daemon in self.daemons[name])

    def settled(self, name: str, place: subject.Place) -> None:
        """Wait until a forwarder answers, and make what its configuration could not."""

        def answers() -> bool:
            for daemon in self.daemons[name]:
                daemon.says("\0")
            return self.subject.is_up(place)

        wait_for(f"node {name}", answers)
        try:
            self.subject.settle(place)
        except subject.SubjectError as error:
            raise BackendError(str(error)) from error

    def start_app(self, app: App) -> None:
        """Start an application."""
        place = self.places[app.node]
        argv, options = applications.command(app, place, self.subject, self.raw / "log")
        self.programs[app.id] = self.spawn(app.id, self.enter(app.node, argv), **options)

    def serves(self, app: App) -> bool:
        """Tell whether a `put` can be asked for; its early end is an error."""
        program = self.programs[app.id]
        program.says("\0")
        return self.subject.is_served(app, self.places[app.node], program.out)

    def probe(self) -> None:
        """Wait until a Data comes to each consumer from its producer: faces and routes work."""
        answering = [
            app
            for app in self.spec.apps
            if app.kind == "producer" and app.options.get("answers", True)
        ]
        for consumer in self.spec.apps:
            if not consumer.consumes or consumer.kind == "get":
                continue
            for producer in answering:
                if not (consumer.prefix + "/").startswith(producer.prefix.rstrip("/") + "/"):
                    continue
                client = Client(self.places[consumer.node].socket)
                name = f"{producer.prefix.rstrip('/')}/onym-lab-probe/{consumer.id}"

                def comes(client: Client = client, name: str = name) -> bool:
                    try:
                        client.ask(name, 1.0, prefix=False, fresh=False)
                    except UnansweredError:
                        return False
                    return True

                wait_for(f"a Data for {consumer.id} from {producer.id}", comes)
                client.close()

    def warm_up(self) -> None:
        """Start captures, samples and consumers, and let the network settle."""
        self.capture()
        for app in self.spec.apps:
            if app.kind in scenario.SIMULATED and app.kind != "producer":
                self.start_app(app)
        for app in self.spec.apps:
            if app.id in self.programs and app.kind in scenario.SIMULATED:
                wait_for(f"application {app.id}", partial(self.programs[app.id].says, "ready"))
        self.sampler = Sampler(
            self.spec.sample,
            {
                name: Watched(
                    place.socket, self.pids(name), place.node.cpu, self.subject.meter(place)
                )
                for name, place in self.places.items()
            },
        )
        self.sampler.start()
        self.sampler.wait_first(READY_S)
        time.sleep(self.spec.warmup)

    def measure(self, progress: Progress) -> None:
        """Begin all applications and wait for their end, or for the time to be over."""
        self.before = {name: self.counters(name) for name in self.places}
        used = {name: cpu_seconds(self.pids(name)) for name in self.places}
        self.began = time.time()
        for app in self.spec.apps:
            if app.id not in self.programs and app.kind in ("get", "command"):
                self.start_app(app)
            pipe = self.programs[app.id].process.stdin
            if pipe is not None:
                pipe.write(b"\n")
                pipe.close()
        self.timeline()
        ends = [self.programs[app.id] for app in self.spec.apps if app.ends]
        end = time.monotonic() + self.spec.at_most
        while time.monotonic() < end:
            running = [one for one in ends if one.process.poll() is None]
            if self.spec.until_done and not running:
                break
            self.watch_daemons()
            progress(1 - (end - time.monotonic()) / max(self.spec.at_most, 1e-9))
            time.sleep(0.05)
        self.ended = time.time()
        for name, earlier in used.items():
            now = cpu_seconds(self.pids(name))
            # A node that was started again has lost what it used.
            if earlier is not None and now is not None and now >= earlier:
                self.used[name] = now - earlier

    def watch_daemons(self) -> None:
        """See that no forwarder ended by itself."""
        killed = {fault.node for fault in self.spec.faults if fault.action == "kill"}
        for name, daemons in self.daemons.items():
            for daemon in daemons:
                code = daemon.process.poll()
                if code is not None and name not in killed:
                    said = daemon.log.read_text(errors="replace").strip()[-500:]
                    raise BackendError(f"node {daemon.log.stem} ended with {code}: {said}")

    def timeline(self) -> None:
        """Start what happens at given moments: faults, and competing load."""
        for fault in self.spec.faults:
            self.later(fault.at, partial(self.strike, fault))
            if fault.duration is not None:
                self.later(fault.at + fault.duration, partial(self.mend, fault))

    def later(self, after: float, act: Callable[[], None]) -> None:
        """Do something at a moment of the measuring phase."""

        def wait() -> None:
            if not self.stops.wait(max(0.0, self.began + after - time.time())):
                act()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        self.threads.append(thread)

    def strike(self, fault: Fault) -> None:
        """Break something."""
        if fault.action == "kill" and fault.node:
            for daemon in self.daemons[fault.node]:
                daemon.process.kill()

    def mend(self, fault: Fault) -> None:
        """Mend it."""
        if fault.action == "kill" and fault.node:
            self.places[fault.node].socket.unlink(missing_ok=True)
            self.start_node(fault.node)
            if self.sampler:
                self.sampler.moved(fault.node, self.pids(fault.node))

    def space(self, node: str) -> str | None:
        """Name the network namespace of a node, where it has one."""
        del node
        return None

    def counters(self, name: str) -> dict[str, Any]:
        """Ask a forwarder for its counters; what it does not tell is absent."""
        client = Client(self.places[name].socket)
        found: dict[str, Any] = {}
        for ask in (client.general, client.cs) if self.subject.datasets else ():
            try:
                found.update(ask(5.0))
            except UnansweredError:
                continue
        client.close()
        meter = self.subject.meter(self.places[name])
        return {**found, **(meter.once(5.0) if meter else {})}

    def collect(self) -> None:
        """End everything and bring the files into the common formats."""
        # What is asked of a dataset may be a second old.
        time.sleep(max(self.spec.cooldown, COUNTED_S))
        self.counted = {name: self.counters(name) for name in self.places}
        self.stops.set()
        if self.sampler:
            self.sampler.stop()
        for program in [*self.programs.values(), *self.captures]:
            program.end()
        daemons = list(itertools.chain(*self.daemons.values()))
        for name in self.daemons:
            group = self.group(name)
            if group:
                self.facts.setdefault("groups", {})[name] = group.throttled()
        for daemon in daemons:
            daemon.end()
        samples.write(self.raw, self.sampler.rows if self.sampler else [])
        self.collect_captures()
        apps = [
            told.app_report(
                app, self.programs[app.id], self.began, applications.is_same(app, self.places)
            )
            for app in self.spec.apps
        ]
        write_json(self.raw / "apps.json", [stats for stats, _ in apps])
        samples.write_objects(self.raw, [one for _, objects in apps for one in objects])
        nodes = {
            name: {
                **told.difference(self.before.get(name, {}), self.counted.get(name, {})),
                "cpu_s": self.used.get(name),
            }
            for name in self.places
        }
        write_json(
            self.raw / "measure.json",
            {"began": self.began, "ended": self.ended, "nodes": nodes, "clock": "wall"},
        )

    @abc.abstractmethod
    def collect_captures(self) -> None:
        """Bring captures to `raw/capture-<node>.pcap*.zst` with their summaries."""

    def keep_capture(self, source: Path, node: str, kept: tuple[int, int, int], peer: str) -> None:
        """Keep one capture, compressed, with its summary (captured, received, dropped)."""
        target = self.raw / f"capture-{node}{source.suffix}"
        target.write_bytes(source.read_bytes())
        text = formats.capture_summary(target.name, *kept, peer)
        (self.raw / f"capture-{node}.txt").write_text(text)
        compress(target)

    def close(self) -> None:
        """Give everything back."""
        self.stops.set()
        if self.sampler:
            self.sampler.stop()
        for thread in self.threads:
            thread.join(timeout=1)
        daemons = itertools.chain(*self.daemons.values())
        for program in [*self.programs.values(), *self.captures, *daemons]:
            program.end()
        if self.owned:
            self.owned.release()
        if self.temporary:
            self.temporary.cleanup()


def needs_impairing(link: Link) -> bool:
    """Tell whether a link is other than the plain one."""
    return bool(link.delay or link.loss or link.rate)
