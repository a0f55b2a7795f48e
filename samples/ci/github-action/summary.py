"""The rows of ``likeness gate --batch --json`` as Markdown for a job's summary page.

Usage: summary.py ROWS.jsonl. What is not a pass comes first; names are escaped, since they may hold
anything. Needs nothing but Python.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

WORDS = ("fail", "could-not-run", "inconclusive", "pass")
MOST_ROWS = 200
"""A summary page holds 1 MB; the artifact holds every row."""
LONGEST = 300


def markdown(rows: list[dict[str, Any]]) -> str:
    """Counts, then a table of the rows, the heaviest first."""
    if not rows:
        return "### Likeness gate\n\nNo pair was measured: see the log.\n"
    found = Counter(row["decision"] for row in rows)
    counts = ", ".join(f"{found[word]} {word}" for word in WORDS if found[word])
    lines = [
        "### Likeness gate",
        "",
        f"{len(rows)} {'pair' if len(rows) == 1 else 'pairs'}: {counts}",
        "",
    ]
    lines += ["| decision | pair | health | reason |", "|---|---|---|---|"]
    ranked = sorted(rows, key=lambda row: WORDS.index(row["decision"]))
    lines += [line(row) for row in ranked[:MOST_ROWS]]
    if len(rows) > MOST_ROWS:
        lines += ["", f"{len(rows) - MOST_ROWS} more rows are in the artifact."]
    return "\n".join(lines) + "\n"


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    health = row.get("health") or {}
    score = health.get("score")
    shown = "" if score is None else f"{score:.1f} of {health['min_score']:g}"
    cells = (row["decision"], cell(row["name"]), shown, cell(row["reason"] or ""))
    return f"| {' | '.join(cells)} |"


def cell(text: str) -> str:
    """Text that neither ends its cell nor starts markup, a link or a mention."""
    short = text if len(text) <= LONGEST else text[:LONGEST] + "..."
    safe = html.escape("".join(c if c.isprintable() else " " for c in short))
    return re.sub(r"([\\|`*_~\[\]()#!@:])", lambda m: f"&#{ord(m[1])};", safe)


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    print(markdown([json.loads(row) for row in text.splitlines() if row.strip()]))
