"""Benchmarks: definitions in YAML, problems from a local folder or the hub, pinned by content."""
