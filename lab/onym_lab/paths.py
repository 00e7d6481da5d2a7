"""Places of an experiment file by a path such as ``nodes.n4.cpu``: read, set, multiplied."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any


def _walk(data: Any, path: str) -> tuple[Any, str | int]:
    """Find the container of a path's last part. Applications are found by their id."""
    parts = path.split(".")
    here = data
    for part in parts[:-1]:
        if isinstance(here, list):
            here = next((one for one in here if one.get("id") == part), None)
            if here is None:
                raise KeyError(path)
        else:
            if here.get(part) is None:
                here[part] = {}
            here = here[part]
    if not isinstance(here, dict):
        raise KeyError(path)
    return here, parts[-1]


def put(data: dict[str, Any], path: str, value: Any) -> None:
    """Set the place that `path` names."""
    if path in data:
        data[path] = value
        return
    container, key = _walk(data, path)
    container[key] = value


def get(data: dict[str, Any], path: str) -> Any:
    """Read the place that `path` names; None when it is absent."""
    try:
        container, key = _walk(copy.deepcopy(data), path)
    except KeyError:
        return None
    return container.get(key)


def multiply(data: dict[str, Any], paths: Sequence[str], scale: float) -> None:
    """Multiply what stands at the paths; whole numbers are rounded up and stay at least 1."""
    for path in paths:
        value = get(data, path)
        if isinstance(value, int):
            put(data, path, max(1, math.ceil(value * scale)))
        elif isinstance(value, float):
            put(data, path, value * scale)
        else:
            put(data, path, _scaled_text(str(value), scale))


def _scaled_text(text: str, scale: float) -> str:
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/%")
    return f"{float(digits) * scale:g}{text[len(digits) :]}"
