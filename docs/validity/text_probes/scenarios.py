"""The scenarios of the bench, with the sizes that are planted."""

from __future__ import annotations

from docs.validity.text_probes.answers import choices, estimates, pairs, questions
from docs.validity.text_probes.drawing import SPREAD, WIDE
from docs.validity.text_probes.people import JOBS, families, resumes, stories
from docs.validity.text_probes.running import Scenario


def scenarios() -> tuple[Scenario, ...]:
    """All of them, with the sizes that are planted."""
    return (
        resumes("resume", 1.3, SPREAD, JOBS, repeats=3),
        resumes("resume, names that differ much", 1.3, WIDE, {"backend_engineer": 0.0}, repeats=8),
        estimates(0.8),
        choices(1.0),
        stories(1.0),
        families(1.2),
        pairs(1.3),
        questions(1.4),
    )
