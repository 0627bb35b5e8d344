"""Registers Tidemill with an Airflow whose plugins folder is this one.

Where the package `tidemill` is installed, its entry point has registered the plugin already.
"""

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="tidemill"):
    from tidemill_airflow.plugin import TidemillPlugin  # noqa: F401  Airflow finds it by looking
