"""One sandbox per isolation level for all tests of this folder."""

from collections.abc import Iterator

import pytest

from ba_eval.errors import InputError
from ba_eval.execution import Sandbox


@pytest.fixture(scope="session", params=[1, 2], ids=["namespaces", "landlock"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox with one worker: whatever a program leaves behind would meet the next one."""
    try:
        made = Sandbox(workers=1, level=request.param)
    except InputError as error:
        pytest.skip(str(error))
    with made:
        yield made
