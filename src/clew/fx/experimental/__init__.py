"""torch.fx.experimental: torch.fx's own, run over Clew's classes, or torch's where it keeps a state."""

from clew.fx.torch_source import submodules_beside

__getattr__ = submodules_beside(globals())
