"""Proof that two prompts differ in one slot alone, and the refusal of pairs that do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from domain.errors import LikenessError
from probes.pairs.tokens import tokens

Change = tuple[str, str]
"""What stands in the first prompt and what in the second, at the same place."""


class PairRefused(LikenessError):
    """Two prompts that are no minimal pair; the message says what else differs."""


@dataclass(frozen=True, slots=True)
class AlignmentProof:
    """``b`` is ``a`` with ``changes`` made in their order, and nothing else; all of them are forms of
    the variable ``slot``. ``tokens_a`` and ``tokens_b`` count the prompts' tokens, ``shared`` those
    that both have at the same place."""

    slot: str
    changes: tuple[Change, ...]
    tokens_a: int
    tokens_b: int
    shared: int
    language: str

    @property
    def sentence(self) -> str:
        """The proof in words."""
        said = ", ".join(f"'{a}' / '{b}'" for a, b in self.changes)
        return f"differs in {self.slot} alone ({said}); {self.shared} tokens are the same"


def the_variable(a: Mapping[str, str], b: Mapping[str, str]) -> str:
    """The one variable in which two cells of a design differ.

    Raises PairRefused when they differ in none, or in more than one: a difference between the answers
    could not be told to either.
    """
    differing = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    if not differing:
        raise PairRefused("the two prompts of the pair are the same: no variable differs")
    if len(differing) > 1:
        said = " and ".join(f"{n} ({a.get(n, '-')} / {b.get(n, '-')})" for n in differing)
        raise PairRefused(
            f"the pair differs in {_count(len(differing))} variables, {said}: a difference between the "
            "answers could not be told to either"
        )
    return differing[0]


def prove(a: str, b: str, declared: Sequence[Change], slot: str, language: str) -> AlignmentProof:
    """Proof that ``b`` is ``a`` with the ``declared`` forms of ``slot`` exchanged, in that order, each
    exactly once. Declared forms that are the same in both prompts are no change.

    Raises PairRefused with a sentence that names what else differs.
    """
    tokens_a, tokens_b = tokens(a, language), tokens(b, language)
    changes = [c for c in (_trimmed(pair, language) for pair in declared) if c[0] or c[1]]
    if not changes:
        raise PairRefused(
            f"the two prompts of the pair are the same: {slot} has no form that differs"
        )
    shared = _shared(tokens_a, tokens_b, changes)
    if shared is None:
        raise PairRefused(_what_else(tokens_a, tokens_b, changes, slot))
    kept = tuple(("".join(x), "".join(y)) for x, y in changes)
    return AlignmentProof(slot, kept, len(tokens_a), len(tokens_b), shared, language)


def differences(a: str, b: str, language: str) -> tuple[Change, ...]:
    """Where two texts differ, in order (longest matching blocks, so not always the fewest tokens)."""
    tokens_a, tokens_b = tokens(a, language), tokens(b, language)
    matcher = SequenceMatcher(None, tokens_a, tokens_b, autojunk=False)
    return tuple(
        ("".join(tokens_a[i1:i2]), "".join(tokens_b[j1:j2]))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    )


def check_texts(
    a: str, b: str, language: str, lexicon: Mapping[str, str], slot: str
) -> AlignmentProof:
    """The proof for two finished texts, where ``lexicon`` tells of which variable a word (lower case)
    is a form. Words of another variable, or of none, refuse the pair."""
    found = differences(a, b, language)
    by_variable: dict[str, Change] = {}
    for x, y in found:
        for variable in _variables(x, y, language, lexicon):
            by_variable.setdefault(variable, (x, y))
    if len(by_variable) > 1 or (by_variable and slot not in by_variable):
        the_variable(
            {slot: "", **{v: x for v, (x, _) in by_variable.items()}},
            {slot: "", **{v: y for v, (_, y) in by_variable.items()}},
        )
        other = next(iter(by_variable))
        raise PairRefused(f"the pair differs in {other} and not in {slot}")
    return prove(a, b, found, slot, language)


def _variables(x: str, y: str, language: str, lexicon: Mapping[str, str]) -> list[str]:
    whole = [lexicon.get(x.lower()), lexicon.get(y.lower())]
    if whole[0] is not None and whole[0] == whole[1]:
        return [whole[0]]
    words = [t for t in (*tokens(x, language), *tokens(y, language)) if not t.isspace()]
    return [lexicon.get(w.lower(), f"the word '{w}'") for w in words]


def _trimmed(pair: Change, language: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tokens in which two forms differ, without what both begin and end with."""
    a, b = tokens(pair[0], language), tokens(pair[1], language)
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    return a[start : len(a) - end], b[start : len(b) - end]


def _shared(
    a: Sequence[str], b: Sequence[str], changes: Sequence[tuple[tuple[str, ...], tuple[str, ...]]]
) -> int | None:
    """Tokens in common if ``b`` is ``a`` with all ``changes`` made in order, else None. Where a token
    is the same in both and a change could begin too, both ways are followed."""
    shift = [0]
    for x, y in changes:
        shift.append(shift[-1] + len(y) - len(x))
    open_states, seen = [(0, 0)], {(0, 0)}
    while open_states:
        i, k = open_states.pop()
        j = i + shift[k]
        if i == len(a) and j == len(b) and k == len(changes):
            return len(a) - sum(len(x) for x, _ in changes)
        steps = []
        if i < len(a) and j < len(b) and a[i] == b[j]:
            steps.append((i + 1, k))
        if k < len(changes):
            x, y = changes[k]
            if tuple(a[i : i + len(x)]) == x and tuple(b[j : j + len(y)]) == y:
                steps.append((i + len(x), k + 1))
        open_states += [s for s in steps if s not in seen]
        seen.update(steps)
    return None


def _what_else(
    a: Sequence[str],
    b: Sequence[str],
    changes: Sequence[tuple[tuple[str, ...], tuple[str, ...]]],
    slot: str,
) -> str:
    declared = [("".join(x), "".join(y)) for x, y in changes]
    said = ", ".join(f"'{x}' / '{y}'" for x, y in declared)
    left = list(declared)
    others = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        found = ("".join(a[i1:i2]), "".join(b[j1:j2]))
        if tag == "equal":
            continue
        if found in left:
            left.remove(found)
        else:
            others.append(f"'{found[0]}' / '{found[1]}'")
    tail = f"; they differ in {', '.join(others)} as well" if others else "; not all of it is there"
    return f"the two prompts do not differ exactly in the forms of {slot} ({said}){tail}"


def _count(n: int) -> str:
    return {2: "two", 3: "three"}.get(n, str(n))
