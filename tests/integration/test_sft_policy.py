"""Adapters merged into a policy: against peft itself, and by hand."""

import json
from pathlib import Path

import pytest

from verl_sql.integration.sft_policy import keep_policy, merged

torch = pytest.importorskip("torch")


def test_by_hand() -> None:
    state = {
        "base_model.model.a.base_layer.weight": torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
        "base_model.model.a.base_layer.bias": torch.tensor([5.0]),
        "base_model.model.a.lora_A.default.weight": torch.tensor([[1.0, 0.0]]),
        "base_model.model.a.lora_B.default.weight": torch.tensor([[1.0], [2.0]]),
        "base_model.model.norm.weight": torch.tensor([7.0]),
    }
    found = merged(state, 0.5)
    assert set(found) == {"a.weight", "a.bias", "norm.weight"}
    assert found["a.weight"].tolist() == [[1.5, 2.0], [4.0, 4.0]]
    assert (found["a.bias"].tolist(), found["norm.weight"].tolist()) == ([5.0], [7.0])


def test_as_peft_merges(tmp_path: Path) -> None:
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    from safetensors.torch import save_file

    config = transformers.Qwen2Config(
        vocab_size=50, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=1,
        num_key_value_heads=1, tie_word_embeddings=True,
    )  # fmt: skip
    plain = transformers.Qwen2ForCausalLM(config)
    model = peft.get_peft_model(plain, peft.LoraConfig(r=4, lora_alpha=8, target_modules="all-linear"))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter)
    folder = tmp_path / "step/huggingface"
    folder.mkdir(parents=True)
    config.architectures = ["Qwen2ForCausalLM"]
    config.dtype = "bfloat16"  # as verl leaves it
    config.save_pretrained(folder)
    state = {name: tensor.contiguous() for name, tensor in model.state_dict().items() if "lm_head" not in name}
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    (tmp_path / "step/lora_train_meta.json").write_text(json.dumps({"r": 4, "lora_alpha": 8}))
    keep_policy(tmp_path / "step", tmp_path / "policy")
    asked = torch.tensor([[1, 2, 3]])
    wanted = model.merge_and_unload()(asked).logits
    policy = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "policy")
    found = policy(asked).logits
    assert policy.dtype == torch.float32
    assert torch.allclose(found, wanted, atol=1e-5)


def test_without_adapters_the_files_are_shared(tmp_path: Path) -> None:
    folder = tmp_path / "step/huggingface"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    keep_policy(tmp_path / "step", tmp_path / "policy")
    assert (tmp_path / "policy/config.json").samefile(folder / "config.json")
    with pytest.raises(FileNotFoundError, match="holds no policy"):
        keep_policy(tmp_path, tmp_path / "other")
