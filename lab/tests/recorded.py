"""A small run as the life cycle leaves it, made from a seed: two strengths of node n4.

The numbers follow what the CCNx testbed paper tells of its figures, so that a
report of it can be judged by eye; they measure nothing.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

NODES = ("n1", "n2", "n3", "n4", "n5")
STRENGTHS = ("25%", "100%")
REPLICATIONS = 3
PENDING = {"25%": (900, 880, 860, 150, 20), "100%": (900, 600, 350, 150, 20)}
UNITS = {
    "pending_mean": "entries",
    "retransmits": "packets",
    "goodput_data": "B/s",
    "memory_max": "octets",
    "cpu_mean": "percent",
}

EXPERIMENT = {
    "schema": "onym-lab/1",
    "name": "sample",
    "title": "A weak node in a chain of five",
    "description": "Made from a seed for the tests of the report.",
    "paper": {
        "id": "ccnx-testbed",
        "figure": "10",
        "says": "Retransmits of all nodes before the bottleneck rise.",
        "values": [
            {
                "id": "first",
                "metric": "pending_mean",
                "where": "n2",
                "value": 2000,
                "unit": "entries",
                "source": "Fig. 8",
                "cell": {"strength": "100%"},
            }
        ],
        "rules": [
            {
                "id": "falls",
                "kind": "monotone",
                "metric": "pending_mean",
                "over": "hop",
                "direction": "falling",
                "says": "Pending Interests fall toward the producer.",
            },
            {
                "id": "weak",
                "kind": "ratio",
                "metric": "pending_mean",
                "at_least": 1.2,
                "of": {"where": "n3", "cell": {"strength": "25%"}},
                "to": {"where": "n3", "cell": {"strength": "100%"}},
                "says": "A weak node fills the tables before it.",
            },
            {
                "id": "speed",
                "kind": "bound",
                "metric": "goodput",
                "where": "dl",
                "at_least": 1e12,
                "says": "A rule that cannot hold.",
            },
        ],
    },
    "topology": {
        "nodes": list(NODES),
        "links": [["n1", "n2"], ["n2", "n3"], ["n3", "n4"], ["n4", "n5"]],
    },
    "apps": [
        {"id": "repo", "node": "n5", "kind": "producer", "prefix": "/ccnxlong"},
        {"id": "dl", "node": "n1", "kind": "files", "prefix": "/ccnxlong"},
    ],
    "factors": {"strength": {"path": "nodes.n4.cpu", "levels": list(STRENGTHS)}},
    "faults": [{"at": 10, "link": "n2-n3", "action": "down", "for": 3}],
    "report": {"panels": ["nodes", "transfers", "hops", "cdf", "effects", "topology"]},
}


def write(folder: Path, seed: int = 1) -> Path:
    """Writes the run's folder and returns it."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    (folder / "experiment.json").write_text(json.dumps(EXPERIMENT))
    cells = [
        {
            "cell": f"{i:08x}",
            "label": f"strength={s}",
            "levels": {"strength": s},
            "settings": {"nodes.n4.cpu": s},
        }
        for i, s in enumerate(STRENGTHS)
    ]
    (folder / "plan.json").write_text(
        json.dumps(
            {
                "experiment": "sample",
                "backend": "sim",
                "scale": 0.1,
                "seed": seed,
                "cells": cells,
                "order": [[c["cell"], r + 1] for c in cells for r in range(REPLICATIONS)],
            }
        )
    )
    (folder / "state.json").write_text(json.dumps({"phase": "aggregate", "ended": True, "why": ""}))
    (folder / "provenance.json").write_text(
        json.dumps(
            {
                "commit": "0123456789abcdef",
                "dirty": False,
                "began": "2026-11-21T18:00:00Z",
                "end": "2026-11-21T18:05:00Z",
                "machine": "2 cores, x86-64",
                "kernel": "Linux",
                "binaries": {"onym": {"sha256": "ab" * 32}},
            }
        )
    )
    frames: dict[str, list[pd.DataFrame]] = {"samples": [], "traffic": [], "transfers": []}
    rows, checks = [], []
    for cell in cells:
        for replication in range(1, REPLICATIONS + 1):
            head = {"cell": cell["cell"], "replication": replication}
            bad = cell is cells[0] and replication == 3
            strength = cell["levels"]["strength"]
            for name, frame in _replicate(rng, strength).items():
                frames[name].append(frame.assign(**head)[[*head, *frame.columns]])
            rows += _measures(rng, cell, replication, not bad)
            checks.append(
                {
                    **head,
                    "check": "invalid_samples",
                    "value": 0.05 if bad else 0.0,
                    "limit": 0.02,
                    "passed": not bad,
                }
            )
    for name, parts in frames.items():
        pd.concat(parts).to_parquet(folder / f"{name}.parquet", index=False)
    pd.DataFrame(rows).to_csv(folder / "aggregate.csv", index=False)
    pd.DataFrame(rows).to_parquet(folder / "aggregate.parquet", index=False)
    pd.DataFrame(checks).to_csv(folder / "checks.csv", index=False)
    return folder


def _replicate(rng: np.random.Generator, strength: str) -> dict[str, pd.DataFrame]:
    t = np.arange(0, 60, 0.5)
    ramp = np.minimum(t / 8, 1) * np.minimum((60 - t) / 15, 1)
    samples, traffic = [], []
    for hop, node in enumerate(NODES):
        level = PENDING[strength][hop]
        noise = rng.normal(1, 0.06, t.size)
        samples.append(
            pd.DataFrame(
                {
                    "t": t,
                    "node": node,
                    "hop": hop,
                    "pending": (level * ramp * noise).round(),
                    "cpu": np.clip(95 * ramp * noise * (1 if hop < 4 else 0.5), 0, 100),
                    "memory": 5e6 + 9e4 * np.minimum(t, 40) * (5 - hop),
                    "valid": rng.random(t.size) > 0.02,
                }
            )
        )
        seconds = np.arange(60)
        data = 9e6 * ramp[::2] * rng.normal(1, 0.05, 60)
        traffic.append(
            pd.DataFrame(
                {
                    "t": seconds,
                    "node": node,
                    "goodput_data": data,
                    "goodput_interest": data / 40,
                    "throughput_data": data * 1.05,
                    "throughput_interest": data / 30,
                    "duplicates": rng.poisson(level / 40, 60),
                }
            )
        )
    start = np.arange(120) / 10
    took = rng.gamma(9, 3.5, 120)
    transfers = pd.DataFrame(
        {
            "app": "dl",
            "node": "n1",
            "object": range(120),
            "start": start,
            "stop": np.minimum(start + took, 60),
            "octets": 1281250,
            "retransmissions": rng.poisson(5, 120),
            "completed": start + took < 60,
        }
    )
    return {"samples": pd.concat(samples), "traffic": pd.concat(traffic), "transfers": transfers}


def _measures(
    rng: np.random.Generator, cell: dict[str, object], replication: int, valid: bool
) -> list[dict[str, object]]:
    strength = dict(cell["levels"])["strength"]  # type: ignore[call-overload]
    head = {
        "cell": cell["cell"],
        "label": cell["label"],
        "factor_strength": strength,
        "replication": replication,
        "seed": replication,
    }
    rows = []
    for hop, node in enumerate(NODES):
        level = PENDING[strength][hop]
        numbers = {
            "pending_mean": level,
            "retransmits": 4 * level,
            "goodput_data": 8e6,
            "memory_max": 9e6 - 7e5 * hop,
            "cpu_mean": 80 - 5 * hop,
        }
        rows += [
            {
                **head,
                "scope": "node",
                "where": node,
                "hop": hop,
                "metric": metric,
                "unit": UNITS[metric],
                "value": value * rng.normal(1, 0.04),
                "valid": valid,
            }
            for metric, value in numbers.items()
        ]
    goodput = {"25%": 2e7, "100%": 6e7}[strength] * rng.normal(1, 0.05)
    rows.append(
        {
            **head,
            "scope": "app",
            "where": "dl",
            "hop": None,
            "metric": "goodput",
            "unit": "bit/s",
            "value": goodput,
            "valid": valid,
        }
    )
    return rows
