"""Paired text probes of language models: prompts that differ in one slot, and what comes of them."""
