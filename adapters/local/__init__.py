"""The parts of tools that run programs or read files on this machine."""
