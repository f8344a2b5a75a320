"""Reports and pages that show people what their steps are."""
