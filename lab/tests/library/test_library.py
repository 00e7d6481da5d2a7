"""The library's own reading and reckoning; the measurements themselves are experiments."""

import json
from pathlib import Path

import pandas as pd
import pytest

from onym_lab import experiment as files
from onym_lab.library import NeedsError, bench_rows, paper, parts, pick, profile, replay, zoo
from onym_lab.report import index


def test_a_profile_is_read_and_names_are_shortened() -> None:
    text = """
--------------------------------------------------------------------------------
4,000 (100.0%)  PROGRAM TOTALS
2,000 (50.00%)  ???:onym_tables::hash::HashKey::name::h0123456789abcdef [/x/onym]
1,000 (25.00%)  ???:<alloc::vec::Vec<T> as core::clone::Clone>::clone [/x/onym]
  400 (10.00%)  ./string/memmove.S:__memcpy_avx_unaligned_erms [/usr/lib/libc.so.6]
"""
    assert profile.parse(text, 2) == [("HashKey::name", 50.0), ("clone", 25.0)]
    assert profile.parse(text, 9)[2] == ("__memcpy_avx_unaligned_erms", 10.0)


def test_a_profile_gives_inlined_code_to_its_own_source_and_that_of_libraries_to_its_function() -> (
    None
):
    text = """
1,000 (20.00%)  crates/wire/src/tlv.rs:onym_forward::path::data::run
1,000 (30.00%)  /rustc/59/library/core/src/slice/index.rs:onym_tables::hash::fill [/x/onym]
1,000 (40.00%)  ./string/memmove.S:__memcpy_avx_unaligned_erms [/usr/lib/libc.so.6]
"""
    found = {part: share for part, share in profile.parts(text).items() if share}
    assert found == {"decoding and encoding": 20.0, "tables": 30.0, "libraries": 40.0}


def test_rows_of_a_benchmark_have_their_case_taken_apart(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    path.write_text(
        json.dumps(
            [
                {
                    "bench": "index",
                    "case": "table=cs,index=hash",
                    "subject": "onym",
                    "metric": "lookups_per_second",
                    "value": 1.0,
                    "unit": "1/s",
                }
            ]
        )
    )
    assert bench_rows(path)[0]["keys"] == {"table": "cs", "index": "hash"}


def test_an_option_that_is_not_known_is_refused() -> None:
    assert pick({"a": 2}, a=1, b=3) == {"a": 2, "b": 3}
    with pytest.raises(RuntimeError, match=r"no option c; there are a, b"):
        pick({"c": 2}, a=1, b=3)


def test_a_part_that_is_not_built_is_named() -> None:
    with pytest.raises(NeedsError, match="the kernel module is not built here"):
        parts.needs({"part": "the kernel module", "run": "no/such/program"})


def _program(tmp_path: Path, case: str) -> str:
    """A benchmark of one row, which notes how it was called."""
    rows = [{"bench": "b", "case": case, "subject": "onym", "metric": "messages_per_second"}]
    rows[0] |= {"value": 10.0, "unit": "1/s"}
    program = tmp_path / "bench.sh"
    program.write_text(
        f'#!/bin/sh\n# --json\necho "$COUNT:$@" >{tmp_path}/called\n'
        f"while [ $1 != --json ]; do shift; done\ncat >$2 <<'E'\n{json.dumps(rows)}\nE\n"
    )
    program.chmod(0o755)
    return str(program)


def test_a_part_is_given_its_flags_and_its_rows_have_the_places_that_were_asked_for(
    tmp_path: Path,
) -> None:
    run = _program(tmp_path, "payload=100,read=sum")
    given = {"run": run, "bench": "b", "flags": {"payloads": 100}, "place": "{subject} {case}"}
    given["env"] = {"COUNT": 20}
    found = parts.run({**given, "without": ["payload"]}, 1, tmp_path)
    assert [(one["where"], one["metric"], one["value"]) for one in found] == [
        ("onym read=sum", "messages_per_second", 10.0),
        ("onym read=sum", "goodput", 8000.0),
    ]
    assert (tmp_path / "called").read_text().startswith("20:--payloads 100 --json")
    with pytest.raises(RuntimeError, match="has no 'nodes'"):
        parts.run({**given, "place": "{nodes}"}, 1, tmp_path)


def test_a_replay_of_scaling_tells_the_rate_with_each_number_of_clones() -> None:
    columns = ["phase", "function", "goodput_mbps", "load"]
    lines = [["idle", "cs", 0, 0], ["calm", "cs", 1, 0]]
    for routers, rate in ((1, 600), (2, 900), (2, 1000)):
        lines += [[f"routers={routers}", name, rate, 0.9] for name in ("cs", "br", "nr")]
    found = replay.rates(pd.DataFrame(lines, columns=columns), "back to one: True; not answered")
    told = {(one["where"], one["metric"]): one["value"] for one in found}
    assert told[("network", "routers_most")] == 2
    assert told[("network", "back_to_one")] == 1
    assert told[("1 routers", "goodput")] == 600e6
    assert told[("2 routers", "goodput")] == 950e6
    assert told[("br of 2", "cpu_load_mean")] == 90


def test_a_replay_of_poisoning_tells_the_hit_ratio_of_each_phase_and_when_it_was_seen() -> None:
    table = pd.DataFrame(
        [(1, "before", 1.0), (10, "attack", 0.4), (11, "attack", 0.2), (14, "verified", 0.97)],
        columns=["seconds", "phase", "hit_ratio"],
    ).assign(function="cs1")
    events = pd.DataFrame({"seconds": [13.0, 40.0], "kind": ["alarm", "all-clear"]})
    told = {(one["where"], one["metric"]): one["value"] for one in replay.hits(table, events)}
    assert told[("attack", "hit_ratio")] == pytest.approx(0.3)
    assert told[("clean", "hit_ratio")] is None
    assert told[("verified", "hit_ratio_last")] == 0.97
    assert told[("manager", "alarm_after")] == 3.0
    assert told[("manager", "all_clear")] == 1.0


def test_the_papers_runs_are_in_standard_order(tmp_path: Path) -> None:
    def rate(*signs: int) -> float:
        return float(paper.table5(dict(zip("ABCD", signs, strict=True)), 1, tmp_path)[0]["value"])

    assert rate(-1, -1, -1, -1) == 25e6
    assert rate(1, -1, -1, -1) == 27e6
    assert rate(1, 1, 1, 1) == 28e6


def test_node_names_of_the_zoo_are_words() -> None:
    assert zoo.word("Frankfurt am Main / DE-CIX") == "FrankfurtamMainDECIX"


def test_every_experiment_of_a_paper_stands_in_the_table_of_figures() -> None:
    named = {
        name
        for paper in index.figures()
        for one in paper["figures"]
        for name in one.get("experiments", [])
    }
    known = {files.load(path).name for path in files.library()}
    assert named <= known
    assert known - named == {"quickstart"}
    assert all("why" in one or one["experiments"] for p in index.figures() for one in p["figures"])
