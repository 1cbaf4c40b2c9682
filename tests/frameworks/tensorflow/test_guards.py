"""Guards: what is given must be what was given, what is around must be as it was; errors say which."""

from __future__ import annotations

import keras
import numpy
import pytest
import tensorflow as tf

import clew

SCALE = 2.0
SETTINGS = {"shift": [1.0]}
X = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def plain(x, factor=2.0, *rest, name="a", **options):
    return {"out": x * factor, "name": name, "rest": [part + 1.0 for part in rest]}


def fails(function, *args, **kwargs) -> str:
    with pytest.raises(clew.GuardError) as raised:
        function(*args, **kwargs)
    return str(raised.value).splitlines()[0]


def test_tensors() -> None:
    graph = clew.trace(plain, (X,))
    assert graph(X[:1])["out"].shape == [1, 3]
    assert fails(graph, X[0]) == "the graph assumed x is f32[_, _], but the value is 'f32[3]'"
    assert fails(graph, tf.cast(X, tf.float64)) == "the graph assumed x is f32[_, _], but the value is 'f64[2, 3]'"
    assert "'a ndarray'" in fails(graph, X.numpy())
    assert "'a float'" in fails(graph, 1.0)
    assert "'variable f32[2, 3]'" in fails(graph, tf.Variable(X))


def test_plain_arguments() -> None:
    graph = clew.trace(plain, (X, 3.0), {"name": "b"})
    assert graph(X, 3.0, name="b")["name"] == "b"
    assert numpy.allclose(graph(X, 2.0, name="b")["out"], 2 * X)
    assert "name == 'b'" in fails(graph, X, 3.0, name="c")
    assert numpy.allclose(graph(X, 3, name="b")["out"], 3 * X)
    assert "factor is a number" in fails(graph, X, None, name="b")
    assert "len(rest) == 0" in fails(graph, X, 3.0, X, name="b")
    assert graph(X, 3.0, name="b", other=1)["name"] == "b"  # which the program never reads


def test_nests() -> None:
    def total(batch):
        return batch["a"] + batch["b"][0]

    graph = clew.trace(total, ({"a": X, "b": [X, None]},))
    assert numpy.allclose(graph({"a": X, "b": [X, None]}), 2 * X)
    assert "assumed 'b' in batch, which" in fails(graph, {"a": X, "c": [X, None]})
    assert "len(batch['b']) == 2" in fails(graph, {"a": X, "b": [X]})
    assert "batch['b'][0] is f32[_, _]" in fails(graph, {"a": X, "b": [X[0], None]})


def test_specs_hold_for_every_size() -> None:
    graph = clew.trace(lambda x: x / tf.cast(tf.shape(x)[0], tf.float32), (tf.TensorSpec([None, 3]),))
    assert graph(tf.ones([5, 3])).shape == [5, 3]
    assert fails(graph, tf.ones([5, 4])) == "the graph assumed x is f32[_, 3], but the value is 'f32[5, 4]'"
    assert "'f32[3]'" in fails(graph, tf.ones([3]))
    anything = clew.trace(tf.abs, (tf.TensorSpec(None, tf.float32),))
    assert anything(tf.ones([1, 2, 3])).shape == [1, 2, 3]
    assert "'i32[]'" in fails(anything, tf.constant(1))


def test_variables_around(monkeypatch: pytest.MonkeyPatch) -> None:
    def uses(x):
        return x * SCALE + SETTINGS["shift"][0]

    graph = clew.trace(uses, (X,))
    assert numpy.allclose(graph(X), 2 * X + 1)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert fails(graph, X) == "the graph assumed SCALE, SETTINGS are unchanged, but the value is 'SCALE'"
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    graph(X)
    monkeypatch.setitem(SETTINGS, "shift", [2.0])
    assert "'SETTINGS'" in fails(graph, X)


def test_attributes_of_modules_and_layers() -> None:
    class Scaled(tf.Module):
        def __init__(self):
            super().__init__()
            self.weight = tf.Variable(tf.ones([3, 2]))
            self._scale = 2.0

        def __call__(self, x):
            return x @ self.weight * self._scale

    module = Scaled()
    graph = clew.trace(module, (X,))
    module.weight.assign(2 * tf.ones([3, 2]))
    assert numpy.allclose(graph(X), module(X))
    module._scale = 3.0
    assert "scaled._scale" in fails(graph, X)
    module._scale = 2.0
    module.weight = tf.Variable(tf.zeros([3, 2]))
    assert "scaled.weight" in fails(graph, X)

    layer = keras.layers.BatchNormalization()
    graph = clew.trace(layer, (X,), {"training": True})
    layer.trainable = False
    assert "_trainable" in fails(graph, X, training=True)
    layer.trainable = True
    assert "assumed training" in fails(graph, X, training=False)


def test_a_lazy_graph_captures_again() -> None:
    """Sizes are open, and those that the program computes with are part of the graph."""
    lazy = clew.trace(plain)
    for x in (X, X[:1], X, X[:, :2], tf.cast(X, tf.float64)):
        factor = tf.cast(2.0, x.dtype)
        assert numpy.allclose(lazy(x, factor)["out"], 2.0 * x)
    assert len(lazy.captures) == 2

    def averaged(x):
        return x / x.shape[0]

    lazy = clew.trace(averaged)
    for x in (X, X[:1], X, X[:1]):
        assert numpy.allclose(lazy(x), averaged(x))
    assert len(lazy.captures) == 1


def test_sizes_are_open_on_request() -> None:
    graph = clew.trace(plain, (X,), dynamic=True)
    assert graph(tf.ones([5, 7]))["out"].shape == [5, 7]
    assert "x is f32[_, _]" in fails(graph, X[0])


def test_a_lazy_graph_builds_what_is_not_built() -> None:
    model = keras.Sequential([keras.layers.Dense(2)])
    lazy = clew.trace(model)
    first = lazy(X)
    assert numpy.allclose(first, model(X)) and numpy.allclose(lazy(X), first)
    assert len(lazy.captures) == 1


def test_numpy_where_tensorflow_makes_tensors() -> None:
    compiled = tf.function(lambda x: x * 2.0)
    graph = clew.trace(compiled, (numpy.ones([2], numpy.float32),))
    assert graph(numpy.full([2], 3.0, numpy.float32)).numpy().tolist() == [6.0, 6.0]
    frozen = clew.trace(lambda x, y: x * y, (X, numpy.float32(2.0)))
    assert numpy.allclose(frozen(X, numpy.float32(2.0)), 2 * X)
    assert "the same array of NumPy" in fails(frozen, X, numpy.float32(3.0))


def test_a_size_that_is_not_known_is_not_taken_for_another() -> None:
    def branches(x):
        if x.shape[0] == 3:
            return x * 10.0
        return x

    def knows(x):
        size = x.shape[0]
        return x * tf.cast(tf.shape(x)[0] if size is None else size, tf.float32)

    open_size = clew.trace(branches, (tf.TensorSpec([None]),))
    assert open_size(X[0]).numpy().tolist() == [10.0, 20.0, 30.0] and open_size(X[0, :2]).numpy().tolist() == [1.0, 2.0]
    with pytest.raises(clew.CaptureError, match="known only when the graph runs"):
        clew.trace(lambda x: x * len(f"{x.shape[0]}"), (tf.TensorSpec([None]),))
    assert clew.trace(branches, (X[0],))(X[0]).numpy().tolist() == [10.0, 20.0, 30.0]
    assert clew.trace(knows, (tf.TensorSpec([None]),))(X[0]).numpy().tolist() == [3.0, 6.0, 9.0]


def test_methods_that_are_tf_functions() -> None:
    class Scaled(tf.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2.0

        @tf.function
        def scaled(self, x):
            return x * self.scale

    module = Scaled()
    graph = clew.trace(module.scaled, (X,))
    assert numpy.allclose(graph(X), 2 * X)
    module.scale = 3.0
    assert "scaled.scale" in fails(graph, X)


def test_a_size_that_the_program_has_to_know_is_guarded_and_no_other() -> None:
    def named(x, y):
        return {f"{x.shape[0]} rows": x}, y * 2.0

    graph = clew.trace(named, (X, X))
    assert list(graph(X[:, :1], X[:1])[0]) == ["2 rows"]
    assert "x is f32[2, _]" in fails(graph, X[:1], X)


def test_numbers_that_the_program_has_to_know_are_guarded() -> None:
    graph = clew.trace(lambda x, heads, scale: tf.split(x, heads, axis=1)[0] * scale, (X, 3, 2.0))
    assert numpy.allclose(graph(X, 3, 5.0), X[:, :1] * 5.0)
    assert "heads == 3" in fails(graph, X, 1, 2.0)
    typed = clew.trace(lambda x, n: tf.cast(tf.constant(n), tf.float32) * x, (X, 3))
    assert numpy.allclose(typed(X, 4), 4 * X)
    assert "n is an int" in fails(typed, X, 4.0)
    assert "fits into int32" in fails(typed, X, 2**40)


COUNT = 0


def test_what_a_capture_relies_on_is_asked_by_a_capture_that_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(x):
        global COUNT
        COUNT = COUNT + COUNT
        return x

    inner = clew.trace(counted, (X,))
    outer = clew.trace(lambda x: inner(x), (X,))
    assert numpy.allclose(outer(X), X)
    monkeypatch.setitem(globals(), "COUNT", 5)
    assert fails(outer, X).startswith("the graph assumed COUNT is unchanged")
