"""What hosted makers' tools share, and the parts of single ones."""
