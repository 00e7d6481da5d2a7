"""A run over several machines by their addresses: what is written for each of them runs there."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from onym_lab import cli
from onym_lab.tools import MissingToolError, onym

FILE = """schema: onym-lab/1
name: far
title: Far
topology: {preset: line, n: 2}
transport: tcp
links: {"*": {delay: 1ms}}
apps:
  - {id: server, node: n2, kind: producer, prefix: /s, size: 1000}
  - {id: reader, node: n1, kind: consumer, prefix: /s, count: 100, window: 8}
phases: {measure: {until: done, at_most: 60s}}
"""


def write(tmp_path: Path, text: str, *more: str) -> int:
    file = tmp_path / "far.yaml"
    file.write_text(text)
    return cli.main(["machines", str(file), "-o", str(tmp_path / "far"), *more])


@pytest.fixture(autouse=True)
def _program() -> None:
    try:
        onym()
    except MissingToolError as error:
        pytest.skip(str(error))


def test_what_is_written_for_two_machines_runs_at_their_addresses(tmp_path: Path) -> None:
    # Two addresses of this machine stand for two machines; `sh` for ssh, and nothing to copy.
    pid = os.getpid()
    first, second = (f"127.{3 + pid % 250}.{pid // 250 % 250}.{host}" for host in (1, 2))
    at = f"n1={first},n2={second}"
    assert write(tmp_path, FILE, "--at", at, "--port", "26363") == cli.OK
    bins = tmp_path / "bin"
    bins.mkdir()
    (bins / "onym").symlink_to(onym())
    (bins / "reach").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    (bins / "reach").chmod(0o755)
    done = subprocess.run(
        ["sh", str(tmp_path / "far" / "go.sh")],
        env={**os.environ, "PATH": f"{bins}:{os.environ['PATH']}", "RUN": "reach", "COPY": "true"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (reader,) = json.loads((tmp_path / "far" / "n1" / "reader.json").read_text())["apps"]
    assert (reader["data"], reader["failed"]) == (100, 0)
    assert not list((tmp_path / "far").glob("*/*.pid")), "something still runs"


def test_what_machines_cannot_do_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limited = FILE + "nodes: {n2: {cpu: 10%}}\n"
    assert write(tmp_path, limited, "--at", "n1=192.0.2.1") == cli.ENVIRONMENT
    said = capsys.readouterr().err
    assert "n2 has no address" in said
    assert "no limits" in said
    assert not (tmp_path / "far" / "go.sh").exists()
