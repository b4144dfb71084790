"""The two ways a command can fail; the command line prints either as one line, without a traceback."""


class BaEvalError(Exception):
    """Base of the errors that are meant for the user: the message says what, where, and what to do next."""

    exit_code = 3


class InputError(BaEvalError):
    """What the user gave cannot be used. Raised before anything is written. Exit code 2."""

    exit_code = 2


class MachineError(BaEvalError):
    """The engine, the sandbox or the machine failed. What is done stays done; the same command goes on. Exit code 3."""

    exit_code = 3
