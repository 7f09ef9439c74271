"""The search by rarity, compiled by numba: products of vectors of terms, norms, and the rows most like a query."""

from __future__ import annotations

from typing import Any

import numpy as np

from seasoned.memory.index.compiled import CompiledFunctions
from seasoned.memory.index.kernel import SLACK

__all__ = ["N_BANDS", "add_by_feature", "compile_vectors", "nearest_rows", "norms_of_rows", "products_of_sets"]

N_BANDS = 1024
_COMPARISON = 100  # the cost of an exact comparison, in postings read
_LOOK = 2  # the cost of a look at the bound of a row, in postings read
_SAMPLE = 4096
_MOST_FIRST = 16  # rows that are compared first, for each that is wanted
_MOST_TRIES = 8
_LOWER = 0.75  # by which the bound of these rows is lowered while they are too few
_BETWEEN_LOOKS = 4  # of the postings that are left, one part is read before the next look
_MOST_COUNTED = 1024  # features of a row: with more, its product and their number do not fit into one float64

_compiled = CompiledFunctions(globals())


def compile_vectors() -> None:
    """Compile the functions of this module.

    Raises:
        MissingExtraError: numba is not installed, or does not load.
    """
    _compiled.compile()


@_compiled(
    "int64(int64[::1], float64[::1], int64[::1], uint32[::1], int64[::1], uint32[::1], int64, float64[::1],"
    " float64[::1], int64[::1])"
)
def add_by_feature(
    of_query: Any,
    values: Any,
    list_starts: Any,
    holders: Any,
    starts: Any,
    terms: Any,
    n_listed: Any,
    of_term: Any,
    sums: Any,
    found: Any,
) -> Any:
    """Add the values of some terms to the features that hold them; return how many features were found.

    Args:
        of_query, values: the terms, and the value of each, above 0.
        list_starts, holders: for each term where its features start, of the first `n_listed` features.
        starts, terms: for each feature where its terms start.
        of_term: a place for each term, all 0 before and after.
        sums: a place for each feature, 0 before for those that are found.
        found: room for the features that are found.
    """
    n = 0
    for i in range(len(of_query)):
        term, value = of_query[i], values[i]
        of_term[term] = value
        if term + 1 >= len(list_starts):
            continue
        for p in range(list_starts[term], list_starts[term + 1]):
            feature = holders[p]
            if sums[feature] == 0.0:
                found[n] = feature
                n += 1
            sums[feature] += value
    for feature in range(n_listed, len(starts) - 1):
        total = 0.0
        for p in range(starts[feature], starts[feature + 1]):
            total += of_term[terms[p]]
        if total > 0.0:
            sums[feature] = total
            found[n] = feature
            n += 1
    for term in of_query:
        of_term[term] = 0.0
    return n


@_compiled(
    "void(uint32[::1], uint32[::1], int64[::1], int64[::1], uint32[::1], float64[::1], uint32[::1], float64[::1])"
)
def norms_of_rows(
    features: Any, starts: Any, rows: Any, term_starts: Any, terms: Any, squared: Any, counts: Any, norms: Any
) -> None:
    """Fill in the norm of each row. `counts` has a place for each term, all 0 before and after."""
    for i in range(len(rows)):
        total = 0.0
        for p in range(starts[rows[i]], starts[rows[i] + 1]):
            for q in range(term_starts[features[p]], term_starts[features[p] + 1]):
                count = counts[terms[q]]
                total += (2.0 * count + 1.0) * squared[terms[q]]  # (count + 1)^2 - count^2
                counts[terms[q]] = count + np.uint32(1)
        for p in range(starts[rows[i]], starts[rows[i] + 1]):
            for q in range(term_starts[features[p]], term_starts[features[p] + 1]):
                counts[terms[q]] = 0
        norms[i] = np.sqrt(total) if total > 0.0 else 1.0


@_compiled(
    "void(uint32[::1], int64[::1], int64[::1], uint32[::1], float64[::1], uint32[::1], uint32[::1], uint32[::1],"
    " int64[::1], float64[::1], float64[:, ::1])"
)
def products_of_sets(
    features: Any,
    sizes: Any,
    term_starts: Any,
    terms: Any,
    squared: Any,
    last: Any,
    before: Any,
    term_of: Any,
    set_of: Any,
    count_of: Any,
    products: Any,
) -> None:
    """Fill in the products of the vectors of sets. `last` has a place for each term, all 0 before and after.

    The sets that hold a term are a list: its last entry is in `last`, counted from 1, and those before in `before`.
    """
    holders, counts = np.empty(len(sizes), dtype=np.int64), np.empty(len(sizes))
    n, p = np.uint32(0), 0
    for number in range(len(sizes)):
        for _ in range(sizes[number]):
            for q in range(term_starts[features[p]], term_starts[features[p] + 1]):
                term = terms[q]
                entry = last[term]
                if entry > 0 and set_of[entry - 1] == number:
                    count_of[entry - 1] += 1.0
                else:
                    term_of[n], set_of[n], count_of[n], before[n] = term, number, 1.0, entry
                    n += np.uint32(1)
                    last[term] = n
            p += 1
    for entry in range(n):
        term = term_of[entry]
        at = last[term]
        last[term] = 0
        n_holders = 0
        while at > 0:
            holders[n_holders], counts[n_holders] = set_of[at - 1], count_of[at - 1]
            n_holders += 1
            at = before[at - 1]
        for i in range(n_holders):
            value = squared[term] * counts[i]
            for j in range(i, n_holders):
                products[holders[i], holders[j]] += value * counts[j]
    for i in range(len(sizes)):
        for j in range(i):
            products[j, i] = products[i, j]


@_compiled("float64(float64[::1], int64[::1], float64)")
def _offer(best: Any, n_best: Any, near: Any) -> Any:
    """Put a similarity into the heap of the best, the least first; return the least once there are as many as fit."""
    n = n_best[0]
    if n < len(best):
        at = n
        n_best[0] = n + 1
        while at > 0 and near < best[(at - 1) >> 1]:
            best[at] = best[(at - 1) >> 1]
            at = (at - 1) >> 1
        best[at] = near
    elif near > best[0]:
        at = 0
        while 2 * at + 1 < n:
            below = 2 * at + 1
            if below + 1 < n and best[below + 1] < best[below]:
                below += 1
            if near <= best[below]:
                break
            best[at] = best[below]
            at = below
        best[at] = near
    return best[0] if n_best[0] == len(best) else -1.0


@_compiled(
    "float64(uint32[::1], uint32[::1], float32[::1], float64[::1], int64[::1], uint32[::1], float64[::1], uint32[::1],"
    " float64[::1], float64, int64[::1], int64, int64, float64[::1], float64[::1], int64[::1], float64)"
)
def _compare(
    tokens: Any,
    starts: Any,
    at_least: Any,
    exact: Any,
    term_starts: Any,
    terms: Any,
    squared: Any,
    counts: Any,
    values: Any,
    norm: Any,
    rows: Any,
    first: Any,
    last: Any,
    near: Any,
    best: Any,
    n_best: Any,
    least: Any,
) -> Any:
    """Fill in the similarity of the rows found from `first` to `last`, or a bound below `least`; return the new least.

    Similarities of -1 belong to rows that share nothing with the query.
    """
    for i in range(first, last):
        row = rows[i]
        product = 0.0
        for p in range(starts[row], starts[row + 1]):
            product += values[tokens[p]]
        near[i] = product / (norm * at_least[row]) if product > 0.0 else -1.0
        if near[i] <= 0.0 or near[i] < least:
            continue
        if np.isnan(exact[row]):
            total = 0.0
            for p in range(starts[row], starts[row + 1]):
                for q in range(term_starts[tokens[p]], term_starts[tokens[p] + 1]):
                    count = counts[terms[q]]
                    total += (2.0 * count + 1.0) * squared[terms[q]]  # (count + 1)^2 - count^2
                    counts[terms[q]] = count + np.uint32(1)
            for p in range(starts[row], starts[row + 1]):
                for q in range(term_starts[tokens[p]], term_starts[tokens[p] + 1]):
                    counts[terms[q]] = 0
            exact[row] = np.sqrt(total) if total > 0.0 else 1.0
        near[i] = product / (norm * exact[row])
        if near[i] >= least:
            least = max(least, _offer(best, n_best, near[i]) - SLACK)
    return least


@_compiled("void(int64[::1], float64[::1], int64, float64[::1])")
def _fill_rest(lengths: Any, most: Any, first: Any, rest: Any) -> None:
    """Fill in for each size how much the lists of the bands from `first` on add at most to a row of that size."""
    rest[0] = 0.0
    band, left = first, lengths[first] if first < len(lengths) else 0
    for size in range(1, len(rest)):
        while left == 0 and band + 1 < len(lengths):
            band += 1
            left = lengths[band]
        rest[size] = rest[size - 1]
        if left > 0:
            rest[size] += most[band]
            left -= 1


@_compiled("float64(float64, float64)")
def _product(total: Any, unit: Any) -> Any:
    """Return what the features that were read add to a row's product, without the unit that counts each of them."""
    return total - np.floor(total / unit) * unit


@_compiled("float64(float64, float64, int32, float64[::1])")
def _at_most(total: Any, unit: Any, size: Any, rest: Any) -> Any:
    """Return the largest product that a row of this size may have."""
    n_read = np.floor(total / unit)
    return total - n_read * unit + rest[size - np.int64(n_read)]


@_compiled("int64(int32[::1], float32[::1], float64[::1], float64, float64[::1], float64)")
def _n_above(sizes: Any, at_least: Any, totals: Any, unit: Any, rest: Any, reached: Any) -> Any:
    """Return how many rows may have a product of `reached` times their norm."""
    n = 0
    for row in range(len(sizes)):
        n += _at_most(totals[row], unit, sizes[row], rest) >= reached * at_least[row]
    return n


@_compiled("float64(float32[::1], float64[::1], float64, int64)")
def _promising(at_least: Any, totals: Any, unit: Any, k: Any) -> Any:
    """Return a quotient of product and norm that about 3 k rows reach, by a sample of them."""
    stride = max(1, len(totals) // _SAMPLE)
    highest = 0.0
    for row in range(0, len(totals), stride):
        highest = max(highest, _product(totals[row], unit) / at_least[row])
    if highest == 0.0:
        return 0.0
    histogram = np.zeros(N_BANDS, dtype=np.int64)
    scale = (N_BANDS - 1) / highest
    for row in range(0, len(totals), stride):
        histogram[int(_product(totals[row], unit) / at_least[row] * scale)] += 1
    wanted, step = max(1, 3 * k // stride), N_BANDS - 1
    n = histogram[step]
    while step > 0 and n < wanted:
        step -= 1
        n += histogram[step]
    return step / scale


@_compiled("int64(uint32[::1], uint32[::1], float64[::1], int64[::1], int64[::1], float64[::1], int64[::1])")
def _order_lists(
    vocabulary: Any, list_starts: Any, values: Any, order: Any, lengths: Any, most: Any, begins: Any
) -> Any:
    """Order the lists of features with a value by bands of about one value, the largest first; count their postings.

    Fill in the places of the lists, the number of lists of each band, its largest value, and where it begins.
    """
    place, n_lists, highest = np.empty(len(vocabulary), dtype=np.int64), 0, 0.0
    for at in range(len(vocabulary) - 1):
        value = values[vocabulary[at]]
        place[n_lists] = at
        n_lists += value > 0.0  # no branch: which tokens have a value is hard to foresee
        highest = max(highest, value)
    scale = (N_BANDS - 1) / highest if highest > 0.0 else 0.0
    n_postings: Any = 0
    for i in range(n_lists):
        value = values[vocabulary[place[i]]]
        band = N_BANDS - 1 - int(value * scale)
        lengths[band] += 1
        most[band] = max(most[band], value)
        n_postings += np.int64(list_starts[place[i] + 1]) - np.int64(list_starts[place[i]])
    for band in range(N_BANDS):
        begins[band + 1] = begins[band] + lengths[band]
    ends = begins.copy()
    for i in range(n_lists):
        band = N_BANDS - 1 - int(values[vocabulary[place[i]]] * scale)
        order[ends[band]] = place[i]
        ends[band] += 1
    return n_postings


@_compiled(
    "int64(uint32[::1], uint16[::1], uint32[::1], float64[::1], int64[::1], int64, int64, float64, float64[::1])"
)
def _read_band(
    list_starts: Any, rows: Any, vocabulary: Any, values: Any, order: Any, first: Any, last: Any, mark: Any, totals: Any
) -> Any:
    """Add the values of some lists, each with the mark, to their rows; return how many postings were read."""
    n_read: Any = 0
    for i in range(first, last):
        at = order[i]
        value = mark + values[vocabulary[at]]
        for p in range(list_starts[at], list_starts[at + 1]):
            totals[rows[p]] += value
        n_read += np.int64(list_starts[at + 1]) - np.int64(list_starts[at])
    return n_read


@_compiled("int64(float32[::1], float64[::1], float64, float64, uint8[::1], int64[::1], int64, int64)")
def _take_first(
    at_least: Any, totals: Any, unit: Any, reached: Any, seen: Any, found: Any, n_found: Any, most: Any
) -> Any:
    """Find rows whose product is so many times their norm, up to `most`, and mark them; return how many there are."""
    for row in range(len(totals)):
        if _product(totals[row], unit) >= reached * at_least[row] and seen[row] == 0 and n_found < most:
            found[n_found] = row
            n_found += 1
            seen[row] = 1
    return n_found


@_compiled(
    "float64(uint32[::1], uint32[::1], float32[::1], float64[::1], int64[::1], uint32[::1], float64[::1], uint32[::1],"
    " float64[::1], float64, float64[::1], float64, uint8[::1], int64[::1], int64, float64[::1], float64[::1],"
    " int64[::1], float64)"
)
def _compare_first(
    tokens: Any,
    starts: Any,
    at_least: Any,
    exact: Any,
    term_starts: Any,
    terms: Any,
    squared: Any,
    counts: Any,
    values: Any,
    norm: Any,
    totals: Any,
    unit: Any,
    seen: Any,
    found: Any,
    n_found: Any,
    near: Any,
    best: Any,
    n_best: Any,
    least: Any,
) -> Any:
    """Compare the rows that share most, as far as was read; return the new least. `n_best[1]` counts those found."""
    reached = max(_promising(at_least, totals, unit, len(best)), least * norm)
    most = n_found + _MOST_FIRST * len(best)
    for _ in range(_MOST_TRIES):
        first = n_found
        if reached > 0.0:
            n_found = _take_first(at_least, totals, unit, reached, seen, found, n_found, min(len(totals), most))
        least = _compare(
            tokens,
            starts,
            at_least,
            exact,
            term_starts,
            terms,
            squared,
            counts,
            values,
            norm,
            found,
            first,
            n_found,
            near,
            best,
            n_best,
            least,
        )
        if n_best[0] == len(best):
            break
        reached *= _LOWER
    n_best[1] = n_found
    return least


@_compiled(
    "int64(uint32[::1], uint32[::1], int32[::1], uint32[::1], uint32[::1], uint16[::1], float32[::1], float64[::1],"
    " int64[::1], uint32[::1], float64[::1], uint32[::1], float64[::1], float64, float64[::1], int64[::1], float64,"
    " float64[::1], uint8[::1], int64[::1], float64[::1])"
)
def nearest_rows(
    tokens: Any,
    starts: Any,
    sizes: Any,  # the block
    vocabulary: Any,
    list_starts: Any,
    list_rows: Any,  # its lists
    at_least: Any,
    exact: Any,  # its norms
    term_starts: Any,
    terms: Any,
    squared: Any,
    counts: Any,  # the terms of features
    values: Any,
    norm: Any,  # the query
    best: Any,
    n_best: Any,
    least: Any,  # the best similarities so far
    room: Any,
    seen: Any,
    found: Any,
    near: Any,  # room to work in; the first two all 0 before and after
) -> Any:
    """Find the rows that may be among the best, with their similarities; return how many.

    The lists are read in the order of what a feature adds to the product. Now and then each row is bounded by what it
    has and by the largest summands that its other features may still add. Once comparing the rows that may be similar
    enough costs less than reading on, they are compared.

    A row's total holds two numbers: the product as far as it was read, and how many features were. Each of these adds a
    mark beside its value, a power of 2 that no product reaches.
    """
    n_rows, n_found = len(sizes), 0
    totals, order = room[:n_rows], np.empty(len(vocabulary), dtype=np.int64)
    lengths, most = np.zeros(N_BANDS, dtype=np.int64), np.zeros(N_BANDS)
    begins = np.zeros(N_BANDS + 1, dtype=np.int64)
    left: Any = _order_lists(vocabulary, list_starts, values, order, lengths, most, begins)
    largest = np.int64(sizes[n_rows - 1]) if n_rows > 0 else 0
    rest = np.zeros(1 + largest)
    _fill_rest(lengths, most, 0, rest)
    unit = 2.0 ** np.ceil(np.log2(1.0 + 2.0 * rest[largest]))
    mark = unit if largest <= _MOST_COUNTED else 0.0  # of large rows the features are not counted: it would cost digits
    band, next_look, is_first = 0, left - left // _BETWEEN_LOOKS, True
    while True:
        is_last = left <= _LOOK * n_rows
        while band < N_BANDS and (is_last or left > next_look):
            left -= _read_band(
                list_starts, list_rows, vocabulary, values, order, begins[band], begins[band + 1], mark, totals
            )
            band += 1
        next_look = left - left // _BETWEEN_LOOKS
        _fill_rest(lengths, most, band, rest)
        if is_first or is_last or band == N_BANDS:
            is_first = False
            least = _compare_first(
                tokens,
                starts,
                at_least,
                exact,
                term_starts,
                terms,
                squared,
                counts,
                values,
                norm,
                totals,
                unit,
                seen,
                found,
                n_found,
                near,
                best,
                n_best,
                least,
            )
            n_found = n_best[1]
        if is_last or band == N_BANDS:
            break
        saved: Any = left - next_look + _LOOK * n_rows
        if _n_above(sizes, at_least, totals, unit, rest, least * norm) * _COMPARISON < saved:
            break
    first = n_found
    for row in range(n_rows):
        if len(vocabulary) == 0:  # a block without lists: every row is compared
            found[row] = row
            n_found += 1
            continue
        product = _at_most(totals[row], unit, sizes[row], rest)
        if product > 0.0 and product >= least * norm * at_least[row] and seen[row] == 0:
            found[n_found] = row
            n_found += 1
    totals[:] = 0.0
    least = _compare(
        tokens,
        starts,
        at_least,
        exact,
        term_starts,
        terms,
        squared,
        counts,
        values,
        norm,
        found,
        first,
        n_found,
        near,
        best,
        n_best,
        least,
    )
    n = 0
    for i in range(n_found):
        seen[found[i]] = 0
        if near[i] > 0.0 and near[i] >= least:
            found[n], near[n] = found[i], near[i]
            n += 1
    return n
