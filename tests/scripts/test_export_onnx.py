"""An exported network says what ours says, wherever jax2onnx is installed (docs/play.md)."""

import jax
import numpy as np
import pytest

from muzero_jax.apps.commands.command_line import EXIT_ERROR, report_errors
from scripts import export_onnx

CLOSE = 2e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hex_5x5", "connect_four"])
def test_the_files_say_what_the_search_sees(name, tmp_path):
    pytest.importorskip("jax2onnx", reason="it needs an environment of its own")
    onnxruntime = pytest.importorskip("onnxruntime")
    assert export_onnx.main([f"agent:{name}", "--out", str(tmp_path)]) == 0
    agent = export_onnx.load(f"agent:{name}")
    environment = agent.environment
    state, embedding = environment.init(jax.random.key(0)), None
    for action in range(4):
        asked = {"observation": np.asarray(state.observation, np.float32)[None]}
        for file, (function, inputs, outputs) in export_onnx.networks(agent).items():
            if file == "recurrent":
                asked = {"parent": embedding, "action": np.array([action], np.int32)}
            session = onnxruntime.InferenceSession(tmp_path / f"{file}.onnx")
            found, ours = session.run(list(outputs), asked), function(*(asked[name] for name in inputs))
            for array, wanted in zip(found, ours, strict=True):
                np.testing.assert_allclose(array, wanted, atol=CLOSE)
            embedding = np.asarray(ours[outputs.index("embedding")])
        state = environment.move(state, jax.numpy.int32(action)).state


@pytest.mark.parametrize("name", ["hex_5x5_rules"])
def test_an_agent_without_a_learned_model_is_refused(name, capsys, tmp_path):
    assert report_errors(export_onnx.main, [f"agent:{name}", "--out", str(tmp_path / "out")]) == EXIT_ERROR
    assert "choose a learned model" in capsys.readouterr().err and not (tmp_path / "out").exists()
