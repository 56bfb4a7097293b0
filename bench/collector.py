"""The JVM's garbage collector, seen from the benchmark.

All systems share one JVM. What one leaves behind, the next one would have to wait for while the
JVM collects it: with 1 GB live, up to half a second in an update of one. So it is collected between
updates, and what is collected during an update is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Collector:
    """Collects, and knows the seconds that collections have taken."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm  # type: ignore[attr-defined]
        self._beans = self._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()

    def collect(self) -> None:
        """Collects everything that nobody needs any more."""
        self._jvm.java.lang.System.gc()

    @property
    def seconds(self) -> float:
        """Of all collections since the JVM began; nothing else runs meanwhile."""
        return float(sum(bean.getCollectionTime() for bean in self._beans)) / 1000
