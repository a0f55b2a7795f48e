"""Receipts of deletions, signed so that a third party can tell a real one (Ed25519, RFC 8032).

The signature is over the receipt without its member ``signature``, in canonical JSON (RFC 8785; a
receipt holds text, whole numbers, lists and objects only). The key is derived from the service's
secret: as long as the secret stays, so does the key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from domain.errors import LikenessError
from service.store.erasure import SCHEMA

ALGORITHM = "Ed25519"
_PURPOSE = b"likeness deletion receipts 1"
_SIGNATURE, _KEY = "signature", "signing_key"


class NotAReceipt(LikenessError):
    """What was given is not a signed receipt of this service's kind."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The half that anybody may have. ``key_id`` is the start of its SHA-256 in hex."""

    raw: bytes

    @property
    def key_id(self) -> str:
        """The key's name in receipts."""
        return hashlib.sha256(self.raw).hexdigest()[:16]

    @property
    def pem(self) -> str:
        """The key as other programs read it (SubjectPublicKeyInfo)."""
        key = Ed25519PublicKey.from_public_bytes(self.raw)
        kind = serialization.PublicFormat.SubjectPublicKeyInfo
        return key.public_bytes(serialization.Encoding.PEM, kind).decode()

    @classmethod
    def from_pem(cls, text: str) -> PublicKey:
        """The key in a PEM file. Raises LikenessError."""
        try:
            key = serialization.load_pem_public_key(text.encode())
        except (ValueError, UnicodeError):
            raise LikenessError("not a public key in PEM form") from None
        if not isinstance(key, Ed25519PublicKey):
            raise LikenessError("not an Ed25519 public key")
        return cls(key.public_bytes_raw())

    def fault(self, receipt: Mapping[str, Any]) -> str:
        """Why ``receipt`` is not one that this key signed, "" when it is. Raises NotAReceipt."""
        if receipt.get("schema") != SCHEMA:
            raise NotAReceipt(f"not a receipt: 'schema' is not {SCHEMA}")
        signature, named = receipt.get(_SIGNATURE), receipt.get(_KEY)
        if not isinstance(signature, str) or not isinstance(named, str):
            raise NotAReceipt("not a signed receipt: 'signature' or 'signing_key' is missing")
        if named != self.key_id:
            return "signed with another key"
        try:
            raw = base64.b64decode(signature, validate=True)
            Ed25519PublicKey.from_public_bytes(self.raw).verify(raw, canonical(receipt))
        except (binascii.Error, ValueError, InvalidSignature):
            return "altered since it was signed"
        return ""


class Signer:
    """Signs with the key that follows from the service's secret."""

    def __init__(self, secret: bytes) -> None:
        derived = HKDF(hashes.SHA256(), 32, salt=None, info=_PURPOSE).derive(secret)
        self._key = Ed25519PrivateKey.from_private_bytes(derived)
        self.public = PublicKey(self._key.public_key().public_bytes_raw())

    def sign(self, receipt: Mapping[str, Any]) -> dict[str, Any]:
        """``receipt`` with the key's id and the signature; a signed one is given back as it is."""
        if _SIGNATURE in receipt:
            return dict(receipt)
        named = {**receipt, _KEY: self.public.key_id}
        signature = self._key.sign(canonical(named))
        return {**named, _SIGNATURE: base64.b64encode(signature).decode()}


def canonical(receipt: Mapping[str, Any]) -> bytes:
    """What is signed. Raises NotAReceipt for what has no canonical form here."""
    signed = {name: value for name, value in receipt.items() if name != _SIGNATURE}
    try:
        _check(signed, 0)
        text = json.dumps(signed, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        return text.encode()
    except (TypeError, ValueError):
        raise NotAReceipt("not a receipt: it holds what no receipt holds") from None


def _check(value: Any, depth: int) -> None:
    """Numbers with fractions, and deep nesting, have no place in a receipt."""
    if depth > 8:
        raise ValueError
    match value:
        case None | bool() | int() | str():
            return
        case dict():
            for name, inner in value.items():
                # RFC 8785 sorts by UTF-16; for ASCII that is the order of any sort
                if not (isinstance(name, str) and name.isascii()):
                    raise ValueError
                _check(inner, depth + 1)
        case list():
            for inner in value:
                _check(inner, depth + 1)
        case _:
            raise ValueError
