"""Real nodes on loopback and in namespaces, and how far the simulator agrees with them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from onym_lab import experiment, life
from onym_lab.backend import groups
from onym_lab.backend.netns import Netns
from onym_lab.results import Replicate, Run, read_json
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
# are no shorter, since no timer fires early, and longer by two things only: each of the four delays
# of an exchange ends with the next turn of its node, a millisecond later at most, a tenth of them;
# and who is ready to run waits for a processor, which the kernel tells.
EQUAL = (
    ("n1", "cs_hits"), ("first", "data"), ("second", "data"), ("server", "data"),
    ("first", "completed"), ("n1", "data_in"), ("n2", "data_in"),
)  # fmt: skip
LEAST, TURNS = 0.999, 1.1
ROUNDS = 25
"""200 names by eights: the exchanges that the first consumer makes one after the other."""


def waited() -> float:
    """Seconds so far in which something that was ready waited for a processor.

    Pressure stall information; and what a hypervisor took, which is not in it.
    """
    some = re.search(r"^some .*total=(\d+)", Path("/proc/pressure/cpu").read_text())
    assert some
    stolen = int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8])
    return int(some[1]) / 1e6 + stolen / os.sysconf("SC_CLK_TCK")


class Waits(life.Listener):
    """Notes how long was waited for a processor while it was measured."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}

    def phase(self, replicate: Replicate, phase: str) -> None:
        self.at[phase] = waited()

    @property
    def seconds(self) -> float:
        return self.at["collect"] - self.at["measure"]


@pytest.fixture(scope="module", autouse=True)
def _program() -> None:
    try:
        onym()
    except MissingToolError as error:
        pytest.skip(str(error))


def go(text: str, root: Path, backend: str, listener: life.Listener | None = None) -> Run:
    path = root / "file.yaml"
    path.write_text(text)
    options = life.Options(root=root, backend=backend, report=False)
    return life.Life(experiment.load(path), options, listener or life.Listener()).go()


def value(run: Run, where: str, metric: str) -> float:
    rows = run.aggregate
    found = rows[(rows["where"] == where) & (rows["metric"] == metric)]["value"]
    assert len(found), f"{where} has no {metric}"
    return float(found.iloc[0])


def passed(run: Run) -> bool:
    """Whether checks passed, but for late samples: they tell of a busy machine."""
    checks = run.checks
    return bool(checks[checks["check"] != "invalid_samples"]["passed"].all())


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_simulator_and_real_processes_agree(tmp_path: Path, transport: str) -> None:
    text = SMALL.format(transport=transport)
    if not Path("/proc/pressure/cpu").is_file():
        pytest.skip("this kernel does not tell how long is waited for a processor (PSI)")
    waits = Waits()
    simulated, real = go(text, tmp_path, "sim"), go(text, tmp_path, "loopback", waits)
    for where, metric in EQUAL:
        a, b = value(simulated, where, metric), value(real, where, metric)
        # A node that is ready was probed: a Data or two more went through it.
        slack = 4 if where in ("n1", "n2", "server") and metric != "cs_hits" else 0
        assert a <= b <= a + slack, f"{where} {metric}: {a} simulated, {b} real"
    # At most half of the rounds can wait longer than twice the mean.
    for metric, more in (
        ("transfer_mean", waits.seconds),
        ("latency_p50", 2 * waits.seconds / ROUNDS),
    ):
        a, b = value(simulated, "first", metric), value(real, "first", metric)
        told = f"{metric}: {a} s simulated, {b} s real, {more:.3f} s waited for a processor"
        print(told)
        assert LEAST * a <= b <= TURNS * a + more, told
    # Two links of 10 ms, there and back.
    assert value(simulated, "first", "latency_p50") == pytest.approx(0.040, rel=0.02)


def test_loopback_captures_without_privilege_and_loses_by_seed(tmp_path: Path) -> None:
    text = SMALL.format(transport="udp").replace("delay: 10ms", "delay: 2ms, loss: 3%")
    text += "capture: {nodes: all}\nchecks: {completed: 100%}\n"
    run = go(text, tmp_path, "loopback")
    assert passed(run), run.checks.to_string()
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
    assert passed(run), run.checks.to_string()
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
