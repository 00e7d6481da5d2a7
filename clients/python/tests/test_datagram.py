"""Datagram sockets over a daemon: with ONYM set to the path of the `onym` program."""

import hashlib
import random
import threading
import unittest

from onym.push.datagram import ROOT, ROOT_IPV6, Client, Server, address, way_back
from test_daemon import LONG, PROGRAM, daemon

BLOCK = 1200


def serve(server: Server, files: dict[bytes, bytes], clients: int) -> None:
    """Answers (name, number of block) with the block, until every client said that it is done."""
    while clients:
        received = server.recvfrom(LONG)
        assert received is not None, "nobody asks"
        request, peer = received
        if request == b"done":
            clients -= 1
            continue
        name, _, number = request.partition(b":")
        at = int(number) * BLOCK
        server.sendto(number + b":" + files[name][at : at + BLOCK], peer)


def fetch(node: str, scope: object, name: bytes, into: dict[bytes, bytes]) -> None:
    """Stop and wait, asking again for what was lost."""
    with Client(scope, node) as client:  # type: ignore[arg-type]
        assert client.wait_connected(LONG)
        blocks: list[bytes] = []
        while not blocks or len(blocks[-1]) == BLOCK:
            wanted = b"%d" % len(blocks)
            answer = None
            for _ in range(20):
                client.send(name + b":" + wanted)
                answer = client.recv(3.0)
                while answer is not None and not answer.startswith(wanted + b":"):
                    answer = client.recv(3.0)
                if answer is not None:
                    break
            assert answer is not None, "the server does not answer"
            blocks.append(answer.partition(b":")[2])
        into[name] = b"".join(blocks)
        client.send(b"done")


class AddressTest(unittest.TestCase):
    def test_an_address_is_a_scope_and_the_way_back_follows_from_the_way_there(self) -> None:
        scope = address("10.1.2.3", 5353)
        self.assertEqual(scope.octets, ROOT.octets + bytes([10, 1, 2, 3, 20, 233, 0, 0]))
        item = scope / 1
        back = way_back(item)
        self.assertEqual(back.parent, scope)
        self.assertEqual(back.last.octets, hashlib.sha256(item.octets).digest()[:8])
        six = bytes.fromhex("fd00000000000000000000000000000114e9")
        label = hashlib.sha256(six).digest()[:8]
        self.assertEqual(address("fd00::1", 5353).octets, ROOT_IPV6.octets + label)
        self.assertEqual(address("::ffff:10.1.2.3", 5353), scope)
        self.assertEqual(address("fe80::1%eth0", 1), address("fe80::1", 1))
        for wrong in ("1.2.3", "1.2.3.256", "::g"):
            with self.assertRaises(ValueError):
                address(wrong, 1)


@unittest.skipUnless(PROGRAM, "ONYM does not name the program")
class DatagramTest(unittest.TestCase):
    def test_several_clients_fetch_different_files_from_one_server(self) -> None:
        seed = 3
        rng = random.Random(seed)
        files = {b"file%d" % n: rng.randbytes(40_000 + n) for n in range(3)}
        fetched: dict[bytes, bytes] = {}
        scope = address("10.0.0.1", 69)
        with daemon() as node, Server(scope, node) as server:
            threads = [threading.Thread(target=serve, args=(server, files, len(files)))]
            threads += [
                threading.Thread(target=fetch, args=(node, scope, name, fetched)) for name in files
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(fetched, files)

    def test_what_is_sent_before_the_server_is_there_arrives_while_there_is_room(self) -> None:
        scope = address("10.0.0.2", 7)
        with daemon() as node, Client(scope, node) as client:
            for n in range(100):
                client.send(b"%d" % n)
            self.assertEqual(client.dropped, 36)
            with Server(scope, node) as server:
                self.assertTrue(client.wait_connected(LONG))
                for n in range(64):
                    received = server.recvfrom(LONG)
                    self.assertEqual(received and received[0], b"%d" % n)
                assert received is not None
                server.sendto(b"back", received[1])
                self.assertIsNone(server.recvfrom(0.1))
                self.assertEqual(client.recv(LONG), b"back")


if __name__ == "__main__":
    unittest.main()
