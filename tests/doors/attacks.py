#!/usr/bin/env python3
"""What an attack costs: memory, processor time and the time of others, each with its bound.

    tests/doors/attacks.py ONYM [CASE]...

Each case does its worst to a daemon for some seconds, prints the figure, and fails beyond the bound.
The bounds hold for a release build. docs/security.md has a row for each.
"""

import http.client
import json
import os
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import ndn
from ndn import App, data, interest, name, tlv
from run import Node, Skipped, ended, play, serve, until

MB = 1 << 20
HOUR_MS = 3_600_000


def told(text: str) -> None:
    print(f"  {text}", flush=True)


def cpu_s(pid: int) -> float:
    """Processor time of a process, exact."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def settled_s(pid: int) -> float:
    """As `cpu_s`, once nothing is worked at any more: other threads have taken what they were given."""
    before = cpu_s(pid)
    while True:
        time.sleep(0.05)
        now = cpu_s(pid)
        if now - before < 0.002:
            return now
        before = now


def mean_ms(node: Node, prefix: str, count: int = 100) -> float:
    """Of pings that are all answered."""
    done = node.run("ping", prefix, "--count", str(count), "--interval", "10", "--json")
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["answered"] == count, summary
    return summary["rtt_ms"]["mean"]


def silent() -> socket.socket:
    """A UDP port that answers nothing."""
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.bind(("127.0.0.1", 0))
    return peer


def dead_route(node: Node, prefix: str) -> socket.socket:
    peer = silent()
    node.run("route", "add", prefix, "--via", f"udp4://127.0.0.1:{peer.getsockname()[1]}")
    return peer


def pending(onym: str, folder: Path) -> None:
    """Names of 8 KB, an hour's lifetime, a route that answers nothing, for two seconds."""
    node = Node(onym, folder, "shards=1")
    try:
        peer = dead_route(node, "/dead")
        with ended(serve(node, "/victim")):
            before = node.resident()
            attacker = App(str(node.socket))
            filler = b"x" * 8000
            begun, sent, most = time.monotonic(), 0, 0
            while time.monotonic() < begun + 2:
                batch = [interest(name(b"dead", ndn.RNG.randbytes(8), filler), lifetime_ms=HOUR_MS)
                         for _ in range(500)]
                attacker.send(b"".join(batch))
                sent += len(batch)
                most = max(most, node.resident())
            mean = mean_ms(node, "/victim", 50)
            most = max(most, node.resident())
            attacker.close()
            until(lambda: json.loads(node.run("status", "--json").stdout)["general"]["pit_entries"] < 100,
                  "the Interests of the face that ended are gone")
            until(lambda: node.resident() < before + 64 * MB, "memory is handed back")
            told(f"{sent} Interests: {before / MB:.0f} MB before, {most / MB:.0f} at most, "
                 f"{node.resident() / MB:.0f} after the face; a victim's mean {mean:.2f} ms")
            assert most < before + 256 * MB, most
        peer.close()
    finally:
        node.stop()


def addresses(onym: str, folder: Path) -> None:
    """One packet each from 14,336 addresses, and 480 more a second: a new peer is let in."""
    node = Node(onym, folder, "shards=1", 'faces.udp.listen=["127.0.0.1:0"]')
    word = 'kind="udp"'
    until(lambda: word in node.text(), "it listens")
    line = next(line for line in node.text().splitlines() if word in line)
    to = ("127.0.0.1", int(line.split("address=")[1].split()[0].rsplit(":", 1)[1]))
    wire = interest(name(b"nobody"))
    over = threading.Event()

    # They stay open: a port that is unreachable would tell the node that its peer has gone.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most < 18_000:
        raise Skipped("too few files may be open")
    peers: list[socket.socket] = []

    def from_address(n: int) -> None:
        peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        peer.bind((f"127.{10 + n // 65536}.{n // 256 % 256}.{n % 256}", 0))
        peer.sendto(wire, to)
        peers.append(peer)

    def go_on() -> None:
        n = 14336
        while not over.wait(1 / 480):
            from_address(n)
            # Those that were made first are of no use to the attacker any more.
            peers[n - 14336].close()
            n += 1

    try:
        with ended(serve(node, "/victim")):
            for n in range(14336):
                from_address(n)
                if n % 64 == 0:
                    # What the socket of the listener holds is all that can come at once.
                    time.sleep(0.002)
            flood = threading.Thread(target=go_on)
            flood.start()
            try:
                waits = []
                for n in range(20):
                    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as honest:
                        honest.bind((f"127.200.{n}.1", 0))
                        honest.settimeout(0.1)
                        begun = time.monotonic()
                        while True:
                            asked = name(b"victim", b"ping", str(n * 1000).encode())
                            honest.sendto(interest(asked), to)
                            try:
                                honest.recv(9000)
                                break
                            except TimeoutError:
                                assert time.monotonic() < begun + 30, "a new peer is locked out"
                        waits.append(time.monotonic() - begun)
            finally:
                over.set()
                flood.join()
            faces = len(json.loads(node.run("face", "list", "--json").stdout))
            told(f"{faces} faces; a new peer is answered after {sum(waits) / len(waits):.2f} s on the "
                 f"mean, {max(waits):.2f} s at most; {node.resident() / MB:.0f} MB")
            # The first ones wait for the crowd before them to be taken in.
            assert max(waits) < 15, waits
    finally:
        node.stop()
        for peer in peers:
            peer.close()


def message(kind: int, tag: int, label: bytes = b"", strategy: int = 2) -> bytes:
    """A request of an application to the push half."""
    fields = tlv(1, label) + tlv(5, bytes([strategy])) if label else b""
    return tlv(0xF2, struct.pack(">BBI", 1, kind, tag) + fields)


def scopes(onym: str, folder: Path) -> None:
    """An application that publishes 900,000 root scopes."""
    node = Node(onym, folder, "push.enabled=true", 'push.node="1"')
    try:
        before = node.resident()
        app = App(str(node.socket))
        app.send(message(9, 1))
        begun, most, sent = time.monotonic(), 0, 0
        for at in range(0, 900_000, 5000):
            app.send(b"".join(message(0, n, struct.pack(">Q", n + 1)) for n in range(at, at + 5000)))
            sent += 5000
            most = max(most, node.resident())
        seconds = time.monotonic() - begun
        # Another application still publishes.
        other = App(str(node.socket))
        other.send(message(9, 1) + message(0, 77, struct.pack(">Q", 0xABCDEF01)))
        done = bytes.fromhex("016a0000004d070100")
        # Sending takes what comes meanwhile: the answer may be there already.
        until(lambda: done in other.got or other.take(1) and done in other.got,
              "another application publishes")
        most = max(most, node.resident())
        app.close()
        begun, peak = time.monotonic(), most
        node.run("scope", "list")
        answered = time.monotonic() - begun

        def is_handed_back() -> bool:
            nonlocal peak
            peak = max(peak, node.resident())
            return node.resident() < before + 96 * MB

        until(is_handed_back, "memory is handed back")
        told(f"{sent} scopes asked for in {seconds:.1f} s: {before / MB:.0f} MB before, "
             f"{most / MB:.0f} at most; when they are taken back another one is answered after "
             f"{answered:.2f} s, {peak / MB:.0f} MB at most, {node.resident() / MB:.0f} after "
             f"{time.monotonic() - begun:.1f} s")
        # push.graph_bytes_max
        assert peak < before + 512 * MB, peak
    finally:
        node.stop()


def stale(onym: str, folder: Path) -> None:
    """CanBePrefix and MustBeFresh over 65,536 stale packets."""
    node = Node(onym, folder, "shards=1", "cs.packets_max=65536", 'cs.unsolicited="admit-local"')
    try:
        with ended(serve(node, "/victim")):
            producer = App(str(node.socket))
            for at in range(0, 65536, 4096):
                batch = (data(name(b"stale", b"%08d" % n), freshness_ms=1)
                         for n in range(at, at + 4096))
                producer.send(b"".join(batch))
            producer.until_done()
            quiet = mean_ms(node, "/victim")
            # Nobody has a route for it: the search is all there is to pay for.
            asked = name(b"stale")
            count = 40_000
            wires = [b"".join(interest(asked, ndn.CAN_BE_PREFIX + ndn.MUST_BE_FRESH)
                              for _ in range(400)) for _ in range(count // 400)]
            attacker, octets = App(str(node.socket)), sum(map(len, wires))
            start = cpu_s(node.child.pid)
            for wire in wires:
                attacker.send(wire)
            attacker.until_done()
            each = (cpu_s(node.child.pid) - start) / count * 1e9
            over = threading.Event()

            def attack() -> None:
                while not over.is_set():
                    for wire in wires:
                        attacker.send(wire)

            flood = threading.Thread(target=attack)
            flood.start()
            try:
                mean = mean_ms(node, "/victim")
            finally:
                over.set()
                flood.join()
            told(f"{each:.0f} ns a packet, {each * count / octets:.0f} ns an octet; a victim's mean "
                 f"{quiet:.2f} ms before and {mean:.2f} ms under attack")
            assert each * count / octets < DEAR_NS, each
            assert mean < 10, mean
    finally:
        node.stop()


def fetch(node: Node, folder: Path, version: int, *more: str) -> tuple[int, float, int, str]:
    """`onym get` of what `/hostile` has: its exit code, seconds, octets of memory at most, its words."""
    name, out = f"/hostile/v={version}", str(folder / "out")
    words = [node.onym, "get", name, "-o", out, "--node", node.uri, *more]
    begun = time.monotonic()
    child = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert not Path(out).exists(), "nothing is left behind"
    return child.returncode, time.monotonic() - begun, usage.ru_maxrss * 1024, said


def endless(onym: str, folder: Path) -> None:
    """Producers without an end: what `onym get` takes of them until it ends."""
    content = b"x" * 8000
    # What the producer does, the words of the fetch, its exit code, seconds and octets at most.
    cases = [
        ("a FinalBlockId that moves", lambda of, n: data(of, content, last=n + 10),
         (), 4, 5, 10 * MB),
        ("no FinalBlockId, --size-max 100M", lambda of, n: data(of, content),
         ("--size-max", "100M"), 4, 60, 150 * MB),
        ("FinalBlockId 2^64-1", lambda of, n: data(of, content, last=2**64 - 1), (), 4, 5, 10 * MB),
        ("congestion Nacks for ever", lambda of, n: b"", (), 5, 120, MB),
    ]
    node = Node(onym, folder, "shards=1", "cs.packets_max=0")
    try:
        for version, (what, answer, more, code, most_s, most) in enumerate(cases, 1):
            producer = ndn.Producer(str(node.socket), name(b"hostile"), answer)
            try:
                ended, seconds, memory, said = fetch(node, folder, version, *more)
            finally:
                producer.end()
            told(f"{what}: ends after {seconds:.2f} s, {producer.answers} answers, "
                 f"{producer.octets} octets; {memory / MB:.0f} MB of memory at most")
            assert ended == code, (ended, said)
            assert seconds < most_s and producer.octets < most, said
    finally:
        node.stop()


# Copies for further next hops shorten the turns of who asked (crates/forward/src/fairness.rs).
FACES = 32
# Another user than the node's.
STRANGER = 54_322
# What an operator has the node do is no attack: told, without a bound.
OPERATORS = {"command of an operator"}
CHARGED = {f"to {FACES} next hops"}
# No other packet may cost more for each of its octets: twice what the dearest one took before.
DEAR_NS = 88


def kinds() -> dict[str, list[bytes]]:
    """Packets that may be dear, each with its measure of many."""
    rng, some = ndn.RNG, range(20_000)
    key = lambda: rng.randbytes(6)  # noqa: E731
    deep = lambda n: [b"dead", key(), *[b"y"] * n]  # noqa: E731
    hint = tlv(0x1E, b"".join(name(b"far", b"%d" % n) for n in range(20)))
    command = lambda module, verb, more: ndn.command(module, verb, more)  # noqa: E731
    prefix = tlv(7, tlv(8, b"mine"))
    few = range(2000)
    return {
        "command of an operator": [command(b"cs", b"erase", prefix) for _ in range(3000)],
        "no route": [interest(name(b"none", key())) for _ in some],
        "pending": [interest(name(b"dead", key())) for _ in some],
        "pending, 8 KB": [interest(name(b"dead", key(), b"x" * 8000)) for _ in few],
        "pending, 32 components": [interest(name(*deep(30))) for _ in some],
        "pending, 2000 components": [interest(name(*deep(2000))) for _ in few],
        "the same nonce": [interest(name(b"dead", b"same"), nonce=b"same") for _ in some],
        "prefix, nothing there": [interest(name(b"none", key()), ndn.CAN_BE_PREFIX) for _ in some],
        "hint of 20 names": [interest(name(b"none", key()), hint) for _ in range(5000)],
        f"to {FACES} next hops": [interest(name(b"many", key())) for _ in range(2000)],
        "Data nobody asked for": [data(name(b"none", key())) for _ in some],
        "Data nobody asked for, deep": [data(name(*deep(500))) for _ in few],
        "no packet": [tlv(5, tlv(7, b"\x08\xff")) for _ in some],
        "first of many fragments": [
            tlv(100, tlv(81, struct.pack(">Q", 2 * n)) + tlv(82, b"\0") + tlv(83, b"\x09")
                + tlv(80, b"z" * 40)) for n in some],
        "command refused": [command(b"cs", b"erase", prefix) for _ in range(3000)],
        "registration": [command(b"rib", b"register", prefix) for _ in range(3000)],
        "list of faces": [interest(name(b"localhost", b"nfd", b"faces", b"list"),
                                   ndn.CAN_BE_PREFIX + ndn.MUST_BE_FRESH) for _ in range(3000)],
        "status": [interest(name(b"localhost", b"onym", b"status", b"node"),
                            ndn.CAN_BE_PREFIX + ndn.MUST_BE_FRESH) for _ in range(1000)],
    }


def attacker_of(node: Node, kind: str) -> App:
    return App(str(node.socket), 0 if kind in OPERATORS else STRANGER)


def beside(node: Node, kind: str, wires: list[bytes]) -> tuple[float, float]:
    """A victim's mean round trip beside a flood of `wires`, and how long a question of another one to
    management takes, both in milliseconds."""
    attacker, over = attacker_of(node, kind), threading.Event()
    batches = [b"".join(wires[at:at + 500]) for at in range(0, len(wires), 500)]

    def attack() -> None:
        while not over.is_set():
            for batch in batches:
                attacker.send(batch)

    flood = threading.Thread(target=attack)
    flood.start()
    try:
        mean = mean_ms(node, "/victim")
        begun = time.monotonic()
        node.run("face", "list")
        return mean, (time.monotonic() - begun) * 1000
    finally:
        over.set()
        flood.join()
        attacker.close()


def dearest(onym: str, folder: Path) -> None:
    """Processor time of packets of many kinds, for each octet, and others beside a flood of the dearest."""
    folder.chmod(0o755)
    node = Node(onym, folder, "shards=1")
    peers = [dead_route(node, "/dead")]
    node.run("strategy", "set", "/many", "multicast")
    peers += [dead_route(node, "/many") for _ in range(FACES)]
    try:
        dear, all_kinds = {}, kinds()
        with ended(serve(node, "/victim")):
            for kind, wires in all_kinds.items():
                attacker, octets = attacker_of(node, kind), sum(map(len, wires))
                attacker.until_done()
                start = settled_s(node.child.pid)
                for at in range(0, len(wires), 500):
                    attacker.send(b"".join(wires[at:at + 500]))
                attacker.until_done()
                took = (settled_s(node.child.pid) - start) * 1e9
                attacker.close()
                dear[kind] = took / octets
                told(f"{kind:28} {took / len(wires):8.0f} ns a packet, {dear[kind]:6.1f} ns an octet")
            quiet = mean_ms(node, "/victim")
            dearest_first = sorted(dear.keys() - OPERATORS, key=dear.__getitem__, reverse=True)
            # What an operator has the node do has no bound of its own, but others go on beside it.
            for kind in [*OPERATORS, *dearest_first[:3]]:
                mean, asked = beside(node, kind, all_kinds[kind])
                told(f"beside a flood of {kind}: a victim's mean {mean:.2f} ms ({quiet:.2f} before), "
                     f"another one's question to the node {asked:.0f} ms")
                assert mean < 10 and asked < 2000, (kind, mean, asked)
        beyond = {kind: f"{ns:.0f}" for kind, ns in dear.items()
                  if ns > DEAR_NS and kind not in CHARGED | OPERATORS}
        assert not beyond, beyond
    finally:
        node.stop()
        for peer in peers:
            peer.close()


def ready(line: str) -> dict[str, str]:
    return json.loads(line.split("ready ", 1)[1])


def honest_s(control: str) -> float:
    """How long one request takes."""
    host = control.removeprefix("http://")
    begun = time.monotonic()
    connection = http.client.HTTPConnection(host, timeout=30)
    connection.request("GET", "/v1/health")
    assert connection.getresponse().status == 200
    connection.close()
    return time.monotonic() - begun


def half_open(onym: str, folder: Path) -> None:
    """200 connections that say nothing at a service's control interface, for as long as a manager
    takes to miss one."""
    env = {**os.environ, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}
    words = [onym, "manager", "--listen", "127.0.0.1:0", "--state", str(folder / "state")]
    manager = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=env, cwd=folder)
    with ended(manager):
        url = ready(next(line for line in manager.stderr if line.startswith("ready ")))["url"]
        threading.Thread(target=manager.stderr.read, daemon=True).start()

        def net(*more: str) -> str:
            done = subprocess.run([onym, "net", "--manager", url, *more], env=env, text=True,
                                  capture_output=True, timeout=60, cwd=folder)
            assert done.returncode == 0, done.stderr
            return done.stdout

        net("preset", "minimal")
        shown = lambda: json.loads(net("show", "--json"))["functions"]  # noqa: E731
        until(lambda: all(f["state"] == "up" for f in shown().values()), "the network is up")
        label, function = next(iter(sorted(shown().items())))
        held, waits, end = [], [], time.monotonic() + 14
        where = function["control"].removeprefix("http://").split(":")
        while time.monotonic() < end:
            while len(held) < 200:
                held.append(socket.create_connection((where[0], int(where[1]))))
            held.pop(0).close()
            if len(waits) < 200:
                waits.append(honest_s(function["control"]))
        now = shown()[label]
        for connection in held:
            connection.close()
        told(f"an honest request takes {sum(waits) / len(waits) * 1000:.1f} ms on the mean, "
             f"{max(waits) * 1000:.0f} ms at most; {label} is {now['state']}, the one of before")
        assert max(waits) < 5, waits
        assert now["handle"] == function["handle"], (function, now)
        net("down")


CASES = [pending, addresses, scopes, stale, dearest, half_open, endless]

if __name__ == "__main__":
    sys.exit(play(CASES))
