"""Control groups for processor and memory limits, of either version."""

from __future__ import annotations

import contextlib
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 20_000
"""Shorter than the kernel's usual 100 ms: a weak node is slow, not stopped for most of a tenth."""
QUOTA_LEAST_US = 1_000
"""The kernel takes no smaller one."""


def quota(share: float) -> tuple[int, int]:
    """Give quota and period of a share of a core, in microseconds."""
    given = round(share * PERIOD_US)
    if given >= QUOTA_LEAST_US:
        return given, PERIOD_US
    return QUOTA_LEAST_US, round(QUOTA_LEAST_US / share)


def version() -> int:
    """Tell which version can be used here: 2, 1, or 0 for none."""
    if (ROOT / "cgroup.controllers").is_file():
        controllers = (ROOT / "cgroup.controllers").read_text().split()
        return 2 if "cpu" in controllers else 0
    return 1 if (ROOT / "cpu" / "cpu.cfs_quota_us").parent.is_dir() else 0


class Group:
    """One node's group. Shares are of one core."""

    def __init__(self, name: str, memory: int | None) -> None:
        self.version = version()
        if self.version == 2:
            with contextlib.suppress(OSError):
                (ROOT / "cgroup.subtree_control").write_text("+cpu +memory")
            self.paths = [ROOT / name]
        else:
            self.paths = [ROOT / "cpu" / name]
            if memory is not None:
                self.paths.append(ROOT / "memory" / name)
        for path in self.paths:
            path.mkdir(exist_ok=True)
        if memory is not None:
            file = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
            (self.paths[-1] / file).write_text(str(memory))

    def limit(self, share: float | None) -> None:
        """Let the group use a share of a core from now on; None is all."""
        given, period = (-1, PERIOD_US) if share is None else quota(share)
        if self.version == 2:
            text = "max" if share is None else str(given)
            (self.paths[0] / "cpu.max").write_text(f"{text} {period}")
            return
        # Quota and period are two files: the quota is lifted while the period changes.
        for file, value in (("quota", -1), ("period", period), ("quota", given)):
            (self.paths[0] / f"cpu.cfs_{file}_us").write_text(str(value))

    def wrap(self, argv: list[str]) -> list[str]:
        """Give the command line that runs `argv` in the group."""
        files = " ".join(f"{path}/cgroup.procs" for path in self.paths)
        script = f'for f in {files}; do echo $$ > "$f" || exit 1; done; exec "$@"'
        return ["sh", "-c", script, "sh", *argv]

    def throttled(self) -> dict[str, int]:
        """Read how often and how long the group was held back."""
        text = (self.paths[0] / "cpu.stat").read_text()
        return {key: int(value) for key, value in (line.split() for line in text.splitlines())}
