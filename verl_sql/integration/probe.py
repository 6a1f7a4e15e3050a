"""Asks a fresh process, and a Ray worker below it, whether verl has loaded our plugin; a program of its own.

verl loads plugins while it is imported and hides their errors, so only a process that imports verl first, as the
trainer and its workers do, can tell. `verl-sql doctor` runs this under the launcher, since Ray may hang.

    python -m verl_sql.integration.probe FILE     writes {"driver": {...}, "worker": {...}} to FILE as JSON
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

PLUGIN = "verl_sql.integration.plugin"


def look() -> dict[str, Any]:
    """What importing verl alone has registered in this process.

    Returns:
        `loaded`: whether verl loaded the plugin; `error`: why the plugin cannot be imported, or an empty text;
        `registrations`: name -> whether verl's registries hold it.
    """
    importlib.import_module("verl")
    loaded = PLUGIN in sys.modules
    try:
        registrations = importlib.import_module(PLUGIN).visible_registrations()
    except Exception as error:  # whatever is wrong with the plugin is the answer
        return {"loaded": loaded, "error": f"{type(error).__name__}: {error}", "registrations": {}}
    return {"loaded": loaded, "error": "", "registrations": registrations}


def look_in_worker() -> dict[str, Any]:
    """The same as `look`, in a worker of a Ray instance of one CPU that is started for it and shut down again."""
    import ray

    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        found: dict[str, Any] = ray.get(ray.remote(look).remote())
    finally:
        ray.shutdown()
    return found


def main(out: Path) -> None:
    """Write what the driver sees at once, and what a worker sees as soon as it is known."""
    found = {"driver": look()}
    out.write_text(json.dumps(found), encoding="utf-8")
    found["worker"] = look_in_worker()
    out.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
