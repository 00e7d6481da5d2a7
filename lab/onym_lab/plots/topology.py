"""A network drawn with the rates that its links carried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from onym_lab.plots.style import FAINT, Plot, panels, scaled, styled

Places = NDArray[np.float64]

LABELLED = 60
"""Most nodes whose names are written."""


def layout(nodes: Sequence[str], links: Sequence[tuple[str, str]], rounds: int = 60) -> Places:
    """Places for nodes such that distances look like hops (stress majorisation).

    Starts from classical scaling, so the same graph always looks the same.
    """
    distance = _distances(nodes, links)
    places = _scaling(distance)
    weight = np.divide(1.0, distance**2, out=np.zeros_like(distance), where=distance > 0)
    for _ in range(rounds):
        gap = np.linalg.norm(places[:, None] - places[None, :], axis=2)
        pull = np.divide(distance, gap, out=np.zeros_like(gap), where=gap > 1e-9)
        moved = np.einsum("ij,ijd->id", weight * pull, places[:, None] - places[None, :])
        places = (moved + weight @ places) / np.maximum(weight.sum(axis=1), 1e-12)[:, None]
    return _upright(places)


def _distances(nodes: Sequence[str], links: Sequence[tuple[str, str]]) -> Places:
    number = {name: i for i, name in enumerate(nodes)}
    ends = np.array([[number[a], number[b]] for a, b in links]).reshape(-1, 2)
    size = (len(nodes), len(nodes))
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=size)
    distance = np.asarray(shortest_path(graph.tocsr(), directed=False, unweighted=True))
    far = distance[np.isfinite(distance)].max(initial=1.0) + 1
    return np.where(np.isfinite(distance), distance, far)


def _scaling(distance: Places) -> Places:
    count = len(distance)
    if count < 3:
        return np.stack([np.arange(count, dtype=float), np.zeros(count)], axis=1)
    centre = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-centre @ distance**2 @ centre / 2)
    best = np.argsort(values)[::-1][:2]
    found = vectors[:, best] * np.sqrt(np.maximum(values[best], 0.05))
    # A line has no second dimension; nodes must not start on one place.
    return np.asarray(found + 1e-3 * np.sin(np.arange(2 * count)).reshape(count, 2))


def _upright(places: Places) -> Places:
    """Turned so that the longest direction lies across, the first node on the left."""
    centred = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned = centred @ axes.T
    if turned[0, 0] > 0:
        turned[:, 0] *= -1
    return np.asarray(turned)


def rates(
    name: str,
    title: str,
    nodes: Sequence[str],
    links: Sequence[tuple[str, str]],
    carried: Mapping[tuple[str, str], float],
    roles: Mapping[str, str],
    unit: str = "B/s",
) -> Plot:
    """The network; links coloured and thick by ``carried``, both directions summed.

    ``roles`` marks nodes as ``consumer`` or ``producer``; others are routers.
    """
    both = np.array([carried.get((a, b), 0.0) + carried.get((b, a), 0.0) for a, b in links])
    places = layout(nodes, links)
    number = {node: i for i, node in enumerate(nodes)}
    divisor, word = scaled(both.tolist(), unit)
    largest = float(both.max(initial=0.0)) or 1.0
    with styled():
        flat = np.ptp(places[:, 1]) < 0.25 * max(np.ptp(places[:, 0]), 1e-9)
        figure, (ax,) = panels(1, 1, 7.2, 2.0 if flat else 4.6)
        lines = [places[[number[a], number[b]]] for a, b in links]
        if carried:
            drawn = LineCollection(lines, cmap=mpl.colormaps["YlGnBu"], zorder=1)
            drawn.set_array(both / divisor)
            drawn.set_clim(-0.25 * largest / divisor, largest / divisor)
            drawn.set_linewidth((1.0 + 4.0 * both / largest).tolist())
            bar = figure.colorbar(drawn, ax=ax, shrink=0.75, pad=0.01)
            bar.ax.set_ylim(0, largest / divisor)
            bar.set_label(f"carried, {word}")
        else:
            drawn = LineCollection(lines, colors=FAINT, linewidths=1.4, zorder=1)
        ax.add_collection(drawn)
        _nodes(ax, nodes, places, roles)
        ax.set_title(title)
        ax.set_axis_off()
        ax.margins(0.08)
        ax.set_aspect("equal", adjustable="datalim")
    data = pd.DataFrame(
        {"from": [a for a, _ in links], "to": [b for _, b in links], f"carried ({unit})": both}
    )
    what = "what they carried" if carried else "nothing about what they carried"
    caption = f"{len(nodes)} nodes, {len(links)} links and {what}."
    return Plot(name, caption, figure, data)


def _nodes(
    ax: mpl.axes.Axes, nodes: Sequence[str], places: Places, roles: Mapping[str, str]
) -> None:
    looks = {"consumer": ("#D55E00", "s"), "producer": ("#009E73", "D"), "router": ("#606060", "o")}
    size = float(np.clip(1600 / max(len(nodes), 1), 8, 90))
    for role, (shade, shape) in looks.items():
        mine = [i for i, node in enumerate(nodes) if roles.get(node, "router") == role]
        if mine:
            ax.scatter(
                places[mine, 0],
                places[mine, 1],
                s=size,
                color=shade,
                marker=shape,
                label=role,
                zorder=2,
                edgecolors="white",
                linewidths=0.6,
            )
    if len(nodes) <= LABELLED:
        for node, (x, y) in zip(nodes, places, strict=True):
            ax.annotate(
                node, (x, y), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=7.5
            )
    ax.legend(loc="upper left", bbox_to_anchor=(0, 0), ncols=3)
