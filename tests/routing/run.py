#!/usr/bin/env python3
"""Routing of real nodes in network namespaces: failures, moves, neighbours by themselves.

    tests/routing/run.py ONYM [CASE...] [--octets N]

Cases: killed, moves, line, lan, names, hub, border, mtu; without any, all. Exit status 77: not root, or no `ip`.
"""

import argparse
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from mtu import mtu
from net import PATIENCE, Net, Node, ip, took, until

DEAD_S = 3
QUICK = ("routing.advertise_interval_ms=1000", f"routing.dead_interval_ms={DEAD_S * 1000}")
OCTETS = 100_000_000


def open_net(*settings: str):
    """Routers that believe everybody, where keys are not what is looked at."""
    return ("routing.insecure=true", *settings)


def written(get: subprocess.Popen) -> int:
    """Octets of the file that a process writes, which has no name yet."""
    most = 0
    for fd in Path(f"/proc/{get.pid}/fd").glob("*"):
        try:
            about = fd.stat()
        except OSError:
            continue
        if stat.S_ISREG(about.st_mode):
            most = max(most, about.st_size)
    return most


def gap_of(report: Path) -> float:
    """The longest time without any segment, in seconds."""
    return json.loads(report.read_text()).get("gap_max_ms", 0) / 1000


def told(report: Path) -> str:
    """What `get` reports about what was lost."""
    all_, gap = json.loads(report.read_text()), gap_of(report)
    return (f"{all_['bytes']} octets in {all_['seconds']:.1f} s, {all_['retransmitted']} segments "
            f"asked again, longest time without any {gap:.2f} s")  # fmt: skip


def fetch(node: Node, name: str, file: str) -> tuple[subprocess.Popen, Path]:
    folder = node.folder / file
    folder.mkdir()
    report = (folder.parent / f"{file}.json").open("w")
    get = node.go("get", name, "-o", str(folder / "content"), "--json", stdout=report)
    return get, folder


def square(onym: str, stack: ExitStack) -> tuple[Net, list[Node]]:
    """a - b - d is the best way, a - c - d the other one."""
    net = Net(onym, stack)
    a, b, c, d = (net.node(n) for n in "abcd")
    net.join(a, b)
    net.join(b, d)
    net.join(a, c, 2)
    net.join(c, d, 2)
    for node in (a, b, c, d):
        node.start(*open_net(*QUICK))
    until(lambda: a.reaches("/net/d", "/net/b") and d.reaches("/net/a", "/net/b"), "the best way")
    until(lambda: a.reaches("/net/c") and d.reaches("/net/c"), "the other way")
    return net, [a, b, c, d]


def killed(onym: str, stack: ExitStack, octets: int) -> None:
    """The middle node of the best way dies in the middle of a fetch, which goes on."""
    net, (a, b, _, d) = square(onym, stack)
    content = os.urandom(octets)
    (net.folder / "in").write_bytes(content)
    for case, silent in (("its process is killed", False), ("its machine falls silent", True)):
        # Another name: what was fetched before is in content stores.
        name = f"/app/{silent}"
        a.go("put", name, str(net.folder / "in"), stdout=subprocess.DEVNULL)
        until(lambda n=name: d.knows(n, "/net/a"), "the prefix")
        get, folder = fetch(d, name, f"out{silent}")
        until(lambda g=get: written(g) > octets // 5, "a fifth of the file")
        if silent:
            for device in ("toa", "tod"):
                subprocess.run(b.inside("iptables", "-A", "INPUT", "-i", device, "-j", "DROP"),
                               check=True)  # fmt: skip
                subprocess.run(b.inside("iptables", "-A", "OUTPUT", "-o", device, "-j", "DROP"),
                               check=True)  # fmt: skip
        at = written(get)
        b.kill()
        begun = time.monotonic()
        assert get.poll() is None, "killed after the end: a larger file is needed"
        assert get.wait(120) == 0, (d.folder / f"out{silent}.json").read_text()
        assert (folder / "content").read_bytes() == content, "the file arrived as it was"
        print(f"killed: {case} at {at / octets:.0%}; done {time.monotonic() - begun:.1f} s later: "
              + told(d.folder / f"out{silent}.json"))  # fmt: skip
        until(lambda: d.reaches("/net/a", "/net/c"), "the other way")
        gap = gap_of(d.folder / f"out{silent}.json")
        # Its host refuses packets at once; a silent machine is missed after the dead interval.
        assert silent or "its host refuses packets" in d.log(), d.log()
        assert gap < (1.2 * DEAD_S + 1 if silent else DEAD_S - 0.5), gap
        if not silent:
            b.start(*open_net(*QUICK))
            until(lambda: d.reaches("/net/a", "/net/b"), "the best way again")


def moves(onym: str, stack: ExitStack, octets: int) -> None:
    """A producer moves from one end of a line to the other while its file is fetched."""
    net = Net(onym, stack)
    a, b, c, d = (net.node(n) for n in "abcd")
    for pair in ((a, b), (b, c), (c, d)):
        net.join(*pair)
    for node in (a, b, c, d):
        node.start(*open_net())
    until(lambda: a.reaches("/net/d") and d.reaches("/net/a"), "the ends")
    content = os.urandom(octets)
    (net.folder / "in").write_bytes(content)

    def put(node: Node) -> subprocess.Popen:
        return node.go("put", "/app/moving", str(net.folder / "in"), "--version", "7",
                       stdout=subprocess.PIPE, text=True)  # fmt: skip

    first = put(a)
    until(lambda: b.knows("/app/moving", "/net/a"), "its first place")
    get, folder = fetch(b, "/app/moving", "out")
    until(lambda: written(get) > octets // 5, "a fifth of the file")
    first.terminate()
    first.wait(PATIENCE)
    assert get.poll() is None, "moved after the end: a larger file is needed"
    second = put(d)
    while "ready" not in second.stdout.readline():
        pass
    moved = took("its new place", lambda: b.knows("/app/moving", "/net/d"))
    assert get.wait(120) == 0
    assert (folder / "content").read_bytes() == content, "the file arrived as it was"
    print(f"moves: reachable {moved:.2f} s after its registration; " + told(b.folder / "out.json"))
    assert moved < 2, moved


def line(onym: str, stack: ExitStack, _: int) -> None:
    """Three routers with the usual intervals know each other within five seconds."""
    net = Net(onym, stack)
    a, b, c = (net.node(n) for n in "abc")
    net.join(a, b)
    net.join(c, b)
    for node in (a, b, c):
        node.start(*open_net())
    up = took("the ends", lambda: a.reaches("/net/c") and c.reaches("/net/a"))
    print(f"line: three routers know each other {up:.2f} s after the last is ready")
    assert up < 5, up


def share_keys(first: Node, other: Node, where: str = "routing") -> None:
    """What a second router of the network gets from the first."""
    folder = other.folder / where
    folder.mkdir()
    for name in ("network.cert", "network.key"):
        shutil.copy(first.folder / "routing" / name, folder / name)


def faces(node: Node, scheme: str) -> list[str]:
    """Remote URIs of unicast faces to other machines."""
    shown = node.told("face", "list") or []
    far = [f for f in shown if f["scope"] == "non-local" and f["link"] == "point-to-point"]
    return [f["remote"] for f in far if f["remote"].startswith(scheme) and f["id"] > 255]


def lan(onym: str, stack: ExitStack, _: int) -> None:
    """Routers on a LAN find each other, whatever addresses there are, and nobody else."""
    for kind in ("ipv6", "ipv4", "both", "ethernet"):
        with ExitStack() as inner:
            one_lan(onym, inner, kind)


def one_lan(onym: str, stack: ExitStack, kind: str) -> None:
    net = Net(onym, stack)
    a, b, c, s = nodes = [net.node(n) for n in "abcs"]
    off = "1" if kind in ("ipv4", "ethernet") else "0"
    for node in nodes:
        for where in ("all", "default"):
            for key, value in (("disable_ipv6", off), ("accept_dad", "0")):
                subprocess.run(node.inside("sysctl", "-qw", f"net.ipv6.conf.{where}.{key}={value}"),
                               check=True)  # fmt: skip
    net.lan(nodes, "10.78.0" if kind in ("ipv4", "both") else None)
    if off == "0":
        for node in nodes:
            until(lambda n=node: "fe80" in address(n), "a link-local address")
    settings = ["routing.discover=true", *QUICK]
    if kind == "ethernet":
        settings += ['faces.ether.interfaces=["lan0"]', "faces.udp.listen=[]"]
    a.start(*settings)
    until(lambda: (a.folder / "routing" / "network.key").exists(), "keys")
    for node in (b, c):
        share_keys(a, node)
        node.start(*settings)
    s.start(*settings)  # Makes a network of its own, of the same name.
    all_ = lambda: all(n.reaches(f"/net/{o.name}", f"/net/{o.name}")  # noqa: E731
                       for n in (a, b, c) for o in (a, b, c) if n is not o)  # fmt: skip
    found = took("three routers that found each other", all_)
    scheme = {"ipv6": "udp6://[fe80", "ipv4": "udp4", "both": "udp6", "ethernet": "ether"}[kind]
    until(lambda: all(len(faces(n, "")) == 2 for n in (a, b, c)), "one face to each neighbour")
    assert all(len(faces(n, scheme)) == 2 for n in (a, b, c)), faces(a, "")
    until(lambda: "/net/s" in a.log() and "refused" in a.log(), "the stranger is refused")
    assert not faces(s, ""), faces(s, "")
    c.kill()
    gone = took("the face to go", lambda: len(faces(a, "")) == 1)
    assert not a.reaches("/net/c")
    c.start(*settings)
    again = took("the neighbour again", all_)
    print(f"lan, {kind}: three routers found each other after {found:.1f} s; one was killed, its face "
          f"went after {gone:.1f} s, and it was found again after {again:.1f} s")  # fmt: skip


def address(node: Node) -> str:
    words = node.inside("ip", "-6", "address", "show", "dev", "lan0", "scope", "link")
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return "" if "tentative" in shown else shown


def names(onym: str, stack: ExitStack, _: int) -> None:
    """A neighbour that is named by its host is followed to its new address."""
    net = Net(onym, stack)
    a, b = net.node("a"), net.node("b")
    # What `ip netns exec` shows as /etc/hosts there.
    etc = Path("/etc/netns") / a.space
    etc.mkdir(parents=True)
    stack.callback(shutil.rmtree, etc)
    net.join(a, b)
    old, new = b.addresses[-1], "10.77.1.77"
    hosts = etc / "hosts"
    hosts.write_text(f"{old} neighbour.test\n")
    a.links = ['{uri="udp4://neighbour.test"}']
    b.links = []
    b.start(*open_net(*QUICK))
    a.start(*open_net(*QUICK), "routing.resolve_interval_ms=1000")
    until(lambda: a.reaches("/net/b"), "the neighbour by its name")
    device = "toa"
    ip("-n", b.space, "address", "del", f"{old}/24", "dev", device)
    ip("-n", b.space, "address", "add", f"{new}/24", "dev", device)
    until(lambda: not a.reaches("/net/b"), "the old address is silent")
    # In place: it is the file, and not its name, that is seen there.
    hosts.write_text(f"{new} neighbour.test\n")
    followed = took("the new address", lambda: a.reaches("/net/b") and b.reaches("/net/a"))
    until(lambda: faces(a, "") == [f"udp4://{new}:6363"], "the old face is gone")
    print(f"names: the new address is followed {followed:.1f} s after the name changed")


def hub(onym: str, stack: ExitStack, _: int) -> None:
    """A node finds a hub on its LAN, and reaches through it what it has no other way to."""
    net = Net(onym, stack)
    a, b = nodes = [net.node(n) for n in "ab"]
    net.lan(nodes, "10.79.0")
    groups = 'faces.udp.multicast=["224.0.23.170:56363"]'
    for node in nodes:
        node.start('routing.network=""', groups)
    served = a.go("hub", "serve", "udp4://10.79.0.1:6363", stdout=subprocess.PIPE, text=True)
    assert "ready" in served.stdout.readline()
    (net.folder / "in").write_text("behind the hub")
    a.go("put", "/app/far", str(net.folder / "in"), stdout=subprocess.DEVNULL)
    until(lambda: "/app/far" in a.run("route", "list"), "the producer")
    found = b.run("hub", "find")
    assert "udp4://10.79.0.1:6363 by multicast" in found, found
    got = b.run("get", "/app/far", "-o", "-")
    assert got == "behind the hub", got
    print(f"hub: {found.strip()}")


def border(onym: str, stack: ExitStack, _: int) -> None:
    """A node in two networks tells each what the other has: one prefix by one, or a summary.

    In the further network it finds one neighbour on a LAN, and has a link to another.
    """
    net = Net(onym, stack)
    a, b, c, d = (net.node(n) for n in "abcd")
    net.join(a, b)
    net.join(b, d)
    net.lan([b, c], "10.78.0")
    inner, b.links = b.links[1], b.links[:1]
    # Keys of /net are made by a, those of /far by c; the border gets both.
    a.start(*QUICK)
    far = ('routing.network="/far"', *QUICK)
    c.start(*far, 'routing.router="/far/c"', "routing.discover=true")
    for node in (a, c):
        until(lambda n=node: (n.folder / "routing" / "router.cert").exists(), "keys")
    share_keys(c, d)
    d.start(*far, 'routing.router="/far/d"')
    share_keys(a, b)
    share_keys(c, b, "routing/far")
    area = f'{{network="/far",router="/far/b",discover=true,neighbour=[{inner}]}}'
    summary = '{prefix="/far/site",cost=7}'
    exports = (f'{{from="/far",to="/net",summary=[{summary}],others=false}},'
               '{from="/net",to="/far"}')  # fmt: skip
    b.start(*QUICK, f"routing.area=[{area}]", f"routing.export=[{exports}]")
    (net.folder / "in").write_text("from the other network")
    puts = [c.go("put", name, str(net.folder / "in"), stdout=subprocess.DEVNULL)
            for name in ("/far/site/x", "/far/secret")]  # fmt: skip
    a.go("put", "/net/app", str(net.folder / "in"), stdout=subprocess.DEVNULL)
    known = took("the summary", lambda: a.knows("/far/site", "/net/b"))
    for node in (c, d):
        until(lambda n=node: n.knows("/net/app", "/far/b"), "the prefix of the other network")
    until(lambda: d.knows("/far/site/x", "/far/c"), "the prefix of the neighbour that was found")
    for node, name in ((a, "/far/site/x"), (c, "/net/app"), (d, "/far/site/x")):
        got = node.run("get", name, "-o", "-")
        assert got == "from the other network", (node.name, name, got)
    heard = [p["prefix"] for p in a.told("route", "prefixes")["remote"]]
    assert not {"/far/site/x", "/far/secret"} & set(heard), heard
    assert not a.reaches("/far/c"), "routers of the other network are not heard of"
    border_tells(b)
    puts[0].terminate()
    gone = took("the summary to go", lambda: not a.knows("/far/site", "/net/b"))
    print(f"border: a summary of the other network is known {known:.2f} s after the border is ready, "
          f"and goes {gone:.2f} s after the last prefix under it")  # fmt: skip


def border_tells(b: Node) -> None:
    """Each network of a border has its datasets, and is operated for itself."""
    of = ("--network", "/far")

    def neighbours(*more: str) -> list[str]:
        return sorted(n["router"] for n in b.told("route", "neighbours", *more))

    assert neighbours() == ["/net/a"], neighbours()
    assert neighbours(*of) == ["/far/c", "/far/d"], neighbours(*of)
    assert b.told("route", "status")["networks"] == ["/net", "/far"]
    assert "the node is not in /else" in b.refused("route", "status", "--network", "/else")
    told = b.told("route", "explain", "/far/site/x", *of)
    assert [r["router"] for r in told["routers"]] == ["/far/c"] and told["outside"] is None, told
    told = b.told("route", "explain", "/far/site/x")["outside"]
    assert told["announced"] is None, "only its summary is told"
    assert b.told("route", "explain", "/far/site/x")["routers"] == []
    told = b.told("route", "explain", "/far/site")["outside"]
    assert (told["announced"], told["through"], told["is_summary"]) == (7, ["/far"], True), told
    folder = ("--folder", str(b.folder / "routing"))
    b.run("route", "hold", "/far/d", *folder)
    until(lambda: neighbours(*of) == ["/far/c"], "a neighbour held down in the further network")
    assert neighbours() == ["/net/a"], neighbours()
    b.run("route", "release", "/far/d", *folder)
    until(lambda: neighbours(*of) == ["/far/c", "/far/d"], "it is back")


CASES = {case.__name__: case for case in (killed, moves, line, lan, names, hub, border, mtu)}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("onym")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--octets", type=int, default=OCTETS)
    args = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("iptables"):
        print("network namespaces need root, ip and iptables")
        return 77
    for case in args.cases or CASES:
        with ExitStack() as stack:
            CASES[case](os.path.realpath(args.onym), stack, args.octets)
    return 0


if __name__ == "__main__":
    sys.exit(main())
