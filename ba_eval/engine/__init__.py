"""Engines: a vLLM child process per checkpoint, or a running OpenAI-compatible server."""
