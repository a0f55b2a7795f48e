"""One database holds many runs: every row of a ledger knows its run."""

from __future__ import annotations

from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def _of_run() -> sa.Column[str]:
    return sa.Column("run_id", sa.String(32), primary_key=True)


sa.Table(
    "runs",
    metadata,
    _of_run(),
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
    _of_run(),
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
    _of_run(),
    sa.Column("item_id", sa.String(32), primary_key=True),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("portrait_id", sa.Text, nullable=False),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Column("tool_id", sa.Text, nullable=False),
    sa.Column("control", sa.Integer, nullable=False),
    sa.Column("task", sa.String(40), nullable=False),
    sa.Column("perturbation", sa.String(40), nullable=False),
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
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
    sa.ForeignKeyConstraint(
        ["run_id", "portrait_id"], ["portraits.run_id", "portraits.portrait_id"]
    ),
    sa.Index(None, "run_id", "seq"),
    sa.Index(None, "run_id", "state"),
)
sa.Table(
    "calls",
    metadata,
    sa.Column("call_id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.String(32), nullable=False),
    sa.Column("item_id", sa.String(32), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("started", sa.String(40), nullable=False),
    sa.Column("ended", sa.String(40)),
    sa.Column("result", sa.String(16)),
    sa.Column("reason", sa.Text),
    sa.Column("kind", sa.String(16), nullable=False, server_default="item"),
    sa.Column("seconds", sa.Float),
    sa.Column("model", sa.Text),
    sa.Column("request_id", sa.Text),
    sa.Column("meta", sa.JSON),
    sa.ForeignKeyConstraint(["run_id", "item_id"], ["items.run_id", "items.item_id"]),
    sa.Index(None, "run_id", "item_id"),
)
sa.Table(
    "measurements",
    metadata,
    _of_run(),
    sa.Column("item_id", sa.String(32), primary_key=True),
    sa.Column("metric", sa.Text, primary_key=True),
    sa.Column("region", sa.Text, primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("value", sa.Float),
    sa.Column("unit", sa.Text, nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("reason", sa.Text),
    sa.ForeignKeyConstraint(["run_id", "item_id"], ["items.run_id", "items.item_id"]),
)


def upgrade() -> None:
    """Keys become (run, id). Neither database changes a primary key that others point to in place:
    the tables are made anew and their rows copied, in the one transaction that this step is."""
    link = op.get_bind()
    parents_first = list(metadata.sorted_tables)
    for table in parents_first:
        op.rename_table(table.name, f"old_{table.name}")
    metadata.create_all(link)
    run = link.execute(sa.text("SELECT run_id FROM old_runs ORDER BY started")).scalars().first()
    run = run or uuid4().hex
    for table in parents_first:
        names = ", ".join(c.name for c in table.columns if c.name != "run_id")
        of_run = "run_id" if table.name == "runs" else ":run"
        copy = f"INSERT INTO {table.name} (run_id, {names}) SELECT {of_run}, {names} FROM old_{table.name}"  # noqa: S608
        link.execute(sa.text(copy), {} if table.name == "runs" else {"run": run})
    for table in reversed(parents_first):
        op.drop_table(f"old_{table.name}")
    if link.dialect.name == "postgresql":
        _count_on(link)


def _count_on(link: sa.Connection) -> None:
    """PostgreSQL counts calls apart from the table: after the last one, under the usual name."""
    name = link.execute(sa.text("SELECT pg_get_serial_sequence('calls', 'call_id')")).scalar_one()
    if not name.endswith(".calls_call_id_seq"):
        link.execute(sa.text(f"ALTER SEQUENCE {name} RENAME TO calls_call_id_seq"))
    link.execute(
        sa.text(
            "SELECT setval('calls_call_id_seq', (SELECT max(call_id) FROM calls))"
            " WHERE EXISTS (SELECT 1 FROM calls)"
        )
    )
