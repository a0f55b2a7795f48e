"""What batches look like in requests and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service.intake.url_list import Wanted
from service.store.batches import Row

BATCH = "b_5f0c2d9e8b7a4c1d3e6f9a0b"
_ITEM: dict[str, Any] = {
    "seq": 1, "name": "id01_base.jpg", "state": "accepted", "code": None, "reason": None,
    "bytes": 48213, "media_type": "image/jpeg",
}  # fmt: skip
_REFUSED: dict[str, Any] = {
    "seq": 2, "name": "scan.pdf", "state": "rejected", "code": "pdf", "reason": "PDF, not an image",
    "bytes": 9120, "media_type": None,
}  # fmt: skip
_SHOWN: dict[str, Any] = {
    "batch_id": BATCH, "name": "Tuesday's portraits", "state": "ready",
    "created": "2026-03-03T09:00:00+00:00", "expires": "2026-04-02T09:00:00+00:00",
    "accepted": 1, "rejected": 1, "skipped": 0,
}  # fmt: skip

ItemState = Literal["accepted", "rejected", "skipped"]
_Text = Annotated[str, StringConstraints(max_length=500)]


class BatchItem(BaseModel):
    """One file that was sent, or a row of the manifest that fits none."""

    model_config = ConfigDict(json_schema_extra={"example": _ITEM})

    seq: int = Field(description="Its number in the batch.")
    name: str = Field(description="As given, made unique within the batch.")
    state: ItemState = Field(
        description="skipped: never meant as a picture, such as a text file in a ZIP."
    )
    code: str | None = Field(description="A stable word for why it was not accepted.")
    reason: str | None
    bytes: int | None
    media_type: str | None


class BatchItemDetail(BatchItem):
    """The same, with what the manifest says of it."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {**_ITEM, "attributes": {"gender": "feminine-presenting"}, "picture": None}
        }
    )

    attributes: dict[str, str]
    picture: str | None = Field(description="Address of the bytes, while they are kept.")


class Batch(BaseModel):
    """A batch of pictures. Once it is deleted its figures stay, and a receipt."""

    model_config = ConfigDict(json_schema_extra={"example": _SHOWN})

    batch_id: str
    name: str
    state: Literal["receiving", "ready", "deleted"]
    created: str
    expires: str | None = Field(description="When its pictures are deleted at the latest.")
    accepted: int
    rejected: int
    skipped: int


class BatchCreated(Batch):
    """What became of every file."""

    model_config = ConfigDict(
        json_schema_extra={"example": {**_SHOWN, "without_row": 1, "items": [_ITEM, _REFUSED]}}
    )

    without_row: int = Field(description="Files that the manifest does not name; 0 without one.")
    items: list[BatchItem]


class BatchPage(BaseModel):
    """Batches, the newest first."""

    items: list[Batch]
    next: str | None = Field(description="`cursor` of the next page; null on the last.")


class BatchItemPage(BaseModel):
    """Files in the order in which they came."""

    items: list[BatchItemDetail]
    next: str | None


class UrlEntry(BaseModel):
    """A picture to be fetched."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, StringConstraints(min_length=1, max_length=2048)] = Field(
        description="http or https, of a public host; redirects are not followed."
    )
    name: _Text = Field("", description="Else the last part of the URL's path.")
    attributes: dict[Annotated[str, StringConstraints(max_length=60)], _Text] = Field(
        default_factory=dict, description="What a manifest's row would say: subject_id, gender, ..."
    )

    def wanted(self) -> Wanted:
        """The entry as the intake takes it."""
        return Wanted(self.url, self.name, self.attributes)


class UrlBatch(BaseModel):
    """A batch by a list of addresses."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, StringConstraints(max_length=200)] = ""
    urls: Annotated[list[UrlEntry], Field(min_length=1)]
    manifest: str | None = Field(None, description="A CSV text with a column `file`.")


def shown(row: Row) -> dict[str, Any]:
    """A batch's row as ``Batch`` has it."""
    return {name: row[name] for name in Batch.model_fields}


def item_shown(row: Row) -> dict[str, Any]:
    """An item's row as ``BatchItem`` has it."""
    return {name: row[name] for name in BatchItem.model_fields}


_NAME = {"type": "string", "maxLength": 200, "description": "What to call the batch."}
_BINARY = {"type": "string", "format": "binary"}
_MANIFEST = {
    "type": "string",
    "description": "CSV: one row a picture, column `file` its name; `subject_id` and attributes beside it.",
}


def request_body() -> dict[str, Any]:
    """The three kinds of body in OpenAPI."""
    form = {
        "type": "object",
        "properties": {
            "files": {"type": "array", "items": _BINARY, "description": "The pictures."},
            "archive": {**_BINARY, "description": "Or a ZIP of them."},
            "manifest": _MANIFEST,
            "name": _NAME,
        },
    }
    manifest = "file,subject_id,gender\nid01_base.jpg,id01,masculine-presenting\n"
    urls = {
        "name": "Tuesday's portraits",
        "urls": [
            {"url": "https://pictures.example.com/id01.jpg", "attributes": {"subject_id": "id01"}}
        ],
    }
    return {
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": form,
                    "example": {"files": ["(bytes)"], "manifest": manifest},
                },
                "application/zip": {"schema": _BINARY},
                "application/json": {
                    "schema": _urls_schema(),
                    "example": urls,
                },
            },
        }
    }


def _urls_schema() -> dict[str, Any]:
    """``UrlBatch`` in one piece: a body that is described by hand can refer to no component."""
    schema = UrlBatch.model_json_schema()
    schema["properties"]["urls"]["items"] = schema.pop("$defs")["UrlEntry"]
    return schema
