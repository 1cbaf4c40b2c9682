"""A captured function works in a process that has no torch at all."""

import os
import subprocess
import sys
import textwrap

from tests.architecture.project import SOURCE

PROGRAM = """
    import sys

    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in ("torch", "jax", "tensorflow"):
                raise ImportError(f"{name} is blocked")

    sys.meta_path.insert(0, Blocked())

    import copy, math, operator, pickle
    import clew

    def f(x, n=2, *rest, flag=True, **more):
        return [x * n + 1, (x - 3) ** 2, {"low": -math.inf, "part": x}]

    traced = clew.symbolic_trace(f)
    assert type(traced).__name__ == "GraphFunction"
    expected = [7, 0, {"low": -math.inf, "part": 3}]
    assert traced(3) == f(3) == expected, traced(3)
    assert "def forward(self, x, n=2, *rest, flag=True, **more):" in traced.code
    for twin in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced)), copy.copy(traced)):
        assert twin(3) == expected and twin.code == traced.code
    traced.graph.find_nodes(op="call_function")[0].target = operator.add
    assert traced(3)[0] == 6
    assert clew.Interpreter(traced).run(3)[0] == 6
    nested = clew.symbolic_trace(lambda x, y=5: [x["a"] + y], concrete_args={"x": {"a": clew.PH}})
    assert nested({"a": 3}) == [8] and nested({"a": 3}, 1) == [4]
    assert pickle.loads(pickle.dumps(nested.graph)) is not None
    try:
        clew.symbolic_trace(lambda x: x / 0)(1)
    except ZeroDivisionError as error:
        assert "x / 0" in error.__notes__[0], error.__notes__
    else:
        raise AssertionError("no error")
    assert "torch" not in sys.modules
    print("all is well")
"""


def test_capture_code_calls_and_copies():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert run.stdout.strip() == "all is well", run.stderr
