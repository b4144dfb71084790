"""The programs that run inside the sandbox: standard library only, nothing here is trusted or knows an answer."""
