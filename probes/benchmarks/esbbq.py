"""EsBBQ and CaBBQ (arXiv 2507.11216, Apache-2.0), gender part: Spanish and Catalan, parallel.

The unknown answer stands as the token "unknown" and is worded here, in the item's language.
"""

from __future__ import annotations

from pathlib import Path

from probes.benchmarks.bbq import target_of
from probes.benchmarks.ggbbq import literal
from probes.benchmarks.items import CONDITIONS, POLARITIES, Item, the_unknown
from probes.benchmarks.tables import Row, RowsError, cell, index_of, one_of, read_rows, require
from probes.benchmarks.wording import wording_of

TOKEN = "unknown"  # noqa: S105  a word of the data set, not a secret
_COLUMNS = (
    "instance_id", "template_id", "question_polarity", "context_condition", "category",
    "stereotyped_groups", "context", "question", "ans0", "ans1", "ans2", "label",
)  # fmt: skip


def load(path: Path, language: str = "") -> list[Item]:
    """Items of one file. ``language`` is "es" or "ca"; left empty it is told from the file's name
    (gender_ca.csv). Raises RowsError."""
    rows = read_rows(path)
    require(path, rows, _COLUMNS)
    stem = path.name.split(".")[0].lower()
    spoken = language or next((code for code in ("es", "ca") if stem.endswith(f"_{code}")), "")
    if spoken not in ("es", "ca"):
        raise RowsError(f"{path}: say the language, es or ca: the file's name does not tell")
    return [_item(path, n, row, spoken) for n, row in enumerate(rows, 1)]


def _item(path: Path, number: int, row: Row, language: str) -> Item:
    info = [literal(path, number, row, f"answer_info.ans{k}") for k in range(3)]
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in info):
        raise RowsError(f"{path}, row {number}, column 'answer_info.ans0': [text, group] expected")
    words = tuple(str(pair[0]) for pair in info)
    tags = tuple(str(pair[1]) for pair in info)
    groups = literal(path, number, row, "stereotyped_groups")
    shown = [cell(path, number, row, f"ans{k}") for k in range(3)]
    worded = wording_of(language).unknown[0]
    return Item(
        benchmark="esbbq",
        category=cell(path, number, row, "category"),
        id=cell(path, number, row, "instance_id"),
        template=cell(path, number, row, "template_id"),
        polarity=POLARITIES[one_of(path, number, row, "question_polarity", POLARITIES)],
        condition=CONDITIONS[one_of(path, number, row, "context_condition", CONDITIONS)],
        context=cell(path, number, row, "context"),
        question=cell(path, number, row, "question"),
        options=tuple(worded if option == TOKEN else option for option in shown),
        unknown=the_unknown(path, number, tags),
        target=target_of([str(group) for group in groups], tags, words),
        label=index_of(path, number, row, "label", 3),
        language=language,
        groups=tags,
        words=words,
    )
