"""DPO: what is read, what is left out, and (where TRL is) one training from which both policies are checked."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, extra_info, write_rows
from verl_sql.dataset.sft.preference import PREFERENCE_SCHEMA
from verl_sql.integration.dpo import DpoError, DpoSettings, dpo_settings_from, fitting, read_pairs, require_trl
from verl_sql.integration.dpo_steps import StepLog

CONF = Path(__file__).parents[2] / "recipes" / "conf"
RIGHT, WRONG = "WITH a AS (SELECT x FROM t) SELECT x FROM a", "SELECT y FROM t"


def write_pairs(path: Path, answers: Sequence[tuple[str, str]]) -> Path:
    """A preference parquet, a question each pair."""
    rows = [
        {
            "prompt": [{"role": "user", "content": f"Question {i % 4}?"}],
            "chosen": [{"role": "assistant", "content": chosen}],
            "rejected": [{"role": "assistant", "content": rejected}],
            "chosen_score": 1.0,
            "rejected_score": 0.0,
            "extra_info": extra_info(Example("own", "train", str(i), "t", "?", "", "SELECT 1"), i),
        }
        for i, (chosen, rejected) in enumerate(answers)
    ]
    write_rows(path, rows, PREFERENCE_SCHEMA)
    return path


def test_pairs_are_read_as_messages(tmp_path: Path) -> None:
    file = write_pairs(tmp_path / "p.parquet", [(RIGHT, WRONG)] * 3)
    pairs = read_pairs(file, limit=2)
    assert len(pairs) == 2
    assert pairs[0] == {
        "prompt": [{"role": "user", "content": "Question 0?"}],
        "chosen": [{"role": "assistant", "content": RIGHT}],
        "rejected": [{"role": "assistant", "content": WRONG}],
    }


def test_wrong_pairs_are_told(tmp_path: Path) -> None:
    with pytest.raises(DpoError, match="there are no pairs"):
        read_pairs(tmp_path / "none.parquet")
    write_rows(tmp_path / "other.parquet", [], RL_SCHEMA)
    with pytest.raises(DpoError, match="holds no preference pairs: chosen"):
        read_pairs(tmp_path / "other.parquet")
    with pytest.raises(DpoError, match=r"holds no pair$"):
        read_pairs(write_pairs(tmp_path / "empty.parquet", []))


class Words:
    """A tokenizer with a token a word."""

    def apply_chat_template(self, messages: Sequence[dict[str, str]], tokenize: bool) -> str:
        return " ".join(message["content"] for message in messages)

    def __call__(self, text: str, add_special_tokens: bool) -> dict[str, list[str]]:
        return {"input_ids": text.split()}


def test_pairs_that_trl_would_cut_are_left_out(tmp_path: Path) -> None:
    answers = [("a b", "c"), ("a", "b c d e"), ("a b c d", "e")]
    pairs = read_pairs(write_pairs(tmp_path / "p.parquet", answers))
    assert [pair["rejected"][0]["content"] for pair in fitting(pairs, Words(), 5)] == ["c"]
    assert fitting(pairs, Words(), None) == pairs
    assert fitting(pairs, Words(), 6) == pairs
    with pytest.raises(DpoError, match=r"training\.max_length=2"):
        fitting(pairs, Words(), 2)


def test_without_trl_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DpoError, match=r"DPO needs TRL: run `uv pip install trl=="):
        require_trl()


def test_numbers_of_the_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    from transformers import TrainerControl, TrainerState, TrainingArguments

    log, arguments = StepLog(tmp_path / "m.jsonl"), TrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    for step in (1, 2, 10):
        state = TrainerState(global_step=step, max_steps=10, is_world_process_zero=True)
        log.on_log(arguments, state, TrainerControl(), {"loss": 0.5 / step, "rewards/margins": 1.0, "note": "text"})
    log.on_log(arguments, state, TrainerControl(), {"train_runtime": 3.0})
    lines = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 10]
    assert lines[0]["data"] == {"train/loss": 0.5, "train/rewards/margins": 1.0}
    assert capsys.readouterr().out == "step 10 of 10: loss 0.050, margin 1.000\n"
    assert (log.summary()["first_loss"], log.summary()["last_loss"]) == (0.5, round((0.5 + 0.25 + 0.05) / 3, 4))


def small_settings(policy: Path, pairs: Path, out: Path, *overrides: str) -> DpoSettings:
    """The CPU settings of the recipe."""
    given = [f"model={policy}", f"pairs={pairs}", f"out={out}", f"metrics={out}.jsonl", *overrides]
    with initialize_config_dir(str(CONF), version_base=None):
        values: Any = OmegaConf.to_container(compose("dpo/reward_sql_cpu", given), resolve=True)
    return dpo_settings_from(values)


@pytest.mark.skipif(find_spec("trl") is None, reason="TRL, the extra `dpo`, is not installed")
def test_training_prefers_the_chosen_answers(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    from verl_sql.integration.dpo import train_dpo
    from verl_sql.integration.tiny_policy import TinyPolicyShape, build_tiny_policy

    texts = [f"Question {i}?\n{RIGHT}\n{WRONG}" for i in range(4)]
    build_tiny_policy(texts, tmp_path / "policy", TinyPolicyShape(vocab_size=300, hidden_size=32, layers=1))
    pairs = write_pairs(tmp_path / "p.parquet", [(RIGHT, WRONG)] * 32)
    settings = small_settings(tmp_path / "policy", pairs, tmp_path / "out", "training.learning_rate=1e-2")
    report = train_dpo(settings)
    lines = [json.loads(line)["data"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert (report["pairs"], report["steps"], len(lines)) == (32, 2, 2)
    assert report["first_loss"] == pytest.approx(0.6931, abs=1e-4)  # −log σ(0): policy and reference are the same
    before = AutoModelForCausalLM.from_pretrained(tmp_path / "policy")
    after = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert (after.config.dtype, after.config.use_cache) == (before.dtype, True)
    assert preference(after, tmp_path / "out") > preference(before, tmp_path / "policy")


def preference(policy: Any, folder: Path) -> float:
    """log π(right) − log π(wrong) for the first question."""
    import torch
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)

    def logprob(answer: str) -> float:
        messages = [{"role": "user", "content": "Question 0?"}]
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        start = len(tokenizer(prompt)["input_ids"])
        ids = torch.tensor([tokenizer(prompt + answer)["input_ids"]])
        with torch.no_grad():
            logprobs = policy(ids).logits[0].log_softmax(-1)
        return float(sum(logprobs[i - 1, ids[0, i]] for i in range(start, ids.shape[1])))

    return logprob(RIGHT) - logprob(WRONG)
