#!/usr/bin/env python3
"""Writes a container image of one static program: image.py ARCHIVE NAME PROGRAM.

The archive is what `docker load` and `ctr images import` take; the program is the entry point.
"""

import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path


def packed(files: dict[str, tuple[bytes, int]]) -> bytes:
    """An archive of files with their modes, the same octets for the same files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def main() -> None:
    target, name, program = sys.argv[1:]
    inside = Path(program).name
    layer = packed({inside: (Path(program).read_bytes(), 0o755)})
    config = json.dumps({
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": [f"/{inside}"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
    }).encode()
    told = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": told, "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    parts = {"layer.tar": (layer, 0o644), told: (config, 0o644), "manifest.json": (manifest, 0o644)}
    Path(target).write_bytes(packed(parts))


if __name__ == "__main__":
    main()
