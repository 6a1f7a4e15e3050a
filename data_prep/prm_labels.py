"""Step labels for a process reward model, by Monte Carlo from step prefixes (Reward-SQL §4.2).

    python data_prep/prm_labels.py source=data/bird/train.parquet db_root=BIRD model=POLICY out=labels.jsonl
    python data_prep/prm_labels.py source=… db_root=… endpoint.base_url=http://…/v1 out=labels.jsonl

Chains are sampled for each question, and completions from each promising step prefix; a step is wrong if all of them
fail. Killed and started again it goes on where it stopped. `recipes/reward_sql_prm.sh` trains on the file.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf

from verl_sql.database.catalog import Catalog, DatabaseNotFound
from verl_sql.database.executor import Executor
from verl_sql.dataset.cocte.diversity import distance, shape
from verl_sql.dataset.sft.questions import read_questions
from verl_sql.generation.sampler import Sampling, SamplingError
from verl_sql.integration.rollout_sources import make_sampler
from verl_sql.integration.rollouts import fingerprint
from verl_sql.prm.cutting import token_cut
from verl_sql.prm.label_files import Labeller, write_labels
from verl_sql.prm.labels import LabelCounts, Labelling, LabelQuestion, Record, label_questions


@hydra.main(config_path="conf", config_name="prm_labels", version_base="1.3")
def main(config: DictConfig) -> None:
    """Label, and say what came out."""
    values: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    try:
        questions = _questions(values)
        settings = _labelling(values["labelling"])
        told = {name: values[name] for name in ("labelling", "diversity", "model", "engine", "source")}
        told["endpoint"] = {name: values["endpoint"][name] for name in ("base_url", "model")}
        told["content"] = {name: fingerprint(Path(name)) for name in (values["source"], values["model"]) if name}
        out = Path(values["out"]).expanduser()
        report = write_labels(out, questions, values["block"], told, lambda: _labeller(values, settings))
    except (DatabaseNotFound, FileNotFoundError, SamplingError, TypeError, ValueError) as error:
        raise SystemExit(f"prm_labels: {error}") from error
    print(f"{values['out']}: {report['counts']}")


def _questions(values: Mapping[str, Any]) -> list[LabelQuestion]:
    """The questions whose databases are there.

    Raises:
        ValueError: nothing says where databases or the policy are, or no question has its database.
    """
    if not values["db_root"]:
        raise ValueError("no folder of databases: give db_root=… or set VERL_SQL_DB_ROOT")
    if bool(values["model"]) == bool(values["endpoint"]["base_url"]):
        raise ValueError("name the policy, either by model=… or by endpoint.base_url=…")
    catalog = Catalog(Path(values["db_root"]).expanduser())
    found = [q for q in read_questions(Path(values["source"]).expanduser(), catalog) if q.database]
    if not found:
        raise ValueError(f"no question of {values['source']} has its database under {values['db_root']}")
    return [
        LabelQuestion(q.key, q.prompt, q.gold, q.database, {n: q.info[n] for n in ("question_id", "db_id", "split")})
        for q in found[: values["questions"]]
        if q.database
    ]


def _labelling(values: Mapping[str, Any]) -> Labelling:
    """The settings from plain values."""
    sampling = values["sampling"]
    return Labelling(**{**values, "sampling": Sampling(**{**sampling, "stop": tuple(sampling["stop"] or ())})})


def _labeller(values: Mapping[str, Any], settings: Labelling) -> Labeller:
    """The policy and the executor, behind one function."""
    sampler = make_sampler(values)
    executor = Executor(values["workers"], settings.timeout)
    cut = None
    if folder := values["tokenizer"] or values["model"]:
        from transformers import AutoTokenizer

        cut = token_cut(AutoTokenizer.from_pretrained(folder))

    def label(block: Sequence[LabelQuestion]) -> tuple[list[Record], LabelCounts]:
        """The records of a block that are kept, and its counts."""
        records, counts = label_questions(block, sampler, executor, settings, cut)
        kept = _diverse(records, values["diversity"])
        counts.left_out["alike"] += len(records) - len(kept)
        return kept, counts

    return label


def _diverse(records: list[Record], threshold: float) -> list[Record]:
    """Without chains that are nearer than `threshold` to one before of the same question and the same labels."""
    if not threshold:
        return records
    kept: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    chosen = []
    for record in records:
        others = kept.setdefault((record["question"], str([step["label"] for step in record["steps"]])), [])
        own = shape(record["chain"])
        if all(distance(own, other) >= threshold for other in others):
            others.append(own)
            chosen.append(record)
    return chosen


if __name__ == "__main__":
    main()
