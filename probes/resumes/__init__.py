"""Parts of the resume probe: its texts, the reading of an answer, the figures."""
