"""How a checked tool and its answer are shown, on a screen and to machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer

from adapters.guard import one_line
from domain.measurements import Outcome
from domain.sizing import SizeRule
from domain.tools import RateLimit
from metrics.difference import CHANGED_LEVELS
from service.cli.escape import printable
from service.cli.estimates import price_words
from service.report.calls import CLOCK_OFF, money
from service.report.wording import duration, figure, words
from service.tool_check import Answer, Ready
from service.tool_facts import spec_json

WIDTH = 15
LONGEST = 400
FACES = {
    Outcome.MEASURED: "found in the answer",
    Outcome.FACE_LOST: "lost: none in the answer",
    Outcome.BLANK: "the answer is a plain picture of one colour",
    Outcome.NOT_MEASURABLE: "the instrument cannot judge this pair",
}


def show(one: Ready, answer: Answer) -> None:
    """Line by line, on stdout. Everything a stranger's server said is made printable."""
    for name, said in _lines(one, answer):
        typer.echo(f"{name:{WIDTH}} {printable(said)}")
    typer.echo("\nWhat would be refused or not fit")
    for said in limits(one):
        typer.echo(f"- {printable(said)}")


def _lines(one: Ready, answer: Answer) -> list[tuple[str, str]]:
    meta = answer.meta
    lines = [("outcome", _outcome(answer)), ("time", f"{figure(answer.seconds)} s")]
    lines.append(("sent", _sent(one)))
    lines += [("", note) for note in one.notes]
    if isinstance(meta.get("sent"), dict) and meta["sent"]:
        said = ", ".join(f"{key} {value}" for key, value in meta["sent"].items())
        lines.append(("asked with", one_line(said, LONGEST)))
    if answer.picture is not None:
        lines.append(("came back", _back(answer)))
    lines.append(("model", answer.model))
    for key, name in (("request_id", "request id"), ("http_status", "HTTP status")):
        if meta.get(key):
            lines.append((name, str(meta[key])))
    if isinstance(meta.get("clock_skew_s"), int | float):
        lines.append(("clock", clock_words(float(meta["clock_skew_s"]))))
    lines += [("cost", said) for said in _cost(answer)]
    lines += _pixels(one, answer)
    if answer.face:
        lines.append(("face", _face(answer)))
    if meta.get("note"):
        lines.append(("note", str(meta["note"])))
    return lines


def _outcome(answer: Answer) -> str:
    if answer.outcome == Outcome.REFUSED.value:
        return f"refused (stage {answer.stage}, code {answer.code}): {answer.text or 'no reason given'}"
    if answer.outcome == Outcome.FAILED.value:
        wait = f" after {figure(answer.retry_after)} s" if answer.retry_after is not None else ""
        again = f" (an audit would try again{wait})" if answer.retryable else ""
        return f"failed: {answer.text}{again}"
    if answer.unreadable:
        return f"an answer came back that is no usable picture: {answer.unreadable}"
    return "a picture came back"


def _sent(one: Ready) -> str:
    r = one.request
    said = f"{r.width}x{r.height}, {_bytes(len(r.picture or b''))}, {r.media_type}"
    if r.mask is not None:
        share = float((r.mask.values > 0).mean())
        said += f"; a mask of the {words(r.mask.kind)}, {100 * share:.0f} % of the picture"
    return said


def _back(answer: Answer) -> str:
    size = f"{answer.size[0]}x{answer.size[1]}, " if answer.size else ""
    return f"{size}{_bytes(len(answer.picture or b''))}, {answer.media_type}"


def _bytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1_000_000 else f"{max(count, 1000) / 1e3:.0f} kB"


def clock_words(skew: float) -> str:
    """The server's clock minus ours, in words."""
    if abs(skew) <= 1.5:  # a Date header is whole seconds
        return "agrees with the server's"
    said = f"this machine's is {duration(abs(skew))} {'behind' if skew > 0 else 'ahead of'} the server's"
    return f"{said}: signed requests may be refused" if abs(skew) > CLOCK_OFF else said


def _cost(answer: Answer) -> list[str]:
    said = []
    cost = answer.meta.get("cost")
    if isinstance(cost, dict) and isinstance(cost.get("amount"), int | float):
        amount = money(float(cost["amount"]), str(cost.get("currency") or "USD"))
        said.append(f"{amount}, as the tool says")
    if answer.meta.get("maybe_billed") is True:
        said.append("may be billed, although nothing usable came back")
    return said


def _pixels(one: Ready, answer: Answer) -> list[tuple[str, str]]:
    """What changed, where the tool was told to act and where it was told not to."""
    if answer.not_compared:
        return [("changed", f"not compared pixel by pixel: {answer.not_compared}")]
    if answer.unchanged:
        return [("changed", "nothing: the very picture that was sent came back")]
    if answer.inside_changed is None:
        return []
    where = "mask" if one.request.mask is not None else "picture"
    lines = [("changed", f"{_share(answer.inside_changed)} of the {where}'s pixels")]
    if answer.outside_changed is not None and answer.outside_drift is not None:
        said = (
            f"{_share(answer.outside_changed)} of the protected pixels moved by more than"
            f" {CHANGED_LEVELS} levels of 255; all of them by {figure(answer.outside_drift)} on average"
        )
        lines.append(("outside mask", said))
    return lines


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _face(answer: Answer) -> str:
    outcome, _, reason = answer.face.partition(": ")
    said = FACES.get(Outcome(outcome), words(outcome))
    if outcome == Outcome.MEASURED.value:
        return f"{said}, {figure(answer.flrr)} % of its landmarks in place"
    return f"{said} ({reason})" if reason else said


def limits(one: Ready) -> list[str]:
    """What the tool takes and does not take, a sentence each."""
    spec = one.spec
    rate = RateLimit.parse(one.choice.rate_limit) if one.choice.rate_limit else spec.rate
    at_once = one.choice.concurrency or spec.concurrency
    masks = {
        "none": "takes no mask",
        "advisory": "takes one, and may change pixels outside it",
        "enforced": "takes one, and keeps what is outside it",
    }
    return [
        *spec.refuses,
        f"Size: {size_words(spec.size)}. Other pictures are fitted, never stretched.",
        f"Tasks: {', '.join(map(words, spec.tasks))}. Others are refused when the plan is read.",
        f"Mask: {masks[spec.mask_support]}. Prompt: {'taken' if spec.takes_prompt else 'ignored'}."
        f" Seed: {'taken' if spec.seedable else 'ignored'}.",
        f"Rate: {f'at most {rate.calls} calls in {rate.seconds:g} s' if rate else 'no limit known'};"
        f" {at_once} at a time.",
        f"Price: {price_line(one)}.",
    ]


def size_words(rule: SizeRule) -> str:
    """The sizes a tool takes natively."""
    if rule.sizes:
        return "only " + ", ".join(f"{w}x{h}" for w, h in rule.sizes)
    said = f"sides of {rule.min_side} to {rule.max_side} px"
    if rule.multiple > 1:
        said += f" in multiples of {rule.multiple}"
    return f"{said}, {rule.aspect:.3g} times as wide as high" if rule.aspect else said


def price_line(one: Ready) -> str:
    """The price with its source, or the maker's own words where nobody has named a figure."""
    if one.price is None:
        return f"unknown ({one.spec.price_note}); set tools[].price in the plan"
    said = price_words(one.price)
    if said != "nothing":
        said += " a call"
    return f"{said} ({one.price.source})" if one.price.source else said


def answer_json(one: Ready, answer: Answer) -> dict[str, Any]:
    """Everything the screen shows, without the picture."""
    told = asdict(answer)
    picture = told.pop("picture")
    return {
        "tool": one.label,
        "destination": one.destination.host or None,
        "remote": one.destination.remote,
        "picture": one.picture_name,
        "sent": {
            "task": str(one.request.task),
            "width": one.request.width,
            "height": one.request.height,
            "bytes": len(one.request.picture or b""),
            "media_type": one.request.media_type,
            "mask": str(one.request.mask.kind) if one.request.mask is not None else None,
            "notes": list(one.notes),
        },
        "answer": told | {"bytes": None if picture is None else len(picture)},
        "price": asdict(one.price) if one.price else None,
        "limits": limits(one),
        "spec": spec_json(one.spec),
    }
