"""paho-mqtt, unmodified, against two bridges (crates/mqtt): tests/mqtt/paho.sh runs it.

In both versions of MQTT: each QoS of a publisher with each that a subscriber asks for, at its bridge
and at another one; what is retained, and that nothing is any more; wildcards; a will; and a session
that is kept when its connection fails and when its client leaves.
"""

import os
import socket
import sys
from contextlib import ExitStack

from bridges import Bridges
from nodes import PATIENCE, until
from paho.mqtt import client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

VERSIONS = {"3.1.1": mqtt.MQTTv311, "5": mqtt.MQTTv5}
QUALITIES = (0, 1, 2)


class Client:
    """A client as a program has it; what it hears is in order."""

    def __init__(
        self, port: int, version: str, stack: ExitStack, name: str = "", *,
        is_kept: bool = False, is_mute: bool = False, will: str = "",
    ) -> None:  # fmt: skip
        self.heard: list[mqtt.MQTTMessage] = []
        self.granted: list[int] = []
        # Of each connection: whether its session was there.
        self.welcomes: list[bool] = []
        number, how = VERSIONS[version], {}
        session = {"clean_session": not is_kept} if number == mqtt.MQTTv311 else {}
        if is_kept and number == mqtt.MQTTv5:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = 600
            how = {"clean_start": False, "properties": properties}
        self.paho = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, name, protocol=number, manual_ack=is_mute, **session
        )
        self.paho.on_connect = lambda _c, _u, flags, _r, _p: self.welcomes.append(flags.session_present)
        self.paho.on_message = lambda _c, _u, message: self.heard.append(message)
        self.paho.on_subscribe = lambda _c, _u, _m, codes, _p: self.granted.extend(c.value for c in codes)
        self.paho.reconnect_delay_set(1, 1)
        if will:
            self.paho.will_set(will, "dead", qos=1)
        self.paho.connect("127.0.0.1", port, **how)
        self.goes_on()
        stack.callback(self.leaves)

    def goes_on(self) -> None:
        before = len(self.welcomes)
        self.paho.loop_start()
        until(lambda: len(self.welcomes) > before, "CONNACK")

    def leaves(self) -> None:
        self.paho.disconnect()
        self.paho.loop_stop()

    def dies(self) -> None:
        """Without a word."""
        self.paho.loop_stop()
        self.paho.socket().shutdown(socket.SHUT_RDWR)

    def subscribe(self, topic: str, quality: int) -> None:
        before = len(self.granted)
        self.paho.subscribe(topic, quality)
        until(lambda: len(self.granted) > before, f"SUBACK of {topic}")

    def publish(self, topic: str, text: str, quality: int, *, retain: bool = False) -> None:
        """Until the bridge has it."""
        said = self.paho.publish(topic, text, quality, retain)
        said.wait_for_publish(PATIENCE)
        assert said.is_published(), f"{topic} {text}"

    def waits(self, topic: str, quality: int, says: "Client") -> None:
        """Subscribes, and waits until the other bridge knows of it: that takes a moment beyond SUBACK."""
        self.subscribe(topic, quality)

        def hears() -> bool:
            says.publish(topic, "probe", 0)
            return bool(self.heard)

        until(hears, f"a first publication of {topic}")
        says.publish(topic, "last probe", 1)
        until(lambda: self.heard[-1].payload == b"last probe", "the last probe")
        self.heard.clear()

    def has(self, *texts: str) -> bool:
        return [message.payload.decode() for message in self.heard] == list(texts)

    def hears(self, *texts: str) -> None:
        """These, in order, and nothing else."""
        def found() -> str:
            return f"{texts} in {[message.payload for message in self.heard]}"
        until(lambda: len(self.heard) >= len(texts), found())
        assert self.has(*texts), found()


def qualities(net: Bridges, version: str, stack: ExitStack) -> None:
    """A message comes once, with the lower QoS; one from elsewhere counts as QoS 2."""
    says = Client(net.ports[0], version, stack)
    for asked in QUALITIES:
        topic = f"quality/{version}/{asked}"
        far, near = Client(net.ports[1], version, stack), Client(net.ports[0], version, stack)
        far.waits(topic, asked, says)
        near.subscribe(topic, asked)
        assert near.granted == far.granted == [asked]
        texts = []
        for quality in QUALITIES:
            texts.append(f"{quality} to {asked}")
            says.publish(topic, texts[-1], quality)
            near.hears(*texts)
            far.hears(*texts)
        assert [message.qos for message in near.heard] == [min(of, asked) for of in QUALITIES]
        assert {message.qos for message in far.heard} == {asked}


def retained(net: Bridges, version: str, stack: ExitStack) -> None:
    """Who comes later gets the last one that is retained, at either bridge, and nothing once it was taken back."""
    topic = f"retained/{version}"
    says = Client(net.ports[0], version, stack)
    there = Client(net.ports[1], version, stack)
    there.waits(topic, 1, says)
    for text in "old", "new":
        says.publish(topic, text, 1, retain=True)
    there.hears("old", "new")
    assert not any(message.retain for message in there.heard)
    for port in net.ports:
        late = Client(port, version, stack)
        late.subscribe(topic, 1)
        late.hears("new")
        assert late.heard[0].retain and late.heard[0].qos == 1
    says.publish(topic, "", 1, retain=True)
    there.hears("old", "new", "")

    def hears_none(port: int) -> bool:
        none = Client(port, version, stack)
        none.subscribe(topic, 1)
        says.publish(topic, "now", 1)
        until(lambda: any(message.payload == b"now" for message in none.heard), "now")
        return none.has("now")

    # The word of it is an item of its own.
    for port in net.ports:
        until(lambda port=port: hears_none(port), f"nothing that is retained at {port}")


def wildcards(net: Bridges, version: str, stack: ExitStack) -> None:
    says = Client(net.ports[0], version, stack)
    one, all_of = (Client(net.ports[1], version, stack) for _ in range(2))
    one.subscribe(f"wild/{version}/+/light", 1)
    all_of.subscribe(f"wild/{version}/#", 1)
    topics = [f"wild/{version}/{rest}" for rest in ("hall/light", "hall", "hall/light/set", "attic/light")]
    for topic in topics:
        says.publish(topic, topic, 1)
    # It is in order for each topic.
    until(lambda: len(all_of.heard) == len(topics), "#")
    until(lambda: len(one.heard) == 2, "+")
    for client, meant in (all_of, topics), (one, [topics[0], topics[3]]):
        assert sorted(message.topic for message in client.heard) == sorted(meant)
        assert all(message.payload.decode() == message.topic for message in client.heard)


def wills(net: Bridges, version: str, stack: ExitStack) -> None:
    topic = f"will/{version}"
    last = Client(net.ports[1], version, stack)
    last.subscribe(topic, 2)
    Client(net.ports[0], version, stack, will=topic).leaves()
    Client(net.ports[0], version, stack, will=topic).dies()
    last.hears("dead")


def comes_back(net: Bridges, version: str, stack: ExitStack, quality: int) -> None:
    """A session outlives a connection that fails, and one that its client ends; of QoS 2 nothing comes twice."""
    topic = f"kept/{version}/{quality}"
    says = Client(net.ports[0], version, stack)
    witness = Client(net.ports[1], version, stack)
    kept = Client(net.ports[1], version, stack, f"kept-{version}-{quality}", is_kept=True, is_mute=True)
    witness.waits(topic, 0, says)
    kept.subscribe(topic, quality)
    says.publish(topic, "one", 2)
    kept.hears("one")
    kept.paho.socket().shutdown(socket.SHUT_RDWR)
    # paho connects again by itself.
    until(lambda: kept.welcomes == [False, True], "its session")
    first = ["one"] if quality == 2 else ["one", "one"]
    kept.hears(*first)
    assert [message.dup for message in kept.heard] == [False, True][: len(first)]
    kept.paho.ack(kept.heard[0].mid, quality)
    kept.leaves()
    for text in "two", "three":
        says.publish(topic, text, 2)
    witness.hears("one", "two", "three")
    kept.paho.reconnect()
    kept.goes_on()
    assert kept.welcomes == [False, True, True]
    kept.hears(*first, "two", "three")
    assert not any(message.dup for message in kept.heard[len(first) :])


def check(onym: str, stack: ExitStack) -> None:
    net = Bridges(onym, stack)
    for version in VERSIONS:
        for case in qualities, retained, wildcards, wills:
            with ExitStack() as clients:
                case(net, version, clients)
        for quality in 1, 2:
            with ExitStack() as clients:
                comes_back(net, version, clients, quality)
    told = net.ended(1)
    assert "0 publications dropped" in told, told
    print("paho-mqtt publishes and subscribes at two bridges, in both versions and each QoS")


if __name__ == "__main__":
    with ExitStack() as everything:
        check(os.path.realpath(sys.argv[1]), everything)
