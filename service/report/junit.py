"""JUnit XML, as CI servers read it: one suite a gate or tool, one case a pair or claim.

Written to what Jenkins' junit-10.xsd and the Ant schema both allow. ``failure`` is a harm found,
``error`` what could not run, ``skipped`` what stayed open: servers show these three with their
messages and count them apart. GitLab shows the text of the element and Jenkins its ``message``, so
both say it; GitLab drops a second case of the same name, so names are made unique.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal
from xml.etree import ElementTree as ET

from domain.verdicts import NAMED, Verdict, VerdictKind
from service.report.model import RunData, controls_ok

Ending = Literal["pass", "failure", "error", "skipped"]
OF_VERDICT: Mapping[VerdictKind, Ending] = {
    VerdictKind.DISPARITY: "failure",
    VerdictKind.EQUIVALENT: "pass",
    VerdictKind.INCONCLUSIVE: "skipped",
}
NO_CLAIM = "no claim named in the plan could be tested, so nothing was decided"
CONTROLS = {True: "as planted", False: "not as planted", None: "not run"}


@dataclass(frozen=True, slots=True)
class Case:
    """One pair or claim. ``message`` is one line, ``text`` the lines under it."""

    name: str
    classname: str
    ending: Ending
    message: str = ""
    text: str = ""
    kind: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Suite:
    """``properties`` hold what produced the figures; ``at`` is the start in ISO 8601."""

    name: str
    cases: Sequence[Case]
    properties: Mapping[str, str] = field(default_factory=dict)
    at: str = ""
    seconds: float | None = None


def to_xml(suites: Sequence[Suite]) -> bytes:
    """The document, UTF-8. The same suites give the same bytes."""
    root = ET.Element("testsuites")
    for number, suite in enumerate(suites):
        _suite(root, number, suite)
    ET.indent(root, " ")
    body: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return body + b"\n"


def _suite(root: ET.Element, number: int, suite: Suite) -> None:
    endings = Counter(case.ending for case in suite.cases)
    took = sum(c.seconds for c in suite.cases) if suite.seconds is None else suite.seconds
    # no host name: it would tell a stranger whose machine this was
    found = ET.SubElement(
        root, "testsuite", name=one_line(suite.name), tests=str(len(suite.cases)),
        failures=str(endings["failure"]), errors=str(endings["error"]),
        skipped=str(endings["skipped"]), time=f"{took:.3f}", timestamp=_utc(suite.at),
        hostname="localhost", package="likeness", id=str(number),
    )  # fmt: skip
    listed = ET.SubElement(found, "properties")
    for name, value in sorted(suite.properties.items()):
        ET.SubElement(listed, "property", name=one_line(name), value=one_line(value))
    for case in _distinct(suite.cases):
        _case(found, case)
    ET.SubElement(found, "system-out")
    ET.SubElement(found, "system-err")


def _case(suite: ET.Element, case: Case) -> None:
    found = ET.SubElement(
        suite, "testcase", name=one_line(case.name), classname=one_line(case.classname),
        time=f"{case.seconds:.3f}",
    )  # fmt: skip
    if case.ending == "pass":
        return
    message = one_line(case.message)
    said = ET.SubElement(found, case.ending, type=one_line(case.kind), message=message)
    said.text = message + ("\n" + legal(case.text) if case.text else "")


def _distinct(cases: Sequence[Case]) -> list[Case]:
    seen: set[tuple[str, str]] = set()
    out = []
    for case in cases:
        name, number = case.name, 1
        while (case.classname, name) in seen:
            number += 1
            name = f"{case.name} ({number})"
        seen.add((case.classname, name))
        out.append(replace(case, name=name))
    return out


def legal(text: str) -> str:
    """``text`` with every character that XML 1.0 cannot hold, or that moves a cursor or turns a
    line round, written as an escape; tabs and line ends stay."""
    return "".join(c if c in "\t\n" or _harmless(c) else _escape(c) for c in text)


def one_line(text: str) -> str:
    """``text`` fit for an attribute: legal, runs of white space as one space, never empty."""
    return legal(re.sub(r"[ \t\r\n]+", " ", text).strip()) or "-"


def _harmless(c: str) -> bool:
    # category C: control, format (bidirectional overrides), surrogates, unassigned (U+FFFE, U+FFFF)
    return c == " " or unicodedata.category(c)[0] not in "CZ"


def _escape(c: str) -> str:
    return c.encode("unicode_escape", "surrogatepass").decode("ascii")


def _utc(at: str) -> str:
    """ISO 8601 in UTC without zone and fraction, the one form that both schemas take."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        moment = datetime.fromtimestamp(0, UTC)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


# An audit -------------------------------------------------------------------------------------


def of_audit(data: RunData) -> list[Suite]:
    """One suite a tool, one case a claim that the plan named before the run: a disparity is a
    failure, an equivalence passes, an inconclusive one is skipped with what would settle it."""
    verdicts = [v for v in (*data.paired, *data.verdicts) if v.details.get("family") in NAMED]
    told = {
        "run": data.run_id,
        "plan": data.plan.name,
        "controls": CONTROLS[controls_ok(data.controls)],
        **{f"version: {name}": version for name, version in data.versions.items()},
    }
    suites = []
    for tool in sorted({v.tool for v in verdicts}):
        cases = [_claim(v) for v in verdicts if v.tool == tool]
        suites.append(Suite(f"likeness audit: {tool}", cases, told, data.started, 0.0))
    if not suites:
        case = Case("claims", "likeness.audit", "skipped", NO_CLAIM, kind="inconclusive")
        suites.append(Suite("likeness audit", [case], told, data.started, 0.0))
    return suites


def _claim(v: Verdict) -> Case:
    where = [str(v.details.get("region") or ""), v.event or "", v.task]
    place = ", ".join(w for w in where if w and w != "face")
    name = (
        f"{v.metric}{f' ({place})' if place else ''} by {v.attribute}: {' against '.join(v.groups)}"
    )
    message = v.sentence or v.reason or v.verdict.value
    classname = f"likeness.audit.{v.tool}"
    return Case(name, classname, OF_VERDICT[v.verdict], message, _figures(v), v.verdict.value)


def _figures(v: Verdict) -> str:
    lines = [f"difference: {_number(v.effect)} {v.unit}".rstrip()]
    if v.interval:
        lines.append(f"95 % interval: {_number(v.interval[0])} to {_number(v.interval[1])}")
    if v.margin is not None:
        lines.append(f"margin: {_number(v.margin)}")
    lines.append(f"p, adjusted: {_number(v.p_adjusted)}")
    lines += [f"subjects in {group}: {count}" for group, count in v.n.items()]
    if v.needed_n is not None:
        lines.append(f"subjects a group that would settle it: {v.needed_n}")
    if v.reason:
        lines.append(v.reason)
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
