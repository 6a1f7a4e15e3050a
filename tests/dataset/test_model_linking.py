"""Schema linking by a model over real HTTP: selections, names that do not exist, no usable reply."""

import json
from pathlib import Path
from typing import Any

import pytest

from verl_sql.database.introspect import Column, DatabaseSchema, Table
from verl_sql.dataset.build import Dataset, build_dataset
from verl_sql.dataset.model_linking import read_selection
from verl_sql.dataset.parquet import read_rows
from verl_sql.dataset.readers.bird import question_file, read_bird
from verl_sql.dataset.settings import settings_from
from verl_sql.generation.replies import UnusableReply

SCHEMA = DatabaseSchema(
    "d", (Table("Team", (Column("Name", "TEXT"), Column("home town", "TEXT"))), Table("player", (Column("id", "INT"),)))
)


def reply(tables: Any) -> str:
    return json.dumps({"tables": tables})


def test_names_are_found_whatever_their_case() -> None:
    linked = read_selection(reply({"team": ["NAME", "team.home town"], "Player": []}), SCHEMA)
    assert linked.selection.tables == {"team", "player"}
    assert linked.selection.columns == {("team", "name"), ("team", "home town")}
    assert linked.unknown == ()


def test_unknown_names_are_left_out_and_told() -> None:
    linked = read_selection(reply({"Team": ["name", "age"], "coach": ["id"]}), SCHEMA)
    assert linked.selection.columns == {("team", "name")}
    assert linked.unknown == ("Team.age", "coach")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Team, player", "no JSON object"),
        (reply(["Team"]), "tables is no dict"),
        (reply({"Team": "Name"}), "no list of names"),
        (reply({"Team": [1]}), "no list of names"),
        (reply({"coach": ["id"]}), "nothing of the schema is named, only coach"),
        (reply({}), "only nothing"),
    ],
)
def test_unusable(text: str, why: str) -> None:
    with pytest.raises(UnusableReply, match=why):
        read_selection(text, SCHEMA)


pytestmark = pytest.mark.usefixtures("one_pool")


def built(root: Path, endpoint: Any, tmp_path: Path, **settings: Any) -> dict[str, Any]:
    """The report of a build that links by the endpoint."""
    linker = {"base_url": endpoint.url, "model": "m", "timeout": 5.0, "retries": 0}
    given = settings_from(
        {"template": "compact", "form": "compact", "linker": linker, "replies": str(tmp_path / "replies"), **settings}
    )
    splits = {split: (lambda split=split: read_bird(root, split)) for split in ("train", "dev")}
    files = tuple(question_file(root, split) for split in splits)
    return build_dataset(Dataset("bird", "Made for tests.", splits, files, root), given, tmp_path / "out")


def shown(tmp_path: Path, split: str) -> dict[str, str]:
    """The schema line of each prompt, by question."""
    rows = read_rows(tmp_path / f"out/{split}.parquet")
    return {row["extra_info"]["question"]: row["prompt"][0]["content"].splitlines()[0] for row in rows}


def test_selection_and_gold_in_training_selection_alone_elsewhere(
    bird_root: Path, endpoint: Any, tmp_path: Path
) -> None:
    endpoint.reply = lambda *_: (200, [(reply({"shop": ["name", "town"], "nowhere": []}), "stop")])
    report = built(bird_root, endpoint, tmp_path, scope="linked_and_gold", evaluation_scope="linked")["splits"]
    assert shown(tmp_path, "train")["Chained?"] == "shop(id, name, price)"  # the gold's own column
    assert shown(tmp_path, "train")["How many shops?"] == "shop(id, name)"
    assert set(shown(tmp_path, "dev").values()) == {"shop(id, name)"}
    assert report["train"]["models"] == {"linking": {"linked": 5}}
    told = report["train"]["flagged"]["unknown_names"]
    assert (told["count"], told["examples"][0]["detail"]) == (5, "shop.town, nowhere")
    assert "SELECT" not in "".join(r["messages"][1]["content"] for r in endpoint.requests)  # the gold is not shown


def test_without_a_usable_reply_names_and_values_link(bird_root: Path, endpoint: Any, tmp_path: Path) -> None:
    endpoint.reply = lambda *_: (200, [("no idea", "stop")])
    report = built(bird_root, endpoint, tmp_path, scope="linked")["splits"]
    assert report["train"]["models"] == {"linking": {"unusable": 5}}
    assert report["train"]["flagged"]["unlinked"]["count"] == 5
    assert report["train"]["kept"] == 5
    assert shown(tmp_path, "train")["How many shops?"] == "shop(id, name)"


def test_nothing_is_asked_where_everything_is_shown_or_what_is_known(
    bird_root: Path, endpoint: Any, tmp_path: Path
) -> None:
    endpoint.reply = lambda *_: (200, [(reply({"shop": ["price"]}), "stop")])
    built(bird_root, endpoint, tmp_path)
    assert endpoint.requests == []
    built(bird_root, endpoint, tmp_path, scope="linked")
    assert len(endpoint.requests) == 5
    built(bird_root, endpoint, tmp_path, scope="linked_and_gold", limit=12)
    assert len(endpoint.requests) == 5
