"""The whole library in one go: told beforehand, resumed, by the same programs, with its time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from onym_lab import cli, life, tools
from onym_lab.results import Run, read_json, write_json

TEXT = """schema: onym-lab/1
name: {name}
title: {name}
topology: {{preset: line, n: 2}}
apps:
  - {{id: server, node: n2, kind: producer, prefix: /t}}
  - {{id: client, node: n1, kind: consumer, prefix: /t, count: 20}}
sample: 20ms
"""


@pytest.fixture(autouse=True)
def _program() -> None:
    try:
        tools.onym()
    except tools.MissingToolError as error:
        pytest.skip(str(error))


@pytest.fixture
def library(tmp_path: Path) -> list[str]:
    folder = tmp_path / "files"
    folder.mkdir()
    names = ("one", "bad", "other")
    for name in names:
        (folder / f"{name}.yaml").write_text(TEXT.format(name=name))
    # What a backend cannot do it refuses by name.
    bad = (folder / "bad.yaml").read_text()
    (folder / "bad.yaml").write_text(bad + "backends: [loopback]\nnodes: {n1: {memory: 1GiB}}\n")
    return [str(folder / f"{name}.yaml") for name in names]


def test_all_goes_on_after_what_is_refused_and_where_it_was_stopped(
    tmp_path: Path, library: list[str], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    argv = ["--results", str(tmp_path / "results"), "all", "--plain", *library]
    assert cli.main([*argv, "--dry-run"]) == cli.OK
    told = capsys.readouterr().out
    assert "refused: " in told
    assert "2 runs to do" in told
    # Stopped within the last one.
    go = life.Life.go

    def stopped(self: life.Life) -> Run:
        if self.experiment.name == "other":
            raise KeyboardInterrupt
        return go(self)

    monkeypatch.setattr(life.Life, "go", stopped)
    assert cli.main(argv) == cli.STOPPED
    first = Run(tmp_path / "results" / "one" / "sim")
    ended = first.state["ended"]
    monkeypatch.setattr(life.Life, "go", go)
    capsys.readouterr()
    assert cli.main(argv) == cli.OK
    told = capsys.readouterr().out
    assert first.state["ended"] == ended, "what is finished is not run again"
    assert "3 experiments (2 done, 1 refused), measured for 0.00 h in all" in told
    assert Run(tmp_path / "results" / "other" / "sim").state["phase"] == "done"
    assert first.state["took"] > 0


def test_a_run_is_not_gone_on_with_by_another_program(
    tmp_path: Path, library: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--results", str(tmp_path / "results"), "all", "--plain", library[0]]
    assert cli.main(argv) == cli.OK
    run = Run(tmp_path / "results" / "one" / "sim")
    noted = read_json(run.folder / "provenance.json")
    noted["binaries"]["onym"]["sha256"] = "0" * 64
    write_json(run.folder / "provenance.json", noted)
    assert cli.main(argv) == cli.FAILED
    assert "one/sim was begun with another onym" in capsys.readouterr().out
    assert cli.main([*argv, "--any-binary"]) == cli.OK
    shutil.rmtree(next(run.replicates()).folder)
    one = ["--results", str(tmp_path / "results"), "run", library[0], "--plain"]
    assert cli.main(one) == cli.ENVIRONMENT
