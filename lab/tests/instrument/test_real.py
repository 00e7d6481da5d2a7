"""Real nodes on loopback and in namespaces, and how far the simulator agrees with them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onym_lab import experiment, life
from onym_lab.backend import groups
from onym_lab.backend.netns import Netns
from onym_lab.results import Run, read_json
from onym_lab.tools import MissingToolError, onym

SMALL = """schema: onym-lab/1
name: small
title: Small
topology: {{preset: line, n: 3}}
transport: {transport}
links: {{"*": {{delay: 10ms}}}}
apps:
  - {{id: server, node: n3, kind: producer, prefix: /s, size: 1000}}
  - {{id: first, node: n1, kind: consumer, prefix: /s, count: 200, window: 8}}
  - {{id: second, node: n1, kind: consumer, prefix: /s, count: 200, window: 8, start: 2.5s}}
sample: 100ms
phases: {{measure: {{until: done, at_most: 60s}}}}
"""

# What the simulator and real processes must agree on. Counts are equal. Times of real processes
# are at least the simulator's less a tenth; the machine may be busy, so that above them only an
# order of magnitude is asked for.
EQUAL = (
    ("n1", "cs_hits"), ("first", "data"), ("second", "data"), ("server", "data"),
    ("first", "completed"), ("n1", "data_in"), ("n2", "data_in"),
)  # fmt: skip
LEAST, MOST = 0.9, 10.0


@pytest.fixture(scope="module", autouse=True)
def _program() -> None:
    try:
        onym()
    except MissingToolError as error:
        pytest.skip(str(error))


def go(text: str, root: Path, backend: str) -> Run:
    path = root / "file.yaml"
    path.write_text(text)
    options = life.Options(root=root, backend=backend, report=False)
    return life.Life(experiment.load(path), options, life.Listener()).go()


def value(run: Run, where: str, metric: str) -> float:
    rows = run.aggregate
    found = rows[(rows["where"] == where) & (rows["metric"] == metric)]["value"]
    assert len(found), f"{where} has no {metric}"
    return float(found.iloc[0])


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_simulator_and_real_processes_agree(tmp_path: Path, transport: str) -> None:
    text = SMALL.format(transport=transport)
    simulated, real = (go(text, tmp_path, backend) for backend in ("sim", "loopback"))
    for where, metric in EQUAL:
        a, b = value(simulated, where, metric), value(real, where, metric)
        # A node that is ready was probed: a Data or two more went through it.
        slack = 4 if where in ("n1", "n2", "server") and metric != "cs_hits" else 0
        assert a <= b <= a + slack, f"{where} {metric}: {a} simulated, {b} real"
    for where, metric in (("first", "latency_p50"), ("first", "transfer_mean")):
        a, b = value(simulated, where, metric), value(real, where, metric)
        assert LEAST * a <= b <= MOST * a, f"{where} {metric}: {a} s simulated, {b} s real"
    # Two links of 10 ms, there and back.
    assert value(simulated, "first", "latency_p50") == pytest.approx(0.040, rel=0.02)


def test_loopback_captures_without_privilege_and_loses_by_seed(tmp_path: Path) -> None:
    text = SMALL.format(transport="udp").replace("delay: 10ms", "delay: 2ms, loss: 3%")
    text += "capture: {nodes: all}\nchecks: {completed: 100%}\n"
    run = go(text, tmp_path, "loopback")
    assert run.checks["passed"].all(), run.checks
    assert value(run, "first", "completed") == 1
    assert value(run, "first", "retransmissions") > 0
    # The second consumer is answered from the cache of the first one's node.
    assert value(run, "second", "timeouts") == 0
    replicate = next(run.replicates())
    assert (replicate.raw / "capture-n3.pcapng.zst").is_file()
    assert value(run, "n2", "retransmits") > 0


def can_netns() -> bool:
    return os.geteuid() == 0 and groups.version() > 0


@pytest.mark.skipif(not can_netns(), reason="netns needs root and control groups")
def test_namespaces_have_quotas_captures_and_leave_nothing(tmp_path: Path) -> None:
    text = SMALL.format(transport="udp").replace("sample:", "nodes: {n2: {cpu: 20%}}\nsample:")
    text += "capture: {snaplen: 200, nodes: all}\n"
    path = tmp_path / "file.yaml"
    path.write_text(text)
    spec = experiment.load(path).spec({}, 1)
    reasons = Netns(spec, tmp_path).refusals()
    if reasons:
        pytest.skip("; ".join(reasons))
    run = go(text, tmp_path, "netns")
    assert run.checks["passed"].all(), run.checks
    replicate = next(run.replicates())
    facts = read_json(replicate.raw / "facts.json")
    assert facts["groups"]["n2"]["nr_periods"] > 0
    # Both ends of a link saw the same Data, each once.
    summary = (replicate.raw / "capture-n2.txt").read_text()
    assert summary.endswith("/0\n")
    assert value(run, "n1", "goodput_data") == pytest.approx(
        value(run, "n2", "goodput_data"), rel=0.2
    )
    assert value(run, "n1", "retransmits") == 0
    assert not (replicate.folder / "owned.json").exists()
    spaces = [path.name for path in Path("/run/netns").glob("*")]
    tag = Netns(spec, replicate.folder).tag
    assert not [name for name in spaces if name.startswith(tag)]
