"""The blackboard: between two sides in Python, and with ONYM set through a daemon."""

import platform
import socket
import struct
import threading
import unittest

from onym import _tlv
from onym.push import (
    App,
    BoardError,
    BoardMissed,
    BoardPublisher,
    BoardSubscriber,
    Id,
    MalformedError,
    Strategy,
)
from test_daemon import LONG, PROGRAM, daemon


def admitted(publisher: BoardPublisher) -> BoardSubscriber:
    ours, theirs = socket.socketpair()
    publisher.admit(ours)
    return BoardSubscriber(theirs)


def drain(subscriber: BoardSubscriber) -> tuple[list[bytes], int]:
    got, missed = [], 0
    while (found := subscriber.receive(0)) is not None:
        if isinstance(found, BoardMissed):
            missed += found.count
        else:
            got.append(found)
    return got, missed


@unittest.skipUnless(platform.machine() == "x86_64", "the memory order of x86-64 is needed")
class BoardTest(unittest.TestCase):
    def test_what_is_written_once_everybody_gets_whatever_its_length(self) -> None:
        with BoardPublisher(payload_max=1000, depth=7, subscribers_max=3) as publisher:
            subscribers = [admitted(publisher) for _ in range(3)]
            for length in (0, 1, 7, 8, 9, 999, 1000):
                payload = bytes(range(256)) * 4
                publisher.publish(payload[:length])
                for subscriber in subscribers:
                    self.assertEqual(subscriber.receive(LONG), payload[:length])
            self.assertRaises(BoardError, publisher.publish, bytes(1001))
            for subscriber in subscribers:
                subscriber.close()

    def test_nothing_published_before_the_first_receive_is_lost(self) -> None:
        with BoardPublisher(payload_max=8, depth=15) as publisher:
            publisher.publish(b"before")
            with admitted(publisher) as subscriber:
                for n in range(15):
                    publisher.publish(bytes([n]))
                self.assertEqual(drain(subscriber), ([bytes([n]) for n in range(15)], 0))

    def test_a_slow_subscriber_is_told_how_much_it_missed_and_slows_nobody(self) -> None:
        with (
            BoardPublisher(payload_max=8, depth=7) as publisher,
            admitted(publisher) as slow,
            admitted(publisher) as quick,
        ):
            for n in range(1000):
                publisher.publish(struct.pack("<Q", n))
                self.assertEqual(quick.receive(0), struct.pack("<Q", n))
            got, missed = drain(slow)
            self.assertEqual(len(got) + missed, 1000)
            self.assertEqual(slow.missed, missed)
            self.assertEqual(got[-1], struct.pack("<Q", 999))

    def test_what_is_read_while_much_is_written_is_whole(self) -> None:
        count, words = 3000, 512
        with BoardPublisher(payload_max=8 * words, depth=3) as publisher:
            subscriber = admitted(publisher)

            def publish() -> None:
                for n in range(count):
                    publisher.publish(struct.pack("<Q", n) * words)

            thread = threading.Thread(target=publish)
            thread.start()
            seen, last = 0, -1
            while seen < count:
                found = subscriber.receive(LONG)
                assert found is not None
                if isinstance(found, BoardMissed):
                    seen += found.count
                    continue
                seen += 1
                numbers = set(struct.unpack(f"<{words}Q", found))
                self.assertEqual(len(numbers), 1)
                self.assertGreater(min(numbers), last)
                last = numbers.pop()
            thread.join()
            subscriber.close()

    def test_who_sleeps_is_woken_and_hears_of_the_end(self) -> None:
        publisher = BoardPublisher(payload_max=8)
        subscriber = admitted(publisher)
        # It looks several times by itself, and a publisher without a word is there all the same.
        self.assertIsNone(subscriber.receive(0.2))
        said = []

        def listen() -> None:
            said.append(subscriber.receive(LONG))
            try:
                subscriber.receive(LONG)
            except BoardError as error:
                said.append(str(error))

        thread = threading.Thread(target=listen)
        thread.start()
        publisher.publish(b"x")
        self.assertTrue(publisher.wait_for_readers(LONG))
        publisher.close()
        thread.join(LONG)
        self.assertEqual(said, [b"x", "the publisher is gone"])
        subscriber.close()

    def test_who_comes_when_all_seats_are_taken_is_told_and_who_leaves_makes_room(self) -> None:
        with BoardPublisher(payload_max=8, subscribers_max=1) as publisher:
            first = admitted(publisher)
            ours, theirs = socket.socketpair()
            self.assertRaises(BoardError, publisher.admit, ours)
            with self.assertRaisesRegex(BoardError, "seats are taken"):
                BoardSubscriber(theirs)
            first.close()
            admitted(publisher).close()
            ours.close()
            theirs.close()

    def test_an_admission_that_cannot_be_is_refused(self) -> None:
        def hears(value: bytes) -> None:
            ours, theirs = socket.socketpair()
            with ours, theirs:
                ours.send(_tlv.element(0xF4, value))
                BoardSubscriber(theirs, LONG)

        field = lambda typ, n: _tlv.element(typ, _tlv.nni(n))  # noqa: E731
        good = [field(0x81, 1), field(0x83, 4), field(0x85, 6), field(0x87, 8), field(0x89, 0)]
        self.assertRaisesRegex(BoardError, "did not come", hears, b"".join(good))
        for at, bad in ((0, 2), (1, 3), (1, 1), (2, 0), (3, 4), (3, 1 << 40)):
            fields = [*good]
            fields[at] = field(0x81 + 2 * at, bad)
            self.assertRaises(MalformedError, hears, b"".join(fields))
        self.assertRaises(MalformedError, hears, b"".join(good[:4]))

    @unittest.skipUnless(PROGRAM, "ONYM does not name the program")
    def test_a_node_brings_both_sides_together(self) -> None:
        scope, item, here = Id.parse("/1"), Id.parse("/1/2"), Strategy.NODE_LOCAL
        with daemon() as node, App.open(node, "a") as giver, App.open(node, "b") as taker:
            giver.publish_scope(scope, here)
            with BoardPublisher(payload_max=100_000, depth=7) as publisher:
                self.assertRaises(BoardError, giver.offer_board, item, publisher)
                giver.publish_item(item, here)
                giver.offer_board(item, publisher)
                taker.subscribe_item(item, here)
                admitted = threading.Event()

                def admit() -> None:
                    while not admitted.is_set() and not publisher.admit_offered():
                        pass

                thread = threading.Thread(target=admit)
                thread.start()
                with taker.want_board(item, LONG) as subscriber:
                    thread.join(LONG)
                    payload = bytes(range(250)) * 400
                    publisher.publish(payload)
                    self.assertEqual(subscriber.receive(LONG), payload)
                admitted.set()
