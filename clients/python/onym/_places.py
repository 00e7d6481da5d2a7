"""Where a node is looked for (spec/registry.md, "Ports, addresses, paths")."""

from __future__ import annotations

import os
from collections.abc import Mapping


def unix_paths(node: str | None = None, env: Mapping[str, str] | None = None) -> list[str]:
    """Paths of Unix sockets to try, in order: one when somebody named it, else the usual places."""
    env = os.environ if env is None else env
    named = node or env.get("NDN_CLIENT_TRANSPORT")
    if named:
        path = named.removeprefix("unix://")
        if "://" in path:
            raise ValueError(f"{named}: applications reach the push half by unix:///path only")
        return [path]
    paths = ["/run/nfd/nfd.sock"]
    if directory := env.get("XDG_RUNTIME_DIR"):
        paths.append(f"{directory}/onym/nfd.sock")
    return [*paths, f"/tmp/onym-{os.getuid()}/nfd.sock", "/run/nfd.sock"]
