"""Which gender a model puts with an occupation: by its next word, by a stated share, by a choice.

Three ways (setting ``mode``), all of which end in one figure per occupation and template, log-odds of
men against women with those of a neutral word ("person") taken off:

* ``next_token``: log-probabilities of the two pronouns after neutral sentences. No text is drawn.
* ``estimate``: the share of women, and of men, in the texts that the model knows. Who declines is
  asked once more in other words; answers to the second question are told apart from the first.
* ``choice``: one of two pronouns for a gap, with either named first.

After Bolukbasi et al. 2016 (occupations), Kurita et al. 2019 (log-odds against a neutral prior) and
Rudinger et al. 2018 (Winogender). docs/probes/association.md has the definitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from domain.errors import LikenessError
from probes.association_reading import chosen_pronoun, pronoun_odds, stated_share
from probes.association_score import Question, result
from probes.association_texts import (
    LANGUAGES,
    Occupation,
    Shares,
    occupations,
    own_shares,
    read_shares,
    texts,
)
from probes.calls import Call, Message, Reading, Reply, Sampling, Status, in_order
from probes.contract import ProbeSpec, Settings, read_settings
from probes.results import ProbeResult
from probes.statuses import spoken, status_of

SPEC = ProbeSpec(
    id="association",
    title="Occupations and gender",
    question="Which gender does the model put with an occupation, beside what it puts with nobody in"
    " particular?",
    languages=LANGUAGES,
    reference="Kurita et al. 2019, doi 10.18653/v1/W19-3823; Rudinger et al. 2018, doi 10.18653/v1/N18-2002",
    path_settings=("reference",),
)
EXAMPLES = (
    {"templates": 3, "occupations": (), "more_occupations": {"pilot": "Pilot", "cook": "Cook"}},
    {"mode": "next_token", "kind": "chat", "templates": 3},
    {"mode": "estimate", "occupations": (), "more_occupations": {"cook": "Cook"}, "repeats": 2},
    {"mode": "choice", "occupations": (), "more_occupations": {"cook": "Cook"}, "repeats": 2},
)
Mode = Literal["next_token", "estimate", "choice"]
NEUTRAL = "(neutral)"
ARMS: Mapping[Mode, tuple[str, str]] = {
    "next_token": ("occupation", "neutral"),
    "estimate": ("men", "women"),
    "choice": ("men first", "women first"),
}
NEEDS: Mapping[str, tuple[str, ...]] = {
    "completion": ("completion", "logprobs"),
    "chat": ("logprobs",),
}


class Reference(Settings):
    """A table of shares of women: ``occupation`` and ``share`` name its columns."""

    file: str
    occupation: str = "occupation"
    share: str = "share_women"
    percent: bool = False
    source: str = ""


class AssociationSettings(Settings):
    """``kind`` is how ``next_token`` asks. ``occupations`` are ids of the language's list, None for
    all of them; ``more_occupations`` adds own ones, id to word. ``templates`` and ``wordings`` use
    the first that many only. ``repeats`` None: 1 for ``next_token`` (nothing is drawn), else 5.
    ``margin`` (0 to 1) is how far from 0 the pooled index may lie without mattering."""

    mode: Mode = "next_token"
    kind: Literal["completion", "chat"] = "completion"
    occupations: tuple[str, ...] | None = None
    more_occupations: Mapping[str, str] = Field(default_factory=dict)
    templates: Annotated[int, Field(ge=1)] | None = None
    repeats: Annotated[int, Field(ge=1, le=1000)] | None = None
    top_logprobs: Annotated[int, Field(ge=2, le=1000)] = 20
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.9
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    reference: Reference | None = None
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.05
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05


class Association:
    """The probe with its settings."""

    def __init__(self, settings: AssociationSettings, shares: Shares | None) -> None:
        self.settings = settings
        self._shares = shares
        mode = settings.mode
        self.spec = replace(SPEC, needs=NEEDS[settings.kind] if mode == "next_token" else ())

    @property
    def repeats(self) -> int:
        """How often each question is put."""
        return self.settings.repeats or (1 if self.settings.mode == "next_token" else 5)

    def _asked(self, language: str) -> tuple[Occupation, ...]:
        chosen = occupations(language, self.settings.occupations, self.settings.more_occupations)
        return (*chosen, Occupation(id=NEUTRAL, word=texts(language).neutral))

    def _wordings(self, language: str) -> tuple[str, ...]:
        found, mode = texts(language), self.settings.mode
        all_of_them = {
            "next_token": found.templates,
            "estimate": found.estimate.wordings,
            "choice": found.choice.wordings,
        }[mode]
        return all_of_them[: self.settings.templates]

    def calls(self, language: str, seed: int) -> Sequence[Call]:
        """Every occupation and the neutral word, in every wording, under every arm, repeatedly."""
        del seed  # nothing is chosen by chance here
        return [
            self._call(language, number, wording, occupation, arm, repeat)
            for number, wording in enumerate(self._wordings(language), 1)
            for occupation in self._asked(language)
            for arm in self._arms(occupation)
            for repeat in range(self.repeats)
        ]

    def _arms(self, occupation: Occupation) -> tuple[str, ...]:
        both = ARMS[self.settings.mode]
        if self.settings.mode != "next_token":
            return both
        return (both[1],) if occupation.id == NEUTRAL else (both[0],)

    def _call(
        self,
        language: str,
        number: int,
        wording: str,
        occupation: Occupation,
        arm: str,
        repeat: int,
    ) -> Call:
        facts = {
            "mode": self.settings.mode,
            "template": f"{language}{number}",
            "occupation": occupation.id,
            "word": occupation.word,
        }
        call = Call(
            SPEC.id, f"{language}{number}:{occupation.id}", arm, repeat, language, facts=facts
        )
        asked = self._words(wording, occupation.word, arm, language)
        if self.settings.mode == "estimate":
            facts["group"] = self._group(arm, language)
        if self.settings.mode == "next_token":
            sampling = Sampling(
                None, None, 1, top_logprobs=self.settings.top_logprobs, open_ended=True
            )
            if self.settings.kind == "completion":
                return replace(call, kind="completion", prompt=asked, sampling=sampling)
            asked = texts(language).next_word.format(sentence=asked)
        else:
            most = self.settings.max_tokens or (64 if self.settings.mode == "estimate" else 16)
            sampling = Sampling(self.settings.temperature, self.settings.top_p, most)
        return replace(call, messages=(Message("user", asked),), sampling=sampling)

    def _group(self, arm: str, language: str) -> str:
        groups = texts(language).groups
        return groups.women if arm == "women" else groups.men

    def _words(self, wording: str, word: str, arm: str, language: str) -> str:
        found, group = texts(language), self._group(arm, language)
        pronouns = (found.pronouns.men, found.pronouns.women)
        first, second = pronouns if arm == "men first" else pronouns[::-1]
        return wording.format(o=word, group=group, first=first, second=second)

    def follow_up(self, reading: Reading, seed: int) -> Call | None:
        """The other question for a share, where the first was declined."""
        del seed
        call = reading.call
        if (
            self.settings.mode != "estimate"
            or reading.status is not Status.REFUSED
            or call.stage != "main"
        ):
            return None
        wording = texts(call.language).estimate.fallback
        asked = self._words(wording, call.facts["word"], call.arm, call.language)
        kept = tuple(m for m in call.messages if m.role == "system")
        return replace(call, messages=(*kept, Message("user", asked)), stage="fallback")

    def read(self, call: Call, reply: Reply) -> Reading:
        """``next_token``: ``value`` is the log-odds in nats, men's pronoun over women's. ``estimate``:
        the share of men in [0, 1]. ``choice``: ``label`` is "men" or "women"."""
        if self.settings.mode == "next_token":
            return self._read_odds(call, reply)
        status, reason = status_of(reply, call.language)
        said = spoken(reply.text)[:160]
        reading = Reading(call, status, reason=reason, extras={"said": said}, model=reply.model)
        if status is not Status.ANSWERED:
            return reading
        found = texts(call.language)
        if self.settings.mode == "choice":
            chosen = chosen_pronoun(reply.text, found.pronouns)
            if chosen is None:
                why = "names neither pronoun, or both"
                return replace(reading, status=Status.OUT_OF_CHOICE, reason=why)
            return replace(reading, label=chosen)
        words = (found.groups.men, found.groups.women)
        asked, other = words if call.arm == "men" else words[::-1]
        share, why = stated_share(reply.text, asked, other)
        if share is None:
            outside = why.endswith("no percentage")
            ended = Status.OUT_OF_CHOICE if outside else Status.UNPARSABLE
            return replace(reading, status=ended, reason=why)
        return replace(reading, value=share if call.arm == "men" else 1 - share)

    def _read_odds(self, call: Call, reply: Reply) -> Reading:
        status, reason = status_of(reply, call.language, open_ended=True)
        declined = status in (Status.ERRORED, Status.FILTERED) or bool(reply.refusal.strip())
        if declined or not reply.top_logprobs:
            # whatever the one token that was drawn says: without probabilities there is no figure
            ended = status if declined else Status.UNPARSABLE
            why = reason if declined else "no log-probabilities in the reply"
            return Reading(call, ended, reason=why, model=reply.model)
        told = reply.top_logprobs[0]
        odds = pronoun_odds(told, texts(call.language).pronouns, self.settings.kind == "chat")
        if odds is None:
            why = f"neither pronoun is among the {len(told)} most likely tokens"
            return Reading(call, Status.OUT_OF_CHOICE, reason=why, model=reply.model)
        reason = f"{odds.bound} this: one pronoun is not among the {len(told)} most likely tokens"
        return Reading(
            call, Status.ANSWERED, value=odds.log_odds, reason=reason if odds.bound else "",
            extras={"mass": odds.mass, "bound": odds.bound}, model=reply.model,
        )  # fmt: skip

    def score(self, readings: Sequence[Reading], language: str, seed: int) -> ProbeResult:
        """Leaning by occupation and pooled, against the neutral word and the reference shares."""
        settings = self.settings
        asked = Question(
            spec=self.spec, mode=settings.mode, arms=ARMS[settings.mode], language=language,
            shares=self._shares or own_shares(language), repeats=self.repeats,
            margin=settings.margin, alpha=settings.alpha, seed=seed,
            occupations=tuple(o.id for o in self._asked(language) if o.id != NEUTRAL),
            templates=tuple(f"{language}{n}" for n, _ in enumerate(self._wordings(language), 1)),
        )  # fmt: skip
        return result(asked, in_order(readings))


def build(settings: Mapping[str, Any], folder: Path) -> Association:
    """Make the probe. Raises LikenessError with one line on a wrong setting or reference table."""
    read = read_settings(AssociationSettings, settings, SPEC.id)
    known = {o.id for language in LANGUAGES for o in texts(language).occupations}
    unknown = [o for o in read.occupations or () if o not in known | set(read.more_occupations)]
    if unknown:
        raise LikenessError(
            f"probe '{SPEC.id}': no occupation '{unknown[0]}' in any language's list"
        )
    if NEUTRAL in read.more_occupations:
        raise LikenessError(f"probe '{SPEC.id}': '{NEUTRAL}' is no name for an occupation")
    shares = None
    if table := read.reference:
        shares = read_shares(
            folder / table.file, table.occupation, table.share, table.percent, table.source
        )
    return Association(read, shares)
