"""Receipts of deletions, and how anybody can check one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path
from pydantic import BaseModel, ConfigDict, Field

from service.api.context import Context, ContextOf
from service.api.problem_kinds import kind
from service.api.problems import Problem, problems
from service.api.security import Caller, needs
from service.receipts import ALGORITHM, NotAReceipt, Signer
from service.store.erasure import Receipts

router = APIRouter(tags=["batches"])
kind("not-a-receipt", 422, "Not a receipt", "What was sent is not a signed receipt of a deletion.")
Reader = Annotated[Caller, Depends(needs("read"))]
_HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_EXAMPLE: dict[str, Any] = {
    "schema": "likeness-receipt/1",
    "receipt_id": "d_5f0c2d9e8b7a4c1d3e6f9a0b",
    "batch_id": "b_5f0c2d9e8b7a4c1d3e6f9a0b",
    "runs": [],
    "at": "2026-03-03T09:00:00+00:00",
    "by": "k1",
    "reason": "request",
    "deleted": {"originals": {"count": 1, "sha256": [_HASH]}, "landmarks": {"count": 0}},
    "kept": {"figures": {"count": 0, "why": "figures show nobody"}},
    "signing_key": "0123456789abcdef",
    "signature": "(64 bytes in base64)",
}


class Receipt(BaseModel):
    """What was deleted, signed: Ed25519 over the canonical JSON (RFC 8785) of everything but
    `signature`."""

    model_config = ConfigDict(json_schema_extra={"example": _EXAMPLE})

    schema_: str = Field(alias="schema")
    receipt_id: str
    batch_id: str
    runs: list[str]
    at: str
    by: str = Field(description="The key that asked for it; `retention` when its time was over.")
    reason: str
    deleted: dict[str, Any] = Field(
        description="By kind: how many, and the SHA-256 of each file that is gone."
    )
    kept: dict[str, Any]
    signing_key: str
    signature: str


class SigningKey(BaseModel):
    """The public key of receipts."""

    key_id: str
    algorithm: str
    public_key: str = Field(description="PEM.")


class Checked(BaseModel):
    """Whether a receipt is one that this service signed, unaltered."""

    valid: bool
    reason: str = Field(description="Why not; empty when it is.")


def signer_of(context: Context) -> Signer:
    """The signer of this service."""
    return Signer(context.secret)


@router.get(
    "/signing-key",
    summary="The key that receipts are signed with",
    response_model=SigningKey,
    responses=problems(503),
)
def get_signing_key(context: ContextOf) -> SigningKey:
    """The public half; it needs no API key."""
    public = signer_of(context).public
    return SigningKey(key_id=public.key_id, algorithm=ALGORITHM, public_key=public.pem)


@router.get(
    "/receipts/{receipt_id}",
    summary="The receipt of a deletion",
    response_model=Receipt,
    responses=problems(401, 403, 404, 422, 503),
)
def get_receipt(
    receipt_id: Annotated[
        str,
        Path(
            pattern=r"^d_[0-9a-f]{24}$",
            description="Id of the receipt.",
            examples=["d_5f0c2d9e8b7a4c1d3e6f9a0b"],
        ),
    ],
    context: ContextOf,
    caller: Reader,
) -> Any:
    """Also of what went because its time was over."""
    found = Receipts(context.database).get(receipt_id)
    if found is None or not caller.owns(found.owner):
        raise Problem(404, "not-found", f"there is no receipt {receipt_id}")
    return signer_of(context).sign(found.receipt)


@router.post(
    "/receipts/verify",
    summary="Check a receipt",
    response_model=Checked,
    responses=problems(400, 401, 403, 413, 422, 503),
)
def verify_receipt(
    receipt: Annotated[dict[str, Any], Body(examples=[_EXAMPLE])],
    context: ContextOf,
    _caller: Reader,
) -> Checked:
    """Whether this service signed it and nobody altered it since."""
    try:
        fault = signer_of(context).public.fault(receipt)
    except NotAReceipt as error:
        raise Problem(422, "not-a-receipt", str(error)) from None
    return Checked(valid=not fault, reason=fault)
