"""Objects by name: fetched in segments, and published (asyncio, over a node's Unix socket)."""

from onym._tlv import MalformedError
from onym.pull.objects import Served, fetch, fetch_to, publish
from onym.sync._face import Face, NotRegisteredError, UnansweredError
from onym.sync._packet import name, uri

__all__ = [
    "Face",
    "MalformedError",
    "NotRegisteredError",
    "Served",
    "UnansweredError",
    "fetch",
    "fetch_to",
    "name",
    "publish",
    "uri",
]
