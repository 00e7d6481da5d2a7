"""Numbers that papers print, as if they had been measured: their analysis can be done again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onym_lab.library import Row, row

TABLE_5 = (25, 27, 21, 18, 97, 103, 46, 48, 26, 24, 15, 13, 61, 59, 31, 28)
"""The content distribution paper's Table 5: Mbit/s in standard order, A fastest."""


def table5(given: Mapping[str, Any], _seed: int, _folder: Path) -> list[Row]:
    """The rate of one of the paper's 16 runs, by the signs of its factors."""
    signs = [int(given[factor]) for factor in "ABCD"]
    index = sum((sign > 0) << place for place, sign in enumerate(signs))
    return [row("router", "forwarding_rate", "bit/s", TABLE_5[index] * 1e6)]
