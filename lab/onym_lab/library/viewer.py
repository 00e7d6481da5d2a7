"""Viewers of a live stream, without pictures: they load what a player loads, and keep its clock.

``python -m onym_lab.library.viewer URL… --count N --seconds S --segment S`` runs ``N`` of them, who
take turns at the URLs of one playlist (HLS) and come one after the other within one segment's time.
What each of them saw is printed as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from dataclasses import asdict, dataclass
from urllib.parse import urljoin, urlsplit

AHEAD = 3
"""How many segments before the newest one a viewer begins, as HLS asks for."""


@dataclass
class Seen:
    """What a viewer saw."""

    start_delay: float | None = None
    """Seconds from coming to the first picture; None: there was none."""
    stalls: int = 0
    stalled: float = 0.0
    """Seconds without a picture, after the first one."""
    skipped: int = 0
    """Segments that were gone before they were loaded."""
    octets: int = 0


class Clock:
    """Pictures: each segment is one time long, and shown when the one before has ended."""

    def __init__(self, segment: float, begun: float) -> None:
        self.segment, self.begun, self.seen = segment, begun, Seen()
        self.ends: float | None = None

    def loaded(self, now: float, octets: int) -> None:
        """Note that the next segment is there."""
        self.seen.octets += octets
        if self.ends is None:
            self.seen.start_delay = now - self.begun
            self.ends = now
        self.waited(now)
        self.ends = max(self.ends, now) + self.segment

    def waited(self, now: float) -> None:
        """Note a stall, where what was loaded has been shown before now."""
        if self.ends is not None and now > self.ends:
            self.seen.stalls += 1
            self.seen.stalled += now - self.ends


def segments(playlist: str) -> dict[int, str]:
    """The numbers of the segments that a playlist lists, and their URIs."""
    first, uris = 0, []
    for line in playlist.splitlines():
        key, _, value = line.partition(":")
        if key == "#EXT-X-MEDIA-SEQUENCE":
            first = int(value)
        elif line and not line.startswith("#"):
            uris.append(line)
    return dict(enumerate(uris, first))


class Gone(Exception):  # noqa: N818
    """The server has no such file."""


class Connection:
    """One connection that is kept: requests follow each other."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = str(parts.hostname), parts.port or 80
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, url: str) -> bytes:
        """Load a file; a connection that was closed meanwhile is made again, once.

        Raises:
            Gone: There is none.
        """
        was_open = self.streams is not None
        try:
            return await self._get(url)
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            if not was_open:
                raise
            return await self._get(url)

    async def _get(self, url: str) -> bytes:
        if self.streams is None:
            self.streams = await asyncio.open_connection(self.host, self.port)
        reader, writer = self.streams
        writer.write(f"GET {urlsplit(url).path} HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        fields = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
        body = await reader.readexactly(int(fields["content-length"]))
        if fields.get("connection") == "close":
            self.close()
        if head[0].split()[1] != "200":
            raise Gone(f"{url}: {head[0]}")
        return body

    def close(self) -> None:
        """Close it; the next request opens another one."""
        if self.streams:
            self.streams[1].close()
            self.streams = None


async def watch(url: str, segment: float, seconds: float, wait: float) -> Seen:
    """Watch for some seconds; what failed is tried again as a player would, by the clock."""
    await asyncio.sleep(wait)
    begun = time.monotonic()
    clock, connection = Clock(segment, begun), Connection(url)
    listed: dict[int, str] = {}
    wanted: int | None = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    if wanted in listed:
                        octets = await connection.get(urljoin(url, listed[wanted]))
                        clock.loaded(time.monotonic(), len(octets))
                        wanted += 1
                        continue
                    text = await connection.get(url)
                except (Gone, OSError, asyncio.IncompleteReadError):
                    # Gone from the playlist, or the server is: what is there now?
                    listed = {}
                    await asyncio.sleep(segment / 4)
                    text = await connection.get(url)
                was, listed = listed, segments(text.decode())
                wanted, left_out = place(listed, wanted)
                clock.seen.skipped += left_out
                if wanted not in listed:
                    await asyncio.sleep(segment / 2 if listed == was else segment / 4)
    except (TimeoutError, Gone, OSError, asyncio.IncompleteReadError):
        pass
    clock.waited(time.monotonic())
    connection.close()
    return clock.seen


def place(listed: dict[int, str], wanted: int | None) -> tuple[int | None, int]:
    """Which segment is next, and how many were left out because they are gone."""
    if not listed:
        return wanted, 0
    first, last = min(listed), max(listed)
    if wanted is None:
        return max(first, last + 1 - AHEAD), 0
    return max(first, wanted), max(0, first - wanted)


async def _all(urls: list[str], given: argparse.Namespace) -> list[Seen]:
    rng = random.Random(given.seed)
    waits = [rng.uniform(0, given.segment) for _ in range(given.count)]
    viewers = (
        watch(urls[n % len(urls)], given.segment, given.seconds, wait)
        for n, wait in enumerate(waits)
    )
    return await asyncio.gather(*viewers)


def main() -> None:
    """Watch, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("urls", nargs="+")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--segment", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(json.dumps([asdict(one) for one in asyncio.run(_all(given.urls, given))]))


if __name__ == "__main__":
    main()
