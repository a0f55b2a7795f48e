"""Statistics of an audit: from measurements to verdicts. See docs/statistics.md.

``analyse`` is the entrance; the other modules hold one method each.
"""

from metrics.statistics.columns import ClaimSpec
from metrics.statistics.table import StatisticsError
from metrics.statistics.verdicts import analyse

__all__ = ["ClaimSpec", "StatisticsError", "analyse"]
