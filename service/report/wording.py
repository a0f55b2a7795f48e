"""The words of a report: labels, sentences and how figures are written.

A report names the harm and the group it falls on. It never passes judgement on a tool or a person
as a whole; ``FORBIDDEN`` lists the words that would, and a test scans every report for them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from domain.measurements import Decision, Outcome
from domain.verdicts import Verdict, VerdictKind

FORBIDDEN = re.compile(
    r"\b(un)?(biase[ds]|bias|fair(ly|ness)?|discriminat\w+|racis[tm]|sexis[tm])\b", re.I
)

UNKNOWN = "unknown"
MINUS = "\N{MINUS SIGN}"

OUTCOME_LABELS: dict[Outcome, str] = {
    Outcome.MEASURED: "measured",
    Outcome.FACE_LOST: "face lost",
    Outcome.NOT_MEASURABLE: "not measurable",
    Outcome.BLANK: "blank result",
    Outcome.EDITED_UNREADABLE: "result unreadable",
    Outcome.ORIGINAL_UNREADABLE: "original unreadable",
    Outcome.REFUSED: "refused",
    Outcome.FAILED: "failed",
}

OUTCOME_MEANINGS: dict[Outcome, str] = {
    Outcome.MEASURED: "A face was found in both pictures and compared.",
    Outcome.FACE_LOST: "The original shows a face, the result does not: the worst harm.",
    Outcome.NOT_MEASURABLE: "The instrument could not judge the pair; no fault of the tool is implied.",
    Outcome.BLANK: "The tool returned a plain picture of one colour.",
    Outcome.EDITED_UNREADABLE: "The tool returned something that cannot be read as a picture.",
    Outcome.ORIGINAL_UNREADABLE: "The original itself was rejected when it was opened.",
    Outcome.REFUSED: "The tool would not do it (moderation or policy). Never retried, always counted.",
    Outcome.FAILED: "The tool broke or gave no answer.",
}

VERDICT_TALLIES: dict[VerdictKind, tuple[str, str]] = {
    VerdictKind.DISPARITY: ("difference found", "differences found"),
    VerdictKind.EQUIVALENT: ("same within the margin", "same within the margin"),
    VerdictKind.INCONCLUSIVE: ("cannot be told yet", "cannot be told yet"),
}

FACT_LABELS = {
    "ied": "eye distance, px",
    "ied_px": "eye distance, px",
    "mean_luma": "brightness",
    "laplacian_variance": "fine detail",
    "measured_ita": "ITA, °",
}
RETEST_LABELS = {
    "nme": "points moved",
    "flrr": "landmarks kept, %",
    "detail_change": "detail, log2",
    "delta_e00": "colour, ΔE00",
}

VERDICT_LABELS: dict[VerdictKind, str] = {
    VerdictKind.DISPARITY: "Difference found",
    VerdictKind.EQUIVALENT: "Same within the margin",
    VerdictKind.INCONCLUSIVE: "Cannot tell yet",
}

DECISION_LABELS: dict[Decision, str] = {
    Decision.PASS: "pass",
    Decision.FAIL: "fail",
    Decision.INCONCLUSIVE: "inconclusive",
}

DIRECTION_LABELS = {
    "higher_is_better": "higher is better",
    "lower_is_better": "lower is better",
    "signed": "0 is best; the sign tells which way",
}

ENGINES = {
    "mediapipe": (
        "MediaPipe Face Landmarker, its mesh mapped to 68 points. Licence: Apache-2.0 (programme and"
        " model)."
    ),
    "dlib": (
        "dlib's 68-point shape predictor. The programme's licence is Boost; its author excludes"
        " commercial use of the weights, which were trained on the 300-W annotations."
    ),
}

STATISTICS: tuple[str, ...] = (
    "The unit is the person: several pictures, tasks, perturbations or seeds of one person are repeats, and"
    " every test and interval treats them as one cluster.",
    "For each tool, harm and attribute the report gives each group's figure with a 95 % interval, the"
    " difference between groups with its 95 % interval, and a permutation test over people.",
    "“Difference found”: the adjusted p-value is below {alpha} and the difference goes beyond what counts"
    " as nothing. “Same within the margin”: two one-sided tests place the difference inside the margin."
    " Otherwise “Cannot tell yet”, with the number of people a group that would settle it at 80 % power."
    " A difference that was not found is not thereby shown to be absent.",
    "p-values are adjusted with Holm's method over the comparisons named in the plan and with the"
    " Benjamini-Hochberg method over all others.",
    "A request that was refused or failed has no figure. It is counted as an outcome of its own, by"
    " group, and never enters an average as 0. A lost face retains 0 % of its landmarks, which is a"
    " measurement, and has no other figure.",
    "Rates and impact ratios compare each group with the group of the highest rate. A ratio is given only"
    " where both groups hold at least 5 people; a group below 2 % of the people is left out of the ratios,"
    " its count and rate are still shown.",
)

LIMITS: tuple[str, ...] = (
    "Groups are the ones declared in the portraits' manifest; nothing about a person is guessed. “Measured"
    " ITA group” is the one exception: it is computed from the colour of the skin in the original picture.",
    "There is no official pass threshold for damage to face pictures. Each threshold in the table above says"
    " where it comes from; where no source gives one, none is set.",
    "The findings hold for these portraits, this version of each tool and these settings. A new version"
    " of a tool needs a new audit; the summary should not be relied on for longer than 12 months.",
    "The landmark engine has noise of its own. The instrument check shows it by group on untouched"
    " originals and on re-saved copies; a tool's figure no larger than that noise says nothing.",
)

_JOINERS = "\u200c\u200d"
"""Several scripts cannot be written without them, and they reorder nothing."""
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn"}


def visible(text: object) -> str:
    """``text`` with control, bidirectional-override and zero-width characters made visible (U+FFFD).

    Newlines and tabs become spaces. Does not escape HTML: the template engine does.
    """
    out = []
    for char in str(text):
        if char in "\n\r\t":
            out.append(" ")
        elif char in _JOINERS:
            out.append(char)
        elif unicodedata.category(char) in _UNSAFE:
            out.append("\N{REPLACEMENT CHARACTER}")
        else:
            out.append(char)
    return "".join(out)


def words(name: str) -> str:
    """ "inpaint_lower_face" -> "inpaint lower face"."""
    return name.replace("_", " ").strip()


def figure(value: float | None, digits: int = 3, sign: bool = False) -> str:
    """A figure with ``digits`` significant digits, a true minus sign and no exponent; "–" for None."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    magnitude = abs(value)
    shown = f"{magnitude:.{digits}g}"
    if "e" in shown:
        shown = f"{magnitude:,.0f}" if magnitude >= 1 else f"{magnitude:.{digits + 4}f}".rstrip("0")
    lead = MINUS if value < 0 else ("+" if sign else "")
    return lead + shown


def percent(part: float, whole: float) -> str:
    """ "12.5 %"; "–" where the whole is empty."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


def p_value(p: float | None) -> str:
    """ "0.032", "< 0.001" or "–"."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def plural(count: int, noun: str, many: str = "") -> str:
    """ "1 face", "3 faces"."""
    return f"{count:,} {noun if count == 1 else (many or noun + 's')}"


def duration(seconds: float) -> str:
    """ "4 min 12 s"."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {left} s"


def strongest(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The difference a reader must know first: claims named in the plan, then the smallest adjusted p;
    ties go to the effect that is largest in margins."""
    found = [v for v in verdicts if v.verdict is VerdictKind.DISPARITY]

    def rank(v: Verdict) -> tuple[bool, float, float, str]:
        p = v.p_adjusted if v.p_adjusted is not None else 1.0
        size = abs(v.effect or 0.0) / v.margin if v.margin else abs(v.effect or 0.0)
        return (v.details.get("family") == "exploratory", p, -size, v.metric)

    return min(found, key=rank) if found else None


def without_tool(verdict: Verdict) -> str:
    """The verdict's sentence without the "tool, task:" it begins with, where that stands beside it."""
    said = verdict.sentence
    for head in (f"{verdict.tool}, {verdict.task}: ", f"{verdict.tool}: "):
        said = said.removeprefix(head)
    return said[:1].upper() + said[1:]


def tool_line(verdicts: Sequence[Verdict], attributes: Sequence[str]) -> str:
    """One plain sentence about one tool: which harm falls on whom, or that none could be shown."""
    first = strongest(verdicts)
    if first is not None:
        return without_tool(first) or (
            f"{words(first.metric)}: {first.groups[0]} and {first.groups[1]} differ by {figure(first.effect)}."
        )
    if not verdicts:
        return "No comparison between groups could be made; see the outcomes below."
    named = [v for v in verdicts if v.details.get("family") not in (None, "exploratory")]
    groups = ", ".join(words(a) for a in attributes) or "the groups"
    asked = " claimed before the run" if named else f" by {groups}"
    return _without_difference(named or verdicts, asked)


def _without_difference(verdicts: Sequence[Verdict], asked: str) -> str:
    """What can be said where no difference was found: shown to be alike, or not settled."""
    same = sum(v.verdict is VerdictKind.EQUIVALENT for v in verdicts)
    total = plural(len(verdicts), "comparison")
    if same == len(verdicts):
        return (
            f"All {total}{asked} lie within the margin: the same harm for all, as far as measured."
        )
    if same:
        return (
            f"No difference between groups was shown. Of {total}{asked} {same}"
            f" {'lies' if same == 1 else 'lie'} within the margin; the others need more people."
        )
    return f"No difference shown and none ruled out: {total}{asked} need more people to be settled."
