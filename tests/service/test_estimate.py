"""What a run would ask, cost, take and send away, told before anything of it happens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import SecretStr

import adapters.contract
from adapters.contract import ToolSpec
from adapters.over_http.wire import HttpSettings, Wire
from domain.edits import Task
from domain.errors import LikenessError
from domain.sizing import SizeRule
from domain.tools import Price, RateLimit
from service import audit, runs
from service.budget import Budget
from service.destinations import Destination, destination_of, is_loopback
from service.estimate import Estimate, ToolEstimate, estimate, least_seconds
from service.measuring import Instrument
from service.pacing import LOCAL_ATTEMPTS, REMOTE_ATTEMPTS
from service.plans import load_plan
from service.store.tables import WARM_UP

REPO = Path(__file__).resolve().parents[2]
MANIFEST = REPO / "samples" / "portraits" / "manifest.csv"
SPEC = ToolSpec(
    id="hosted", name="hosted", tasks=(Task.RETOUCH, Task.RESTYLE, Task.ENHANCE), remote=True,
    concurrency=4, rate=RateLimit(10, 60.0), price=Price(0.02, source="list of May"),
    key_env="HOSTED_KEY", key_needed=True,
)  # fmt: skip


class Never:
    """A tool that may be built, and never called."""

    model = "never"

    def __init__(self, spec: ToolSpec, url: str) -> None:
        self.spec = spec
        self._wire = Wire(HttpSettings(base_url=url)) if url else None

    def edit(self, request: object) -> None:
        raise AssertionError("an estimate calls nobody")

    def close(self) -> None:
        if self._wire:
            self._wire.close()


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Offers the tool "hosted", with no key in the environment."""
    real = adapters.contract.discover()
    monkeypatch.delenv("HOSTED_KEY", raising=False)

    def offer(spec: ToolSpec = SPEC, url: str = "https://api.example.com/v1") -> None:
        def build(settings: Mapping[str, Any]) -> Never:
            assert settings["key"].get_secret_value() == "no-key-was-read"
            return Never(spec, url)

        module = SimpleNamespace(SPEC=spec, build=build)
        found = real | {spec.id: (spec, cast(Any, module))}
        monkeypatch.setattr(adapters.contract, "discover", lambda: found)

    return offer


def plan_file(folder: Path, tools: str, more: str = "") -> Path:
    path = folder / "plan.yaml"
    path.write_text(
        f"name: e\nportraits: {{manifest: {MANIFEST}, limit: 3}}\ntools: [{tools}]\n{more}"
    )
    return path


def of(folder: Path, tools: str, more: str = "controls: false\n") -> ToolEstimate:
    (one,) = estimate(load_plan(plan_file(folder, tools, more))).tools
    return one


def test_the_items_are_those_that_an_audit_would_plan(tmp_path: Path) -> None:
    path = plan_file(
        tmp_path,
        "{id: identity, name: a, tasks: [retouch, enhance]}, {id: reencode, name: b, perturbations: [red_up]}",
        "perturbations: [none, noise]\ntasks: [restyle]\n",
    )
    found = {t.tool: t.items for t in estimate(load_plan(path)).tools}
    run = runs.begin(load_plan(path), tmp_path / "out", resume=False)
    seen = [audit.unreadable(k, p, "x") | {"attributes": {}} for k, p in audit.unseen(run)]
    run.ledger.add_portraits(seen)
    audit.plan_items(run)
    planned = [i["tool"] for i in run.ledger.items()]
    run.ledger.close()
    assert found == {label: planned.count(label) for label in found}
    assert found["a"] == 3 * 2 * 2 and found["b"] == 3
    assert set(planned) == set(found)


def test_no_tool_is_called_no_key_read_and_nothing_written(
    hosted: Callable[..., None], tmp_path: Path
) -> None:
    hosted()
    path = plan_file(tmp_path, "{id: hosted}")
    before = sorted(tmp_path.rglob("*"))
    found = estimate(load_plan(path))
    assert sorted(tmp_path.rglob("*")) == before
    one = found.tools[0]
    assert (one.items, one.pictures, one.people) == (3, 3, found.people)
    assert not one.control and {t.control for t in found.tools[1:]} == {True}


def test_calls_reach_from_one_an_item_to_every_attempt(
    hosted: Callable[..., None], tmp_path: Path
) -> None:
    hosted()
    one = of(tmp_path, "{id: hosted}")
    assert (one.calls, one.calls_at_most) == (3, 3 * REMOTE_ATTEMPTS)
    one = of(tmp_path, "{id: hosted, max_attempts: 2, warm_up: 4}")
    assert (one.calls, one.calls_at_most) == (3 + 4, 3 * 2 + 4)
    assert of(tmp_path, "{id: identity}").calls_at_most == 3 * LOCAL_ATTEMPTS


def test_the_plans_price_comes_before_the_list_price_and_an_unknown_one_is_not_0(
    hosted: Callable[..., None], tmp_path: Path
) -> None:
    hosted()
    listed = of(tmp_path, "{id: hosted, max_attempts: 2}")
    assert listed.price == Price(0.02, source="list of May")
    assert listed.expected == pytest.approx(0.06) and listed.at_most == pytest.approx(0.12)
    own = of(tmp_path, "{id: hosted, price: {per_call: 0.5, currency: EUR}}")
    assert own.price is not None and own.price.currency == "EUR"
    assert own.expected == pytest.approx(1.5)
    hosted(replace(SPEC, price=None))
    unknown = of(tmp_path, "{id: hosted}")
    assert unknown.price is None and unknown.expected is None and unknown.at_most is None


def test_a_price_by_the_megapixel_takes_the_size_that_the_tool_gets(
    hosted: Callable[..., None], tmp_path: Path
) -> None:
    price = Price(0.01, per_megapixel=0.1, source="list")
    hosted(replace(SPEC, price=price))
    whole = of(tmp_path, "{id: hosted}")
    assert whole.megapixels == pytest.approx(0.720 * 0.960)
    assert whole.expected == pytest.approx(3 * (0.01 + 0.1 * 0.6912))
    hosted(replace(SPEC, price=price, size=SizeRule(sizes=((512, 512),))))
    assert of(tmp_path, "{id: hosted}").megapixels == pytest.approx(0.512 * 0.512)


def test_portraits_that_cannot_be_opened_leave_the_size_unknown(
    hosted: Callable[..., None], tmp_path: Path
) -> None:
    hosted(replace(SPEC, price=Price(0.01, per_megapixel=0.1)))
    (tmp_path / "m.csv").write_text("file,subject_id\ngone.png,a\n")
    path = tmp_path / "plan.yaml"
    path.write_text(
        "name: e\nportraits: {manifest: m.csv}\ntools: [{id: hosted}]\ncontrols: false\n"
    )
    found = estimate(load_plan(path))
    assert found.sized == 0 and found.tools[0].megapixels is None
    assert found.unpriced == ["hosted"]


@pytest.mark.parametrize(
    ("calls", "rate", "at_once", "speed", "least"),
    [
        (10, RateLimit(10, 60), 1, None, 0.0),
        (11, RateLimit(10, 60), 1, None, 60.0),
        (21, RateLimit(10, 60), 1, None, 120.0),
        (0, RateLimit(10, 60), 1, None, 0.0),
        (10, None, 4, 2.0, 6.0),
        (11, RateLimit(10, 60), 2, 20.0, 120.0),
        (10, None, 4, None, None),
    ],
)
def test_the_least_time_follows_from_rate_and_concurrency(
    calls: int, rate: RateLimit | None, at_once: int, speed: float | None, least: float | None
) -> None:
    assert least_seconds(calls, rate, at_once, speed) == least


def test_who_gets_the_faces_is_told_by_host(hosted: Callable[..., None], tmp_path: Path) -> None:
    hosted()
    away = of(tmp_path, "{id: hosted}")
    assert away.leaves and away.destination.host == "api.example.com:443"
    hosted(url="http://127.0.0.1:7860")
    here = of(tmp_path, "{id: hosted}")
    assert not here.leaves and str(here.destination) == "this machine (127.0.0.1:7860)"
    assert here.expected == 0.0  # the list price is that of the maker's own address
    hosted(url="")
    nameless = of(tmp_path, "{id: hosted}")
    assert nameless.leaves and "does not tell" in str(nameless.destination)
    assert not of(tmp_path, "{id: identity}").leaves


@pytest.mark.parametrize(
    ("name", "own"),
    [("localhost", True), ("127.8.9.1", True), ("[::1]", True), ("LOCALHOST.", True),
     ("a.localhost", True), ("192.168.1.4", False), ("localhost.example.com", False), ("", False)],
)  # fmt: skip
def test_what_counts_as_this_machine(name: str, own: bool) -> None:
    assert is_loopback(name) is own


def test_every_tool_that_speaks_http_tells_its_host() -> None:
    speakers = {
        name: module
        for name, (_, module) in adapters.contract.discover().items()
        if getattr(module, "FAKE", None) and name != "mobile"  # it asks its phone as it is built
    }
    assert {"openai_images", "webui"} <= set(speakers)
    for name, module in speakers.items():
        example = {
            **getattr(module, "EXAMPLE", {}),
            "base_url": "https://api.example.com",
            "key": SecretStr("x" * 40),
        }
        adapter = module.build(example)
        assert destination_of(adapter) == Destination("api.example.com:443", True), name
        adapter.close()


def test_a_phone_at_the_end_of_a_cable_is_another_machine() -> None:
    phone = cast(Any, SimpleNamespace(spec=SPEC, device="adb:R58M/tcp:8642"))
    cabled = cast(Any, SimpleNamespace(spec=SPEC, _link=phone))
    assert destination_of(cabled) == Destination("adb:R58M/tcp:8642", True)


def test_a_remote_tool_that_is_not_there_is_reckoned_by_its_general_facts_and_that_is_said(
    hosted: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted()

    def absent(*_: Any, **__: Any) -> None:
        raise LikenessError("tool 'hosted': api.example.com cannot be reached")

    monkeypatch.setattr("service.estimate.build_tool", absent)
    one = of(tmp_path, "{id: hosted, settings: {base_url: 'https://api.example.com'}}")
    assert one.note == "api.example.com cannot be reached"
    assert one.items == 3 and one.destination == Destination("api.example.com:443", True)
    with pytest.raises(LikenessError):
        of(tmp_path, "{id: identity}")


# A run that is to be resumed -----------------------------------------------------------------


def test_of_a_resumed_run_only_what_is_left_counts_with_what_was_spent(
    hosted: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted()
    monkeypatch.setattr(runs, "build_tool", lambda *a, **k: Never(SPEC, ""))
    path = plan_file(tmp_path, "{id: hosted, max_attempts: 2}", "controls: false\n")
    loaded = load_plan(path)
    run = runs.begin(loaded, tmp_path / "out", resume=False)
    instrument = Instrument()
    for seq, portrait in audit.unseen(run):
        run.ledger.add_portraits([audit.inspect(instrument, seq, portrait)])
    instrument.close()
    ledger = tmp_path / "out" / "ledger.sqlite3"
    monkeypatch.undo()
    hosted()
    assert not estimate(loaded, ledger).resumed  # nothing is planned yet: all of it is left
    audit.plan_items(run)
    first, second, _ = run.ledger.items()
    warm = run.ledger.begin_call(first["item_id"], 1, WARM_UP)
    run.ledger.end_call(warm, first["item_id"], {"result": "edited", "seconds": 8.0}, {})
    done = run.ledger.begin_call(first["item_id"], 1)
    said = {
        "result": "edited",
        "seconds": 4.0,
        "meta": {"cost": {"amount": 0.5, "currency": "USD"}},
    }
    run.ledger.end_call(done, first["item_id"], said, {"state": "done", "outcome": "measured"})
    broken = run.ledger.begin_call(second["item_id"], 1)
    run.ledger.end_call(
        broken, second["item_id"], {"result": "failed"}, {"state": "done", "outcome": "failed"}
    )
    run.ledger.close()
    found = estimate(loaded, ledger)
    (one,) = found.tools
    assert found.resumed and found.done == 2
    assert (one.items, one.calls, one.calls_at_most, one.people) == (1, 1, 2, 1)
    # what the tool named for one call, and the list price of the two for which it named nothing
    assert one.spent == pytest.approx(0.5 + 2 * 0.02)
    assert found.totals()["USD"] == pytest.approx((0.54, 0.56, 0.58))
    assert one.seconds_at_least == 6.0  # the median of what this run has measured
    again = estimate(loaded, ledger, retry_failed=True)
    assert again.done == 1 and again.tools[0].items == 2


def test_a_folder_without_a_run_cannot_be_resumed(tmp_path: Path) -> None:
    path = plan_file(tmp_path, "{id: identity}")
    with pytest.raises(LikenessError, match="holds no run to resume"):
        estimate(load_plan(path), tmp_path / "out" / "ledger.sqlite3")
    assert not (tmp_path / "out").exists()


# Budgets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [("20", 20, "USD"), ("20 EUR", 20, "EUR"), ("eur 7.5", 7.5, "EUR"), ("$3", 3, "USD"),
     ("0", 0, "USD"), ("1.5gbp", 1.5, "GBP")],
)  # fmt: skip
def test_a_budget_is_read_with_its_currency(text: str, amount: float, currency: str) -> None:
    assert Budget.parse(text) == Budget(amount, currency)


@pytest.mark.parametrize("text", ["", "much", "-5", "1.2.3", "EUR 5 USD", "1e9", "nan", "5,50"])
def test_a_budget_that_cannot_be_read_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(LikenessError, match="write an amount such as 20"):
        Budget.parse(text)


def a_tool(
    at_most: float | None, currency: str = "USD", spent: float = 0.0, calls: int = 10
) -> ToolEstimate:
    price = None if at_most is None else Price(0.1, currency)
    half = None if at_most is None else at_most / 2
    return ToolEstimate(
        "x", "hosted", False, Destination("api", True), calls, calls, calls, calls, 2 * calls, 2, 0,
        0.5, price, half, at_most, spent, None, None, 1,
    )  # fmt: skip


def told(*tools: ToolEstimate) -> str | None:
    return Budget(10.0).excess(Estimate(tools, 10, 10, 10))


def test_a_budget_holds_against_the_most_that_a_run_may_cost() -> None:
    assert told(a_tool(10.0)) is None
    assert told(a_tool(4.0), a_tool(6.0)) is None
    over = told(a_tool(10.02))
    assert over is not None and "up to 10.02 USD" in over and "5.01 expected" in over
    assert "\n" not in over


def test_what_was_spent_counts_against_the_budget() -> None:
    over = told(a_tool(6.0, spent=5.0))
    assert over is not None and "up to 11.00 USD" in over and "5.00 of it spent" in over
    assert told(a_tool(5.0, spent=5.0)) is None


def test_an_unknown_price_or_another_currency_cannot_be_held_to_a_budget() -> None:
    unknown = told(a_tool(None))
    assert unknown is not None and "set tools[].price" in unknown
    assert told(a_tool(None, calls=0)) is None  # nothing is left to ask of it
    other = told(a_tool(1.0, "EUR"))
    assert other is not None and "1.00 EUR" in other
    assert told(a_tool(0.0, "EUR")) is None


def test_sums_of_prices_do_not_tip_a_budget_by_their_rounding() -> None:
    assert Budget(0.3).excess(Estimate([a_tool(0.1), a_tool(0.2)], 1, 1, 1)) is None
