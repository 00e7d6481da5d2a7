"""Factors and levels to cells, replications, and the order of a run."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onym_lab.experiment import Experiment, ExperimentError, label_of, labels_of


@dataclass(frozen=True)
class Cell:
    """One combination of levels."""

    levels: Mapping[str, str]
    settings: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Eight hexadecimal digits, the hash of the levels."""
        text = json.dumps(dict(self.levels), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def label(self) -> str:
        """The levels in words."""
        return " ".join(f"{name}={label}" for name, label in self.levels.items()) or "all"


def _settings(experiment: Experiment, name: str, level: Any) -> dict[str, Any]:
    factor = experiment.data["factors"][name]
    place = ("factors", name)
    if isinstance(level, Mapping):
        made = dict(level.get("set", {}))
        if "value" in level:
            made[_path(experiment, name)] = level["value"]
        if not made:
            raise experiment.error(place, f"{name}: level {level['label']!r} needs value or set")
        return made
    if "path" not in factor:
        raise experiment.error(place, f"{name}: needs a path, or levels with label and set")
    return {factor["path"]: level}


def _path(experiment: Experiment, name: str) -> str:
    factor = experiment.data["factors"][name]
    if "path" not in factor:
        raise experiment.error(("factors", name), f"{name}: a value needs a path")
    return str(factor["path"])


def cells(experiment: Experiment) -> list[Cell]:
    """List the cells of the experiment's design.

    Raises:
        ExperimentError: A design that its factors cannot have.
    """
    factors = experiment.data.get("factors", {})
    design = experiment.data.get("design", {})
    kind = design.get("type", "full")
    for name, factor in factors.items():
        labels = labels_of(factor)
        if len(set(labels)) < len(labels):
            raise experiment.error(("factors", name), f"{name}: two levels have the same label")
        if kind in ("2k", "fraction") and len(labels) != 2:
            why = f"{name}: a {kind} design takes two levels, {len(labels)} are given"
            raise experiment.error(("factors", name), why)
    if kind == "list":
        combinations = _listed(experiment, factors, design.get("cells", []))
    elif kind == "fraction":
        combinations = _fraction(experiment, factors, design.get("generators", []))
    else:
        combinations = [
            dict(zip(factors, levels, strict=True))
            for levels in itertools.product(*(factor["levels"] for factor in factors.values()))
        ]
    made = []
    for levels in combinations:
        settings: dict[str, Any] = {}
        for name, level in levels.items():
            settings.update(_settings(experiment, name, level))
        made.append(Cell({name: label_of(level) for name, level in levels.items()}, settings))
    return made


def _listed(
    experiment: Experiment, factors: Mapping[str, Any], listed: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    made = []
    for number, given in enumerate(listed):
        levels: dict[str, Any] = {}
        for name, factor in factors.items():
            wanted = str(given.get(name))
            level = next((one for one in factor["levels"] if label_of(one) == wanted), None)
            if level is None:
                why = f"design: cell {number + 1}: {wanted!r} is no level of {name}"
                raise experiment.error(("design", "cells", number), why)
            levels[name] = level
        made.append(levels)
    if not made:
        raise experiment.error(("design",), "design: a list needs cells")
    return made


def _fraction(
    experiment: Experiment, factors: Mapping[str, Any], generators: Sequence[str]
) -> list[dict[str, Any]]:
    """Make a 2^(k-p) fraction: `D=ABC` makes D's sign the product of those of A, B and C.

    Factors are meant by their names, or, in a generator without separators, by letters A, B, …
    in the order of the file.
    """
    names = list(factors)
    letters = {chr(ord("A") + n): name for n, name in enumerate(names)}
    made_by: dict[str, list[str]] = {}
    for text in generators:
        target, sign, product = text.replace(" ", "").partition("=")
        parts = product.split("*") if "*" in product else list(product)
        known = [letters.get(part, part) for part in parts]
        target = letters.get(target, target)
        if not sign or target not in factors or any(part not in factors for part in known):
            raise experiment.error(("design",), f"design: generator {text!r}: expected D=ABC")
        made_by[target] = known
    free = [name for name in names if name not in made_by]
    combinations = []
    for signs in itertools.product((-1, 1), repeat=len(free)):
        sign_of = dict(zip(free, signs, strict=True))
        for target, parts in made_by.items():
            sign_of[target] = 1
            for part in parts:
                sign_of[target] *= sign_of[part]
        combinations.append(
            {name: factors[name]["levels"][(sign_of[name] + 1) // 2] for name in names}
        )
    return combinations


def replications(experiment: Experiment) -> int:
    """Tell how often each cell is run; a stop rule may ask for more."""
    given = int(experiment.data.get("design", {}).get("replications", 1))
    stop = experiment.data.get("stop")
    return max(given, stop.get("min", 2)) if stop else given


def base_seed(experiment: Experiment) -> int:
    """Tell the seed that order and replicates are drawn from."""
    return int(experiment.data.get("design", {}).get("seed", 1))


def seed_of(seed: int, replication: int) -> int:
    """Give a replicate's seed: the same in every cell, so that cells can be compared in pairs."""
    digest = hashlib.sha256(f"{seed}/{replication}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def order(experiment: Experiment, made: Sequence[Cell], count: int) -> list[tuple[str, int]]:
    """Order the replicates: one replication after another, cells at random within each."""
    rng = random.Random(base_seed(experiment))
    is_random = experiment.data.get("design", {}).get("randomise", True)
    planned = []
    for replication in range(1, count + 1):
        block = [(cell.id, replication) for cell in made]
        if is_random:
            rng.shuffle(block)
        planned += block
    return planned


__all__ = ["Cell", "ExperimentError", "base_seed", "cells", "order", "replications", "seed_of"]
