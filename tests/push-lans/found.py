#!/usr/bin/env python3
"""Machines of one LAN find each other and are one domain (push.discover; spec/push.md, P-84, P-85).

    tests/push-lans/found.py ONYM

Namespaces at one switch. Two nodes with no more than a key are a domain, one of them serves; one
without the key is no neighbour; one that is to serve takes over. The same where nobody has IPv4; and
where some have both, each is the neighbour of each once. Exit status 77: not root, or no `ip`.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from nodes import PATIENCE, inside, ip, is_root_with, running, settings, space, until

KEY = 'push.key="of the house"'
SETTINGS = {
    "a": ['push.discover="standby"', KEY],
    "b": ['push.discover="standby"', KEY],
    "c": ['push.discover="standby"'],
    "d": ['push.discover="serve"', KEY],
}


class Lan:
    """Namespaces at one switch; those of `v4` have an address of IPv4 beside the one of the link."""

    def __init__(self, onym: str, stack: ExitStack, names: str, v4: str) -> None:
        self.onym, self.stack = onym, stack
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.nodes: dict[str, str] = {}
        self.spaces = {n: stack.enter_context(space(f"found{os.getpid()}{n}")) for n in f"{names}s"}
        switch = self.spaces["s"]
        ip("-n", switch, "link", "add", "switch", "type", "bridge")
        ip("-n", switch, "link", "set", "switch", "up")
        for number, name in enumerate(names, 1):
            ip("link", "add", "lan", "netns", self.spaces[name], "type", "veth",
               "peer", "name", f"to-{name}", "netns", switch)  # fmt: skip
            ip("-n", switch, "link", "set", f"to-{name}", "master", "switch", "up")
            if name in v4:
                address = f"10.98.0.{number}/24"
                ip("-n", self.spaces[name], "address", "add", address, "dev", "lan")
            ip("-n", self.spaces[name], "link", "set", "lan", "up")

    def start(self, name: str, *more: str) -> None:
        path = f'faces.unix.path="{self.folder}/{name}.sock"'
        sets = settings([path, "push.enabled=true", *SETTINGS[name], *more])
        words = inside(self.spaces[name], self.onym, "daemon", *sets)
        self.stack.enter_context(running(words, self.folder / f"{name}.log", "ready"))
        self.nodes[name] = self.status(name)["node"]

    def command(self, name: str, *words: str) -> list[str]:
        return [self.onym, "--node", f"unix://{self.folder}/{name}.sock", *words]

    def status(self, name: str) -> dict:
        words = self.command(name, "rendezvous", "status", "--json")
        ran = subprocess.run(words, capture_output=True, check=False)
        return json.loads(ran.stdout) if ran.returncode == 0 else {}

    def neighbours(self, name: str) -> list[str]:
        links = self.status(name).get("links", [])
        return sorted(link["neighbour"] for link in links if link["neighbour"])

    def has(self, name: str, *others: str) -> Callable[[], bool]:
        """Whether these are the neighbours of a node, each once."""
        return lambda: self.neighbours(name) == sorted(self.nodes[other] for other in others)

    def first(self, *names: str) -> str:
        """The smallest identifier of these: a number, of which the text has no zeros in front."""
        return min((self.nodes[name] for name in names), key=lambda node: int(node, 16))

    def served_by(self, home: str, *names: str) -> Callable[[], bool]:
        """Whether the node with this identifier serves all of these, and no other one does."""
        def is_so() -> bool:
            told = [self.status(name).get("homes", []) for name in names]
            return all({of["node"] for of in homes} == {home} for homes in told)
        return is_so

    def crosses(self, text: str) -> None:
        heard = self.folder / text
        listen = self.command(
            "b", "subscribe", "/1/2", "--count", "1", "--timeout", "30", "-o", str(heard)
        )
        listener = subprocess.Popen(listen, stdout=subprocess.DEVNULL)
        say = self.command("a", "publish", "/1/2", "--text", text, "--timeout", "30")
        subprocess.run(say, check=True, stdout=subprocess.DEVNULL)
        assert listener.wait(PATIENCE) == 0
        assert heard.read_text() == text


def check(onym: str, stack: ExitStack) -> None:
    lan = Lan(onym, stack, "abcd", "abcd")
    for name in "abc":
        lan.start(name)
    until(lan.has("a", "b"), "a and b found each other")
    until(lan.served_by(lan.first("a", "b"), "a", "b"), "the first one by identifier serves both")
    lan.crosses("hello")
    lan.start("d")
    until(lan.served_by(lan.nodes["d"], "a", "b", "d"), "d took over, and serves all")
    lan.crosses("again")
    assert lan.neighbours("c") == [], "a node without the key is a neighbour"
    print("machines of one LAN are a domain, and hand over to one that is to serve")


def without_v4(onym: str, stack: ExitStack) -> None:
    lan = Lan(onym, stack, "abc", "")
    # The smaller number is the text that sorts last.
    lan.start("a", 'push.node="1000f"')
    lan.start("b", 'push.node="ffff"')
    lan.start("c")
    until(lan.has("a", "b"), "a and b found each other by IPv6")
    until(lan.served_by(lan.first("a", "b"), "a", "b"), "the first one by identifier serves both")
    lan.crosses("hello")
    assert lan.neighbours("c") == [], "a node without the key is a neighbour"
    print("so are machines that have IPv6 alone")


def mixed(onym: str, stack: ExitStack) -> None:
    """a and d have both kinds of addresses, b has IPv6 alone."""
    lan = Lan(onym, stack, "abd", "ad")
    for name in "abd":
        lan.start(name)
    for name, *others in ("abd", "bad", "dab"):
        until(lan.has(name, *others), f"{name} found {others}: {lan.neighbours(name)}")
    lan.crosses("hello")
    for name, *others in ("abd", "bad", "dab"):
        assert lan.has(name, *others)(), f"{name}: {lan.neighbours(name)}"
    print("and those of both kinds, each once")


def main() -> int:
    if not is_root_with():
        return 77
    for lan in (check, without_v4, mixed):
        with ExitStack() as stack:
            lan(os.path.realpath(sys.argv[1]), stack)
    return 0


if __name__ == "__main__":
    sys.exit(main())
