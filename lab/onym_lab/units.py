"""Values with units, as experiment files write them, and their plain numbers."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"^\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z%/]*)\s*$")

_TIME = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_RATE = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_SIZE = {
    "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9,
    "kib": 2**10, "mib": 2**20, "gib": 2**30,
}  # fmt: skip


class UnitError(ValueError):
    """A value that is not what its place takes; the text says what it takes."""


def _split(value: object, what: str) -> tuple[float, str]:
    found = _NUMBER.match(str(value)) if not isinstance(value, bool) else None
    if not found:
        raise UnitError(f"{value!r} is no {what}")
    return float(found[1]), found[2].lower()


def seconds(value: object) -> float:
    """Give a time such as ``10ms`` or ``1.5s`` in seconds."""
    what = "time such as 10ms, 1.5s, 2min"
    number, unit = _split(value, what)
    if unit not in _TIME:
        raise UnitError(f"{value!r} is no {what}")
    return number * _TIME[unit]


def bits(value: object) -> float:
    """Give a rate such as ``50mbit`` in bits per second; a bare number is megabits (Mini-NDN)."""
    what = "rate such as 50mbit or 1gbit"
    number, unit = _split(value, what)
    unit = unit.removesuffix("/s").removesuffix("ps") if unit else "mbit"
    if unit not in _RATE:
        raise UnitError(f"{value!r} is no {what}")
    return number * _RATE[unit]


def octets(value: object) -> int:
    """Give a size such as ``3GiB`` or ``1281250`` in octets."""
    what = "size such as 4096, 10kB or 3GiB"
    number, unit = _split(value, what)
    if unit not in _SIZE:
        raise UnitError(f"{value!r} is no {what}")
    return round(number * _SIZE[unit])


def share(value: object) -> float:
    """Give a percentage such as ``25%`` as a number from 0 on; the sign may be absent."""
    what = "share such as 25%"
    number, unit = _split(value, what)
    if unit not in ("%", ""):
        raise UnitError(f"{value!r} is no {what}")
    return number / 100


def per_second(value: object) -> float:
    """Give a frequency such as ``100/s`` in events per second."""
    what = "frequency such as 100/s"
    number, unit = _split(value, what)
    if unit not in ("/s", ""):
        raise UnitError(f"{value!r} is no {what}")
    return number
