"""The one exception that means: the data are wrong, not the code."""


class DataError(ValueError):
    """Input that cannot be used as it is.

    The message names the file, line, field and value, and says what was expected. The command line turns it into exit status 1.

    Examples
    --------
    >>> raise DataError("answers.csv, line 3, field 'round': 'x' is not a whole number")
    Traceback (most recent call last):
    analysis.errors.DataError: answers.csv, line 3, field 'round': 'x' is not a whole number
    """


def choice(name, value, allowed):
    """Return `value` if it is one of `allowed`, else raise a ``ValueError`` that lists them.

    Examples
    --------
    >>> choice("tie", "alphabetical", ("alphabetic", "undecided"))
    Traceback (most recent call last):
    ValueError: tie='alphabetical': expected one of alphabetic, undecided
    """
    if value not in allowed:
        raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(str, allowed))}")
    return value
