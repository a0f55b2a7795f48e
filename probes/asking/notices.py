"""What the replies tell of the model itself: another one than was asked for, several, or a change."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from probes.asking.body import not_sent
from probes.calls import Reply

_DATE = re.compile(r"[-@:](?:\d{4}-?\d{2}-?\d{2}|\d{4}|latest|v\d+)$")
SHOWN = 5


def model_notices(replies: Iterable[Reply], asked: str) -> tuple[str, ...]:
    """Sentences about the model string, the fingerprint and the back-end that ``replies`` name,
    where there is something to say. ``asked`` is the model of the plan."""
    came = sorted(
        (r for r in replies if r.model or r.fingerprint or r.returned), key=lambda r: r.at
    )
    models = [r.model for r in came if r.model]
    out = []
    wrong = Counter(m for m in models if not is_asked(m, asked))
    if wrong:
        out.append(
            f"asked for {asked}; {sum(wrong.values())} of {len(models)} replies name {_told(wrong)}"
        )
    out += _several("model", models)
    out += _several("fingerprint", [r.fingerprint for r in came if r.fingerprint])
    out += _several(
        "provider", [str(r.returned["provider"]) for r in came if r.returned.get("provider")]
    )
    return tuple(out)


def parameter_notices(replies: Iterable[Reply]) -> tuple[str, ...]:
    """Sentences about parameters that were wished for and not sent, or that the server names
    otherwise than they were sent."""
    dropped: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    for reply in replies:
        dropped.update(not_sent(reply))
        for name, value in reply.returned.items():
            if name in reply.sent and reply.sent[name] != value:
                changed[f"{name}: {reply.sent[name]} sent, {value} named by the reply"] += 1
    return (
        *(
            f"'{name}' was wished for and not sent in {n} calls"
            for name, n in sorted(dropped.items())
        ),
        *(f"{what} in {n} calls" for what, n in sorted(changed.items())),
    )


def is_asked(model: str, asked: str) -> bool:
    """Whether a reply's ``model`` is the one asked for: the same, with or without its maker before
    it and the date of its version behind it."""

    def plain(name: str) -> str:
        name = name.casefold().rpartition("/")[2]
        while _DATE.search(name):
            name = _DATE.sub("", name)
        return name

    first, second = model.casefold(), asked.casefold()
    if first == second or first.rpartition("/")[2] == second.rpartition("/")[2]:
        return True
    # Two dates of one model are two models
    dated = bool(_DATE.search(second)) and bool(_DATE.search(first))
    return plain(model) == plain(asked) and not dated


def _several(what: str, names: Sequence[str]) -> list[str]:
    counts = Counter(names)
    if len(counts) < 2:
        return []
    runs = 1 + sum(a != b for a, b in itertools.pairwise(names))
    if runs == len(counts):  # in order of time: each name in one stretch
        at = next(i for i, name in enumerate(names) if name != names[0])
        return [
            f"the {what} changed during the run, from {names[0]} to {names[at]} after {at} of "
            f"{len(names)} replies: figures before and after are of different models"
        ]
    return [
        f"replies name {len(counts)} {what}s in turn ({_told(counts)}): several back-ends answer, and "
        "figures mix them"
    ]


def _told(counts: Counter[str]) -> str:
    shown = ", ".join(f"{name} ({n})" for name, n in counts.most_common(SHOWN))
    return shown + (", ..." if len(counts) > SHOWN else "")
