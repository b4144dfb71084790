"""`ba-eval sandbox`."""

import argparse
from typing import Any


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    commands.add_parser("sandbox")
