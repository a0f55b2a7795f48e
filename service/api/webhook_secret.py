"""The secret by which a caller tells our webhooks from anybody else's."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from service.api.context import ContextOf
from service.api.problems import problems
from service.api.security import Caller, needs
from service.store.access_log import AccessLog
from service.webhooks import secret_of

router = APIRouter(tags=["runs"])


class WebhookSecret(BaseModel):
    """Signs the webhooks of the runs that one key began."""

    secret: str = Field(
        description="`whsec_` and the key in base64, as Standard Webhooks libraries take it.",
        examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="],
    )


@router.get(
    "/webhook-secret",
    summary="The secret that signs webhooks",
    response_model=WebhookSecret,
    responses=problems(401, 403),
)
def get_webhook_secret(
    caller: Annotated[Caller, Depends(needs("submit"))], context: ContextOf
) -> WebhookSecret:
    """Each key has its own, and every reading of it is entered in the access log. A webhook is
    genuine when `webhook-signature` is the HMAC-SHA256 of `webhook-id.webhook-timestamp.body`."""
    AccessLog(context.database).add(caller.key_id, "read webhook secret", caller.key_id)
    return WebhookSecret(secret=secret_of(context.secret, caller.key_id))
