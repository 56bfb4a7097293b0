// Light or dark: as Airflow around us is, or else as the system says (which the style sheet knows).

function airflowTheme() {
  try {
    if (window.parent !== window) {
      const classes = window.parent.document.documentElement.classList;
      if (classes.contains("dark")) return "dark";
      if (classes.contains("light")) return "light";
    }
    const stored = window.localStorage.getItem("theme"); // where Airflow keeps its choice
    return stored === "dark" || stored === "light" ? stored : null;
  } catch {
    return null; // framed by somebody else, or without storage
  }
}

function follow() {
  const theme = airflowTheme();
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

follow();
window.addEventListener("storage", follow);
try {
  if (window.parent !== window) {
    new MutationObserver(follow).observe(window.parent.document.documentElement, {
      attributes: true, attributeFilter: ["class"],
    });
  }
} catch {
  // Not ours to look at.
}
