"""Products of stages: what counts as unchanged, and that runs and cache do not depend on each other's files."""

import os
import shutil
from pathlib import Path

import pytest

from verl_sql.integration import stage_cache
from verl_sql.integration.stage_cache import digest, keep, key_of, main, read_inputs, read_record, take


def finished(cache: Path, folder: Path, text: str = "product") -> None:
    """A stage that came to its end in `folder`."""
    assert not take(cache, "data", folder, {"seed": "0"})
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_text(text)
    keep(cache, folder, seconds=7)


def test_a_product_outlives_its_run_and_its_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    finished(cache, tmp_path / "first")
    shutil.rmtree(tmp_path / "first")
    assert take(cache, "data", tmp_path / "second", {"seed": "0"})
    shutil.rmtree(cache)
    assert (tmp_path / "second" / "deep" / "file").read_text() == "product"
    assert read_record(tmp_path / "second")["seconds"] == 7


def test_two_runs_at_once_leave_one_whole_product(tmp_path: Path) -> None:
    cache, inputs = tmp_path / "cache", {"seed": "0"}
    assert not take(cache, "data", tmp_path / "slow", inputs)
    finished(cache, tmp_path / "fast", "fast")
    product = keep(cache, tmp_path / "slow", seconds=9)
    assert (product / "deep" / "file").read_text() == "fast"
    assert [path.name for path in (cache / "data").iterdir()] == [product.name]


def test_what_was_not_kept_is_not_there(tmp_path: Path) -> None:
    inputs = {"seed": "0"}
    assert not take(tmp_path / "cache", "data", tmp_path / "killed", inputs)
    assert not take(tmp_path / "cache", "data", tmp_path / "next", inputs)


def test_a_copy_where_links_are_not_possible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(source: str, target: str) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", no_link)
    finished(tmp_path / "cache", tmp_path / "out")
    assert take(tmp_path / "cache", "data", tmp_path / "other", {"seed": "0"})
    assert (tmp_path / "other" / "deep" / "file").read_text() == "product"


def test_digest_of_a_folder_follows_names_and_contents_alone(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name / "__pycache__").mkdir(parents=True)
        (tmp_path / name / "a.py").write_text("x = 1")
        (tmp_path / name / "__pycache__" / "a.pyc").write_text(name)
    one, other = tmp_path / "one", tmp_path / "other"
    assert digest(one) == digest(other)
    (other / "a.py").write_text("x = 2")
    assert digest(one) != digest(other)
    (other / "a.py").write_text("x = 1")
    (other / "a.py").rename(other / "b.py")
    assert digest(one) != digest(other)
    assert digest(tmp_path / "nothing") == ""


def test_a_large_file_counts_by_size_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_cache, "READ_WHOLE", 4)
    file = tmp_path / "weights"
    file.write_bytes(b"12345")
    before = digest(file)
    os.utime(file, ns=(1, 1))
    assert digest(file) != before


def test_a_stage_stands_for_what_it_was_made_from(tmp_path: Path) -> None:
    finished(tmp_path / "cache", tmp_path / "out")
    before = digest(tmp_path / "out")
    (tmp_path / "out" / "more").write_text("later")
    assert digest(tmp_path / "out") == before == key_of("data", {"seed": "0"})


def test_keys_follow_every_input(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1")
    inputs = read_inputs(["seed=0", f"train=@{tmp_path / 'f'}", "text=a=b"])
    assert inputs["text"] == "a=b"
    assert '"sqlite"' in inputs["versions"]
    keys = {key_of("data", inputs), key_of("grpo", inputs), key_of("data", {**inputs, "seed": "1"})}
    (tmp_path / "f").write_text("2")
    keys.add(key_of("data", read_inputs(["seed=0", f"train=@{tmp_path / 'f'}", "text=a=b"])))
    assert len(keys) == 4
    with pytest.raises(ValueError, match="name=value or name=@path, not 'seed'"):
        read_inputs(["seed"])


def test_one_line_says_what_happened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = str(tmp_path / "cache")
    assert main(["take", cache, "data", str(tmp_path / "1"), "seed=0", "size=5"]) == 3
    assert main(["keep", cache, str(tmp_path / "1"), "--seconds", "12"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["take", cache, "data", str(tmp_path / "2"), "seed=0", "size=5"]) == 0
    line = capsys.readouterr().out
    assert line.startswith("── data: nothing it depends on has changed, taken from the run of 20")
    assert line.endswith(" (12 s then)\n")
    assert main(["take", cache, "data", str(tmp_path / "3"), "seed=1", "size=5"]) == 3
    assert capsys.readouterr().out == "── data: not as in earlier runs: seed\n"
