"""The library's own reading and reckoning; the measurements themselves are experiments."""

import json
from pathlib import Path

import pytest

from onym_lab import experiment as files
from onym_lab.library import NeedsError, bench_rows, paper, parts, pick, profile, zoo
from onym_lab.report import keep


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
        for paper in keep.figures()
        for one in paper["figures"]
        for name in one.get("experiments", [])
    }
    known = {files.load(path).name for path in files.library()}
    assert named <= known
    assert known - named == {"quickstart"}
    assert all("why" in one or one["experiments"] for p in keep.figures() for one in p["figures"])
