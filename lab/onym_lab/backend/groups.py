"""Control groups for processor and memory limits, of either version."""

from __future__ import annotations

import contextlib
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000


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
        quota = -1 if share is None else max(1000, round(share * PERIOD_US))
        if self.version == 2:
            text = "max" if share is None else str(quota)
            (self.paths[0] / "cpu.max").write_text(f"{text} {PERIOD_US}")
        else:
            (self.paths[0] / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.paths[0] / "cpu.cfs_quota_us").write_text(str(quota))

    def wrap(self, argv: list[str]) -> list[str]:
        """Give the command line that runs `argv` in the group."""
        files = " ".join(f"{path}/cgroup.procs" for path in self.paths)
        script = f'for f in {files}; do echo $$ > "$f" || exit 1; done; exec "$@"'
        return ["sh", "-c", script, "sh", *argv]

    def throttled(self) -> dict[str, int]:
        """Read how often and how long the group was held back."""
        text = (self.paths[0] / "cpu.stat").read_text()
        return {key: int(value) for key, value in (line.split() for line in text.splitlines())}
