"""The parts of the tools webui and comfyui."""
