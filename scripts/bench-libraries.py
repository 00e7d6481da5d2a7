#!/usr/bin/env python3
"""A file of 100 MB over one node by the client libraries: scripts/bench-libraries.py ONYM [--size MB]

One `onym put` serves it to each in turn; a row has the time by the clock and the processor time of the
client and of the node. The C library is measured where there is a compiler, `ndnd cat` (Go) where ndnd is
on PATH.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "/bench/file"
PYTHON = """
import asyncio, sys
from onym.pull import Face, fetch_to

async def main():
    face = await Face.open()
    with open(sys.argv[2], "wb") as out:
        await fetch_to(face, sys.argv[1], out.write)

asyncio.run(main())
"""


def started(command: list[str], word: str, env: dict[str, str]) -> subprocess.Popen[str]:
    """A program that goes on, once it has said this word."""
    program = subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for line in program.stdout:
        if word in line:
            return program
    raise SystemExit(f"{command[1]} ended with {program.wait()} before it was ready")


def spent(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(library: str, command: list[str], env: dict[str, str], node: int, size: int) -> str:
    before, begun = spent(node), time.monotonic()
    client = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, used = os.wait4(client.pid, 0)
    took = time.monotonic() - begun
    if status:
        raise SystemExit(f"{library}: {client.stderr.read().decode().strip()}")
    client.returncode = 0
    own = used.ru_utime + used.ru_stime
    return f"| {library} | {took:.2f} | {size * 8 / took / 1e9:.2f} | {own:.2f} | {spent(node) - before:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("onym")
    parser.add_argument("--size", type=int, default=100)
    words = parser.parse_args()
    onym, size = str(Path(words.onym).resolve()), words.size * 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "file"), Path(folder, "out")
        file.write_bytes(os.urandom(size))
        socket = f"{folder}/nfd.sock"
        env = os.environ | {"HOME": folder, "ONYM_KEYSTORE": f"{folder}/keys", "NDN_CLIENT_TRANSPORT": f"unix://{socket}",
                            "PYTHONPATH": str(ROOT / "clients/python")}  # fmt: skip
        sets = [f"faces.unix.path={socket}", "faces.udp.listen=", "faces.tcp.listen=", "faces.websocket.listen=", "cs.serve=false"]
        node = started([onym, "daemon", *(word for one in sets for word in ("--set", one))], "ready", env)
        put = started([onym, "put", NAME, str(file)], "ready", env)
        clients = {
            "Rust (`onym get`)": [onym, "get", NAME, "-o", str(out)],
            "Python (`onym.pull`)": [sys.executable, "-c", PYTHON, NAME, str(out)],
        }
        if shutil.which("make") and shutil.which("cc"):
            make = ["make", "-s", "-C", str(ROOT / "clients/c"), f"OUT={folder}/c", f"{folder}/c/get"]
            subprocess.run(make, check=True)
            clients["C (`libonym`)"] = ["sh", "-c", f"exec {folder}/c/get {NAME} > {out}"]
        if shutil.which("ndnd"):
            clients["Go (`ndnd cat`)"] = ["sh", "-c", f"exec ndnd cat {NAME} > {out}"]
        print(f"{words.size} MB in segments of 8000 octets, one node, nothing cached")
        print("| library | seconds | Gbit/s | processor time of the client, s | of the node, s |\n|---|---|---|---|---|")
        try:
            for library, command in clients.items():
                row = measure(library, command, env, node.pid, size)
                if out.read_bytes() != file.read_bytes():
                    raise SystemExit(f"{library}: another file came")
                print(row, flush=True)
        finally:
            for program in (put, node):
                program.terminate()
                program.wait()


if __name__ == "__main__":
    main()
