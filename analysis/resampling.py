"""Bootstrap draws of Python's own generator, in bulk: equal seeds give the draws of the released scripts."""

import random

import numpy as np


def resamples(n, n_boot, seed):
    """Yield resamples of n things drawn with replacement.

    Parameters
    ----------
    n : int
        Things, at least 1.
    n_boot : int
        Resamples.
    seed : int
        Seed of `random.Random`.

    Yields
    ------
    ndarray of int, shape (n,)
        Indices: the next n values of ``random.Random(seed).randrange(n)``.

    Notes
    -----
    `randrange` takes the top bits of a 32-bit Mersenne Twister output and rejects values that are too large.
    NumPy has the same twister, so its state is set to Python's and the outputs are drawn in bulk.

    Examples
    --------
    >>> rng = random.Random(7)
    >>> [drawn.tolist() for drawn in resamples(3, 2, 7)] == [[rng.randrange(3) for _ in "abc"] for _ in "ab"]
    True
    """
    *key, position = random.Random(seed).getstate()[1]
    twister = np.random.MT19937()
    state = {"key": np.array(key, dtype=np.uint32), "pos": position}
    twister.state = {"bit_generator": "MT19937", "state": state}
    shift = np.uint64(32 - n.bit_length())
    pool = np.empty(0, dtype=np.intp)
    for _ in range(n_boot):
        while len(pool) < n:
            drawn = (twister.random_raw(max(n, 1 << 16)) >> shift).astype(np.intp)
            pool = np.concatenate([pool, drawn[drawn < n]])
        yield pool[:n]
        pool = pool[n:]
