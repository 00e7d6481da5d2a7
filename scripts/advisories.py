#!/usr/bin/env python3
"""Holds Cargo.lock against the advisories about Rust crates: scripts/advisories.py [DATABASE]

DATABASE is a folder of github.com/rustsec/advisory-db; without it that is cloned into
target/advisory-db, or brought up to date there. Yanked, unmaintained and unsound crates are told, too.
An entry of `ignore` in deny.toml ([advisories]) is passed over, with its reason.
Exit codes: 0 nothing is known, 1 something is, 77 the database cannot be had.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
URL = "https://github.com/rustsec/advisory-db"

Version = tuple[int, int, int, bool, str]


def version(text: str) -> Version:
    """Ordered as versions are; a pre-release is before its release."""
    core, _, pre = text.split("+")[0].partition("-")
    numbers = [int(n) for n in core.split(".") if n.isdigit()] + [0, 0, 0]
    return (numbers[0], numbers[1], numbers[2], not pre, pre)


def caret_end(text: str) -> Version:
    """The first version that ^text does not have."""
    parts = [int(n) for n in text.split("-")[0].split(".")]
    for place, number in enumerate(parts):
        if number or place == len(parts) - 1:
            raised = [*parts[:place], number + 1, 0, 0][:3]
            return version(".".join(map(str, raised)) + "-0")
    raise AssertionError(text)


def admits(requirement: str, wanted: str) -> bool:
    """Whether a requirement, such as ">= 1.2, < 2", has this version."""
    mine = version(wanted)
    for part in requirement.split(","):
        found = re.fullmatch(r"\s*(>=|<=|>|<|=|\^|~)?\s*([0-9][^\s]*)\s*", part)
        if not found:
            raise ValueError(f"{requirement!r} is not understood")
        sign, text = found[1] or "^", found[2]
        bound = version(text)
        if sign == "~":
            raised = (text.split(".") + ["0"])[:2]
            top = version(f"{raised[0]}.{int(raised[1]) + 1}.0-0")
        holds = {
            ">=": mine >= bound,
            ">": mine > bound,
            "<=": mine <= bound,
            "<": mine < bound,
            "=": mine == bound,
            "^": bound <= mine and (sign != "^" or mine < caret_end(text)),
            "~": bound <= mine and (sign != "~" or mine < top),
        }[sign]
        if not holds:
            return False
    return True


def database(words: list[str]) -> Path | None:
    if words:
        return Path(words[0])
    folder = ROOT / "target/advisory-db"
    if folder.is_dir():
        command = ["git", "-C", str(folder), "pull", "--quiet", "--ff-only"]
    else:
        command = ["git", "clone", "--quiet", "--depth", "1", URL, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"advisories: skipped, {URL} cannot be had: {done.stderr.strip().splitlines()[-1:]}")
        print("  next: a copy of it in a folder, scripts/advisories.py FOLDER")
        return None
    return folder


def read(file: Path) -> dict:
    text = file.read_text()
    return tomllib.loads(text.split("```toml", 1)[1].split("```", 1)[0])


def main() -> int:
    folder = database(sys.argv[1:])
    if folder is None:
        return 77
    policy = tomllib.loads((ROOT / "deny.toml").read_text()).get("advisories", {})
    ignored = {entry["id"]: entry["reason"] for entry in policy.get("ignore", [])}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    packages = [(p["name"], p["version"]) for p in lock["package"] if "source" in p]
    files = 0
    faults = []
    for name, number in packages:
        for file in sorted((folder / "crates" / name).glob("RUSTSEC-*.md")):
            files += 1
            told = read(file)
            advisory, versions = told["advisory"], told.get("versions", {})
            good = [*versions.get("patched", []), *versions.get("unaffected", [])]
            if "withdrawn" in advisory or any(admits(r, number) for r in good):
                continue
            if advisory["id"] in ignored:
                print(f"advisories: {name} {number}: {advisory['id']} passed over: {ignored[advisory['id']]}")
                continue
            kind = advisory.get("informational", "vulnerability")
            faults.append(f"{name} {number}: {advisory['id']} ({kind}): {advisory.get('url', '')}")
    every = sum(1 for _ in folder.glob("crates/*/RUSTSEC-*.md"))
    if not every:
        print(f"advisories: {folder} has no advisories: is it a copy of {URL}?")
        return 1
    print(f"advisories: {len(packages)} packages against {every} advisories, {files} of them about these crates")
    for fault in faults:
        print(f"advisories: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
