"""The files that a finished run has to show, by name; their bytes are blobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, insert, select

from service.store.blobs import Blobs
from service.store.database import Database
from service.store.events import instant
from service.store.naming import lock_blobs
from service.store.service_tables import artefacts

Row = Mapping[str, Any]
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
    ".xml": "application/xml",
    ".parquet": "application/vnd.apache.parquet",
}


class Artefacts:
    """Files of all runs. Putting a name again replaces what it stood for."""

    def __init__(self, database: Database, blobs: Blobs) -> None:
        self._database, self._blobs = database, blobs

    def put(self, run_id: str, name: str, content: bytes) -> None:
        """Store one file of a run. Its media type follows from the ending of ``name``."""
        ending = name[name.rfind(".") :] if "." in name else ""
        row = {
            "run_id": run_id,
            "name": name,
            "media_type": MEDIA_TYPES.get(ending, "application/octet-stream"),
            "blob": self._blobs.put(content),
            "bytes": len(content),
            "created": instant(),
        }
        with self._database.begin() as link:
            lock_blobs(link, self._database.is_postgres, alone=False)
            link.execute(delete(artefacts).where(*_key(run_id, name)))
            link.execute(insert(artefacts).values(**row))
        self._blobs.put(content)  # a deletion before the row was there may have taken it

    def get(self, run_id: str, name: str) -> Row | None:
        """The file's row (``media_type``, ``blob`` which is its sha256, ``bytes``, ``created``),
        None where there is none."""
        found = self._database.rows(select(artefacts).where(*_key(run_id, name)))
        return found[0] if found else None

    def read(self, run_id: str, name: str) -> bytes | None:
        """The file's content, None where there is none."""
        row = self.get(run_id, name)
        return self._blobs.get(row["blob"]) if row else None

    def list(self, run_id: str) -> Sequence[Row]:
        """The rows of every file of a run, by name."""
        query = select(artefacts).where(artefacts.c.run_id == run_id).order_by(artefacts.c.name)
        return self._database.rows(query)


def _key(run_id: str, name: str) -> tuple[Any, Any]:
    return artefacts.c.run_id == run_id, artefacts.c.name == name
