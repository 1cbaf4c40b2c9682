"""Modes that a captured program switches: the graph switches them too, in blocks that an error leaves as well."""

import pytest
import torch

import clew


def body_of(captured):
    """The code from the first line that is no guard of the inputs on."""
    lines = captured.code.split("def forward")[1].split("\n")[1:]
    return [
        line.strip() for line in lines if line.strip() and "require" not in line and not line.strip().startswith("if ")
    ]


def in_blocks(x, w):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = w * a
    with torch.set_grad_enabled(x.shape[0] > 1):
        return b + 1, a


@torch.no_grad()
def without_gradient(x):
    return x * 3


@torch.set_grad_enabled(False)
def switched_off(x):
    return x * 4


@torch.inference_mode()
def inferred(x):
    return x - 1


@torch.autocast("cpu", dtype=torch.bfloat16)
def lowered(x):
    return x @ x


def decorated(x, w):
    return without_gradient(w), switched_off(w), inferred(x), lowered(w), w * x


def made_inside(x, w):
    @torch.set_grad_enabled(False)
    def inner(y):
        return y * 5

    return inner(w), w * 2


def kept_off(x, w):
    torch.set_grad_enabled(False)
    y = w * x
    torch.set_grad_enabled(True)
    return y, w * 2


shared = torch.no_grad()
made_outside = torch.set_grad_enabled(True)


def of_the_surroundings(x, w):
    with shared:
        a = w * 2
    with made_outside:
        b = w * 3
    with torch.no_grad(), torch.enable_grad():
        c = w * 4
    return a, b, c


PROGRAMS = [in_blocks, decorated, made_inside, kept_off, of_the_surroundings]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("mode", [True, False])
def test_results_require_gradients_as_in_the_original(program, mode):
    x, w = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
    captured = clew.trace(program, (x, w))
    with torch.set_grad_enabled(mode):
        for size in (2, 1):
            if size == 1 and program is decorated:
                continue
            given, expected = captured(x[:size], w[:size]), program(x[:size], w[:size])
            mode_after = torch.is_grad_enabled()
            torch.set_grad_enabled(mode)
            for one, other in zip(given, expected, strict=True):
                assert torch.equal(one, other) and one.dtype == other.dtype
                assert one.requires_grad == other.requires_grad and one.is_inference() == other.is_inference()
            assert mode_after is (True if program in (kept_off, of_the_surroundings) else mode)
    assert torch.is_grad_enabled()


def test_blocks_are_written_as_blocks():
    captured = clew.trace(in_blocks, (torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)))
    code = body_of(captured)
    assert code[0] == "with torch.no_grad():" and "with torch.enable_grad():" in code
    assert any(line.startswith("with torch.set_grad_enabled(") for line in code)
    assert "_set_grad_enabled(" not in captured.code.replace("torch.set_grad_enabled(", "")


def test_generated_code_captured_again_is_the_same():
    x, w = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
    once = clew.trace(in_blocks, (x, w))
    once(x, w)  # a first call remembers things, which a capture would take for state
    twice = clew.trace(once, (x, w))
    heads = [
        [line.split("(")[0] for line in body_of(captured) if line.startswith("with")] for captured in (once, twice)
    ]
    assert heads[0] == heads[1] == ["with torch.no_grad", "with torch.enable_grad", "with torch.set_grad_enabled"]


def test_a_failing_guard_inside_of_a_block_leaves_the_mode():
    def program(x):
        with torch.no_grad():
            y = x * 2
            if y.sum() > 0:
                return y
        return x

    captured = clew.trace(program, (torch.ones(2),), control_flow="guard")
    with pytest.raises(clew.errors.GuardError):
        captured(-torch.ones(2))
    assert torch.is_grad_enabled()
    assert captured._plan() is None


def test_a_block_inside_of_a_try():
    def program(x):
        try:
            with torch.no_grad():
                return torch.linalg.cholesky(x)
        except RuntimeError:
            return x

    captured = clew.trace(program, (torch.eye(2),))
    assert "with torch.no_grad():" in captured.code
    with pytest.raises(clew.errors.GuardError):
        captured(-torch.eye(2))
    assert torch.is_grad_enabled()


def test_the_gradient_mode_is_guarded_where_a_result_was_asked_for_its_gradient():
    def program(x):
        y = x * 2
        return y + 1 if y.requires_grad else y

    x = torch.ones(2, requires_grad=True)
    captured = clew.trace(program, (x,))
    assert torch.equal(captured(x), program(x))
    with torch.no_grad(), pytest.raises(clew.errors.GuardError, match="is_grad_enabled"):
        captured(x)


def test_a_mode_alone_guards_nothing():
    x, w = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
    captured = clew.trace(in_blocks, (x, w))
    assert not any("grad" in str(guard) for guard in captured.guards)
