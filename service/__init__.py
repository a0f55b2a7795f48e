"""Everything that runs: the audit, the gate, the command line, the store, the report."""
