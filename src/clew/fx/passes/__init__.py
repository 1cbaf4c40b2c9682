"""torch.fx.passes: those of Clew's own have a file here, the others are torch.fx's run over Clew's classes."""

from clew.fx.torch_source import submodules_beside

__getattr__ = submodules_beside(globals())
