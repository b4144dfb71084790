"""The colours can be told apart, by eyes of all kinds, on both papers."""

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from ba_eval.report import palette

Floats = npt.NDArray[np.float64]

# Machado, Oliveira & Fernandes 2009, severity 1.0, on linear RGB.
VISION = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def linear(colour: str) -> Floats:
    share = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.asarray(np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4), dtype=np.float64)


def oklab(rgb: Floats) -> Floats:
    """Ottosson 2020."""
    cones = np.cbrt(
        np.array(
            [
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ]
        )
        @ rgb.clip(0, 1)
    )
    return np.asarray(
        np.array(
            [
                [0.2104542553, 0.7936177850, -0.0040720468],
                [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660],
            ]
        )
        @ cones
    )


def contrast(a: str, b: str) -> float:
    """WCAG 2.2."""
    light, dark = sorted((float(linear(one) @ [0.2126, 0.7152, 0.0722]) for one in (a, b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [palette.LIGHT, palette.DARK])
@pytest.mark.parametrize("vision", VISION)
def test_colours_are_apart_for_all_kinds_of_vision(colours: tuple[str, ...], vision: str) -> None:
    seen = [oklab(np.array(VISION[vision]) @ linear(colour)) for colour in colours]
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2)) >= 0.1


@pytest.mark.parametrize(
    ("colours", "paper"), [(palette.LIGHT, palette.LIGHT_PAPER), (palette.DARK, palette.DARK_PAPER)]
)
def test_colours_stand_out_from_the_paper(colours: tuple[str, ...], paper: str) -> None:
    assert min(contrast(colour, paper) for colour in colours) >= 3


def test_looks_repeat_late() -> None:
    looks = [palette.look(number) for number in range(84)]
    assert len(set(looks)) == 84
    assert len({colour for colour, _, _ in looks[:6]}) == 6
