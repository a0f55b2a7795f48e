"""The agent behind a device farm, where nothing can connect to the phone: it asks the host for work."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import quote

import httpx

from domain.errors import LikenessError
from service.phone_agent.agent import CONTRACT, Answer, PhoneAgent, failed
from service.phone_agent.faults import CallEnded

WAIT_S = 30
LONGEST_PAUSE_S = 10.0


class Puller:
    """Asks, works, answers, until ``stop`` is set."""

    def __init__(self, agent: PhoneAgent, host: str, token: str, device: str = "reference") -> None:
        self._agent, self._stop, self._pause = agent, threading.Event(), 0.5
        self.wait_s = WAIT_S
        self._client = httpx.Client(
            base_url=host.rstrip("/"),
            headers={
                "Authorization": f"Bearer {token}",
                "X-Device-Id": device,
                "X-Contract": CONTRACT,
            },
            timeout=httpx.Timeout(WAIT_S + 15, connect=10),
            trust_env=False,
        )

    def run(self) -> None:
        """Work until ``stop``; a host that is not there is asked again, less and less often. Raises
        LikenessError when the host does not take the token."""
        while not self._stop.is_set():
            try:
                self.once()
                self._pause = 0.5
            except httpx.HTTPError:
                self._stop.wait(self._pause)
                self._pause = min(2 * self._pause, LONGEST_PAUSE_S)

    def once(self) -> bool:
        """Ask once; True when a job was done. Raises httpx.HTTPError without a useful answer."""
        reply = self._client.get("/v1/device/next", params={"wait": self.wait_s})
        if reply.status_code in (401, 403):
            raise LikenessError("the host does not take this token")
        reply.raise_for_status()
        if reply.status_code == 204 or self._stop.is_set():
            return False
        job = reply.json()
        where = f"/v1/device/jobs/{quote(str(job['id']), safe='')}"
        answer = self._work(job, where)
        self._client.post(
            f"{where}/result",
            content=answer.body,
            headers={
                **answer.headers,
                "Content-Type": answer.media_type,
                "X-Edit-Status": str(answer.status),
            },
        ).raise_for_status()
        return True

    def _work(self, job: dict[str, Any], where: str) -> Answer:
        if job.get("kind") == "capabilities":
            body = httpx.Response(200, json=self._agent.capabilities()).content
            return Answer(200, body, "application/json")
        try:
            if job.get("kind") != "edit":
                raise CallEnded("bad_parameters", "there is no such kind of job")
            picture = self._client.get(f"{where}/picture")
            picture.raise_for_status()
            kind = picture.headers.get("content-type", "").partition(";")[0]
            read = self._agent.read(str(job.get("parameters") or ""), picture.content, kind)
        except CallEnded as end:
            return failed(end)
        return self._agent.work(read)

    def stop(self) -> None:
        """End ``run`` after the request it is in."""
        self._stop.set()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
