"""Liveliness of publishers (spec/push.md, P-75): which publishers of an item there are.

>>> with App.open() as app:                                   # doctest: +SKIP
...     watch = Watch.begin(app, Id.parse("/sensors/roof/temperature"))
...     for event in app.events():
...         if change := watch.change(event):
...             print(change, len(watch.alive))
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from onym.push._inbox import Event, RefusedError, ScopePublished, ScopeUnpublished
from onym.push.ident import Id
from onym.push.message import Status, Strategy

if TYPE_CHECKING:
    from onym.push import aio
    from onym.push.app import App

WATCHED_MAX = 65_536
"""Publishers that a watch remembers; further ones are told and counted."""

WORD = "~live"


@dataclass(frozen=True)
class Came:
    """A publisher is there; `NodeInfo.token` of its application."""

    token: bytes


@dataclass(frozen=True)
class Went:
    """A publisher took that back, its connection ended or its node failed."""

    token: bytes


@dataclass
class Watch:
    """What the events of an application say of the publishers of an item."""

    scope: Id
    alive: set[bytes] = field(default_factory=set)
    beyond: int = 0

    @classmethod
    def begin(cls, app: App, item: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> Self:
        """Watches the publishers of `item`; the scopes above it are there."""
        for scope in _scopes(item):
            _join(app, scope, strategy)
        watch = cls(_scopes(item)[-1])
        app.subscribe_scope(watch.scope, strategy)
        return watch

    @classmethod
    async def begin_aio(
        cls, app: aio.App, item: Id, strategy: int = Strategy.DOMAIN_LOCAL
    ) -> Self:
        """As `begin`, for an application of asyncio."""
        for scope in _scopes(item):
            await app.join_scope(scope, strategy)
        watch = cls(_scopes(item)[-1])
        await app.subscribe_scope(watch.scope, strategy)
        return watch

    def change(self, event: Event) -> Came | Went | None:
        """What an event says of publishers, if it does."""
        if not isinstance(event, ScopePublished | ScopeUnpublished):
            return None
        if event.id.parent != self.scope:
            return None
        token = event.id.last.octets
        if isinstance(event, ScopePublished):
            if token in self.alive:
                return None
            if len(self.alive) < WATCHED_MAX:
                self.alive.add(token)
            else:
                self.beyond += 1
            return Came(token)
        if token in self.alive:
            self.alive.remove(token)
        elif self.beyond:
            self.beyond -= 1
        else:
            return None
        return Went(token)


def announce(app: App, item: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> bytes:
    """Says of `app`, which publishes `item`, that it lives; its token.

    It does until `withdraw`, or until its connection ends.
    """
    for scope in _scopes(item):
        _join(app, scope, strategy)
    app.publish_scope(_scopes(item)[-1] / app.info.token, strategy)
    return app.info.token


async def announce_aio(app: aio.App, item: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> bytes:
    """As `announce`, for an application of asyncio."""
    for scope in _scopes(item):
        await app.join_scope(scope, strategy)
    await app.publish_scope(_scopes(item)[-1] / app.info.token, strategy)
    return app.info.token


def withdraw(app: App, item: Id, strategy: int = Strategy.DOMAIN_LOCAL) -> None:
    """Takes back what `announce` said."""
    app.unpublish_scope(_scopes(item)[-1] / app.info.token, strategy)


def _scopes(item: Id) -> tuple[Id, Id]:
    live = item.parent / WORD
    return live, live / item.last


def _join(app: App, scope: Id, strategy: int) -> None:
    try:
        app.publish_scope(scope, strategy)
    except RefusedError as error:
        if error.status != Status.ALREADY:
            raise
