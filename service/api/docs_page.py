"""``/docs``: every operation on one plain page, drawn here, with nothing fetched from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

root_router = APIRouter(tags=["problems"], include_in_schema=False)
_CODE = re.compile(r"`([^`]+)`")
STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1b1b; background: #fff; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #999; }
h3 { margin: 1.6rem 0 0.2rem; font-size: 1rem; }
code, pre { font: 0.9em/1.4 ui-monospace, monospace; }
pre { background: #f2f2f2; padding: 0.6rem; overflow-x: auto; }
table { border-collapse: collapse; }
td, th { text-align: left; vertical-align: top; padding: 0.15rem 1rem 0.15rem 0; }
@media (prefers-color-scheme: dark) {
  body { color: #e8e8e8; background: #16181b; } pre { background: #24272b; } a { color: #9cc4ff; }
}
"""


@root_router.get("/docs")
async def docs(request: Request) -> Response:
    """The page."""
    return HTMLResponse("\n".join(_page(request.app.openapi())))


@root_router.get("/docs.css")
async def docs_style() -> Response:
    """Its looks: a file of its own, so that the policy need not allow styles within pages."""
    return Response(STYLE, media_type="text/css", headers={"Cache-Control": "public, max-age=3600"})


def _page(drawn: dict[str, Any]) -> Iterator[str]:
    title = f"{drawn['info']['title']} {drawn['info']['version']}"
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<title>{escape(title)}</title><link rel="stylesheet" href="/docs.css"><link rel="icon" href="data:,"></head><body>'
    yield f"<h1>{escape(title)}</h1>"
    for paragraph in drawn["info"]["description"].split("\n\n"):
        yield _paragraph(paragraph)
    yield '<p><a href="/openapi.json">The description for machines (OpenAPI)</a>, '
    yield '<a href="/problems">every kind of problem</a></p>'
    for tag in drawn.get("tags", []):
        yield f"<h2>{escape(tag['name'])}</h2><p>{_words(tag['description'])}</p>"
        for path, methods in drawn["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation.get("tags", []):
                    yield from _operation(method, path, operation)
    yield "</body></html>"


def _paragraph(text: str) -> str:
    """A paragraph, or a list where every entry begins with a star."""
    if not text.startswith("* "):
        return f"<p>{_words(text)}</p>"
    entries = " ".join(text.splitlines())[2:].split(" * ")
    return "<ul>" + "".join(f"<li>{_words(entry)}</li>" for entry in entries) + "</ul>"


def _words(text: str) -> str:
    """Escaped, with `code` as such."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    name = escape(operation["operationId"])
    yield f'<h3 id="{name}"><code>{method.upper()} {escape(path)}</code></h3>'
    yield f"<p><b>{escape(operation['summary'])}</b>. {_words(operation.get('description', ''))}</p>"
    takes = ", ".join(operation.get("requestBody", {}).get("content", {}))
    if takes:
        yield f"<p>Takes {escape(takes)}</p>"
    if operation.get("parameters"):
        yield "<table>"
        for one in operation["parameters"]:
            yield f"<tr><td><code>{escape(one['name'])}</code> ({escape(one['in'])})</td>"
            yield f"<td>{_words(one.get('description', ''))}</td></tr>"
        yield "</table>"
    yield "<table>"
    for status, response in sorted(operation["responses"].items()):
        forms = ", ".join(response.get("content", {}))
        yield f"<tr><td>{escape(status)}</td><td>{_words(response.get('description', ''))}</td>"
        yield f"<td><code>{escape(forms)}</code></td></tr>"
    yield "</table>"
