"""Where an experiment runs: one interface, and by name what each cannot do."""

from __future__ import annotations

from pathlib import Path

from onym_lab.backend.base import Backend, BackendError, Refused
from onym_lab.spec import Spec


def make(name: str, spec: Spec, folder: Path) -> Backend:
    """Make the backend of that name for one replicate, or say what it cannot do.

    Raises:
        Refused: The experiment asks for something that this backend cannot do.
    """
    from onym_lab.backend.bench import Bench
    from onym_lab.backend.loopback import Loopback
    from onym_lab.backend.netns import Netns
    from onym_lab.backend.sim import Sim

    kinds: dict[str, type[Backend]] = {
        "sim": Sim,
        "netns": Netns,
        "loopback": Loopback,
        "bench": Bench,
    }
    if name not in kinds:
        raise Refused(name, [f"there is no backend {name!r}: {', '.join(kinds)}"])
    backend = kinds[name](spec, folder)
    reasons = backend.refusals()
    if reasons:
        raise Refused(name, reasons)
    return backend


def clean_up(folder: Path) -> None:
    """Give back what an attempt that was killed left: processes, namespaces, groups."""
    from onym_lab.backend import owned

    owned.clean_up(folder)


__all__ = ["Backend", "BackendError", "Refused", "clean_up", "make"]
