"""Hostile uploads to a real service: archives, bombs, names, wrong types, damaged files; as batches,
one file a request, and as pairs for the gate, on either side.

Run by ``make soak``; a sample is in tests/service/api/test_hostile_uploads.py. Every answer must be the
one that the manifest of the hard pictures asks for, none may be 5xx, all processes of the service
together stay under 2 GB, and what is asked afterwards is answered as before. The last line printed is
JSON: uploads, by kind and status; wrong; peak_mb; seconds.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO), str(Path(__file__).resolve().parent)]
import httpx  # noqa: E402
from serving import RealServer  # noqa: E402

from service import settings  # noqa: E402
from service.client_upload import quoted  # noqa: E402
from tests.preprocess.test_hard_images import REASONS  # noqa: E402
from tests.service.api.test_batches_hostile import ARCHIVES, _fit  # noqa: E402

MOST_MB = 2048
CUT_EDIT = "pairs/truncated_edit_edit.jpg"
GOOD = ("id01_base.jpg", "id01_beard_stubble.jpg")
TIMEOUT_S = 180.0


@dataclass(slots=True)
class Tally:
    """What was sent and what came back."""

    statuses: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def uploads(self) -> int:
        """Requests that were answered."""
        return sum(self.statuses.values())

    def saw(self, kind: str, name: str, answer: httpx.Response, fault: str) -> None:
        """Enter an answer; ``fault`` says what is wrong with it."""
        self.statuses[f"{kind} {answer.status_code}"] += 1
        if answer.status_code >= 500:
            fault = f"{answer.status_code}: {answer.text[:200]}"
        if fault:
            self.wrong.append(f"{kind}: {name}: {fault}")


class Hostile:
    """Everything that is sent, by kind. ``every`` sends one in so many."""

    def __init__(self, client: httpx.Client, hard: Path, every: int = 1) -> None:
        self._client, self._hard, self._every = client, hard, every
        images = REPO / "samples" / "portraits" / "images"
        self._good, self._edit = ((images / name).read_bytes() for name in GOOD)
        with (hard / "manifest.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self._pictures = [r for r in rows if r["group"] not in ("archives", "filenames")]
        self.tally = Tally()

    def run(self) -> None:
        """All of it."""
        before = self.good_pair()
        self.archives()
        self.pictures()
        self.names()
        self.pairs()
        after = self.good_pair()
        if before != after or before[0] != 200:
            self.tally.wrong.append(f"afterwards: {before} became {after}")

    def good_pair(self) -> tuple[int, Any]:
        """What the gate says of two good pictures."""
        answer = self._gate(self._good, self._edit)
        return answer.status_code, answer.json().get("health")

    def archives(self) -> None:
        """Each archive as a body and as a part of a form."""
        for name, wanted in list(ARCHIVES.items())[:: self._every if self._every < 5 else 2]:
            data = (self._hard / "archives" / name).read_bytes()
            head = {"Content-Type": "application/zip"}
            for answer in (
                self._client.post("/v1/batches", content=data, headers=head),
                self._client.post("/v1/batches", files={"archive": (name, data)}),
            ):
                self.tally.saw("archive", name, answer, archive_fault(answer, wanted))

    def pictures(self) -> None:
        """Each picture as a batch of its own."""
        for row in self._some():
            data = (self._hard / row["file"]).read_bytes()
            answer = self._client.post("/v1/batches", files={"files": (row["file"], data)})
            self.tally.saw("picture", row["file"], answer, picture_fault(answer, row))

    def names(self) -> None:
        """A good picture under every hostile name, of archives and of forms."""
        for name in odd_names(self._hard / "filenames"):
            head = f'--b\r\nContent-Disposition: form-data; name="files"; filename="{quoted(name)}"\r\n\r\n'
            body = head.encode("utf-8", "surrogateescape") + self._good + b"\r\n--b--\r\n"
            answer = self._client.post(
                "/v1/batches",
                content=body,
                headers={"Content-Type": "multipart/form-data; boundary=b"},
            )
            self.tally.saw("name", repr(name), answer, name_fault(answer))

    def pairs(self) -> None:
        """Each picture as the edit of a good one; those that must be refused as the original too."""
        archives = [
            {"file": f"archives/{n}", "group": "archives", "action": "reject"} for n in ARCHIVES
        ]
        for row in [*self._some(), *archives[:: self._every]]:
            data = (self._hard / row["file"]).read_bytes()
            answer = self._gate(self._good, data)
            self.tally.saw("pair", row["file"], answer, pair_fault(answer, row, "edited"))
            if action_of(row) == "reject":
                answer = self._gate(data, self._good)
                self.tally.saw("pair", row["file"], answer, pair_fault(answer, row, "original"))

    def _some(self) -> list[dict[str, str]]:
        bombs = [r for r in self._pictures if r["group"] == "bombs"]
        rest = [r for r in self._pictures if r["group"] != "bombs"]
        return [*bombs, *rest[:: self._every]]

    def _gate(self, original: bytes, edited: bytes) -> httpx.Response:
        files = {"original": ("original", original), "edited": ("edited", edited)}
        return self._client.post("/v1/gate", files=files)


def action_of(row: dict[str, str]) -> str:
    """What the manifest asks for: "accept", "reject" or "either". A row about a face that is none
    is about a picture that can be read, and so are both of a pair but the damaged edit."""
    if row["group"] == "faces":
        return "accept"
    if row["file"] == CUT_EDIT:
        return "reject"
    return "accept" if row["action"] == "pair" else row["action"]


def picture_fault(answer: httpx.Response, row: dict[str, str]) -> str:
    """What is wrong with a batch of one picture."""
    if answer.status_code != 201 or len(answer.json()["items"]) != 1:
        return f"{answer.status_code}: no batch of one file"
    item = answer.json()["items"][0]
    taken = item["state"] == "accepted"
    wanted = action_of(row)
    if wanted != "either" and taken != (wanted == "accept"):
        return f"{item['state']} ({item['reason']}), where the manifest says {wanted}"
    return "" if taken else reason_fault(item["reason"], row)


def reason_fault(reason: Any, row: dict[str, str]) -> str:
    """Whether a refusal says what the manifest quotes, in one line."""
    good = isinstance(reason, str) and len(reason.splitlines()) == 1
    return "" if good and re.search(REASONS.get(row["file"], "."), reason) else f"said {reason!r}"


def pair_fault(answer: httpx.Response, row: dict[str, str], part: str) -> str:
    """What is wrong with the gate's answer about a pair with one hostile picture."""
    said, wanted = answer.json(), action_of(row)
    if answer.status_code == 200:
        known = said["health"]["decision"] in ("pass", "fail", "inconclusive")
        return "" if known and wanted != "reject" else "was judged, where the manifest says reject"
    if answer.status_code != 422 or said.get("part") != part:
        return f"{answer.status_code}: {said.get('detail')}"
    if wanted == "accept":
        return f"was refused ({said['detail']}), where the manifest says accept"
    return reason_fault(str(said["detail"]).removeprefix(f"{part}: "), row)


def archive_fault(answer: httpx.Response, wanted: Any) -> str:
    """What is wrong with the answer about an archive: refused whole, or entry by entry."""
    said = answer.json()
    if isinstance(wanted, tuple):
        kind, words = wanted
        good = said.get("type") == f"/problems/{kind}" and words in said["detail"]
        return "" if good else f"{answer.status_code}: {said.get('detail')}"
    if answer.status_code != 201:
        return f"{answer.status_code}: {said.get('detail')}"
    found = [f"{i['name']}: {i['state']} {i['code'] or ''}" for i in said["items"]]
    return "" if _fit(found, wanted) else f"{found}"


def name_fault(answer: httpx.Response) -> str:
    """What is wrong with the answer about a good picture with a hostile name."""
    if answer.status_code != 201 or answer.json()["accepted"] != 1:
        return f"{answer.status_code}: {answer.text[:200]}"
    kept = answer.json()["items"][0]["name"]
    good = 0 < len(kept) <= 210 and (kept.isprintable() or "\u200d" in kept)
    return "" if good else f"kept as {kept!r}"


def odd_names(folder: Path) -> Iterator[str]:
    """Names out of an archive made for them, and lines of names for forms."""
    with tarfile.open(folder / "odd-names.tar") as tar:
        yield from (Path(m.name).name for m in tar.getmembers() if m.isfile())
    lines = (folder / "multipart-filename-strings.txt").read_text("utf-8").split("\n")
    yield from (line for line in lines if line)


def main() -> int:
    """Returns 0 when every answer was right."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--every", type=int, default=1, help="send one upload in so many")
    chosen = options.parse_args()
    data = settings.load().data or REPO.parent / "shared" / "data"
    if not (data / "hard-images" / "manifest.csv").is_file():
        print(
            f"the hard pictures are not there ({data}); LIKENESS_DATA names them", file=sys.stderr
        )
        return 2
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="likeness-hostile-") as home:
        with RealServer(Path(home) / "home", workers=0) as server:
            head = {"Authorization": f"Bearer {server.key}"}
            with httpx.Client(
                base_url=server.url, headers=head, timeout=TIMEOUT_S, trust_env=False
            ) as client:
                hostile = Hostile(client, data / "hard-images", chosen.every)
                hostile.run()
            peak, alive = server.memory.peak / 2**20, server.alive
        left = left_over(Path(home) / "home")
    tally = hostile.tally
    found = {
        "uploads": tally.uploads,
        "answers": dict(sorted(tally.statuses.items())),
        "wrong": tally.wrong,
        "left_over": left,
        "peak_mb": round(peak),
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(found))
    return 0 if alive and not tally.wrong and not left and peak < MOST_MB else 1


def left_over(home: Path) -> list[str]:
    """Files that uploads have left anywhere but in the stores."""
    kept = re.compile(r"blobs/|service\.sqlite3|secret\.key$|serve\.log$")
    found = (str(p.relative_to(home)) for p in home.rglob("*") if p.is_file())
    return [name for name in found if not kept.match(name)]


if __name__ == "__main__":
    raise SystemExit(main())
