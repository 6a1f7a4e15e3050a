"""Tool traces: what the script does, which traces of a model are kept, and what an SFT row holds."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from verl_sql.database.executor import Executor
from verl_sql.dataset.multi_turn import write_multi_turn
from verl_sql.dataset.parquet import RL_SCHEMA, SFT_SCHEMA, missing_columns, read_rows, rl_row, write_rows
from verl_sql.dataset.readers.bird import read_bird
from verl_sql.dataset.sample.lookups import LookupSizes, write_lookups
from verl_sql.dataset.sft.rollouts import read_rollouts
from verl_sql.dataset.tool_traces.build import TraceSettings, write_tool_traces
from verl_sql.dataset.tool_traces.chat import run_chats
from verl_sql.dataset.tool_traces.scripted import Habits
from verl_sql.generation.sampler import Completion, Prompt, Sampling
from verl_sql.sqltext.turns import call_text
from verl_sql.tools import Toolbox


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("lookups")
    write_lookups(out, 0, LookupSizes(cold_start=60, train=5, test=5, unseen=5, variants=1, test_variants=1))
    for name, word in (("plain", ""), ("asked", "tools\n")):
        rows = (
            rl_row(e, [{"role": "user", "content": f"{word}{e.question}"}], i)
            for i, e in enumerate(read_bird(out, "cold_start"))
        )
        write_rows(out / f"{name}.parquet", rows, RL_SCHEMA)
    write_multi_turn(out / "asked.parquet", out / "tools.parquet", "verl_sql_tools")
    return out


def traces(root: Path, out: Path, **settings: Any) -> list[dict[str, Any]]:
    plain = root / "plain.parquet" if settings.get("plain_share") else None
    write_tool_traces(root / "tools.parquet", out, TraceSettings(**settings), root, plain, workers=1)
    assert missing_columns(out, SFT_SCHEMA) == []
    return list(read_rows(out))


def test_a_cautious_script_looks_every_name_up(root: Path, tmp_path: Path) -> None:
    rows = traces(root, tmp_path / "a.parquet", habits=Habits(sure=0.0, draft=0.0))
    assert len(rows) == 60
    for row in rows:
        details = json.loads(row["extra_info"]["details"])
        roles = [message["role"] for message in row["messages"]]
        assert roles == ["user", "assistant", "tool", "assistant"] if details["asked"] else ["user", "assistant"]
        if details["asked"]:
            asked = call_text("search_literal", {"text": details["asked"]})
            assert row["messages"][1]["content"] == asked
            assert f"'{details['stored']}'" in row["messages"][2]["content"]
        assert row["messages"][-1]["content"].startswith("<answer>SELECT")


def test_drafts_return_nothing_where_the_name_is_spelled_otherwise(root: Path, tmp_path: Path) -> None:
    rows = traces(root, tmp_path / "a.parquet", habits=Habits(sure=0.0, draft=1.0))
    for row in rows:
        details = json.loads(row["extra_info"]["details"])
        if details["asked"] and details["asked"] != details["stored"]:
            assert details["asked"] in row["messages"][1]["content"]
            assert row["messages"][2]["content"].startswith(("0 rows", "1 row"))  # an aggregate over nothing is a row
            assert [m["role"] for m in row["messages"]].count("tool") == 2


def test_a_share_is_answered_without_tools(root: Path, tmp_path: Path) -> None:
    rows = traces(root, tmp_path / "a.parquet", plain_share=0.5)
    unaided = [row for row in rows if not row["messages"][0]["content"].startswith("tools")]
    assert 15 < len(unaided) < 45
    assert all(len(row["messages"]) == 2 for row in unaided)
    report = json.loads((tmp_path / "a.report.json").read_text(encoding="utf-8"))
    assert report["counts"]["rows"] == 60


def test_mistakes_are_said(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="plain_share needs plain="):
        write_tool_traces(root / "tools.parquet", tmp_path / "a", TraceSettings(plain_share=0.5), root)


def answer(sql: str) -> str:
    return f"<answer>{sql}</answer>"


class Scripted:
    """A model that says what it was told to, question by question."""

    def __init__(self, turns: dict[str, Sequence[str]]) -> None:
        self.turns, self.seen = turns, []

    def sample(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        assert sampling.n == 1
        self.seen += prompts
        return [[Completion(self._next(prompt), True)] for prompt in prompts]

    def _next(self, prompt: Prompt) -> str:
        said = sum(message["role"] == "assistant" for message in prompt.messages)
        texts = next(texts for key, texts in self.turns.items() if key in prompt.messages[0]["content"])
        return texts[said]


def test_traces_of_a_model_that_sees_the_gold(root: Path, tmp_path: Path) -> None:
    first, second, third, fourth = (row for row, _ in zip(read_rows(root / "tools.parquet"), range(4), strict=False))
    gold = {id(row): row["reward_model"]["ground_truth"] for row in (first, second, third, fourth)}
    look = call_text("run_sql", {"sql": "SELECT 7"})
    sampler = Scripted(
        {
            first["extra_info"]["question"]: (f"Let me check.\n{look}", answer(gold[id(first)])),
            second["extra_info"]["question"]: ("<answer>SELECT 'wrong'</answer>",),
            third["extra_info"]["question"]: (
                f"The gold query says so.\n{look}",
                f"<answer>{gold[id(third)]}</answer>",
            ),
            fourth["extra_info"]["question"]: [look] * 6,
            "": ("<answer></answer>",),
        }
    )
    settings = TraceSettings(sampling=Sampling(n=2), max_turns=3)
    counts = write_tool_traces(root / "tools.parquet", tmp_path / "a", settings, root, sampler=sampler, workers=1)
    assert counts == {
        "kept": 1, "repeat": 1, "wrong": 2, "tells": 2, "cut": 2, "no_answer": 112, "calls": 1, "rows": 1,
    }  # fmt: skip
    (row,) = read_rows(tmp_path / "a")
    assert row["messages"][0] == first["prompt"][0]  # the hint is not in what is learned from
    assert row["messages"][2] == {"role": "tool", "content": "1 row\n7\n7"}
    hint = sampler.seen[0].messages[0]["content"]
    assert gold[id(first)] in hint
    assert '"name": "search_literal"' in hint
    again = next(prompt for prompt in sampler.seen if len(prompt.messages) == 3)
    assert again.messages[2] == {"role": "user", "content": "<tool_response>\n1 row\n7\n7\n</tool_response>"}


def test_a_chat_answers_calls_that_cannot_be_read(root: Path) -> None:
    database = next(root.glob("train/*/*/*.sqlite"))
    sampler = Scripted({"": ("<tool_call>{oops</tool_call>", "<answer>SELECT 1</answer>")})
    with Executor(1) as executor:
        (chat,) = run_chats([([{"role": "user", "content": "?"}], database)], sampler, Toolbox(executor), Sampling())
    assert chat.finished
    assert chat.said[1]["content"].startswith("error: the call is no JSON object")


def test_own_trajectories_come_back_from_a_dump(tmp_path: Path) -> None:
    look = call_text("run_sql", {"sql": "SELECT 7"})
    output = f"{look}\nuser\n<tool_response>\n1 row\n</tool_response>\nassistant\n<answer>SELECT 1</answer>"
    line = {"input": "?", "output": output, "gts": "SELECT 1", "score": 3.8, "acc": 1.0}
    (tmp_path / "1.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    (rollout,) = read_rollouts([tmp_path / "1.jsonl"])
    assert [message["role"] for message in rollout.messages] == ["assistant", "tool", "assistant"]
    assert rollout.messages[0]["content"] == look
    assert rollout.text == "<answer>SELECT 1</answer>"
