"""Requests, replies and liveliness (P-75 to P-77) at a node that the tests play."""

from __future__ import annotations

import asyncio
import copy
import socket
import unittest

from onym import _tlv
from onym.push import (
    BoundError,
    ClosedError,
    Data,
    Id,
    NoParentError,
    RefusedError,
    ScopePublished,
    ScopeUnpublished,
    Status,
    Terms,
)
from onym.push.aio import App
from onym.push.call import (
    CLIENTS_MAX,
    OPEN_MAX,
    WAITING_MAX,
    CallRefusedError,
    Client,
    FullError,
    GoneError,
    LateError,
    LostError,
    MalformedReplyError,
    NoServerError,
    Request,
    Server,
)
from onym.push.live import WATCHED_MAX, Came, Watch, Went
from onym.push.message import TYPE, Kind, Message

SERVICE = Id.parse("/1/echo")
SOON = 0.005
PATIENCE = 60.0


class Node:
    """Says yes to every request, unless told otherwise, and notes what is published."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self.published: asyncio.Queue[tuple[Id, bytes]] = asyncio.Queue()
        self.asked: list[Message] = []
        self.status = Status.OK
        self.answers = True

    @classmethod
    async def start(cls, case: unittest.IsolatedAsyncioTestCase) -> tuple[Node, App]:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        node = cls(ours)
        serving = asyncio.create_task(node.serve())
        app = App(*await asyncio.open_connection(sock=theirs))
        await app.register("tester")

        async def end() -> None:
            await app.close()
            serving.cancel()
            ours.close()

        case.addAsyncCleanup(end)
        return node, app

    async def serve(self) -> None:
        loop, buffer = asyncio.get_running_loop(), bytearray()
        while octets := await loop.sock_recv(self.end, 1 << 16):
            buffer += octets
            while (found := _tlv.head(buffer)) and found[2] <= len(buffer):
                message = Message.parse(bytes(buffer[found[1] : found[2]]))
                assert found[0] == TYPE
                del buffer[: found[2]]
                if message.kind == Kind.PUBLISH:
                    self.published.put_nowait((Id(message.id), message.payload or b""))
                elif message.kind == Kind.REGISTER:
                    await self.say(
                        Message(
                            Kind.REGISTERED, message.tag, node=bytes(8), number=1, length=1 << 20
                        )
                    )
                elif self.answers:
                    self.asked.append(message)
                    await self.say(Message(Kind.STATUS, message.tag, status=self.status))

    async def say(self, message: Message) -> None:
        octets = b"".join(message.pieces())
        await asyncio.get_running_loop().sock_sendall(self.end, octets)

    async def says(self, kind: Kind, what: Id) -> None:
        await self.say(Message(kind, id=what.octets))

    async def publishes(self, what: Id, payload: bytes) -> None:
        await self.say(Message(Kind.DATA, id=what.octets, payload=payload))

    async def hears(self) -> tuple[Id, bytes]:
        return await asyncio.wait_for(self.published.get(), PATIENCE)


def number(n: int) -> bytes:
    return n.to_bytes(8, "big")


class ClientTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.node, app = await Node.start(self)
        self.client = await Client.over(app, SERVICE)
        token = app.info.token
        self.item = SERVICE / "~call" / token
        self.replies = SERVICE / "~reply" / token

    async def start(self) -> None:
        await self.node.says(Kind.START_PUBLISH, self.item)

    async def call(self, *said: bytes) -> bytes:
        """Calls; each of `said` comes behind the number, when the request was heard."""
        calling = asyncio.create_task(self.client.call(b"x", PATIENCE if said else SOON))
        item, asked = await self.node.hears()
        self.assertEqual((item, asked[8:]), (self.item, b"x"))
        for rest in said:
            await self.node.publishes(self.replies, asked[:8] + rest)
        return await calling

    async def test_each_end_of_a_request_is_an_error_of_its_own(self) -> None:
        with self.assertRaisesRegex(NoServerError, "/echo"):
            await self.client.call(b"x", SOON)
        await self.start()
        # What nobody waits for and what has no number is nothing.
        await self.node.publishes(self.replies, number(99) + b"\0of nobody")
        await self.node.publishes(self.replies, b"short")
        self.assertEqual(await self.call(b"\0yes", b"\0of a second server"), b"yes")
        with self.assertRaisesRegex(CallRefusedError, "because"):
            await self.call(b"\1because")
        for wrong in (b"\7", b""):
            with self.assertRaises(MalformedReplyError):
                await self.call(wrong)
        with self.assertRaises(LateError) as late:
            await self.call()
        self.assertNotIsInstance(late.exception, LostError)
        calling = asyncio.create_task(self.client.call(b"x", 0.2))
        _, asked = await self.node.hears()
        await self.node.say(Message(Kind.MISSED, number=3, status=Status.NO_RENDEZVOUS))
        await self.node.say(Message(Kind.MISSED, number=2))
        with self.assertRaises(LostError) as lost:
            await calling
        self.assertEqual(lost.exception.count, 5)
        with self.assertRaises(LateError) as late:
            await self.call()
        self.assertNotIsInstance(late.exception, LostError, "what was lost before is not its")
        calling = asyncio.create_task(self.client.call(b"x", PATIENCE))
        await self.node.hears()
        await self.node.says(Kind.STOP_PUBLISH, self.item)
        with self.assertRaises(GoneError):
            await calling
        with self.assertRaises(NoServerError):
            await self.client.call(b"x", SOON)
        await self.start()
        calling = asyncio.create_task(self.client.call(b"x", PATIENCE))
        await self.node.hears()
        self.node.end.shutdown(socket.SHUT_RDWR)
        with self.assertRaises(ClosedError):
            await calling
        with self.assertRaises(ClosedError):
            await self.client.call(b"x", PATIENCE)

    async def test_so_many_replies_are_waited_for_and_no_more(self) -> None:
        await self.start()
        calls = [asyncio.create_task(self.client.call(b"", PATIENCE)) for _ in range(OPEN_MAX)]
        asked = [(await self.node.hears())[1] for _ in calls]
        with self.assertRaises(FullError):
            await self.client.call(b"", PATIENCE)
        await self.node.publishes(self.replies, asked[7] + b"\0seven")
        self.assertEqual(await calls[7], b"seven")
        calls[7] = asyncio.create_task(self.client.call(b"", PATIENCE))
        self.assertEqual((await self.node.hears())[1], number(OPEN_MAX + 1))
        with self.assertRaises(FullError):
            await self.client.call(b"", PATIENCE)
        calls[0].cancel()
        with self.assertRaises(asyncio.CancelledError):
            await calls[0]
        with self.assertRaises(LateError):
            await self.client.call(b"", SOON)
        await self.node.says(Kind.STOP_PUBLISH, self.item)
        ends = await asyncio.gather(*calls[1:], return_exceptions=True)
        self.assertTrue(all(isinstance(end, GoneError) for end in ends))


class ServerTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.node, app = await Node.start(self)
        self.server = await Server.over(app, SERVICE)

    async def ask(self, client: int, n: int) -> Request:
        await self.node.publishes(SERVICE / "~call" / client, number(n) + b"asked")
        request = await self.server.request(PATIENCE)
        assert request is not None
        self.assertEqual((request.client, request.payload), (number(client), b"asked"))
        return request

    async def test_so_many_clients_are_known_and_who_asked_longest_ago_makes_room(self) -> None:
        requests = [await self.ask(client, 1) for client in range(CLIENTS_MAX)]
        await self.ask(0, 2)
        await self.ask(CLIENTS_MAX, 1)
        self.assertEqual((self.server.clients, self.server.unsent), (CLIENTS_MAX, 0))
        await requests[1].reply(b"to nobody")
        self.assertEqual(self.server.unsent, 1)
        await requests[0].reply(b"yes")
        await self.node.says(Kind.START_PUBLISH, SERVICE / "~reply" / 0)
        self.assertEqual(await self.node.hears(), (SERVICE / "~reply" / 0, number(1) + b"\0yes"))

    async def test_so_many_replies_wait_for_a_client_and_the_oldest_make_room(self) -> None:
        for n in range(1, WAITING_MAX + 4):
            await (await self.ask(5, n)).refuse("no")
        self.assertEqual(self.server.unsent, 3)
        item = SERVICE / "~reply" / 5
        await self.node.says(Kind.START_PUBLISH, item)
        for n in range(4, WAITING_MAX + 4):
            self.assertEqual(await self.node.hears(), (item, number(n) + b"\1no"))
        await (await self.ask(5, 99)).reply(b"now")
        self.assertEqual(await self.node.hears(), (item, number(99) + b"\0now"))
        await self.node.says(Kind.STOP_PUBLISH, item)
        await self.ask(6, 1)
        self.assertEqual(self.server.clients, 1)

    async def test_requests_that_nobody_takes_wait_in_the_node(self) -> None:
        for n in range(OPEN_MAX + 50):
            await self.node.publishes(SERVICE / "~call" / 5, number(n))
        for n in range(OPEN_MAX + 50):
            request = await self.server.request(PATIENCE)
            assert request is not None
            self.assertEqual(request._number, n)
        self.assertIsNone(await self.server.request(SOON))
        self.node.end.shutdown(socket.SHUT_RDWR)
        self.assertEqual([one async for one in self.server], [])
        with self.assertRaises(ClosedError):
            await self.server.request()


class AppTest(unittest.IsolatedAsyncioTestCase):
    async def test_requests_of_several_tasks_get_their_own_answers(self) -> None:
        node, app = await Node.start(self)
        ids = [Id.parse("/1") / n for n in range(100)]
        await asyncio.gather(*(app.subscribe_item(what) for what in ids))
        self.assertEqual(len(node.asked), 100)
        await app.retain(ids[0], 3, Terms(lifetime=1.5, deadline=60, priority=7))
        await app.retain(ids[0], 3, Terms(lifetime=0.0001))
        await app.retain(ids[0])
        await app.retain(ids[0], 3, Terms(waits=True))
        told = [(a.number, a.lifetime, a.deadline, a.priority, a.wait) for a in node.asked[100:]]
        wanted = [(3, 1500, 60_000, 7, 0), (3, 1, 0, 0, 0), (1, 0, 0, 0, 0), (3, 0, 0, 0, 1)]
        self.assertEqual(told, wanted)
        for status, kind in ((Status.NO_PARENT, NoParentError), (Status.BOUND, BoundError)):
            node.status = status
            with self.assertRaises(kind) as refused:
                await app.publish_item(ids[0])
            self.assertEqual(refused.exception.status, status)
            self.assertIsInstance(refused.exception, RefusedError)
            self.assertIs(type(copy.copy(refused.exception)), kind)
        self.assertIsNone(await app.event(SOON))
        await node.publishes(ids[3], b"x" * 20_000)
        self.assertEqual(await app.event(PATIENCE), Data(ids[3], b"x" * 20_000))

    async def test_whoever_watches_an_item_remembers_so_many_publishers(self) -> None:
        node, app = await Node.start(self)
        watch = await Watch.begin_aio(app, Id.parse("/1/temperature"))
        told = [(Kind(asked.kind), asked.text) for asked in node.asked]
        self.assertEqual(
            told[:2], [(Kind.PUBLISH_SCOPE, "~live"), (Kind.PUBLISH_SCOPE, "temperature")]
        )
        self.assertEqual(told[2][0], Kind.SUBSCRIBE_SCOPE)
        scope = Id.parse("/1/~live/temperature")
        self.assertEqual(watch.scope, scope)
        for n in range(WATCHED_MAX + 1):
            self.assertEqual(watch.change(ScopePublished(scope / n)), Came(number(n)))
        self.assertIsNone(watch.change(ScopePublished(scope / 1)), "it is known")
        self.assertIsNone(watch.change(ScopePublished(Id.parse("/1/2"))))
        self.assertEqual((len(watch.alive), watch.beyond), (WATCHED_MAX, 1))
        for n in (1, WATCHED_MAX):
            self.assertEqual(watch.change(ScopeUnpublished(scope / n)), Went(number(n)))
        self.assertEqual((len(watch.alive), watch.beyond), (WATCHED_MAX - 1, 0))
        self.assertIsNone(watch.change(ScopeUnpublished(scope / 1)))


class WordsTest(unittest.TestCase):
    def test_words_stay_with_an_identifier_that_grows(self) -> None:
        one = Id.parse("/roof") / "=cafe" / 7 / Id.parse("/x/1")
        self.assertEqual(one.path, "/roof/=cafe/0000000000000007/x/0000000000000001")
        self.assertEqual(Id.parse(one.path), one)
        self.assertEqual((one.parent.word, one.parent.parent.word), ("x", ""))
        self.assertEqual(Id(one.octets).path, str(one))


if __name__ == "__main__":
    unittest.main()
