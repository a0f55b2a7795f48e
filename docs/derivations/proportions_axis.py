"""Derives metrics/data/proportions_axis.json; docs/proportions.md explains it.

    LIKENESS_DATA=../shared/data .venv/bin/python docs/derivations/proportions_axis.py [--check]

Deterministic: the same portraits and models give the same file. ``--check`` writes nothing and fails
when the file differs.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO))

from metrics.proportions import RATIOS, proportions  # noqa: E402
from preprocess.decode import open_picture  # noqa: E402
from preprocess.faces import FaceFinder  # noqa: E402

OUTPUT = REPO / "metrics" / "data" / "proportions_axis.json"
PENALTY = 3.0
"""L2 penalty on the standardised coefficients; the AUC is flat from 1 to 10."""
FOLDS = 10
Floats = npt.NDArray[np.float64]


def sample(data: Path, name: str) -> tuple[Floats, Floats]:
    """(n, 14) ratios and (n,) 1 for declared male, 0 for declared female, one portrait a subject."""
    finder = FaceFinder("mediapipe")
    ratios, masculine, seen = [], [], set()
    with (data / "faces" / name / "manifest.csv").open(newline="", encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["file"])
    for row in rows:
        smiling = row["expression"] not in ("", "neutral")
        if row["gender"] not in ("male", "female") or row["subject_id"] in seen or smiling:
            continue
        face = finder.find(open_picture(data / "faces" / name / row["file"])).face
        if face is not None:
            seen.add(row["subject_id"])
            ratios.append(proportions(face.points))
            masculine.append(float(row["gender"] == "male"))
    return np.array(ratios), np.array(masculine)


def fit(z: Floats, y: Floats) -> Floats:
    """(k + 1,) logistic coefficients, the constant last, by Newton's method with an L2 penalty.

    Both genders weigh the same whatever their number in the sample."""
    x = np.column_stack([z, np.ones(len(z))])
    weight = np.where(y > 0, 0.5 / max(y.sum(), 1), 0.5 / max((1 - y).sum(), 1)) * len(y)
    ridge = np.diag([PENALTY] * z.shape[1] + [0.0])
    beta = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ beta))
        gradient = x.T @ (weight * (p - y)) + ridge @ beta
        hessian = (x * (weight * p * (1 - p))[:, None]).T @ x + ridge
        step = np.linalg.solve(hessian, gradient)
        beta = beta - step
        if np.abs(step).max() < 1e-10:
            break
    return beta


def standards(ratios: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each ratio."""
    return ratios.mean(axis=0), ratios.std(axis=0, ddof=1)


def auc(score: Floats, y: Floats) -> float:
    """Share of (masculine, feminine) pairs in which the masculine one scores higher."""
    higher = score[y > 0][:, None] - score[y == 0][None, :]
    return float((higher > 0).mean() + 0.5 * (higher == 0).mean())


def cross_validated(ratios: Floats, y: Floats) -> float:
    """AUC of scores that each portrait got from a fit that had not seen it."""
    scores = np.zeros(len(y))
    fold = np.arange(len(y)) % FOLDS
    for k in range(FOLDS):
        train, test = fold != k, fold == k
        mean, sd = standards(ratios[train])
        beta = fit((ratios[train] - mean) / sd, y[train])
        scores[test] = (ratios[test] - mean) / sd @ beta[:-1] + beta[-1]
    return auc(scores, y)


def transferred(train: tuple[Floats, Floats], test: tuple[Floats, Floats]) -> float:
    """AUC on one set of an axis fitted on another."""
    mean, sd = standards(train[0])
    beta = fit((train[0] - mean) / sd, train[1])
    return auc((test[0] - mean) / sd @ beta[:-1], test[1])


def derive(data: Path) -> dict[str, object]:
    """Everything that goes into the file."""
    congress, london = sample(data, "congress"), sample(data, "london")
    ratios = np.concatenate([congress[0], london[0]])
    y = np.concatenate([congress[1], london[1]])
    mean, sd = standards(ratios)
    z = (ratios - mean) / sd
    beta = fit(z, y)[:-1]
    unit = float((z @ beta).std(ddof=1))
    return {
        "ratios": list(RATIOS),
        "means": [round(float(v), 6) for v in mean],
        "sds": [round(float(v), 6) for v in sd],
        "coefficients": [round(float(v), 6) for v in beta / unit],
        "positive_end": "masculine",
        "engine": "mediapipe",
        "penalty": PENALTY,
        "subjects": {
            name: {"female": int((s[1] == 0).sum()), "male": int(s[1].sum())}
            for name, s in (("congress", congress), ("london", london))
        },
        "auc": {
            "congress, cross-validated": round(cross_validated(*congress), 3),
            "london, cross-validated": round(cross_validated(*london), 3),
            "both, cross-validated": round(cross_validated(ratios, y), 3),
            "fitted on congress, tried on london": round(transferred(congress, london), 3),
            "fitted on london, tried on congress": round(transferred(london, congress), 3),
        },
        "gap_of_group_means_sd": round(
            float(z[y > 0].mean(axis=0) @ beta - z[y == 0].mean(axis=0) @ beta) / unit, 3
        ),
    }


def main() -> int:
    """Write the file, or compare it; the exit status."""
    data = Path(os.environ.get("LIKENESS_DATA", REPO.parent / "shared" / "data"))
    text = json.dumps(derive(data), indent=1) + "\n"
    print(text)
    if "--check" in sys.argv:
        return 0 if OUTPUT.read_text(encoding="utf-8") == text else 1
    OUTPUT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
