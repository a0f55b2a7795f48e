"""What every tool that speaks HTTP shares: one wire on which every fault is an outcome."""
