"""Forwarders under test: what each is given, what it refuses, and files through each for real."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from onym_lab import experiment, life, subject
from onym_lab.backend import groups
from onym_lab.backend.base import Refused
from onym_lab.backend.netns import Netns
from onym_lab.collect import meter
from onym_lab.results import Run, read_json
from onym_lab.subject.onym_push import center
from onym_lab.tools import MissingToolError, onym

TEXT = """schema: onym-lab/1
name: three
title: Three nodes
topology: {preset: line, n: 3}
apps:
  - {id: server, node: n3, kind: put, prefix: /file, octets: 500kB}
  - {id: reader, node: n1, kind: get, prefix: /file}
factors:
  forwarder: {path: subject, levels: [onym, onym-chain, onym-push]}
checks: {completed: 100%}
sample: 100ms
phases: {measure: {until: done, at_most: 60s}}
"""
PULL = """schema: onym-lab/1
name: pull
title: Names over a chain of services
topology: {preset: line, n: 2}
subject: onym-chain
apps:
  - {id: server, node: n2, kind: producer, prefix: /s, size: 1000}
  - {id: client, node: n1, kind: files, prefix: /s, files: 3, octets: 20kB, rate: 20/s, window: 4}
sample: 100ms
phases: {measure: {until: done, at_most: 60s}}
"""


@pytest.fixture(autouse=True)
def _program() -> None:
    try:
        onym()
    except MissingToolError as error:
        pytest.skip(str(error))


def write(folder: Path, text: str) -> experiment.Experiment:
    path = folder / "file.yaml"
    path.write_text(text)
    return experiment.load(path)


def go(text: str, folder: Path, backend: str) -> Run:
    options = life.Options(root=folder, backend=backend, report=False)
    return life.Life(write(folder, text), options, life.Listener()).go()


def value(run: Run, where: str, metric: str, **factors: str) -> float:
    rows = run.aggregate
    rows = rows[(rows["where"] == where) & (rows["metric"] == metric)]
    for name, level in factors.items():
        rows = rows[rows[f"factor_{name}"] == level]
    assert len(rows) == 1, f"{where} {metric} {factors}: {len(rows)} rows"
    return float(rows["value"].iloc[0])


def needs_namespaces(folder: Path, text: str) -> None:
    if os.geteuid() != 0 or not groups.version():
        pytest.skip("netns needs root and control groups")
    reasons = Netns(write(folder, text).spec({}, 1), folder).refusals()
    if reasons:
        pytest.skip("; ".join(reasons))


def test_a_file_comes_whole_through_node_chain_and_push_by_one_experiment_file(
    tmp_path: Path,
) -> None:
    needs_namespaces(tmp_path, TEXT)
    run = go(TEXT, tmp_path, "netns")
    # Late samples tell of a busy machine, not of the subjects.
    checks = run.checks[run.checks["check"] != "invalid_samples"]
    assert checks["passed"].all(), checks.to_string()
    for forwarder in ("onym", "onym-chain", "onym-push"):
        assert value(run, "reader", "completed", forwarder=forwarder) == 1
        assert value(run, "n2", "cpu_total", forwarder=forwarder) > 0
        assert read_json(run.folder / "known" / forwarder / "counters.json")
    # 500 kB in segments of 8000 octets, and one that tells the version.
    for forwarder in ("onym", "onym-chain"):
        assert value(run, "n2", "cs_misses", forwarder=forwarder) >= 63
    assert value(run, "n3", "publications_sent", forwarder="onym-push") == 1
    assert value(run, "n1", "publications_delivered", forwarder="onym-push") == 1


def test_a_chain_of_services_is_a_node_to_applications_without_privilege(tmp_path: Path) -> None:
    run = go(PULL, tmp_path, "loopback")
    assert run.checks["passed"].all(), run.checks
    assert value(run, "client", "completed") == 3
    assert value(run, "n1", "pending_max") >= 0
    known = read_json(run.folder / "known" / "onym-chain" / "counters.json")
    assert {(row["node"], row["counter"]) for row in known} == {
        ("n1", "cs_hits"), ("n1", "cs_misses"), ("n1", "interests_out"), ("n1", "data_in"),
        ("n2", "data_out"),
    }  # fmt: skip
    # Its processor time is that of all four services.
    logs = next(run.replicates()).raw / "log"
    assert all((logs / f"n1-{part}.err").is_file() for part in ("nr", "br", "cs", "pd"))


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        (PULL, "onym-push", "client is a files, and push has files only: put and get"),
        (PULL + "defaults: {defences: 'off'}\n", "onym-chain", "no defences to turn off (n1)"),
        (PULL + "strategy: {/: multicast}\n", "onym-chain", "no strategies by prefix"),
        (PULL + "links: {'*': {loss: 1%}}\n", "onym-chain", "no faults on its faces"),
        (TEXT, "onym-push", "loopback: onym-push knows neighbours by the address"),
        (TEXT + "transport: tcp\n", "onym-push", "joins nodes by udp here, not by tcp"),
        (PULL, "nobody", "there is no forwarder 'nobody': onym, onym-chain, onym-push, ndnd, nfd"),
    ],
)
def test_what_a_forwarder_cannot_do_is_refused_by_name(
    tmp_path: Path, text: str, name: str, reason: str
) -> None:
    text = text.replace("subject: onym-chain\n", "").replace("[onym, onym-chain, ", "[")
    text = text.replace("  forwarder: {path: subject, levels: [onym-push]}\n", "")
    text = text.replace("factors:\n", "") + f"subject: {name}\n"
    with pytest.raises((Refused, subject.SubjectError), match=re.escape(reason)):
        go(text, tmp_path, "loopback")


def test_the_counters_of_a_chain_are_those_of_its_ends() -> None:
    none = {"interests": 0, "data": 0, "nacks": 0}
    stats = {
        "cs": {
            "received": {"interests": 100, "data": 50, "nacks": 0},
            "sent": {"interests": 50, "data": 99, "nacks": 1},
            "dropped": {"malformed": 1, "no_route": 0},
            "content_store": {"hits": 50, "misses": 50, "entries": 40},
        },
        "br": {"received": none, "sent": none, "dropped": {"malformed": 2},
               "backward_router": {"entries": 7}},
        "nr": {"received": {"interests": 50, "data": 48, "nacks": 2},
               "sent": {"interests": 49, "data": 48, "nacks": 0},
               "dropped": {"no_route": 1}, "name_router": {"routes": 3}},
    }  # fmt: skip
    found = meter.read_services(stats)
    assert found["verdicts"] == {"malformed": 3, "no_route": 1}
    wanted = {
        "names": 50, "pending": 7, "cs_entries": 40, "cs_hits": 50, "cs_misses": 50,
        "interests_in": 100, "interests_out": 49, "data_in": 48, "data_out": 99, "nacks_in": 2,
        "dropped": 4,
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == wanted


def test_the_node_nearest_to_all_is_the_rendezvous(tmp_path: Path) -> None:
    star = TEXT.replace("{preset: line, n: 3}", "{nodes: [n1, n2, n3, n4, n5], links: LINKS}")
    links = "[[n1, n4], [n2, n4], [n4, n5], [n5, n3]]"
    spec = write(tmp_path, star.replace("LINKS", links)).spec({}, 1)
    assert center(spec) == "n4"


# Stand-ins for a program that is not here: they keep what they were told, in the words of NFD's
# manual pages, and a node of onym does it. That NFD itself takes them is not shown by this.
NFD = """#!{python}
import os, re, sys
if sys.argv[1:] == ["--version"]:
    sys.exit()
text = open(sys.argv[sys.argv.index("--config") + 1]).read()
socket = re.search(r"unix {{ path (\\S+) }}", text)[1]
port = re.search(r"udp {{ port (\\d+)", text)[1]
cs = re.search(r"cs_max_packets (\\d+)", text)[1]
assert text.count("{{") == text.count("}}")
sets = [f"faces.unix.path={{socket}}", f"faces.udp.listen=0.0.0.0:{{port}}", "faces.tcp.listen=",
        "faces.websocket.listen=", "metrics.listen=", f"cs.packets_max={{cs}}"]
argv = [{onym!r}, "daemon"]
for one in sets:
    argv += ["--set", one]
os.execv(argv[0], argv)
"""
NFDC = """#!{python}
import os, subprocess, sys
words = sys.argv[1:]
if words == ["--version"]:
    sys.exit()
with open({log!r}, "a") as log:
    log.write(" ".join(words) + "\\n")
assert os.environ["HOME"] and os.environ["NDN_CLIENT_TRANSPORT"].startswith("unix://")
if words[:2] == ["face", "create"]:
    remote, option, value = words[2:]
    assert (option, value) == ("persistency", "permanent")
    argv = ["face", "create", remote]
elif words[:2] == ["route", "add"]:
    prefix, nexthop = words[2:]
    argv = ["route", "add", prefix, "--via", nexthop]
else:
    command, verb, prefix, strategy = words
    assert (command, verb) == ("strategy", "set")
    argv = ["strategy", "set", prefix, strategy.rpartition("/")[2]]
sys.exit(subprocess.run([{onym!r}, *argv], stdout=subprocess.DEVNULL).returncode)
"""


def test_nfd_is_told_what_its_manual_says_and_an_experiment_runs_over_a_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PULL.replace("subject: onym-chain", "subject: nfd") + "strategy: {/s: multicast}\n"
    with pytest.raises(Refused, match="nfd is not on PATH"):
        go(text, tmp_path, "netns")
    bins = tmp_path / "bin"
    bins.mkdir()
    monkeypatch.setenv("PATH", f"{bins}:{os.environ['PATH']}")
    # One that is there and does not start is left out, too.
    for name in ("nfd", "nfdc"):
        (bins / name).write_text("#!/bin/sh\necho no libndn-cxx.so >&2; exit 127\n")
        (bins / name).chmod(0o755)
    with pytest.raises(Refused, match=r"nfd does not start: nfd --version: no libndn-cxx\.so"):
        go(text, tmp_path, "netns")
    for name, script in (("nfd", NFD), ("nfdc", NFDC)):
        keys = {"python": sys.executable, "onym": str(onym()), "log": str(tmp_path / "log")}
        (bins / name).write_text(script.format(**keys))
        (bins / name).chmod(0o755)
    needs_namespaces(tmp_path, text)
    run = go(text, tmp_path, "netns")
    assert value(run, "client", "completed") == 3
    assert value(run, "n1", "data_in") >= 15
    # For the known traffic and for the replicate: the consumer's node has the only route.
    told = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[:2] for line in told if "/known" in line] == [["route", "add"]]
    replicate = [line for line in told if "/s" in line]
    assert sorted({" ".join(line.split()[:2]) for line in replicate}) == [
        "route add",
        "strategy set",
    ]
    creates = [line for line in told if line.startswith("face create udp4://10.")]
    assert creates
    assert all(line.endswith(":6363 persistency permanent") for line in creates)


def test_control_groups_of_version_two_get_the_files_that_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "ROOT", tmp_path)
    assert groups.version() == 0
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("")
    assert groups.version() == 2
    group = groups.Group("ol-n4", 3 << 30)
    home = tmp_path / "ol-n4"
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert (home / "memory.max").read_text() == str(3 << 30)
    for share, text in ((0.25, "5000 20000"), (0.02, "1000 50000"), (None, "max 20000")):
        group.limit(share)
        assert (home / "cpu.max").read_text() == text
    assert sorted(path.name for path in home.iterdir()) == ["cpu.max", "memory.max"]
    assert group.wrap(["true"])[2].count("cgroup.procs") == 1
    (home / "cpu.stat").write_text("usage_usec 7\nnr_periods 5\nnr_throttled 2\n")
    assert group.throttled()["nr_throttled"] == 2
