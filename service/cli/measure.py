"""``likeness measure``: every figure of one pair, or of a CSV of pairs."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from domain.errors import LikenessError
from domain.measurements import Outcome, PairResult
from service.answers import of_pair
from service.cli.escape import printable
from service.cli.server_option import ServerUrl
from service.measuring import Instrument

Engine = Annotated[Literal["mediapipe", "dlib"], typer.Option(help="Which landmark engine speaks.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]
UNREADABLE = (Outcome.ORIGINAL_UNREADABLE, Outcome.EDITED_UNREADABLE)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("measure")(measure)


def measure(
    original: Annotated[Path | None, typer.Argument(help="The picture as it was sent.")] = None,
    edited: Annotated[Path | None, typer.Argument(help="What the tool returned.")] = None,
    batch: Annotated[
        Path | None, typer.Option(help="CSV with columns original,edited; paths relative to it.")
    ] = None,
    engine: Engine = "mediapipe",
    profile: Annotated[
        Literal["document", "even"], typer.Option(help="The health profile that decides.")
    ] = "document",
    diagnosis: Annotated[
        Path | None, typer.Option(help="Write the three-part picture of the pair here (PNG).")
    ] = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Measure what an edit did to a face.

    Exit 0 when it could run, 2 when not. With --batch a bad pair is a line with its reason and
    the others go on.
    """
    instrument = Instrument(engine, profile)
    if batch is not None:
        if original is not None:
            raise LikenessError("give either two pictures or --batch, not both")
        _batch(instrument, batch, as_json, server)
        return
    if original is None or edited is None:
        raise LikenessError("give ORIGINAL and EDITED, or --batch PAIRS.csv")
    if server is not None:
        if diagnosis is not None:
            raise LikenessError("--diagnosis is drawn here: leave out --server")
        answer = _of_server(server, instrument, original, edited)
    else:
        result = readable(instrument, original, edited)
        if diagnosis is not None:
            _write_diagnosis(original, edited, result, diagnosis)
        answer = of_pair(result)
    if as_json:
        print(json.dumps(answer))
    else:
        _show(answer)


def _of_server(url: str, how: Instrument, original: Path, edited: Path) -> dict[str, Any]:
    from service.cli import remote
    from service.client import PairOptions

    with remote.client(url) as server:
        return remote.pair(
            server, original, edited, PairOptions(how.engine, how.profile, how.min_score)
        )


def readable(instrument: Instrument, original: Path, edited: Path) -> PairResult:
    """Measure two files. Raises LikenessError in one line when one of them cannot be read."""
    for path in (original, edited):
        if not path.is_file():
            what = "a folder, not a file" if path.is_dir() else "no such file"
            raise LikenessError(f"{printable(str(path))}: {what}")
    result = instrument.measure_files(original, edited)
    if result.outcome in UNREADABLE:
        path = original if result.outcome is Outcome.ORIGINAL_UNREADABLE else edited
        raise LikenessError(f"{printable(str(path))}: {str(result.reason).split(': ', 1)[1]}")
    return result


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Rows (original, edited) of a pairs CSV. Raises LikenessError naming file, line and column."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LikenessError(f"{printable(str(path))}: cannot be read: {error}") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    found = reader.fieldnames or []
    for column in ("original", "edited"):
        if column not in found:
            listed = ", ".join(found) or "none"
            raise LikenessError(
                f"{printable(str(path))}: line 1: column '{column}' is missing (found: {listed})"
            )
    return [((row["original"] or "").strip(), (row["edited"] or "").strip()) for row in reader]


def _batch(instrument: Instrument, path: Path, as_json: bool, server: str | None) -> None:
    pairs = read_pairs(path)
    if not pairs:
        raise LikenessError(f"{printable(str(path))}: no pairs under the header")
    progress = Console(stderr=True)
    answers = (
        _answers(instrument, path.parent, pairs)
        if server is None
        else _answers_of(server, instrument, path.parent, pairs)
    )
    lines = track(answers, "measuring", total=len(pairs), console=progress)
    for answer in lines:
        if as_json:
            print(json.dumps(answer), flush=True)
        else:
            score = answer["health"]["score"]
            said = answer["reason"] or ("no score" if score is None else f"health {score:.0f}")
            print(f"{printable(answer['edited'])}: {answer['outcome']}: {said}", flush=True)


def _answers(
    instrument: Instrument, folder: Path, pairs: list[tuple[str, str]]
) -> Iterator[dict[str, Any]]:
    for original, edited in pairs:
        result = _one(instrument, folder, original, edited)
        yield {"original": original, "edited": edited, **of_pair(result)}


def _answers_of(
    url: str, instrument: Instrument, folder: Path, pairs: list[tuple[str, str]]
) -> Iterator[dict[str, Any]]:
    from service.cli import remote
    from service.client import PairOptions

    how = PairOptions(instrument.engine, instrument.profile, instrument.min_score)
    with remote.client(url) as server:
        for original, edited in pairs:
            missing = _missing(instrument, folder, original, edited)
            answer = (
                remote.figures(server, instrument, folder / original, folder / edited, how)
                if missing is None
                else of_pair(missing)
            )
            yield {"original": original, "edited": edited, **answer}


def _one(instrument: Instrument, folder: Path, original: str, edited: str) -> PairResult:
    missing = _missing(instrument, folder, original, edited)
    return missing or instrument.measure_files(folder / original, folder / edited)


def _missing(instrument: Instrument, folder: Path, original: str, edited: str) -> PairResult | None:
    for name, outcome in (
        (original, Outcome.ORIGINAL_UNREADABLE),
        (edited, Outcome.EDITED_UNREADABLE),
    ):
        if not name:
            return instrument.without(outcome, "the cell is empty")
        if not (folder / name).is_file():
            return instrument.without(outcome, f"{name}: no such file")
    return None


def _write_diagnosis(original: Path, edited: Path, result: PairResult, target: Path) -> None:
    from preprocess.decode import open_picture
    from service.report.diagnosis import diagnosis_png

    first, second = open_picture(original), open_picture(edited)
    try:
        picture = diagnosis_png(
            first.pixels, second.pixels, result.evidence, result.measurements, edited.name
        )
        target.write_bytes(picture)
    except OSError as error:
        raise LikenessError(f"{target}: cannot be written: {error.strerror or error}") from None


def _show(answer: dict[str, Any]) -> None:
    console = Console(file=sys.stdout)
    head = f"{answer['outcome']}" + (f": {answer['reason']}" if answer["reason"] else "")
    console.print(Text(f"{head} (engine {answer['engine']})"))
    if answer["outcome"] == Outcome.MEASURED:
        table = Table("figure", "face", "lower face", "beard area", "unit")
        lower, beard = (answer["regions"].get(r, {}) for r in ("lower_face", "beard"))
        for name, figure in answer["metrics"].items():
            cells = [_cell(f) for f in (figure, lower.get(name), beard.get(name))]
            table.add_row(name, *cells, figure["unit"])
        console.print(table)
    for h in answer["profiles"].values():
        score = "none" if h["score"] is None else f"{h['score']:.1f}"
        console.print(Text(f"health ({h['profile']}): {score}, {h['decision']}"))
        for reason in h["reasons"]:
            console.print(Text(f"  - {reason}"))
    for warning in answer["warnings"]:
        console.print(Text(f"note: {warning}"))


def _cell(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return ""
    if figure["value"] is None:
        return "not measurable"
    return f"{figure['value']:.3g}"
