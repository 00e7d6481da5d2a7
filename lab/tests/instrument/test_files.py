"""Experiment files, units, topologies, designs."""

from __future__ import annotations

from pathlib import Path

import pytest

from onym_lab import design, experiment, topology, units
from onym_lab.experiment import ExperimentError
from onym_lab.resolve import split_link

GOOD = """schema: onym-lab/1
name: small
title: Small
topology: {preset: line, n: 3}
apps:
  - {id: p, node: n3, kind: producer, prefix: /p}
  - {id: c, node: n1, kind: consumer, prefix: /p, count: 10}
factors:
  a: {path: links.n1-n2.delay, levels: [1ms, 2ms]}
  b: {path: apps.c.window, levels: [1, 8]}
design: {replications: 2, seed: 3}
scale: [apps.c.count]
"""


def load(folder: Path, text: str) -> experiment.Experiment:
    path = folder / "file.yaml"
    path.write_text(text)
    return experiment.load(path)


def test_a_good_file_gives_its_cells_in_plain_units(tmp_path: Path) -> None:
    one = load(tmp_path, GOOD)
    cells = design.cells(one)
    assert [dict(cell.levels) for cell in cells][1] == {"a": "1ms", "b": "8"}
    spec = one.spec(cells[3].settings, 1)
    assert spec.link("n1", "n2").delay == pytest.approx(0.002)
    assert spec.apps[1].options["window"] == 8
    assert spec.path() == ["n1", "n2", "n3"]
    assert spec.next_hops() == [("n2", "/p", "n3"), ("n1", "/p", "n2")]


@pytest.mark.parametrize(
    ("change", "line", "reason"),
    [
        (("count: 10", "cuont: 10"), 7, "cuont"),
        (("title: Small", "title: [1"), 4, "expected"),
        (("node: n3", "node: n9"), 6, "'n9' is no node"),
        (("preset: line", "preset: lane"), 4, "lane"),
        (("levels: [1ms, 2ms]", "levels: [1ms, 1ms]"), 9, "same label"),
        (("delay, levels: [1ms", "delay, levels: [1mz"), 0, "1mz"),
        (("links.n1-n2.delay", "links.n1-n3.delay"), 0, "no link"),
        (("scale: [apps.c.count]", "scale: [apps.x.count]"), 12, "not in the file"),
        (("title: Small", "title: Small\nname: again"), 4, "comes twice"),
        (("prefix: /p}", "size: 10}"), 6, "needs 'prefix'"),
        (("seed: 3}", "seed: 3, type: 2k}\nsample: soon"), 0, "soon"),
        (("onym-lab/1", "onym-lab/2"), 1, "onym-lab/1"),
    ],
)
def test_a_bad_file_is_refused_with_line_and_reason(
    tmp_path: Path, change: tuple[str, str], line: int, reason: str
) -> None:
    with pytest.raises(ExperimentError) as error:
        load(tmp_path, GOOD.replace(*change, 1))
    assert reason in error.value.why
    if line:
        assert error.value.line == line


def test_rules_must_name_levels_that_exist(tmp_path: Path) -> None:
    rule = "paper:\n  id: beyond\n  rules:\n    - {id: r, kind: bound, metric: x, cell: {a: 9ms}}\n"
    with pytest.raises(ExperimentError, match=":16: r: '9ms' is no level of a"):
        load(tmp_path, GOOD + rule)


def test_the_same_seed_gives_the_same_order_and_another_seed_another(tmp_path: Path) -> None:
    one = load(tmp_path, GOOD)
    cells = design.cells(one)
    assert design.order(one, cells, 5) == design.order(one, cells, 5)
    other = load(tmp_path, GOOD.replace("seed: 3", "seed: 4"))
    assert design.order(one, cells, 5) != design.order(other, cells, 5)
    # Each replication is a block that has every cell.
    block = design.order(one, cells, 5)[:4]
    assert {cell for cell, _ in block} == {cell.id for cell in cells}


def test_a_fraction_has_the_product_of_its_generators_signs(tmp_path: Path) -> None:
    text = GOOD.replace("design: {", "  c: {path: defaults.cs, levels: [1, 2]}\ndesign: {").replace(
        "replications: 2", 'type: fraction, generators: ["C=AB"], replications: 2'
    )
    cells = design.cells(load(tmp_path, text))
    signs = [(c.levels["a"] == "2ms", c.levels["b"] == "8", c.levels["c"] == "2") for c in cells]
    assert len(signs) == 4
    assert all(c == (a == b) for a, b, c in signs)


def test_scale_multiplies_and_keeps_at_least_one(tmp_path: Path) -> None:
    one = load(tmp_path, GOOD)
    assert experiment.scaled(one, 0.5).data["apps"][1]["count"] == 5
    assert experiment.scaled(one, 0.001).data["apps"][1]["count"] == 1
    without = load(tmp_path, GOOD.partition("scale:")[0])
    with pytest.raises(experiment.ExperimentError, match="nothing of it can be scaled"):
        experiment.scaled(without, 0.5)


def test_units_are_read_and_nonsense_is_refused() -> None:
    assert units.seconds("2.5ms") == pytest.approx(0.0025)
    assert units.bits("1gbit") == 1e9
    assert units.bits("10") == 1e7
    assert units.octets("3GiB") == 3 * 2**30
    assert units.share("25%") == 0.25
    assert units.per_second("100/s") == 100
    for convert in (units.seconds, units.bits, units.octets, units.share, units.per_second):
        with pytest.raises(units.UnitError):
            convert("much")


MINI_NDN = """
[nodes]
a: _
b: nfd-log-level=DEBUG cs-size=500 cpu=0.5
c-1: radius=1.0 angle=2.0
[links]
a:b delay=10ms bw=100 loss=1 max_queue_size=50
b:c-1 delay=2.5ms
[faces]
a:b cost=5
"""
NDNSIM = """
# a comment
router
# node  comment  yPos  xPos
Seattle   NA  5  1
Chicago   NA  4  7
Denver    NA  3  4
link
# from to capacity metric delay queue
Seattle Denver 10Mbps 1 5ms 20
Denver  Chicago 1.5Gbps 2 10ms 100 ns3::RateErrorModel,ErrorUnit=ERROR_UNIT_PACKET,ErrorRate=0.9
"""


def test_mini_ndn_and_ndnsim_networks_are_read() -> None:
    made = topology.mini_ndn(MINI_NDN)
    assert made.nodes["b"] == {"cs": 500, "cpu": "50%"}
    assert made.links[0] == (
        "a", "b", {"delay": "10ms", "rate": "100mbit", "loss": "1%", "queue": 50},
    )  # fmt: skip
    made = topology.ndnsim(NDNSIM)
    assert list(made.nodes) == ["Seattle", "Chicago", "Denver"]
    assert made.links[1] == (
        "Denver",
        "Chicago",
        {"rate": "1.5gbit", "delay": "10ms", "queue": 100, "loss": "90%"},
    )
    assert made.positions["Chicago"] == (7.0, -4.0)


@pytest.mark.parametrize(
    ("read", "text", "reason"),
    [
        (topology.mini_ndn, "[links]\na-b delay=1ms", "line 2: 'a-b': a:b is expected"),
        (topology.mini_ndn, "[stations]\nsta1: _", "line 1: .stations.: wireless"),
        (topology.ndnsim, "router\nA NA 1 1\nlink\nA B 1Mbps 1", "line 4: 'B' is no router"),
        (
            topology.ndnsim,
            "router\nA NA 1 1\nB NA 1 1\nlink\nA B 1Mbps 1 1ms ns3::RedQueue",
            "line 5: queue",
        ),
        (topology.ndnsim, "A B", "neither router nor link"),
        (topology.mini_ndn, "[nodes]\na: _\n[links]\na:b delay=1ms", "line 4: 'b' is no node"),
        (topology.mini_ndn, "[nodes]\na: cpu=much", "line 2: cpu: 'much' is no number"),
        (
            topology.mini_ndn,
            "[nodes]\na: _\nb: _\n[links]\na:b delay=soon",
            "line 5: delay: 'soon' is no time",
        ),
        (
            topology.mini_ndn,
            "[nodes]\na: _\nb: _\n[links]\na:b loss=101",
            "line 5: loss: .* 0% to 100%",
        ),
        (
            topology.ndnsim,
            "router\nA NA 1 1\nB NA 1 1\nlink\nA B 1Mbps 1 soon",
            "line 5: delay: 'soon' is no time",
        ),
    ],
)
def test_a_network_that_cannot_be_read_names_the_line(read, text: str, reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(topology.TopologyError, match=reason):
        read(text)


def test_a_wrong_network_is_refused_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "lan.conf"
    file.write_text("[nodes]\na: _\n[links]\na:z delay=1ms\n")
    with pytest.raises(topology.TopologyError, match=r"^lan.conf:4: 'z' is no node$"):
        topology.read(file)


def test_an_inline_link_to_a_node_that_is_not_listed_is_refused(tmp_path: Path) -> None:
    raw = {"nodes": ["a", "b"], "links": [["a", "b"], ["b", "d"]]}
    with pytest.raises(topology.TopologyError, match=r"links.1: 'd' is none of the nodes"):
        topology.of(raw, tmp_path)


def test_a_link_name_is_split_where_both_parts_are_nodes() -> None:
    assert split_link("c-1-b", {"c-1", "b"}) == ("c-1", "b")


def test_every_file_of_the_library_is_good() -> None:
    fixed = set()
    for path in experiment.library():
        one = experiment.load(path)
        if one.data.get("scale"):
            experiment.scaled(one, 0.1).spec({}, 1)
        else:
            fixed.add(one.name)
    # Nothing is measured; one course of events; fifteen consumers once.
    once = {"content-paper", "undn-fig7", "istack-fig7"}
    # One failure, or one of each node.
    routing = {"routing-hub", "routing-each", "routing-prefix", "routing-late"}
    assert fixed == once | routing


def test_a_link_of_a_file_to_an_unknown_node_is_refused_with_its_line(tmp_path: Path) -> None:
    text = GOOD.replace(
        "topology: {preset: line, n: 3}\n",
        "topology:\n  nodes: [n1, n2, n3]\n  links:\n    - [n1, n2]\n    - [n2, n9]\n",
    )
    with pytest.raises(ExperimentError, match=r"file.yaml:8: topology: links.1: 'n9' is none of"):
        load(tmp_path, text)
    with pytest.raises(ExperimentError, match=r"file.yaml:8: .*'n2' cannot be linked to itself"):
        load(tmp_path, text.replace("n9", "n2"))
