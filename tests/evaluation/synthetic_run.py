"""Writes a small finished run in the real formats: verl's dumps and metrics, our parquet, the recipe's own files.

Test split, eight questions: before training 0, 1, 2 are right, after it 1 to 6 (four gained, one lost). Templates of 0
to 3 were seen in the cold start, of 4 and 5 in RL only, of 6 and 7 never. Two unseen questions stay wrong.
"""

import json
import random
from pathlib import Path
from typing import Any

from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, rl_row, write_rows
from verl_sql.rewards.verdict import Outcome, Verdict, verdict_dict

EXPOSURES = ["cold_start"] * 4 + ["rl_only"] * 2 + ["never"] * 2
RIGHT = {0: {0, 1, 2}, 3: {1, 2, 3, 4, 5, 6}}
SAME_GOLD = "SELECT name FROM band"


def example(split: str, number: int) -> Example:
    """Question `number`; 0 and 1 of the test split have the same gold, and the one's text begins the other's."""
    same = split == "test" and number < 2
    return Example(
        source="bird", split=split, question_id=str(number), db_id="music",
        question="Show bands" + " by name" * number if same else f"Question {number} of {split}, café?",
        evidence="", gold_sql=SAME_GOLD if same else f"SELECT {number} /* {split} */", gold_chain="",
        difficulty="simple" if number % 2 else "challenging",
        details={"template": "filter", "exposure": EXPOSURES[number]},
    )  # fmt: skip


def rows(split: str, count: int) -> list[dict[str, Any]]:
    """The parquet rows of a split."""
    found = []
    for index in range(count):
        asked = example(split, index)
        prompt = [{"role": "system", "content": "Answer."}, {"role": "user", "content": f"[schema]\n{asked.question}"}]
        found.append(rl_row(asked, prompt, index))
    return found


def dump_line(row: dict[str, Any], step: int, uid: str, right: bool) -> dict[str, Any]:
    """A line as verl 0.9.1 writes it: the chat template's words around the messages, special tokens dropped."""
    prompt = "".join(f"{message['role']}\n{message['content']}\n" for message in row["prompt"]) + "assistant\n"
    outcome = Outcome.MATCH if right else Outcome.MISMATCH if step else Outcome.PRED_ERROR
    verdict = verdict_dict(Verdict(outcome, float(right), float(right), {}, "SELECT 1"))
    head = {"input": prompt, "output": "SELECT\u20281", "gts": row["reward_model"]["ground_truth"]}
    return {**head, "score": float(right), "step": step, "reward": float(right), **verdict, "uid": uid}


def write_dump(path: Path, step: int, questions: list[dict[str, Any]], samples: int = 1) -> None:
    """A validation dump in the order of random uids; the first sample is as RIGHT says, further ones are right."""
    rng = random.Random(step)
    lines = []
    for row in questions:
        uid, info = f"{rng.getrandbits(64):016x}", row["extra_info"]
        for session in range(samples):
            right = session > 0 or (info["split"] == "test" and info["index"] in RIGHT[step])
            lines.append(dump_line(row, step, f"{uid}_{session}_0", right))
    lines.sort(key=lambda line: line["uid"])
    write_lines(path, lines)


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    """JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


def metrics() -> list[dict[str, Any]]:
    """verl's file logger over three steps, after the validation of step 0."""
    found: list[dict[str, Any]] = [{"step": 0, "data": {"val-core/bird/acc/mean@1": 0.3}}]
    for step in (1, 2, 3):
        shares = {"outcome/match": 0.2 * step, "outcome/mismatch": 0.8 - 0.2 * step, "outcome/no_answer": 0.2}
        data = {"critic/score/mean": 0.2 * step, "reward/acc/mean": 0.2 * step, "grad_norm": None, **shares}
        found.append({"step": step, "data": data})
    return found


def write_run(folder: Path, samples: int = 1) -> Path:
    """The whole run directory."""
    test, unseen = rows("test", 8), rows("unseen", 2)
    for name, found in (("test", test), ("unseen", unseen)):
        write_rows(folder / "data" / f"{name}.parquet", found, RL_SCHEMA)
    about = {
        "recipe": "reward_sql_grpo", "profile": "cpu", "seed": 0, "model": "tiny", "settings": {"lr": 2e-4},
        "evaluation_files": ["data/test.parquet", str(folder / "data" / "unseen.parquet")], "note": "made by a test",
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(about))
    stages = [{"stage": "cold_start", "seconds": 312.4}, {"stage": "grpo", "seconds": 200}]
    write_lines(folder / "stages.jsonl", [*stages, {"stage": "grpo", "seconds": 20}])
    write_lines(folder / "metrics.jsonl", metrics())
    for step in RIGHT:
        write_dump(folder / "validation" / f"{step}.jsonl", step, test + unseen, samples)
    return folder
