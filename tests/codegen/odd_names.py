"""Functions and classes whose names are those of packages, builtins and parts of the generated code."""

# ruff: noqa: A001, N801, N802 - the odd names are the point


def forward(x):
    return ("forward", x)


def math(x):
    return ("math", x)


def torch(x):
    return ("torch", x)


def List(x):
    return ("List", x)


def self(x):
    return ("self", x)


def len(x):
    return ("len", x)


def sqrt(x):
    return ("sqrt", x)


def Path(x):
    return x + 1


def nn(x):
    return x * 2


def _HERE(x):
    return x - 3


def __private(x):
    return x * 5


class Holder:
    """A class with functions in it."""

    @staticmethod
    def sqrt(x):
        return ("Holder.sqrt", x)

    class Inner:
        @staticmethod
        def double(x):
            return x * 2


private = __private
