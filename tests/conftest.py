"""Settings of all tests: what hypothesis remembers is kept out of the checkout, as it holds paths of one machine."""

import tempfile
from pathlib import Path

from hypothesis.configuration import set_hypothesis_home_dir

set_hypothesis_home_dir(Path(tempfile.gettempdir()) / "counterveil-hypothesis")
