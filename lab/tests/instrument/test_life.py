"""The life of a run: on the simulator for real, killed at every phase, verified, archived."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from onym_lab import cli, experiment, life, provenance, tools
from onym_lab.backend.base import Refused
from onym_lab.results import Run
from onym_lab.tools import MissingToolError, onym

TEXT = """schema: onym-lab/1
name: tiny
title: Tiny
topology: {preset: line, n: 3}
defaults: {cost: 20us}
links: {"*": {delay: 1ms, rate: 100mbit}}
apps:
  - {id: server, node: n3, kind: producer, prefix: /t}
  - {id: client, node: n1, kind: files, prefix: /t, files: 2, octets: 40kB, rate: 10/s, window: 4}
factors:
  loss: {path: links.n2-n3.loss, levels: [0%, 5%]}
design: {replications: 2, seed: 1}
sample: 20ms
capture: {nodes: all}
checks: {completed: 100%}
"""
# The simulator is the same for the same seed; how fast it ran is not.
SPEED = ("events_per_second", "octets_per_node")

KILLER = """
import os, signal, sys
from onym_lab import cli, life
phase, place = sys.argv[1], sys.argv[2]
note, write = life.note, life.write_json
def killing_note(replicate, **changes):
    note(replicate, **changes)
    if changes.get("phase") == phase and place == str("collect" in changes.get("done", [])):
        os.kill(os.getpid(), signal.SIGKILL)
def killing_write(path, value):
    write(path, value)
    if path.name == "state.json" and value.get("phase") == phase:
        os.kill(os.getpid(), signal.SIGKILL)
life.note = killing_note
life.write_json = killing_write
sys.exit(cli.main(sys.argv[3:]))
"""


@pytest.fixture(scope="module", autouse=True)
def _program() -> None:
    try:
        onym()
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("file") / "tiny.yaml"
    path.write_text(TEXT)
    return path


def run(file: Path, root: Path) -> Run:
    options = life.Options(root=root, backend="sim", report=False)
    return life.Life(experiment.load(file), options, life.Listener()).go()


@pytest.fixture(scope="module")
def whole(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(file, tmp_path_factory.mktemp("whole"))


def measured(run: Run) -> pd.DataFrame:
    frame = run.aggregate
    return frame[~frame["metric"].isin(SPEED)].reset_index(drop=True)


def test_a_run_has_every_file_that_the_layout_promises(whole: Run) -> None:
    for name in ("experiment.yaml", "experiment.json", "plan.json", "state.json", "provenance.json",
                 "aggregate.csv", "samples.parquet", "traffic.parquet", "transfers.parquet",
                 "checks.csv", "manifest.json"):  # fmt: skip
        assert (whole.folder / name).is_file(), name
    replicates = list(whole.replicates())
    assert len(replicates) == 4
    for name in ("raw/process-n2.csv", "raw/capture-n2.pcap.zst", "raw/capture-n2.txt",
                 "raw/transfers.csv", "raw/samples.csv", "derived/packets-n2.psml.zst",
                 "derived/paper/process-n2.csv", "derived/paper/traffic-n2.csv",
                 "derived/samples.parquet", "derived/measures.json", "checks.json"):  # fmt: skip
        assert (replicates[0].folder / name).is_file(), name
    assert whole.checks["passed"].all()


def test_measures_are_those_of_the_traffic_that_was_asked_for(whole: Run) -> None:
    rows = whole.aggregate
    clean = rows[(rows["factor_loss"] == "0%") & (rows["replication"] == 1)]

    def value(where: str, metric: str) -> float:
        return float(
            clean[(clean["where"] == where) & (clean["metric"] == metric)]["value"].iloc[0]
        )

    # Two files of 40 kB in segments of 4096 octets: ten each.
    assert value("client", "data") == 20
    assert value("n2", "interests_in") == 20
    assert value("server", "data") == 20
    assert value("client", "completed") == 2
    assert value("n2", "retransmits") == 0
    lossy = rows[(rows["factor_loss"] == "5%") & (rows["metric"] == "retransmissions")]
    assert lossy["value"].sum() > 0


@pytest.mark.parametrize(
    ("phase", "collected"),
    [
        ("provision", False), ("warm up", False), ("measure", False), ("collect", False),
        ("collect", True), ("validate", True), ("derive", True), ("done", True),
        ("replicates", False), ("aggregate", False), ("report", False),
    ],
)  # fmt: skip
def test_a_run_killed_at_any_phase_goes_on_to_the_same_aggregate(
    file: Path, tmp_path: Path, whole: Run, phase: str, collected: bool
) -> None:
    argv = [
        "--results",
        str(tmp_path),
        "run",
        str(file),
        "--backend",
        "sim",
        "--no-report",
        "--plain",
    ]
    killed = subprocess.run(
        [sys.executable, "-c", KILLER, phase, str(collected), *argv],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = run(file, tmp_path)
    pd.testing.assert_frame_equal(measured(again), measured(whole))
    assert provenance.verify(again) == []


def test_a_killed_run_is_resumed_without_the_files_it_was_made_of(
    tmp_path: Path, whole: Run
) -> None:
    network = tmp_path / "three.conf"
    network.write_text("[nodes]\nn1: _\nn2: _\nn3: _\n[links]\nn1:n2 delay=1ms\nn2:n3 delay=1ms\n")
    file = tmp_path / "tiny.yaml"
    file.write_text(TEXT.replace("{preset: line, n: 3}", "{file: three.conf}"))
    root = ["--results", str(tmp_path / "results")]
    killed = subprocess.run(
        [sys.executable, "-c", KILLER, "measure", "False", *root, "run", str(file), "--plain"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    network.unlink()
    file.unlink()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        assert cli.main([*root, "diff", "tiny/sim", "tiny/sim"]) == cli.FAILED, "it did not end"
        assert cli.main([*root, "resume", "--plain"]) == cli.OK
        assert cli.main([*root, "verify", "tiny"]) == cli.OK
    finally:
        signal.signal(signal.SIGTERM, handler)
    again = Run(tmp_path / "results" / "tiny" / "sim")
    pd.testing.assert_frame_equal(measured(again), measured(whole))


def test_what_was_measured_is_read_only_and_a_change_is_found(file: Path, tmp_path: Path) -> None:
    one = run(file, tmp_path)
    victim = next(one.replicates()).raw / "samples.csv"
    assert not victim.stat().st_mode & 0o222
    victim.chmod(0o644)
    victim.write_text(victim.read_text() + "x")
    wrong = provenance.verify(one)
    assert len(wrong) == 1
    assert "samples.csv: was changed" in wrong[0]


def test_an_archive_unpacks_to_the_same_run(whole: Run, tmp_path: Path) -> None:
    provenance.archive(whole, tmp_path / "run.tar.zst")
    again = provenance.restore(tmp_path / "run.tar.zst", tmp_path / "elsewhere")
    assert provenance.verify(again) == []
    assert provenance.diff(whole, again) == []
    with pytest.raises(ValueError, match="there already"):
        provenance.restore(tmp_path / "run.tar.zst", tmp_path / "elsewhere")


def test_another_file_under_the_same_name_is_refused(
    file: Path, tmp_path: Path, whole: Run
) -> None:
    other = tmp_path / "tiny.yaml"
    other.write_text(TEXT.replace("5%", "6%"))
    with pytest.raises(life.RunExistsError):
        run(other, whole.folder.parent.parent)


def test_a_stop_rule_asks_for_more_replications_until_the_interval_is_narrow(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tiny.yaml"
    rule = "stop: {metric: transfer_mean, where: client, relative: 1%, min: 2, max: 4}\n"
    path.write_text(TEXT + rule)
    one = run(path, tmp_path)
    counts = one.aggregate.groupby("label")["replication"].max()
    assert counts["loss=0%"] == 2
    assert counts["loss=5%"] == 4


@pytest.mark.parametrize(
    ("backend", "change", "reason"),
    [
        ("sim", ("kind: producer", "kind: put, octets: 5"), "server: put is a real program"),
        ("sim", ("topology:", "subject: ndnd\ntopology:"), "sim has no forwarder 'ndnd'"),
        ("loopback", ("{cost: 20us}", "{cpu: 25%}"), "loopback has no cpu or memory limits"),
        ("loopback", ("sample:", "faults: [{at: 1s, link: n1-n2, action: down}]\nsample:"),
         "loopback cannot take a link down"),
        ("loopback", ("topology:", "subject: nfd\ntopology:"), "nfd"),
    ],
)  # fmt: skip
def test_what_a_backend_cannot_do_it_refuses_by_name(
    tmp_path: Path, backend: str, change: tuple[str, str], reason: str
) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_text(TEXT.replace(*change, 1))
    with pytest.raises(Refused) as refused:
        life.plan(experiment.load(path), life.Options(root=tmp_path, backend=backend))
    assert any(reason in one for one in refused.value.reasons), refused.value.reasons


def test_the_command_ends_with_the_code_of_what_went_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(TEXT.replace("count", "cuont").replace("files: 2", "flies: 2"))
    handler = signal.getsignal(signal.SIGTERM)
    try:
        assert cli.main(["run", str(bad)]) == cli.USAGE
        assert f"{bad}:9: " in capsys.readouterr().err
        good = tmp_path / "tiny.yaml"
        good.write_text(TEXT.replace("topology:", "subject: ndnd\ntopology:"))
        assert cli.main(["run", str(good), "--backend", "sim"]) == cli.ENVIRONMENT
        # A link that is down all the time: nothing arrives, and the check says so.
        good.write_text(
            TEXT.replace(
                "sample:", "faults: [{at: 0s, link: n1-n2, action: down, for: 90s}]\nsample:"
            )
        )
        root = ["--results", str(tmp_path / "results")]
        argv = [*root, "run", str(good), "--no-report", "--replications", "1", "--plain"]
        assert cli.main(argv) == cli.CHECK
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert os.getpid()


def test_an_onym_of_other_sources_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    head = provenance._git("rev-parse", "HEAD")
    if head is None:
        pytest.skip("these sources have no history")
    assert "does not say the commit" in str(provenance.stale("onym 0.1.0"))
    assert "not in this history" in str(provenance.stale("onym 0.1.0 (0123456789ab)"))
    # A commit that changes a document makes the same program; one that changes a crate does not.
    told = {"diff": "", "status": ""}
    monkeypatch.setattr(provenance, "_git", lambda *words: told.get(words[0], head))
    assert provenance.stale("onym 0.1.0 (0123456789ab)") is None
    assert "that the source has not" in str(provenance.stale("onym 0.1.0 (0123456789ab+changes)"))
    told["status"] = "M crates/wire/src/tlv.rs"
    assert provenance.stale("onym 0.1.0 (0123456789ab+changes)") is None
    assert "since: crates/wire/src/tlv.rs" in str(provenance.stale("onym 0.1.0 (0123456789ab)"))
    told["diff"] = "crates/wire/src/lib.rs"
    assert "the source is at" in str(provenance.stale("onym 0.1.0 (0123456789ab)"))


def test_a_run_by_another_commits_onym_is_refused_and_provenance_names_commit_and_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = provenance._git("rev-parse", "HEAD")
    if head is None:
        pytest.skip("these sources have no history")
    onym = tmp_path / "onym"
    onym.write_text("#!/bin/sh\necho 'onym 0.1.0 (0123456789ab)'\n")
    onym.chmod(0o755)
    monkeypatch.setattr(provenance, "programs", lambda *_: {"onym": onym})
    loaded = experiment.load(experiment.find("quickstart"))
    with pytest.raises(tools.OtherProgramError, match="not in this history"):
        provenance.gather(loaded, "sim")
    for status, dirty in (("", False), (" M README.md", True)):
        told = {"status": status, "rev-parse": head}
        monkeypatch.setattr(provenance, "_git", lambda *words, told=told: told[words[0]])
        found = provenance.gather(loaded, "sim", any_binary=True)
        assert (found["commit"], found["dirty"]) == (head, dirty)
        assert found["binaries"]["onym"]["version"] == "onym 0.1.0 (0123456789ab)"


def test_a_program_that_is_older_than_a_source_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, program = tmp_path / "bench" / "main.rs", tmp_path / "target" / "onym-bench"
    for path in (source, program):
        path.parent.mkdir()
        path.write_text("")
    monkeypatch.setattr(tools, "ROOT", tmp_path)
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    monkeypatch.setattr(provenance, "_git", lambda *_: "bench/main.rs")
    os.utime(source, (100, 100))
    assert provenance.outdated(program) is None
    os.utime(source, (2**32, 2**32))
    assert provenance.outdated(program) == "bench/main.rs was changed after onym-bench was built"


def test_a_run_is_named_by_its_experiment_or_by_both(whole: Run, tmp_path: Path) -> None:
    results, name = whole.folder.parents[1], whole.folder.parent.name
    assert cli.named(results, name).folder == whole.folder
    assert cli.named(results, f"{name}/{whole.folder.name}").folder == whole.folder
    assert cli.named(results, str(whole.folder)).folder == whole.folder
    assert cli.main(["--results", str(results), "diff", name, name]) == cli.OK
    assert cli.main(["--results", str(results), "cite", name]) == cli.OK
    both = f"{name}/{whole.folder.name}"
    target = tmp_path / "run.tar.zst"
    assert cli.main(["--results", str(results), "archive", both, "-o", str(target)]) == cli.OK
    assert target.stat().st_size > 0
    with pytest.raises(ValueError, match=f"no run 'other' of {name}"):
        cli.named(results, f"{name}/other")
