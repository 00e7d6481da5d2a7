"""Why a node refuses: a class for each status, so that a program can catch the one it expects."""

from __future__ import annotations

from onym.push.message import Status


class RefusedError(Exception):
    """A request was answered with another status than ok; what is raised is a class of its own."""

    def __new__(cls, status: int, what: str) -> RefusedError:  # noqa: ARG004
        """Makes an error of the class of that status."""
        is_any = cls is RefusedError
        return super().__new__(_CLASSES.get(status, cls) if is_any else cls)

    def __init__(self, status: int, what: str) -> None:
        known = status in Status.__members__.values()
        self.status = Status(status) if known else status
        text = self.status.name.lower().replace("_", " ") if known else f"{status}"
        super().__init__(f"{what}: {text}")

    def __reduce__(self) -> tuple[object, ...]:
        """Copies of it are made with its status."""
        return RefusedError, (int(self.status), str(self).rpartition(": ")[0])


class WrongIdsError(RefusedError):
    """The identifiers do not fit the request, or the word of one does not."""


class StrategyDiffersError(RefusedError):
    """The scope, or what is there already, has another strategy."""


class AlreadyError(RefusedError):
    """The application publishes, subscribed or registered already."""


class NoParentError(RefusedError):
    """The scope above is not there."""


class ItemHasIdError(RefusedError):
    """An item has this identifier."""


class NoScopeError(RefusedError):
    """There is no such scope."""


class ScopeHasIdError(RefusedError):
    """A scope has this identifier."""


class NoItemError(RefusedError):
    """There is no such item."""


class NeitherError(RefusedError):
    """The application neither publishes it nor subscribed to it."""


class UnknownRequestError(RefusedError):
    """The node does not know the request: it is of an earlier version."""


class OtherRendezvousError(RefusedError):
    """It spans roots of two rendezvous nodes."""


class BoundError(RefusedError):
    """A bound is reached."""


class ReservedError(RefusedError):
    """The root scope is not for applications."""


class NoRendezvousError(RefusedError):
    """No rendezvous is reached."""


class NotTogetherError(RefusedError):
    """The strategy does not know the request, or lacks what it needs."""


class StoppedError(RefusedError):
    """Nobody is subscribed, or another application of the node publishes."""


class TooLongError(RefusedError):
    """It does not fit a frame, and the strategy does not cut."""


class NotRegisteredError(RefusedError):
    """The application is not registered."""


class PushOffError(RefusedError):
    """The node has no push half."""


class WrongFaceError(RefusedError):
    """Applications are not served on a face of this kind."""


class OtherWordError(RefusedError):
    """Another word stands for this label there."""


_CLASSES: dict[int, type[RefusedError]] = {
    Status.WRONG_IDS: WrongIdsError,
    Status.STRATEGY_DIFFERS: StrategyDiffersError,
    Status.ALREADY: AlreadyError,
    Status.NO_PARENT: NoParentError,
    Status.ITEM_HAS_ID: ItemHasIdError,
    Status.NO_SCOPE: NoScopeError,
    Status.SCOPE_HAS_ID: ScopeHasIdError,
    Status.NO_ITEM: NoItemError,
    Status.NEITHER: NeitherError,
    Status.UNKNOWN_REQUEST: UnknownRequestError,
    Status.OTHER_RENDEZVOUS: OtherRendezvousError,
    Status.BOUND: BoundError,
    Status.RESERVED: ReservedError,
    Status.NO_RENDEZVOUS: NoRendezvousError,
    Status.NOT_TOGETHER: NotTogetherError,
    Status.STOPPED: StoppedError,
    Status.TOO_LONG: TooLongError,
    Status.NOT_REGISTERED: NotRegisteredError,
    Status.PUSH_OFF: PushOffError,
    Status.WRONG_FACE: WrongFaceError,
    Status.OTHER_WORD: OtherWordError,
}
