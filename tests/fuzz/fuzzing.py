"""One way to fuzz every surface: a clock, a folder that nothing may leave, and memory that must not grow.

The short tests try 10 examples, the same in every run; the slow ones 100,000, others in every run. Those print their
seed and their figures (`pytest tests/fuzz -m slow -s`). `MUZERO_FUZZ_SEED` repeats one of them, and
`MUZERO_FUZZ_EXAMPLES` is another number of them.
"""

import gc
import os
import random
import signal
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import jax
import jaxtyping
import pytest

FAST, SLOW = 10, int(os.environ.get("MUZERO_FUZZ_EXAMPLES", 100_000))
MOST_SECONDS = 20
"""Longest that one example may take; those that are no hang take milliseconds."""
KEPT = 40
"""Examples that are tried again to see whether memory grows."""
MOST_GROWTH = 100_000
"""Bytes that trying them again may cost; one list that is never emptied costs more."""
MOST_AT_ONCE = 100_000_000
"""Bytes that one example may need while it runs."""
LONGEST_SENTENCE = 2000

Check = Callable[[Any, Path], None]
"""(example, a folder of its own) -> nothing; an assertion fails or an exception comes out where there is a fault."""


def fuzzed(strategy: Any, *, found: Sequence[Any] = (), growth: int = MOST_GROWTH) -> Callable[[Check], Any]:
    """Makes a check of one example two tests, a short one and a slow one.

    Args:
      found: examples that failed once.
      growth: bytes that trying some examples again may cost.
    """

    def decorate(check: Check):
        @pytest.mark.parametrize("examples", [FAST, pytest.param(SLOW, marks=pytest.mark.slow, id="slow")])
        def test(examples: int, tmp_path: Path) -> None:
            grown = explore(check, strategy, found, examples, tmp_path, is_repeated=examples == FAST)
            assert grown < growth, f"{grown:,} bytes more after a second time"

        test.__doc__ = check.__doc__
        return test

    return decorate


def settings(examples: int, *, is_repeated: bool, **options: Any) -> hypothesis.settings:
    """Hypothesis's, with clocks and memory left to this module."""
    return hypothesis.settings(
        max_examples=examples,
        derandomize=is_repeated,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(hypothesis.HealthCheck),
        **options,
    )


def explore(
    check: Check, strategy: Any, found: Sequence[Any], examples: int, folder: Path, *, is_repeated: bool
) -> int:
    """Tries `found`, then so many examples; then some of them again, and returns the bytes that this left behind."""
    kept: list[Any] = []

    def attempt(example: Any) -> None:
        if len(kept) < KEPT and example not in found:
            kept.append(example)
        with guarded(folder):
            check(example, folder)

    run = settings(examples, is_repeated=is_repeated)(hypothesis.given(strategy)(attempt))
    for example in found:
        run = hypothesis.example(example)(run)
    seed = None if is_repeated else new_seed()
    start = time.perf_counter()
    with unchecked_shapes():
        (run if seed is None else hypothesis.seed(seed)(run))()
        seconds = time.perf_counter() - start
        growth, peak = memory(check, kept, folder)
    if seed is not None:
        print(f"\n{examples} examples, seed {seed}: {examples / seconds:.0f}/s, peak {peak:,} bytes, growth {growth:,}")
    assert peak < MOST_AT_ONCE, f"{peak:,} bytes at once"
    return growth


@contextmanager
def unchecked_shapes() -> Iterator[None]:
    """Without the checks of annotated shapes, which took two thirds of the time; other tests have them."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


def new_seed() -> int:
    """A seed of `MUZERO_FUZZ_SEED`, or else another each time."""
    seed = int(os.environ.get("MUZERO_FUZZ_SEED", random.SystemRandom().randrange(2**32)))
    print(f"\nMUZERO_FUZZ_SEED={seed} repeats this")
    return seed


def memory(check: Check, kept: Sequence[Any], folder: Path) -> tuple[int, int]:
    """(bytes and arrays that the same examples leave behind, most bytes at once), after a first time to fill caches."""

    def again() -> tuple[int, int]:
        for example in kept:
            check(example, folder)
        gc.collect()
        return tracemalloc.get_traced_memory()[0], len(jax.live_arrays())

    tracemalloc.start()
    try:
        before, arrays_before = again()
        tracemalloc.reset_peak()
        after, arrays_after = again()
        peak = tracemalloc.get_traced_memory()[1] - before
        if after - before >= MOST_GROWTH:  # a cache that filled late, or a leak, which grows each time
            before, (after, arrays_after) = after, again()
    finally:
        tracemalloc.stop()
    assert arrays_after <= arrays_before, "arrays stay on the device"
    return after - before, peak


def refusal(call: Callable[[], Any], *names: str | Path) -> tuple[Any, str | None]:
    """(what a call returns, None), or (None, its refusal): a ValueError of one printable line that holds the names."""
    try:
        return call(), None
    except ValueError as error:
        sentence = str(error)
    assert type(sentence) is str and 3 < len(sentence) < LONGEST_SENTENCE, sentence[:LONGEST_SENTENCE]
    assert sentence.isprintable(), sentence
    missing = [str(name) for name in names if str(name) not in sentence]
    assert not missing, f"{sentence!r} does not name {missing}"
    return None, sentence


# --- what an example may not do --------------------------------------------------------------------------------------

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ON_PATHS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod"}
_NEVER = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect"}
_watching: tuple[Path, list[str]] | None = None


@contextmanager
def guarded(folder: Path, seconds: float = MOST_SECONDS) -> Iterator[None]:
    """Fails if its block takes too long, writes outside of `folder`, starts a program or calls another machine."""
    global _watching
    _hook()
    faults: list[str] = []
    _watching = folder, faults
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        _watching = None
    assert not faults, faults


def _too_long(*_: Any) -> None:
    raise AssertionError("an example took too long")


def _audit(event: str, arguments: tuple) -> None:
    if _watching is None:
        return
    folder, faults = _watching
    is_write = event == "open" and bool((arguments[2] or 0) & _WRITES)
    if event in _ON_PATHS and isinstance(arguments[-1], int) and arguments[-1] >= 0:  # a name in an open folder
        arguments = (os.path.join(os.readlink(f"/proc/self/fd/{arguments[-1]}"), arguments[0]),)
    if event in _NEVER or (is_write or event in _ON_PATHS) and _is_foreign(arguments[0], folder):
        faults.append(f"{event} {arguments[0]!r}")


def _is_foreign(path: Any, folder: Path) -> bool:
    """Whether a path lies outside, where neither Python nor JAX nor Hypothesis keeps its own."""
    if isinstance(path, int):
        return False
    path = os.path.realpath(os.fsdecode(path))
    caches = jax.config.jax_compilation_cache_dir, os.environ.get("HYPOTHESIS_STORAGE_DIRECTORY")
    allowed = str(folder), "/dev/null", *(cache for cache in caches if cache)
    return not path.startswith(allowed) and {"__pycache__", ".hypothesis"}.isdisjoint(Path(path).parts)


def _hook(installed: list[bool] = []) -> None:  # noqa: B006  # once in a process: an audit hook cannot be taken away
    if not installed:
        installed.append(True)
        sys.addaudithook(_audit)
