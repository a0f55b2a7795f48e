"""The only writer of ledgers and pictures."""
