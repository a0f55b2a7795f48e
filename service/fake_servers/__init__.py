"""Servers on loopback that speak the protocols of hosted tools: one file a maker."""
