"""What a tool's spec says, for machines: the same for the command line and the service."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import adapters.contract


def spec_json(spec: adapters.contract.ToolSpec) -> dict[str, Any]:
    """A tool's spec for machines."""
    return {
        "id": spec.id,
        "name": spec.name,
        "tasks": [str(t) for t in spec.tasks],
        "control": spec.control,
        "mask_support": spec.mask_support,
        "takes_prompt": spec.takes_prompt,
        "seedable": spec.seedable,
        "deterministic": spec.deterministic,
        "multiple": spec.size.multiple,
        "min_side": spec.size.min_side,
        "max_side": spec.size.max_side,
        "aspect": spec.size.aspect,
        "sizes": [list(s) for s in spec.size.sizes],
        "price_note": spec.price_note,
        "price": asdict(spec.price) if spec.price else None,
        "rate_limit": str(spec.rate) if spec.rate else "none",
        "remote": spec.remote,
        "concurrency": spec.concurrency,
        "key_env": spec.key_env,
        "key_needed": spec.key_needed,
        "refuses": list(spec.refuses),
        "licence": spec.licence,
        "extra": spec.extra,
    }
