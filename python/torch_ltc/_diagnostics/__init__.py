"""Reports and pages that show users what their steps consist of."""
