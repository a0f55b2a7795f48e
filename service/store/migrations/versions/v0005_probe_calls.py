"""What was asked of language models, and what came back."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "probe_calls",
        sa.Column("run_id", sa.String(32), nullable=False),
        sa.Column("call_key", sa.String(64), nullable=False),
        sa.Column("probe", sa.Text, nullable=False),
        sa.Column("language", sa.String(40), nullable=False),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("arm", sa.Text, nullable=False),
        sa.Column("condition", sa.Text, nullable=False),
        sa.Column("stage", sa.String(40), nullable=False),
        sa.Column("repeat", sa.Integer, nullable=False),
        sa.Column("call", sa.Text, nullable=False),
        sa.Column("reply", sa.Text, nullable=False),
        sa.Column("at", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "call_key", name="pk_probe_calls"),
    )
