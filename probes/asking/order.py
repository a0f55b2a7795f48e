"""The order in which calls are sent: what is compared goes out together, in random order.

A server changes during a run (load, a new version, a moved back-end). Were one arm asked before the
other, the change would look like a difference between the arms.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from probes.calls import Call


def interleaved(calls: Iterable[Call], seed: int) -> list[Call]:
    """``calls`` in blocks that differ in the arm alone, blocks and arms within each in random order
    that depends on ``seed`` and on which calls there are, not on how they came."""
    blocks: dict[tuple[str, ...], list[Call]] = {}
    for call in calls:
        probe, language, item, _, condition, stage, repeat = call.place
        block = (probe, language, item, condition, stage, f"{repeat:08d}")
        blocks.setdefault(block, []).append(call)
    chance = random.Random(f"order {seed}")
    order = sorted(blocks)
    chance.shuffle(order)
    out: list[Call] = []
    for name in order:
        block_calls = sorted(blocks[name], key=lambda call: call.arm)
        chance.shuffle(block_calls)
        out += block_calls
    return out
