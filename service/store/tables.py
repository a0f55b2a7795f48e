"""Tables of the ledger: one database holds any number of runs, told apart by ``run_id``. JSON
columns hold what is only ever read back whole."""

from __future__ import annotations

import math
from typing import Any

from sqlalchemy import (
    JSON,
    Column,
    Dialect,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)
ITEM, WARM_UP = "item", "warm_up"
"""Kinds of calls: for an item's result, or to be thrown away."""
RUN_ID = 32
"""The longest id of a run, in characters."""


class Words(TypeDecorator[str]):
    """Text from strangers. What a database cannot hold (NUL in PostgreSQL, halves of surrogate
    pairs anywhere) becomes U+FFFD, so that a tool's odd sentence cannot end a run."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """The text as it is stored."""
        if value is None or (value.isascii() and "\0" not in value):
            return value
        whole = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        return whole.replace("\0", "\ufffd")


class Figure(TypeDecorator[float]):
    """A double. NaN is kept as NULL by every database, as SQLite does it by itself."""

    impl = Float
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> float | None:
        """The figure as it is stored."""
        return None if value is None or math.isnan(value) else float(value)


def _of_run() -> Column[str]:
    return Column("run_id", String(RUN_ID), primary_key=True)


runs = Table(
    "runs",
    metadata,
    _of_run(),
    Column("plan_sha256", String(64), nullable=False),
    Column("plan_text", Words, nullable=False),
    Column("started", String(40), nullable=False),
    Column("finished", String(40)),
    Column("seconds", Float, nullable=False, default=0.0),
    Column("versions", JSON, nullable=False),
    Column("inputs", JSON, nullable=False),
)

portraits = Table(
    "portraits",
    metadata,
    _of_run(),
    Column("portrait_id", Words, primary_key=True),
    Column("seq", Integer, nullable=False),
    Column("subject_id", Words, nullable=False),
    Column("attributes", JSON, nullable=False),
    Column("accepted", Integer, nullable=False),
    Column("face_found", Integer, nullable=False),
    Column("reason", Words),
    Column("facts", JSON, nullable=False),
    Column("face", JSON),
    Column("warnings", JSON, nullable=False),
    Column("sha256", String(64), nullable=False),
)

items = Table(
    "items",
    metadata,
    _of_run(),
    Column("item_id", String(32), primary_key=True),
    Column("seq", Integer, nullable=False),
    Column("portrait_id", Words, nullable=False),
    Column("tool", Words, nullable=False),
    Column("tool_id", Words, nullable=False),
    Column("control", Integer, nullable=False),
    Column("task", String(40), nullable=False),
    Column("perturbation", String(40), nullable=False),
    Column("seed", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("outcome", String(32)),
    Column("reason", Words),
    Column("seconds", Float),
    Column("model", Words, nullable=False, default=""),
    Column("attempts", Integer, nullable=False, default=0),
    Column("original", String(64)),
    Column("edited", String(64)),
    Column("mask", String(64)),
    Column("meta", JSON, nullable=False, default=dict),
    Column("warnings", JSON, nullable=False, default=list),
    Column("evidence", JSON, nullable=False, default=dict),
    Column("health", JSON, nullable=False, default=dict),
    ForeignKeyConstraint(["run_id", "portrait_id"], ["portraits.run_id", "portraits.portrait_id"]),
    Index(None, "run_id", "seq"),
    Index(None, "run_id", "state"),
    Index(None, "original"),
    Index(None, "edited"),
    Index(None, "mask"),
)

calls = Table(
    "calls",
    metadata,
    Column("call_id", Integer, primary_key=True, autoincrement=True),
    Column("run_id", String(RUN_ID), nullable=False),
    Column("item_id", String(32), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("started", String(40), nullable=False),
    Column("ended", String(40)),
    Column("result", String(16)),
    Column("reason", Words),
    # A default in the database too: an older ledger is given these columns as it is opened
    Column("kind", String(16), nullable=False, default=ITEM, server_default=ITEM),
    Column("seconds", Float),
    Column("model", Words),
    Column("request_id", Words),
    Column("meta", JSON),
    ForeignKeyConstraint(["run_id", "item_id"], ["items.run_id", "items.item_id"]),
    Index(None, "run_id", "item_id"),
)

measurements = Table(
    "measurements",
    metadata,
    _of_run(),
    Column("item_id", String(32), primary_key=True),
    Column("metric", Words, primary_key=True),
    Column("region", Words, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("value", Figure),
    Column("unit", Words, nullable=False),
    Column("status", String(20), nullable=False),
    Column("reason", Words),
    ForeignKeyConstraint(["run_id", "item_id"], ["items.run_id", "items.item_id"]),
)

probe_calls = Table(
    "probe_calls",
    metadata,
    _of_run(),
    Column("call_key", String(64), primary_key=True),
    Column("probe", Words, nullable=False),
    Column("language", String(40), nullable=False),
    Column("item", Words, nullable=False),
    Column("arm", Words, nullable=False),
    Column("condition", Words, nullable=False),
    Column("stage", String(40), nullable=False),
    Column("repeat", Integer, nullable=False),
    # JSON as text: its own encoder has words for minus infinity, which a log-probability may be
    Column("call", Words, nullable=False),
    Column("reply", Words, nullable=False),
    Column("at", String(40), nullable=False),
)
"""What was asked of a language model and what came back."""
