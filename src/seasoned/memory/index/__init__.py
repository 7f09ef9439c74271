"""Exact Jaccard search: index, blocks, kernels."""
