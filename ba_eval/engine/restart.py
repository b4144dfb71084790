"""Keeps a generation going when its engine dies: smaller batches, and a request that kills it is put aside."""

import contextlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator

from ba_eval.engine.request import Completion, Engine, Request, failed
from ba_eval.errors import MachineError

RESTARTS = 2
"""Restarts in a row without one finished sample, after which the engine is given up."""
RESTARTS_ISOLATING = 12
"""The same while a request that kills the engine is looked for: halving 4,096 suspects takes this many."""


def generate(
    start: Callable[[int | None], Engine], requests: Iterable[Request], note: Callable[[str], None]
) -> Iterator[list[Completion]]:
    """Yields completions, one per request, in lists of what came together.

    Each death of the engine costs the samples in flight, made again later.

    `start(max_num_seqs)` starts an engine, with its own batch size where None. After a death the batch size is halved
    and what was in flight waits until the rest is done; then it runs in halves, until a request that kills the engine
    stands alone: that one is yielded as an `error`. Raises the engine's MachineError where restarting does not help.
    """
    groups: deque[Iterator[Request]] = deque([iter(requests)])
    isolating = False  # the run itself is over: groups are what was in flight when an engine died
    engine: Engine | None = None
    batch: int | None = None
    completed = False
    in_a_row = 0
    deaths_alone: Counter[str] = Counter()
    try:
        while groups:
            group = groups.popleft()
            handed: dict[str, Request] = {}
            try:
                if engine is None:
                    engine = start(batch)
                for completions in engine.generate(_noting(group, handed)):
                    for completion in completions:
                        del handed[completion.id]
                    completed, in_a_row = True, 0
                    yield completions
                isolating = True
                continue
            except MachineError as error:
                slots = _slots(engine)
                if engine is not None:
                    engine.close()
                    engine = None
                in_a_row += 1
                suspects = list(handed.values())
                if isolating and len(suspects) == 1:
                    deaths_alone[suspects[0].id] += 1
                    # Twice, because something else may have killed the engine just then.
                    if deaths_alone[suspects[0].id] > (1 if completed else RESTARTS):
                        yield [failed(suspects.pop(), f"the engine died each time this request ran: {error}"[:2000])]
                        in_a_row = 0
                if in_a_row > (RESTARTS_ISOLATING if isolating else RESTARTS):
                    raise
                batch = max(1, (batch or slots) // 2) if (batch or slots) else None
                note(f"{error}\nstarting the engine again{f', with max_num_seqs={batch}' if batch else ''}")
                half = (len(suspects) + 1) // 2
                halves = [iter(part) for part in (suspects[:half], suspects[half:]) if part]
                if isolating:
                    groups.extendleft(reversed([*halves, group]))
                else:
                    groups.appendleft(group)
                    groups.extend(halves)
    finally:
        if engine is not None:
            with contextlib.suppress(MachineError):
                engine.close()


def _noting(group: Iterator[Request], handed: dict[str, Request]) -> Iterator[Request]:
    for request in group:
        handed[request.id] = request
        yield request


def _slots(engine: Engine | None) -> int:
    return int(engine.info.get("max_num_seqs") or 0) if engine is not None else 0
