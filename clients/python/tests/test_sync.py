"""Sync: recorded bytes, laws of vectors, and members beside `onym chat` (with ONYM set to its path)."""

import asyncio
import os
import subprocess
import tempfile
import unittest

from onym._tlv import MalformedError, element, elements
from onym.sync import Face, Group, MalformedError as SyncMalformedError
from onym.sync import Svs, name, uri
from onym.sync._packet import read_data, read_interest, write_data, write_interest
from onym.sync.svs import VECTOR_OCTETS_MAX, read_vector, write_vector

PROGRAM = os.environ.get("ONYM")
BOOT = 1795444162

# Sent by ndnd 31822ab2 (`/net/a`, boot 1795444162, Ed25519).
RECORDED = bytes.fromhex(
    "05fd0102073808036e657420024456200350465320037376733601030220c911bfc1970a9b0e5fd3027eb7b2"
    "59985cd4b7f1d6ce6d5032c4a3129d80f8c80a047c9fe4bc0c0203e824bc06ba072408036e65742002445620"
    "0350465308036e657408016138046b044dc2200373767336010314031801001519c917ca15070808036e6574"
    "080161d209d4046b044dc2d6010116301b01051c21071f08036e65740801612002445608034b45590808d14c"
    "150c5add375f08024e412808000001a208cfbf8b17403d7484afcbdb089691466363175cba3b46f402463629"
    "8b953b6ad2c6b40065d2507a64bcfe98673ace7f1fa0a1278a852573558c1aa4a67c3e7ba89747f8e604"
)


class VectorTest(unittest.TestCase):
    def test_the_recorded_sync_interest_of_ndnd_is_read_and_its_vector_written_again(self) -> None:
        interest = read_interest(RECORDED)
        self.assertEqual(interest.name, name("/net/32=DV/32=PFS/32=svs/v=3"))
        assert interest.parameters is not None
        data = read_data(interest.parameters)
        self.assertEqual(uri(data.name), f"/net/32=DV/32=PFS/net/a/t={BOOT}/32=svs/v=3")
        vector = read_vector(data.content)
        self.assertEqual(vector, {(name("/net/a"), BOOT): 1})
        self.assertEqual(write_vector(vector), data.content)
        with self.assertRaises(SyncMalformedError):
            read_interest(RECORDED[:-1] + b"\0")

    def test_a_cut_vector_is_refused(self) -> None:
        whole = write_vector({(name("/a"), 1): 5, (name("/b"), 2): 300})
        for cut in range(len(whole)):
            with self.assertRaises((MalformedError, StopIteration)):
                read_vector(whole[:cut])

    def test_a_damaged_data_is_refused(self) -> None:
        wire = write_data(name("/a/b"), b"content", 1000, 0)
        self.assertEqual(read_data(wire).last_segment, 0)
        at = wire.index(b"content")
        with self.assertRaises(MalformedError):
            read_data(wire[:at] + b"C" + wire[at + 1 :])


class SvsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.a = Svs(name("/g"), name("/a"), 10, 0.0)
        self.b = Svs(name("/g"), name("/b"), 20, 0.0)
        self.a.poll(0.0)
        self.b.poll(0.0)

    def test_what_one_publishes_the_other_hears_once(self) -> None:
        self.a.publish(1.0)
        packet = self.a.poll(1.0)
        assert packet is not None
        [update] = self.b.receive(1.0, 100, packet)
        self.assertEqual((update.node, update.boot, update.low, update.high), (name("/a"), 10, 1, 1))
        self.assertEqual(self.b.receive(1.0, 100, packet), [])

    def test_an_outdated_peer_is_answered_after_a_wait_unless_others_did(self) -> None:
        self.a.publish(1.0)
        newest = self.a.poll(1.0)
        outdated = write_data(self.a.prefix, write_vector({}))
        self.a.receive(1.1, 100, outdated)
        self.assertGreater(self.a.deadline, 20, "it may be on its way")
        self.a.receive(5.0, 100, outdated)
        self.assertLessEqual(self.a.deadline, 5.2)
        self.assertIsNotNone(self.a.poll(5.2))
        self.a.receive(9.0, 100, outdated)
        assert newest is not None
        self.a.receive(9.0, 100, newest)
        self.assertIsNone(self.a.poll(9.2))

    def test_a_vector_from_the_future_changes_nothing(self) -> None:
        vector = {(name("/c"), 5): 1, (name("/z"), 100 + 86402): 1}
        self.assertEqual(self.a.receive(1.0, 100, write_data(b"", write_vector(vector))), [])
        self.assertEqual(self.a.vector, {})

    def test_the_vector_stays_within_its_bound_whatever_is_claimed(self) -> None:
        for n in range(200):
            vector = {(name(f"/hostile/{n}/{i}"), i): 1 for i in range(50)}
            self.a.receive(1.0, 100, write_data(b"", write_vector(vector)))
            self.assertLessEqual(len(write_vector(self.a.vector)), VECTOR_OCTETS_MAX)

    def test_names_are_written_as_they_are_read(self) -> None:
        for text in ("/a/32=svs/v=3", "/net/t=1795444162/seq=7/v=0/seg=0", "/%00%2F", "/"):
            self.assertEqual(uri(name(text)), text)
        interest = write_interest(name("/a"), b"1234", 1000, b"parameters")
        self.assertEqual(read_interest(interest).parameters, b"parameters")
        self.assertEqual([typ for typ, _ in elements(element(1, b"x"))], [1])


class NoFace:
    """A face that nothing goes over."""

    closed = False


class HistoryTest(unittest.TestCase):
    def test_every_publication_is_in_one_bundle_that_the_index_names(self) -> None:
        group = Group(NoFace(), "/g", "/a", 10)  # type: ignore[arg-type]
        base = group._base
        index = base + name("/32=HIDX")

        def asked(wanted: bytes) -> bytes:
            wire = group._answer(read_interest(write_interest(wanted, b"1234", 1000)))
            assert wire is not None
            return read_data(wire).content

        for n in range(1, 25):
            group.publish(b"%d" % n)
            named = dict(elements(asked(index + name("/32=metadata"))))[7]
            self.assertTrue(named.startswith(index))
            numbers = elements(asked(named + name("/seg=0")))
            bundles = [int.from_bytes(octets, "big") for _, octets in numbers]
            found = []
            for last in bundles:
                for typ, entry in elements(asked(base + name(f"/32=HIST/v={last}/seg=0"))):
                    fields = dict(elements(entry))
                    self.assertEqual(typ, 0x82)
                    found.append((int.from_bytes(fields[0xD6], "big"), fields[0x83]))
            self.assertEqual(found, [(i, b"%d" % i) for i in range(1, bundles[-1] + 1)])
        self.assertEqual(bundles, [1, 11, 21])


@unittest.skipUnless(PROGRAM, "ONYM does not name the program")
class ChatTest(unittest.IsolatedAsyncioTestCase):
    async def test_members_in_python_and_of_the_command_line_read_each_other(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            node = f"unix://{folder}/n.sock"
            settings = [f'faces.unix.path="{folder}/n.sock"', "faces.udp.listen=[]"]
            settings += ["faces.tcp.listen=[]", "faces.websocket.listen=[]"]
            words = [word for setting in settings for word in ("--set", setting)]
            daemon = await asyncio.create_subprocess_exec(
                PROGRAM or "onym", "daemon", *words, stderr=subprocess.PIPE
            )
            assert daemon.stderr is not None
            while b"ready" not in await asyncio.wait_for(daemon.stderr.readline(), 30):
                pass
            chat = await asyncio.create_subprocess_exec(
                *(PROGRAM or "onym", "chat", "/g", "--as", "/onym", "--node", node),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            assert chat.stdin is not None and chat.stdout is not None
            try:
                await asyncio.wait_for(chat.stdout.readline(), 30)
                face = await Face.open(node)
                async with await Group.join(face, "/g", "/python") as group:
                    group.publish(b"hello")
                    heard = await asyncio.wait_for(chat.stdout.readline(), 30)
                    self.assertEqual(heard, b"/python: hello\n")
                    chat.stdin.write(b"hello, python\n")
                    publications = aiter(group.publications())
                    one = await asyncio.wait_for(anext(publications), 30)
                    self.assertEqual((one.node, one.content), ("/onym", b"hello, python"))
                await face.close()
            finally:
                for process in (chat, daemon):
                    process.terminate()
                    await process.wait()


if __name__ == "__main__":
    unittest.main()
