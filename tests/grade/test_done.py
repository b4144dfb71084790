"""A future that is done at once behaves as an ordinary one that was given its result."""

import asyncio
import logging
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, as_completed, wait

import pytest

from ba_eval.grade.done import Done


def ordinary(value: int) -> Future[int]:
    future: Future[int] = Future()
    future.set_result(value)
    return future


@pytest.mark.parametrize("make", [ordinary, Done])
def test_as_an_ordinary_one(make: type[Done[int]], caplog: pytest.LogCaptureFixture) -> None:
    future = make(5)
    called: list[Future[int]] = []
    future.add_done_callback(called.append)
    assert called == [future]
    assert (future.result(), future.result(0.1), future.exception()) == (5, 5, None)
    assert (future.done(), future.running(), future.cancel(), future.cancelled()) == (True, False, False, False)
    with caplog.at_level(logging.ERROR):
        future.add_done_callback(lambda _: 1 / 0)
    assert "ZeroDivisionError" in caplog.text
    assert "finished returned int" in repr(future)
    with pytest.raises(InvalidStateError):
        future.set_result(6)
    assert future.result() == 5
    with pytest.raises(AttributeError):
        future.nothing  # noqa: B018


def test_waiting() -> None:
    under_way: Future[int] = Future()
    finished, left = wait([Done(1), under_way, ordinary(2)], return_when=FIRST_COMPLETED)
    assert sorted(future.result() for future in finished) == [1, 2] and left == {under_way}
    under_way.set_result(3)
    assert sorted(future.result() for future in as_completed([Done(1), under_way, Done(2)])) == [1, 2, 3]

    async def awaited() -> int:
        return await asyncio.wrap_future(Done(7))

    assert asyncio.run(awaited()) == 7
