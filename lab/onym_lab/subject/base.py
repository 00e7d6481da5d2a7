"""What the laboratory asks of a forwarder."""

from __future__ import annotations

import abc
from dataclasses import dataclass, field
from pathlib import Path

from onym_lab.collect.client import Client, UnansweredError
from onym_lab.collect.meter import Meter
from onym_lab.spec import App, Link, Node, Spec


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
    #: The whole replicate: what a forwarder has to know of the other nodes.
    spec: Spec
    #: UDP and TCP port.
    number: int = 6363
    #: Its network namespace, where it has one.
    space: str | None = None

    @property
    def socket(self) -> Path:
        """Where applications find it."""
        return self.folder / "node.sock"


def only_onym(name: str, spec: Spec) -> list[str]:
    """Name what an experiment asks of a node that only onym's whole node has; one of each."""
    asked = {
        "defences to turn off": [node.name for node in spec.nodes if not node.defences],
        "receive buffer to choose": [node.name for node in spec.nodes if node.buffer is not None],
        "keys of onym's configuration": [node.name for node in spec.nodes if node.set],
        "MTU of a face": [link.name for link in spec.links if link.mtu],
    }
    return [f"{name} has no {what} ({where[0]})" for what, where in asked.items() if where]


class Subject(abc.ABC):
    """A forwarder."""

    name = ""
    #: Whether its faces can delay, lose and throttle frames by a seed.
    impairs = False
    #: Whether its faces can write what they carry, without privilege.
    captures = False
    #: Whether it listens on the addresses that it is told, so that several share a machine.
    chooses_address = False
    #: Whether it knows a neighbour by the address that it sends from.
    by_source = False
    #: Whether it answers the datasets of NFD's management on its socket.
    datasets = True
    #: Whether its counters tell known traffic exactly: packets of management are not among them.
    is_exact = False
    #: What the known traffic is: names that consumers ask for, or a file that is published.
    known = "names"

    @abc.abstractmethod
    def refusals(self, spec: Spec) -> list[str]:
        """Name what it cannot do, its absence first of all."""

    @abc.abstractmethod
    def prepare(self, place: Place) -> list[str]:
        """Write what it needs into the place's folder; gives its command line."""

    def processes(self, place: Place) -> dict[str, list[str]]:
        """Give its processes by their names at the node; one without a name when it is whole."""
        return {"": self.prepare(place)}

    def is_up(self, place: Place) -> bool:
        """Tell whether it answers."""
        client = Client(place.socket)
        try:
            client.general(0.5)
        except UnansweredError:
            return False
        finally:
            client.close()
        return True

    def settle(self, place: Place) -> None:  # noqa: B027
        """Make faces and routes when it is up, where its configuration cannot."""

    def meter(self, place: Place) -> Meter | None:
        """Give what tells its counters at once, where it has more than datasets."""
        del place
        return None

    def command(self, app: App, place: Place, file: Path) -> list[str] | None:
        """Give what does the work of `put` (serve a file) or `get` (write one), if not onym's own.

        A `get` writes one JSON object, with the octets and the seconds that it took.
        """
        del app, place, file
        return None

    def is_served(self, app: App, place: Place, out: Path) -> bool:
        """Tell whether a `put` that runs, and writes to `out`, can be asked for."""
        del app, place
        return "ready" in out.read_text()
