"""A client of the service, for programs in Python and for ``--server URL`` at the command line.

    with LikenessClient("https://likeness.example.com", token) as client:
        batch = client.submit_batch(Path("portraits"))
        run = client.wait(client.start_run(batch.batch_id, preset="self-test").run_id)
        client.report(run.run_id, Path("report.html"))

Every failure is a LikenessError of one line; the key is in none of them.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from domain.errors import LikenessError
from service.client_answers import (
    Batch,
    BatchItem,
    Listing,
    Page,
    PairOptions,
    Picture,
    Run,
    RunFile,
    Submitted,
)
from service.client_events import Follower
from service.client_upload import MANIFEST, Form, Upload, files_of, size_of, text_of
from service.client_wire import Patience, ServerProblem, ServerWire, Unreachable
from service.engine.progress import Progress, Silent

__all__ = [
    "Batch", "BatchItem", "LikenessClient", "PairOptions", "Patience", "Picture", "Run", "RunFile",
    "ServerProblem", "Submitted", "Unreachable",
]  # fmt: skip
FORMS = {
    ".csv": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".json": "application/json",
    ".html": "text/html",
}
PAGE = 500
DOWNLOADS = 3
"""Times that a file is fetched when its connection breaks."""


class LikenessClient:
    """One server. Safe in threads. Close it, or use it as a context manager."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """``token`` is "lk_..."; a server that was started open needs none. Raises LikenessError for
        an address that is none, or one to which a key must not go."""
        self._patience = patience or Patience()
        self._wire = ServerWire(url, token, patience=self._patience, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LikenessClient({self.url!r})"

    @property
    def url(self) -> str:
        """The server's address."""
        return self._wire.url

    def close(self) -> None:
        """Close its connections."""
        self._wire.close()

    # -- batches -------------------------------------------------------------------------------

    def submit_batch(
        self,
        source: Path | Sequence[Picture],
        *,
        manifest: Path | str | None = None,
        name: str = "",
    ) -> Submitted:
        """Send pictures: a folder (its manifest.csv says which), a ZIP, or addresses to fetch.

        ``manifest`` is a file, or a CSV text, that goes in place of the folder's or the ZIP's own.
        Sent again after an answer that was lost, it is still one batch.
        """
        text = text_of(manifest) if isinstance(manifest, Path) else manifest
        if not isinstance(source, Path):
            asked: dict[str, Any] = {"name": name, "urls": [p.json() for p in source]}
            if text is not None:
                asked["manifest"] = text
            return Submitted.of(self._post("/v1/batches", json=asked))
        if source.is_dir():
            if text is None and (source / MANIFEST).is_file():
                text = text_of(source / MANIFEST)
            return self.send_files(files_of(source), manifest=text, name=name)
        size_of(source)
        return self.send_files([Upload("archive", source.name, source)], manifest=text, name=name)

    def send_files(
        self,
        files: Sequence[Upload],
        *,
        manifest: str | None = None,
        name: str = "",
        sent: Callable[[int], object] = lambda _count: None,
    ) -> Submitted:
        """Send these very files, under these names. ``sent`` is told how many are on their way."""
        fields = {"name": name, "manifest": manifest}
        form = Form({k: v for k, v in fields.items() if v}, files, sent)
        return Submitted.of(self._post("/v1/batches", body=form, headers=form.headers))

    def batch(self, batch_id: str) -> Batch:
        """A batch's state and counts."""
        return Batch.of(self._get(f"/v1/batches/{batch_id}"))

    def batch_items(self, batch_id: str, state: str | None = None) -> Iterator[BatchItem]:
        """Every file of a batch, page by page."""
        for row in self._pages(f"/v1/batches/{batch_id}/items", {"state": state}):
            yield BatchItem.of(row)

    def delete_batch(self, batch_id: str, *, cancel: bool = False) -> Mapping[str, Any]:
        """Delete a batch's pictures and all pictures made from them. Returns the signed receipt.
        ``cancel``: runs on it that are not over are cancelled first."""
        answer = self._wire.ask(
            "DELETE", f"/v1/batches/{batch_id}", params={"cancel": str(cancel).lower()}
        )
        return dict(answer)

    # -- runs ----------------------------------------------------------------------------------

    def start_run(
        self,
        batch_id: str,
        plan: str | Mapping[str, Any] | None = None,
        *,
        preset: str | None = None,
        name: str | None = None,
        webhook_url: str | None = None,
    ) -> Run:
        """Begin a run over a batch: a plan (YAML text or an object) or the name of a preset."""
        asked = {"batch_id": batch_id, "plan": plan, "preset": preset, "name": name,
                 "webhook_url": webhook_url}  # fmt: skip
        return Run.of(
            self._post("/v1/runs", json={k: v for k, v in asked.items() if v is not None})
        )

    def start_probes(
        self,
        plan: str | Mapping[str, Any],
        *,
        name: str | None = None,
        webhook_url: str | None = None,
    ) -> Run:
        """Begin a run of text probes; the plan's endpoint is a model that the service offers."""
        asked = {"plan": plan, "name": name, "webhook_url": webhook_url}
        return Run.of(
            self._post("/v1/probes", json={k: v for k, v in asked.items() if v is not None})
        )

    def run(self, run_id: str) -> Run:
        """A run and how far it is."""
        return Run.of(self._get(f"/v1/runs/{run_id}"))

    def wait(self, run_id: str, progress: Progress | None = None) -> Run:
        """Follow a run to its end, in whatever state that is. ``progress`` is told of its stages,
        steps and notes as they happen. Raises Unreachable when the server stays away; the run goes
        on all the same."""
        look = lambda: self.run(run_id)  # noqa: E731 - a name would not say more
        follower = Follower(self._wire, run_id, look, progress or Silent(), self._patience.sleep)
        return follower.to_the_end()

    def cancel(self, run_id: str) -> Run:
        """Let a run end; what was measured stays."""
        return Run.of(self._post(f"/v1/runs/{run_id}/cancel"))

    def resume(self, run_id: str) -> Run:
        """Let a run that failed or was cancelled go on where it stood."""
        return Run.of(self._post(f"/v1/runs/{run_id}/resume"))

    # -- results -------------------------------------------------------------------------------

    def measurements(
        self,
        run_id: str,
        *,
        tool: str | None = None,
        metric: str | None = None,
        region: str | None = None,
        outcome: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Every figure of a run so far, page by page. A figure that could not be taken is None with
        its reason."""
        wanted = {"tool": tool, "metric": metric, "region": region, "outcome": outcome}
        yield from self._pages(f"/v1/runs/{run_id}/measurements", wanted)

    def save_measurements(self, run_id: str, target: Path) -> Path:
        """The whole table into a file; its ending says whether as .csv or .parquet."""
        return self._save(f"/v1/runs/{run_id}/measurements", target, _form(target, ".csv", ".parquet"))  # fmt: skip

    def verdicts(self, run_id: str) -> Mapping[str, Any]:
        """``{run_id, controls_ok, verdicts, paired}`` of a finished run."""
        return dict(self._get(f"/v1/runs/{run_id}/verdicts"))

    def report(self, run_id: str, target: Path) -> Path:
        """The report of a finished run into a file; its ending says whether as .html or .json."""
        return self._save(f"/v1/runs/{run_id}/report", target, _form(target, ".html", ".json"))

    def files(self, run_id: str) -> list[RunFile]:
        """The files of a run; none before it is done."""
        listed = Listing.of(self._get(f"/v1/runs/{run_id}/files"))
        return [RunFile.of(file) for file in listed.items]

    def save_file(self, run_id: str, file: RunFile, target: Path) -> Path:
        """One file, byte for byte. Raises LikenessError when it is not the one that was listed."""
        return self._save(f"/v1/runs/{run_id}/files/{file.name}", target, "*/*", file.sha256)

    # -- pairs ---------------------------------------------------------------------------------

    def gate(
        self, original: Path, edited: Path, options: PairOptions | None = None
    ) -> dict[str, Any]:
        """Decide on one edited picture: the answer of ``likeness gate --json``."""
        options = options or PairOptions()
        parts = {"original": original, "edited": edited, "mask": options.mask}
        files = [Upload(name, path.name, path) for name, path in parts.items() if path is not None]
        fields = {
            "engine": options.engine,
            "profile": options.profile,
            "min_score": repr(options.min_score),
        }
        form = Form(fields, files)
        # nothing is stored, so asking twice is the same as asking once
        answer = self._wire.ask("POST", "/v1/gate", body=form, headers=form.headers, twice=True)
        return dict(answer)

    # -- how it is asked -----------------------------------------------------------------------

    def _get(self, path: str) -> Any:
        return self._wire.ask("GET", path)

    def _post(self, path: str, **how: Any) -> Any:
        headers = {**how.pop("headers", {}), "Idempotency-Key": uuid.uuid4().hex}
        return self._wire.ask("POST", path, headers=headers, twice=True, **how)

    def _pages(self, path: str, wanted: Mapping[str, str | None]) -> Iterator[dict[str, Any]]:
        asked = {k: v for k, v in wanted.items() if v is not None} | {"limit": str(PAGE)}
        while True:
            page = Page.of(self._wire.ask("GET", path, params=asked))
            yield from page.items
            if page.next is None:
                return
            asked["cursor"] = page.next

    def _save(self, path: str, target: Path, form: str, sha256: str | None = None) -> Path:
        """Into a neighbour first: a file that is there is whole."""
        partial = target.with_name(f".{target.name}.part")
        try:
            found = self._fetch(path, partial, form)
            if sha256 is not None and found != sha256:
                raise LikenessError(f"{target.name}: did not arrive as the server has it")
            partial.replace(target)
        except OSError as error:
            raise LikenessError(f"{target}: cannot be written: {error.strerror or error}") from None
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
        return target

    def _fetch(self, path: str, target: Path, form: str) -> str:
        for left in reversed(range(DOWNLOADS)):
            try:
                with self._wire.stream(path, headers={"Accept": form}) as answer, target.open("wb") as sink:  # fmt: skip
                    hashed = hashlib.sha256()
                    for piece in answer.iter_bytes():
                        hashed.update(piece)
                        sink.write(piece)
                return hashed.hexdigest()
            except httpx.TransportError:
                if not left:
                    break
        raise Unreachable(f"{self.url}: the connection breaks while {target.name[1:-5]} is fetched")


def _form(target: Path, *endings: str) -> str:
    ending = target.suffix.lower()
    if ending not in endings:
        raise LikenessError(f"{target}: the file's name must end in {' or '.join(endings)}")
    return FORMS[ending]
