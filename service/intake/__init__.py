"""How pictures come in: uploads, archives and addresses, each checked before it counts."""
