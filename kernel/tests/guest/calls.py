# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Every call of clients/python/onym/kernel.py once, in the guest; a route to Face_local below /py is there."""

import sys
import time

sys.path.insert(0, "/data/python")
import onym.kernel as k


def fetch(name: str, timeout: float = 20.0) -> k.Packet | None:
    with k.Socket() as sock:
        sock.settimeout(timeout)
        sock.send_interest(name, flags=k.MUST_BE_FRESH, lifetime=int(timeout * 1000))
        try:
            return sock.receive()
        except TimeoutError:
            return None


sock = k.Socket(k.socket.SOCK_RAW)
sock.bind_name("/py")
k.publish(sock, "/py/item", b"published", freshness=1)
packet = fetch("/py/item")
assert packet and packet.type == k.DATA and packet.content == b"published", packet
k.tell_answered(sock)
# Who asks while what came before is fresh has that, and the publisher hears nothing.
begun, seen = time.monotonic(), None
while not seen:
    assert fetch("/py/item").content == b"published"
    seen = k.status(sock, 0.2)
    assert time.monotonic() - begun < 20, "an answer is not told"
assert seen.fields.get("satisfied") == 1, seen
sock.unpublish("/py/item")
time.sleep(0.01)
assert fetch("/py/item", 0.3) is None
seen = k.status(sock, 20.0)
assert seen and not seen.fields.get("satisfied"), seen

k.cast(sock, "/py/brief", b"cast", 3000, freshness=1)
assert fetch("/py/brief").content == b"cast"
begun = time.monotonic()
while fetch("/py/brief", 0.3):
    assert time.monotonic() - begun < 20, "a cast stays"

content = bytes(n * 31 >> 3 & 255 for n in range(30000))
assert k.pump(sock, "/py/object", content, 1000) == 30
meta = k.touch("/py/object", 20.0)
assert (meta.first, meta.last, meta.segment, meta.size) == (0, 29, 1000, 30000), meta
assert b"".join(k.request("/py/object", 20.0)) == content

signed = k.make_data("/py/signed", b"x", key=b"secret")
assert k.verify_data(signed, b"secret") and not k.verify_data(signed, b"other")
sock.close()
with k.watch("/py") as watched:
    assert fetch("/py/watched", 0.1) is None
    seen = k.status(watched, 20.0)
    assert seen and seen.type == k.INTEREST and seen.name == "/py/watched", seen
print("publish, cast, pump, touch, request, watch, status: kept")
