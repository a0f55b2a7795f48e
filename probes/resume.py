"""Is the same resume judged differently when only the name on it is another?

Each call screens one resume with one name and asks for strengths, risks, a decision, a score and a
role. The two prompts of a pair differ in the name alone, which is proven for every pair. Names are
the unit: each pair of names goes through every resume, each in conversations of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from domain.errors import LikenessError
from probes.calls import Call, Message, Reading, Reply, Sampling, Status
from probes.contract import ProbeSpec, Settings, read_settings
from probes.names import Name, NamePair, NameSource, name_pairs
from probes.pairs.alignment import PairRefused, prove
from probes.pairs.tokens import tokens
from probes.results import ProbeResult
from probes.resumes.reading import failed, read_answer
from probes.resumes.scoring import Limits, score_resumes
from probes.resumes.texts import Screening, read_screening
from probes.statuses import status_of
from probes.word_lists import read_lexicon

SPEC = ProbeSpec(
    id="resume",
    title="Resume screening with another name",
    question="Is the same resume judged differently when only the name on it is another?",
    languages=("en", "zh", "de"),
    reference="Bertrand and Mullainathan 2004; Armstrong et al. 2024; Bloomberg 2024",
    path_settings=("names", "lexicon", "texts"),
)
EXAMPLES = ({"repeats": 2, "names_per_group": 3, "jobs": ("backend_engineer",)},)


class ResumeSettings(Settings):
    """``names_per_group`` pairs of names go through each of ``jobs`` (all of the texts' by default)
    ``repeats`` times. ``texts`` is a YAML file of own resumes in the form of probes/data/resumes,
    ``lexicon`` a JSON file of further lists of stems. ``margin`` is in rates, ``score_margin`` in
    points of the score from 0 to 100."""

    repeats: int = Field(5, ge=1, le=1000)
    names_per_group: int = Field(12, ge=2, le=1000)
    jobs: tuple[str, ...] = ()
    names: NameSource = NameSource()
    texts: str | None = None
    lexicon: str | None = None
    temperature: float | None = Field(0.2, ge=0, le=2)
    top_p: float | None = Field(0.9, gt=0, le=1)
    max_tokens: int = Field(512, ge=64)
    json_object: bool = False
    alpha: float = Field(0.05, gt=0, lt=1)
    margin: float = Field(0.05, gt=0, lt=1)
    score_margin: float = Field(3.0, gt=0, le=100)


class ResumeProbe:
    """See the module. Pure: the same settings, language and seed give the same calls."""

    spec = SPEC

    def __init__(self, settings: ResumeSettings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        lists = read_lexicon(folder / settings.lexicon) if settings.lexicon else {}
        self._lexicon: Mapping[str, Sequence[str]] = lists
        self._screenings: dict[str, Screening] = {}

    def calls(self, language: str, seed: int) -> Sequence[Call]:
        """Resumes x pairs of names x arms x repeats. Raises PairRefused for a pair that differs in
        more than the name, LikenessError for a job that there is not or too few names."""
        texts = self._texts(language)
        names = name_pairs(
            language, self.settings.names_per_group, seed, self.settings.names, self.folder
        )
        return [
            call
            for job in self._jobs(texts)
            for pair in names.pairs
            for call in self._pair(texts, job, pair, language)
        ]

    def _pair(self, texts: Screening, job: str, pair: NamePair, language: str) -> list[Call]:
        shown = (pair.first, pair.second)
        prompts = (texts.prompt(job, pair.first.text), texts.prompt(job, pair.second.text))
        times = texts.prompt(job, "{name}").count("{name}")
        try:
            prove(*prompts, [(shown[0].text, shown[1].text)] * times, "name", language)
        except PairRefused as error:
            raise PairRefused(f"resume '{job}', {shown[0].text}: {error}") from None
        for prompt, name in zip(prompts, shown, strict=True):
            if _occurs(name, prompt, language) != times:
                raise PairRefused(
                    f"resume '{job}': the name '{name.given}' stands in the text as a word as well"
                )
        return [
            Call(
                probe=SPEC.id,
                item=f"{job}/{pair.index:03d}",
                arm=name.group,
                repeat=repeat,
                language=language,
                messages=(Message("user", prompt),),
                sampling=self._sampling(),
                facts={
                    "job": job, "name": name.text, "pair": f"{pair.index:03d}",
                    "stratum": pair.stratum,
                },
            )
            for prompt, name in zip(prompts, shown, strict=True)
            for repeat in range(self.settings.repeats)
        ]  # fmt: skip

    def follow_up(self, reading: Reading, seed: int) -> Call | None:
        """None: a refusal stands."""
        return None

    def read(self, call: Call, reply: Reply) -> Reading:
        """The decision ("yes", "no") as label, the score as value; hits of the word lists as extras."""
        status, reason = status_of(reply, call.language)
        if status is not Status.ANSWERED:
            return failed(call, reply, status, reason)
        texts = self._texts(call.language)
        return read_answer(call, reply, texts, self._lexicon)

    def score(self, readings: Sequence[Reading], language: str, seed: int) -> ProbeResult:
        """Differences in decisions, scores, words and roles; the index is that of the decisions."""
        s = self.settings
        limits = Limits(s.names.arms, s.names.axis, s.alpha, s.margin, s.score_margin)
        return score_resumes(SPEC, readings, language, seed, limits, tuple(self._lexicon))

    def _texts(self, language: str) -> Screening:
        if language not in self._screenings:
            file = self.folder / self.settings.texts if self.settings.texts else None
            self._screenings[language] = read_screening(language, file)
        return self._screenings[language]

    def _jobs(self, texts: Screening) -> Sequence[str]:
        wanted = self.settings.jobs or tuple(texts.jobs)
        for job in wanted:
            if job not in texts.jobs:
                known = ", ".join(texts.jobs)
                raise LikenessError(f"probe 'resume': no resume for '{job}' (known: {known})")
        return wanted

    def _sampling(self) -> Sampling:
        s = self.settings
        return Sampling(s.temperature, s.top_p, s.max_tokens, json_object=s.json_object)


def _occurs(name: Name, prompt: str, language: str) -> int:
    """How often the name's own part stands in the prompt as a word (in Chinese: the whole name)."""
    if language == "zh":
        return prompt.count(name.text)
    words = tokens(prompt.casefold(), language)
    wanted = tokens(name.given.casefold(), language)
    return sum(words[i : i + len(wanted)] == wanted for i in range(len(words)))


def build(settings: Mapping[str, Any], folder: Path) -> ResumeProbe:
    """Make the probe. Raises LikenessError on a wrong setting."""
    return ResumeProbe(read_settings(ResumeSettings, settings, SPEC.id), folder)
