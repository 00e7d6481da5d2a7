"""Viewers without pictures keep the clock of those with some; the stream they watch is one."""

import asyncio
import http.server
import threading
from functools import partial
from pathlib import Path

from onym_lab.library import viewer
from onym_lab.library.video import KEPT, WINDOW, Stream


def test_the_clock_counts_what_a_viewer_would_see() -> None:
    clock = viewer.Clock(2.0, begun=10.0)
    clock.waited(11.0)
    clock.loaded(11.5, 100)  # shown from 11.5 to 13.5
    clock.loaded(12.0, 100)  # ... to 15.5
    clock.waited(15.5)
    assert clock.seen == viewer.Seen(start_delay=1.5, octets=200)
    clock.loaded(16.0, 100)  # half a second late: shown from 16 to 18
    clock.waited(19.0)
    assert (clock.seen.stalls, clock.seen.stalled) == (2, 1.5)


def test_a_viewer_begins_three_segments_before_the_newest_and_leaves_out_what_is_gone() -> None:
    text = "#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:7\n#EXTINF:1.0,\na.ts\n#EXTINF:1.0,\nb.ts\n"
    assert viewer.segments(text) == {7: "a.ts", 8: "b.ts"}
    listed = {n: str(n) for n in range(7, 13)}
    assert viewer.place(listed, None) == (10, 0)
    assert viewer.place(listed, 9) == (9, 0)
    assert viewer.place(listed, 13) == (13, 0)
    assert viewer.place(listed, 4) == (7, 3)
    assert viewer.place({}, 4) == (4, 0)


class _Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_viewers_of_a_server_that_keeps_up_see_it_all(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "live", segment=0.2, bitrate=1e6, seed=3)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(_Handler, directory=str(tmp_path))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/live/live.m3u8"
    try:
        with stream:
            seen = asyncio.run(viewer.watch(url, 0.2, 3.0, 0.0))
            gone = asyncio.run(viewer.watch(url.replace("live.m3u8", "no.m3u8"), 0.2, 0.3, 0.0))
    finally:
        server.shutdown()
        server.server_close()
    assert seen.start_delay is not None
    # Three that were there, and one each fifth of a second: but for what a busy machine delays.
    assert 8 <= seen.octets / 25_000 <= 18
    assert gone == viewer.Seen()
    assert len(list((tmp_path / "live").glob("*.ts"))) <= KEPT
    assert len(viewer.segments((tmp_path / "live/live.m3u8").read_text())) == WINDOW
