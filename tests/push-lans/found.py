#!/usr/bin/env python3
"""Machines of one LAN find each other and are one domain (push.discover; spec/push.md, P-84, P-85).

    tests/push-lans/found.py ONYM

Namespaces at one switch. Two nodes with no more than a key are a domain, one of them serves; one
without the key is no neighbour; one that is to serve takes over. Exit status 77: not root, or no `ip`.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
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


def daemon(onym: str, folder: Path, name: str, netns: str) -> AbstractContextManager[object]:
    sets = [f'faces.unix.path="{folder}/{name}.sock"', "push.enabled=true", *SETTINGS[name]]
    return running(inside(netns, onym, "daemon", *settings(sets)), folder / f"{name}.log", "ready")


def check(onym: str, stack: ExitStack) -> None:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    spaces = {n: stack.enter_context(space(f"found{os.getpid()}{n}")) for n in "abcds"}
    ip("-n", spaces["s"], "link", "add", "switch", "type", "bridge")
    ip("-n", spaces["s"], "link", "set", "switch", "up")
    for number, name in enumerate("abcd", 1):
        ip("link", "add", "lan", "netns", spaces[name], "type", "veth",
           "peer", "name", f"to-{name}", "netns", spaces["s"])  # fmt: skip
        ip("-n", spaces["s"], "link", "set", f"to-{name}", "master", "switch", "up")
        ip("-n", spaces[name], "address", "add", f"10.98.0.{number}/24", "dev", "lan")
        ip("-n", spaces[name], "link", "set", "lan", "up")

    def command(name: str, *words: str) -> list[str]:
        return [onym, "--node", f"unix://{folder}/{name}.sock", *words]

    def status(name: str) -> dict:
        words = command(name, "rendezvous", "status", "--json")
        ran = subprocess.run(words, capture_output=True, check=False)
        return json.loads(ran.stdout) if ran.returncode == 0 else {}

    def neighbours(name: str) -> list[str]:
        links = status(name).get("links", [])
        return [link["neighbour"] for link in links if link["neighbour"]]

    def served_by(*names: str) -> Callable[[], bool]:
        """Whether the same nodes serve all of these, and one of them is among these."""
        def is_so() -> bool:
            of = {name: status(name) for name in names}
            homes = [{home["node"] for home in told.get("homes", [])} for told in of.values()]
            return len(homes[0]) == 1 and all(homes[0] == other for other in homes)
        return is_so

    def crosses(text: str) -> None:
        heard = folder / text
        listen = command("b", "subscribe", "/1/2", "--count", "1", "--timeout", "30", "-o", str(heard))
        listener = subprocess.Popen(listen, stdout=subprocess.DEVNULL)
        say = command("a", "publish", "/1/2", "--text", text, "--timeout", "30")
        subprocess.run(say, check=True, stdout=subprocess.DEVNULL)
        assert listener.wait(PATIENCE) == 0
        assert heard.read_text() == text

    nodes = {}
    for name in "abc":
        stack.enter_context(daemon(onym, folder, name, spaces[name]))
        nodes[name] = status(name)["node"]
    until(lambda: neighbours("a") == [nodes["b"]], "a and b found each other")
    until(served_by("a", "b"), "one of a and b serves both")
    first = min(nodes["a"], nodes["b"])
    until(lambda: status("a")["homes"][0]["node"] == first, "the first one by identifier serves")
    crosses("hello")
    stack.enter_context(daemon(onym, folder, "d", spaces["d"]))
    nodes["d"] = status("d")["node"]
    until(lambda: {h["node"] for h in status("a")["homes"]} == {nodes["d"]}, "d took over")
    until(served_by("a", "b", "d"), "d serves all")
    crosses("again")
    assert neighbours("c") == [], "a node without the key is a neighbour"
    print("machines of one LAN are a domain, and hand over to one that is to serve")


def main() -> int:
    if not is_root_with():
        return 77
    with ExitStack() as stack:
        check(os.path.realpath(sys.argv[1]), stack)
    return 0


if __name__ == "__main__":
    sys.exit(main())
