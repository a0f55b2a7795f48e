"""Calls keep what the tool said of them, and warm-ups are told from calls for a result."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns. An earlier version added them one by one, and may have been cut off."""
    there = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("calls")}
    for column in (
        sa.Column("kind", sa.String(16), nullable=False, server_default="item"),
        sa.Column("seconds", sa.Float),
        sa.Column("model", sa.Text),
        sa.Column("request_id", sa.Text),
        sa.Column("meta", sa.JSON),
    ):
        if column.name not in there:
            op.add_column("calls", column)
