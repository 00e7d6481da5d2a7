"""What a forwarder tells of itself without being asked for datasets: a page, or several."""

from __future__ import annotations

import abc
import ctypes
import http.client
import json
import re
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onym_lab.collect.client import UnansweredError


def enter(space: str | None) -> None:
    """Let this thread live in a network namespace; in its own without a name.

    Raises:
        OSError: The namespace is not there, or this is not root.
    """
    if space is None:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(f"/run/netns/{space}").open() as file:
        if libc.setns(file.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), f"cannot enter the namespace {space}")


def inside(space: str | None, act: Callable[[], None]) -> None:
    """Do something in a network namespace, in a thread of its own, and wait for it.

    Raises:
        Exception: What `act` raised.
    """
    raised: list[Exception] = []

    def run() -> None:
        try:
            enter(space)
            act()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


class Meter(abc.ABC):
    """Reads a forwarder's counters, from within its network namespace where it has one."""

    def __init__(self, space: str | None) -> None:
        self.space = space

    @abc.abstractmethod
    def read(self, timeout: float) -> dict[str, Any]:
        """Read the counters in the words of the samples; the thread lives in the namespace.

        Raises:
            UnansweredError: They did not come in time.
        """

    def once(self, timeout: float) -> dict[str, Any]:
        """Read them from any thread; empty when they do not come."""
        found: dict[str, Any] = {}
        try:
            inside(self.space, lambda: found.update(self.read(timeout)))
        except (OSError, UnansweredError):
            return {}
        return found


_METRIC = re.compile(r"^(onym_[a-z_]+)(?:\{([^}]*)\})? ([0-9.eE+-]+)$")
_LABEL = re.compile(r'([a-z_]+)="([^"]*)"')
ACCEPTED = ("forwarded", "aggregated", "suppressed", "cs_hit", "delivered")
"""Verdicts of Interests that are no drops (spec/registry.md)."""


class Metrics(Meter):
    """A node's Prometheus page: what it says now, while datasets may be a second old."""

    def __init__(self, address: str, space: str | None) -> None:
        super().__init__(space)
        self.host, _, port = address.rpartition(":")
        self.port = int(port)

    def read(self, timeout: float) -> dict[str, Any]:
        """Read the page."""
        try:
            with socket.create_connection((self.host, self.port), timeout) as connection:
                connection.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
                parts = []
                while part := connection.recv(1 << 16):
                    parts.append(part)
        except OSError as error:
            raise UnansweredError(f"metrics: {error}") from error
        text = b"".join(parts).decode(errors="replace")
        if "200 OK" not in text.partition("\n")[0]:
            raise UnansweredError("metrics: no page")
        return read_metrics(text)


def read_metrics(text: str) -> dict[str, Any]:
    """Give the counters of a Prometheus page of onym in the words of the samples."""
    plain: dict[str, float] = {}
    lookups = {"hit": 0, "miss": 0}
    received = {"interest": 0, "data": 0, "nack": 0}
    verdicts: dict[str, int] = {}
    for line in text.splitlines():
        found = _METRIC.match(line.strip())
        if not found:
            continue
        name, value = found[1], float(found[3])
        labels = dict(_LABEL.findall(found[2] or ""))
        if name == "onym_cs_lookups_total":
            lookups[labels["result"]] += int(value)
            continue
        if name != "onym_packets_total":
            plain[name] = plain.get(name, 0) + value
            continue
        received[labels["kind"]] += int(value)
        if labels["kind"] == "interest":
            verdicts[labels["verdict"]] = verdicts.get(labels["verdict"], 0) + int(value)

    def whole(name: str) -> int:
        return int(plain.get(name, 0))

    drops = {word: count for word, count in verdicts.items() if word not in ACCEPTED}
    pending, cached = whole("onym_pit_entries"), whole("onym_cs_entries")
    # With the push half only.
    push = {
        f"publications_{word}": whole(f"onym_push_publications_{word}_total")
        for word in ("sent", "delivered")
        if f"onym_push_publications_{word}_total" in plain
    }
    # What was sent is told by face only, and faces that closed are not told of: it is absent here.
    return {
        **push,
        "names": pending + cached + whole("onym_fib_entries"),
        "pending": pending,
        "cs_entries": cached,
        "cs_hits": lookups["hit"],
        "cs_misses": lookups["miss"],
        "interests_in": received["interest"],
        "data_in": received["data"],
        "nacks_in": received["nack"],
        "dropped": sum(drops.values()),
        "verdicts": drops,
    }


class Services(Meter):
    """The control interfaces of a node that is taken apart into a chain of services."""

    def __init__(self, host: str, ports: Mapping[str, int], space: str | None) -> None:
        super().__init__(space)
        self.host, self.ports = host, dict(ports)

    def ask(
        self, service: str, path: str, timeout: float, body: Any = None
    ) -> tuple[int, dict[str, Any]]:
        """Ask a service, with a body to change it; gives status and answer.

        Raises:
            UnansweredError: Nothing that is an answer came in time.
        """
        connection = http.client.HTTPConnection(self.host, self.ports[service], timeout=timeout)
        try:
            text = None if body is None else json.dumps(body)
            headers = {} if body is None else {"Content-Type": "application/json"}
            connection.request("GET" if body is None else "PUT", path, text, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise UnansweredError(f"{service}: {error}") from error
        finally:
            connection.close()

    def is_ready(self, timeout: float) -> bool:
        """Tell whether all of them have their faces; from within the namespace."""
        try:
            return all(self.ask(one, "/v1/ready", timeout)[0] == 200 for one in self.ports)
        except UnansweredError:
            return False

    def read(self, timeout: float) -> dict[str, Any]:
        """Ask each for its statistics."""
        return read_services({one: self.ask(one, "/v1/stats", timeout)[1] for one in self.ports})


def read_services(stats: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Give the counters of a chain in the words of the samples.

    Consumers are before the content store (`cs`), producers behind the name router (`nr`), what is
    pending in the backward router (`br`). Dropped are packets of every kind, by all services.
    """
    cache, router = stats["cs"], stats["nr"]
    pending = int(stats["br"]["backward_router"]["entries"])
    cached = int(cache["content_store"]["entries"])
    drops: dict[str, int] = {}
    for one in stats.values():
        for reason, count in one["dropped"].items():
            if count:
                drops[reason] = drops.get(reason, 0) + int(count)
    return {
        "names": pending + cached + int(router["name_router"]["routes"]),
        "pending": pending,
        "cs_entries": cached,
        "cs_hits": int(cache["content_store"]["hits"]),
        "cs_misses": int(cache["content_store"]["misses"]),
        "interests_in": int(cache["received"]["interests"]),
        "data_in": int(router["received"]["data"]),
        "nacks_in": int(router["received"]["nacks"]),
        "interests_out": int(router["sent"]["interests"]),
        "data_out": int(cache["sent"]["data"]),
        "dropped": sum(drops.values()),
        "verdicts": drops,
    }
