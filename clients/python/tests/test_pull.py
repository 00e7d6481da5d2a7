"""Objects by name, over a node that is played here; with ONYM set to the path of the `onym` program
over a daemon, too."""

import asyncio
import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from onym.pull import Face, MalformedError, UnansweredError, fetch, fetch_to, name, publish, uri
from onym.sync._packet import SEGMENT, VERSION, keyword, numbered, write_data, write_metadata

PROGRAM = os.environ.get("ONYM")


class Played(Face):
    """A face whose node is the other side of a pipe: answers come from what is served here."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.lose: set[bytes] = set()
        super().__init__(asyncio.StreamReader(), self)  # type: ignore[arg-type]

    def write(self, packet: bytes) -> None:
        if packet[0] == 6:
            self._reader.feed_data(packet)
            return
        from onym._tlv import elements

        interest = next(elements(packet))[1]
        wanted = next(value for typ, value in elements(interest) if typ == 7)
        self.asked.append(wanted)
        if wanted in self.lose:
            self.lose.discard(wanted)
            return
        self._reader.feed_data(packet)

    def close(self):  # type: ignore[override]  # noqa: ANN201 - as a writer and as a face
        return (
            super().close()
            if self._task.get_loop().is_running() and not self._task.done()
            else None
        )

    async def register(self, prefix: bytes) -> None:
        self.registered = prefix


class ObjectTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.face = Played()

    async def asyncTearDown(self) -> None:
        self.face._task.cancel()

    async def test_what_is_published_is_fetched_whatever_its_length(self) -> None:
        for octets in (0, 1, 8000, 8001, 800_000):
            content = os.urandom(octets)
            served = await publish(self.face, f"/a/{octets}", content)
            self.assertEqual(self.face.registered, name(f"/a/{octets}"))
            self.assertEqual(await fetch(self.face, f"/a/{octets}"), content)
            self.assertEqual(served.segments, max(octets - 1, 0) // 8000 + 1)
            # By its version no metadata are asked for.
            self.face.asked.clear()
            self.assertEqual(await fetch(self.face, str(served)), content)
            self.assertNotIn(name(f"/a/{octets}") + keyword("metadata"), self.face.asked)

    async def test_a_lost_segment_is_asked_for_again(self) -> None:
        content = os.urandom(100_000)
        served = await publish(self.face, "/a/lost", content)
        self.face.lose = {served.name + numbered(SEGMENT, 5)}
        self.assertEqual(await fetch(self.face, "/a/lost"), content)

    async def test_what_is_too_long_or_never_ends_is_refused(self) -> None:
        await publish(self.face, "/a/long", bytes(50_000))
        with self.assertRaises(MalformedError):
            await fetch(self.face, "/a/long", 40_000)
        base = name("/a/endless")
        version = base + numbered(VERSION, 1)

        def endless(interest: object) -> bytes:
            wanted = interest.name  # type: ignore[attr-defined]
            if wanted == base + keyword("metadata"):
                return write_data(wanted + numbered(VERSION, 1), write_metadata(version, 0), 1)
            return write_data(wanted, b"" if wanted.endswith(numbered(SEGMENT, 3)) else b"x")

        self.face.serve(base, endless)
        with self.assertRaises(MalformedError):
            await fetch(self.face, "/a/endless")

    async def test_metadata_that_lead_elsewhere_are_refused(self) -> None:
        base = name("/a/led")
        other = name("/b/led") + numbered(VERSION, 1)
        self.face.serve(
            base, lambda i: write_data(i.name + numbered(VERSION, 1), write_metadata(other, 0), 1)
        )
        with self.assertRaisesRegex(MalformedError, "elsewhere"):
            await fetch(self.face, "/a/led")

    async def test_other_names_below_an_object_are_not_answered(self) -> None:
        served = await publish(self.face, "/a/b", b"x")
        for more in (b"", numbered(SEGMENT, 1), numbered(VERSION, 1), numbered(SEGMENT, 0) * 2):
            with self.assertRaises(UnansweredError):
                await self.face.request(served.name + more, lifetime_ms=20, tries=1)
        self.assertEqual(uri(served.name), str(served))


@unittest.skipUnless(PROGRAM, "ONYM names no program")
class DaemonTest(unittest.IsolatedAsyncioTestCase):
    async def test_objects_go_both_ways_between_python_and_the_command_line(self) -> None:
        octets = 20_000_000
        with tempfile.TemporaryDirectory() as folder:
            home = {**os.environ, "HOME": folder}
            path, source = f"{folder}/node.sock", Path(folder, "in")
            content = os.urandom(octets)
            source.write_bytes(content)
            settings = [f'faces.unix.path="{path}"', "faces.udp.listen=[]", "faces.tcp.listen=[]",
                        "faces.websocket.listen=[]"]  # fmt: skip
            words = [word for setting in settings for word in ("--set", setting)]
            node = subprocess.Popen(
                [PROGRAM or "", "daemon", *words], stderr=subprocess.PIPE, text=True
            )
            at = ["--node", f"unix://{path}"]
            put = None
            try:
                assert node.stderr is not None
                while "ready" not in node.stderr.readline():
                    self.assertIsNone(node.poll())
                put = subprocess.Popen([PROGRAM or "", *at, "put", "/a/file", str(source)], env=home,
                                       stdout=subprocess.PIPE, text=True)  # fmt: skip
                assert put.stdout is not None
                while "ready" not in put.stdout.readline():
                    self.assertIsNone(put.poll())
                face = await Face.open(f"unix://{path}")
                begun, got = time.monotonic(), bytearray()
                self.assertEqual(await fetch_to(face, "/a/file", got.extend), octets)
                print(
                    f"pull: {octets * 8 / (time.monotonic() - begun) / 1e6:.0f} Mbit/s, one process"
                )
                self.assertEqual(bytes(got), content)
                await publish(face, "/b/file", content[:1_000_000])
                get = await asyncio.create_subprocess_exec(
                    PROGRAM or "", *at, "get", "/b/file", "-o", f"{folder}/out", env=home,
                    stdout=subprocess.DEVNULL,
                )  # fmt: skip
                self.assertEqual(await asyncio.wait_for(get.wait(), 30), 0)
                self.assertEqual(Path(folder, "out").read_bytes(), content[:1_000_000])
                await face.close()
            finally:
                for process in (put, node):
                    if process:
                        process.terminate()
                        process.communicate(timeout=30)


if __name__ == "__main__":
    unittest.main()
