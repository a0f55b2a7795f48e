"""The client: isolated conversations with any OpenAI-compatible endpoint, recorded and resumable."""
