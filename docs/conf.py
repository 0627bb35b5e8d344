"""How the pages become a site: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "spark_jobs")]

import generated  # noqa: E402

project = "Tidemill"
copyright = "the Tidemill authors, Apache-2.0"
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
nitpicky = False
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 3
# TOML and shells are shown as they are typed.
suppress_warnings = ["misc.highlighting_failure"]
highlight_language = "none"
html_theme = "furo"
html_title = "Tidemill"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
# Nothing is fetched from elsewhere, and no page says who built it or when.
html_show_sphinx = False
html_last_updated_fmt = None


def setup(app: object) -> None:
    """Write the pages that are made of the code before the others are read."""
    generated.write()
