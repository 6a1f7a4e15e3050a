"""An installed TRL without models with a value head does not end verl's training."""

import subprocess
import sys
import types
from importlib.util import find_spec
from pathlib import Path

import pytest

from verl_sql.integration.newer_trl import WANTED, has_value_heads

PATCH_A_MODEL = """
import verl  # loads the plugin
from transformers import Qwen2Config, Qwen2ForCausalLM
from verl.models.transformers.monkey_patch import apply_monkey_patch, is_trl_available
from verl.utils import model as utils

shape = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
tiny = Qwen2ForCausalLM(Qwen2Config(vocab_size=32, hidden_size=16, intermediate_size=16, **shape))
apply_monkey_patch(tiny)
print("patched, TRL", is_trl_available(), utils.is_trl_available())
"""


@pytest.mark.parametrize(("where", "found"), [("trl", True), ("trl.experimental.ppo", True), (None, False)])
def test_only_a_trl_that_has_the_class_counts(where: str | None, found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("trl", "trl.experimental", "trl.experimental.ppo"):
        module = types.ModuleType(name)
        module.__path__ = []
        if name == where:
            setattr(module, WANTED, object)
        monkeypatch.setitem(sys.modules, name, module)
    assert has_value_heads() is found


def test_no_trl_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trl", None)
    assert not has_value_heads()


@pytest.mark.skipif(find_spec("verl") is None, reason="verl is not installed")
def test_verl_patches_its_models_beside_a_newer_trl(tmp_path: Path) -> None:
    (tmp_path / "trl").mkdir()
    (tmp_path / "trl" / "__init__.py").write_text("class DPOTrainer: ...\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{PATCH_A_MODEL}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert "patched, TRL False False" in done.stdout, done.stderr[-2000:]
