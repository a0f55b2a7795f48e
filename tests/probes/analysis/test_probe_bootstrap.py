import numpy as np
import pytest

from probes.analysis import bootstrap
from probes.analysis.rates import mean_interval, newcombe


def counts_of(
    rng: np.random.Generator, clusters: int, base: float, gap: float
) -> list[tuple[int, int, int, int]]:
    """Templates that differ a lot from one another, and a little in their difference."""
    level = rng.normal(base, 0.1, clusters)
    shift = rng.normal(gap / 2, 0.04, clusters)
    xa = rng.binomial(50, np.clip(level + shift, 0, 1))
    xb = rng.binomial(50, np.clip(level - shift, 0, 1))
    return [(int(a), 50, int(b), 50) for a, b in zip(xa, xb, strict=True)]


@pytest.mark.parametrize("clusters", [4, 6, 12, 24])
def test_a_pooled_difference_is_covered_as_often_as_promised(clusters: int) -> None:
    rng = np.random.default_rng(100 + clusters)
    rounds, hits = 600, 0
    for seed in range(rounds):
        value, interval = bootstrap.pooled_difference(
            counts_of(rng, clusters, 0.4, 0.2), seed, draws=600
        )
        assert value is not None
        assert interval is not None
        hits += interval.low <= 0.2 <= interval.high
    assert 0.93 <= hits / rounds <= 0.975, hits / rounds


def test_the_mean_of_few_equal_clusters_has_students_interval() -> None:
    clusters = [[0.1, 0.3], [0.5, 0.3], [0.9, 0.5], [0.2, 0.2]]
    value, interval = bootstrap.cluster_bootstrap(clusters, seed=1)
    reference = mean_interval([float(np.mean(c)) for c in clusters])
    assert value == pytest.approx(0.375)
    assert interval is not None
    assert reference is not None
    assert (interval.low, interval.high) == pytest.approx((reference.low, reference.high))
    assert "few" in interval.method


def test_many_clusters_have_nearly_students_interval_too() -> None:
    values = list(np.random.default_rng(3).normal(2, 1, 30))
    _, interval = bootstrap.cluster_bootstrap([[v] for v in values], seed=1, draws=20_000)
    reference = mean_interval(values)
    assert interval is not None
    assert reference is not None
    assert (interval.low, interval.high) == pytest.approx((reference.low, reference.high), abs=0.05)


def test_one_cluster_has_a_value_and_no_interval_and_none_has_neither() -> None:
    assert bootstrap.cluster_bootstrap([[0.2, 0.4]], seed=1) == (pytest.approx(0.3), None)
    assert bootstrap.cluster_bootstrap([], seed=1) == (None, None)
    assert bootstrap.cluster_bootstrap([[], []], seed=1) == (None, None)
    assert bootstrap.pooled_difference([(0, 0, 3, 5)], seed=1) == (None, None)
    assert "1 cluster only" in bootstrap.few_clusters(1)
    assert bootstrap.few_clusters(6) == ""


def test_any_statistic_gives_what_the_sums_give() -> None:
    rng = np.random.default_rng(6)
    clusters = [rng.normal(0, 1, rng.integers(1, 6)).tolist() for _ in range(12)]
    slow = bootstrap.cluster_bootstrap(
        clusters, 7, draws=300, statistic=lambda c: float(np.mean(np.concatenate(c)))
    )
    fast = bootstrap.cluster_bootstrap(clusters, 7, draws=300)
    assert slow[0] == pytest.approx(fast[0])
    assert slow[1] is not None
    assert fast[1] is not None
    assert (slow[1].low, slow[1].high) == pytest.approx((fast[1].low, fast[1].high))


def test_clusters_all_alike_keep_an_interval_with_width() -> None:
    value, interval = bootstrap.pooled_difference([(0, 50, 0, 50)] * 10, seed=1)
    reference = newcombe(0, 500, 0, 500)
    assert value == 0
    assert interval is not None
    assert reference is not None
    assert (interval.low, interval.high) == (reference.low, reference.high)
    ratio, span = bootstrap.pooled_log2_ratio([(0, 50, 0, 50)] * 10, seed=1)
    assert ratio == 0
    assert span is not None
    assert span.low < -1 < 1 < span.high


def test_clustered_replies_widen_the_interval() -> None:
    rng = np.random.default_rng(5)
    level = np.clip(rng.normal(0.5, 0.3, 20), 0, 1)
    gaps = [(int(50 * p), 50, int(50 * (1 - p)), 50) for p in level]
    _, clustered = bootstrap.pooled_difference(gaps, seed=1)
    xa, xb = sum(g[0] for g in gaps), sum(g[2] for g in gaps)
    plain = newcombe(xa, 1000, xb, 1000)
    assert clustered is not None
    assert plain is not None
    assert clustered.high - clustered.low > 1.9 * (plain.high - plain.low)


def test_a_figure_that_often_does_not_exist_in_a_draw_has_no_interval() -> None:
    value, interval = bootstrap.pooled_difference([(1, 2, 0, 0)] * 9 + [(0, 0, 1, 2)], seed=1)
    assert value == pytest.approx(0.0)
    assert interval is None


def test_a_pooled_ratio_recovers_a_planted_one() -> None:
    rng = np.random.default_rng(11)
    value, interval = bootstrap.pooled_log2_ratio(
        [(int(rng.binomial(50, 0.6)), 50, int(rng.binomial(50, 0.15)), 50) for _ in range(12)], 1
    )
    assert value == pytest.approx(2, abs=0.3)
    assert interval is not None
    assert interval.low < 2 < interval.high
