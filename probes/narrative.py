"""What does a model have the same protagonist do when only the name is another?

A neutral event is continued. In the arms of named people the leading and the caring verbs that the
continuation gives to the protagonist are counted; in the arm of names that tell no gender, the pronoun
that the model chooses, against an event that has neither leading nor caring in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from probes.calls import Call, Message, Reading, Reply, Sampling, Status
from probes.contract import ProbeSpec, Settings, read_settings
from probes.names import Name, NameSource, name_pairs, neutral_names
from probes.narrative_reading import Verbs, assigned, verbs_of
from probes.narrative_score import UNNAMED, score_stories
from probes.narrative_texts import LEAD, Stories, read_stories
from probes.pairs.alignment import PairRefused, prove
from probes.results import ProbeResult
from probes.statuses import spoken, status_of

SPEC = ProbeSpec(
    id="narrative",
    title="Continuing a story with another name",
    question="Are men and women given the same part when a model tells how a story goes on?",
    languages=("en", "zh", "de"),
    reference="Lucy and Bamman 2021; Wan et al. 2023",
    path_settings=("names", "lexicon", "texts"),
)
EXAMPLES = ({"repeats": 2, "names_per_group": 2, "neutral_names": 1},)
QUOTE = 240
"""Characters of a continuation that are kept to be quoted."""


class NarrativeSettings(Settings):
    """``names_per_group`` pairs go through each story in which somebody is put in charge, and
    ``neutral_names`` names without gender through every story, ``repeats`` times each. ``texts`` is a
    YAML file in the form of probes/data/narratives; ``lexicon`` a JSON file of lists of stems, of which
    ``leading_list`` and ``caring_list`` replace the own verbs. ``margin`` is in shares."""

    repeats: int = Field(5, ge=1, le=1000)
    names_per_group: int = Field(8, ge=2, le=1000)
    neutral_names: int = Field(8, ge=0, le=50)
    names: NameSource = NameSource()
    texts: str | None = None
    lexicon: str | None = None
    leading_list: str = "agentic_words"
    caring_list: str = "communal_words"
    temperature: float | None = Field(0.7, ge=0, le=2)
    top_p: float | None = Field(0.9, gt=0, le=1)
    max_tokens: int = Field(220, ge=32)
    alpha: float = Field(0.05, gt=0, lt=1)
    margin: float = Field(0.1, gt=0, lt=1)


class NarrativeProbe:
    """See the module. Pure: the same settings, language and seed give the same calls."""

    spec = SPEC

    def __init__(self, settings: NarrativeSettings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self._known: dict[str, tuple[Stories, Verbs]] = {}
        if settings.lexicon:
            self._parts("en")  # a wrong file is told before anything is asked

    def calls(self, language: str, seed: int) -> Sequence[Call]:
        """Stories x pairs of names x arms x repeats, and stories x names without gender x repeats.
        Raises PairRefused for a pair that differs in more than the name."""
        stories, _ = self._parts(language)
        s = self.settings
        pairs = name_pairs(language, s.names_per_group, seed, s.names, self.folder).pairs
        found: list[Call] = []
        for story, (kind, _) in stories.events.items():
            for pair in pairs if kind == LEAD else ():
                self._prove(stories, story, pair.first, pair.second, language)
                for name in (pair.first, pair.second):
                    found += self._asked(stories, story, f"{pair.index:03d}", name, language)
            for number, text in enumerate(neutral_names(language, s.neutral_names)):
                unnamed = Name(text, text, UNNAMED)
                found += self._asked(stories, story, f"neutral{number}", unnamed, language)
        return found

    def _asked(
        self, stories: Stories, story: str, pair: str, name: Name, language: str
    ) -> list[Call]:
        s = self.settings
        given = name.given if language == "zh" else name.text.split()[0]
        return [
            Call(
                probe=SPEC.id,
                item=f"{story}/{pair}",
                arm=name.group,
                repeat=repeat,
                language=language,
                messages=(Message("user", stories.prompt(story, _shown(name, language))),),
                sampling=Sampling(s.temperature, s.top_p, s.max_tokens, open_ended=True),
                facts={
                    "story": story, "kind": stories.events[story][0], "pair": pair,
                    "name": name.text, "given": given,
                },
            )
            for repeat in range(s.repeats)
        ]  # fmt: skip

    def _prove(self, stories: Stories, story: str, a: Name, b: Name, language: str) -> None:
        times = stories.prompt(story, "{name}").count("{name}")
        first, second = _shown(a, language), _shown(b, language)
        one, other = stories.prompt(story, first), stories.prompt(story, second)
        try:
            prove(one, other, [(first, second)] * times, "name", language)
        except PairRefused as error:
            raise PairRefused(f"story '{story}', {a.text}: {error}") from None

    def follow_up(self, reading: Reading, seed: int) -> Call | None:
        """None: a refusal stands."""
        return None

    def read(self, call: Call, reply: Reply) -> Reading:
        """The pronoun as label ("he", "she", "they", "none"), the share of leading verbs as value (None
        with a reason where the protagonist has neither kind), both counts as extras."""
        status, reason = status_of(reply, call.language, open_ended=True)
        text = spoken(reply.text)
        quote = " ".join(text.split())[:QUOTE]
        if status is not Status.ANSWERED:
            return Reading(call, status, reason=reason, extras={"quote": quote}, model=reply.model)
        _, verbs = self._parts(call.language)
        names = (call.facts["name"], call.facts["given"])
        found = assigned(text, names, call.language, verbs)
        return Reading(
            call,
            status,
            found.pronoun,
            found.share,
            "" if found.share is not None else "no leading or caring verb of the protagonist",
            {
                "leading": float(len(found.leading)),
                "caring": float(len(found.caring)),
                "quote": quote,
            },
            reply.model,
        )

    def score(self, readings: Sequence[Reading], language: str, seed: int) -> ProbeResult:
        """The difference in the share of leading verbs is the index; pronouns have their own tests."""
        s = self.settings
        return score_stories(
            SPEC, readings, language, seed, s.names.arms, s.names.axis, s.alpha, s.margin
        )

    def _parts(self, language: str) -> tuple[Stories, Verbs]:
        if language not in self._known:
            s = self.settings
            texts = self.folder / s.texts if s.texts else None
            lexicon = self.folder / s.lexicon if s.lexicon else None
            lists = (s.leading_list, s.caring_list)
            self._known[language] = (
                read_stories(language, texts),
                verbs_of(language, lexicon, lists),
            )
        return self._known[language]


def _shown(name: Name, language: str) -> str:
    """A story says the given name; in Chinese the whole name, as is usual."""
    return name.text if language == "zh" else name.text.split()[0]


def build(settings: Mapping[str, Any], folder: Path) -> NarrativeProbe:
    """Make the probe. Raises LikenessError on a wrong setting."""
    return NarrativeProbe(read_settings(NarrativeSettings, settings, SPEC.id), folder)
