"""Identifiers: labels of 8 octets (P-1 to P-3)."""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass, field

from onym._tlv import MalformedError

LABEL = 8
LABELS_MAX = 255
WORD_MAX = 64
"""Most octets of a word."""


def label_of(word: str) -> bytes:
    """The label of a word: FNV-1a of 64 bits (P-72)."""
    value = 0xCBF29CE484222325
    for octet in word.encode():
        value = (value ^ octet) * 0x100000001B3 % (1 << 64)
    return value.to_bytes(LABEL, "big")


@dataclass(frozen=True, order=True)
class Id:
    """An absolute identifier; `Id()` is the empty prefix, the root.

    It may have words, the last of which is told to the node with a request. They are no part of it:
    `Id.parse("/=cafe") == Id(label_of("cafe"))`.
    """

    octets: bytes = b""
    words: tuple[str | None, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.octets) % LABEL or len(self.octets) > LABEL * LABELS_MAX:
            raise MalformedError("an identifier is 0 to 255 labels of 8 octets")

    @classmethod
    def parse(cls, text: str) -> Id:
        """The identifier that `/0001/3333` or `/sensors/roof` is.

        A word that would be read as hexadecimal digits has `=` in front.
        """
        if text == "/":
            return cls()
        if not text.startswith("/"):
            raise MalformedError(f"{text!r} does not begin with a slash")
        digits = set("0123456789abcdefABCDEF")
        octets, words = b"", []
        for part in text[1:].split("/"):
            if 1 <= len(part) <= 16 and set(part) <= digits:
                octets += int(part, 16).to_bytes(LABEL, "big")
                words.append(None)
                continue
            word = part.removeprefix("=")
            sound = word and not word.startswith(("=", "*")) and len(word.encode()) <= WORD_MAX
            if not sound or any(unicodedata.category(c) == "Cc" for c in word):
                raise MalformedError(
                    f"{text!r}: a part is 1 to 16 hexadecimal digits, or a word of 1 to 64 octets"
                )
            octets += label_of(word)
            words.append(word)
        return cls(octets, tuple(words))

    @property
    def word(self) -> str:
        """The word of its last label; empty: it has none."""
        return (self.words[-1] or "") if self.words else ""

    @property
    def labels(self) -> list[bytes]:
        """Its labels."""
        return [self.octets[i : i + LABEL] for i in range(0, len(self.octets), LABEL)]

    @property
    def parent(self) -> Id:
        """All labels but the last."""
        return Id(self.octets[:-LABEL], self.words[:-1])

    @property
    def last(self) -> Id:
        """The last label alone."""
        return Id(self.octets[-LABEL:], self.words[-1:])

    def __truediv__(self, label: str | int | bytes | Id) -> Id:
        """The identifier with more labels behind it."""
        match label:
            case Id():
                more = label
            case int():
                more = Id(label.to_bytes(LABEL, "big"))
            case bytes():
                more = Id(label)
            case _:
                more = Id.parse("/" + label)
        return Id(self.octets + more.octets, self._all_words() + more._all_words())

    def _all_words(self) -> tuple[str | None, ...]:
        return self.words or (None,) * len(self)

    @property
    def path(self) -> str:
        """As it is written with the words that it has: `/sensors/roof`, which `parse` reads."""
        digits = set("0123456789abcdefABCDEF")
        parts = []
        for label, word in zip(self.labels, self._all_words(), strict=True):
            if word is None:
                parts.append(label.hex().upper())
            else:
                marked = len(word) <= 2 * LABEL and set(word) <= digits
                parts.append(f"={word}" if marked else word)
        return "/" + "/".join(parts)

    def __len__(self) -> int:
        return len(self.octets) // LABEL

    def __str__(self) -> str:
        return "/" + "/".join(label.hex().upper() for label in self.labels)


def algorithmic(item: Id) -> Id:
    """The scope of an item's fragments: alg(I) of spec/push.md, section 5.1."""
    return item.parent / hashlib.sha256(item.octets).digest()[:LABEL]
