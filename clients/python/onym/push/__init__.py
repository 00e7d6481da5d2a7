"""Publish/subscribe: an application of the push half of a node (spec/push.md, sections 4 and 8)."""

from onym._tlv import MalformedError
from onym.push._inbox import (
    ClosedError,
    Data,
    Event,
    Lost,
    Missed,
    NodeInfo,
    Refused,
    RefusedError,
    ScopePublished,
    ScopeUnpublished,
    Sent,
    SilentError,
    StartPublish,
    StopPublish,
)
from onym.push.app import App
from onym.push.board import BoardError, BoardMissed, BoardPublisher, BoardSubscriber
from onym.push.ident import Id, algorithmic
from onym.push.message import Status, Strategy

__all__ = [
    "App",
    "BoardError",
    "BoardMissed",
    "BoardPublisher",
    "BoardSubscriber",
    "ClosedError",
    "Data",
    "Event",
    "Id",
    "Lost",
    "MalformedError",
    "Missed",
    "NodeInfo",
    "Refused",
    "RefusedError",
    "ScopePublished",
    "ScopeUnpublished",
    "Sent",
    "SilentError",
    "StartPublish",
    "Status",
    "StopPublish",
    "Strategy",
    "algorithmic",
]
