"""Tables of the ledger. JSON columns hold what is only ever read back whole."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Float, ForeignKey, Integer, MetaData, String, Table, Text

metadata = MetaData()
ITEM, WARM_UP = "item", "warm_up"
"""Kinds of calls: for an item's result, or to be thrown away."""

runs = Table(
    "runs",
    metadata,
    Column("run_id", String(32), primary_key=True),
    Column("plan_sha256", String(64), nullable=False),
    Column("plan_text", Text, nullable=False),
    Column("started", String(40), nullable=False),
    Column("finished", String(40)),
    Column("seconds", Float, nullable=False, default=0.0),
    Column("versions", JSON, nullable=False),
    Column("inputs", JSON, nullable=False),
)

portraits = Table(
    "portraits",
    metadata,
    Column("portrait_id", Text, primary_key=True),
    Column("seq", Integer, nullable=False),
    Column("subject_id", Text, nullable=False),
    Column("attributes", JSON, nullable=False),
    Column("accepted", Integer, nullable=False),
    Column("face_found", Integer, nullable=False),
    Column("reason", Text),
    Column("facts", JSON, nullable=False),
    Column("face", JSON),
    Column("warnings", JSON, nullable=False),
    Column("sha256", String(64), nullable=False),
)

items = Table(
    "items",
    metadata,
    Column("item_id", String(32), primary_key=True),
    Column("seq", Integer, nullable=False, index=True),
    Column("portrait_id", Text, ForeignKey("portraits.portrait_id"), nullable=False),
    Column("tool", Text, nullable=False),
    Column("tool_id", Text, nullable=False),
    Column("control", Integer, nullable=False),
    Column("task", String(40), nullable=False),
    Column("perturbation", String(40), nullable=False),
    Column("seed", Integer, nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("outcome", String(32)),
    Column("reason", Text),
    Column("seconds", Float),
    Column("model", Text, nullable=False, default=""),
    Column("attempts", Integer, nullable=False, default=0),
    Column("original", String(64)),
    Column("edited", String(64)),
    Column("mask", String(64)),
    Column("meta", JSON, nullable=False, default=dict),
    Column("warnings", JSON, nullable=False, default=list),
    Column("evidence", JSON, nullable=False, default=dict),
    Column("health", JSON, nullable=False, default=dict),
)

calls = Table(
    "calls",
    metadata,
    Column("call_id", Integer, primary_key=True, autoincrement=True),
    Column("item_id", String(32), ForeignKey("items.item_id"), nullable=False, index=True),
    Column("attempt", Integer, nullable=False),
    Column("started", String(40), nullable=False),
    Column("ended", String(40)),
    Column("result", String(16)),
    Column("reason", Text),
    # A default in the database too: an older ledger is given these columns as it is opened
    Column("kind", String(16), nullable=False, default=ITEM, server_default=ITEM),
    Column("seconds", Float),
    Column("model", Text),
    Column("request_id", Text),
    Column("meta", JSON),
)

measurements = Table(
    "measurements",
    metadata,
    Column("item_id", String(32), ForeignKey("items.item_id"), primary_key=True),
    Column("metric", String(60), primary_key=True),
    Column("region", String(40), primary_key=True),
    Column("position", Integer, nullable=False),
    Column("value", Float),
    Column("unit", String(40), nullable=False),
    Column("status", String(20), nullable=False),
    Column("reason", Text),
)
