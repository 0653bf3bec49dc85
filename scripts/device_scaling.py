"""How much faster two host devices are than one: the whole training iteration, measured in turn in one process.

python scripts/device_scaling.py            # Hex 9x9, convolution tower
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from muzero_jax import devices

DEVICES = (1, 2)
REPEATS = 5


def main() -> None:
    """Prints one JSON object: frames/s by number of devices (median and all), and their ratio."""
    devices.configure_devices(max(DEVICES))
    from experiments import presets
    from muzero_jax import training

    config = presets.preset("hex", 9)
    config = replace(
        config,
        self_play=replace(config.self_play, rollout_length=4),
        optimiser=replace(config.optimiser, updates_per_iteration=4),
        replay=replace(config.replay, min_frames=4, replay_length=64),
        iterations_per_chunk=1,
    )
    config = replace(config, targets=replace(config.targets, td_steps=8))
    parts = training.make_parts(config)
    frames = config.self_play.num_envs * config.self_play.rollout_length
    programs, states = {}, {}
    for count in DEVICES:
        mesh = devices.make_mesh(count)
        states[count] = training.make_init(config, parts, mesh)()
        programs[count] = training.make_chunk(config, parts, mesh).lower(states[count]).compile()
    rates: dict[int, list[float]] = {count: [] for count in DEVICES}
    for _ in range(REPEATS + 4):  # the first four fill the ring up to one window: self-play alone
        for count in DEVICES:
            start = time.perf_counter()
            states[count], metrics = programs[count](states[count])
            float(metrics["selfplay/frames"].sum())
            rates[count].append(frames / (time.perf_counter() - start))
    timed = {count: values[-REPEATS:] for count, values in rates.items()}
    medians = {count: median(values) for count, values in timed.items()}
    print(
        json.dumps(
            {
                "program": "training iteration, Hex 9x9, tower 64x2, 16 simulations",
                "frames_per_second": medians,
                "ratio": medians[2] / medians[1],
                "all": timed,
            }
        )
    )


if __name__ == "__main__":
    main()
