"""Which scheme and settings suit a table: a cost model, and a search with the simulator."""

from tidetable.advisor.calibration import Calibration, Machine
from tidetable.advisor.candidates import candidates
from tidetable.advisor.model import Prediction, predict
from tidetable.advisor.search import Advice, Choice, advise
from tidetable.advisor.wishes import Wishes
from tidetable.advisor.workload import Workload

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
