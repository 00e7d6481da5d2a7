"""Identifiers: labels of 8 octets (P-1 to P-3)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from onym._tlv import MalformedError

LABEL = 8
LABELS_MAX = 255


@dataclass(frozen=True, order=True)
class Id:
    """An absolute identifier; `Id()` is the empty prefix, the root."""

    octets: bytes = b""

    def __post_init__(self) -> None:
        if len(self.octets) % LABEL or len(self.octets) > LABEL * LABELS_MAX:
            raise MalformedError("an identifier is 0 to 255 labels of 8 octets")

    @classmethod
    def parse(cls, text: str) -> Id:
        """The identifier that `/0001/3333` is."""
        if text == "/":
            return cls()
        if not text.startswith("/"):
            raise MalformedError(f"{text!r} does not begin with a slash")
        labels = text[1:].split("/")
        digits = set("0123456789abcdefABCDEF")
        if any(not 1 <= len(label) <= 16 or not set(label) <= digits for label in labels):
            raise MalformedError(f"{text!r}: labels are 1 to 16 hexadecimal digits")
        return cls(b"".join(int(label, 16).to_bytes(LABEL, "big") for label in labels))

    @property
    def labels(self) -> list[bytes]:
        """Its labels."""
        return [self.octets[i : i + LABEL] for i in range(0, len(self.octets), LABEL)]

    @property
    def parent(self) -> Id:
        """All labels but the last."""
        return Id(self.octets[:-LABEL])

    @property
    def last(self) -> Id:
        """The last label alone."""
        return Id(self.octets[-LABEL:])

    def __truediv__(self, label: str | int | bytes | Id) -> Id:
        """The identifier with more labels behind it."""
        match label:
            case Id():
                return Id(self.octets + label.octets)
            case int():
                return Id(self.octets + label.to_bytes(LABEL, "big"))
            case bytes():
                return Id(self.octets + label)
            case _:
                return Id(self.octets + Id.parse("/" + label).octets)

    def __len__(self) -> int:
        return len(self.octets) // LABEL

    def __str__(self) -> str:
        return "/" + "/".join(label.hex().upper() for label in self.labels)


def algorithmic(item: Id) -> Id:
    """The scope of an item's fragments: alg(I) of spec/push.md, section 5.1."""
    return item.parent / hashlib.sha256(item.octets).digest()[:LABEL]
