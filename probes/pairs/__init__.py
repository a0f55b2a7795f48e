"""Minimal pairs: templates, the cells of a design, and the proof that two prompts differ in the slot alone."""
