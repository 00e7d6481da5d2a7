#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Rows of guests, "ROW CASE SUBJECT METRIC VALUE UNIT" on standard input, as JSON and CSV: rows.py BENCH [--json FILE] [--csv FILE]."""

import argparse
import csv
import json
import sys
from pathlib import Path

FIELDS = ["bench", "case", "subject", "metric", "value", "unit"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    rows = []
    for line in sys.stdin:
        _, case, subject, metric, value, unit = line.split()
        rows.append(dict(zip(FIELDS, [given.bench, case, subject, metric, float(value), unit], strict=True)))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    if given.csv:
        with given.csv.open("w", newline="") as out:
            writer = csv.DictWriter(out, FIELDS)
            writer.writeheader()
            writer.writerows(rows)
    for row in rows:
        if row["metric"] != "latency_count":
            print(f"{row['subject']:6} {row['case']:60} {row['metric']:22} {row['value']:.6g} {row['unit']}")


main()
