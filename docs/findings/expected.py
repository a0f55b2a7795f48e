"""The findings that an audit of the London portraits must show, and where they stand in its files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

FACE = "face"


@dataclass(frozen=True, slots=True)
class Group:
    """Mean of a figure over the people of a group, with half its 95 % interval."""

    mean: float
    half: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:+.2f} +-{self.half:.2f} (n {self.n})"


class Run:
    """The files of one finished run."""

    def __init__(self, folder: Path) -> None:
        with (folder / "measurements.csv").open(encoding="utf-8", newline="") as file:
            self.figures = list(csv.DictReader(file))
        self.report: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))

    def group(self, tool: str, metric: str, attribute: str = "", value: str = "") -> Group:
        """One figure of one tool; all people without an attribute."""
        found = [
            float(row["value"])
            for row in self.figures
            if row["tool"] == tool and row["metric"] == metric and row["value"]
            and (not attribute or row[attribute] == value)
            and row["region"] in (FACE, "")
        ]  # fmt: skip
        half = 1.96 * stdev(found) / math.sqrt(len(found)) if len(found) > 1 else math.nan
        return Group(fmean(found) if found else math.nan, half, len(found))

    def verdict(self, tool: str, metric: str, groups: Sequence[str]) -> str:
        """The verdict on one comparison, "" where none was drawn."""
        for row in self.report["verdicts"]:
            same = row["tool"] == tool and row["metric"] == metric
            if same and set(row["groups"]) == set(groups):
                return str(row["verdict"])
        return ""


def check(folder: Path) -> int:
    """Print every finding with what was wanted; 1 when one is missing."""
    run = Run(folder)
    rows = [*_super_resolution(run), *_style(run), *_phone(run), *_diffusion(run), *_refusals(run)]
    for ok, what, found, wanted in rows:
        print(f"{'ok    ' if ok else 'MISSED'} {what}: {found} (wanted: {wanted})")
    return int(not all(row[0] for row in rows))


Row = tuple[bool, str, str, str]


def _super_resolution(run: Run) -> list[Row]:
    tool = "Real-ESRGAN"
    men, women = (run.group(tool, "detail_change", "gender", g) for g in ("male", "female"))
    flrr = run.group(tool, "flrr")
    verdict = run.verdict(tool, "detail_change", ("male", "female"))
    return [
        (men.mean < women.mean - 0.25, f"{tool}, detail_change, men v women",
         f"{men} v {women}", "men lose more, by about 0.5 log2"),
        (verdict == "disparity", f"{tool}, detail_change by gender, verdict", verdict, "disparity"),
        (flrr.mean > 99, f"{tool}, flrr", str(flrr), "about 100: only the detail shows it"),
    ]  # fmt: skip


def _style(run: Run) -> list[Row]:
    tool = "style transfer 0"
    pair = [run.group(tool, "delta_l", "ethnicity", g) for g in ("black", "white")]
    kept = [run.group(tool, "flrr", "ethnicity", g) for g in ("black", "white")]
    colour = [run.group(tool, "csi", "ethnicity", g) for g in ("black", "white")]
    rows = [
        (pair[0].mean > 5 and pair[1].mean < -4, f"{tool}, delta_l, Black v white",
         f"{pair[0]} v {pair[1]}", "+10.9 v -7.6: Black faces lightened, white ones darkened"),
        (kept[0].mean < kept[1].mean - 5, f"{tool}, flrr, Black v white",
         f"{kept[0]} v {kept[1]}", "76 v 88"),
        (colour[0].mean < colour[1].mean, f"{tool}, csi, Black v white",
         f"{colour[0]} v {colour[1]}", "lower for Black faces: colour alone would mislead"),
    ]  # fmt: skip
    for metric in ("delta_l", "flrr"):
        verdict = run.verdict(tool, metric, ("black", "white"))
        rows.append(
            (
                verdict == "disparity",
                f"{tool}, {metric}, Black v white, verdict",
                verdict,
                "disparity",
            )
        )
    return rows


def _phone(run: Run) -> list[Row]:
    kept, lost = (
        run.group(f"phone, {mode}", "detail_change") for mode in ("high accuracy", "low power in silence")
    )  # fmt: skip
    noticed = [
        i for i in run.report["items"]
        if i["tool"].startswith("phone") and any("looks scaled down" in w for w in i["warnings"])
    ]  # fmt: skip
    silent = [i for i in noticed if i["tool"] == "phone, low power in silence"]
    asked = [i for i in run.report["items"] if i["tool"] == "phone, low power in silence"]
    return [
        (lost.mean < kept.mean - 0.5, "phone, detail_change, high accuracy v low power",
         f"{kept} v {lost}", "low power loses more"),
        (len(silent) > 0.9 * len(asked) and len(noticed) - len(silent) <= 2,
         "phone, low power noticed behind a false claim",
         f"{len(silent)} of {len(asked)}, false alarms {len(noticed) - len(silent)}",
         "nine in ten at least, at most two false alarms"),
    ]  # fmt: skip


def _diffusion(run: Run) -> list[Row]:
    raw, kept = (f"diffusion (untrained), {how}" for how in ("raw", "composited"))
    lost = [i["outcome"] for i in run.report["items"] if i["tool"] == raw].count("face_lost")
    asked = sum(i["tool"] == raw for i in run.report["items"])
    drift, flrr = run.group(kept, "outside_mask_drift"), run.group(kept, "flrr")
    return [
        (lost > 0.9 * asked, f"{raw}, faces lost outside the mask", f"{lost} of {asked}",
         "nearly all: an untrained network repaints what it was told to leave alone"),
        (drift.mean < 0.5 and flrr.mean > 99, f"{kept}, drift outside the mask and flrr",
         f"{drift} levels, {flrr}", "none, 100: the protected pixels are put back"),
    ]  # fmt: skip


def _refusals(run: Run) -> list[Row]:
    tool = "hosted stand-in"
    refused = dict.fromkeys(("male", "female"), 0)
    for item in run.report["items"]:
        if item["tool"] == tool and item["outcome"] == "refused":
            refused[item["attributes"]["gender"]] += 1
    verdict = run.verdict(tool, "outcome:refused", ("male", "female"))
    drift = run.group(tool, "outside_mask_drift")
    return [
        (refused["female"] >= 14 and not refused["male"], f"{tool}, refused women v men",
         f"{refused['female']} v {refused['male']}", "15 v 0, as planted"),
        (verdict == "disparity", f"{tool}, refusals by gender, verdict", verdict, "disparity"),
        (drift.mean > 0, f"{tool}, drift outside the mask", f"{drift} levels", "above 0"),
    ]  # fmt: skip
