"""Prints go, in branches and loops too, with what only they show; all else stays."""

import torch

import clew


def program(x):
    print("rows", x.shape[0], f"mean {x.mean():.2f}")
    total = x.sum()
    print(total)
    for row in x:
        print(row)
        total = total + row.max()
    if total > 0:
        print("positive")
        total = total * 2
    return total


def test_prints_go_and_results_stay(capsys):
    captured = clew.trace(program, args=(torch.ones(2, 3),))
    assert captured.code.count("print(") == 4
    x = torch.rand(4, 3)
    before = captured(x)
    assert capsys.readouterr().out.startswith("rows 4 mean 0.")
    assert clew.remove_prints(captured) is captured
    assert "print" not in captured.code and "mean" not in captured.code
    assert torch.equal(captured(x), before)
    assert capsys.readouterr().out == ""
    captured.graph.lint()


def test_a_print_whose_result_is_used_stays():
    graph = clew.Graph()
    x = graph.placeholder("x")
    graph.output((x, graph.call_function(print, (x,))))
    clew.remove_prints(graph)
    assert [node.op for node in graph.nodes] == ["placeholder", "call_function", "output"]
