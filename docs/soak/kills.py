"""kill -9 of the service, of a worker and of the database at random moments: nothing accepted is
lost, nothing is done twice.

Run by ``make soak``: ``python docs/soak/kills.py [--moments 20] [--seed 5] [--only sqlite|postgres]``.
A supervisor starts again what was killed; clients keep sending batches and runs with
Idempotency-Keys and repeat what got no answer. At the end the database, the answers and the tool's
own log of its calls must agree. Prints one line of JSON; exits 1 when a promise is missed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from docs.soak import rig
from docs.soak.postgres import Postgres
from domain.errors import LikenessError
from service.client import LikenessClient
from service.client_upload import Upload
from service.store.database import Database

PICTURES = 3
GAP_S = (1.5, 6.0)
SENDERS = 4
MOST_RUNS = 10
"""Of one sender."""
PAUSE_S = (4.0, 16.0)
DRAIN_S = 600.0
CALL_S = 1.0
Kill = Callable[[], bool]


@dataclass
class Told:
    """What the clients were promised. ``failed`` are answers that they could not make sense of."""

    batches: dict[str, int] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    sent: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def number(self) -> int:
        """The next batch's."""
        with self.lock:
            self.sent += 1
            return self.sent


def send(there: rig.Stand, told: Told, over: threading.Event, turn: random.Random) -> None:
    """Batch after batch, each with a run that is followed to its end, until ``over``."""
    followers: list[threading.Thread] = []
    with there.client() as client:
        while not over.is_set() and len(followers) < MOST_RUNS:
            number = told.number()
            try:
                run_id = send_one(client, told, number)
                follower = threading.Thread(
                    target=follow, args=(client, told, run_id, number), daemon=True
                )
                follower.start()
                followers.append(follower)
            except LikenessError as error:
                told.failed.append(f"batch {number}: {error}")
            over.wait(turn.uniform(*PAUSE_S))
        for follower in followers:
            follower.join()


def send_one(client: LikenessClient, told: Told, number: int) -> str:
    """A batch and a run over it; its id."""
    with tempfile.TemporaryDirectory() as name:
        files = []
        for i in range(PICTURES):
            path = Path(name, f"p{i}.jpg")
            path.write_bytes(rig.picture(number * PICTURES + i))
            files.append(Upload("files", path.name, path))
        listed = rig.manifest([f.name for f in files])
        batch = client.send_files(files, manifest=listed)
        told.batches[batch.batch_id] = batch.accepted
        run = client.start_run(batch.batch_id, rig.PLAN)
        told.runs[run.run_id] = batch.batch_id
        return run.run_id


def follow(client: LikenessClient, told: Told, run_id: str, number: int) -> None:
    """Half of the runs are followed by their events, half are asked for."""
    try:
        if number % 2:
            client.wait(run_id)
        while client.run(run_id).state in ("queued", "running"):
            time.sleep(2.0)
    except LikenessError as error:
        told.failed.append(f"run {run_id}: {error}")


def kill_all(kills: dict[str, Kill], moments: int, seed: int) -> Counter[str]:
    """Each of ``kills`` that many times, in random order at random moments."""
    chance, done = random.Random(seed), Counter[str]()
    order = [name for name in kills for _ in range(moments)]
    chance.shuffle(order)
    for name in order:
        time.sleep(chance.uniform(*GAP_S))
        rig.until(kills[name], rig.START_S, f"{name} to be there, so that it can be killed")
        done[name] += 1
    return done


def kill_a_worker(there: rig.Stand, turn: random.Random) -> bool:
    """One of the supervised workers, or of those that the service started."""
    beside = list(there.workers)
    chosen: list[Any] = [*beside, *there.children()]
    victim = turn.choice(chosen)
    try:
        return bool(victim.kill() is not False)
    except psutil.Error:
        return False


def campaign(
    kind: str, moments: int, seed: int, nice: int = 0, senders: int = SENDERS
) -> tuple[dict[str, Any], list[str]]:
    """The whole of it on one kind of database: figures, and the promises missed."""
    began, told = time.monotonic(), Told()
    with ExitStack() as ends:
        home = ends.enter_context(rig.folder())
        server = ends.enter_context(closing(Postgres(home / "pg"))) if kind == "postgres" else None
        url = server.url if server else None
        there = ends.enter_context(
            rig.stand(home / "home", database=url, beside=1, call_s=CALL_S, nice=nice)
        )
        turn = random.Random(seed + 1)
        kills: dict[str, Kill] = {
            "api": there.serve.kill,
            "worker": lambda: kill_a_worker(there, turn),
        }
        if server is not None:
            kills["database"] = lambda: server.kill() if turn.random() < 0.6 else server.kill_one()
        done, late = amid_traffic(there, told, senders, lambda: kill_all(kills, moments, seed))
        facts = {"kills": dict(done), "answers": dict(there.watch.statuses)}
        found, wrong = compare(there, told)
    missed = [f"{late} clients wait in vain"] if late else []
    missed += [*told.failed, *there.watch.wrong, *wrong]
    missed += [f"a process was left behind: {p}" for p in rig.left_behind(home / "home")]
    return {**facts, **found, "seconds": round(time.monotonic() - began)}, missed


def amid_traffic(
    there: rig.Stand, told: Told, senders: int, step: Callable[[], Counter[str]]
) -> tuple[Counter[str], int]:
    """Do ``step`` while clients send; and how many of them have not come to an end long after."""
    over = threading.Event()
    clients = [
        threading.Thread(target=send, args=(there, told, over, random.Random(n)), daemon=True)
        for n in range(senders)
    ]
    for client in clients:
        client.start()
    try:
        done = step()
    finally:
        over.set()
        ends_at = time.monotonic() + DRAIN_S
        for client in clients:
            client.join(max(0.1, ends_at - time.monotonic()))
    return done, sum(c.is_alive() for c in clients)


def compare(there: rig.Stand, told: Told) -> tuple[dict[str, Any], list[str]]:
    """What the clients were told against what the database and the tool's log say."""
    with closing(Database(there.database)) as database:
        rows = {
            name: database_rows(database, statement)
            for name, statement in {
                "batches": "SELECT batch_id, state, accepted FROM batches",
                "accepted": "SELECT batch_id, count(*) AS n FROM batch_items"
                " WHERE state = 'accepted' GROUP BY batch_id",
                "jobs": "SELECT run_id, batch_id, state, error FROM jobs",
                "items": "SELECT run_id, item_id, state, outcome, reason, original FROM items",
                "calls": "SELECT run_id, item_id, ended, result FROM calls",
                "figures": "SELECT run_id, item_id, count(*) AS n, count(DISTINCT"
                " metric || '/' || region) AS different FROM measurements GROUP BY run_id, item_id",
            }.items()
        }
    missed = [*batches_wrong(rows, told), *runs_wrong(rows, told)]
    items, again = items_wrong(rows, there.calls)
    outcomes = Counter(str(i["outcome"]) for i in rows["items"])
    facts = {
        "batches": len(rows["batches"]), "runs": len(rows["jobs"]), "items": len(rows["items"]),
        "outcomes": dict(outcomes), "calls": len(rows["calls"]), "calls_cut_off": again,
    }  # fmt: skip
    return facts, missed + items


def database_rows(database: Database, statement: str) -> list[dict[str, Any]]:
    """The rows of a statement in SQL."""
    with database.read() as link:
        return [dict(row) for row in link.exec_driver_sql(statement).mappings()]


def batches_wrong(rows: dict[str, Any], told: Told) -> list[str]:
    """Batches lost, made twice, or with fewer pictures than were accepted."""
    there = {b["batch_id"]: b for b in rows["batches"]}
    kept = {b["batch_id"]: b["n"] for b in rows["accepted"]}
    missed = [f"batch {b} was accepted and is lost" for b in told.batches if b not in there]
    missed += [f"batch {b} was made and nobody was told" for b in there if b not in told.batches]
    for batch_id, accepted in told.batches.items():
        if accepted != PICTURES or kept.get(batch_id) != PICTURES:
            missed.append(f"batch {batch_id}: {accepted} accepted, {kept.get(batch_id)} kept")
    return missed


def runs_wrong(rows: dict[str, Any], told: Told) -> list[str]:
    """Runs lost, made twice, or not done."""
    there = {j["run_id"]: j for j in rows["jobs"]}
    missed = [f"run {r} was accepted and is lost" for r in told.runs if r not in there]
    missed += [f"run {r} was made and nobody was told" for r in there if r not in told.runs]
    for run_id, job in there.items():
        if job["state"] != "done":
            missed.append(f"run {run_id} is {job['state']}: {job['error']}")
        items = [i for i in rows["items"] if i["run_id"] == run_id]
        if len(items) != PICTURES:
            missed.append(f"run {run_id} has {len(items)} items, not {PICTURES}")
    return missed


def items_wrong(rows: dict[str, Any], log: Path) -> tuple[list[str], int]:
    """Items that did not end once, with one finished call each; and how many calls were cut off."""
    finished = Counter[tuple[str, str]]()
    begun = Counter[tuple[str, str]]()
    for call in rows["calls"]:
        key = call["run_id"], call["item_id"]
        begun[key] += 1
        finished[key] += call["ended"] is not None
    figures = {(f["run_id"], f["item_id"]): f for f in rows["figures"]}
    lines = Counter(log.read_text().splitlines()) if log.exists() else Counter[str]()
    missed = []
    for item in rows["items"]:
        key = item["run_id"], item["item_id"]
        name, found = f"item {key[0]}/{key[1]}", figures.get(key)
        if item["state"] != "done" or item["outcome"] != "measured":
            missed.append(f"{name} is {item['state']}, {item['outcome']}: {item['reason']}")
        if finished[key] != 1:
            missed.append(f"{name} has {finished[key]} finished calls")
        if found is None or found["n"] != found["different"]:
            missed.append(f"{name} has no figures, or some twice")
        ran = lines[f"begin {item['original']}"]
        if not 1 <= ran <= begun[key]:
            missed.append(f"{name}: the tool ran {ran} times, {begun[key]} calls are on record")
    return missed, sum(begun.values()) - sum(finished.values())


def main() -> int:
    """Both kinds of database in turn."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--moments", type=int, default=20)
    asked.add_argument("--seed", type=int, default=5)
    asked.add_argument("--nice", type=int, default=0)
    asked.add_argument("--only", choices=["sqlite", "postgres"])
    chosen = asked.parse_args()
    rig.on_signals()
    facts: dict[str, Any] = {"moments": chosen.moments, "seed": chosen.seed}
    missed: list[str] = []
    for kind in [chosen.only] if chosen.only else ["sqlite", "postgres"]:
        facts[kind], wrong = campaign(kind, chosen.moments, chosen.seed, chosen.nice)
        missed += [f"{kind}: {line}" for line in wrong]
    return rig.finish("kills", facts, missed)


if __name__ == "__main__":
    sys.exit(main())
