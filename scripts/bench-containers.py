#!/usr/bin/env python3
"""What a container costs: the same services on a bridge in namespaces, and as Docker containers.

    scripts/bench-containers.sh      starts an engine when none runs, and this with its socket

Both have a veth pair, a bridge, one core, and the generator on the host with the other core; the
difference is what Docker adds. Both services of a case are there at once and are loaded in turns,
many short times, which of the two comes first in turns too, so that what the machine does meanwhile
meets both alike. The cost is the median of what the pairs differ by; beside it the middle half of
them, and the interval in which the median lies with 95 % (from the order of the pairs, whatever
their distribution). Rows go to target/bench.json and --csv has every run.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

BRIDGE, NAMESPACE, HOST, INSIDE = "onym-bench0", "onym-bench", "172.31.254.1", "172.31.254.2"
CASES = {
    "kind=NR": ("name-router", ["--set", "registration=open"], [], 12.4),
    "kind=BR": ("backward-router", [], ["--no-register"], 16.4),
    "kind=CS,mode=pass": ("content-store", ["--set", "capacity=0"], ["--no-register"], 12.6),
    "kind=CS,mode=hit": ("content-store", [], ["--no-register", "--names", "repeated"], 15.8),
    "kind=SF": ("strategy-forwarder", ["--set", "strategy=round-robin"], ["--no-register"], 12.3),
    "kind=NF": ("name-filter", [], ["--no-register"], 11.7),
}


def run(*words: object) -> str:
    return subprocess.run([str(w) for w in words], check=True, stdout=subprocess.PIPE,
                          text=True).stdout


def quietly(*words: object) -> None:
    subprocess.run([str(w) for w in words], check=False, stderr=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)


class Bed:
    """A bridge with one namespace, and an engine with one network."""

    def __init__(self, options: argparse.Namespace, folder: pathlib.Path) -> None:
        self.options = options
        self.docker = ["docker", "--host", f"unix://{options.socket}"]
        self.clean()
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "addr", "add", f"{HOST}/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        run("ip", "netns", "add", NAMESPACE)
        run("ip", "link", "add", "onym-bv0", "type", "veth", "peer", "name", "eth0", "netns",
            NAMESPACE)
        run("ip", "link", "set", "onym-bv0", "master", BRIDGE, "up")
        for words in (["addr", "add", f"{INSIDE}/24", "dev", "eth0"], ["link", "set", "eth0", "up"],
                      ["link", "set", "lo", "up"]):
            run("ip", "-n", NAMESPACE, *words)
        (folder / "Dockerfile").write_text("FROM scratch\nCOPY onym /onym\nENTRYPOINT [\"/onym\"]\n")
        (folder / "onym").write_bytes(pathlib.Path(options.binary).read_bytes())
        (folder / "onym").chmod(0o755)
        run(*self.docker, "build", "-q", "-t", "onym-bench", folder)
        run(*self.docker, "network", "create", "onym-bench")

    def clean(self) -> None:
        quietly("ip", "link", "delete", BRIDGE)
        quietly("ip", "link", "delete", "onym-bv0")
        quietly("ip", "netns", "delete", NAMESPACE)
        quietly(*self.docker, "rm", "-f", "onym-bench")
        quietly(*self.docker, "network", "rm", "onym-bench")

    def words(self, kind: str, sets: list[str]) -> list[str]:
        return ["service", kind, "--listen", "in=tcp4://0.0.0.0:7001", "--listen",
                "out=tcp4://0.0.0.0:7002,side=producer", *sets]

    @contextlib.contextmanager
    def namespace(self, kind: str, sets: list[str]) -> Iterator[tuple[str, int]]:
        """A service in the namespace: its address and process."""
        service = subprocess.Popen(
            ["ip", "netns", "exec", NAMESPACE, "taskset", "-c", "1", self.options.binary,
             *self.words(kind, sets)], stderr=subprocess.PIPE, text=True)
        try:
            while not service.stderr.readline().startswith("ready"):
                if service.poll() is not None:
                    sys.exit(f"{kind} did not start")
            yield INSIDE, service.pid
        finally:
            service.kill()
            service.wait()

    @contextlib.contextmanager
    def container(self, kind: str, sets: list[str]) -> Iterator[tuple[str, int]]:
        """A service in a container: its address and process."""
        run(*self.docker, "run", "-d", "--name", "onym-bench", "--network", "onym-bench",
            "--cpuset-cpus", "1", "--user", "65534:65534", "--cap-drop", "ALL",
            "--security-opt", "no-new-privileges", "onym-bench", *self.words(kind, sets))
        try:
            end = time.monotonic() + 20
            while "ready" not in subprocess.run([*self.docker, "logs", "onym-bench"], text=True,
                                                capture_output=True).stderr:
                if time.monotonic() > end:
                    sys.exit(f"{kind} did not start in a container")
                time.sleep(0.05)
            said = json.loads(run(*self.docker, "inspect", "onym-bench"))[0]
            address = said["NetworkSettings"]["Networks"]["onym-bench"]["IPAddress"]
            yield address, said["State"]["Pid"]
        finally:
            run(*self.docker, "rm", "-f", "onym-bench")

    def load(self, address: str, pid: int, words: list[str]) -> dict:
        o = self.options
        said = run(o.bench, "load", "--consumer", f"tcp4://{address}:7001", "--producer",
                   f"tcp4://{address}:7002", "--payload", 8192, "--window", 32, "--seconds",
                   o.seconds, "--warm-up", 0.1, "--core", 0, "--watch", pid, *words)
        result = json.loads(said)
        bits = result["content_octets"] * 8
        return {"goodput_bps": bits / result["seconds"], "lost": result["lost"],
                "cpu_s": sum(result["cpu_s"]) / (bits / 1e9),
                "latency_p50_s": result["latency_p50_s"]}


def keep(path: pathlib.Path, rows: list[dict]) -> None:
    """Puts the rows in place of those of an earlier run."""
    old = json.loads(path.read_text()) if path.exists() else []
    old = [row for row in old if row["bench"] != "containers"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(old + rows, indent=2) + "\n")


def spread(values: list[float]) -> str:
    """Median, quartiles and the interval of the median, in percent."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    ranked, count = sorted(values), len(values)
    # As many of the pairs lie below the median as heads fall in so many throws.
    aside = max(0, math.floor((count - 1.96 * math.sqrt(count)) / 2))
    first, last = ranked[aside], ranked[count - 1 - aside]
    return (f"{middle * 100:+5.1f} % ({low * 100:+.1f} to {high * 100:+.1f}; "
            f"median within {first * 100:+.1f} to {last * 100:+.1f})")


def alternate(bed: Bed, case: tuple[str, list[str], list[str], float],
              rounds: int) -> dict[str, list[dict]]:
    """Both services of a case under load in turns."""
    kind, sets, load, _ = case
    results: dict[str, list[dict]] = {"netns": [], "docker": []}
    with bed.namespace(kind, sets) as bare, bed.container(kind, sets) as docker:
        places = [("netns", bare), ("docker", docker)]
        for _ in range(rounds):
            for place, (address, pid) in places:
                results[place].append(bed.load(address, pid, load))
            places.reverse()
    return results


def note(path: pathlib.Path, rows: list[dict]) -> None:
    """Every run, after those of earlier pieces."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        if fresh:
            writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--binary", default="target/static/onym", help="used for both")
    parser.add_argument("--bench", default="target/release/onym-bench")
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--only", default="", help="cases that contain this word")
    parser.add_argument("--csv", help="every run is appended to this file")
    parser.add_argument("--out", default="target/bench.json")
    options = parser.parse_args()
    options.binary = os.path.realpath(options.binary)
    units = {"goodput_bps": "bit/s", "cpu_s": "s", "latency_p50_s": "s", "lost": "1"}
    cases = {name: case for name, case in CASES.items() if options.only in name}
    results: dict[tuple[str, str], list[dict]] = {}
    with tempfile.TemporaryDirectory() as folder:
        bed = Bed(options, pathlib.Path(folder))
        try:
            for name, case in cases.items():
                for place, runs in alternate(bed, case, options.rounds).items():
                    results[name, place] = runs
        finally:
            bed.clean()
    rows, losses, costs = [], [], []
    for name, (_, _, _, paper) in cases.items():
        for place in ("netns", "docker"):
            for metric, unit in units.items():
                value = statistics.median(r[metric] for r in results[name, place])
                rows.append({"bench": "containers", "case": f"{name},payload=8192,window=32",
                             "subject": f"onym-{place}", "metric": metric, "value": value,
                             "unit": unit})
        pairs = list(zip(results[name, "netns"], results[name, "docker"], strict=True))
        loss = [1 - docker["goodput_bps"] / bare["goodput_bps"] for bare, docker in pairs]
        more = [docker["cpu_s"] / bare["cpu_s"] - 1 for bare, docker in pairs]
        losses += loss
        costs += more
        print(f"{name:<18} {statistics.median(b['goodput_bps'] for b, _ in pairs) / 1e6:6.0f} "
              f"Mbit/s in a namespace; in a container goodput lost {spread(loss)}, paper {paper} %;"
              f" processor time {spread(more)}")
        if options.csv:
            note(pathlib.Path(options.csv), [
                {"case": name, "pair": number, "subject": f"onym-{place}", **run}
                for number, pair in enumerate(pairs)
                for place, run in zip(("netns", "docker"), pair, strict=True)])
    print(f"all {len(losses)} pairs: goodput lost {spread(losses)}, paper 13 %; "
          f"processor time {spread(costs)}")
    keep(pathlib.Path(options.out), rows)


if __name__ == "__main__":
    main()
