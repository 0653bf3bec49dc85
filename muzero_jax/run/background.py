"""Work that is done in a thread while the program trains: compiling the matches."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor


class Background:
    """Calls tasks one after another in a thread, from the moment it is opened by `with`.

    Leaving the block waits for the task under way and drops those after it.
    """

    def __init__(self, tasks: Sequence[Callable[[], None]]):
        self._tasks = tasks
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="background")

    def __enter__(self) -> "Background":
        self._calls = [self._thread.submit(task) for task in self._tasks]
        return self

    def __exit__(self, *exception: object) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    @property
    def is_done(self) -> bool:
        """Whether all tasks have ended, well or not."""
        return all(call.done() for call in self._calls)

    def finish(self) -> None:
        """Waits until all tasks are done; raises what one of them raised."""
        for call in self._calls:
            call.result()
