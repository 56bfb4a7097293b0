"""Chromium, if there is one, and Airflow's UI as a person uses it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FrameLocator, Page

ROOT = Path(__file__).resolve().parents[2]

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip
PATIENCE_MS = 30_000
"""Two cores run Airflow, its tasks and the browser at once."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser; the test is skipped, and says so, if there is none."""
    found = subprocess.run(
        [ROOT / "scripts" / "browser", "--no-install"], capture_output=True, text=True, check=False
    )
    if found.returncode:
        pytest.skip(f"no browser: {found.stderr.splitlines()[0]} (scripts/browser installs one)")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no browser: the package playwright is not installed"
    )
    # Airflow is on this machine: whatever proxy the environment names is not for it.
    proxies = ("http_proxy", "https_proxy", "all_proxy")
    environment = {n: v for n, v in os.environ.items() if n.lower() not in proxies}
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=found.stdout.strip(), headless=True, args=FLAGS, env=environment
        )
        yield browser
        browser.close()


def log_in(page: Page, url: str, user: str, password: str) -> None:
    """From Airflow's address to its start page, by way of the login form."""
    page.goto(url)
    page.get_by_label("Username").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_test_id("nav-sidebar").wait_for()


def frame(page: Page) -> FrameLocator:
    """The page inside Airflow's."""
    return page.frame_locator('iframe[title="Tidetable"]')
