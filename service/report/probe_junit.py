"""A run of text probes as JUnit XML: one suite, one case a limit of the plan or a named question."""

from __future__ import annotations

from collections.abc import Sequence

from probes.results import GateLine, ProbeResult, TestResult
from service.report.junit import OF_VERDICT, Case, Ending, Suite
from service.report.probe_model import ProbeRun

_OF_STATE: dict[str, Ending] = {
    "pass": "pass",
    "fail": "failure",
    "inconclusive": "skipped",
    "not_measurable": "error",
}


def of_probes(run: ProbeRun) -> list[Suite]:
    """The plan's limits, else the questions of every probe. What cannot be used is an error: a CI
    server must not take silence for a pass."""
    told = {"run": run.run_id, "plan": run.name, "model asked": run.model}
    told |= {f"version: {name}": version for name, version in run.versions.items()}
    cases = [_limit(g) for g in run.gate] or _questions(run.results)
    if not cases:
        said = "no question was settled, so nothing was decided"
        cases = [Case("probes", "likeness.probe", "skipped", said, kind="inconclusive")]
    return [Suite(f"likeness probe: {run.name}", cases, told, run.started, run.seconds)]


def _limit(line: GateLine) -> Case:
    about = line.sentence.partition(":")[0]
    name = line.id if about == line.sentence else f"{line.id}: {about}"
    return Case(name, "likeness.probe.gate", _OF_STATE[line.state], line.sentence, kind=line.state)


def _questions(results: Sequence[ProbeResult]) -> list[Case]:
    cases = []
    for result in results:
        classname = f"likeness.probe.{result.probe}.{result.language}.{result.condition}"
        if not result.usable:
            cases.append(Case(result.title, classname, "error", result.why_not, kind="unusable"))
        cases += [_question(classname, t) for t in result.tests if result.usable]
    return cases


def _question(classname: str, test: TestResult) -> Case:
    said = test.sentence or test.effect.reason or test.verdict.value
    return Case(test.question, classname, OF_VERDICT[test.verdict], said, kind=test.verdict.value)
