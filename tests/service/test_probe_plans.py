"""A probe plan is read, and every mistake is told with file, line, key and near miss."""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.errors import PlanError
from service.probe_plans import LoadedProbePlan, load_probe_plan, read_probe_plan
from tests.service.planted_probe import Planted, known

GOOD = """\
name: a plan
endpoint: {base_url: "http://127.0.0.1:1/v1", model: m}
probes:
  - id: planted
    languages: [en, de]
    settings:
      repeats: 3
conditions: [plain, {id: guarded, guard: hiring}]
"""


def read(folder: Path, text: str) -> LoadedProbePlan:
    return read_probe_plan(folder / "plan.yaml", text, known(Planted(), Planted("other")))


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(PlanError) as caught:
        read(folder, text)
    return str(caught.value)


def test_a_good_plan_has_its_probes_built_and_its_conditions_in_each_language(
    tmp_path: Path,
) -> None:
    loaded = read(tmp_path, GOOD)
    (part,) = loaded.parts
    assert part.label == "planted" and part.languages == ("en", "de")
    assert len(part.probe.calls("en", 0)) == 2 * 2 * 3
    english, german = (loaded.conditions(language)[1] for language in ("en", "de"))
    assert english.id == german.id == "guarded" and english.system != german.system
    assert loaded.conditions("en")[0].system == "" and len(loaded.sha256) == 64


def test_the_plans_repeats_stand_for_a_probes_own_but_not_for_a_setting(tmp_path: Path) -> None:
    text = GOOD + "repeats: 7\n"
    assert len(read(tmp_path, text).parts[0].probe.calls("en", 0)) == 2 * 2 * 3
    without = text.replace("    settings:\n      repeats: 3\n", "")
    assert len(read(tmp_path, without).parts[0].probe.calls("en", 0)) == 2 * 2 * 7


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("probes:", "probs:", ":3: probs: unknown key; did you mean 'probes'?"),
        ("id: planted", "id: plantet", ":4: probes.0.id: unknown probe 'plantet'; did you mean"),
        ("[en, de]", "[en, fr]", ":5: probes.0.languages: 'planted' has no language 'fr'"),
        ("[en, de]", "[en, en]", ":5: probes.0.languages: language 'en' stands twice"),
        ("repeats: 3", "repeat: 3", ":7: probes.0.settings: unknown setting 'repeat'; did you"),
        ("guard: hiring", "guard: hirring", ":8: conditions.1: no guard for scenario 'hirring'"),
        ("guard: hiring", "gard: hiring", ":8: conditions.1.gard: unknown key; did you mean"),
        ("model: m", "modell: m", ":2: endpoint.modell: unknown key; did you mean 'model'?"),
        (
            "conditions: [plain, {id: guarded, guard: hiring}]",
            "gate:\n  max_rms: 0.2\n  max_rfs: 1",
            ":10: gate: 'max_rfs': unknown limit; did you mean 'max_rms'?",
        ),
        ("model: m", "model: m, price: {}", "price.input_per_million: this key is required"),
    ],
)
def test_a_mistake_names_its_line_and_the_near_miss(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    told = refusal(tmp_path, GOOD.replace(old, new))
    assert said in told and all(str(tmp_path / "plan.yaml") in line for line in told.splitlines())


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("repeats: 3", "repeats: 0")
    told = refusal(
        tmp_path,
        text + "gate: {baseline: none.json}\ncomposite: {weights: {plantd: 1}}\n",
    )
    assert ":7: probes.0.settings: setting 'repeats'" in told
    assert ":9: gate.baseline: no such file: none.json" in told
    assert ":10: composite.weights.plantd: no probe of this plan" in told


def test_the_same_probe_twice_needs_two_names(tmp_path: Path) -> None:
    twice = GOOD.replace("probes:\n", "probes:\n  - {id: planted}\n")
    assert "two probes are called 'planted'" in refusal(tmp_path, twice)
    named = twice.replace("{id: planted}", "{id: planted, name: again}")
    assert [part.label for part in read(tmp_path, named).parts] == ["again", "planted"]


def test_a_message_repeats_no_password(tmp_path: Path) -> None:
    for address in ("https://user:hidden-pw@host/v1", "https://host/v1?api_key=hidden-pw"):
        told = refusal(tmp_path, GOOD.replace("http://127.0.0.1:1/v1", address))
        assert ":2: endpoint.base_url:" in told and "hidden-pw" not in told


def test_what_is_no_plan_is_told_in_one_line(tmp_path: Path) -> None:
    for text in ("- a\n- b\n", "name: [", "", "name: a\nname: b\n"):
        assert len(refusal(tmp_path, text).splitlines()) == 1
    with pytest.raises(PlanError, match="no such plan"):
        load_probe_plan(tmp_path / "absent.yaml")
