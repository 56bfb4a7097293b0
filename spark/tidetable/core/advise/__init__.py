"""Which scheme and settings suit a table: a cost model, and a search with the simulator."""

from tidetable.core.advise.calibration import Calibration, Machine
from tidetable.core.advise.candidates import candidates
from tidetable.core.advise.model import Prediction, predict
from tidetable.core.advise.search import Advice, Choice, advise
from tidetable.core.advise.wishes import Wishes
from tidetable.core.advise.workload import Workload

__all__ = [
    "Advice",
    "Calibration",
    "Choice",
    "Machine",
    "Prediction",
    "Wishes",
    "Workload",
    "advise",
    "candidates",
    "predict",
]
