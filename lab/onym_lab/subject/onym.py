"""Onym's own node."""

from __future__ import annotations

from typing import Any

from onym_lab import tools
from onym_lab.backend.scenario import text
from onym_lab.collect.meter import Meter, Metrics
from onym_lab.spec import Spec
from onym_lab.subject.base import Place, Port, Subject


class Onym(Subject):
    """`onym daemon`, everything by its configuration file."""

    name = "onym"
    impairs = True
    captures = True
    chooses_address = True
    is_exact = True

    def refusals(self, spec: Spec) -> list[str]:
        """Name what it cannot do."""
        try:
            tools.onym()
        except tools.MissingToolError as error:
            return [str(error)]
        return ["onym has no jitter on a face" for link in spec.links if link.jitter][:1]

    def prepare(self, place: Place) -> list[str]:
        """Write onym.toml."""
        node = place.node
        listen = [f"{address}:{place.number}" for address in place.addresses or ["0.0.0.0"]]
        keys: dict[str, Any] = {
            "shards": 1,
            "cs.packets_max": node.cs,
            "pit.entries_max": node.pit,
            "faces.unix.path": str(place.socket),
            "faces.udp.listen": listen,
            "faces.tcp.listen": listen,
            "faces.websocket.listen": [],
            "metrics.listen": [page(place)],
            "log.filter": "warn",
        }
        if node.buffer:
            keys["faces.udp.receive_buffer_bytes"] = node.buffer
        if not node.defences:
            keys["forward.fairness"] = False
        mtu = min((port.link.mtu for port in place.ports if port.link.mtu), default=None)
        if mtu:
            keys["faces.udp.mtu"] = mtu
        keys |= {**self.more(place), **node.set}
        lines = [f"{key} = {text(value)}" for key, value in keys.items()]
        if place.strategies:
            inner = {text(prefix): name for prefix, name in place.strategies.items()}
            lines.append(f"strategy = {text(inner)}")
        for port in place.ports:
            if port.prefixes or port.pcap:
                lines += self.face(port, place.transport)
        lines += self.tables(place)
        path = place.folder / "onym.toml"
        path.write_text("\n".join(lines) + "\n")
        return [str(tools.onym()), "daemon", "--config", str(path)]

    def more(self, place: Place) -> dict[str, Any]:
        """Give further keys of the configuration."""
        del place
        return {}

    def tables(self, place: Place) -> list[str]:
        """Give further tables of the configuration."""
        del place
        return []

    def meter(self, place: Place) -> Meter:
        """Read its page of metrics."""
        return Metrics(page(place), place.space)

    def face(self, port: Port, transport: str) -> list[str]:
        """Write one face and its routes."""
        uri = port.uri(transport)
        lines = ["[[face]]", f"uri = {text(uri)}"]
        if port.pcap:
            lines.append(f"pcap = {text(str(port.pcap))}")
        if port.impaired:
            lines += ["[face.fault]", f"seed = {port.seed}"]
            lines.append(f"delay_ms = {port.link.delay * 1000:.6f}")
            lines.append(f"loss = {port.link.loss:.9f}")
            if port.link.rate:
                lines.append(f"rate_bytes = {round(port.link.rate / 8)}")
        for prefix in port.prefixes:
            lines += ["[[route]]", f"prefix = {text(prefix)}", f"via = {text(uri)}"]
        return lines


def page(place: Place) -> str:
    """Its page of metrics is on its own address, or on its namespace's loopback."""
    return f"{place.addresses[0] if place.addresses else '127.0.0.1'}:{place.number + 1}"
