"""Groups that stay in step: State Vector Sync, version 3, over a node's Unix socket (asyncio)."""

from onym._tlv import MalformedError
from onym.sync._face import Face, NotRegisteredError, UnansweredError
from onym.sync._packet import name, uri
from onym.sync.group import Group, Publication
from onym.sync.svs import Svs, Update, Vector

__all__ = [
    "Face",
    "Group",
    "MalformedError",
    "NotRegisteredError",
    "Publication",
    "Svs",
    "UnansweredError",
    "Update",
    "Vector",
    "name",
    "uri",
]
