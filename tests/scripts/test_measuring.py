"""The measuring library by hand-made numbers: what is timed, how it is summed up, and how it is told."""

import itertools
import subprocess

import pytest

from scripts.measuring import machine, report, timing
from scripts.measuring.timing import Effort, Fresh, Sample, Variant

BARE = Effort(rounds=3, least=3, enough=100.0, seconds=0.0)
RESTING = BARE._replace(rounds=5, seconds=0.05)


class FakeTime:
    """A clock that calls and pauses move on; threads spin until `rest_at`, and use up the process's time till then."""

    def __init__(self):
        self.now, self.rest_at, self.asleep = 0.0, 0.0, 0

    def perf_counter(self):
        return self.now

    def process_time(self):
        return min(self.now, self.rest_at)

    def sleep(self, seconds):
        self.now += seconds
        self.asleep = 4  # calls that take twice as long


@pytest.fixture
def clock(monkeypatch):
    fake = FakeTime()
    monkeypatch.setattr(timing, "time", fake)
    return fake


def exactly(**seconds):
    """Samples without spread, by size: `exactly(b1=0.5)` is {1: 0.5 s}."""
    return {int(name[1:]): Sample(value, value, value) for name, value in seconds.items()}


# --- timing -----------------------------------------------------------------------------------------------------------


def test_candidates_run_in_turn_and_the_first_call_is_not_counted(clock):
    calls = []

    def call(name):
        clock.now += 9.0 if name not in calls else {"a": 1.0, "b": 2.0}[name]
        calls.append(name)

    seconds = timing.in_turn({name: lambda name=name: call(name) for name in "ab"}, BARE)
    assert "".join(calls) == "ab" + "ab" * 3
    assert seconds == {"a": [1.0] * 3, "b": [2.0] * 3}
    rates = timing.rates({"a": Variant(lambda: call("a"), 4.0)}, BARE)
    assert rates == {"a": [4.0] * 3}


@pytest.mark.parametrize(("enough", "rounds"), [(25.0, 3), (35.0, 4), (1000.0, 9)])
def test_slow_programs_get_fewer_rounds(clock, enough, rounds):
    def call():
        clock.now += 10.0

    seconds = timing.in_turn({"slow": call}, BARE._replace(rounds=9, least=3, enough=enough))
    assert len(seconds["slow"]) == rounds


def test_a_short_program_is_called_as_often_as_a_sample_lasts(clock):
    calls = []

    def call():
        clock.now += 0.25
        calls.append(1)

    timing.in_turn({"short": call}, BARE._replace(rounds=1, seconds=2.0))
    assert len(calls) == 1 + 8 + 8, "once to compile, and as long to warm up"


def test_a_fresh_input_is_made_for_every_call_outside_the_clock(clock):
    made, used = itertools.count(), []

    def prepare():
        clock.now += 5.0
        return next(made)

    def run(value):
        clock.now += 0.01
        used.append(int(value))

    seconds = timing.in_turn({"fresh": Fresh(run, prepare)}, BARE)
    assert used == list(range(1 + 3 * 2)) and seconds["fresh"] == pytest.approx([0.01] * 3)


def test_resting_threads_are_woken_by_calls_that_do_not_count(clock):
    def call():
        clock.now += 0.012 if clock.asleep else 0.006
        clock.asleep = max(0, clock.asleep - 1)

    assert timing.in_turn({"a": call}, RESTING)["a"] == pytest.approx([0.006] * 5)


def test_a_candidate_waits_until_the_threads_of_the_one_before_rest(clock):
    def spins():
        clock.now += 0.01
        clock.rest_at = clock.now + 0.105

    def suffers():
        clock.now += 0.2 if clock.now < clock.rest_at else 0.1

    seconds = timing.in_turn({"spins": spins, "suffers": suffers}, RESTING)
    assert seconds["suffers"] == pytest.approx([0.1] * 5) and seconds["spins"] == pytest.approx([0.01] * 5)
    clock.rest_at, start = float("inf"), clock.now  # threads that never rest are not waited for long
    timing.in_turn({"long": lambda: clock.sleep(1.0)}, RESTING)
    assert clock.now - start == pytest.approx(1.0 + 5 * (timing.MAX_PAUSES * timing.PAUSE_SECONDS + 1.0))


def test_a_sample_is_the_median_and_the_middle_half():
    sample = timing.summarise([8.0, 9.0, 10.0, 11.0, 12.0])
    assert sample == (10.0, 9.0, 11.0) and sample.spread == pytest.approx(0.1)
    assert timing.summarise([3.0]) == (3.0, 3.0, 3.0)
    assert Sample(3.0, 2.0, 4.0).rate(12.0) == Sample(4.0, 3.0, 6.0)  # the longest time gives the lowest rate


def test_a_ratio_is_the_median_of_the_rounds_ratios_not_the_ratio_of_medians():
    """The machine halves its speed in the second round and both suffer alike: the ratio is 2 throughout."""
    assert timing.ratio([20.0, 10.0, 60.0], [10.0, 5.0, 30.0]) == (2.0, 2.0, 2.0)


def test_a_slow_candidate_is_not_tried_at_larger_sizes(monkeypatch):
    took = {"fast": 0.1, "slow": 0.3}
    monkeypatch.setattr(timing, "samples", lambda found: {n: Sample(took[n], took[n], took[n]) for n in found})
    times = timing.sweep((1, 2, 9), lambda size: dict.fromkeys(took if size > 1 else ["fast"], print))
    assert {name: list(row) for name, row in times.items()} == {"fast": [1, 2, 9], "slow": [2]}


# --- telling ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        # host(b) = b meets 4 at b = 4
        ({1: 1.0, 10: 10.0, 100: 100.0}, {1: 4.0, 10: 4.0, 100: 4.0}, "between 1 and 10, near 4"),
        # From log 2 to -log 4: a third of the way from 1 to 64, which is 4.
        ({1: 1.0, 64: 4.0}, {1: 2.0, 64: 1.0}, "between 1 and 64, near 4"),
        # Where times cross more than once, the last.
        ({1: 2.0, 2: 1.0, 4: 1.0, 8: 4.0}, {1: 1.0, 2: 2.0, 4: 4.0, 8: 1.0}, "between 4 and 8, near 5.7"),
        ({1: 1.0, 2: 1.0}, {1: 2.0, 2: 1.0}, "never, up to 2"),  # a tie is not ahead
        # Only the sizes that both tables have count.
        ({1: 1.0, 4: 9.0, 8: 9.0}, {2: 5.0, 4: 3.0, 8: 3.0}, "ahead from the smallest, 4"),
    ],
)
def test_the_crossover_of_two_tables(first, second, found):
    tables = ({size: Sample(t, t, t) for size, t in table.items()} for table in (first, second))
    assert report.crossover(*tables) == found


def test_numbers_are_told_with_three_digits_and_their_spread():
    assert [report.three_digits(x) for x in (1234.5, 12.34, 0.01234)] == ["1,234", "12.3", "0.0123"]
    assert report.seconds(Sample(0.0123, 0.012, 0.013)) == "12.3 (12 to 13) ms"
    assert [report.seconds(Sample(x, x, x))[-2:] for x in (1e-5, 1e-2, 2.0)] == ["us", "ms", " s"]


def test_a_table_has_times_and_how_many_times_faster_the_first_is():
    assert report.times_table("batch", {"A": exactly(b1=1.0), "B": exactly(b1=2.0, b4=0.5)}) == (
        "| batch | A | B | A over B |\n|---|---:|---:|---:|\n"
        "| 1 | 1 (1 to 1) s | 2 (2 to 2) s | 2.00x |\n| 4 | - | 500 (500 to 500) ms | - |"
    )


def test_a_report_has_numbered_chapters_plots_and_sentences_that_are_wrapped(tmp_path):
    long = "word " * 60 + "end."
    plot = report.Plot("curve", "Title", "n", "GB/s", {"A": exactly(b1=1.0, b10=2.0)})
    section = report.Section("First", long, [report.table(("a", "b"), [(long, "1")])], [plot])
    report.write(tmp_path / "r.md", long, [section, section._replace(title="Second", plots=())], "The end.")
    text = (tmp_path / "r.md").read_text()
    assert "## 1. First\n" in text and "## 2. Second\n" in text and text.endswith("\n\nThe end.\n")
    assert "![Title](r-curve.png)" in text and (tmp_path / "r-curve.png").stat().st_size > 1000
    assert f"| {long} | 1 |" in text
    assert all(len(line) <= 120 for line in text.splitlines() if not line.startswith("|"))


# --- the machine ------------------------------------------------------------------------------------------------------


def test_the_commit_is_that_of_the_clone_and_none_outside_of_one(monkeypatch, tmp_path):
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=machine.ROOT)
    assert head.returncode or head.stdout.startswith(str(machine.commit()).removesuffix("-dirty"))
    root = machine.ROOT
    for elsewhere in (tmp_path, root / "scripts"):  # the second stands for a copy of ours in somebody's repository
        monkeypatch.setattr(machine, "ROOT", elsewhere)
        assert machine.commit() is None


def test_the_command_is_told_without_the_folders_of_its_owner():
    told = ["--out", "/home/me/new/", "--compare=/me/a.json", "../me/b", "~/c", "docs/d.json", "--quick"]
    command = "python scripts/benchmark.py --out new --compare=a.json b c docs/d.json --quick"
    assert machine.describe(["/home/me/scripts/benchmark.py", *told])["command"] == command
