"""One file to many consumers: HTTP/1.1, HTTP/2, and named data through a caching router.

Three network namespaces in a row, server - router - clients; the link to the server has a rate
and, on what arrives at the router from it, loss. Needs root. HTTP is nginx and curl, one
connection a consumer; the router forwards IP. Named data is a forwarder in each namespace, onym's
or another of :mod:`onym_lab.subject`, ``onym put`` and one ``onym get`` a consumer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onym_lab import experiment as files
from onym_lab import subject as forwarders
from onym_lab.library import NeedsError, Row, call, pick, program, row
from onym_lab.spec import Link, Spec
from onym_lab.stats import jain
from onym_lab.tools import unusable

HTTP = {"http1": ("8081", "--http1.1"), "http2": ("8082", "--http2-prior-knowledge")}
FOREIGN = {"ndnd": ("ndnd",), "nfd": ("nfd", "nfdc")}
"""Forwarders of others, and the programs that they are."""

SERVER, ROUTER_S, ROUTER_C, CLIENT = "10.71.1.1", "10.71.1.2", "10.71.2.1", "10.71.2.2"
AT_MOST_S = 300.0


def needs(given: Mapping[str, Any]) -> None:
    """Say what is missing for one kind of consumers.

    Raises:
        NeedsError: Root, a tool of Debian's packages, or a program that is not there.
    """
    subject = str(given.get("subject", "onym"))
    program("onym")
    if os.geteuid() != 0:
        raise NeedsError("network namespaces need root")
    packages = {"ip": "iproute2", "tc": "iproute2", "iptables": "iptables"}
    if subject in HTTP:
        packages |= {"nginx": "nginx-light", "curl": "curl"}
    elif subject != "onym":
        programs = FOREIGN.get(subject)
        if programs is None:
            raise NeedsError(f"no subject {subject!r}: onym, {', '.join((*FOREIGN, *HTTP))}")
        if reasons := unusable(*programs):
            raise NeedsError(reasons[0])
    missing = [package for tool, package in packages.items() if not shutil.which(tool)]
    if missing:
        raise NeedsError(f"missing Debian packages: {', '.join(dict.fromkeys(missing))}")


@dataclass(frozen=True)
class Net:
    """The three namespaces."""

    server: str
    router: str
    clients: str

    def run(self, where: str, *argv: str | Path) -> str:
        """Run a command in one of them."""
        return call(["ip", "netns", "exec", where, *argv])


@contextmanager
def network(rate: str, loss: float) -> Iterator[Net]:
    """Make the namespaces; taken away after, with everything in them."""
    tag = f"onymweb{os.getpid()}"
    net = Net(f"{tag}s", f"{tag}r", f"{tag}c")
    names = (net.server, net.router, net.clients)
    try:
        for name in names:
            call(["ip", "netns", "add", name])
            net.run(name, "ip", "link", "set", "lo", "up")
        _link(net.server, "net", SERVER, net.router, "sside", ROUTER_S)
        _link(net.clients, "net", CLIENT, net.router, "cside", ROUTER_C)
        net.run(net.server, "ip", "route", "add", "default", "via", ROUTER_S)
        net.run(net.clients, "ip", "route", "add", "default", "via", ROUTER_C)
        net.run(net.router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for where, end in ((net.server, "net"), (net.router, "sside")):
            net.run(
                where,
                "tc",
                "qdisc",
                "add",
                "dev",
                end,
                "root",
                "tbf",
                "rate",
                rate,
                "burst",
                "64kb",
                "latency",
                "100ms",
            )
        if loss:
            _lossy(net, loss)
        yield net
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def _lossy(net: Net, loss: float) -> None:
    """Lose packets of the server on the router, as they come off the wire.

    A segment of TCP is a packet, and a datagram that was fragmented is as many as it has
    fragments: nothing may be joined before or sent as one and cut later.
    """
    for where, end in ((net.server, "net"), (net.router, "sside")):
        net.run(where, "ip", "link", "set", "dev", end, "gso_max_segs", "1")
    rule = f"-t raw -A PREROUTING -i sside -m statistic --mode random --probability {loss} -j DROP"
    net.run(net.router, "iptables", *rule.split())


def _link(a: str, end_a: str, ip_a: str, b: str, end_b: str, ip_b: str) -> None:
    call(
        ["ip", "link", "add", end_a, "netns", a, "type", "veth", "peer", "name", end_b, "netns", b]
    )
    for where, end, ip in ((a, end_a, ip_a), (b, end_b, ip_b)):
        call(["ip", "-n", where, "addr", "add", f"{ip}/24", "dev", end])
        call(["ip", "-n", where, "link", "set", end, "up"])


def sent_by(net: Net) -> int:
    """Octets that the server's link has sent so far."""
    return int(net.run(net.server, "cat", "/sys/class/net/net/statistics/tx_bytes"))


@contextmanager
def running(argv: Sequence[str | Path], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program, with what it says in a file; it ends with the block."""
    with log.open("w") as file:
        child = subprocess.Popen(
            [str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def until(what: str, is_so: Any, log: Path | None = None) -> None:
    """Wait until something is so.

    Raises:
        RuntimeError: It is not within 20 s; with the end of what the program said.
    """
    end = time.monotonic() + 20
    while not is_so():
        if time.monotonic() > end:
            said = log.read_text()[-300:] if log and log.exists() else ""
            raise RuntimeError(f"{what}: not within 20 s; {said}")
        time.sleep(0.05)


@contextmanager
def nginx(net: Net, folder: Path, probe: str) -> Iterator[subprocess.Popen[bytes]]:
    """Serve the folder by HTTP, ``probe`` first; the server's process."""
    listens = f"listen {SERVER}:8081; listen {SERVER}:8082 http2;"
    config = (
        f"daemon off; master_process off; error_log {folder}/nginx.log; pid {folder}/nginx.pid;\n"
        f"events {{}}\nhttp {{ access_log off; client_body_temp_path {folder}/body; "
        f"proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fcgi; "
        f"uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi; sendfile on; "
        f"server {{ {listens} root {folder}; }} }}\n"
    )
    (folder / "nginx.conf").write_text(config)
    argv: list[str | Path] = [
        "ip",
        "netns",
        "exec",
        net.server,
        "nginx",
        "-c",
        folder / "nginx.conf",
    ]

    url = f"http://{SERVER}:8081/{probe}"

    def answers() -> bool:
        asked = ["ip", "netns", "exec", net.clients, "curl", "-sfI", url]
        return subprocess.run(asked, capture_output=True, check=False).returncode == 0

    with running(argv, folder / "nginx.out") as child:
        until("nginx answers", answers, folder / "nginx.log")
        yield child


@contextmanager
def _http(net: Net, folder: Path, file: Path) -> Iterator[None]:
    with nginx(net, folder, file.name):
        yield


@contextmanager
def _onym(net: Net, folder: Path, file: Path) -> Iterator[None]:
    with nodes(net, folder), _served(folder, file, folder / "s.sock"):
        yield


@contextmanager
def nodes(net: Net, folder: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Run a node in each namespace, with a route for ``/web``: processes by ``s``, ``r``, ``c``.

    The socket of each is ``s.sock``, ``r.sock``, ``c.sock`` in the folder.
    """
    onym = program("onym")
    found = {}
    with ExitStack() as stack:
        for name, where in (("s", net.server), ("r", net.router), ("c", net.clients)):
            settings = {
                "faces.unix.path": json.dumps(str(folder / f"{name}.sock")),
                "faces.udp.listen": '["0.0.0.0:6363"]',
                "faces.tcp.listen": "[]",
                "faces.websocket.listen": "[]",
            }
            argv: list[str | Path] = ["ip", "netns", "exec", where, onym, "daemon"]
            for key, value in settings.items():
                argv += ["--set", f"{key}={value}"]
            log = folder / f"{name}.log"
            found[name] = stack.enter_context(running(argv, log))
            until(f"node {name} is ready", lambda log=log: "ready" in log.read_text(), log)
        for name, peer in (("c", ROUTER_C), ("r", SERVER)):
            node = ["--node", f"unix://{folder}/{name}.sock"]
            call([onym, "face", "create", f"udp4://{peer}:6363", *node])
            call([onym, "route", "add", "/web", "--via", f"udp4://{peer}:6363", *node])
        yield found


@contextmanager
def _served(folder: Path, file: Path, socket: Path) -> Iterator[None]:
    """Publish the file at a forwarder's socket."""
    onym, node = program("onym"), f"unix://{socket}"
    put: list[str | Path] = [onym, "put", "/web/file", file, "--node", node]
    put += ["--segment-size", "8000", "--freshness", "3600000"]
    peek = [str(onym), "peek", "/web/file/32=metadata", "--prefix", "--node", node]
    with running(put, folder / "put.log"):
        until(
            "the file is published",
            lambda: subprocess.run(peek, capture_output=True, check=False).returncode == 0,
            folder / "put.log",
        )
        yield


def _foreign(name: str) -> Callable[[Net, Path, Path], AbstractContextManager[None]]:
    """Forwarders of others in the three namespaces, with routes to the server's."""

    @contextmanager
    def serve(net: Net, folder: Path, file: Path) -> Iterator[None]:
        forwarder = forwarders.make(name)
        spec = _as_spec(name)
        with ExitStack() as stack:
            places = []
            for here, where, peer in (
                ("s", net.server, None),
                ("r", net.router, SERVER),
                ("c", net.clients, ROUTER_C),
            ):
                home = folder / here
                home.mkdir()
                ports = []
                if peer:
                    ports.append(forwarders.Port("", peer, Link(here, ""), prefixes=["/web"]))
                place = forwarders.Place(
                    spec.node(here), home, [], ports, "udp", {}, spec, space=where
                )
                argv = ["ip", "netns", "exec", where, *forwarder.prepare(place)]
                log = folder / f"{here}.log"
                stack.enter_context(running(argv, log))
                until(f"{name} {here} answers", lambda p=place: forwarder.is_up(p), log)
                places.append(place)
            for place in places:
                forwarder.settle(place)
            (folder / "c.sock").symlink_to(places[2].socket)
            with _served(folder, file, places[0].socket):
                yield

    return serve


def _as_spec(name: str) -> Spec:
    """The three nodes in the words of an experiment's file, with its defaults."""
    text = f"""schema: onym-lab/1
name: web
title: Web
topology: {{nodes: [s, r, c], links: [[s, r], [r, c]]}}
subject: {name}
apps: [{{id: file, node: s, kind: put, prefix: /web, octets: 1kB}}]
phases: {{measure: 1s}}
"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "web.yaml"
        path.write_text(text)
        return files.load(path).spec({}, 1)


def _consumer(subject: str, net: Net, folder: Path) -> list[str]:
    if subject not in HTTP:
        return [
            str(program("onym")),
            "get",
            "/web/file",
            "-q",
            "-o",
            "-",
            "--node",
            f"unix://{folder}/c.sock",
        ]
    port, version = HTTP[subject]
    return [
        "ip",
        "netns",
        "exec",
        net.clients,
        "curl",
        "-sf",
        version,
        f"http://{SERVER}:{port}/file",
    ]


def fetch(given: Mapping[str, Any], seed: int, folder: Path) -> list[Row]:
    """Fetch the file by all consumers at once; times, and what the server had to send."""
    options = pick(given, subject="onym", consumers=1, octets=2_000_000, rate="50mbit", loss=0.0)
    file = folder / "file"
    file.write_bytes(bytes((seed + i) % 251 for i in range(1000)) * (options["octets"] // 1000))
    subject, count = str(options["subject"]), int(options["consumers"])
    serve = _http if subject in HTTP else _onym if subject == "onym" else _foreign(subject)
    with network(str(options["rate"]), float(options["loss"])) as net, serve(net, folder, file):
        before = sent_by(net)
        begun = time.monotonic()
        argv = _consumer(subject, net, folder)
        children = [
            subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            for _ in range(count)
        ]
        took = _await_all(children, begun)
        sent = sent_by(net) - before
    done = [t for t in took if t is not None]
    octets = file.stat().st_size
    file.unlink()
    return [
        row("all", "transfer_mean", "s", sum(done) / len(done) if done else None),
        row("all", "transfer_max", "s", max(done) if done else None),
        row("all", "distribution", "s", max(done) if len(done) == count else None),
        row("all", "completed", "objects", len(done)),
        row("all", "failed", "objects", count - len(done)),
        row("all", "fairness", "ratio", jain([1 / t for t in done]) if done else None),
        row("server", "server_sent", "octets", sent),
        row("server", "copies_sent", "ratio", sent / octets),
    ]


def _await_all(children: list[subprocess.Popen[bytes]], begun: float) -> list[float | None]:
    """Seconds until each ended well; None for one that failed or was still at it at the limit."""
    took: list[float | None] = [None] * len(children)
    waiting = dict(enumerate(children))
    while waiting and time.monotonic() - begun < AT_MOST_S:
        for n, child in list(waiting.items()):
            status = child.poll()
            if status is not None:
                took[n] = time.monotonic() - begun if status == 0 else None
                del waiting[n]
        time.sleep(0.005)
    for child in waiting.values():
        child.kill()
        child.wait()
    return took
