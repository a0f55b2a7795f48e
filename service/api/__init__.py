"""The REST service: one file a resource; what all of them share in files of its own."""
