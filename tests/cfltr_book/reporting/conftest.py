"""What tests of figures share: no window, and the folder of a run."""

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import pytest


@pytest.fixture
def canvas() -> Iterator[None]:
    """No window, and the plotting defaults as they were."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with mpl.rc_context():
        yield
    plt.close("all")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the figures of a run, which need not exist before."""
    monkeypatch.setenv("CFLTR_RUN_DIR", str(tmp_path / "new" / "run"))
    return tmp_path / "new" / "run" / "figures"
