"""The quality report: whether a table is what it must be, proved after every update.

    files.py, cells.py, figures.py
                    what the log, the notes and the table of updates say; no JVM, no row read
    rows.py         what only the rows can tell: one aggregate in Spark, every n-th update
    against_source.py
                    the live rows next to the source: two aggregates in Spark, when asked for
    volume.py       what a slot usually brings, and whether this one did
    mend.py         from which slot a replay mends what is wrong
    predict.py      what a scheme promises of its cells
    suite.py        the checks, as expectations of Great Expectations
    report.py       runs them, keeps the reports
    site.py, pages/ what they look like

Importing this imports neither pandas nor Great Expectations.
"""

from tidetable.quality.outcome import Finding, Outcome, QualityFailed
from tidetable.quality.report import latest, reports_home, validate

__all__ = ["Finding", "Outcome", "QualityFailed", "latest", "reports_home", "validate"]
