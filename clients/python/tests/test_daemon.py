"""The push client against a daemon: with ONYM set to the path of the `onym` program."""

import asyncio
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from contextlib import contextmanager

from onym.push import (
    App,
    Data,
    Id,
    RefusedError,
    StartPublish,
    Status,
    StopPublish,
    Strategy,
    Terms,
    aio,
)
from onym.push.call import CallRefusedError, Client, GoneError, NoServerError, Server
from onym.push.live import Came, Watch, Went, announce_aio

PROGRAM = os.environ.get("ONYM")
LONG = 30.0


@contextmanager
def daemon(*more: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/node.sock"
        settings = [
            f'faces.unix.path="{path}"',
            "faces.udp.listen=[]",
            "faces.tcp.listen=[]",
            "faces.websocket.listen=[]",
            "push.enabled=true",
            *more,
        ]
        words = [word for setting in settings for word in ("--set", setting)]
        node = subprocess.Popen(
            [PROGRAM or "onym", "daemon", *words], stderr=subprocess.PIPE, text=True
        )
        try:
            assert node.stderr is not None
            said = []
            for line in node.stderr:
                said.append(line)
                if "ready" in line:
                    break
            else:
                raise AssertionError("the daemon did not come up: " + "".join(said))
            yield f"unix://{path}"
        finally:
            node.terminate()
            node.communicate(timeout=LONG)


def way_of(node: str, item: str) -> list[str]:
    """Table and filter of the tree of an item."""
    words = [PROGRAM or "onym", "--node", node, "--json", "topology", "tree", item]
    said = subprocess.run(words, check=True, stdout=subprocess.PIPE, timeout=LONG).stdout
    route = json.loads(said)[0]["trees"][0]["route"]
    return [str(route["table"]), str(route["filter"])]


BY_STRATEGY = [
    "DOMAIN_LOCAL: to subscribers",
    "LINK_LOCAL: to a neighbour",
    "BROADCAST: to all neighbours",
    "IMPLICIT: by a filter",
    "ALGORITHMIC_DOMAIN: the end",
]


@contextmanager
def two_nodes() -> Iterator[tuple[str, str]]:
    """Two neighbours; the first one, `a`, has all roles, the other one is `b`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    first = ["push.node=a", "push.inside=1"]
    first.append(f'push.link=[{{face="tcp4://127.0.0.1:{port}", number=2}}]')
    second = ["push.node=b", "push.inside=3", "push.roles=[]"]
    second += [f"faces.tcp.listen=127.0.0.1:{port}"]
    second += ['push.link=[{face="tcp4://127.0.0.1:0", number=4}]']
    with daemon(*second) as there, daemon(*first) as here:
        yield here, there


def strategies(program: list[str], here: str, there: str) -> list[str]:
    """What the example `program` says that it heard, after it published by every strategy."""
    listen = [*program, there, "listen"]
    with subprocess.Popen(listen, stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout is not None
        assert listener.stdout.readline() == "ready\n"
        with App.open(here, "another") as another:
            another.publish_scope(Id.parse("/1"))
            another.publish_item(Id.parse("/1/2"))
            assert another.event(LONG) == StartPublish(Id.parse("/1/2"))
            way = way_of(here, "/1/2")
        subprocess.run([*program, here, "publish", "b", *way], check=True, timeout=LONG)
        said, _ = listener.communicate(timeout=LONG)
    return said.splitlines()


@unittest.skipUnless(PROGRAM, "ONYM does not name the program")
class DaemonTest(unittest.TestCase):
    def test_what_one_application_publishes_another_gets_whatever_its_length(self) -> None:
        scope, item = Id.parse("/1"), Id.parse("/1/2")
        for strategy in (Strategy.NODE_LOCAL, Strategy.DOMAIN_LOCAL):
            with daemon() as node, App.open(node, "a") as giver, App.open(node, "b") as taker:
                self.assertEqual(giver.info.node, taker.info.node)
                giver.publish_scope(scope, strategy)
                giver.publish_item(item, strategy)
                taker.subscribe_item(item, strategy)
                self.assertEqual(giver.event(LONG), StartPublish(item))
                for payload in (b"", b"x", os.urandom(100_000)):
                    self.assertEqual(giver.publish_told(item, payload, strategy).local, 1)
                    self.assertEqual(taker.event(LONG), Data(item, payload))
                taker.unsubscribe_item(item, strategy)
                self.assertEqual(giver.event(LONG), StopPublish(item))
                with self.assertRaises(RefusedError) as caught:
                    giver.publish_told(item, b"late", strategy)
                self.assertEqual(caught.exception.status, Status.STOPPED)

    def test_a_publisher_waits_for_a_subscriber_of_its_node_that_is_behind(self) -> None:
        with daemon("push.hold_ms=20000") as node, App.open(node) as giver, App.open(node) as taker:
            item, strategy = Id.parse("/1/2"), Strategy.NODE_LOCAL
            giver.publish_scope(Id.parse("/1"), strategy)
            giver.publish_item(item, strategy)
            giver.retain(item, 1, Terms(waits=True))
            taker.subscribe_item(item, strategy)
            payloads = [bytes([n]) * 300_000 for n in range(4)]
            # One is more than the node tells at a time, so two wait, one more than it retains.
            for payload in payloads[:3]:
                giver.publish(item, payload, strategy)
            for payload in payloads[:3]:
                self.assertEqual(taker.event(LONG), Data(item, payload))
            giver.publish(item, payloads[3], strategy)
            self.assertEqual(taker.event(LONG), Data(item, payloads[3]))

    def test_what_cannot_be_is_refused_with_the_reason(self) -> None:
        with daemon() as node, App.open(node) as app:
            with self.assertRaises(RefusedError) as caught:
                app.publish_item(Id.parse("/7/8"))
            self.assertEqual(caught.exception.status, Status.NO_PARENT)
            with self.assertRaises(RefusedError) as caught:
                app.publish_scope(Id.parse("/FFFFFFFFFFFFFFFF"))
            self.assertEqual(caught.exception.status, Status.RESERVED)

    def test_who_leaves_takes_everything_back(self) -> None:
        scope, item = Id.parse("/1"), Id.parse("/1/2")
        with daemon() as node, App.open(node) as giver:
            giver.publish_scope(scope)
            giver.publish_item(item)
            taker = App.open(node)
            taker.subscribe_item(item)
            self.assertEqual(giver.event(LONG), StartPublish(item))
            taker.leave()
            self.assertEqual(giver.event(LONG), StopPublish(item))

    def test_subscribers_are_told_by_which_strategy_a_publication_came(self) -> None:
        example = pathlib.Path(__file__).parent.parent / "examples" / "strategies.py"
        with two_nodes() as (here, there):
            said = strategies([sys.executable, str(example)], here, there)
        self.assertEqual(said, BY_STRATEGY)

    def test_requests_are_replied_to_and_publishers_come_and_go_over_two_nodes(self) -> None:
        async def both(here: str, there: str) -> None:
            service, item = Id.parse("/services/sort"), Id.parse("/services/temperature")
            strategy = Strategy.DOMAIN_LOCAL
            watching = await aio.App.open(here)
            await watching.publish_scope(service.parent)
            watch = await Watch.begin_aio(watching, item)
            async with await aio.App.open(there) as publisher:
                await publisher.publish_scope(service.parent)
                await publisher.publish_item(item)
                token = await announce_aio(publisher, item)
                self.assertEqual(await change(watching, watch), Came(token))
            self.assertEqual(await change(watching, watch), Went(token))
            serving = await aio.App.open(here)
            await serving.publish_scope(service.parent)
            asking = await aio.App.open(there)
            await asking.publish_scope(service.parent)
            server = await Server.over(serving, service, strategy)
            client = await Client.over(asking, service, strategy)

            async def serve() -> None:
                async for request in server:
                    if request.payload == b"no":
                        await request.refuse("because")
                    else:
                        await request.reply(request.payload[::-1])

            task = asyncio.create_task(serve())
            long = os.urandom(100_000)
            payloads = [b"", b"ab", long, *(bytes([n]) * n for n in range(200))]
            replies = await asyncio.gather(*(client.call(p, LONG) for p in payloads))
            self.assertEqual(replies, [payload[::-1] for payload in payloads])
            with self.assertRaisesRegex(CallRefusedError, "because"):
                await client.call(b"no", LONG)
            await server.close()
            await task
            with self.assertRaises((GoneError, NoServerError)):
                await client.call(b"x", 0.2)
            await client.close()
            await watching.close()

        async def change(app: aio.App, watch: Watch) -> Came | Went:
            while (event := await app.event(LONG)) is not None:
                if told := watch.change(event):
                    return told
            raise AssertionError("no change")

        with two_nodes() as (here, there):
            asyncio.run(both(here, there))

    @unittest.skipUnless(shutil.which("make") and shutil.which("cc"), "make or cc is missing")
    def test_the_library_for_c_publishes_by_every_strategy(self) -> None:
        library = pathlib.Path(__file__).parents[2] / "c"
        with tempfile.TemporaryDirectory() as out, two_nodes() as (here, there):
            programs = [f"{out}/push_strategies", f"{out}/tests/push"]
            flags = "CFLAGS=-O1 -Wall -Wextra -Werror"
            make = ["make", "-s", "-C", str(library), f"OUT={out}", flags, *programs]
            subprocess.run(make, check=True, timeout=LONG)
            said = strategies([programs[0]], here, there)
            subprocess.run([programs[1], here], check=True, timeout=LONG)
        named = [line.partition(":") for line in said]
        self.assertEqual(
            [name.upper().replace("-", "_") + colon + text for name, colon, text in named],
            BY_STRATEGY,
        )


    @unittest.skipUnless(shutil.which("make") and shutil.which("cc"), "make or cc is missing")
    def test_the_library_for_c_fetches_and_serves_over_a_node(self) -> None:
        library = pathlib.Path(__file__).parents[2] / "c"
        content = os.urandom(3_000_000)
        with tempfile.TemporaryDirectory() as out, daemon() as node:
            env = os.environ | {"HOME": out, "NDN_CLIENT_TRANSPORT": node}
            programs = [f"{out}/{name}" for name in ("get", "put", "tests/pull")]
            flags = "CFLAGS=-O1 -Wall -Wextra -Werror"
            make = ["make", "-s", "-C", str(library), f"OUT={out}", flags, *programs]
            subprocess.run(make, check=True, timeout=LONG)
            subprocess.run([programs[2], node], check=True, timeout=LONG)
            source = pathlib.Path(out, "source")
            source.write_bytes(content)
            onym = PROGRAM or "onym"
            puts = (
                ([onym, "put", "/rust", str(source)], "ready"),
                ([programs[1], "/c", str(source)], "serving"),
            )
            gets = ([programs[0]], [onym, "get"])
            for words, word in puts:
                put = subprocess.Popen(words, env=env, text=True, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT)  # fmt: skip
                try:
                    assert put.stdout is not None
                    while word not in (line := put.stdout.readline()):
                        self.assertTrue(line, f"{words[0]} ended")
                    for get in gets:
                        got = subprocess.run(
                            [*get, words[-2]], env=env, check=True, timeout=LONG,
                            stdout=subprocess.PIPE,
                        )  # fmt: skip
                        self.assertEqual(got.stdout, content)
                finally:
                    put.terminate()
                    put.communicate(timeout=LONG)
            gone = subprocess.run([programs[0], "/nobody"], env=env, timeout=LONG)
            self.assertEqual(gone.returncode, 5)


class LibraryTest(unittest.TestCase):
    @unittest.skipUnless(all(map(shutil.which, ("make", "cc", "pkg-config"))), "no pkg-config")
    def test_the_library_for_c_is_found_where_it_was_installed(self) -> None:
        library = pathlib.Path(__file__).parents[2] / "c"
        with tempfile.TemporaryDirectory() as out:
            where = [f"OUT={out}/built", f"PREFIX={out}"]
            make = ["make", "-s", "-C", str(library), "install", *where]
            subprocess.run(make, check=True, timeout=LONG)
            ask = ["pkg-config", "--cflags", "--libs", "onym"]
            environment = os.environ | {"PKG_CONFIG_PATH": f"{out}/lib/pkgconfig"}
            told = subprocess.run(ask, check=True, stdout=subprocess.PIPE, env=environment).stdout
            for name in ("push_strategies", "file_fetch", "get"):
                source = library / "examples" / f"{name}.c"
                flags = [*told.decode().split(), f"-Wl,-rpath,{out}/lib"]
                subprocess.run(["cc", "-o", f"{out}/{name}", source, *flags], check=True)
                # Without arguments each says what it wants.
                ran = subprocess.run([f"{out}/{name}"], stderr=subprocess.DEVNULL)
                self.assertGreater(ran.returncode, 0)


if __name__ == "__main__":
    unittest.main()
