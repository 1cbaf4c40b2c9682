"""What Clew knows about PyTorch: effects, names, spellings, types and signatures of its functions and values.

Captures know no framework. What they are told about torch ahead of all questions to its guest stands here.
"""

from __future__ import annotations

import torch

from clew.capture.bytecode.statements import CHECKING
from clew.capture.bytecode.try_blocks import RAISING_AGAIN
from clew.capture.control_flow.raising import CALLING
from clew.capture.guards.notes import COMPILERS
from clew.capture.recording.outputs import WHOLE
from clew.capture.recording.recorder import DISPATCHERS

CHECKING.update({"_check", "_check_with", "torch_compilable_check"})  # the last one is transformers'
RAISING_AGAIN.add("torch.nn.modules.module")
CALLING.add("torch")
COMPILERS.append(torch.compiler.is_dynamo_compiling)
WHOLE.add("torch")
DISPATCHERS.add("handle_torch_function")
