"""Processes in network namespaces, which needs root."""

from __future__ import annotations

import os
import re
import subprocess
from functools import partial
from pathlib import Path

from onym_lab import tools
from onym_lab.backend import groups
from onym_lab.backend.base import BackendError
from onym_lab.backend.processes import Processes
from onym_lab.backend.program import wait_for
from onym_lab.spec import Fault, Link, Spec

COUNTS = ("packets captured", "packets received by filter", "packets dropped by kernel")
"""What tcpdump says at its end."""
NO_IPV6 = 'for d in all default; do echo 1 > "/proc/sys/net/ipv6/conf/$d/disable_ipv6"; done'


class Netns(Processes):
    """Processes in network namespaces, joined by veth pairs; processor quotas by control groups."""

    name = "netns"

    def __init__(self, spec: Spec, folder: Path) -> None:
        super().__init__(spec, folder)
        self.spaces = {node.name: f"{self.tag}-{n}" for n, node in enumerate(spec.nodes)}
        self.groups: dict[str, groups.Group] = {}
        self.ends: dict[tuple[str, str], tuple[str, str]] = {}
        for number, link in enumerate(spec.links):
            base = f"10.{77 + number // 16384}.{number // 64 % 256}.{number % 64 * 4}".rsplit(
                ".", 1
            )
            a, b = (f"{base[0]}.{int(base[1]) + one}" for one in (1, 2))
            self.ends[(link.a, link.b)] = (f"e{number}a", a)
            self.ends[(link.b, link.a)] = (f"e{number}b", b)

    def refusals(self) -> list[str]:
        """Name what this machine cannot do."""
        reasons = super().refusals()
        if os.geteuid() != 0:
            reasons.append("netns needs root: namespaces, links and control groups")
        if tools.on_path("ip") is None:
            reasons.append("netns needs the program ip (Debian: iproute2)")
        limits = [
            node for node in self.spec.nodes if node.cpu is not None or node.memory or node.hog
        ]
        if limits and not groups.version():
            reasons.append(f"netns has no control groups here ({limits[0].name})")
        if self.spec.capture and tools.on_path("tcpdump") is None:
            reasons.append("netns captures with tcpdump, which is not on PATH")
        if self.spec.transport == "tcp" and any(f.action == "down" for f in self.spec.faults):
            reasons.append(
                "netns takes links down under udp only: tcp faces wait long to come back"
            )
        return reasons

    def address(self, node: str, peer: str) -> str:
        """Give the address of the peer's end of the link."""
        return self.ends[(peer, node)][1]

    def own_addresses(self, node: str) -> list[str]:
        """Listen on everything: the namespace is the node's own."""
        return []

    def ip(self, *argv: str) -> None:
        """Run ip, or say why it failed."""
        try:
            tools.call(["ip", *argv])
        except RuntimeError as error:
            raise BackendError(str(error)) from error

    def make_network(self) -> None:
        """Make namespaces, links with their rates, and groups."""
        assert self.owned is not None
        for name in self.spaces.values():
            self.owned.add("namespaces", name)
            self.ip("netns", "add", name)
            self.ip("-n", name, "link", "set", "lo", "up")
            # No neighbour discovery of IPv6 in the captures.
            subprocess.run(["ip", "netns", "exec", name, "sh", "-c", NO_IPV6], check=False)
        for link in self.spec.links:
            self.make_link(link)
        for node in self.spec.nodes:
            if node.cpu is None and node.memory is None and node.hog is None:
                continue
            group = groups.Group(f"{self.tag}-{node.name}", node.memory)
            for path in group.paths:
                self.owned.add("groups", str(path))
            group.limit(node.cpu)
            self.groups[node.name] = group

    def make_link(self, link: Link) -> None:
        """Make one veth pair. Frames hold a whole packet unless the link says otherwise."""
        (dev_a, address_a), (dev_b, address_b) = (
            self.ends[(link.a, link.b)],
            self.ends[(link.b, link.a)],
        )
        a, b = self.spaces[link.a], self.spaces[link.b]
        mtu = str((link.mtu or 8800) + 200)
        self.ip(
            "link", "add", dev_a, "mtu", mtu, "netns", a,
            "type", "veth", "peer", "name", dev_b, "mtu", mtu, "netns", b,
        )  # fmt: skip
        for space, dev, address in ((a, dev_a, address_a), (b, dev_b, address_b)):
            self.ip("-n", space, "addr", "add", f"{address}/30", "dev", dev)
            if self.spec.capture:
                # Datagrams that leave together are captured one by one, not as a single frame.
                self.ip("-n", space, "link", "set", "dev", dev, "gso_max_segs", "1")
            self.ip("-n", space, "link", "set", dev, "up")
            if link.rate and self.is_kernels(link):
                shape(space, dev, link)

    def is_kernels(self, link: Link) -> bool:
        """Rates alone are the kernel's (tbf); with delay or loss the faces do it all."""
        return not link.delay and not link.loss

    def enter(self, node: str, argv: list[str]) -> list[str]:
        """Run it in the node's namespace."""
        return ["ip", "netns", "exec", self.spaces[node], *argv]

    def space(self, node: str) -> str | None:
        """Name the node's namespace."""
        return self.spaces[node]

    def group(self, node: str) -> groups.Group | None:
        """Give the node's group."""
        return self.groups.get(node)

    def capture(self) -> None:
        """Start tcpdump at the captured nodes."""
        for node in self.spec.capture:
            peer = self.spec.capture_peer(node)
            if peer is None:
                continue
            dev = self.ends[(node, peer)][0]
            file = self.places[node].folder / "capture.pcap"
            argv = [
                "tcpdump", "-i", dev, "-s", str(self.spec.snaplen), "-B", "65536", "-w", str(file),
                "-Z", "root", "--immediate-mode", "-U", "-n",
            ]  # fmt: skip
            program = self.spawn(f"tcpdump-{node}", self.enter(node, argv))
            self.captures.append(program)
            wait_for(f"capture at {node}", partial(program.says, "listening on"))

    def collect_captures(self) -> None:
        """Keep the captures, with the counts that tcpdump gives."""
        for node, program in zip(
            [node for node in self.spec.capture if self.spec.capture_peer(node)],
            self.captures,
            strict=True,
        ):
            said = program.log.read_text(errors="replace")
            numbers = [_count(said, what) for what in COUNTS]
            peer = self.spec.capture_peer(node) or ""
            dev = self.ends[(node, peer)][0]
            source = self.places[node].folder / "capture.pcap"
            self.keep_capture(source, node, (numbers[0], numbers[1], numbers[2]), dev)

    def timeline(self) -> None:
        """Besides faults, competing load: the node's quota is what the load leaves of it."""
        super().timeline()
        for node in self.spec.nodes:
            if node.hog is None:
                continue
            hog, group, share = node.hog, self.groups[node.name], node.cpu or 1.0
            at = hog.phase
            while at < self.spec.at_most:
                left = share * (1 - hog.duty)
                self.later(at, partial(group.limit, left))
                self.later(at + hog.on, partial(group.limit, share))
                at += hog.on + hog.off

    def strike(self, fault: Fault) -> None:
        """Break a link or a node."""
        super().strike(fault)
        self.set_link(fault, "down")

    def mend(self, fault: Fault) -> None:
        """Mend it."""
        super().mend(fault)
        self.set_link(fault, "up")

    def set_link(self, fault: Fault, state: str) -> None:
        """Set both ends of a link up or down."""
        if fault.link is None:
            return
        for link in self.spec.links:
            if fault.link in (f"{link.a}-{link.b}", f"{link.b}-{link.a}"):
                dev = self.ends[(link.a, link.b)][0]
                self.ip("-n", self.spaces[link.a], "link", "set", dev, state)


def shape(space: str, dev: str, link: Link) -> None:
    """Give an end of a link its rate and queue (token bucket, a burst of 1 ms or one frame)."""
    rate = round(link.rate or 0)
    burst = max(20_000, rate // 8000)
    limit = max(burst, link.queue * 1500)
    argv = [
        "tc", "-n", space, "qdisc", "add", "dev", dev, "root", "tbf", "rate", f"{rate}bit",
        "burst", str(burst), "limit", str(limit),
    ]  # fmt: skip
    try:
        tools.call(argv)
    except RuntimeError as error:
        raise BackendError(str(error)) from error


def _count(text: str, what: str) -> int:
    found = re.search(rf"(\d+) {what}", text)
    return int(found[1]) if found else 0
