"""Programs with ``assert`` in them, kept out of the test files, where pytest rewrites every assert."""


def asserts_positive(x):
    assert x.sum() > 0
    return x


def asserts_with_message(x):
    assert x.sum() > 0, "must be positive"
    return x


def asserts_a_truth(x):
    positive = x.sum() > 0
    assert positive
    return x * 2
