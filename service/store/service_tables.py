"""Tables of the service, in the same database as the ledgers. Times of records are ISO 8601 text,
times that are reckoned with (leases, retries) are seconds since 1970 as floats."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
)

from service.store.tables import RUN_ID, Words, metadata

_BIG = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up plain INTEGER keys only
_WHOLE = JSON(none_as_null=True)
OWNER = 64
"""The longest id of a caller, in characters."""

batches = Table(
    "batches",
    metadata,
    Column("batch_id", String(32), primary_key=True),
    Column("created", String(40), nullable=False),
    Column("owner", String(OWNER), nullable=False),
    Column("name", Words, nullable=False, default=""),
    Column("state", String(16), nullable=False),
    Column("accepted", Integer, nullable=False, default=0),
    Column("rejected", Integer, nullable=False, default=0),
    Column("expires", String(40)),
    Index(None, "owner", "created"),
    Index(None, "expires"),
)

batch_items = Table(
    "batch_items",
    metadata,
    Column("batch_id", String(32), ForeignKey("batches.batch_id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("name", Words, nullable=False),
    Column("blob", String(64)),
    Column("bytes", BigInteger),
    Column("media_type", Words),
    Column("state", String(16), nullable=False),
    Column("code", Words),
    Column("reason", Words),
    Column("attributes", _WHOLE),
    Index(None, "blob"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("run_id", String(RUN_ID), primary_key=True),
    Column("kind", String(16), nullable=False, server_default="audit"),
    Column("batch_id", String(32), ForeignKey("batches.batch_id")),
    Column("owner", String(OWNER), nullable=False),
    Column("name", Words, nullable=False, default=""),
    Column("created", String(40), nullable=False),
    Column("state", String(16), nullable=False),
    Column("plan_text", Words, nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("lease_owner", String(120)),
    Column("lease_until", Float),
    Column("cancel_requested", Integer, nullable=False, default=0),
    Column("error", Words),
    Column("started", String(40)),
    Column("finished", String(40)),
    Column("stages", JSON, nullable=False, default=dict),
    Column("webhook_url", Words),
    Index(None, "state", "lease_until"),
    Index(None, "owner", "created"),
    Index(None, "batch_id"),
)

events = Table(
    "events",
    metadata,
    Column("event_id", _BIG, primary_key=True, autoincrement=True),
    Column("run_id", String(RUN_ID), ForeignKey("jobs.run_id"), nullable=False),
    Column("at", String(40), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("data", JSON, nullable=False, default=dict),
    Index(None, "run_id", "event_id"),
    sqlite_autoincrement=True,  # a number once given is never given again
)

artefacts = Table(
    "artefacts",
    metadata,
    Column("run_id", String(RUN_ID), ForeignKey("jobs.run_id"), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("media_type", String(100), nullable=False),
    Column("blob", String(64), nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("created", String(40), nullable=False),
    Index(None, "blob"),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("owner", String(OWNER), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("request_sha256", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("status", Integer),
    Column("headers", _WHOLE),
    Column("body", LargeBinary),
    Column("created", Float, nullable=False),
    Index(None, "created"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", String(OWNER), primary_key=True),
    Column("name", Words, nullable=False, default=""),
    Column("secret_sha256", String(64), nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("created", String(40), nullable=False),
    Column("expires", String(40)),
    Column("revoked", String(40)),
    Column("last_used", String(40)),
)

access_log = Table(
    "access_log",
    metadata,
    Column("entry_id", _BIG, primary_key=True, autoincrement=True),
    Column("at", String(40), nullable=False),
    Column("key_id", String(OWNER)),
    Column("action", String(60), nullable=False),
    Column("target", Words, nullable=False, default=""),
    Column("detail", _WHOLE),
    Index(None, "at"),
    sqlite_autoincrement=True,
)

deletions = Table(
    "deletions",
    metadata,
    Column("receipt_id", String(40), primary_key=True),
    Column("batch_id", String(32), nullable=False),
    Column("at", String(40), nullable=False),
    Column("key_id", String(OWNER)),
    Column("receipt", JSON, nullable=False),
    Index(None, "batch_id"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("delivery_id", String(40), primary_key=True),
    Column("run_id", String(RUN_ID), ForeignKey("jobs.run_id"), nullable=False),
    Column("url", Words, nullable=False),
    Column("event", String(60), nullable=False),
    Column("body", Words, nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("next_at", Float),
    Column("last_status", Integer),
    Index(None, "state", "next_at"),
    Index(None, "run_id"),
)
