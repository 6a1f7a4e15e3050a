"""What the tests of the process reward model share: a database, a tiny policy, a policy that follows a script."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from verl_sql.database.executor import Executor
from verl_sql.generation.sampler import Completion, Prompt, Sampling

QUESTION = "team(id, name, city) player(id, name, age, team_id)\nHow many players are older than 20?"


class ScriptedSampler:
    """A policy whose answers are written down: for a (question, prefix) the texts that follow, in turn, for ever.

    Its state lives in the script's positions alone, so a fresh one says the same again. It counts what it gave.
    """

    def __init__(self, script: dict[tuple[str, str], Sequence[str]], cut_short: Sequence[str] = ()) -> None:
        self.script, self.cut_short = script, cut_short
        self.asked: list[tuple[str, int]] = []

    def sample(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        groups = []
        for prompt in prompts:
            texts = self.script[prompt.messages[-1]["content"], prompt.prefix]
            self.asked.append((prompt.prefix, sampling.n))
            found = [texts[i % len(texts)] for i in range(sampling.n)]
            groups.append([Completion(text, text not in self.cut_short) for text in found])
        return groups


@pytest.fixture
def scripted() -> type[ScriptedSampler]:
    """The class, for tests to write scripts for."""
    return ScriptedSampler


@pytest.fixture(scope="session")
def league(league_root: Path) -> Path:
    return league_root / "league" / "league.sqlite"


@pytest.fixture(scope="session")
def executor() -> Iterator[Executor]:
    with Executor(workers=1, timeout=5.0) as running:
        yield running


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny policy with random weights."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    import torch

    from verl_sql.integration.tiny_policy import TinyPolicyShape, build_tiny_policy

    torch.set_num_threads(1)  # models this small gain nothing by more
    out = tmp_path_factory.mktemp("policy")
    texts = [QUESTION, "WITH old AS (SELECT * FROM player WHERE age > 20)\nSELECT count(*) FROM old"] * 40
    build_tiny_policy(texts, out, TinyPolicyShape(vocab_size=400, hidden_size=64, layers=2))
    return out


@pytest.fixture(scope="session")
def prm(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reward model whose head is random, so that scores differ."""
    import torch
    from transformers import AutoModelForTokenClassification

    from verl_sql.prm.model import make_prm

    out = make_prm(policy, tmp_path_factory.mktemp("prm"))
    model = AutoModelForTokenClassification.from_pretrained(out)
    torch.manual_seed(0)
    torch.nn.init.normal_(model.score.weight, std=0.5)
    model.save_pretrained(out)
    return out
