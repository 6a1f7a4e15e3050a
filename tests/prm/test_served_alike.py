"""One score wherever it is asked for: transformers, vLLM in this process, and a vLLM server, on 200 chains.

VERL_SQL_PRM names a trained checkpoint to do it with; a tiny one with random weights serves otherwise.
"""

import os
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from verl_sql.database.executor import Executor
from verl_sql.prm.rendering import render_chain
from verl_sql.prm.stepping import execute_chains
from verl_sql.sqltext.chain import split_chain

pytestmark = pytest.mark.long
ENGINE = {"dtype": "float32", "enforce_eager": True, "max_model_len": 1024, "max_num_seqs": 64, "seed": 0}
CLOSE = 1e-3


@pytest.fixture(scope="module")
def checkpoint(prm: Path) -> Path:
    pytest.importorskip("vllm")
    return Path(os.environ.get("VERL_SQL_PRM") or prm)


@pytest.fixture(scope="module")
def texts(executor: Executor, league: Path) -> list[str]:
    """200 chains of one to four steps, some of which fail, with their results."""
    draw = random.Random(0)
    wheres = (
        "age > 20",
        "name = 'Ann'",
        "ag > 3",
        "team_id IN (SELECT id FROM team)",
        "age IS NULL",
        "name LIKE '日%'",
    )
    chains = []
    for _ in range(200):
        steps = [f"s{n} AS (SELECT * FROM player WHERE {draw.choice(wheres)})" for n in range(draw.randint(1, 4))]
        chains.append(split_chain(f"WITH {', '.join(steps)} SELECT count(*) FROM s0"))
    results = execute_chains(executor, [(league, chain) for chain in chains])
    return [
        render_chain(f"question {n}\nteam(id, name)", chain, found).text
        for n, (chain, found) in enumerate(zip(chains, results, strict=True))
    ]


@pytest.fixture(scope="module")
def expected(checkpoint: Path, texts: list[str]) -> list[float]:
    from verl_sql.prm.scoring import TransformersScorer

    scores = [value for own in TransformersScorer(checkpoint, device="cpu").score(texts) for value in own]
    assert len(scores) > 400
    assert max(scores) - min(scores) > 10 * CLOSE
    return scores


@pytest.fixture(scope="module")
def address(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A vLLM server of the checkpoint."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--dtype", "float32", "--enforce-eager", "--max-model-len", "1024", "--max-num-seqs", "64"]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(checkpoint)]
    command += ["--runner", "pooling", "--host", "127.0.0.1", "--port", str(port), *options]
    log = (tmp_path_factory.mktemp("server") / "log").open("w")
    server = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1"})
    try:
        _wait(f"http://127.0.0.1:{port}/health", server)
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def _wait(url: str, server: "subprocess.Popen[bytes]") -> None:
    """Until the server answers."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        assert server.poll() is None, "the server ended"
        try:
            urllib.request.urlopen(url, timeout=5)
            return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    pytest.fail("the server does not answer")


def test_vllm_here(checkpoint: Path, texts: list[str], expected: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    from verl_sql.prm.scoring import VllmScorer

    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    found = [value for own in VllmScorer(checkpoint, **ENGINE).score(texts) for value in own]
    worst = max(abs(a - b) for a, b in zip(found, expected, strict=True))
    print(f"largest difference on {len(texts)} chains: {worst:.2e}")
    assert worst < CLOSE


def test_a_vllm_server(checkpoint: Path, texts: list[str], expected: list[float], address: str) -> None:
    from verl_sql.prm.scoring import EndpointScorer

    found = [value for own in EndpointScorer(address, tokenizer=checkpoint).score(texts) for value in own]
    worst = max(abs(a - b) for a, b in zip(found, expected, strict=True))
    print(f"largest difference on {len(texts)} chains: {worst:.2e}")
    assert worst < CLOSE
