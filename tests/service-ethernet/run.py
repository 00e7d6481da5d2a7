#!/usr/bin/env python3
"""A file through a chain of services that Ethernet joins.

    tests/service-ethernet/run.py ONYM

    dispatcher ─ content store ══ backward router ══ strategy forwarder ══ name router

Every ══ joins two network namespaces: a veth with frames of EtherType 0x8624 and no address of IP.
The consumer is at the dispatcher, the producer at the name router, both by TCP; so is the
dispatcher's own path, because a face for each session would have the same two stations. Packets
longer than a frame are fragmented. The second fetch is answered by the content store.
Exit status 77: not root, or no `ip`.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from nodes import PATIENCE, inside, ip, is_root_with, running, space, until

NAME = "/onym/ethernet"
OCTETS = 2_000_000
MTU = 1500
CLIENTS = "tcp4://127.0.0.1:6363"
STORE = "tcp4://127.0.0.1:6364"
CONTROL = "127.0.0.1:6399"
# One in each namespace, from the consumer's end on; each speaks to the next one's `back`.
SERVICES = ["content-store", "backward-router", "strategy-forwarder", "name-router"]


def mac(place: int) -> str:
    """Of the interface toward the consumer."""
    return f"02:00:00:00:01:0{place}"


def words(place: int) -> list[str]:
    """How a service of the chain is started."""
    listen = ["--listen", "in=ether://back" if place > 0 else f"in={STORE}"]
    if place == len(SERVICES) - 1:
        producer = ["--listen", f"producer={CLIENTS},side=producer"]
        return [*listen, *producer, "--set", "registration=open"]
    return [*listen, "--face", f"next=ether://[{mac(place + 1)}]/onward"]


def service(onym: str, folder: Path, netns: str, kind: str, *args: str) -> AbstractContextManager[object]:
    return running(inside(netns, onym, "service", kind, *args), folder / f"{kind}.log", "ready")


def said(netns: str, *command: str) -> str:
    done = subprocess.run(inside(netns, *command), stdout=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert done.returncode == 0, f"{command} ended with {done.returncode}"
    return done.stdout


def stats(netns: str) -> dict:
    ask = f"import urllib.request as u; print(u.urlopen('http://{CONTROL}/v1/stats').read().decode())"
    return json.loads(said(netns, sys.executable, "-c", ask))


def chain(stack: ExitStack, onym: str, folder: Path) -> list[str]:
    """The namespaces, joined in a row, with a service in each."""
    names = [f"onym-se-{os.getpid()}-{place}" for place in range(len(SERVICES))]
    for name in names:
        stack.enter_context(space(name))
    for place, (left, right) in enumerate(zip(names, names[1:], strict=False), 1):
        ip("-n", left, "link", "add", "onward", "mtu", str(MTU), "type", "veth", "peer", "name", "back",
           "address", mac(place), "mtu", str(MTU), "netns", right)
        ip("-n", left, "link", "set", "onward", "up")
        ip("-n", right, "link", "set", "back", "up")
    for place in reversed(range(len(SERVICES))):
        args = [*words(place), "--control", CONTROL]
        stack.enter_context(service(onym, folder, names[place], SERVICES[place], *args))
    args = ["--listen", f"in={CLIENTS}", "--set", f"consumer_path={STORE}"]
    stack.enter_context(service(onym, folder, names[0], "packet-dispatcher", *args))
    return names


@contextmanager
def producer(onym: str, file: Path, netns: str) -> Iterator[None]:
    put = inside(netns, onym, "put", NAME, str(file), "--node", CLIENTS)
    with running(put, file.with_suffix(".log")):
        until(lambda: stats(netns)["name_router"]["registrations"]["accepted"] > 0, "registration")
        yield


def main() -> None:
    onym = str(Path(sys.argv[1]).resolve())
    if not is_root_with():
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        place = Path(folder)
        file, got = place / "file", place / "got"
        file.write_bytes(os.urandom(OCTETS))
        names = chain(stack, onym, place)
        with producer(onym, file, names[-1]):
            for again in range(2):
                said(names[0], onym, "get", NAME, "-o", str(got), "--node", CLIENTS)
                assert got.read_bytes() == file.read_bytes(), f"fetch {again} differs"
                got.unlink()
                if again == 0:
                    first = stats(names[-1])["sent"]["data"]
            store = stats(names[0])["content_store"]
            last = stats(names[-1])["sent"]["data"]
        assert store["hits"] > 0, store
        # Which version there is must be fresh, and so is asked of the producer.
        assert last - first <= 2, f"the second fetch reached the producer: {last - first} Data"
        print(f"{OCTETS} octets over three Ethernet links of {MTU} octets, "
              f"then {store['hits']} answers by the content store")


if __name__ == "__main__":
    main()
