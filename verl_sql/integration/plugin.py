"""What verl loads in each of its processes (entry point group `verl.plugins`).

verl 0.9.1 imports this module while it is itself being imported, and hides its errors at debug level; the launcher
and `verl-sql doctor` therefore import it on their own and ask `visible_registrations`.
"""

from verl_sql.integration import cpu_platform

if cpu_platform.is_requested():
    cpu_platform.install()


def register() -> None:
    """Nothing is left to do: loading this module registers. It is the attribute that the entry point names."""


def visible_registrations() -> dict[str, bool]:
    """What this plugin registers, by name, and whether verl's registries of this process hold it."""
    from verl.plugin.platform import PlatformRegistry

    seen = {}
    if cpu_platform.is_requested():
        seen["platform cpu"] = PlatformRegistry.get("cpu") is not None
    return seen
