import pytest

from probes.analysis.agreement import agreement, krippendorff_alpha


def passes(table: dict[tuple[str, str], int]) -> tuple[list[str | None], list[str | None]]:
    pairs = [pair for pair, times in table.items() for _ in range(times)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def test_kappa_of_the_textbook_table_is_0_4() -> None:
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: observed 0.7, by chance 0.5
    first, second = passes({("y", "y"): 20, ("y", "n"): 5, ("n", "y"): 10, ("n", "n"): 15})
    found = agreement(first, second)
    assert found.n == 50
    assert found.observed == pytest.approx(0.7)
    assert found.kappa == pytest.approx(0.4)
    assert found.interval is not None
    assert found.interval.low == pytest.approx(0.4 - 1.96 * 0.1270, abs=0.002)


def test_two_labels_mixed_up_often_are_proposed_for_merging() -> None:
    first, second = passes(
        {
            ("learning", "learning"): 20, ("learning", "adapting"): 8, ("adapting", "adapting"): 12,
            ("pay", "pay"): 30, ("pay", "learning"): 1,
        }
    )  # fmt: skip
    found = agreement(first, second)
    assert [(m.first, m.second) for m in found.merges] == [("adapting", "learning")]
    assert found.merges[0].share == pytest.approx(8 / 40)
    shares = {d.label: (d.share, d.n) for d in found.by_label}
    assert shares["pay"] == (pytest.approx(1 / 31), 31)


def test_labels_that_one_pass_lacks_are_left_out_and_counted() -> None:
    found = agreement(["a", "b", None, "a"], ["a", "b", "a", None])
    assert (found.n, found.left_out, found.kappa) == (2, 2, 1.0)


def test_kappa_has_a_reason_where_it_does_not_exist() -> None:
    assert agreement([None], ["a"]).reason
    alike = agreement(["a", "a"], ["a", "a"])
    assert (alike.observed, alike.kappa) == (1.0, None)
    assert alike.reason
    with pytest.raises(ValueError, match="lengths"):
        agreement(["a"], [])


# Krippendorff (2011), "Computing Krippendorff's alpha-reliability", section C: four observers,
# twelve units, nominal alpha 0.743
def test_alpha_of_krippendorffs_own_example_is_0_743() -> None:
    rows = (
        "123321412...",
        "1233224125.3",
        ".3332342251.",
        "12332441251.",
    )
    alpha, reason = krippendorff_alpha([[None if v == "." else v for v in row] for row in rows])
    assert reason == ""
    assert alpha == pytest.approx(0.743, abs=0.0005)


def test_alpha_has_a_reason_where_it_does_not_exist() -> None:
    assert krippendorff_alpha([["a", "a"], ["a", "a"]])[0] is None
    assert krippendorff_alpha([["a", None], [None, "a"]])[1] == "no reply has two labels"
    assert krippendorff_alpha([["a", "b", "b"], ["a", "b", "b"]]) == (1.0, "")
    with pytest.raises(ValueError, match="lengths"):
        krippendorff_alpha([["a"], []])
