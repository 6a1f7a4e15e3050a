"""Training in small: which tags count, what is learnt, what is written."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
import torch
import transformers

from verl_sql.prm.encoding import tag_id
from verl_sql.prm.label_files import Record
from verl_sql.prm.rendering import STEP_TAG
from verl_sql.prm.scoring import TransformersScorer
from verl_sql.prm.train import lines, settings_from
from verl_sql.prm.training import (
    MASKED,
    PrmTraining,
    TrainingError,
    collate,
    encode_records,
    split_by_question,
    tag_loss,
    targets,
    train,
)

FAST = {
    "learning_rate": 5e-3,
    "max_steps": 40,
    "per_device_train_batch_size": 8,
    "per_device_eval_batch_size": 8,
    "use_cpu": True,
    "train_sampling_strategy": "group_by_length",
    "logging_steps": 10,
    "seed": 0,
}


def record(number: int, labels: tuple[int | None, ...], outcome: int = 0) -> Record:
    """A chain whose right steps say age and whose wrong ones say name."""
    words = {1: "age", 0: "name", None: "id"}
    text = "question\n" + "".join(f"s AS (SELECT {words[label]})\n1 row: a\n1{STEP_TAG}\n" for label in labels)
    steps = [
        {"end": 0, "label": label, "value": None if label is None else label * 0.75, "n": 8, "result": ""}
        for label in labels
    ]
    final = f"SELECT {'age' if outcome else 'name'}{STEP_TAG}\n"
    return {"question": f"q{number}", "text": text, "outcome_text": text + final, "steps": steps, "outcome": outcome}


RECORDS = [record(n, [(1, 1), (0, None), (1, 0), (1,)][n % 4], n % 2) for n in range(80)]


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps(own) + "\n" for own in RECORDS))
    return file


def settings(**options: Any) -> PrmTraining:
    return PrmTraining(**{"policy": "", "labels": Path(), "out": Path(), **options})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [(1.0, 1), (0.0, 0), (None, 0)]),
        ({"soft": True}, [(0.75, 1), (0.0, 0), (None, 0)]),
        ({"score_final": True}, [(1.0, 1), (0.0, 0), (None, 0), (1.0, 1)]),
        ({"outcome": True}, [(None, 0), (None, 0), (None, 0), (1.0, 1)]),
    ],
)
def test_what_each_tag_is_to_learn(options: dict[str, bool], expected: list[tuple[float | None, int]]) -> None:
    assert targets(record(0, (1, 0, None), outcome=1), settings(**options)) == expected


def test_a_query_without_cte_has_one_tag_either_way() -> None:
    plain = {**record(0, (0,)), "outcome_text": f"SELECT 1\n1{STEP_TAG}\n"}
    assert targets(plain, settings(outcome=True)) == targets(plain, settings()) == [(0.0, 0)]
    assert targets(plain, settings(score_final=True)) == [(0.0, 0)]


def test_targets_stand_at_the_tags_and_only_there(prm: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(prm)
    chains = encode_records(tokenizer, [record(0, (1, 0, None)), record(1, (1,) * 9)], settings(max_length=120))
    (row,) = chains.rows
    tags = [at for at, token in enumerate(row["input_ids"]) if token == tag_id(tokenizer)]
    assert {at: value for at, value in enumerate(row["targets"]) if value != MASKED} == {tags[0]: 1.0, tags[1]: 0.0}
    assert chains.tags == [[(1, tags[0], 1), (2, tags[1], 0)]]
    assert chains.too_long == 1


def test_the_loss_by_hand() -> None:
    logits = torch.tensor([[[0.0, 0.0], [1.0, 3.0], [9.0, 9.0]], [[2.0, 1.0], [5.0, 5.0], [5.0, 5.0]]])
    wanted = torch.tensor([[MASKED, 1.0, MASKED], [0.25, MASKED, MASKED]])
    first = math.log(1 + math.exp(-2.0))
    second = 0.25 * math.log(1 + math.exp(1.0)) + 0.75 * math.log(1 + math.exp(-1.0))
    assert tag_loss(logits, wanted).item() == pytest.approx((first + second) / 2, rel=1e-6)
    assert tag_loss(logits, torch.full((2, 3), MASKED)).item() == 0.0


def test_padding_is_neither_read_nor_learnt() -> None:
    batch = collate([{"input_ids": [5, 6, 7], "targets": [MASKED, 1.0, 0.0]}, {"input_ids": [8], "targets": [1.0]}])
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch["targets"].tolist() == [[MASKED, 1.0, 0.0], [1.0, MASKED, MASKED]]


def test_no_question_is_on_both_sides() -> None:
    several = [record(n % 10, (1,)) for n in range(40)]
    learnt, held = split_by_question(several, 0.3, seed=1)
    questions = [{own["question"] for own in side} for side in (learnt, held)]
    assert (len(questions[0]), len(questions[1])) == (7, 3)
    assert not questions[0] & questions[1]
    assert split_by_question(several, 0.3, seed=1) == (learnt, held)


def test_a_model_that_learns_is_written_and_loaded(policy: Path, labels: Path, tmp_path: Path) -> None:
    out = tmp_path / "prm"
    asked = settings(
        policy=str(policy), labels=labels, out=out, held_out=0.2, metrics=tmp_path / "m.jsonl", training=FAST
    )
    told = train(asked)
    assert told["held_out"]["auc"] > 0.95 > told["held_out"]["position_only_auc"]
    assert told["held_out"]["by_position"]["1"]["steps"] == 16
    assert told["training"]["chains"] == 64
    good, bad = TransformersScorer(out, device="cpu").score([RECORDS[0]["text"], RECORDS[1]["text"]])
    assert min(good) > 0.8 > 0.2 > bad[0]
    assert json.loads((out / "prm_report.json").read_text())["held_out"] == told["held_out"]
    assert [json.loads(line)["step"] for line in (tmp_path / "m.jsonl").read_text().splitlines()] == [10, 20, 30, 40]
    assert lines(told)[0].startswith("all steps: ")


def test_an_outcome_model_learns_from_the_last_tag(policy: Path, labels: Path, tmp_path: Path) -> None:
    out = tmp_path / "orm"
    told = train(settings(policy=str(policy), labels=labels, out=out, outcome=True, held_out=0.2, training=FAST))
    assert told["held_out"]["steps"] == 16
    assert not json.loads((out / "config.json").read_text())["tie_word_embeddings"]
    assert told["held_out"]["auc"] > 0.95
    scorer = TransformersScorer(out, device="cpu")
    assert scorer.score_final
    wrong, right = scorer.score([RECORDS[0]["outcome_text"], RECORDS[1]["outcome_text"]])
    assert right[-1] > 0.8 > 0.2 > wrong[-1]


def test_a_process_model_may_score_the_final_query(policy: Path, labels: Path, tmp_path: Path) -> None:
    out = tmp_path / "prm"
    told = train(settings(policy=str(policy), labels=labels, out=out, score_final=True, held_out=0.2, training=FAST))
    assert told["held_out"]["final_query"]["steps"] == told["held_out"]["by_position"]["1"]["steps"] == 16
    assert min(told["held_out"]["auc"], told["held_out"]["final_query"]["auc"]) > 0.9
    scorer = TransformersScorer(out, device="cpu")
    assert scorer.score_final
    assert [len(own) for own in scorer.score([RECORDS[0]["outcome_text"], RECORDS[0]["text"]])] == [3, 2]


def test_what_cannot_be_trained_says_why(policy: Path, labels: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="no step labels"):
        train(settings(policy=str(policy), labels=tmp_path / "x.jsonl", out=tmp_path / "o"))
    with pytest.raises(TrainingError, match="no model folder"):
        train(settings(policy=str(tmp_path / "x"), labels=labels, out=tmp_path / "o"))
    alike = tmp_path / "alike.jsonl"
    alike.write_text(json.dumps(record(0, (1,))) + "\n")
    with pytest.raises(TrainingError, match="all alike"):
        train(settings(policy=str(policy), labels=alike, out=tmp_path / "o"))


@pytest.mark.parametrize("name", ["reward_sql", "reward_sql_cpu"])
def test_the_recipes_settings_are_settings(name: str, tmp_path: Path) -> None:
    from hydra import compose, initialize_config_module
    from omegaconf import OmegaConf

    with initialize_config_module("verl_sql.recipes.conf", version_base="1.3"):
        config = compose(f"reward_model/{name}", ["policy=p", "labels=l.jsonl", f"out={tmp_path}", "outcome=true"])
    values = {k: v for k, v in OmegaConf.to_container(config, resolve=True).items() if k != "hydra"}
    found = settings_from(values)
    assert (found.policy, found.outcome, found.held_out) == ("p", True, 0.1)
    own = {name: value for name, value in found.training.items() if not name.startswith(("fsdp", "bf16"))}
    assert transformers.TrainingArguments(output_dir=str(tmp_path), **{**own, "use_cpu": True}).logging_steps == 1
