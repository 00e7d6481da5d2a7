"""NFD, where it is on PATH."""

from __future__ import annotations

from onym_lab import tools
from onym_lab.spec import Spec
from onym_lab.subject.base import Place, Subject, SubjectError, only_onym


class Nfd(Subject):
    """`nfd`, its faces and routes made by `nfdc`."""

    name = "nfd"

    def refusals(self, spec: Spec) -> list[str]:
        """Name what it cannot do."""
        return tools.unusable("nfd", "nfdc") or only_onym(self.name, spec)

    def prepare(self, place: Place) -> list[str]:
        """Write nfd.conf."""
        path = place.folder / "nfd.conf"
        path.write_text(
            f"""general {{ }}
tables {{
  cs_max_packets {place.node.cs}
  cs_policy lru
}}
face_system {{
  general {{ enable_congestion_marking yes }}
  unix {{ path {place.socket} }}
  udp {{ port {place.number} mcast no }}
  tcp {{ port {place.number} }}
}}
authorizations {{
  authorize {{ certfile any privileges {{ faces fib cs strategy-choice }} }}
}}
rib {{
  localhost_security {{ trust-anchor {{ type any }} }}
}}
"""
        )
        # Its key store locks: one HOME for each process.
        return ["env", f"HOME={place.folder}", "nfd", "--config", str(path)]

    def settle(self, place: Place) -> None:
        """Make faces and routes, and choose strategies."""
        environment = ["env", f"HOME={place.folder}", f"NDN_CLIENT_TRANSPORT=unix://{place.socket}"]
        asked = []
        for port in place.ports:
            uri = port.uri(place.transport)
            if port.prefixes:
                asked.append(["face", "create", uri, "persistency", "permanent"])
            asked += [["route", "add", prefix, uri] for prefix in port.prefixes]
        asked += [
            ["strategy", "set", prefix, f"/localhost/nfd/strategy/{name}"]
            for prefix, name in place.strategies.items()
        ]
        for words in asked:
            try:
                tools.call([*environment, "nfdc", *words])
            except RuntimeError as error:
                raise SubjectError(str(error)) from error
