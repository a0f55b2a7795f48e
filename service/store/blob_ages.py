"""Which blobs a place holds, by when they were stored. Other files that lie there are passed over."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_AT = re.compile(r"([0-9a-f]{2})/(\1[0-9a-f]{62})")
PAGE = 1000
"""Objects that an S3-type store lists in one answer."""


def in_folder(root: Path, before: float) -> Iterator[str]:
    """Keys of blobs stored before that time (epoch seconds), one folder of the 256 at a time."""
    for folder in sorted(root.glob("[0-9a-f][0-9a-f]")):
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if _AT.fullmatch(f"{folder.name}/{e.name}")]
        for name in names:
            try:
                stored = (folder / name).stat().st_mtime
            except FileNotFoundError:  # deleted meanwhile
                continue
            if stored < before:
                yield name


def in_bucket(fs: Any, root: str, before: float) -> Iterator[str]:
    """As ``in_folder`` for an S3-type store, page by page."""
    bucket, prefix, _ = fs.split_path(root)
    prefix = f"{prefix}/" if prefix else ""
    more: dict[str, str] = {}
    while True:
        page = fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=PAGE, **more)
        for entry in page.get("Contents", ()):
            found = _AT.fullmatch(entry["Key"].removeprefix(prefix))
            if found and entry["LastModified"].timestamp() < before:
                yield found[2]
        if not page.get("IsTruncated"):
            return
        more = {"ContinuationToken": page["NextContinuationToken"]}


def elsewhere(fs: Any, root: str, before: float) -> Iterator[str]:
    """As ``in_folder`` for whatever else fsspec reaches, all at once."""
    for path in fs.find(root):
        found = _AT.fullmatch("/".join(path.rsplit("/", 2)[-2:]))
        if found and fs.modified(path).timestamp() < before:
            yield found[2]
