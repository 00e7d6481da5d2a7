"""Two neighbours whose path is narrow in the middle, where nobody says so (no ICMP)."""

import os
import subprocess
import time
from contextlib import ExitStack

from net import PORT, Net, Node, ip, space, until

# Of IPv4 and UDP.
HEADERS = 28
NARROW, NARROWER = 1400, 1340


def wire(number: int, ends: list[tuple[str, str]]) -> None:
    """A veth between two namespaces, 10.78.NUMBER.1 and .2."""
    (a, to_b), (b, to_a) = ends
    ip("link", "add", to_b, "netns", a, "type", "veth", "peer", "name", to_a, "netns", b)
    for last, (where, device) in enumerate(ends, 1):
        ip("-n", where, "address", "add", f"10.78.{number}.{last}/24", "dev", device)
        ip("-n", where, "link", "set", device, "up")


def narrow(spaces: list[str], octets: int) -> None:
    ip("-n", spaces[0], "link", "set", "middle1", "mtu", str(octets))
    ip("-n", spaces[1], "link", "set", "middle2", "mtu", str(octets))


def cut(node: Node) -> int:
    """Datagrams that left this host in IP fragments."""
    lines = [line.split() for line in
             subprocess.run(node.inside("cat", "/proc/net/snmp"), capture_output=True, check=True,
                            text=True).stdout.splitlines() if line.startswith("Ip:")]  # fmt: skip
    return int(lines[1][lines[0].index("FragOKs")])


def mtu_of(node: Node, uri: str) -> int:
    faces = [face for face in node.told("face", "list") or [] if face["remote"] == uri]
    return faces[0]["mtu"] if faces else 0


def mtu(onym: str, stack: ExitStack, octets: int) -> None:
    """What the path carries is found, used, and found again when it becomes less."""
    net = Net(onym, stack)
    a, b = net.node("a"), net.node("b")
    middle = [stack.enter_context(space(f"rt{os.getpid()}m{n}")) for n in (1, 2)]
    wire(1, [(a.space, "east"), (middle[0], "west")])
    wire(2, [(middle[0], "middle1"), (middle[1], "middle2")])
    wire(3, [(middle[1], "east"), (b.space, "west")])
    for where, via in ((a.space, "10.78.1.2"), (b.space, "10.78.3.1"), (middle[0], "10.78.2.2"),
                       (middle[1], "10.78.2.1")):  # fmt: skip
        ip("-n", where, "route", "add", "default", "via", via)
    for where in middle:
        inside = ["ip", "netns", "exec", where]
        subprocess.run([*inside, "sysctl", "-qw", "net.ipv4.ip_forward=1"], check=True)
        subprocess.run([*inside, "iptables", "-A", "OUTPUT", "-p", "icmp", "-j", "DROP"], check=True)
    narrow(middle, NARROW)
    to_a, to_b = f"udp4://10.78.1.1:{PORT}", f"udp4://10.78.3.2:{PORT}"
    a.links.append(f'{{uri="{to_b}",cost=1}}')
    b.links.append(f'{{uri="{to_a}",cost=1}}')
    for node in (a, b):
        node.start("routing.insecure=true")
    until(lambda: a.reaches("/net/b") and b.reaches("/net/a"), "each other")
    content = os.urandom(min(octets, 20_000_000))
    (net.folder / "in").write_bytes(content)
    for version in ("1", "2", "3"):
        b.go("put", f"/app/{version}", str(net.folder / "in"), stdout=subprocess.DEVNULL)
        until(lambda v=version: a.knows(f"/app/{v}", "/net/b"), "the prefix")

    def fetch(version: str) -> float:
        out, begun = a.folder / version, time.monotonic()
        subprocess.run(a.command("get", f"/app/{version}", "-o", str(out)), check=True, timeout=60,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        assert out.read_bytes() == content, "the file arrived as it was"
        return time.monotonic() - begun

    def found(path: int) -> bool:
        return path - HEADERS - 16 < mtu_of(b, to_a) <= path - HEADERS

    first = fetch("1")
    until(lambda: found(NARROW), f"what a path of {NARROW} octets carries, {mtu_of(b, to_a)}")
    before, taken = cut(b), fetch("2")
    assert cut(b) == before, "no datagram leaves in IP fragments"
    print(f"mtu: a path of {NARROW}: {mtu_of(b, to_a)} found; {len(content)} octets in {first:.2f} s, then {taken:.2f} s "
          "without IP fragments")  # fmt: skip
    narrow(middle, NARROWER)
    begun, taken = time.monotonic(), fetch("3")
    until(lambda: found(NARROWER), f"what a path of {NARROWER} octets carries")
    print(f"mtu: the path becomes {NARROWER} and says nothing: {len(content)} octets in {taken:.2f} s; "
          f"{mtu_of(b, to_a)} found after {time.monotonic() - begun:.1f} s")  # fmt: skip
