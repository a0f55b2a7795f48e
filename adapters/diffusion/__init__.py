"""The parts of the tool stable_diffusion, and the captions that web UIs share with it."""
