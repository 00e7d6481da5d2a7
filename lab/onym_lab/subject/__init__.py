"""Forwarders under test. A plug-in is one class, found by its name here or as module:Class."""

from __future__ import annotations

import importlib

from onym_lab.subject.base import Place, Port, Subject, SubjectError


def make(name: str) -> Subject:
    """Make the subject of that name.

    Raises:
        SubjectError: There is none of that name.
    """
    from onym_lab.subject.ndnd import Ndnd
    from onym_lab.subject.nfd import Nfd
    from onym_lab.subject.onym import Onym
    from onym_lab.subject.onym_chain import OnymChain
    from onym_lab.subject.onym_push import OnymPush

    kinds: tuple[type[Subject], ...] = (Onym, OnymChain, OnymPush, Ndnd, Nfd)
    known = {kind.name: kind for kind in kinds}
    if name in known:
        return known[name]()
    module, sign, kind = name.partition(":")
    if not sign:
        raise SubjectError(f"there is no forwarder {name!r}: {', '.join(known)}, or module:Class")
    try:
        made = getattr(importlib.import_module(module), kind)()
    except (ImportError, AttributeError) as error:
        raise SubjectError(f"forwarder {name!r}: {error}") from error
    if not isinstance(made, Subject):
        raise SubjectError(f"forwarder {name!r} is no onym_lab.subject.Subject")
    return made


__all__ = ["Place", "Port", "Subject", "SubjectError", "make"]
