"""Two-level designs: sign tables, full and fractional, in standard order (first factor fastest)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Signs = NDArray[np.int64]


def full(factors: Sequence[str]) -> Signs:
    """The 2^k combinations of -1 and +1, one row each, the first factor changing fastest."""
    k = len(factors)
    rows = np.arange(2**k)
    return np.stack([2 * ((rows >> i) & 1) - 1 for i in range(k)], axis=1).astype(np.int64)


def terms(factors: Sequence[str]) -> list[tuple[str, ...]]:
    """Every effect: main effects, then interactions of two, three, and so on."""
    return [c for size in range(1, len(factors) + 1) for c in combinations(factors, size)]


def label(term: Sequence[str]) -> str:
    """How an effect is printed: ``BC`` for short names, ``cs:names`` for long ones."""
    return ("" if all(len(name) == 1 for name in term) else ":").join(term)


def column(signs: Signs, factors: Sequence[str], term: Sequence[str]) -> Signs:
    """The sign of an effect in every row."""
    picked = [list(factors).index(name) for name in term]
    return np.asarray(signs[:, picked].prod(axis=1), dtype=np.int64)


@dataclass(frozen=True)
class Fraction:
    """A 2^(k-p) design: some factors are set to the product of others.

    ``aliases`` gives for each effect that can be estimated those that cannot
    be told from it.
    """

    factors: tuple[str, ...]
    signs: Signs
    aliases: Mapping[str, tuple[str, ...]]

    @property
    def resolution(self) -> int:
        """The length of the shortest word of the defining relation.

        3: main effects are mixed with interactions of two; 4: with three; …
        """
        words = [
            t
            for t in terms(self.factors)
            if abs(int(column(self.signs, self.factors, t).sum())) == len(self.signs)
        ]
        return min((len(w) for w in words), default=len(self.factors) + 1)


def fraction(factors: Sequence[str], generators: Mapping[str, Sequence[str]]) -> Fraction:
    """The fraction whose ``generators`` set a factor to a product: ``{"D": "ABC"}``.

    Raises:
        ValueError: a generator names no factor, or uses another generated factor.
    """
    base = [name for name in factors if name not in generators]
    for name, word in generators.items():
        strangers = [part for part in word if part not in base]
        if name not in factors or strangers:
            raise ValueError(f"generator {name}={label(tuple(word))}: use factors of {base} only")
    table = full(base)
    columns = [
        column(table, base, tuple(generators[name]))
        if name in generators
        else table[:, base.index(name)]
        for name in factors
    ]
    signs = np.stack(columns, axis=1)
    return Fraction(tuple(factors), signs, _aliases(signs, factors))


def _aliases(signs: Signs, factors: Sequence[str]) -> dict[str, tuple[str, ...]]:
    groups: dict[bytes, list[str]] = {}
    for term in terms(factors):
        col = column(signs, factors, term)
        if abs(int(col.sum())) == len(col):
            continue  # mixed with the mean
        groups.setdefault((col * col[0]).tobytes(), []).append(label(term))
    return {group[0]: tuple(group[1:]) for group in groups.values()}
