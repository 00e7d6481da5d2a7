"""Processes on 127/8: no privilege is needed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from onym_lab import subject
from onym_lab.backend.processes import Processes
from onym_lab.collect.capture import frames
from onym_lab.spec import Link, Spec


class Loopback(Processes):
    """Processes on 127/8, without privilege. Each node has an address of its own."""

    name = "loopback"

    def __init__(self, spec: Spec, folder: Path) -> None:
        super().__init__(spec, folder)
        digest = hashlib.sha256(str(folder.absolute()).encode()).digest()
        # Runs at the same time have different middles; 127.0 and 127.1 are left alone. The port is
        # another than that of a node which may run on this machine.
        self.port = 26363
        self.middle = f"127.{2 + digest[0] % 253}.{digest[1]}"
        self.numbers = {node.name: number for number, node in enumerate(spec.nodes, 1)}

    def refusals(self) -> list[str]:
        """Name what needs namespaces or privilege."""
        reasons = super().refusals()
        for node in self.spec.nodes:
            if node.cpu is not None or node.memory is not None:
                reasons.append(f"loopback has no cpu or memory limits ({node.name})")
            if node.hog:
                reasons.append(f"loopback has no competing load ({node.name})")
        if len(self.spec.nodes) > 1 and not self.subject.chooses_address:
            reasons.append(
                f"loopback: {self.subject.name} listens on all addresses, so there is one only"
            )
        if self.subject.by_source:
            reasons.append(
                f"loopback: {self.subject.name} knows neighbours by the address that they send "
                "from, and all of this machine send from one"
            )
        if len(self.spec.nodes) > 200:
            reasons.append("loopback has at most 200 nodes")
        if self.spec.capture and not self.subject.captures:
            reasons.append(
                f"loopback captures by the forwarder's faces; {self.subject.name} has none"
            )
        for fault in self.spec.faults:
            if fault.action == "down":
                reasons.append("loopback cannot take a link down")
        return reasons

    def address(self, node: str, peer: str) -> str:
        """Give the peer's one address."""
        return f"{self.middle}.{self.numbers[peer]}"

    def own_addresses(self, node: str) -> list[str]:
        """Give the node's one address."""
        return [f"{self.middle}.{self.numbers[node]}"]

    def make_network(self) -> None:
        """The loopback interface is there."""

    def enter(self, node: str, argv: list[str]) -> list[str]:
        """Run it as it is."""
        return argv

    def is_kernels(self, link: Link) -> bool:
        """Never: faces do it."""
        return False

    def adorn(self, place: subject.Place) -> None:
        """Let the faces that the captures need write what they carry."""
        wanted = {
            frozenset((node, peer))
            for node in self.spec.capture
            if (peer := self.spec.capture_peer(node))
        }
        for port in place.ports:
            # The end with the route makes the face; the other one sees the same frames.
            if frozenset((place.node.name, port.peer)) in wanted and port.prefixes:
                port.pcap = place.folder / f"{port.peer}.pcapng"

    def capture(self) -> None:
        """Faces have written since they were made."""

    def collect_captures(self) -> None:
        """Give both nodes of a link its capture."""
        for node in self.spec.capture:
            peer = self.spec.capture_peer(node)
            if peer is None:
                continue
            ports = [(here, one) for here, there in ((node, peer), (peer, node))
                     for one in self.places[here].ports if one.peer == there]  # fmt: skip
            source = next((one.pcap for _, one in ports if one.pcap and one.pcap.is_file()), None)
            if source:
                count = sum(1 for _ in frames(source))
                self.keep_capture(source, node, (count, count, 0), peer)
