"""The parts of the tool mobile: ways to a phone, its answers, the check of its quality mode."""
