"""A value model on a CPU: loaded by our function in verl's place, one value a token."""

from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import AutoConfig  # noqa: E402

from verl_sql.integration import cpu_critic  # noqa: E402
from verl_sql.integration.tiny_policy import TinyPolicyShape, build_tiny_policy  # noqa: E402


def test_one_value_a_token(tmp_path: Path) -> None:
    build_tiny_policy(
        ["SELECT name FROM team"] * 50, tmp_path, TinyPolicyShape(vocab_size=300, hidden_size=64, layers=1)
    )
    config = AutoConfig.from_pretrained(tmp_path, attn_implementation="flash_attention_2")
    config.num_labels = 1
    module = ModuleType("model")
    cpu_critic.install(module)
    critic = module.load_valuehead_model(
        local_path=str(tmp_path), torch_dtype=torch.float32, model_config=config, trust_remote_code=False
    )
    assert critic.config._attn_implementation == "sdpa"
    values = critic(input_ids=torch.tensor([[1, 2, 3, 4]])).logits
    assert values.shape == (1, 4, 1)
    assert torch.isfinite(values).all()
