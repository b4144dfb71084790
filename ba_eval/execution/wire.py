"""The wire format, which is the sandbox's own file `sandbox/wire.py`: one text, used on both sides of the wall."""

import importlib.util
import sys
from typing import TYPE_CHECKING

from ba_eval.resources import data_folder

if TYPE_CHECKING:
    from sandbox.wire import FrameBuffer, Opaque, WireError, decode, decode_call, encode, encode_call, pack_frame
else:
    _spec = importlib.util.spec_from_file_location("ba_eval.execution._wire", data_folder("sandbox") / "wire.py")
    _module = importlib.util.module_from_spec(_spec)
    sys.modules[_spec.name] = _module
    _spec.loader.exec_module(_module)
    FrameBuffer, Opaque, WireError = _module.FrameBuffer, _module.Opaque, _module.WireError
    decode, encode, pack_frame = _module.decode, _module.encode, _module.pack_frame
    decode_call, encode_call = _module.decode_call, _module.encode_call

__all__ = ["FrameBuffer", "Opaque", "WireError", "decode", "decode_call", "encode", "encode_call", "pack_frame"]
