"""Certificates, and the chain from a Data to an anchor."""

from __future__ import annotations

import base64
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, Self

from onym._tlv import MalformedError, element, elements, read_nni
from onym.sync._packet import DATA, NAME, uri
from onym.trust.schema import Schema, components

DEPTH_MAX = 16
"""Certificates between a Data and its anchor."""
CACHE_MAX = 1024
"""Certificates that are kept as verified; the one that was added first goes."""

_KEY = element(8, b"KEY")
_RSA, _ECDSA, _ED25519 = 1, 3, 5
_CONTENT_KEY = 2


class UntrustedError(Exception):
    """A Data, or a certificate on its way to an anchor, is not believed."""


class Source(Protocol):
    """Where certificates come from; `onym.sync.Face` is one."""

    async def request_packet(self, wanted: bytes, *, newest: bool = False) -> bytes:
        """The Data of this name, or with `newest` a fresh one under it."""


@dataclass(frozen=True)
class Signed:
    """A Data as it is verified."""

    name: bytes
    content: bytes
    content_type: int
    locator: bytes
    signature_type: int
    signature: bytes
    covered: bytes
    validity: tuple[int, int] | None

    @classmethod
    def read(cls, wire: bytes) -> Self:
        """Reads a Data that a private key signed."""
        whole = list(elements(wire))
        if len(whole) != 1 or whole[0][0] != DATA:
            raise MalformedError("expected one Data")
        value = whole[0][1]
        fields = list(elements(value))
        if len(fields) < 3 or fields[0][0] != NAME or [t for t, _ in fields[-2:]] != [0x16, 0x17]:
            raise MalformedError("a Data without name or signature, or with more behind them")
        found = dict(fields)
        info = dict(elements(found[0x16]))
        locator = dict(elements(info.get(0x1C, b""))).get(NAME)
        kind = read_nni(info.get(0x1B, b""))
        if kind not in (_RSA, _ECDSA, _ED25519) or locator is None:
            raise UntrustedError(f"{uri(fields[0][1])}: signature type {kind} names no key")
        meta = dict(elements(found.get(0x14, b"")))
        content_type = read_nni(meta[0x18]) if 0x18 in meta else 0
        covered = value[: -len(element(0x17, found[0x17]))]
        validity = _period(info[0xFD]) if 0xFD in info else None
        content = found.get(0x15, b"")
        return cls(fields[0][1], content, content_type, locator, kind, found[0x17], covered, validity)


def _period(value: bytes) -> tuple[int, int]:
    fields = dict(elements(value))
    moments = []
    for typ in (0xFE, 0xFF):
        text = fields.get(typ, b"").decode("ascii", "replace")
        try:
            if len(text) != 15:
                raise ValueError
            moment = datetime.strptime(text, "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
        except ValueError:
            raise MalformedError(f"{text!r} is not a date of a certificate") from None
        moments.append(int(moment.timestamp()))
    if moments[1] < moments[0]:
        raise MalformedError("a certificate ends before it begins")
    return moments[0], moments[1]


def key_of(locator: bytes) -> bytes | None:
    """The key that a locator names: 2, 3 or 4 components behind the identity."""
    parts = components(locator)
    for behind in (4, 3, 2):
        if len(parts) >= behind and parts[-behind] == _KEY:
            return b"".join(parts[: len(parts) - behind + 2])
    return None


class Certificate:
    """A certificate that was checked whole; whether it is valid now is a question with a time."""

    def __init__(self, wire: bytes) -> None:
        """Reads it. Raises `MalformedError` or `UntrustedError`."""
        self.wire = wire
        self.signed = Signed.read(wire)
        parts = components(self.signed.name)
        if len(parts) < 4 or parts[-4] != _KEY or self.signed.content_type != _CONTENT_KEY:
            raise MalformedError(f"{uri(self.signed.name)} is no certificate")
        if self.signed.validity is None:
            raise MalformedError(f"{uri(self.signed.name)} has no validity period")
        self.name = self.signed.name
        self.key_name = b"".join(parts[:-2])
        self.validity = self.signed.validity
        self._key = _public_key(self.signed.content)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads a file of base64, as `onym cert export` writes it."""
        return cls(base64.b64decode("".join(Path(path).read_text().split()), validate=True))

    def verifies(self, signed: Signed) -> bool:
        """Whether this key made the signature, of the type that fits the key."""
        return _verify(self._key, signed)

    def has_key_of(self, other: Certificate) -> bool:
        """Whether both are of the same public key."""
        return self.signed.content == other.signed.content

    def check_time(self, now: float) -> None:
        """Raises `UntrustedError` where `now` is outside of its validity period."""
        begins, ends = self.validity
        if now < begins:
            raise UntrustedError(f"{uri(self.name)} is not valid yet")
        if now >= ends + 1:
            raise UntrustedError(f"{uri(self.name)} has expired")


def _public_key(spki: bytes) -> object:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa  # noqa: PLC0415

    try:
        key = serialization.load_der_public_key(spki)
    except Exception as error:  # noqa: BLE001 - it raises several kinds
        raise MalformedError(f"the key of a certificate cannot be used: {error}") from None
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key
    if isinstance(key, rsa.RSAPublicKey) and 2048 <= key.key_size <= 8192:
        return key
    raise MalformedError("the key of a certificate is of no kind that is used")


def _verify(key: object, signed: Signed) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa  # noqa: PLC0415

    kind, value, octets = signed.signature_type, signed.signature, signed.covered
    try:
        if isinstance(key, ec.EllipticCurvePublicKey) and kind == _ECDSA:
            key.verify(value, octets, ec.ECDSA(hashes.SHA256()))
        elif isinstance(key, ed25519.Ed25519PublicKey) and kind == _ED25519:
            key.verify(value, octets)
        elif isinstance(key, rsa.RSAPublicKey) and kind == _RSA:
            key.verify(value, octets, padding.PKCS1v15(), hashes.SHA256())
        else:
            return False
    except InvalidSignature:
        return False
    return True


class Validator:
    """Believes Data by a schema, anchors and the certificates between.

    Each certificate is fetched and verified once while it is kept; at every Data the times of its
    whole chain are looked at.
    """

    def __init__(self, schema: Schema, anchors: list[Certificate]) -> None:
        """Raises `UntrustedError` for an anchor that is no root of the schema, or none at all."""
        for anchor in anchors:
            if not schema.takes_anchor(anchor.name):
                raise UntrustedError(f"{uri(anchor.name)} is no root of the schema")
        if not anchors:
            raise UntrustedError("without an anchor nothing can be believed")
        self._schema = schema
        self._anchors = anchors
        # With each the certificates of its chain, the anchor last.
        self._cache: OrderedDict[bytes, list[Certificate]] = OrderedDict()

    @property
    def schema(self) -> Schema:
        """The rules."""
        return self._schema

    async def judge(self, wire: bytes, source: Source, now: float | None = None) -> list[Certificate]:
        """The chain of a Data that is believed. Raises `UntrustedError` with what is wrong."""
        now = time.time() if now is None else now
        signed = Signed.read(wire)
        chain = await self._chain(signed, source, now, [])
        for certificate in chain:
            certificate.check_time(now)
        if not chain[0].verifies(signed):
            raise UntrustedError(f"{uri(signed.name)}: the signature is wrong")
        return chain

    async def _chain(
        self, signed: Signed, source: Source, now: float, seen: list[bytes]
    ) -> list[Certificate]:
        """The certificates from the signer's to an anchor, their signatures and rules checked."""
        locator = signed.locator
        key = key_of(locator)
        if key is None:
            raise UntrustedError(f"{uri(signed.name)}: {uri(locator)} names no key")
        # A rule that is about the name alone needs no fetch.
        is_full = len(components(locator)) - len(components(key)) == 2
        if is_full and not self._schema.allows(signed.name, locator):
            raise self._denied(signed.name, locator)
        for anchor in self._anchors:
            if anchor.name.startswith(locator) and self._schema.allows(signed.name, anchor.name):
                return [anchor]
        kept = self._kept(locator, now)
        if kept is not None and self._schema.allows(signed.name, kept[0].name):
            return kept
        if len(seen) >= DEPTH_MAX:
            raise UntrustedError(f"{uri(signed.name)}: more than {DEPTH_MAX} certificates to an anchor")
        if key in seen:
            raise UntrustedError(f"{uri(key)} vouches for itself over others")
        certificate = Certificate(await source.request_packet(locator, newest=not is_full))
        if not certificate.name.startswith(locator) or certificate.key_name != key:
            raise UntrustedError(f"{uri(certificate.name)} came for {uri(locator)}")
        if not self._schema.allows(signed.name, certificate.name):
            raise self._denied(signed.name, certificate.name)
        certificate.check_time(now)
        if key_of(certificate.signed.locator) == key:
            raise UntrustedError(f"{uri(certificate.name)} is self-signed and no anchor")
        above = await self._chain(certificate.signed, source, now, [*seen, key])
        if not above[0].verifies(certificate.signed):
            raise UntrustedError(f"{uri(certificate.name)}: the signature is wrong")
        chain = [certificate, *above]
        self._cache[certificate.name] = chain
        while len(self._cache) > CACHE_MAX:
            self._cache.popitem(last=False)
        return chain

    def _kept(self, locator: bytes, now: float) -> list[Certificate] | None:
        """The chain of a certificate that this locator names; one that is over is forgotten."""
        exact = self._cache.get(locator)
        found = [(locator, exact)] if exact is not None else list(self._cache.items())
        for name, chain in found:
            if name.startswith(locator):
                if all(c.validity[0] <= now < c.validity[1] + 1 for c in chain):
                    return chain
                del self._cache[name]
        return None

    @staticmethod
    def _denied(packet: bytes, key: bytes) -> UntrustedError:
        return UntrustedError(f"no rule lets {uri(key)} sign {uri(packet)}")
