"""The console that commands print their results on."""

from rich.console import Console


class OutputConsole(Console):
    """Lets a closed pipe (`ba-eval table RUN | head`) reach the command line; rich would exit with 1, a failed gate."""

    def on_broken_pipe(self) -> None:
        """Raises the BrokenPipeError that is being handled."""
        raise
