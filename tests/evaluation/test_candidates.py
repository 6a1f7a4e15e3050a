"""Files of candidates: what is written is read again, and what cannot be used is named."""

import json
from pathlib import Path

import pytest

from verl_sql.evaluation.candidates import Answered, Candidate, CandidatesError, append_candidates, read_candidates

GREEDY = Candidate("die Antwort:\u2028SELECT 'ü'", "SELECT 'ü'", "ok", "d1", 1, (0.25,), 0.5, True)
CUT = Candidate("WITH a AS (", "WITH a AS (", "error", "", 0, (), None, False, finished=False)
UNSCORED = Candidate("nothing", "", "no_answer")


def answered(key: str) -> Answered:
    return Answered(key, "dev", "league", "SELECT 1", "simple", GREEDY, (CUT, UNSCORED))


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "candidates.jsonl"
    append_candidates(path, [answered("a/dev/1")])
    append_candidates(path, [answered("a/dev/2")])
    assert read_candidates(path) == [answered("a/dev/1"), answered("a/dev/2")]


def test_process_reward() -> None:
    two = Candidate("t", "SELECT 1", "ok", step_scores=(0.5, 1.0))
    assert [c.process_reward for c in (two, GREEDY, CUT, UNSCORED)] == [0.75, 0.25, 0.0, None]


def without(tmp_path: Path, kept: list[int]) -> Path:
    path = tmp_path / "candidates.jsonl"
    append_candidates(path, [answered("a/dev/1"), answered("a/dev/2")])
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join(lines[number] for number in kept), encoding="utf-8")
    return path


@pytest.mark.parametrize("kept", [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [0, 1, 2, 4, 5], [0, 3]])
def test_a_question_that_lacks_candidates(tmp_path: Path, kept: list[int]) -> None:
    with pytest.raises(CandidatesError, match="lacks its greedy answer or some of its samples"):
        read_candidates(without(tmp_path, kept))


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "candidates.jsonl"
    for content, message in (("", "holds no candidates"), ("[1]\n", "line 1 is no candidate"), ("{", "no JSON object")):
        path.write_text(content)
        with pytest.raises(CandidatesError, match=message):
            read_candidates(path)
    path.write_text(json.dumps({"key": "a", "sample": 0}))
    with pytest.raises(CandidatesError, match="it has no 'text'"):
        read_candidates(path)
    with pytest.raises(CandidatesError, match="there is no file"):
        read_candidates(tmp_path / "other.jsonl")
