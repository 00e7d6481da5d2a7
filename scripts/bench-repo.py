#!/usr/bin/env python3
"""Repositories in one run: onym's and ndn-python-repo, each behind the same node (`onym daemon`, which caches
nothing), with the same packets.

    bench-repo.py [--onym PROGRAM] [--size 20M] [--rounds 3] [--only onym,python] [--folder DIR] [--json FILE]

bulk   packets by TCP, one connection, as fast as they are taken, until the last one is answered
serve  the same object fetched by `onym get` from the repository alone; the second fetch counts

onym's has what it answers on the disk; ndn-python-repo writes every ten seconds. It is taken from PATH, or
installed by pip once into target/tools/ndn-python-repo; where that fails it is left out, and said. ndnd's
repository is not here: it takes no packets by TCP, and joins a group only with a schema and anchors; what it does
beside ours is in docs/bench-store.md.
A row is the median of its rounds. Exit codes: 0 done, 1 something was not kept.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "clients/python"))

from onym.sync import _packet  # noqa: E402
from onym.sync._face import Face, UnansweredError  # noqa: E402

REPO, BULK = "/bench/repo", "/bench/bulk/v=1"
CONTENT = 8000
PATIENCE_S = 300
PYTHON_REPO = "ndn-python-repo==0.3"


class Place:
    """A node and what runs beside it, in a folder of their own; all of it ends with the place."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.onym, self.size = given.onym, given.size
        self.folder = Path(tempfile.mkdtemp(prefix="onym-repos-", dir=given.folder))
        self.node = f"unix://{self.folder}/node.sock"
        home = {"HOME": str(self.folder), "XDG_RUNTIME_DIR": str(self.folder), "NDN_CLIENT_TRANSPORT": self.node}
        self.env = {**os.environ, **home}
        self.running: list[subprocess.Popen] = []

    def __enter__(self) -> "Place":
        sets = [f'faces.unix.path="{self.folder}/node.sock"', "faces.udp.listen=[]", "faces.tcp.listen=[]",
                "faces.websocket.listen=[]", "cs.serve=false", "cs.admit=false"]
        self.start("node", self.onym, "daemon", *(word for one in sets for word in ("--set", one)))
        self.until("node", "ready")
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self.running):
            self.end(child)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name: str, *words: object) -> subprocess.Popen:
        with (self.folder / f"{name}.log").open("w") as log:
            child = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     env=self.env, cwd=self.folder)
        self.running.append(child)
        return child

    @staticmethod
    def end(child: subprocess.Popen) -> None:
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def until(self, name: str, text: str) -> None:
        wait(lambda: text in self.said(name), f"{name} did not say {text}", lambda: self.said(name)[-500:])

    def call(self, *words: object) -> str:
        argv = [self.onym, *map(str, words)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=self.env, cwd=self.folder)
        if done.returncode:
            raise SystemExit(f"onym {' '.join(argv[1:])}: {done.stderr.strip()}")
        return done.stdout

    def serve(self, name: str) -> float:
        """Octets a second of the second fetch."""
        for _ in range(2):
            begun = time.monotonic()
            self.call("get", name, "-q", "-o", "got")
            took = time.monotonic() - begun
            if (self.folder / "got").stat().st_size != self.size:
                raise SystemExit(f"{name} is not whole")
        return self.size / took


def wait(is_so, what: str, more=lambda: "") -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: {more()}")
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_onym(place: Place) -> int:
    port = free_port()
    words = ["repo", "run", "--store", "repo", "--name", REPO, "--serve", "/bench/bulk", "--allow-everybody"]
    place.start("repo", place.onym, *words, "--bulk", f"127.0.0.1:{port}")
    place.until("repo", "ready: ")
    return port


def run_python(place: Place) -> int:
    port = free_port()
    config = {
        "repo_config": {"repo_name": REPO, "register_root": False},
        "db_config": {"db_type": "sqlite3", "sqlite3": {"path": f"{place.folder}/repo.db"}},
        "tcp_bulk_insert": {"addr": "127.0.0.1", "port": str(port), "register_prefix": True, "prefixes": ["/bench/bulk"]},
        "logging_config": {"level": "ERROR"},
    }
    (place.folder / "repo.conf").write_text(json.dumps(config))
    program = Path(python_repo())
    # It signs registrations.
    for words in (["Init-Pib"], ["New-Item", "/bench"]):
        keys = [program.with_name("pyndnsec"), *words]
        subprocess.run(keys, capture_output=True, check=False, env=place.env, cwd=place.folder)
    place.start("repo", program, "-c", place.folder / "repo.conf")

    def is_open() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    wait(is_open, "ndn-python-repo does not listen", lambda: place.said("repo")[-500:])
    return port


def python_repo() -> str | None:
    found = shutil.which("ndn-python-repo")
    if found:
        return found
    tools = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "tools/ndn-python-repo"
    program = tools / "bin/ndn-python-repo"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", tools], check=False, capture_output=True)
        # It asks setuptools for its own version, which newer ones do not tell any more.
        pip = [tools / "bin/pip", "install", "--quiet", PYTHON_REPO, "setuptools<80"]
        with contextlib.suppress(OSError):
            subprocess.run(pip, check=False, capture_output=True)
    return str(program) if program.exists() else None


async def bulk(place: Place, port: int) -> float:
    """Octets a second of packets that are sent by TCP, until the last one is answered."""
    count = place.size // CONTENT
    base, content = _packet.name(BULK), bytes(CONTENT)
    names = [base + _packet.numbered(_packet.SEGMENT, n) for n in range(count)]
    packets = b"".join(_packet.write_data(name, content, 0, count - 1) for name in names)
    face = await Face.open(place.node)
    begun = time.monotonic()
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(packets)
    await writer.drain()
    end = begun + PATIENCE_S
    while True:
        with contextlib.suppress(UnansweredError):
            await face.request(names[-1], 100, 1)
            break
        if time.monotonic() > end:
            raise SystemExit(f"the last packet is not there: {place.said('repo')[-500:]}")
        await asyncio.sleep(0.005)
    took = time.monotonic() - begun
    writer.close()
    await face.close()
    return place.size / took


def measure(subject: str, given: argparse.Namespace) -> dict[str, float]:
    with Place(given) as place:
        port = run_onym(place) if subject == "onym" else run_python(place)
        return {"bulk": asyncio.run(bulk(place, port)), "serve": place.serve(BULK)}


def octets(text: str) -> int:
    unit = {"k": 10**3, "M": 10**6, "G": 10**9}.get(text[-1], 1)
    whole = int(text.rstrip("kMG")) * unit
    return max(CONTENT, whole // CONTENT * CONTENT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onym", type=lambda path: str(Path(path).resolve()), default=str(ROOT / "target/release/onym"))
    parser.add_argument("--size", type=octets, default=octets("20M"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="onym,python")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--json")
    given = parser.parse_args()
    subjects = given.only.split(",")
    if "python" in subjects and not python_repo():
        print("python    left out: ndn-python-repo is not on PATH and cannot be installed")
        subjects.remove("python")
    rounds = [{subject: measure(subject, given) for subject in subjects} for _ in range(given.rounds)]
    rows = []
    for what in ("bulk", "serve"):
        ours = None
        for subject in subjects:
            values = [each[subject][what] for each in rounds if what in each[subject]]
            if not values:
                continue
            rate = statistics.median(values)
            ours = rate if subject == "onym" else ours
            ratio = f"  onym's is {ours / rate:.1f} times" if ours and subject != "onym" else ""
            print(f"{what:<8}{subject:<8}{rate / 1e6:10.2f} MB/s{ratio}", flush=True)
            case = f"do=repo-{what},payload={CONTENT},size={given.size}"
            rows.append({"bench": "store", "case": case, "subject": subject, "metric": "goodput_bps", "value": rate * 8})
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
