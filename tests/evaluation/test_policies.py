"""Policies compared: pooled over seeds, paired question by question, by hand."""

from pathlib import Path

import pytest

from verl_sql.evaluation.candidates import Answered, Candidate, CandidatesError, append_candidates
from verl_sql.evaluation.policies import compare_policies, read_policy


def candidate(right: bool, score: float, scored: bool = True) -> Candidate:
    return Candidate("t", "SELECT 1", "ok", str(right), 1, (score,) if scored else None, None, right)


def folder(path: Path, greedy: str, prm: str, gold: str = "g", split: str = "test", scored: bool = True) -> Path:
    """A run in which question i is right by greedy decoding, or by the PRM, where the text has an x."""
    path.mkdir()
    questions = []
    for number, (one, other) in enumerate(zip(greedy, prm, strict=True)):
        samples = (candidate(other != "x", 0.2, scored), candidate(other == "x", 0.9, scored))
        head = (f"s/{split}/{number}", split, "league", f"{gold}{number}", "")
        questions.append(Answered(*head, candidate(one == "x", 0.6, scored), samples))
    append_candidates(path / "candidates.jsonl", questions)
    return path


def test_by_hand(tmp_path: Path) -> None:
    sft = read_policy("SFT", [folder(tmp_path / "s0", "xx..", "xxx."), folder(tmp_path / "s1", "x...", "x...")])
    grpo = read_policy("GRPO", [folder(tmp_path / "g0", "x.xx", "xxxx"), folder(tmp_path / "g1", "xx..", ".x..")])
    table = compare_policies([sft, grpo])
    assert (table["n"], table["seeds"], table["questions"]) == (2, 2, 8)
    rows = table["policies"]
    assert rows["SFT"]["accuracy"]["greedy"]["ex"] == 3 / 8
    assert rows["SFT"]["accuracy"]["greedy"]["by_seed"] == [0.5, 0.25]
    assert rows["GRPO"]["accuracy"]["prm_mean"]["by_seed"] == [1.0, 0.25]
    assert rows["GRPO"]["accuracy"]["oracle"]["ex"] == 1.0
    assert "outcome_model" not in rows["SFT"]["accuracy"]
    against = table["against_first"]["GRPO"]
    assert (against["greedy"]["gained"], against["greedy"]["lost"]) == (3, 1)
    assert (against["prm_mean"]["gained"], against["prm_mean"]["lost"]) == (2, 1)
    choice = next(t for t in rows["SFT"]["paired"] if (t["from"], t["to"]) == ("greedy", "prm_mean"))
    assert (choice["gained"], choice["lost"], choice["mcnemar_p"]) == (1, 0, 1.0)
    assert rows["SFT"]["quadrants"]["prm_mean"] == {
        "high_right": 0.5, "high_wrong": 0.5, "low_wrong": 0.0, "low_right": 0.0,
    }  # fmt: skip


def test_split(tmp_path: Path) -> None:
    run = folder(tmp_path / "run", "x.", "xx")
    unseen = folder(tmp_path / "u", ".", ".", split="unseen")
    append_candidates(run / "candidates.jsonl", read_policy("u", [unseen]).seeds[0])
    assert [len(read_policy("p", [run], split).seeds[0]) for split in (None, "test", "unseen")] == [3, 2, 1]
    with pytest.raises(CandidatesError, match="no question of the split dev, only of test, unseen"):
        read_policy("p", [run], "dev")


def test_other_questions_are_not_compared(tmp_path: Path) -> None:
    one = read_policy("one", [folder(tmp_path / "a", "x.", "xx")])
    for other in (folder(tmp_path / "b", "x..", "xxx"), folder(tmp_path / "c", "x.", "xx", gold="other")):
        with pytest.raises(CandidatesError, match="did not answer the same questions"):
            compare_policies([one, read_policy("two", [other])])


def test_a_seed_without_scores_takes_the_column_away(tmp_path: Path) -> None:
    runs = [folder(tmp_path / "a", "x.", "xx"), folder(tmp_path / "b", "x.", "xx", scored=False)]
    table = compare_policies([read_policy("p", runs)])
    assert list(table["policies"]["p"]["accuracy"]) == ["greedy", "self_consistency", "oracle"]
    assert table["policies"]["p"]["quadrants"] == {}
