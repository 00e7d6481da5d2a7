"""Trust schemas: which key may sign which name, chains to an anchor, and signers that fit.

Signatures need the package `cryptography` (`pip install onym[trust]`).
"""

from onym.trust.chain import Certificate, UntrustedError, Validator
from onym.trust.objects import fetch, publish
from onym.trust.schema import Schema, SchemaError
from onym.trust.signer import NoSignerError, Signer, signer_for

__all__ = [
    "Certificate",
    "NoSignerError",
    "Schema",
    "SchemaError",
    "Signer",
    "UntrustedError",
    "Validator",
    "fetch",
    "publish",
    "signer_for",
]
