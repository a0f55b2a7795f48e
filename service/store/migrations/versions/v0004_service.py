"""The tables of the service: batches, jobs, events, keys, and what was read and deleted; and which
items name a picture, found without reading them all."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_WHOLE = sa.JSON(none_as_null=True)
metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)
sa.Table(
    "batches",
    metadata,
    sa.Column("batch_id", sa.String(32), primary_key=True),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Column("owner", sa.String(64), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("accepted", sa.Integer, nullable=False),
    sa.Column("rejected", sa.Integer, nullable=False),
    sa.Column("expires", sa.String(40)),
    sa.Index(None, "owner", "created"),
    sa.Index(None, "expires"),
)
sa.Table(
    "batch_items",
    metadata,
    sa.Column("batch_id", sa.String(32), sa.ForeignKey("batches.batch_id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("blob", sa.String(64)),
    sa.Column("bytes", sa.BigInteger),
    sa.Column("media_type", sa.Text),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("code", sa.Text),
    sa.Column("reason", sa.Text),
    sa.Column("attributes", _WHOLE),
    sa.Index(None, "blob"),
)
sa.Table(
    "jobs",
    metadata,
    sa.Column("run_id", sa.String(32), primary_key=True),
    sa.Column("kind", sa.String(16), nullable=False, server_default="audit"),
    sa.Column("batch_id", sa.String(32), sa.ForeignKey("batches.batch_id")),
    sa.Column("owner", sa.String(64), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("plan_text", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("lease_owner", sa.String(120)),
    sa.Column("lease_until", sa.Float),
    sa.Column("cancel_requested", sa.Integer, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("started", sa.String(40)),
    sa.Column("finished", sa.String(40)),
    sa.Column("stages", sa.JSON, nullable=False),
    sa.Column("webhook_url", sa.Text),
    sa.Index(None, "state", "lease_until"),
    sa.Index(None, "owner", "created"),
    sa.Index(None, "batch_id"),
)
sa.Table(
    "events",
    metadata,
    sa.Column("event_id", _BIG, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.String(32), sa.ForeignKey("jobs.run_id"), nullable=False),
    sa.Column("at", sa.String(40), nullable=False),
    sa.Column("kind", sa.String(40), nullable=False),
    sa.Column("data", sa.JSON, nullable=False),
    sa.Index(None, "run_id", "event_id"),
    sqlite_autoincrement=True,
)
sa.Table(
    "artefacts",
    metadata,
    sa.Column("run_id", sa.String(32), sa.ForeignKey("jobs.run_id"), primary_key=True),
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("media_type", sa.String(100), nullable=False),
    sa.Column("blob", sa.String(64), nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Index(None, "blob"),
)
sa.Table(
    "idempotency",
    metadata,
    sa.Column("owner", sa.String(64), primary_key=True),
    sa.Column("key", sa.String(255), primary_key=True),
    sa.Column("request_sha256", sa.String(64), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("status", sa.Integer),
    sa.Column("headers", _WHOLE),
    sa.Column("body", sa.LargeBinary),
    sa.Column("created", sa.Float, nullable=False),
    sa.Index(None, "created"),
)
sa.Table(
    "api_keys",
    metadata,
    sa.Column("key_id", sa.String(64), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("secret_sha256", sa.String(64), nullable=False),
    sa.Column("scopes", sa.JSON, nullable=False),
    sa.Column("created", sa.String(40), nullable=False),
    sa.Column("expires", sa.String(40)),
    sa.Column("revoked", sa.String(40)),
    sa.Column("last_used", sa.String(40)),
)
sa.Table(
    "access_log",
    metadata,
    sa.Column("entry_id", _BIG, primary_key=True, autoincrement=True),
    sa.Column("at", sa.String(40), nullable=False),
    sa.Column("key_id", sa.String(64)),
    sa.Column("action", sa.String(60), nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    sa.Column("detail", _WHOLE),
    sa.Index(None, "at"),
    sqlite_autoincrement=True,
)
sa.Table(
    "deletions",
    metadata,
    sa.Column("receipt_id", sa.String(40), primary_key=True),
    sa.Column("batch_id", sa.String(32), nullable=False),
    sa.Column("at", sa.String(40), nullable=False),
    sa.Column("key_id", sa.String(64)),
    sa.Column("receipt", sa.JSON, nullable=False),
    sa.Index(None, "batch_id"),
)
sa.Table(
    "deliveries",
    metadata,
    sa.Column("delivery_id", sa.String(40), primary_key=True),
    sa.Column("run_id", sa.String(32), sa.ForeignKey("jobs.run_id"), nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("event", sa.String(60), nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_at", sa.Float),
    sa.Column("last_status", sa.Integer),
    sa.Index(None, "state", "next_at"),
    sa.Index(None, "run_id"),
)


def upgrade() -> None:
    """Make the tables and the indexes of pictures."""
    metadata.create_all(op.get_bind())
    for column in ("original", "edited", "mask"):
        op.create_index(f"ix_items_{column}", "items", [column])
