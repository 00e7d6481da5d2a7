#!/usr/bin/env python3
"""Replays two runs of the paper on orchestrated microservices with a real manager and real traffic.

    scripts/replay.py fig5 [--rule paper|headroom]   a function is scaled out and in
    scripts/replay.py fig7                           a cache is poisoned and defended

The manager runs its services as processes; the traffic is `onym-bench load`. What the manager saw
goes to a CSV file, what it decided to another, and both are drawn when matplotlib is there.
docs/bench-services.md says what the columns mean. Root is needed for the quotas of fig5.
"""

from __future__ import annotations

import argparse
import base64
import csv
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

PAYLOAD = 8192
COLUMNS = ["seconds", "phase", "function", "cores", "load", "interests_per_s", "data_per_s",
           "goodput_mbps", "hit_ratio", "valid", "refused"]

FIG5 = """
network = "fig5"
links = ["cs -> br -> nr"]

[functions.cs]
kind = "content-store"
listen = "tcp4://127.0.0.1:{consumer}"
quota = {others}
config = {{ capacity = 0 }}

[functions.br]
kind = "backward-router"
quota = {router}
scalable = true
instances_max = 3

[functions.nr]
kind = "name-router"
quota = {others}
listen = {{ producer = ["tcp4://127.0.0.1:{producer}"] }}
config = {{ registration = "open", return = "{back}" }}

[policies.scaling]
rule = "{rule}"
balance = "{balance}"
period_ms = {period_ms}
"""

FIG7 = """
network = "fig7"
links = ["cs1 -> nr", "cs2 => nr"]

[functions.cs1]
kind = "content-store"
listen = "tcp4://127.0.0.1:{consumer}"
config = {{ capacity = 600 }}

[functions.nr]
kind = "name-router"
config = {{ registration = "open" }}

[functions.cs2]
kind = "content-store"
listen = "tcp4://127.0.0.1:{producer}"
config = {{ capacity = 0 }}

[keys."/onym/bench/KEY/1"]
spki = "{spki}"
prefixes = ["/onym"]

[policies.poisoning]
period_ms = 2000
clean_periods = 10
"""


def free_ports(count: int) -> list[int]:
    """Ports that nobody has now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Replay:
    """A manager with a network, traffic around it, and what is noted of both."""

    def __init__(self, options: argparse.Namespace, folder: pathlib.Path) -> None:
        self.options = options
        self.folder = folder
        self.rows: list[dict[str, object]] = []
        self.loads: list[subprocess.Popen[str]] = []
        log = (folder / "log").open("w")
        words = [options.onym, "manager", "--listen", "127.0.0.1:0", "--state", folder / "state",
                 "--watch-ms", "250"]
        self.manager = subprocess.Popen(words, stderr=log)
        self.url = self.ready()
        self.start = time.monotonic()
        self.start_ms = time.time() * 1000

    def ready(self) -> str:
        """Where the manager is, once it says so."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            for line in (self.folder / "log").read_text().splitlines():
                if line.startswith("ready "):
                    said = json.loads(line[6:])
                    self.token = pathlib.Path(said["token_file"]).read_text().strip()
                    return said["url"]
            time.sleep(0.05)
        sys.exit((self.folder / "log").read_text())

    def ask(self, path: str) -> dict:
        headers = {"Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(self.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def net(self, *words: str) -> None:
        subprocess.run([self.options.onym, "net", "--manager", self.url, *words], check=True,
                       stdout=subprocess.DEVNULL)

    def apply(self, text: str) -> None:
        (self.folder / "network.toml").write_text(text)
        self.net("apply", str(self.folder / "network.toml"))

    def load(self, consumer: int, producer: int, seconds: float, *words: str) -> subprocess.Popen:
        """A consumer and its producer."""
        command = [self.options.bench, "load", "--consumer", f"tcp4://127.0.0.1:{consumer}",
                   "--producer", f"tcp4://127.0.0.1:{producer}", "--payload", str(PAYLOAD),
                   "--seconds", str(seconds), "--warm-up", "0", *words]
        load = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.loads.append(load)
        return load

    def ended(self, load: subprocess.Popen) -> dict:
        """What a generator counted."""
        said, why = load.communicate(timeout=120)
        if load.returncode != 0:
            sys.exit(f"the generator failed: {why}")
        return json.loads(said)

    def sample(self, phase: str) -> dict:
        """Notes one row for each function."""
        view = self.ask("/v1/network")
        for name, function in sorted(view["functions"].items()):
            sample = function["sample"]
            verifier = (function["stats"] or {}).get("signature_verifier") or {}
            refused = [verifier.get(k, 0) for k in ("invalid", "unknown_key", "unsigned")]
            self.rows.append({
                "seconds": round(time.monotonic() - self.start, 2), "phase": phase,
                "function": name, "cores": round(sample["cores"], 4),
                "load": round(sample["load"], 4),
                "interests_per_s": round(sample["interests"], 1),
                "data_per_s": round(sample["data"], 1),
                "goodput_mbps": round(sample["data"] * PAYLOAD * 8 / 1e6, 1),
                "hit_ratio": sample["hit_ratio"],
                "valid": verifier.get("valid", ""),
                "refused": sum(refused) if verifier else "",
            })
        return view

    def watch(self, phase: str, seconds: float, until=None) -> bool:
        """Samples once a second; true when `until` came true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            view = self.sample(phase)
            if until and until(view):
                return True
            time.sleep(1)
        return False

    def events(self) -> list[dict]:
        return self.ask("/v1/events")["events"]

    def write(self, name: str) -> pathlib.Path:
        """The CSV files and the drawing."""
        out = pathlib.Path(self.options.out)
        out.mkdir(parents=True, exist_ok=True)
        with (out / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(self.rows)
        told = ("scaling", "scale-blocked", "changed", "alarm", "moving", "all-clear", "gone")
        with (out / f"{name}-events.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["seconds", "kind", "object", "text"])
            for event in self.events():
                if event["kind"] in told:
                    at = round((event["at_ms"] - self.start_ms) / 1000, 2)
                    writer.writerow([at, event["kind"], event["object"], event["text"]])
        draw(out, name)
        return out / f"{name}.csv"

    def close(self) -> None:
        for load in self.loads:
            if load.poll() is None:
                load.kill()
                load.wait()
        try:
            self.net("down")
        finally:
            self.manager.terminate()
            self.manager.wait()


def middle(rows: list[dict], phase: str, function: str, column: str) -> float:
    """The median of a column."""
    values = [r[column] for r in rows if r["phase"] == phase and r["function"] == function]
    values = sorted(v for v in values if v not in (None, ""))
    return float(values[len(values) // 2]) if values else float("nan")


def fig5(run: Replay) -> None:
    """Scaling: as much as goes with a window, then a trickle."""
    options = run.options
    consumer, producer = free_ports(2)
    paper = options.rule == "paper"
    run.apply(FIG5.format(consumer=consumer, producer=producer, router=options.router,
                          others=options.others, rule=options.rule, balance=options.balance,
                          back="multicast" if paper else "token",
                          period_ms=int(options.period * 1000)))

    def count(view: dict) -> int:
        return sum(f["kind"] == "backward-router" for f in view["functions"].values())

    run.watch("idle", 2)
    # Long enough for all decisions; the headroom rule waits for two periods each time.
    busy = options.period * (5 if paper else 9)
    load = run.load(consumer, producer, busy, "--window", str(options.window))
    end, most = time.monotonic() + busy, 1
    while time.monotonic() < end - 1.5:
        most = max(most, count(run.sample(f"routers={most}")))
        time.sleep(1)
    first = run.ended(load)
    calm = options.period * (5 if paper else 9)
    load = run.load(consumer, producer, calm, "--window", "1", "--rate", "200")
    back = run.watch("calm", calm, lambda view: count(view) == 1)
    second = run.ended(load)
    run.watch("end", 2)
    name = f"fig5-{options.rule}"
    path = run.write(name)
    for n in range(1, most + 1):
        mbps = middle(run.rows, f"routers={n}", "cs", "goodput_mbps")
        loads = {f: middle(run.rows, f"routers={n}", f, "load") for f in ("cs", "br", "nr")}
        shown = ", ".join(f"{f} {v * 100:.0f} %" for f, v in loads.items())
        print(f"{n} backward routers: {mbps:.0f} Mbit/s ({shown} of their quotas)")
    print(f"most routers {most}, back to one: {back}; "
          f"not answered: {first['lost']} of {first['exchanges']} under load, "
          f"{second['lost']} of {second['exchanges']} in the calm")
    print(path)


def public_key(onym: str, folder: pathlib.Path) -> tuple[pathlib.Path, str]:
    """A P-256 key: its PKCS #8 file, and the public key as base64 of DER."""
    pem, der = folder / "key.pem", folder / "key.der"
    openssl = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    subprocess.run([*openssl, "-out", pem], check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["openssl", "pkcs8", "-topk8", "-nocrypt", "-in", pem, "-outform", "DER",
                    "-out", der], check=True)
    public = subprocess.run(["openssl", "pkey", "-in", pem, "-pubout", "-outform", "DER"],
                            check=True, stdout=subprocess.PIPE).stdout
    return der, base64.b64encode(public).decode()


def fig7(run: Replay) -> None:
    """Poisoning: a consumer of few contents, then one that pollutes, then a verifier."""
    key, spki = public_key(run.options.onym, run.folder)
    consumer, producer = free_ports(2)
    run.apply(FIG7.format(consumer=consumer, producer=producer, spki=spki))

    def linked(view: dict, name: str) -> bool:
        return any(name in (link["from"], link["to"]) and link["state"] == "up"
                   for link in view["links"])

    good = run.load(consumer, producer, 90, "--window", "1", "--rate", "2000", "--names",
                    "repeated", "--set", "512", "--key", str(key))
    run.watch("before", 13)
    bad = run.load(consumer, producer, 30, "--window", "32", "--rate", "4000", "--no-register",
                   "--first-slot", "1000")
    attacked = time.monotonic()
    deployed = run.watch("attack", 20, lambda view: linked(view, "cs1.sv0"))
    delay = time.monotonic() - attacked
    run.watch("verified", 30 - delay)
    bad_result = run.ended(bad)
    gone = run.watch("clean", 40, lambda view: "cs1.sv0" not in view["functions"])
    run.watch("end", 4)
    good.terminate()
    path = run.write("fig7")
    for phase in ("before", "attack", "verified", "clean", "end"):
        ratio = middle(run.rows, phase, "cs1", "hit_ratio")
        print(f"{phase}: hit ratio {ratio * 100:.1f} % (median of its seconds)")
    print(f"verifier placed: {deployed}, {delay:.1f} s after the attack began; removed: {gone}; "
          f"fakes that reached who asked for them: {bad_result['exchanges']}, "
          f"Interests without answer: {bad_result['lost']}")
    print(path)


def draw(out: pathlib.Path, name: str) -> None:
    """Throughput or hit ratio over time above the load of each function."""
    try:
        import matplotlib

        matplotlib.use("svg")
        import matplotlib.pyplot as plt
    except ImportError:
        print("matplotlib is missing: nothing is drawn (scripts/lab.sh has it)")
        return
    rows = list(csv.DictReader((out / f"{name}.csv").open()))
    events = list(csv.DictReader((out / f"{name}-events.csv").open()))
    figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=(9, 6))
    edge = "cs1" if name == "fig7" else "cs"
    column, factor = ("hit_ratio", 100) if name == "fig7" else ("goodput_mbps", 1)
    points = [r for r in rows if r["function"] == edge and r[column] != ""]
    upper.step([float(r["seconds"]) for r in points],
               [float(r[column]) * factor for r in points], where="post")
    upper.set_ylabel("hit ratio, %" if name == "fig7" else "goodput, Mbit/s")
    upper.set_ylim(bottom=0)
    for function in sorted({r["function"] for r in rows}):
        own = [r for r in rows if r["function"] == function]
        lower.plot([float(r["seconds"]) for r in own], [float(r["load"]) * 100 for r in own],
                   label=function)
    lower.set_ylabel("load, % of quota")
    lower.set_xlabel("seconds")
    lower.legend(fontsize="small", ncols=4)
    for event in events:
        if event["kind"] in ("scaling", "alarm", "all-clear", "moving", "scale-blocked"):
            for axis in (upper, lower):
                axis.axvline(float(event["seconds"]), color="grey", linestyle=":")
            upper.annotate(event["kind"], (float(event["seconds"]), 1), rotation=90,
                           fontsize="x-small", va="bottom", xycoords=("data", "data"))
    figure.tight_layout()
    figure.savefig(out / f"{name}.svg")
    print(out / f"{name}.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figure", choices=["fig5", "fig7"])
    parser.add_argument("--rule", choices=["paper", "headroom"], default="headroom")
    parser.add_argument("--router", type=float, default=0.13, help="quota of a backward router")
    parser.add_argument("--others", type=float, default=0.20, help="quota of the others")
    parser.add_argument("--window", type=int, default=32, help="Interests in flight")
    parser.add_argument("--balance", default="auto", help="how clones share the names")
    parser.add_argument("--period", type=float, default=5, help="seconds between decisions")
    parser.add_argument("--onym", default="target/release/onym")
    parser.add_argument("--bench", default="target/release/onym-bench")
    parser.add_argument("--out", default="target/replay")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Replay(options, pathlib.Path(folder))
        try:
            {"fig5": fig5, "fig7": fig7}[options.figure](run)
        finally:
            run.close()


if __name__ == "__main__":
    main()
