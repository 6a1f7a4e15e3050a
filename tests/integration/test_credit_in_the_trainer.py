"""Three steps of verl's own trainer with a process reward model that verl serves, all on a CPU.

The policy is taught a few chains by heart, so that it writes CTEs; the reward model's head is random, so that steps
differ. What is looked at is what reached the actor: `+trainer.v1.verl_sql_dump_advantages`, and the actor's metrics.
"""

import json
import math
import os
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.trainer, pytest.mark.long]

ROOT = Path(__file__).parents[2]
STEPS, GROUP, QUESTIONS = 3, 4, 4
SCHEDULE = {1: 0.005, 2: 0.001, 3: 0.0}
GOLD = "SELECT count(*) FROM player WHERE age = 30"
PROMPT = "player(id, name, age), team(id, name, city)\nQuestion {}: how many are 30?"
CHAINS = (
    "WITH a AS (SELECT * FROM player WHERE age = 30) SELECT count(*) FROM a",
    "Así: ñandú 😀\n```sql\nWITH a AS (SELECT * FROM player), b AS (SELECT age FROM a)\nSELECT count(*) FROM b;\n```",
    "WITH a AS (SELECT age FROM player),\nb AS (SELECT age FROM a), c AS (SELECT nope FROM b) SELECT 1 FROM c",
    "SELECT count(*) FROM player WHERE age = 31",
)  # fmt: skip


def messages(number: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": PROMPT.format(number)}]


def write_data(path: Path) -> None:
    from verl_sql.dataset.example import Example
    from verl_sql.dataset.parquet import RL_SCHEMA, rl_row, write_rows

    rows = []
    for number in range(QUESTIONS * STEPS):
        example = Example(
            source="test", split="train", question_id=str(number), db_id="league", question="how many are 30?",
            evidence="", gold_sql=GOLD, gold_chain="", difficulty="", details={},
        )  # fmt: skip
        rows.append(rl_row(example, messages(number % 10), number))
    write_rows(path, rows, RL_SCHEMA)


def teach(folder: Path) -> None:
    """A policy that answers with one of CHAINS."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from verl_sql.integration.tiny_policy import TinyPolicyShape, build_tiny_policy

    build_tiny_policy([*CHAINS, PROMPT] * 20, folder, TinyPolicyShape(vocab_size=460, layers=2))
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    model = model.float()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for step in range(150):
        batch = []
        for i in range(8):
            chat = tokenizer.apply_chat_template(messages((step + i) % 10), add_generation_prompt=True, tokenize=False)
            batch.append([*tokenizer.encode(chat + CHAINS[i % len(CHAINS)]), tokenizer.eos_token_id])
        width = max(map(len, batch))
        ids = torch.tensor([line + [tokenizer.pad_token_id] * (width - len(line)) for line in batch])
        labels = ids.masked_fill(ids == tokenizer.pad_token_id, -100)
        model(input_ids=ids, attention_mask=(labels != -100).long(), labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)


def make_judge(policy: Path, folder: Path) -> None:
    """A process reward model with a random head, so that different steps get different scores."""
    import torch
    from transformers import AutoModelForTokenClassification

    from verl_sql.prm.model import make_prm

    make_prm(policy, folder)
    model = AutoModelForTokenClassification.from_pretrained(folder)
    torch.manual_seed(0)
    with torch.no_grad():
        model.score.weight.normal_(0, 0.1)
    model.save_pretrained(folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, league_root: Path) -> Path:
    """The folder of one run."""
    if find_spec("verl") is None or find_spec("vllm") is None:
        pytest.skip("verl and vLLM are not installed")
    out = tmp_path_factory.mktemp("credit")
    write_data(out / "train.parquet")
    teach(out / "policy")
    make_judge(out / "policy", out / "prm")
    overrides = [
        "hydra.searchpath=[pkg://verl_sql.integration.conf,pkg://verl_sql.recipes.conf]", "+recipe=reward_sql_grpo",
        "+preset=cpu", "+small=reward_sql_grpo", "+prm=served_cpu",
        f"reward.reward_model.model_path={out}/prm", f"actor_rollout_ref.model.path={out}/policy",
        f"data.train_files={out}/train.parquet", f"data.val_files={out}/train.parquet",
        f"data.train_batch_size={QUESTIONS}", "data.max_prompt_length=96", "data.max_response_length=128",
        f"actor_rollout_ref.rollout.n={GROUP}", f"actor_rollout_ref.actor.ppo_mini_batch_size={QUESTIONS}",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4", "actor_rollout_ref.actor.use_kl_loss=true",
        "actor_rollout_ref.actor.policy_loss.loss_mode=verl_sql_step_ratio",
        f"+algorithm.kl_schedule={[list(pair) for pair in SCHEDULE.items()]}",
        f"+reward.custom_reward_function.reward_kwargs.db_root={league_root}",
        f"+trainer.v1.verl_sql_dump_advantages={out}/advantages", f"trainer.total_training_steps={STEPS}",
        f"trainer.default_local_dir={out}/checkpoints", f"trainer.validation_data_dir={out}/validation",
        f"trainer.rollout_data_dir={out}/rollouts", "trainer.val_before_train=false", "trainer.save_freq=-1",
        f"hydra.run.dir={out}/hydra",
    ]  # fmt: skip
    env = {
        **os.environ, "VERL_PLATFORM": "cpu", "VERL_ENGINE_DEVICE": "cuda", "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "2",
        "VERL_FILE_LOGGER_PATH": f"{out}/metrics.jsonl",
    }  # fmt: skip
    command = [sys.executable, "-m", "verl_sql.integration.launch", "--log", f"{out}/log", "--show", "x^"]
    command += ["--timeout", "900", "--", sys.executable, "-m", "verl.trainer.main_ppo", *overrides]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=1000, check=False)
    log = (out / "log").read_text(errors="replace")[-4000:] if (out / "log").is_file() else ""
    assert done.returncode == 0, f"{done.stderr}\n{log}"
    return out


def dumped(run: Path) -> list[dict[str, Any]]:
    """Every row that reached the actor."""
    return [json.loads(line) for step in SCHEDULE for line in (run / "advantages" / f"{step}.jsonl").open()]


def metrics(run: Path) -> list[dict[str, float]]:
    """The metrics of each training step."""
    lines = [json.loads(line)["data"] for line in (run / "metrics.jsonl").open()]
    return [line for line in lines if "actor/pg_loss" in line]


def test_advantages_are_constant_on_the_ctes_that_the_text_shows(run: Path) -> None:
    """Of what reached the actor: one value a step, and it is Â·s or Â·(1 − s) with the weight of the step mean."""
    from transformers import AutoTokenizer

    from verl_sql.integration.step_spans import disjoint, tokens_by_decoding
    from verl_sql.sqltext.chain import split_chain
    from verl_sql.sqltext.extract import extract_answer

    decode = partial(AutoTokenizer.from_pretrained(run / "policy").decode, skip_special_tokens=True)
    rows = dumped(run)
    judged = 0
    assert len(rows) == STEPS * QUESTIONS * GROUP
    for row in rows:
        text, ids, line = row["text"], row["ids"], row["advantages"]
        assert text == decode(ids)
        answer = extract_answer(text)
        steps = split_chain(answer.sql or "").steps
        chars = [(answer.start + step.start, answer.start + step.end) for step in steps]
        shown = disjoint(tokens_by_decoding(decode, ids, text, chars))
        assert [list(span) for span in shown] == row["spans"]
        inside = {token for start, end in shown for token in range(start, end)}
        outside = [line[token] for token in range(len(ids)) if token not in inside]
        assert len(set(outside)) <= 1
        segments = len(shown) + bool(outside)
        whole = outside[0] * segments * len(outside) / len(ids) if outside else None  # Â
        for (start, end), score in zip(shown, row["scores"], strict=True):
            assert len(set(line[start:end])) == 1
            if whole:
                share = score if whole > 0 else 1 - score
                weight = len(ids) / (segments * (end - start))
                assert line[start] == pytest.approx(whole * share * weight, rel=1e-4)
                judged += 1
    assert judged > 20, "the policy wrote too few chains to tell"
    assert any(len(row["spans"]) > 1 and len(set(row["advantages"])) > 2 for row in rows)


def test_the_actor_used_the_coefficient_of_its_step(run: Path) -> None:
    found = metrics(run)
    assert [line["actor/kl_coef"] for line in found] == pytest.approx(list(SCHEDULE.values()))
    assert all(math.isfinite(line["actor/kl_loss"]) for line in found)


def test_metrics_of_steps_and_rewards(run: Path) -> None:
    for line in metrics(run):
        assert line["steps/with_spans"] > 0.5
        assert 0 < line["steps/score/mean"] < 1
        assert line["reward/prm_asked/mean"] == 1.0
        assert line["reward/score/mean"] == pytest.approx(
            line["reward/process_reward/mean"] + line["reward/outcome_reward/mean"]
        )
        assert line["rollouts/lost"] == 0


def test_validation_asked_no_reward_model(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "validation" / f"{STEPS}.jsonl").open()]
    assert len(lines) == QUESTIONS * STEPS
    assert {(line["prm_asked"], line["step_scores"]) for line in lines} == {(0.0, "")}
    assert all(line["score"] == line["acc"] for line in lines)


def test_the_served_scores_are_those_of_transformers(run: Path, league_root: Path) -> None:
    from verl_sql.database.executor import Executor
    from verl_sql.prm.rendering import prompt_text, render_chain
    from verl_sql.prm.scoring import TransformersScorer
    from verl_sql.prm.stepping import execute_steps
    from verl_sql.sqltext.chain import split_chain
    from verl_sql.sqltext.extract import extract_answer

    scorer = TransformersScorer(run / "prm")
    number_of = {json.loads(line)["uid"]: json.loads(line)["input"] for line in (run / "rollouts" / "1.jsonl").open()}
    database = league_root / "league" / "league.sqlite"
    with Executor(workers=1) as executor:
        for row in [json.loads(line) for line in (run / "advantages" / "1.jsonl").open()]:
            chain = split_chain(extract_answer(row["text"]).sql or "")
            number = int(number_of[row["key"]].split("Question ")[1].split(":")[0])
            results = execute_steps(executor, database, chain)
            text = render_chain(prompt_text(messages(number)), chain, results).text
            assert scorer.score([text])[0] == pytest.approx(row["scores"], abs=1e-3)
