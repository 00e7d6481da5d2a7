"""What the laboratory asks of a forwarder."""

from __future__ import annotations

import abc
from dataclasses import dataclass, field
from pathlib import Path

from onym_lab.spec import Link, Node, Spec


class SubjectError(Exception):
    """A forwarder that cannot be used."""


@dataclass
class Port:
    """A node's way to a neighbour: the node makes a face there when it has a route over it."""

    peer: str
    address: str
    link: Link
    prefixes: list[str] = field(default_factory=list)
    #: Delay, loss and rate are the face's to make; the kernel does it otherwise.
    impaired: bool = False
    pcap: Path | None = None
    seed: int = 0
    #: UDP and TCP port.
    number: int = 6363

    def uri(self, transport: str) -> str:
        """Give the face URI of the neighbour."""
        return f"{transport}4://{self.address}:{self.number}"


@dataclass
class Place:
    """A node as its forwarder sees it."""

    node: Node
    folder: Path
    #: Addresses that are this node's; all when empty (it is alone in its namespace).
    addresses: list[str]
    ports: list[Port]
    transport: str
    strategies: dict[str, str]
    #: UDP and TCP port.
    number: int = 6363

    @property
    def socket(self) -> Path:
        """Where applications find it."""
        return self.folder / "node.sock"


class Subject(abc.ABC):
    """A forwarder."""

    name = ""
    #: Whether its faces can delay, lose and throttle frames by a seed.
    impairs = False
    #: Whether its faces can write what they carry, without privilege.
    captures = False
    #: Whether it listens on the addresses that it is told, so that several share a machine.
    chooses_address = False

    @abc.abstractmethod
    def refusals(self, spec: Spec) -> list[str]:
        """Name what it cannot do, its absence first of all."""

    @abc.abstractmethod
    def prepare(self, place: Place) -> list[str]:
        """Write what it needs into the place's folder; gives its command line."""

    def settle(self, place: Place) -> None:  # noqa: B027
        """Make faces and routes when it is up, where its configuration cannot."""

    def metrics(self, place: Place) -> str | None:
        """Give the address of a page of onym's metrics, where it has one."""
        del place
        return None
