"""The files load in verl's own dataset classes and in `datasets`, as the documentation promises."""

from pathlib import Path

import pytest

from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, SFT_SCHEMA, rl_row, sft_row, write_rows

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
rl_dataset = pytest.importorskip("verl.utils.dataset.rl_dataset")
sft_dataset = pytest.importorskip("verl.utils.dataset.multiturn_sft_dataset")

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
PROMPT = [{"role": "system", "content": "be exact"}, {"role": "user", "content": "how many ?"}]


@pytest.fixture(scope="module")
def tokenizer() -> object:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = {chr(code): code for code in range(32, 127)} | {"Ċ": 10, "Ġ": 11}
    made = Tokenizer(models.BPE(vocab={**letters, "<unk>": 0}, merges=[], unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<unk>", eos_token="<unk>")
    fast.chat_template = TEMPLATE
    return fast


def example(number: int) -> Example:
    return Example("bird", "train", str(number), "d", "how many?", "", "SELECT 1", details={"n": number})


def test_rlhf_dataset(tmp_path: Path, tokenizer: object) -> None:
    from omegaconf import OmegaConf

    write_rows(tmp_path / "a.parquet", (rl_row(example(i), PROMPT, i) for i in range(5)), RL_SCHEMA)
    config = OmegaConf.create(
        {"cache_dir": str(tmp_path), "max_prompt_length": 100, "filter_overlong_prompts_workers": 1}
    )
    loaded = rl_dataset.RLHFDataset(str(tmp_path / "a.parquet"), tokenizer, config)
    assert len(loaded) == 5
    row = loaded[3]
    assert row["raw_prompt"] == PROMPT
    assert (row["index"], row["extra_info"]["db_id"]) == (3, "d")
    assert row["reward_model"]["ground_truth"] == "SELECT 1"


def test_sft_dataset(tmp_path: Path, tokenizer: object) -> None:
    from omegaconf import OmegaConf

    messages = [*PROMPT, {"role": "assistant", "content": "SELECT 1"}]
    write_rows(tmp_path / "a.parquet", (sft_row(example(i), messages, i) for i in range(5)), SFT_SCHEMA)
    config = OmegaConf.create({"pad_mode": "no_padding", "max_length": 200, "ignore_input_ids_mismatch": True})
    loaded = sft_dataset.MultiTurnSFTDataset(str(tmp_path / "a.parquet"), tokenizer, config)
    row = loaded[2]
    trained = "".join(tokenizer.decode([i]) for i, m in zip(row["input_ids"], row["loss_mask"], strict=True) if m)
    assert "SELECT 1" in trained
    assert "how many" not in trained


def test_datasets_library(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    write_rows(tmp_path / "a.parquet", (rl_row(example(i), PROMPT, i) for i in range(5)), RL_SCHEMA)
    loaded = datasets.load_dataset("parquet", data_files=str(tmp_path / "a.parquet"), cache_dir=str(tmp_path))["train"]
    assert loaded[4]["extra_info"]["question_id"] == "4"
