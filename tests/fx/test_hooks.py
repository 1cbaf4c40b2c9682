"""Hooks that a GraphModule calls when its nodes are made, erased or replaced, and when it is copied."""

import copy

import torch

from .helpers import only


def module(fx):
    return fx.symbolic_trace(lambda x: torch.relu(x) + 1)


def test_create_node_hook(fx):
    traced, made = module(fx), []
    traced._register_create_node_hook(lambda node: made.append(node))
    relu = [node for node in traced.graph.nodes if node.target is torch.relu][0]
    with traced.graph.inserting_after(relu):
        added = traced.graph.call_function(torch.neg, (relu,))
    assert made == [added]


def test_create_node_hook_is_removed(fx):
    traced, made = module(fx), []

    def hook(node):
        made.append(node)

    traced._register_create_node_hook(hook)
    traced._unregister_create_node_hook(hook)
    traced.graph.call_function(torch.neg, (next(iter(traced.graph.nodes)),))
    assert made == []


def test_erase_node_hook(fx):
    traced, gone = module(fx), []

    def hook(node):
        gone.append(node.name)

    traced._register_erase_node_hook(hook)
    with traced.graph.inserting_before(traced.graph.output_node()):
        dead = traced.graph.call_function(torch.neg, (next(iter(traced.graph.nodes)),))
    traced.graph.erase_node(dead)
    traced._unregister_erase_node_hook(hook)
    assert gone == ["neg"]


def test_replace_hook(fx):
    traced, seen = module(fx), []

    def hook(old, new, user):
        seen.append((old.name, new, user.name))

    relu = [node for node in traced.graph.nodes if node.target is torch.relu][0]
    with traced._set_replace_hook(hook):
        relu.replace_all_uses_with(relu.args[0])
    relu_again = relu.args[0]
    relu_again.replace_all_uses_with(relu, delete_user_cb=lambda user: user is not relu)
    assert seen == [("relu", "x", "add")]


def test_deepcopy_hook(fx):
    traced, copies = module(fx), []

    def hook(copied):
        copies.append(type(copied).__name__)

    traced._register_deepcopy_hook(hook)
    copied = copy.deepcopy(traced)
    assert len(copies) == 1
    assert only(copied.graph, "output").op == "output"


def test_state_dict_hooks_survive_a_deepcopy(fx):
    traced = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    traced.register_state_dict_post_hook(lambda mod, state, prefix, meta: state.update({"added": 1}))
    assert copy.deepcopy(traced).state_dict()["added"] == 1


def test_lists_of_hooks_are_readable(fx):
    traced, hook = module(fx), lambda *nodes: None
    for kind in ("create_node", "erase_node", "replace_node"):
        getattr(traced, f"_register_{kind}_hook")(hook)
    assert traced._create_node_hooks == traced._erase_node_hooks == traced._replace_hooks == [hook]
    for kind in ("create_node", "erase_node", "replace_node"):
        getattr(traced, f"_unregister_{kind}_hook")(hook)
    assert traced._create_node_hooks == traced._erase_node_hooks == traced._replace_hooks == []
