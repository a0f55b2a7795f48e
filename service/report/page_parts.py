"""What every page of ours is put together from: templates, our own style and script, and the policy
that lets nothing else run."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from service.report import wording
from service.report.groups import attribute_label

HERE = Path(__file__).parent


def content_policy(style: str, script: str) -> str:
    """Nothing may load or run except this page's own style and script, by hash, and inline pictures."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}';"
        " base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def static_text(name: str) -> str:
    """A style sheet or script of ours."""
    return (HERE / "static" / name).read_text(encoding="utf-8").strip()


@cache
def environment() -> Environment:
    """The templates, with everything escaped and hidden characters made visible."""
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters.update(
        figure=wording.figure,
        p_value=wording.p_value,
        words=wording.words,
        attribute_label=attribute_label,
        plural=wording.plural,
        sha=lambda text: str(text)[:16],
    )
    return environment


def _finalize(value: Any) -> Any:
    if value is None:
        return "–"
    return value if isinstance(value, Markup) else wording.visible(value)
