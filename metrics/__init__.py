"""One file a metric: a frozen spec and a pure function of a registered pair."""
