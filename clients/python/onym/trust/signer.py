"""Who signs: a private key with its certificate, chosen by a schema."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Self

from onym._tlv import element, nni
from onym.sync._packet import DATA, NAME, SEGMENT, numbered, uri
from onym.trust.chain import Certificate, Signed, UntrustedError
from onym.trust.schema import Schema


class NoSignerError(Exception):
    """No key at hand may sign a name; the text says why of each."""


class Signer:
    """A private key, and the certificate that its signatures name."""

    def __init__(self, key: bytes, certificate: Certificate) -> None:
        """`key` is PKCS#8 without a passphrase, as PEM or DER. Raises `UntrustedError` when it is another one."""
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra

        load = (
            serialization.load_pem_private_key
            if key.lstrip().startswith(b"-----")
            else serialization.load_der_private_key
        )
        self._key = load(key, None)
        self.certificate = certificate
        if not certificate.verifies(Signed.read(self.data(b"", b""))):
            raise UntrustedError(f"{uri(certificate.name)} is not of this private key")

    @classmethod
    def load(cls, key: str | Path, certificate: str | Path) -> Self:
        """Reads the files that `onym key export --as pem` and `onym cert export` write."""
        return cls(Path(key).read_bytes(), Certificate.load(certificate))

    def data(
        self,
        named: bytes,
        content: bytes,
        freshness_ms: int = 0,
        last_segment: int | None = None,
    ) -> bytes:
        """A Data with this key's signature; it names the whole certificate, as every peer takes it."""
        meta = element(0x19, nni(freshness_ms)) if freshness_ms else b""
        if last_segment is not None:
            meta += element(0x1A, numbered(SEGMENT, last_segment))
        kind, sign = self._kind()
        info = element(0x1B, nni(kind)) + element(0x1C, element(NAME, self.certificate.name))
        signed = element(NAME, named) + (element(0x14, meta) if meta else b"")
        signed += element(0x15, content) + element(0x16, info)
        return element(DATA, signed + element(0x17, sign(signed)))

    def _kind(self):  # type: ignore[no-untyped-def]  # noqa: ANN202 - types of an extra
        from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding  # noqa: PLC0415

        key = self._key
        if isinstance(key, ed25519.Ed25519PrivateKey):
            return 5, key.sign
        if isinstance(key, ec.EllipticCurvePrivateKey):
            return 3, lambda octets: key.sign(octets, ec.ECDSA(hashes.SHA256()))
        return 1, lambda octets: key.sign(octets, padding.PKCS1v15(), hashes.SHA256())


def signer_for(
    schema: Schema, signers: list[Signer], named: bytes, now: float | None = None
) -> Signer:
    """The first of `signers` that the schema lets sign Data of this name, and that is valid now."""
    now = time.time() if now is None else now
    why = []
    for signer in signers:
        name = signer.certificate.name
        try:
            signer.certificate.check_time(now)
        except UntrustedError as error:
            why.append(str(error))
            continue
        if schema.allows(named, name):
            return signer
        why.append(f"no rule lets {uri(name)} sign it")
    raise NoSignerError(f"{uri(named)}: " + ("; ".join(why) or "there is no key"))
