"""Upsampling, and rearrangement of channels and space.  In: `(N, C, *space)`.  Out: the same with more space."""

from __future__ import annotations

from engine.aten.values.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn.modules.configured import configured
from engine.torch.nn.modules.module import Module


class Upsample(Module):
    """Resampling to a size, or by a factor."""

    __constants__ = ("size", "scale_factor", "mode", "align_corners", "name", "recompute_scale_factor")
    mode: str
    align_corners: bool | None
    recompute_scale_factor: bool | None

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        factors = tuple(map(float, scale_factor)) if isinstance(scale_factor, tuple) else scale_factor
        self.name, self.size = type(self).__name__, size
        self.scale_factor = float(factors) if isinstance(factors, (int, float)) else factors
        self.mode, self.align_corners, self.recompute_scale_factor = mode, align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        asked = f"scale_factor={self.scale_factor}" if self.scale_factor is not None else f"size={self.size}"
        return f"{asked}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Nearest-neighbour upsampling of images."""

    def __init__(
        self, size: int | tuple[int, ...] | None = None, scale_factor: float | tuple[float, ...] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Bilinear upsampling of images."""

    def __init__(
        self, size: int | tuple[int, ...] | None = None, scale_factor: float | tuple[float, ...] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


@configured
class PixelShuffle(Module):
    """`(*, C * r * r, H, W)` as `(*, C, H * r, W * r)`."""

    upscale_factor: int

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


@configured
class PixelUnshuffle(Module):
    """`(*, C, H * r, W * r)` as `(*, C * r * r, H, W)`."""

    downscale_factor: int

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


@configured
class ChannelShuffle(Module):
    """The channels of several groups, one of each in turn."""

    groups: int

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)
