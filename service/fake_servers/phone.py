"""A phone with a beautify SDK: the reference agent itself (service/phone_agent), told what to play."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import ASGIApp

from service.fake_servers.desk import Desk
from service.phone_agent import routes
from service.phone_agent.agent import PLAYS, Job, PhoneAgent
from service.phone_agent.sdk import Sdk

NAME = "phone"
DOES = "a phone app with a beautify SDK, real edits of real faces, low power unless told otherwise"
BEHAVIOURS: Mapping[str, str] = PLAYS


def app(desk: Desk) -> ASGIApp:
    """The agent behind the desk's key."""
    agent = PhoneAgent(Sdk())

    def play(job: Job, body: bytes) -> str | Response:
        name = desk.turn(body)
        if name == "refuse":
            return "refused"
        return desk.common(name) or name

    return routes.app(agent, desk.key, play)
