#!/usr/bin/env python3
"""Unmodified MQTT clients over two nodes (crates/mqtt).

    tests/mqtt/run.py ONYM

Two daemons with a bridge beside each. Debian's mosquitto_pub and mosquitto_sub, in both versions of
MQTT: what is published at one bridge comes at the other, by topic and by wildcard; what is retained
comes to who subscribes later; a will when a client is killed; and applications of Onym hear it, too.
Subscribers of QoS 1 and 2 acknowledge what they get; who does not gets as much as its Receive Maximum
says, and how much that was is told at the end; what it makes up frees nothing. Who keeps its session gets what was published while it
was away, and again what it did not acknowledge; one address does not push out what others left.
Exit status 77: no mosquitto_pub.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from bridges import SESSIONS, Bridges
from nodes import PATIENCE, until

# Lines are seen when they are said.
LINES = ["stdbuf", "-oL"]


class Subscriber:
    """A client of MQTT 5 that acknowledges when the test wants it."""

    def __init__(
        self, port: int, receive_max: int, stack: ExitStack, name: str = "", expiry: int = 0,
        source: str = "127.0.0.1",
    ) -> None:  # fmt: skip
        stream = socket.create_connection(("127.0.0.1", port), PATIENCE, (source, 0))
        self.stream = stack.enter_context(stream)
        self.file = stack.enter_context(self.stream.makefile("rb"))
        wants = b"\x11" + expiry.to_bytes(4, "big") + b"\x21" + receive_max.to_bytes(2, "big")
        flags = b"\0" if expiry else b"\2"
        who = len(name).to_bytes(2, "big") + name.encode()
        self.say(0x10, b"\0\4MQTT\5" + flags + b"\0\0" + bytes([len(wants)]) + wants + who)
        self.answer = self.hears()
        self.is_present = self.answer[1][0] == 1

    def subscribe(self, topic: str, quality: int = 1) -> None:
        name, of = topic.encode(), bytes([quality])
        self.say(0x82, b"\0\1\0" + len(name).to_bytes(2, "big") + name + of)
        assert self.hears() == (0x90, b"\0\1\0" + of), "it is granted"

    def say(self, kind: int, body: bytes) -> None:
        self.stream.sendall(bytes([kind, len(body)]) + body)

    def hears(self) -> tuple[int, bytes]:
        """The next packet, a short one."""
        kind, length = self.octets(2)
        return kind, self.octets(length)

    def octets(self, count: int) -> bytes:
        octets = self.file.read(count)
        assert len(octets) == count, "the connection ended"
        return octets

    def came(self, first: int = 0x32) -> list[int]:
        """The numbers of the publications that are there: each begins like this, or of QoS 1, for the first time."""
        self.say(0xC0, b"")
        numbers = []
        while (packet := self.hears()) != (0xD0, b""):
            kind, body = packet
            assert kind == first, hex(kind)
            at = 2 + int.from_bytes(body[:2], "big")
            numbers.append(int.from_bytes(body[at : at + 2], "big"))
        return numbers


class Network(Bridges):
    """Bridges with mosquitto's clients."""

    def listen(self, name: str, at: int, *words: str) -> Path:
        port = str(self.ports[at])
        ran, said = self.start(name, *LINES, "mosquitto_sub", "-p", port, "-d", "-v", *words)
        until(lambda: "Subscribed" in said.read_text(), f"{name}: {said.read_text()}")
        assert ran.poll() is None
        return said

    def say(self, at: int, *words: str) -> None:
        port = str(self.ports[at])
        subprocess.run(["mosquitto_pub", "-p", port, *words], check=True, timeout=PATIENCE)

    def hears(self, said: Path, *lines: str) -> None:
        def has_all() -> bool:
            heard = said.read_text().splitlines()
            return all(line in heard for line in lines)
        until(has_all, f"{lines} in {said}: {said.read_text()}")


def acknowledges(net: Network, version: str) -> None:
    """mosquitto_sub gets from the other bridge what is to be acknowledged, in order, and does."""
    for asked in "12":
        name, topic = f"sure-{version}-{asked}", f"sure/{version}/{asked}"
        said = net.listen(name, 1, "-V", version, "-q", asked, "-t", topic)
        assert f"Subscribed (mid: 1): {asked}" in said.read_text(), said.read_text()
        texts = [f"{name}-{number}" for number in range(100)]
        lines = net.folder / f"{name}.lines"
        lines.write_text("".join(f"{text}\n" for text in texts))
        with lines.open() as lines:
            command = ["mosquitto_pub", "-p", str(net.ports[0]), "-q", "1", "-l", "-t", topic]
            subprocess.run(command, stdin=lines, check=True, timeout=PATIENCE)
        net.hears(said, f"{topic} {texts[-1]}")
        heard = said.read_text().splitlines()
        assert [line.split()[1] for line in heard if line.startswith(topic)] == texts
        assert sum(f"received PUBLISH (d0, q{asked}" in line for line in heard) == len(texts)
        last = "sending PUBACK" if asked == "1" else "sending PUBCOMP"
        until(lambda said=said, last=last: said.read_text().count(last) == 100, "acknowledged")


def acknowledges_not(net: Network, stack: ExitStack) -> None:
    """Who does not acknowledge gets no more; what it makes up frees nothing."""
    mute = Subscriber(net.ports[1], 2, stack)
    assert mute.answer[1][1] == 0
    mute.subscribe("mute")
    for text in "12345":
        net.say(1, "-q", "1", "-t", "mute", "-m", text)
    assert mute.came() == [1, 2]
    mute.say(0x40, b"\0\7")
    mute.say(0x40, b"\xff\xff")
    assert mute.came() == []
    mute.say(0x40, b"\0\2")
    assert mute.came() == [3]
    mute.stream.shutdown(socket.SHUT_RDWR)
    none = Subscriber(net.ports[1], 0, stack)
    assert none.answer[1][1] == 0x82 and none.file.read(1) == b"", none.answer


def completes_not(net: Network, stack: ExitStack) -> None:
    """The same where a message comes once: it has its place until its client lets go of it, or declines."""
    mute = Subscriber(net.ports[1], 1, stack)
    mute.subscribe("once", 2)
    for text in "12":
        net.say(1, "-q", "2", "-t", "once", "-m", text)
    assert mute.came(0x34) == [1]
    mute.say(0x50, b"\0\7")
    assert mute.hears() == (0x62, b"\0\7\x92"), "there is no such one"
    mute.say(0x70, b"\0\1")
    mute.say(0x40, b"\0\1")
    for _ in range(2):
        mute.say(0x50, b"\0\1")
        assert mute.hears() == (0x62, b"\0\1")
    assert mute.came(0x34) == []
    mute.say(0x50, b"\0\1\x80")
    assert mute.came(0x34) == [2]
    mute.say(0x50, b"\0\2")
    assert mute.hears() == (0x62, b"\0\2")


def comes_back(net: Network, version: str, quality: str) -> None:
    """mosquitto_sub gets what came while it was away, and again what it did not acknowledge."""
    name = f"{version}-{quality}"
    topic, witness = f"kept/{name}", net.listen(f"witness-{name}", 1, "-t", f"kept/{name}")
    expiry = ["-x", "600"] if version == "mqttv5" else []
    words = ["-V", version, "-c", "-i", f"kept-{name}", *expiry, "-q", quality, "-t", topic]

    def publishes(*texts: str) -> None:
        for text in texts:
            net.say(0, "-q", "1", "-t", topic, "-m", text)
            net.hears(witness, f"{topic} {text}")

    net.listen(f"leaves-{name}", 1, *words)
    away = net.programs[f"leaves-{name}"]
    away.send_signal(signal.SIGSTOP)
    publishes("sent", "sent too")
    away.kill()
    away.wait(PATIENCE)
    publishes("missed", "missed too")
    said = net.listen(f"back-{name}", 1, *words)
    net.hears(said, f"{topic} missed too")
    heard = said.read_text().splitlines()
    texts = [line.partition(" ")[2] for line in heard if line.startswith(topic)]
    assert texts == ["sent", "sent too", "missed", "missed too"], heard
    for again, count in ((1, 2), (0, 2)):
        assert sum(f"received PUBLISH (d{again}, q{quality}" in line for line in heard) == count, heard


def keeps_sessions(net: Network, stack: ExitStack) -> None:
    """Sessions without connection are there or not as CONNACK says, and everybody has a share."""
    port = net.ports[1]

    def comes(name: str, expiry: int = 600, **options: str) -> Subscriber:
        return Subscriber(port, 9, stack, name, expiry, **options)

    first = comes("alice")
    assert not first.is_present
    first.subscribe("alice")
    second = comes("alice")
    assert second.is_present
    kind, reason = first.hears()
    assert (kind, reason[:1]) == (0xE0, b"\x8e") and first.file.read(1) == b"", "taken over"
    net.say(0, "-q", "1", "-t", "alice", "-m", "1")
    until(lambda: second.came() == [1], "it comes to who took over")
    second.stream.shutdown(socket.SHUT_RDWR)
    # More than there is room for, of one address; its own make room.
    for number in range(SESSIONS + 3):
        comes(f"many-{number}", source="127.0.0.2").stream.shutdown(socket.SHUT_RDWR)
    back = comes("alice")
    assert back.is_present and back.came(0x3A) == [1], "again"
    back.say(0x40, b"\0\1")
    back.stream.shutdown(socket.SHUT_RDWR)
    newest = comes(f"many-{SESSIONS + 2}", source="127.0.0.2")
    assert newest.is_present and not comes("many-0", source="127.0.0.2").is_present
    assert not comes("alice", 0).is_present, "with Clean Start"


def check(onym: str, stack: ExitStack) -> None:
    net = Network(onym, stack)
    for version in ("mqttv311", "mqttv5"):
        of = ["-V", version]
        exact = net.listen(f"exact-{version}", 1, *of, "-t", "house/roof")
        wild = net.listen(f"wild-{version}", 1, *of, "-t", "house/+")
        for quality in "012":
            text = f"{version}-{quality}"
            net.say(0, *of, "-q", quality, "-t", "house/roof", "-m", text)
            for said in (exact, wild):
                net.hears(said, f"house/roof {text}")
        # A topic beneath one that has values, and an empty level.
        net.say(0, *of, "-t", "house/roof/set", "-m", "x", "-r")
        net.say(0, *of, "-t", "/house//", "-m", "slashes", "-r")
        late = net.listen(f"late-{version}", 1, *of, "-t", "house/roof/set", "-t", "#")
        net.hears(late, "house/roof/set x", "/house// slashes")
        last = net.listen(f"last-{version}", 1, *of, "-t", "will")
        will = ["--will-topic", "will", "--will-payload", version]
        client, said = net.start(
            f"dying-{version}", *LINES, "mosquitto_sub", "-p", str(net.ports[0]), "-d", *of, *will, "-t", "x"
        )
        until(lambda said=said: "Subscribed" in said.read_text(), "who dies is there")
        client.kill()
        net.hears(last, f"will {version}")
        acknowledges(net, version)
        for quality in "12":
            comes_back(net, version, quality)
    acknowledges_not(net, stack)
    completes_not(net, stack)
    keeps_sessions(net, stack)
    # An application of Onym, which comes when it comes.
    path = "/mqtt/house/roof/~value"
    heard = net.start("native", *net.command(1), "subscribe", path, "--lines")[1]

    def hears_it() -> bool:
        net.say(0, "-t", "house/roof", "-m", "native")
        return "native" in heard.read_text()

    until(hears_it, f"{path}: {heard.read_text()}")
    # What is no MQTT ends its connection, and no other.
    with socket.create_connection(("127.0.0.1", net.ports[0]), PATIENCE) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert stranger.recv(100)[4:] == b""
    net.say(0, "-t", "house/roof", "-m", "still")
    net.hears(exact, "house/roof still")
    told = net.ended(1)
    assert "0 publications dropped for slow clients, 4 not acknowledged" in told, told
    print("MQTT clients of two bridges hear each other, in both versions")


def main() -> int:
    if not shutil.which("mosquitto_pub"):
        print("mosquitto_pub is not there (mosquitto-clients)")
        return 77
    with ExitStack() as stack:
        check(os.path.realpath(sys.argv[1]), stack)
    return 0


if __name__ == "__main__":
    sys.exit(main())
