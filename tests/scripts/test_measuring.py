"""The measuring library by hand-made numbers: what is timed, how it is summed up, and the sentences made of it."""

import itertools
import subprocess

import pytest

from scripts.measuring import machine, markdown, timing, words
from scripts.measuring.timing import Effort, Fresh, Limits, Sample, Variant

BARE = Effort(rounds=3, least=3, enough=100.0, seconds=0.0)
RESTING = BARE._replace(rounds=5, seconds=0.05, rests=True)


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
    assert len(calls) == 1 + 8


def test_a_fresh_input_is_made_for_every_call_outside_the_clock(clock):
    made, used = itertools.count(), []

    def prepare():
        clock.now += 5.0
        return next(made)

    def run(value):
        clock.now += 0.01
        used.append(int(value))

    seconds = timing.in_turn({"fresh": Fresh(run, prepare)}, BARE)
    assert used == [0, 1, 2, 3] and seconds["fresh"] == pytest.approx([0.01] * 3)


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
    assert Sample(3.0, 2.0, 4.0).times(2.0) == Sample(6.0, 4.0, 8.0)


def test_a_ratio_is_the_median_of_the_rounds_ratios_not_the_ratio_of_medians():
    """The machine halves its speed in the second round and both suffer alike: the ratio is 2 throughout."""
    assert timing.ratio([20.0, 10.0, 60.0], [10.0, 5.0, 30.0]) == (2.0, 2.0, 2.0)


def test_sizes_expected_to_take_too_long_are_left_out(monkeypatch):
    monkeypatch.setattr(timing, "samples", lambda candidates: {n: Sample(1.0, 1.0, 1.0) for n in candidates})
    both = {"a": print, "b": print}
    limits = Limits(call_seconds=3.0, table_seconds=100.0)
    times = timing.sweep((1, 2, 9), lambda n: {k: both[k] for k in ("ab" if n > 2 else "a")}, work=float,
                         limits=limits, say=lambda text: None)  # fmt: skip
    assert (list(times["a"]), list(times["b"])) == ([1, 2], [9])  # a would take 9 / 2 seconds at 9; b is new there


def test_a_table_that_takes_too_long_stops_growing(clock):
    said = []

    def rows():
        for row in range(9):
            yield row
            clock.now += 10.0

    limits = Limits(call_seconds=100.0, table_seconds=25.0)
    assert list(timing.in_time(rows(), limits, said.append)) == [0, 1, 2]  # the fourth would begin after 30 seconds
    assert said == ["enough time spent; the rest is left out"]


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        # host(b) = b meets 4 at b = 4
        ({1: 1.0, 10: 10.0, 100: 100.0}, {1: 4.0, 10: 4.0, 100: 4.0}, "between 1 and 10, near 4"),
        # On logarithmic axes the lag falls from log 4 to -log 4: half-way between 4 and 16 is 8.
        ({4: 1.0, 16: 4.0}, {4: 4.0, 16: 1.0}, "between 4 and 16, near 8"),
        # From log 2 to -log 4: a third of the way from 1 to 64, which is 4.
        ({1: 1.0, 64: 4.0}, {1: 2.0, 64: 1.0}, "between 1 and 64, near 4"),
        # Where times cross more than once, the last.
        ({1: 2.0, 2: 1.0, 4: 1.0, 8: 4.0}, {1: 1.0, 2: 2.0, 4: 4.0, 8: 1.0}, "between 4 and 8, near 5.7"),
        ({1: 1.0, 2: 1.0}, {1: 2.0, 2: 1.0}, "never, up to 2"),  # a tie is not ahead
        ({1: 2.0, 2: 2.0}, {1: 1.0, 2: 1.0}, "ahead from the smallest, 1"),
        # Only the sizes that both tables have count.
        ({1: 1.0, 4: 9.0, 8: 9.0}, {2: 5.0, 4: 3.0, 8: 3.0}, "ahead from the smallest, 4"),
    ],
)
def test_the_crossover_of_two_tables(first, second, found):
    tables = ({size: Sample(t, t, t) for size, t in table.items()} for table in (first, second))
    assert words.crossover(*tables) == found


def test_a_difference_is_clear_only_where_the_ranges_do_not_touch():
    first = {1: Sample(1.0, 0.9, 1.1), 2: Sample(1.0, 0.9, 2.0), 4: Sample(6.0, 5.0, 7.0), 8: Sample(1.0, 1.0, 1.0)}
    second = {1: Sample(2.0, 1.9, 2.1), 2: Sample(3.0, 2.0, 4.0), 4: Sample(2.0, 1.0, 3.0)}
    assert words.comparison({"A": first, "B": second}, "A", "B", "at batch") == (
        "A against B: faster at batch 1 (2x); slower at batch 4 (3x); not clearly different at batch 2."
    )
    assert words.comparison({"A": first}, "A", "B", "at") == "A against B: not measured together."


def test_winners_are_named_by_size_and_what_holds_everywhere_in_one_word():
    times = {"A": exactly(b1=1.0, b2=1.0, b4=3.0), "B": exactly(b1=2.0, b2=2.0, b4=2.0)}
    assert words.winners(times, "at n =") == "fastest by median: A at n = 1, 2; B at n = 4."
    times = {"A": exactly(b1=1.0, b2=1.0), "B": exactly(b1=2.0, b2=4.0)}
    assert words.winners(times, "at n =") == "fastest by median: A everywhere, 2 of 2 measured."
    assert words.against_all(times, "at") == ["A against B: faster everywhere, 2 of 2 measured (2x to 4x)."]


def test_numbers_are_told_with_three_digits_and_their_spread():
    assert [words.three_digits(x) for x in (1234.5, 12.34, 0.01234)] == ["1,234", "12.3", "0.0123"]
    assert words.seconds(Sample(0.0123, 0.012, 0.013)) == "12.3 (12 to 13) ms"
    assert [words.seconds(Sample(x, x, x))[-2:] for x in (1e-5, 1e-2, 2.0)] == ["us", "ms", " s"]
    assert words.spread(None) == words.seconds(None) == "-"


def test_what_is_compared_becomes_a_chapter_of_a_document():
    times = {"A": exactly(b1=1.0), "B": exactly(b1=2.0, b4=0.5)}
    work = markdown.Compared("Work", times, "at", "batch", "GB/s", float, "time and rate", "plot")
    section = work.section(
        "Title", "Text.", work._replace(name="More", shows="rate", plot=""), headlines=["A headline."]
    )
    text = markdown.document("Report", "Method.", [section], "report", "The end.")
    of_times = "| batch (time) | A | B |\n|---|---:|---:|\n| 1 | 1 (1 to 1) s | 2 (2 to 2) s |\n"
    of_times += "| 4 | - | 500 (500 to 500) ms |"
    of_rates = "| batch (GB/s) | A | B |\n|---|---:|---:|\n| 1 | 1 (1 to 1) | 0.5 (0.5 to 0.5) |\n"
    of_rates += "| 4 | - | 8 (8 to 8) |"
    tables = "\n\n".join([of_times, of_rates, of_rates])
    assert f"# Report\n\nMethod.\n\n## 1. Title\n\nText.\n\n{tables}\n\n![Title: Work](report-plot.png)" in text
    assert "- A headline.\n- Work: A against B: faster at 1 (2x)." in text
    for headline in ("Work, fastest by median: A at 1; B at 4.", "A headline."):
        assert text.count(f"- {headline}\n") == 2  # in the chapter and in the conclusion
    assert text.endswith("The end.\n")


def test_a_documents_sentences_are_wrapped_and_its_tables_are_not():
    long = "word " * 60 + "end."
    content = markdown.Section("Title", long, [markdown.Table(("a", "b"), [(long, "1")])], headlines=[long])
    lines = markdown.document("Report", long, [content], "report", long).splitlines()
    assert f"| {long} | 1 |" in lines
    assert all(len(line) <= 120 for line in lines if not line.startswith("|"))
    assert sum(line.startswith("- word") for line in lines) == 2
    assert sum(line.startswith("  word") for line in lines) == 4


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
