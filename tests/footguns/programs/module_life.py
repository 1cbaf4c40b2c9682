"""Modules that change while in use: hooks, layers swapped or made in forward, weights loaded, cast, frozen, eval()."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from tests.footguns.ledger import Case, call, program


@program("forward_hook_changes_output", kind="module_life")
def _():
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lambda module, inputs, output: output * 2 if output.sum() > 0 else -output)
    return Case(
        nn.Sequential(layer), example=lambda: call(torch.ones(1, 2) * 9), others=[lambda: call(torch.ones(1, 2) * -9)]
    )


@program("forward_pre_hook_changes_input", kind="module_life")
def _():
    layer = nn.Linear(2, 2)
    layer.register_forward_pre_hook(lambda module, inputs: (inputs[0] + inputs[0].shape[0],))
    return Case(layer, example=lambda: call(torch.ones(1, 2)), others=[lambda: call(torch.ones(4, 2))])


@program("hook_collects_activations", kind="module_life")
def _():
    kept = {}
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    model[0].register_forward_hook(lambda module, inputs, output: kept.update(hidden=output.detach()))
    return Case(
        model, example=lambda: call(torch.ones(1, 2)), others=[lambda: call(torch.ones(3, 2) * 2)], state=lambda: kept
    )


@program("hook_added_and_removed_in_forward", kind="module_life")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            seen = []
            handle = self.layer.register_forward_hook(lambda module, inputs, output: seen.append(output))
            y = self.layer(x)
            handle.remove()
            return y, seen[0] * 2, len(self.layer._forward_hooks)

    return Case(Model(), example=lambda: call(torch.ones(1, 2)), others=[lambda: call(torch.ones(3, 2) * 2)])


@program("module_swapped_in_forward", kind="module_life")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.current, self.spare = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            y = self.current(x)
            self.current, self.spare = self.spare, self.current
            return y

    return Case(Model(), example=lambda: call(torch.ones(1, 2)), others=[lambda: call(torch.ones(1, 2))])


@program("module_made_in_forward", kind="module_life")
def _():
    class Model(nn.Module):
        def forward(self, x):
            layer = nn.Linear(x.shape[-1], 2)
            return layer(x), layer.weight.shape[1]

    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(1, 2)), lambda: call(torch.ones(1, 4))],
    )


@program("parameter_made_in_forward", kind="module_life")
def _():
    class Model(nn.Module):
        def forward(self, x):
            weight = nn.Parameter(x.mean(0) * 2)
            return x * weight, isinstance(weight, nn.Parameter)

    return Case(Model(), example=lambda: call(torch.ones(2, 2)), others=[lambda: call(torch.ones(3, 2) * 4)])


@program("deep_copied_module", kind="module_life")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            target = copy.deepcopy(self.layer)
            with torch.no_grad():
                target.weight.mul_(0.5)
            return self.layer(x) - target(x)

    return Case(Model(), example=lambda: call(torch.ones(1, 2)), others=[lambda: call(torch.ones(3, 2) * 2)])


@program("momentum_teacher", kind="module_life")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.student, self.teacher = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            with torch.no_grad():
                for slow, fast in zip(self.teacher.parameters(), self.student.parameters()):
                    slow.mul_(0.9).add_(fast, alpha=0.1)
                target = self.teacher(x)
            return F.mse_loss(self.student(x), target)

    return Case(
        Model(), example=lambda: call(torch.ones(1, 2)), others=[lambda: call(torch.ones(3, 2) * 2)], gradients=True
    )


@program("frozen_by_flag", kind="module_life")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(2, 2), nn.Linear(2, 1)

        def forward(self, x, freeze=False):
            for parameter in self.body.parameters():
                parameter.requires_grad_(not freeze)
            return self.head(self.body(x))

    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(1, 2), freeze=True)],
        gradients=True,
    )


@program("batch_norm_by_mode", kind="module_life")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x):
            self.norm.train(x.shape[0] > 1)
            return self.norm(x)

    return Case(
        Model(),
        example=lambda: call(torch.randn(4, 2)),
        others=[lambda: call(torch.randn(1, 2)), lambda: call(torch.randn(3, 2))],
    )


@program("weight_read_as_number", kind="module_life")
def _():
    class Temperature(nn.Module):
        def __init__(self):
            super().__init__()
            self.log_scale = nn.Parameter(torch.zeros(()))

        def forward(self, x):
            if self.log_scale.item() > 1:
                raise ValueError("too hot")
            with torch.no_grad():
                self.log_scale += 0.4
            return x * self.log_scale.exp()

    return Case(
        Temperature(),
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2)), lambda: call(torch.ones(2)), lambda: call(torch.ones(2))],
    )


@program("load_state_inside", kind="module_life")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 1, bias=False)

        def forward(self, x, weights=None):
            if weights is not None:
                self.layer.load_state_dict(weights)
            return self.layer(x)

    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(1, 2), {"weight": torch.ones(1, 2) * 5}), lambda: call(torch.ones(2, 2))],
    )


@program("eval_after_capture", kind="module_life")
def _():
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.BatchNorm1d(8)).train()
    return Case(
        model,
        example=lambda: call(torch.randn(3, 4)),
        others=[lambda: call(torch.randn(3, 4)), lambda: call(torch.randn(3, 4))],
        between={"other 1": lambda m: m.eval(), "other 2": lambda m: m.train()},
    )


@program("own_branch_on_training", kind="module_life")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            if not self.training:
                return self.layer(x).softmax(-1)
            return self.layer(x), x.mean()

    between = {"other 1": lambda m: m.eval(), "other 2": lambda m: m.train()}
    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(1, 2)), lambda: call(torch.ones(3, 2))],
        between=between,
    )


@program("cast_after_capture", kind="module_life")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            x = x.to(self.layer.weight.dtype)
            return self.layer(x) * torch.finfo(x.dtype).bits

    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(3, 2))],
        between={"other 1": lambda m: m.double()},
    )


@program("weights_loaded_after_capture", kind="module_life")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.scale = nn.Parameter(torch.ones(2))

        def forward(self, x):
            if (self.scale > 0).all():
                return self.layer(x) * self.scale
            return self.layer(x)

    def load(module):
        module.load_state_dict({"layer.weight": torch.eye(2), "layer.bias": torch.ones(2), "scale": -torch.ones(2)})

    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(3, 2))],
        between={"other 1": load},
    )


@program("frozen_after_capture", kind="module_life")
def _():
    def freeze(module):
        for parameter in module.parameters():
            parameter.requires_grad_(False)

    return Case(
        nn.Sequential(nn.Linear(2, 2), nn.Tanh()),
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(3, 2))],
        between={"other 1": freeze},
        gradients=True,
    )


@program("mode_asked_again_inside_of_a_branch", kind="module_life")
def _():
    class Twice(nn.Module):
        def forward(self, x):
            if self.training:
                return x + 1
            if x.sum() > 0:
                if self.training:
                    x = x * 2
            return x

    return Case(
        make=Twice,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2)), lambda: call(-torch.ones(2))],
        between={"other 1": lambda model: model.eval()},
    )
