"""Statistics of an audit: from measurements to verdicts. See docs/statistics.md.

``analyse`` is the entrance; the other modules hold one method each.
"""

from metrics.statistics.columns import ClaimSpec
from metrics.statistics.controls import ControlCheck, check_controls
from metrics.statistics.effects import garbe
from metrics.statistics.instrument import Adjusted, adjusted_difference, net_of_instrument
from metrics.statistics.pairs import CounterfactualPair, paired_analysis, pairs_of
from metrics.statistics.table import StatisticsError
from metrics.statistics.verdicts import analyse

__all__ = [
    "Adjusted",
    "ClaimSpec",
    "ControlCheck",
    "CounterfactualPair",
    "StatisticsError",
    "adjusted_difference",
    "analyse",
    "check_controls",
    "garbe",
    "net_of_instrument",
    "paired_analysis",
    "pairs_of",
]
