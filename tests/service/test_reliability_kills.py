"""A real service under kill -9, in small: docs/soak/kills.py does the same at twenty moments each."""

from __future__ import annotations

import pytest

from docs.soak.kills import campaign


@pytest.mark.slow
def test_nothing_is_lost_or_done_twice_when_service_and_workers_are_killed_over_sqlite() -> None:
    facts, missed = campaign("sqlite", moments=2, seed=1, senders=2)
    assert missed == []
    assert facts["kills"] == {"api": 2, "worker": 2}
    assert facts["items"] == 3 * facts["runs"] > 0


@pytest.mark.slow
def test_nothing_is_lost_or_done_twice_when_the_database_server_is_killed_as_well() -> None:
    facts, missed = campaign("postgres", moments=1, seed=2, senders=2)
    assert missed == []
    assert facts["kills"] == {"api": 1, "worker": 1, "database": 1}
    assert facts["outcomes"] == {"measured": facts["items"]}
