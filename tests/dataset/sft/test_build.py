"""Whole sets: chains, traces of a model, traces made elsewhere, rollouts."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from verl_sql.database.catalog import DatabaseNotFound
from verl_sql.dataset.parquet import SFT_SCHEMA, missing_columns, read_rows
from verl_sql.dataset.sft.build import build_set
from verl_sql.dataset.sft.preference import PREFERENCE_SCHEMA
from verl_sql.dataset.sft.settings import SetKind, SetSettings, set_settings_from
from verl_sql.generation.sampler import Completion, Prompt, Sampling, SamplingError

RIGHT = {
    "Question 0?": "SELECT name FROM team WHERE city = 'Rome'",
    "Question 1?": "SELECT COUNT(*) FROM player",
    "Question 3?": "SELECT name FROM player WHERE age > 25",
}


class Pupil:
    """A sampler that knows question 1, and with a hint question 3 as well; its first text tells of it."""

    def __init__(self, dies_after: int = 99) -> None:
        self.asked: list[tuple[str, bool]] = []
        self.dies_after = dies_after

    def sample(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        return [self._answers(prompt) for prompt in prompts]

    def _answers(self, prompt: Prompt) -> list[Completion]:
        if len(self.asked) >= self.dies_after:
            raise SamplingError("gone")
        question, _, hint = prompt.messages[-1]["content"].partition("\n\n")
        self.asked.append((question, bool(hint)))
        knows = question == "Question 1?" or (hint and question == "Question 3?")
        sql = RIGHT[question] if knows else "SELECT 0"
        text = f"It follows from the schema.\n```sql\n{sql}\n```"
        return [Completion(f"The given query is right.\n{text}" if hint else text, True), Completion(text, True)]


def made(
    source: Path, out: Path, root: Path | None, kind: SetKind, sampler: Pupil | None = None, rollouts=(), **options
):
    report = build_set(source, out, SetSettings(kind, **options), rollouts, root, 1, sampler)
    return report, [(r["extra_info"]["question_id"], r["messages"][-1]["content"]) for r in read_rows(out)]


def test_every_chain_becomes_a_row(source: Path, tmp_path: Path) -> None:
    report, rows = made(source, tmp_path / "out.parquet", None, SetKind.CHAINS)
    assert rows == [("q0", "WITH a AS (SELECT 1) SELECT 1"), ("q0", "WITH b AS (SELECT 2) SELECT 1")]
    assert missing_columns(tmp_path / "out.parquet", SFT_SCHEMA) == []
    told = json.loads((tmp_path / "out.report.json").read_text(encoding="utf-8"))
    assert (told["rows"], told["settings"]["kind"]) == (report["rows"], "chains") == (2, "chains")


def test_distilled_traces_are_right_ones(source: Path, league_root: Path, tmp_path: Path) -> None:
    report, rows = made(source, tmp_path / "out.parquet", league_root, SetKind.DISTILLED, Pupil())
    assert [key for key, _ in rows] == ["q1"]
    fates = {"plain/gold_fails": 2, "plain/kept": 1, "plain/repeat": 1, "plain/wrong": 4}
    assert report["counts"] == {"questions": 4, "with_trace": 1, "completions": fates}


def test_star_asks_again_with_a_hint_that_no_row_shows(source: Path, league_root: Path, tmp_path: Path) -> None:
    pupil = Pupil()
    report, rows = made(source, tmp_path / "out.parquet", league_root, SetKind.STAR, pupil)
    assert [key for key, _ in rows] == ["q1", "q3"]
    assert ("Question 1?", True) not in pupil.asked
    assert report["counts"]["completions"]["hinted/tells"] == 1
    shown = json.dumps([row["messages"] for row in read_rows(tmp_path / "out.parquet")])
    assert "For you alone" not in shown
    assert "given query" not in shown


def test_privileged_traces_see_the_gold_from_the_start(source: Path, league_root: Path, tmp_path: Path) -> None:
    pupil = Pupil()
    _, rows = made(source, tmp_path / "out.parquet", league_root, SetKind.PRIVILEGED, pupil)
    assert [key for key, _ in rows] == ["q1", "q3"]
    assert all(hinted for _, hinted in pupil.asked)


def test_a_killed_run_goes_on_where_it_stopped(
    source: Path, league_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verl_sql.dataset.sft.build.PART", 2)
    whole, resumed = tmp_path / "a" / "o.parquet", tmp_path / "b" / "o.parquet"
    made(source, whole, league_root, SetKind.DISTILLED, Pupil())
    with pytest.raises(SamplingError):
        made(source, resumed, league_root, SetKind.DISTILLED, Pupil(dies_after=2))
    rest = Pupil()
    made(source, resumed, league_root, SetKind.DISTILLED, rest)
    assert [question for question, _ in rest.asked] == ["Question 2?", "Question 3?"]
    assert whole.read_bytes() == resumed.read_bytes()


def test_multi_turn_traces_keep_their_turns(source: Path, league_root: Path, tmp_path: Path) -> None:
    turns = [
        {"role": "assistant", "content": "SELECT count(*) FROM players"},
        {"role": "tool", "content": "no such table: players"},
        {"role": "assistant", "content": f"```sql\n{RIGHT['Question 1?']}\n```"},
    ]
    lines = [{"question_id": "q1", "messages": turns}, {"question_id": "q3", "completion": "```sql\nSELECT 1\n```"}]
    file = tmp_path / "traces.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    report, _ = made(source, tmp_path / "out.parquet", league_root, SetKind.TRACES, None, [file])
    (row,) = read_rows(tmp_path / "out.parquet")
    assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert report["counts"] == {"kept": 1, "wrong": 1}


def test_rollouts_become_sets(source: Path, tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    scored = [("q0", "a", 2.0), ("q0", "b", 0.5), ("q1", "c", 0.0)]
    lines = [{"question_id": q, "completion": t, "score": s} for q, t, s in scored]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    report, rows = made(source, tmp_path / "rs.parquet", None, SetKind.REJECTION, None, [file])
    assert rows == [("q0", "a")]
    told = {"questions": 2, "rollouts": 3, "cut": 0, "above": 1, "distinct": 1, "diverse": 1}
    assert {key: report["counts"][key] for key in told} == told
    build_set(source, tmp_path / "dpo.parquet", SetSettings(SetKind.PREFERENCE), [file])
    (pair,) = read_rows(tmp_path / "dpo.parquet")
    assert (pair["chosen"][0]["content"], pair["rejected"][0]["content"]) == ("a", "b")
    assert missing_columns(tmp_path / "dpo.parquet", PREFERENCE_SCHEMA) == []


def test_mistakes_are_told(source: Path, league_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VERL_SQL_DB_ROOT", raising=False)
    out = tmp_path / "out.parquet"
    with pytest.raises(ValueError, match=r"needs a model: endpoint.base_url"):
        made(source, out, league_root, SetKind.STAR)
    with pytest.raises(ValueError, match=r"needs rollouts="):
        made(source, out, None, SetKind.REJECTION)
    with pytest.raises(DatabaseNotFound, match="VERL_SQL_DB_ROOT"):
        made(source, out, None, SetKind.DISTILLED, Pupil())
    with pytest.raises(FileNotFoundError, match="no parquet"):
        made(tmp_path / "none.parquet", out, None, SetKind.CHAINS)
    (tmp_path / "r.jsonl").write_text('{"question_id": "q0", "completion": "a", "score": 0}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="no row for a set of kind rejection"):
        made(source, out, None, SetKind.REJECTION, None, [tmp_path / "r.jsonl"])
    assert not out.exists()
    with pytest.raises(ValueError, match="nonsense"):
        set_settings_from({"kind": "nonsense"})
