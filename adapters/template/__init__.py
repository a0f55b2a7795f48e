"""The parts of the tool http_template: how a plan describes an HTTP API."""
