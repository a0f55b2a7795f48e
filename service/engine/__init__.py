"""Where and when the steps of an audit run."""
