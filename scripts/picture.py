#!/usr/bin/env python3
"""The picture of README.md, drawn from its table of numbers: scripts/picture.py [--check]

Writes docs/ndnd.svg: how many times as fast as ndnd, one bar for each row that says so.
--check: fails when the picture is not that of the table.
"""

import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/ndnd.svg"
ROW, LEFT, WIDTH, TOP = 30, 520, 900, 50


def rows() -> list[tuple[str, int]]:
    text = (ROOT / "README.md").read_text()
    table = text.split("| what | of the relay | of ndnd |", 1)[1].split("\n\n", 1)[0]
    found = []
    case = ""
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        times = re.fullmatch(r"(\d+) times", cells[-1])
        if not times:
            continue
        # "the same, 256 in flight" continues the row above.
        case = cells[0].replace("the same", case.split(", ")[0]) if "the same" in cells[0] else cells[0]
        found.append((case, int(times[1])))
    return found


def picture() -> str:
    data = rows()
    most = max(times for _, times in data)
    height = TOP + ROW * len(data) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        "<title>Throughput, as a multiple of ndnd</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text x="10" y="24" font-size="15" fill="#222222">Throughput, as a multiple of ndnd (docs/bench.md)</text>',
    ]
    scale = (WIDTH - LEFT - 60) / most
    for at, (case, times) in enumerate(data):
        y = TOP + ROW * at
        parts += [
            f'<text x="{LEFT - 10}" y="{y + 15}" text-anchor="end" fill="#222222">{escape(case)}</text>',
            f'<rect x="{LEFT}" y="{y}" width="{times * scale:.1f}" height="20" fill="#2b6cb0"/>',
            f'<text x="{LEFT + times * scale + 6:.1f}" y="{y + 15}" fill="#222222">{times}</text>',
        ]
    base = LEFT + scale
    parts += [
        f'<line x1="{base:.1f}" y1="{TOP - 6}" x2="{base:.1f}" y2="{height - 20}" stroke="#c53030" stroke-dasharray="3"/>',
        f'<text x="{base:.1f}" y="{height - 6}" text-anchor="middle" fill="#c53030">ndnd</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> int:
    new = picture()
    if "--check" in sys.argv[1:]:
        if PICTURE.read_text() != new:
            print("docs/ndnd.svg is not of the table in README.md; run scripts/picture.py", file=sys.stderr)
            return 1
        return 0
    PICTURE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
