"""Exceptions: what was found, what was expected, and what to do."""

from __future__ import annotations

__all__ = [
    "HopedgnError",
    "HopedgnFileNotFoundError",
    "HopedgnTypeError",
    "HopedgnWarning",
    "NotFittedError",
]


class HopedgnError(ValueError):
    """An argument, a file or a run that cannot be used.

    ``code`` is a stable word for programs, the same that ``hopedgn --json`` prints; messages may change between versions, codes do not.

    >>> import hopedgn
    >>> try:
    ...     hopedgn.Events.from_numpy(src=[1, 2], dst=[2, 3], time=[5.0, 4.0])
    ... except hopedgn.HopedgnError as error:
    ...     print(error.code)
    time-backwards
    """

    code: str | None

    def __init__(self, message: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[HopedgnError], tuple[str, str | None]]:
        return type(self), (str(self), self.code)


class HopedgnTypeError(HopedgnError, TypeError):
    """A column or an argument of the wrong type. Also a :class:`TypeError`."""


class HopedgnFileNotFoundError(HopedgnError, FileNotFoundError):
    """A file or folder that is not there. Also a :class:`FileNotFoundError`."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NotFittedError(HopedgnError, AttributeError):
    """A model that was not fitted yet. Also an :class:`AttributeError`, as in scikit-learn."""


class HopedgnWarning(UserWarning):
    """Something worth knowing that is no error, such as a training that was interrupted."""


def make_error(message: str, code: str | None, kind: str | None) -> HopedgnError:
    """The exception for an error of the native module."""
    kinds: dict[str | None, type[HopedgnError]] = {
        "missing": HopedgnFileNotFoundError,
        "type": HopedgnTypeError,
    }
    return kinds.get(kind, HopedgnError)(message, code)
