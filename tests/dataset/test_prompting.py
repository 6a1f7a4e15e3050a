"""Every prompt template: roles, contents, and texts inserted as they are."""

from pathlib import Path

import jinja2
import pytest

from verl_sql.dataset.example import Example
from verl_sql.dataset.prompting import PromptTemplate, character_count, template_names

QUESTION = "Is {{ 1 + 1 }} < 'two' & {% raw %}?"
EXAMPLE = Example("bird", "dev", "0", "d", QUESTION, "hint: <b>", "SELECT 1")


def test_bundled_templates() -> None:
    single_turn = ["compact", "reasoning_sql", "reward_sql", "table_qa", "tabular", "think2sql"]
    turns = ["compact_tools", "progress_sql", "retoolsql"]
    assert template_names() == sorted(single_turn + turns)


@pytest.mark.parametrize("name", template_names())
def test_texts_are_inserted_as_they_are(name: str) -> None:
    messages = PromptTemplate(name).messages(EXAMPLE, "SCHEMA\n(a:TEXT)")
    user = messages[-1]
    assert user["role"] == "user"
    assert all(part in user["content"] for part in (QUESTION, "SCHEMA\n(a:TEXT)"))
    assert ("hint: <b>" in user["content"]) == (name != "table_qa")
    assert user["content"] == user["content"].strip()


@pytest.mark.parametrize("name", template_names())
def test_no_evidence_no_label(name: str) -> None:
    bare = Example("bird", "dev", "0", "d", "Who?", "", "SELECT 1")
    content = PromptTemplate(name).messages(bare, "SCHEMA")[-1]["content"]
    assert not any(label in content for label in ("Evidence", "Hint", "Note"))


@pytest.mark.parametrize(
    ("name", "tags"),
    [
        ("reasoning_sql", ["<reasoning>", "</answer>"]),
        ("think2sql", ["<think>", "</answer>"]),
        ("tabular", ["<sql>", "</sql>"]),
    ],
)
def test_styles_ask_for_their_tags(name: str, tags: list[str]) -> None:
    text = "".join(m["content"] for m in PromptTemplate(name).messages(EXAMPLE, "S"))
    assert all(tag in text for tag in tags)


def test_compact_is_schema_evidence_and_question_only() -> None:
    (message,) = PromptTemplate("compact").messages(EXAMPLE, "S")
    assert message["content"] == f"S\nhint: <b>\n{QUESTION}"


def test_own_template_by_path(tmp_path: Path) -> None:
    (tmp_path / "own.jinja").write_text("{% block user %}{{ db_id }}: {{ question }}{% endblock %}")
    messages = PromptTemplate(str(tmp_path / "own.jinja")).messages(EXAMPLE, "S")
    assert messages == [{"role": "user", "content": f"d: {QUESTION}"}]
    assert character_count(messages) == len(QUESTION) + 3


def test_faulty_templates(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there are compact"):
        PromptTemplate("nothing")
    (tmp_path / "a.jinja").write_text("{{ question }}")
    with pytest.raises(ValueError, match="no block 'user'"):
        PromptTemplate(str(tmp_path / "a.jinja"))
    (tmp_path / "b.jinja").write_text("{% block user %}{{ gold }}{% endblock %}")
    with pytest.raises(jinja2.UndefinedError):
        PromptTemplate(str(tmp_path / "b.jinja")).messages(EXAMPLE, "S")
