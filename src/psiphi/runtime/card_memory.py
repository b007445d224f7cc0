"""Numbers in the memory of a card that no library of arrays holds: copied there, and back."""

from __future__ import annotations

import math

import numpy as np

from psiphi.runtime import driver
from psiphi.runtime.dlpack import CUDA, SIZE


class Resident:
    """An array of a card; its memory is given back with it."""

    def __init__(self, shape: tuple[int, ...], char: str, device: int):
        self.shape, self.char, self.device = shape, char, device
        self.pointer = driver.driver().allocate(math.prod(shape) * SIZE[char], device)

    @classmethod
    def of(cls, array: np.ndarray, device: int) -> Resident:
        """Numbers of the host, on the card."""
        array = np.ascontiguousarray(array)
        made = cls(array.shape, array.dtype.char, device)
        driver.driver().write(made.pointer, array, device)
        return made

    def host(self) -> np.ndarray:
        """The numbers, once whatever writes them is done."""
        array = np.empty(self.shape, self.char)
        driver.driver().read(self.pointer, array, self.device)
        return array

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device

    def __del__(self):
        if hasattr(self, "pointer"):
            driver.driver().release(self.pointer, self.device)
