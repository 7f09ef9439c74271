"""Analysis of results: measures, paired comparisons, flips, findings."""
