"""What a consumer's verification is worth against a false producer, a stolen and an expired key.

One node; the owner's programs and the thief's are the real `onym put`, the consumer is `onym get`.
Whoever publishes, the router carries it: it does not verify.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onym_lab.library import Row, call, pick, program, row
from onym_lab.library.router import daemon

READY_S = 15.0
NAME = "/owner/report"
NEXT = "/owner/KEY/next"
SCHEMA = """#KEY: "KEY"/_/_/_
#owner: "owner"/#KEY
#report: "owner"/"report" <= #owner
"""
_DATE = re.compile(rb"\d{8}T\d{6}")


def needs(_: Mapping[str, Any]) -> None:
    """Say what is missing.

    Raises:
        NeedsError: The program is not built.
    """
    program("onym")


class _Person:
    """Somebody with a key store of their own."""

    def __init__(self, folder: Path, name: str, socket: Path) -> None:
        self.folder, self.node = folder / name, f"unix://{socket.absolute()}"
        self.folder.mkdir()
        self.environment = {
            **os.environ,
            "ONYM_KEYSTORE": str(self.folder / "keys"),
            "ONYM_PASSPHRASE": "laboratory",
        }

    def onym(self, *argv: str | Path) -> str:
        """Run the program to its end."""
        return call([program("onym"), *argv], environment=self.environment)

    def certificate(self, identity: str) -> Path:
        """Write the newest certificate of an identity to a file."""
        path = self.folder / "of.ndncert"
        self.onym("cert", "export", identity, "-o", path)
        return path

    @contextmanager
    def publishes(self, file: Path, key: str) -> Iterator[None]:
        """Serve a file under the owner's name, signed with a key."""
        log = self.folder / "put.log"
        argv = [str(program("onym")), "put", NAME, str(file), "--key", key, "--node", self.node]
        with log.open("w") as said:
            child = subprocess.Popen(argv, stdout=said, stderr=said, env=self.environment)
        try:
            end = time.monotonic() + READY_S
            while "ready" not in log.read_text():
                if child.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"onym put: {log.read_text().strip()[-300:]}")
                time.sleep(0.02)
            yield
        finally:
            child.terminate()
            child.wait()

    def fetches(self, how: list[str | Path], out: Path) -> bool:
        """Fetch what is under the name; tells whether it was accepted."""
        argv = [program("onym"), "get", NAME, "-o", out, *how, "--json"]
        argv += ["--node", self.node, "--retries", "2", "--lifetime", "500"]
        done = subprocess.run(
            [str(one) for one in argv],
            capture_output=True,
            text=True,
            check=False,
            env=self.environment,
        )
        (self.folder / "get.log").write_text(done.stdout + done.stderr)
        return done.returncode == 0


def lapse(certificate: Path) -> None:
    """Set the dates of a certificate's validity to the past.

    Its own signature no longer fits, which nobody looks at in a file that a user trusts.
    """
    past = iter((b"20200101T000000", b"20200102T000000"))
    text = _DATE.sub(lambda _: next(past), base64.b64decode(certificate.read_text()))
    certificate.write_text(base64.b64encode(text).decode() + "\n")


def schema(folder: Path, anchor: Path, listed: Path | None) -> list[str | Path]:
    """Write the owner's schema; the options of a consumer who judges by it."""
    rules = folder / "owner.lvs"
    rules.write_text(SCHEMA)
    how: list[str | Path] = ["--trust", rules, "--objects", "--anchor", anchor]
    if listed is not None:
        how += ["--revoked", listed]
    return how


def fetch(given: Mapping[str, Any], seed: int, folder: Path) -> list[Row]:
    """One publisher, one way of verifying: was the owner's or the thief's file accepted?

    `publisher`: `owner`, `stranger` (a key of their own), `thief` (the owner's key, stolen),
    `lapsed` (the owner's key, whose certificate ended). `verify`: `integrity`, `key` (the owner's
    certificate), `new key` (that of the key that the owner made after the theft), `schema` (a trust
    schema with the owner's certificate as anchor), `schema, listed` (the same, with the stolen key
    on the list of revoked keys).
    """
    options = pick(given, publisher="owner", verify="key", octets=100_000)
    who, how = str(options["publisher"]), str(options["verify"])
    with daemon(folder, {}) as (_, _, socket):
        owner, other, consumer = (
            _Person(folder, name, socket) for name in ("owner", "other", "consumer")
        )
        owner.onym("key", "new", "/owner", "--id", "first")
        other.onym("key", "new", "/stranger")
        old = owner.certificate("/owner")
        if who == "lapsed":
            lapse(old)
        if who == "thief":
            bag = folder / "stolen.safebag"
            owner.onym("key", "export", "/owner", "-o", bag)
            other.onym("key", "import", bag)
        trusted: list[str | Path] = ["--verify", how if how == "integrity" else old]
        if how == "new key":
            owner.onym("key", "new", "/owner", "--id", "next")
            trusted = ["--verify", owner.certificate(NEXT)]
        if how.startswith("schema"):
            listed = folder / "revoked"
            listed.write_text("/owner/KEY/first  # stolen\n")
            trusted = schema(folder, old, listed if "listed" in how else None)
        file = folder / "content"
        file.write_bytes(bytes([seed % 251]) * int(options["octets"]))
        publisher = owner if who in ("owner", "lapsed") else other
        key = "/stranger" if who == "stranger" else "/owner"
        if how == "new key" and publisher is owner:
            key = NEXT
        with publisher.publishes(file, key):
            accepted = consumer.fetches(trusted, folder / "got")
    return [row("consumer", "accepted", "share", float(accepted))]
