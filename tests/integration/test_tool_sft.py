"""The warm start trains on the tokens that rollouts have, and on the policy's own alone."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verl")

from omegaconf import OmegaConf
from verl.utils.tokenizer.continuous_token_wiring import create_continuous_token_builder

from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import SFT_SCHEMA, sft_row, write_rows
from verl_sql.integration.tiny_policy import train_tokenizer
from verl_sql.integration.tool_sft import ToolSFTDataset
from verl_sql.sqltext.turns import call_text
from verl_sql.tools.schemas import SCHEMAS

CALL = call_text("search_literal", {"text": "Rome"})
ANSWER = "<answer>SELECT name FROM team WHERE city = 'ROMA'</answer>"
MESSAGES = [
    {"role": "system", "content": "You are exact."},
    {"role": "user", "content": "Which team?"},
    {"role": "assistant", "content": CALL},
    {"role": "tool", "content": "team.city = 'ROMA' (1 row)"},
    {"role": "assistant", "content": ANSWER},
]
TELLING = (
    "{% if tools %}<|im_start|>system\n{{ messages[0]['content'] }}{% for t in tools %}{{ '\\n' }}{{ t | tojson }}"
    "{% endfor %}{{ '<|im_end|>\\n' }}{% endif %}"
)
"""Put before the tiny template: it describes tools in the system turn, as Qwen's does."""


@pytest.fixture(scope="module", params=[False, True], ids=["tiny template", "template with tools"])
def tokenizer(request: pytest.FixtureRequest) -> Any:
    made = train_tokenizer([message["content"] for message in MESSAGES], 400)
    if request.param:
        other = "m['role'] == 'system' and tools %}{% elif m['role'] == 'tool'"
        body = made.chat_template.replace("m['role'] == 'tool'", other)
        made.chat_template = TELLING + body
    return made


def test_tokens_and_loss(tmp_path: Path, tokenizer: Any) -> None:
    write_rows(tmp_path / "a.parquet", [sft_row(Example("s", "t", "1", "d", "q", "", "g"), MESSAGES, 0)], SFT_SCHEMA)
    config = OmegaConf.create({"pad_mode": "no_padding", "max_length": 4000})
    row = ToolSFTDataset(str(tmp_path / "a.parquet"), tokenizer, config)[0]  # checks itself against the whole chat
    ids, mask = row["input_ids"].tolist(), row["loss_mask"].tolist()
    learned = tokenizer.decode([token for token, own in zip(ids, mask, strict=True) if own])
    assert learned == f"{CALL}<|im_end|>\n{ANSWER}<|im_end|>\n"
    assert ids[: len(rollout(tokenizer))] == rollout(tokenizer)


def rollout(tokenizer: Any) -> list[int]:
    """The tokens of the same trajectory as verl's agent loop puts them together."""
    builder = create_continuous_token_builder(tokenizer, hf_model_type="qwen2")
    tools = list(SCHEMAS.values())
    tokens = builder.build_initial_tokens(MESSAGES[:2], tools=tools)
    tokens = builder.merge_assistant_tokens(tokens, tokenizer.encode(f"{CALL}<|im_end|>")).token_ids
    called = {"role": "assistant", "content": "", "tool_calls": []}
    before = [*MESSAGES[:2], called]
    tokens = builder.merge_context_tokens(before, [*before, MESSAGES[3]], tokens, tools=tools).token_ids
    return builder.merge_assistant_tokens(tokens, tokenizer.encode(f"{ANSWER}<|im_end|>")).token_ids
