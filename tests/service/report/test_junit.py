"""JUnit XML that every CI server takes: by the common rules, with messages, and safe against names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.verdicts import Verdict, VerdictKind
from service.gate import ExitCode, decide_audit
from service.report.junit import NO_CLAIM, Case, Suite, legal, of_audit, one_line, to_xml
from service.report.model import ControlFinding, RunData

INT, SECONDS, TOKEN, ANY = r"\d+", r"\d+(\.\d+)?", r"\S(?:[^\s]| (?! ))*\S|\S", r"[\s\S]*"
"""Patterns of attributes: Ant's schema wants white space collapsed in names (xs:token)."""


@dataclass(frozen=True)
class Rule:
    """What junit-10.xsd of Jenkins and the schema of Ant both allow of one element."""

    attributes: dict[str, str] = field(default_factory=dict)
    children: str = ""
    """A regular expression over the names of the children, each followed by a space."""
    text: bool = False


ENDING = Rule({"type": ANY, "message": ANY}, text=True)
RULES = {
    "testsuites": Rule(children=r"(testsuite )*"),
    "testsuite": Rule(
        {
            "name": TOKEN, "tests": INT, "failures": INT, "errors": INT, "skipped": INT,
            "time": SECONDS, "timestamp": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "hostname": TOKEN,
            "package": TOKEN, "id": INT,
        },
        r"properties (testcase )*system-out system-err ",
    ),
    "properties": Rule(children=r"(property )*"),
    "property": Rule({"name": TOKEN, "value": ANY}),
    "testcase": Rule(
        {"name": TOKEN, "classname": TOKEN, "time": SECONDS}, r"((failure|error|skipped) )?"
    ),
    "failure": ENDING, "error": ENDING, "skipped": ENDING,
    "system-out": Rule(text=True), "system-err": Rule(text=True),
}  # fmt: skip


def breaches(element: ET.Element) -> list[str]:
    """What an element and all within it do that the rules do not allow."""
    rule = RULES.get(element.tag)
    if rule is None:
        return [f"unknown element {element.tag}"]
    found = [
        f"{element.tag}@{name}={value!r}"
        for name, value in element.attrib.items()
        if not re.fullmatch(rule.attributes.get(name, r"(?!)"), value)
    ]
    found += [f"{element.tag} lacks {n}" for n in rule.attributes if n not in element.attrib]
    inside = "".join(f"{child.tag} " for child in element)
    if not re.fullmatch(rule.children, inside):
        found.append(f"{element.tag} holds {inside}")
    if not rule.text and (element.text or "").strip():
        found.append(f"{element.tag} holds text")
    return found + [b for child in element for b in breaches(child)]


def read(suites: list[Suite]) -> ET.Element:
    """The document, read back and checked against the rules."""
    root = ET.fromstring(to_xml(suites))
    assert breaches(root) == []
    for suite in root:
        for attribute, tag in (
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ):
            assert int(suite.attrib[attribute]) == len(suite.findall(f"testcase/{tag}"))
        assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))
    return root


def verdict(kind: VerdictKind, family: str | None = "named", tool: str = "glow") -> Verdict:
    return Verdict(
        tool, "flrr", "skin_tone", ("dark", "light"), kind, -4.2, (-6.0, -2.4), 0.001, 0.004,
        {"dark": 40, "light": 41}, None if kind is not VerdictKind.INCONCLUSIVE else 220, 2.0, "%",
        f"a sentence that says {kind.value}", details={"family": family, "region": "lower_face"},
    )  # fmt: skip


def test_the_four_endings_are_what_ci_servers_count_and_show() -> None:
    cases = [Case("a", "c", "pass"), Case("b", "c", "failure", "worse", "by 3", "fail", 1.25)]
    cases += [Case("c", "c", "error", "no such file"), Case("d", "c", "skipped", "no face")]
    (suite,) = read([Suite("gate", cases, {"version: x": "1"}, "2026-03-01T10:00:00+02:00")])
    assert [c.attrib["name"] for c in suite.findall("testcase")] == ["a", "b", "c", "d"]
    failure = suite.find("testcase/failure")
    # GitLab shows the text, Jenkins the attribute: both must say it
    assert failure is not None and failure.attrib["message"] == "worse"
    assert failure.text == "worse\nby 3" and failure.attrib["type"] == "fail"
    assert suite.attrib["time"] == "1.250"
    assert suite.attrib["timestamp"] == "2026-03-01T08:00:00"
    assert suite.attrib["hostname"] == "localhost", "a machine's name is nobody's business"
    properties = suite.findall("properties/property")
    assert [p.attrib for p in properties] == [{"name": "version: x", "value": "1"}]


def test_cases_of_the_same_name_stay_apart_since_servers_drop_the_second() -> None:
    cases = [Case("x", "c", "pass"), Case("x", "c", "failure"), Case("x (2)", "c", "pass")]
    (suite,) = read([Suite("gate", cases)])
    names = [c.attrib["name"] for c in suite.findall("testcase")]
    assert len(set(names)) == 3 and names[0] == "x"


def test_control_and_direction_characters_are_written_as_escapes() -> None:
    name = "a\x00\x1b[31m\u202egpj.exe\ufffe\ud800\x85<&\"'>]]>"
    (suite,) = read([Suite(name, [Case(name, name, "error", name, f"1\n2\t{name}", name)])])
    shown = suite.find("testcase")
    assert shown is not None
    assert shown.attrib["name"] == ("a\\x00\\x1b[31m\\u202egpj.exe\\ufffe\\ud800\\x85<&\"'>]]>")
    assert suite.findtext("testcase/error", "").splitlines()[1] == "1"


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_gives_a_valid_document(text: str) -> None:
    case = Case(text, text, "failure", text, text, text)
    read([Suite(text, [case, case], {text: text}, text)])


def test_a_name_is_one_line_and_never_empty() -> None:
    assert one_line(" a\n\tb  c ") == "a b c"
    assert one_line("\n") == "-"
    assert legal("a\tb\nc") == "a\tb\nc"


def test_no_suite_at_all_is_still_a_document() -> None:
    assert list(read([])) == []


def test_an_audit_has_a_case_for_each_claim_and_agrees_with_the_gate(run_data: RunData) -> None:
    kinds = (VerdictKind.DISPARITY, VerdictKind.EQUIVALENT, VerdictKind.INCONCLUSIVE)
    verdicts = [verdict(kind) for kind in kinds]
    verdicts.append(verdict(VerdictKind.DISPARITY, "exploratory"))
    data = replace(run_data, verdicts=verdicts, paired=[verdict(kinds[1], "paired", "other")])
    root = read(of_audit(data))
    assert [s.attrib["name"] for s in root] == ["likeness audit: glow", "likeness audit: other"]
    glow = root[0]
    assert [c.find("*").tag if len(c) else "pass" for c in glow.findall("testcase")] == [  # type: ignore[union-attr]
        "failure", "pass", "skipped",
    ]  # fmt: skip
    assert decide_audit([*data.paired, *verdicts]) is ExitCode.FAILED
    failure, skipped = glow.find("testcase/failure"), glow.find("testcase/skipped")
    assert failure is not None and failure.attrib["message"] == "a sentence that says disparity"
    assert "difference: -4.2 %" in str(failure.text) and "-6 to -2.4" in str(failure.text)
    assert "subjects in dark: 40" in str(failure.text)
    assert skipped is not None and "would settle it: 220" in str(skipped.text)
    told = {p.attrib["name"]: p.attrib["value"] for p in glow.findall("properties/property")}
    assert told["run"] == data.run_id and told["controls"] == "as planted"
    assert {f"version: {n}" for n in data.versions} <= set(told)


@pytest.mark.parametrize("kind", list(VerdictKind))
def test_what_the_gate_says_of_an_audit_its_junit_file_says_too(
    run_data: RunData, kind: VerdictKind
) -> None:
    (suite,) = read(of_audit(replace(run_data, verdicts=[verdict(kind)], paired=[])))
    code = decide_audit([verdict(kind)])
    assert (suite.attrib["failures"] == "1") == (code is ExitCode.FAILED)
    assert (suite.attrib["skipped"] == "1") == (code is ExitCode.INCONCLUSIVE)


def test_an_audit_without_a_claim_says_that_nothing_was_decided(run_data: RunData) -> None:
    explored = [verdict(VerdictKind.DISPARITY, "exploratory")]
    bad = [ControlFinding("blur", "x", "y", False)]
    (suite,) = read(of_audit(replace(run_data, verdicts=explored, paired=[], controls=bad)))
    skipped = suite.find("testcase/skipped")
    assert skipped is not None and skipped.attrib["message"] == NO_CLAIM
    assert decide_audit(explored) is ExitCode.INCONCLUSIVE
    told = {p.attrib["name"]: p.attrib["value"] for p in suite.findall("properties/property")}
    assert told["controls"] == "not as planted"


def test_the_same_run_gives_the_same_bytes(run_data: RunData) -> None:
    data = replace(run_data, verdicts=[verdict(VerdictKind.DISPARITY)])
    later = replace(data, finished="later", seconds=9.0)
    assert to_xml(of_audit(data)) == to_xml(of_audit(later))
