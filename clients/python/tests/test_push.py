"""The push client against a node that the tests play."""

import hashlib
import random
import socket
import threading
import unittest

from onym import _places, _tlv
from onym.push import (
    App,
    ClosedError,
    Data,
    Id,
    MalformedError,
    Lost,
    Missed,
    Refused,
    RefusedError,
    ScopePublished,
    Sent,
    StartPublish,
    Status,
    StopPublish,
    Strategy,
    Terms,
    algorithmic,
)
from onym.push.message import MESSAGE_MAX, PIECE_MAX, TYPE, Kind, Message

ITEM = Id.parse("/1/2")


class Node:
    """The other end; what it says may be said before it is asked, since tags count from 1."""

    def __init__(self) -> None:
        self.socket, self.theirs = socket.socketpair()
        self.buffer = bytearray()

    def say(self, *messages: Message) -> None:
        for message in messages:
            for piece in message.pieces():
                self.socket.sendall(piece)

    def hear(self) -> Message:
        while True:
            found = _tlv.head(self.buffer)
            if found and found[2] <= len(self.buffer):
                value = bytes(self.buffer[found[1] : found[2]])
                self.length = found[2]
                del self.buffer[: found[2]]
                assert found[0] == TYPE
                return Message.parse(value)
            octets = self.socket.recv(1 << 16)
            assert octets, "the application is gone"
            self.buffer += octets

    def app(self) -> App:
        self.say(
            Message(
                Kind.REGISTERED, tag=1, node=b"\0" * 7 + b"\7", number=5, length=1 << 20, text="t"
            )
        )
        app = App(self.theirs, "tester")
        register = self.hear()
        assert (register.kind, register.text) == (Kind.REGISTER, "tester")
        return app


class PushTest(unittest.TestCase):
    def setUp(self) -> None:
        self.node = Node()
        self.app = self.node.app()
        self.addCleanup(self.node.socket.close)
        self.addCleanup(self.app.close)

    def test_registration_tells_what_the_node_is(self) -> None:
        info = self.app.info
        self.assertEqual((info.node[-1], info.application, info.publication_max), (7, 5, 1 << 20))

    def test_a_request_splits_its_identifier_and_waits_for_its_own_status(self) -> None:
        event = Message(Kind.START_PUBLISH, id=ITEM.octets)
        other = Message(Kind.STATUS, tag=99, status=4)
        self.node.say(event, other, Message(Kind.STATUS, tag=2, status=0))
        self.app.publish_item(ITEM, Strategy.NODE_LOCAL)
        asked = self.node.hear()
        self.assertEqual((asked.kind, asked.tag, asked.strategy), (Kind.PUBLISH_ITEM, 2, 0))
        self.assertEqual((asked.id, asked.prefix), (Id.parse("/2").octets, Id.parse("/1").octets))
        self.assertEqual(self.app.event(0), StartPublish(ITEM))
        self.assertIsNone(self.app.event(0))

    def test_a_refusal_is_raised_with_its_status(self) -> None:
        self.node.say(Message(Kind.STATUS, tag=2, status=4))
        with self.assertRaises(RefusedError) as caught:
            self.app.subscribe_item(ITEM)
        self.assertEqual(caught.exception.status, Status.NO_PARENT)
        self.assertIn("no parent", str(caught.exception))

    def test_events_come_in_the_order_in_which_the_node_made_them(self) -> None:
        scope = Id.parse("/1/FFFF")
        self.node.say(
            Message(Kind.SCOPE_PUBLISHED, id=scope.octets),
            Message(Kind.DATA, id=ITEM.octets, payload=b"x"),
            Message(Kind.MISSED, number=3),
            Message(Kind.MISSED, number=2, status=Status.NO_RENDEZVOUS),
            Message(Kind.STOP_PUBLISH, id=ITEM.octets),
            Message(Kind.STATUS, status=16, id=ITEM.octets),
        )
        expected = [
            ScopePublished(scope),
            Data(ITEM, b"x"),
            Missed(3),
            Lost(2),
            StopPublish(ITEM),
            Refused(ITEM, Status.STOPPED),
        ]
        self.assertEqual([self.app.event(5) for _ in expected], expected)

    def test_what_is_to_be_retained_is_answered_or_refused(self) -> None:
        self.node.say(
            Message(Kind.STATUS, tag=2, status=0), Message(Kind.STATUS, tag=3, status=12)
        )
        self.app.retain(ITEM, 10)
        asked = self.node.hear()
        self.assertEqual((asked.kind, asked.id, asked.number), (Kind.RETAIN, ITEM.octets, 10))
        with self.assertRaises(RefusedError) as caught:
            self.app.retain(ITEM, 70_000, Terms(waits=True))
        self.assertEqual(caught.exception.status, Status.BOUND)
        self.assertEqual((asked.wait, self.node.hear().wait), (0, 1))

    def test_publishing_is_told_what_became_of_it(self) -> None:
        self.node.say(Message(Kind.STATUS, tag=2, status=0, local=3, frames=2))
        self.assertEqual(self.app.publish_told(ITEM, b"abc"), Sent(3, 2))
        self.assertEqual(self.node.hear().payload, b"abc")

    def test_a_publisher_goes_on_when_the_node_has_taken_everything(self) -> None:
        count = 400
        octets = [bytes(8000)] * count
        publisher = threading.Thread(target=lambda: [self.app.publish(ITEM, o) for o in octets])
        publisher.start()
        # The node says nothing: only that it reads lets the publisher go on.
        for _ in range(count):
            self.assertEqual(len(self.node.hear().payload or b""), 8000)
        publisher.join(30)
        self.assertFalse(publisher.is_alive())

    def test_long_publications_are_cut_and_joined(self) -> None:
        seed = 7
        payload = random.Random(seed).randbytes(100_000)
        heard = bytearray()

        def node() -> None:
            while len(heard) < len(payload):
                message = self.node.hear()
                self.assertLessEqual(self.node.length, MESSAGE_MAX)
                self.assertEqual((message.length, message.offset), (len(payload), len(heard)))
                self.assertEqual(message.id, ITEM.octets if not heard else b"")
                heard.extend(message.payload or b"")
            self.node.say(Message(Kind.DATA, id=ITEM.octets, payload=payload))

        other = threading.Thread(target=node)
        other.start()
        self.app.publish(ITEM, payload)
        self.assertEqual(self.app.event(30), Data(ITEM, payload))
        other.join()
        self.assertEqual(heard, payload)

    def test_pieces_that_do_not_follow_each_other_are_refused(self) -> None:
        part = b"\0" * PIECE_MAX
        for offset, length in ((1, 100_000), (0, 1 << 30), (0, 5)):
            node = Node()
            app = node.app()
            self.addCleanup(app.close)
            self.addCleanup(node.socket.close)
            node.say(Message(Kind.DATA, id=ITEM.octets, length=length, offset=offset, payload=part))
            with self.assertRaises(MalformedError):
                app.event(5)

    def test_the_end_of_the_node_is_told(self) -> None:
        self.node.socket.close()
        with self.assertRaises(ClosedError):
            self.app.event(5)

    def test_whatever_the_node_sends_nothing_but_stated_errors_come(self) -> None:
        seed = 11
        rng = random.Random(seed)
        for _ in range(300):
            node = Node()
            app = node.app()
            good = Message(Kind.DATA, id=ITEM.octets, payload=rng.randbytes(20)).encode()
            octets = bytearray(good * 3)
            for _ in range(rng.randrange(1, 6)):
                octets[rng.randrange(len(octets))] = rng.randrange(256)
            node.socket.sendall(octets)
            node.socket.close()
            try:
                while app.event(5) is not None:
                    pass
            except (ClosedError, MalformedError):
                pass
            app.close()


class FormatTest(unittest.TestCase):
    def test_identifiers_are_read_and_written(self) -> None:
        self.assertEqual(str(Id.parse("/0001/3333")), "/0000000000000001/0000000000003333")
        self.assertEqual(Id.parse("/"), Id())
        self.assertEqual(Id.parse("/1") / 2, ITEM)
        self.assertEqual((ITEM.parent, ITEM.last), (Id.parse("/1"), Id.parse("/2")))
        for wrong in ("", "1", "/=", "/1/", "//", "/*", "/a//b"):
            with self.assertRaises(MalformedError, msg=wrong):
                Id.parse(wrong)

    def test_a_path_of_words_is_a_path_of_labels(self) -> None:
        path = Id.parse("/sensors/1/roof")
        self.assertEqual(path, Id.parse("/7c874d9a3405a0f8/1/a3550b1ff0c47f8f"))
        self.assertEqual((path.word, path.parent.word, path.last.word), ("roof", "", "roof"))
        self.assertNotEqual(Id.parse("/=cafe"), Id.parse("/cafe"))
        for wrong in ["/a//b", "/=", "/==x", "/*", "/a\nb", "/" + "x" * 65]:
            with self.assertRaises(MalformedError):
                Id.parse(wrong)

    def test_the_scope_of_fragments_follows_from_the_item(self) -> None:
        digest = hashlib.sha256(ITEM.octets).digest()
        self.assertEqual(algorithmic(ITEM).octets, Id.parse("/1").octets + digest[:8])

    def test_messages_are_what_the_specification_says(self) -> None:
        message = Message(Kind.SUBSCRIBE_ITEM, tag=258, id=b"\0" * 8, strategy=2)
        self.assertEqual(message.encode().hex(), "f213010500000102" + "0108" + "00" * 8 + "050102")
        whole = Message(
            Kind.STATUS, tag=9, id=b"\1" * 8, status=3, local=300, frames=1, text="why", number=2
        )
        self.assertEqual(Message.parse(whole.encode()[2:]), whole)
        with self.assertRaises(MalformedError):
            Message.parse(whole.encode()[2:] + bytes([33, 0]))
        Message.parse(whole.encode()[2:] + bytes([128, 0]))

    def test_numbers_in_longer_forms_are_refused(self) -> None:
        self.assertIsNone(_tlv.head(b"\xfd\x00"))
        for wrong in (b"\xfd\x00\x01\x00", b"\xf2\xfd\x00\x05", b"\x00\x00"):
            with self.assertRaises(MalformedError):
                _tlv.head(wrong)
        for n in (0, 252, 253, 65_535, 65_536, 1 << 32):
            self.assertEqual(
                _tlv.head(b"\1" + _tlv.number(n)),
                (1, 1 + len(_tlv.number(n)), 1 + len(_tlv.number(n)) + n),
            )

    def test_a_node_is_looked_for_where_every_client_does(self) -> None:
        self.assertEqual(_places.unix_paths("unix:///a", {}), ["/a"])
        env = {"NDN_CLIENT_TRANSPORT": "unix:///b", "XDG_RUNTIME_DIR": "/r"}
        self.assertEqual(_places.unix_paths(None, env), ["/b"])
        del env["NDN_CLIENT_TRANSPORT"]
        paths = _places.unix_paths(None, env)
        self.assertEqual(
            (paths[0], paths[1], paths[-1]),
            ("/run/nfd/nfd.sock", "/r/onym/nfd.sock", "/run/nfd.sock"),
        )
        with self.assertRaises(ValueError):
            _places.unix_paths("udp://x", {})


if __name__ == "__main__":
    unittest.main()
