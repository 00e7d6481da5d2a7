#!/usr/bin/env python3
"""One of two rendezvous nodes is killed, and the other one serves in its place (spec/push.md, P-42, P-86).

    tests/push-lans/takeover.py ONYM

    first (rendezvous, topology) ── b (publishes) ── c ── last (rendezvous, topology; subscribes)
                                        └──────────────────┘

Daemons on loopback. Eight scopes, of which each of the two has some; when the first one is killed an
application at the last one subscribes to an item of each. The last of them must hear a publication
within a second of the kill, in one of three tries: with no store, and with etcd where that is on PATH.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[n] / at) for n, at in ((1, "support"), (2, "clients/python"))]
from nodes import PATIENCE, free_ports, running, settings, until
from onym.push import App, Data, Id, RefusedError, StartPublish, Strategy

# A neighbour that was only silent would be missed after 2.5 s at the earliest.
BOUND = 1.0
TRIES = 3
ROOTS = range(1, 9)
BOTH = '["rendezvous", "topology"]'
# By node: its roles, and the nodes that it has a link to.
NODES = {1: (BOTH, [2]), 2: ("[]", [1, 3, 4]), 3: ("[]", [2, 4]), 4: (BOTH, [2, 3])}


def start(stack: ExitStack, onym: str, folder: Path, more: list[str]) -> list[subprocess.Popen]:
    ports = dict(zip(NODES, free_ports(socket.SOCK_DGRAM, len(NODES)), strict=True))
    nodes = []
    for node, (roles, neighbours) in NODES.items():
        links = ", ".join(f'{{face="udp4://127.0.0.1:{ports[n]}"}}' for n in neighbours)
        sets = [
            "push.enabled=true", f'push.node="{node}"', f"push.roles={roles}", f"push.link=[{links}]",
            f'faces.unix.path="{folder}/{node}.sock"', f"faces.udp.listen=127.0.0.1:{ports[node]}",
            "faces.tcp.listen=[]", "faces.websocket.listen=[]", *more,
        ]  # fmt: skip
        words = [onym, "daemon", *settings(sets)]
        nodes.append(stack.enter_context(running(words, folder / f"{node}.log", "ready")))
    return nodes


def take_over(onym: str, more: list[str]) -> float:
    """Seconds from the kill until everything that is asked for then is served."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        first, *_ = start(stack, onym, folder, more)

        def uri(node: int) -> str:
            return f"unix://{folder}/{node}.sock"

        def status(node: int) -> dict:
            words = [onym, "--node", uri(node), "rendezvous", "status", "--json"]
            ran = subprocess.run(words, capture_output=True, check=False)
            return json.loads(ran.stdout) if ran.returncode == 0 else {}

        until(lambda: all(len(status(n).get("homes", [])) == 2 for n in NODES), "both serve")
        publisher, before = (stack.enter_context(App.open(uri(node))) for node in (2, 3))
        items = [Id.parse(f"/{root:x}/5") for root in ROOTS]
        for item in items:
            publisher.publish_scope(item.parent, Strategy.DOMAIN_LOCAL)
            publisher.publish_item(item, Strategy.DOMAIN_LOCAL)
            before.subscribe_item(item, Strategy.DOMAIN_LOCAL)
        started = set()
        while started != set(items):
            event = publisher.event(PATIENCE)
            assert event is not None, f"only {started} are wanted"
            if isinstance(event, StartPublish):
                started.add(event.id)

        first.kill()
        killed = time.monotonic()
        last = stack.enter_context(App.open(uri(4)))
        asked, heard = set(), set()
        while heard != set(items):
            assert time.monotonic() < killed + PATIENCE, f"heard {heard} alone"
            for item in items:
                if item not in asked:
                    # Nobody knows the scope yet.
                    with contextlib.suppress(RefusedError):
                        last.subscribe_item(item, Strategy.DOMAIN_LOCAL)
                        asked.add(item)
                publisher.publish(item, b"x", Strategy.DOMAIN_LOCAL)
            while (event := last.event(0.005)) is not None:
                if isinstance(event, Data):
                    heard.add(event.id)
            for app in (publisher, before):
                while app.event(0) is not None:
                    pass
        return time.monotonic() - killed


def check(what: str, onym: str, more: list[str]) -> None:
    for _ in range(TRIES):
        took = take_over(onym, more)
        print(f"{what}: the other one serves all {took:.2f} s after a rendezvous was killed")
        if took <= BOUND:
            return
    raise AssertionError(f"more than {BOUND} s each time")


def main() -> int:
    onym = os.path.realpath(sys.argv[1])
    check("without a store", onym, [])
    if not shutil.which("etcd"):
        print("with etcd: not tried, it is not there")
        return 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(socket.SOCK_STREAM, 2))
        words = ["etcd", "--data-dir", "data", "--listen-client-urls", client,
                 "--advertise-client-urls", client, "--listen-peer-urls", peer]  # fmt: skip
        stack.enter_context(running(words, folder / "etcd.log", "ready to serve client requests"))
        check("with etcd", onym, [f'push.etcd=["{client}"]'])
    return 0


if __name__ == "__main__":
    sys.exit(main())
