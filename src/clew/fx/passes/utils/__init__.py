"""torch.fx.passes.utils: what passes are made of."""

from clew.fx.torch_source import submodules_beside

__getattr__ = submodules_beside(globals())
