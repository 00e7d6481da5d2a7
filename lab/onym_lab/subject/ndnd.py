"""ndnd, where it is on PATH."""

from __future__ import annotations

from onym_lab import tools
from onym_lab.spec import Spec
from onym_lab.subject.base import Place, Subject, SubjectError, only_onym

CS_MAX = 65_535
"""Its content store takes no more."""


class Ndnd(Subject):
    """`ndnd fw run`, its routes made by `ndnd fw route-add`."""

    name = "ndnd"

    def refusals(self, spec: Spec) -> list[str]:
        """Name what it cannot do."""
        if reasons := tools.unusable("ndnd"):
            return reasons
        reasons = only_onym(self.name, spec)
        if spec.strategies:
            reasons.append("ndnd's strategies are not chosen by the laboratory")
        return reasons

    def prepare(self, place: Place) -> list[str]:
        """Write ndnd.yml."""
        path = place.folder / "ndnd.yml"
        path.write_text(
            f"""core:
  log_level: WARN
faces:
  udp:
    enabled_unicast: true
    enabled_multicast: false
    port_unicast: {place.number}
  tcp:
    enabled: true
    port_unicast: {place.number}
  unix:
    enabled: true
    socket_path: {place.socket}
  websocket:
    enabled: false
fw:
  threads: 1
tables:
  content_store:
    capacity: {min(place.node.cs, CS_MAX)}
"""
        )
        return ["ndnd", "fw", "run", str(path)]

    def settle(self, place: Place) -> None:
        """Make faces and routes."""
        environment = ["env", f"NDN_CLIENT_TRANSPORT=unix://{place.socket}"]
        for port in place.ports:
            for prefix in port.prefixes:
                uri = port.uri(place.transport)
                argv = [*environment, "ndnd", "fw", "route-add", f"prefix={prefix}", f"face={uri}"]
                try:
                    tools.call(argv)
                except RuntimeError as error:
                    raise SubjectError(str(error)) from error
