"""Networks of the Topology Zoo as Mini-NDN files, from PyPI's ``topohub``.

``python -m onym_lab.library.zoo FOLDER`` wrote ``topologies/*.conf``; it is there so that the
files can be made again. Delays are the lengths of the links at two thirds of the speed of light.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

KM_PER_MS = 200.0
"""How far light gets in glass in a millisecond."""

NETWORKS = {
    "abilene": "topozoo/Abilene",
    "geant": "topozoo/Geant2012",
    "attmpls": "topozoo/AttMpls",
}


def word(name: str) -> str:
    """A node's name without what topology files give a meaning to."""
    return re.sub(r"[^A-Za-z0-9]+", "", name) or "x"


def conf(key: str) -> str:
    """The network as a Mini-NDN file."""
    import topohub

    graph = topohub.get(key)
    names: dict[str, str] = {}
    for node in graph["nodes"]:
        name = word(str(node["name"]))
        # Two towns of one name are told apart by their number.
        names[str(node["id"])] = name if name not in names.values() else f"{name}{node['id']}"
    lines = [f"# {key} of topohub: {len(names)} nodes, {len(graph['edges'])} links", "[nodes]"]
    lines += [f"{name}: _" for name in names.values()]
    lines.append("[links]")
    for edge in graph["edges"]:
        a, b = names[str(edge["source"])], names[str(edge["target"])]
        lines.append(f"{a}:{b} delay={max(float(edge['dist']) / KM_PER_MS, 0.1):.2f}ms")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the files."""
    folder = Path(sys.argv[1])
    for name, key in NETWORKS.items():
        (folder / f"{name}.conf").write_text(conf(key))


if __name__ == "__main__":
    main()
