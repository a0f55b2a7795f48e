"""The first ledgers: one run in a file of its own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

metadata = sa.MetaData()
sa.Table(
    "runs",
    metadata,
    sa.Column("run_id", sa.String(32), primary_key=True),
    sa.Column("plan_sha256", sa.String(64), nullable=False),
    sa.Column("plan_text", sa.Text, nullable=False),
    sa.Column("started", sa.String(40), nullable=False),
    sa.Column("finished", sa.String(40)),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("versions", sa.JSON, nullable=False),
    sa.Column("inputs", sa.JSON, nullable=False),
)
sa.Table(
    "portraits",
    metadata,
    sa.Column("portrait_id", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("subject_id", sa.Text, nullable=False),
    sa.Column("attributes", sa.JSON, nullable=False),
    sa.Column("accepted", sa.Integer, nullable=False),
    sa.Column("face_found", sa.Integer, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("facts", sa.JSON, nullable=False),
    sa.Column("face", sa.JSON),
    sa.Column("warnings", sa.JSON, nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False),
)
sa.Table(
    "items",
    metadata,
    sa.Column("item_id", sa.String(32), primary_key=True),
    sa.Column("seq", sa.Integer, nullable=False, index=True),
    sa.Column("portrait_id", sa.Text, sa.ForeignKey("portraits.portrait_id"), nullable=False),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Column("tool_id", sa.Text, nullable=False),
    sa.Column("control", sa.Integer, nullable=False),
    sa.Column("task", sa.String(40), nullable=False),
    sa.Column("perturbation", sa.String(40), nullable=False),
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("state", sa.String(16), nullable=False, index=True),
    sa.Column("outcome", sa.String(32)),
    sa.Column("reason", sa.Text),
    sa.Column("seconds", sa.Float),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("original", sa.String(64)),
    sa.Column("edited", sa.String(64)),
    sa.Column("mask", sa.String(64)),
    sa.Column("meta", sa.JSON, nullable=False),
    sa.Column("warnings", sa.JSON, nullable=False),
    sa.Column("evidence", sa.JSON, nullable=False),
    sa.Column("health", sa.JSON, nullable=False),
)
sa.Table(
    "calls",
    metadata,
    sa.Column("call_id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("item_id", sa.String(32), sa.ForeignKey("items.item_id"), nullable=False, index=True),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("started", sa.String(40), nullable=False),
    sa.Column("ended", sa.String(40)),
    sa.Column("result", sa.String(16)),
    sa.Column("reason", sa.Text),
)
sa.Table(
    "measurements",
    metadata,
    sa.Column("item_id", sa.String(32), sa.ForeignKey("items.item_id"), primary_key=True),
    sa.Column("metric", sa.String(60), primary_key=True),
    sa.Column("region", sa.String(40), primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("value", sa.Float),
    sa.Column("unit", sa.String(40), nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("reason", sa.Text),
)


def upgrade() -> None:
    """Make the tables; of a ledger that was cut off while it was made, those that lack."""
    metadata.create_all(op.get_bind())
