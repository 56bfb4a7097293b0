"""Errors of others: which of them stay, and what is told about them."""

from __future__ import annotations

import pytest

from tidetable.core.failures import Failure, failure

OVERFLOW = """An error occurred while calling o57.save.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/t.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailedWhileWritingRowsError(x.scala:1)
Caused by: org.apache.spark.SparkArithmeticException: [ARITHMETIC_OVERFLOW] long overflow. \
If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error. SQLSTATE: 22003
== SQL (line 1, position 1) ==
unix_micros(`expires_at`) - unix_micros(`arrived_at`) > 43200000000L
^^^^^^^^^^^^^^^^^^^^^^^^^
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.arithmeticOverflowError(x.scala:1)
"""
CAST = """[CAST_INVALID_INPUT] The value 'many' of the type "STRING" cannot be cast to "INT" \
because it is malformed. Correct the value as per the syntax, or change its target type. \
Use `try_cast` to tolerate malformed input and return NULL instead. SQLSTATE: 22018
== DataFrame ==
"cast" was called from
"""
READ = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] \
Encountered error while reading file file:/data/day=2024-03-01/part-7.parquet. Data type mismatches
"""


class AnalysisException(Exception):
    """As PySpark's is called, classic and Connect."""


class PanicException(BaseException):
    """As pyo3's is called."""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError(OVERFLOW), "It comes from the column 'expires_at'. A value of the source"),
        (RuntimeError(CAST), "The value 'many' of the type"),
        (RuntimeError(READ), "comes from the file file:/data/day=2024-03-01/part-7.parquet. The"),
        (RuntimeError("[DIVIDE_BY_ZERO] Division by zero."), "correct that row"),
        (RuntimeError("[DATETIME_OVERFLOW] Datetime operation overflow."), "correct that row"),
        (RuntimeError("[DELTA_METADATA_MISMATCH] A schema mismatch"), "no longer go together"),
        (
            RuntimeError("[DELTA_FAILED_TO_MERGE_FIELDS] Failed to merge fields 'seats' and 's'"),
            "It comes from the column 'seats'.",
        ),
        (RuntimeError("[DELTA_UNSUPPORTED_FEATURES_FOR_READ] x"), "This version cannot do that"),
        (
            RuntimeError(
                "[DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED] Path-based access is "
                "not allowed for Catalog-Managed table: /t. SQLSTATE: KD00G"
            ),
            "A catalog manages the table there, and only by way of it may it be read",
        ),
        (RuntimeError("[PARSE_SYNTAX_ERROR] Syntax error at 'x'"), "correct source.schema"),
        (AnalysisException("[INVALID_EXTRACT_FIELD_TYPE] x"), "correct the source or the YAML"),
        (OSError("Mkdirs failed: Permission denied (os error 13)"), "Give this user the right"),
        (PermissionError(13, "Permission denied"), "Give this user the right"),
        (OSError("java.io.IOException: Read-only file system"), "Give this user the right"),
        (RuntimeError("AccessDenied: 403"), "Give this user the right"),
        (PanicException("Invalid object store url"), "gave up, and will again"),
        (TypeError("'NoneType' object is not iterable"), "a fault in Tidetable"),
    ],
)
def test_what_stays_is_not_tried_again(error: BaseException, told: str) -> None:
    found = failure(error)
    assert not found.retry_can_help
    assert told in found.text
    assert "\n" not in found.text
    assert "SQLSTATE" not in found.text
    assert "try_cast" not in found.text
    assert "spark.sql.ansi" not in found.text


@pytest.mark.parametrize(
    "error",
    [
        OSError("No space left on device (os error 28)"),
        RuntimeError("Job aborted. Caused by: java.io.IOException: No space left on device"),
        RuntimeError("[TASK_WRITE_FAILED] x\nCaused by: java.io.IOException: Disk quota exceeded"),
        RuntimeError("java.lang.OutOfMemoryError: Java heap space"),
        ConnectionRefusedError("Connection refused"),
        RuntimeError("ExecutorLostFailure (executor 3 exited)"),
        RuntimeError("io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND]"),
        AnalysisException("[PATH_NOT_FOUND] Path does not exist: file:/data/x"),
        RuntimeError("a disk of the cluster is gone"),
        KeyError("x"),
    ],
)
def test_what_may_pass_is_tried_again(error: Exception) -> None:
    assert failure(error).retry_can_help


def test_the_sentence_says_what_where_and_what_to_do() -> None:
    assert failure(OSError(OVERFLOW)) == Failure(
        "[TASK_WRITE_FAILED] Task failed while writing rows to file:/t. [ARITHMETIC_OVERFLOW] long "
        "overflow. It comes from the column 'expires_at'.",
        "A value of the source cannot be computed with: correct that row, or take it out.",
    )
