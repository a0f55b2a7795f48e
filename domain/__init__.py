"""The nouns of the product. Imports nothing of ours; every other package speaks in these."""
