"""A chain of CTEs or a query written as each paper's answer: what a policy's cold start teaches it to write."""

from enum import StrEnum

from verl_sql.sqltext.chain import split_chain


class AnswerForm(StrEnum):
    """Forms of an answer."""

    CHAIN = "chain"
    """The chain alone (Reward-SQL)."""
    REASONING = "reasoning"
    """`<reasoning>…</reasoning><answer>…</answer>` (Reasoning-SQL, §3.2)."""
    THINK = "think"
    """`<think>…</think><answer>…</answer>` (Think2SQL, Appendix D; ReToolSQL and Progress-SQL)."""
    SQL = "sql"
    """Reasoning, then `<sql>…</sql>` (Sparks of Tabular Reasoning, Appendix B.1)."""


def written(sql: str, form: AnswerForm) -> str:
    """The whole answer around a chain or query.

    `WITH chosen AS (…), kept AS (…) SELECT …` becomes, as `think`,
    `<think>chosen, then kept, then the answer.</think>`, a line break and `<answer>WITH chosen …</answer>`.
    """
    match form:
        case AnswerForm.CHAIN:
            return sql
        case AnswerForm.REASONING:
            return f"<reasoning>{reasoning(sql)}</reasoning>\n<answer>{sql}</answer>"
        case AnswerForm.THINK:
            return f"<think>{reasoning(sql)}</think>\n<answer>{sql}</answer>"
        case AnswerForm.SQL:
            return f"{reasoning(sql)}\n<sql>{sql}</sql>"


def reasoning(sql: str) -> str:
    """What a chain does, told by the names of its steps in order; of a query without any, that it is one."""
    names = [step.name for step in split_chain(sql).steps if step.name]
    return f"{', then '.join([*names, 'the answer'])}." if names else "One query is enough."
