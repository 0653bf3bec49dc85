"""What the host starts, counted by hand in a text as XLA writes it."""

from scripts.previewing import graphs
from scripts.previewing.graphs import Starts

TEXT = """\
000: kCommandBuffer [source       | next=003 (1)]
    001: kCopy         [source | sink] kCopy
    002: kCustomKernel [source | sink] broadcast grid: [1, 1, 1] threads: [2, 1, 1]  shared_memory: 0 bytes
003: kWhile         [prev=000 (1) | next=010 (1)]
condition:
    004: kCustomKernel [source | sink] compare grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes
  body:
    000: kCommandBuffer [source       | next=006 (1)]
        005: kCustomKernel [source | sink] add grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes
    006: kConvolution   [prev=000 (1) | next=007 (1)]
    007: kWhile         [prev=006 (1) | sink]
condition:
        008: kCustomKernel [source | sink] any grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes
      body:
        009: kCustomKernel [source | sink] down grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes
010: kConditional   [prev=003 (1) | sink]
  false_branch:
    011: kCopy          [source | sink]
  true_branch:
    012: kCustomKernel  [source | sink] learn grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes
    013: kCustomKernel  [source | sink] learn_1 grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes
"""


def test_the_host_starts_what_is_in_no_graph_and_waits_after_each_turn_of_unknown_number():
    """A graph of 2; four turns of a graph, a convolution and five turns of 2, asked after each; the larger branch."""
    root = graphs.parse(TEXT)
    inner = Starts(starts=5 * 2, graphs=0, waits=5, kernels=5 * 2)
    turn = Starts(starts=2 + inner.starts, graphs=1, waits=inner.waits, kernels=2 + inner.kernels)
    expected = Starts(1 + 4 * turn.starts + 2, 1 + 4 * turn.graphs, 4 * turn.waits + 1, 2 + 4 * turn.kernels + 2)
    assert graphs.count(root, {3: 4, 7: None}, unknown_turns=5) == expected == Starts(51, 5, 21, 52)
    assert [thunk.number for thunk in graphs.left_outside(root)] == [3, 7, 10]


def test_one_graph_is_one_start_however_many_turns_its_loops_have():
    inside = "\n".join(f"    {line}" if line != "condition:" else line for line in TEXT.splitlines())
    root = graphs.parse(f"000: kCommandBuffer [source | sink]\n{inside}")
    found = graphs.count(root, {3: 4, 7: None}, unknown_turns=5)
    assert found == Starts(starts=1, graphs=1, waits=0, kernels=52) and graphs.left_outside(root) == []
