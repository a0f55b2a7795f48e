"""Planted refusals strike the portraits they name, however a tool's picture was cut from them."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from domain.errors import LikenessError
from domain.pictures import Picture
from domain.sizing import SizeRule
from preprocess.crop import fit_to_tool
from preprocess.decode import open_picture
from preprocess.perturb import perturb
from service.fake_servers.contract import start
from service.fake_servers.desk import encode
from service.fake_servers.recognise import LIKENESS, Album, Pixels
from service.fake_servers.refusing import Planted, PlantedRefusals, refused_portraits
from service.portraits import read_manifest

RULES = {
    "square": SizeRule(sizes=((1024, 1024),)),
    "upright": SizeRule(sizes=((1024, 1536),)),
    "wide": SizeRule(sizes=((1536, 1024),)),
    "small": SizeRule(sizes=((384, 384),)),
    "multiple": SizeRule(multiple=16),
    "shrunk": SizeRule(max_side=512, multiple=8),
    "frame": SizeRule(aspect=3 / 4, multiple=16),
}


def bgr(picture: Picture) -> Pixels:
    return np.ascontiguousarray(picture.pixels[..., ::-1])


def album_of(
    manifest: Path, count: int, prefix: str = ""
) -> tuple[Album, list[tuple[str, Picture]]]:
    rows = [p for p in read_manifest(manifest) if p.portrait_id.startswith(prefix)]
    loaded = [(p.portrait_id, open_picture(p.path)) for p in rows[:count]]
    return Album((name, bgr(picture)) for name, picture in loaded), loaded


def sent(picture: Picture, name: str) -> dict[str, bytes]:
    """What tools of many kinds would get of ``picture``, and the same disturbed."""
    box = (int(picture.width * 0.3), int(picture.height * 0.25), int(picture.width * 0.4), int(picture.height * 0.45))  # fmt: skip
    fitted = {kind: fit_to_tool(picture, box, rule).picture for kind, rule in RULES.items()}
    small = fitted["shrunk"]
    found = {kind: encode(bgr(p)) for kind, p in fitted.items()}
    for way in ("noise", "red_up", "blue_down"):
        found[way] = encode(bgr(perturb(small, None, way, 1, name)))  # type: ignore[arg-type]
    found["jpeg"] = encode(bgr(small), "jpg")
    found["half a face"] = encode(np.ascontiguousarray(bgr(small)[: int(small.height * 0.55)]))
    return found


@pytest.fixture(scope="module")
def rendered(samples_dir_of_module: Path) -> tuple[Album, list[tuple[str, Picture]]]:
    return album_of(samples_dir_of_module / "portraits" / "manifest.csv", 18)


@pytest.fixture(scope="module")
def samples_dir_of_module() -> Path:
    return Path(__file__).resolve().parents[3] / "samples"


def test_a_rendered_portrait_is_known_again_after_fitting_and_disturbing(
    rendered: tuple[Album, list[tuple[str, Picture]]],
) -> None:
    album, loaded = rendered
    for name, picture in loaded[5::12]:
        for kind, data in sent(picture, name).items():
            assert album.recognise(data) == name, (name, kind, album.nearest(data))


def test_a_london_face_is_known_again_after_fitting_and_disturbing(data_dir: Path) -> None:
    album, loaded = album_of(data_dir / "faces" / "london" / "manifest.csv", 20, "neutral/")
    for name, picture in loaded[3::12]:
        for kind, data in sent(picture, name).items():
            assert album.recognise(data) == name, (name, kind, album.nearest(data))


def test_a_stranger_before_the_same_wall_is_known_as_nobody(data_dir: Path) -> None:
    manifest = data_dir / "faces" / "london" / "manifest.csv"
    album, _ = album_of(manifest, 20, "neutral/")
    strangers = [p for p in read_manifest(manifest) if p.portrait_id.startswith("neutral/")][40:42]
    for one in strangers:
        picture = open_picture(one.path)
        for kind, data in list(sent(picture, one.portrait_id).items())[:7]:
            match = album.nearest(data)
            assert match is not None
            assert match.score < LIKENESS, (one.portrait_id, kind, match)


def test_a_picture_of_something_else_is_known_as_nobody(
    rendered: tuple[Album, list[tuple[str, Picture]]],
) -> None:
    album, _ = rendered
    noise = np.random.default_rng(3).integers(0, 256, (96, 64, 3), dtype=np.uint8)
    ramp = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 200, axis=0).repeat(3, axis=2)
    for pixels in (noise, ramp, np.zeros((50, 50, 3), np.uint8), noise[:1, :1]):
        assert album.recognise(encode(pixels)) is None
    assert album.recognise(b"no picture") is None
    assert Album([]).recognise(encode(noise)) is None


def manifest_in(folder: Path, women: int, men: int) -> Path:
    rows = [f"w{i}.png,w{i},female" for i in range(women)]
    rows += [f"m{i}.png,m{i},male" for i in range(men)]
    path = folder / "manifest.csv"
    path.write_text("\n".join(["file,subject_id,gender", *rows]))
    return path


def test_the_share_is_met_to_the_nearest_portrait_and_touches_nobody_else(tmp_path: Path) -> None:
    portraits = read_manifest(manifest_in(tmp_path, 51, 51))
    refused = refused_portraits(portraits, [Planted.parse("gender=female:0.4")])
    assert len(refused) == 20
    assert all(name.startswith("w") for name in refused)


def test_several_groups_can_be_refused_and_the_seed_says_which_portraits(tmp_path: Path) -> None:
    portraits = read_manifest(manifest_in(tmp_path, 20, 20))
    rules = [Planted.parse("gender=female:0.5"), Planted.parse("gender=male:0.1")]
    first, again = (refused_portraits(portraits, rules, seed=1) for _ in range(2))
    assert first == again
    assert first != refused_portraits(portraits, rules, seed=2)
    assert sorted(n[0] for n in first) == ["m"] * 2 + ["w"] * 10


@pytest.mark.parametrize(
    "text", ["gender", "gender=female", "gender:0.4", "gender=f:1.5", "=f:0.1"]
)
def test_a_misspelt_refusal_is_answered_with_an_example(text: str) -> None:
    with pytest.raises(LikenessError, match=r"gender=female:0\.4"):
        Planted.parse(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gendr=female:0.4", "no attribute 'gendr'; did you mean 'gender'"),
        ("gender=femal:0.4", "no portrait has gender=femal; did you mean 'female'"),
    ],
)
def test_a_group_that_is_not_in_the_manifest_is_said(tmp_path: Path, text: str, says: str) -> None:
    portraits = read_manifest(manifest_in(tmp_path, 1, 1))
    with pytest.raises(LikenessError, match=says):
        refused_portraits(portraits, [Planted.parse(text)])


def test_a_server_refuses_the_planted_share_and_only_by_looks(
    rendered: tuple[Album, list[tuple[str, Picture]]],
) -> None:
    import httpx

    album, loaded = rendered
    refused = frozenset(name for name, _ in loaded[::2])
    with (
        start("openai", refuse=PlantedRefusals(album, refused)) as server,
        httpx.Client(trust_env=False, verify=False, timeout=60) as client,
    ):
        for name, picture in loaded[:4]:
            small = fit_to_tool(picture, None, RULES["shrunk"]).picture
            answer = client.post(
                f"{server.url}/v1/images/edits",
                files={"image": ("x.png", encode(bgr(small)), "image/png")},
                data={"prompt": "x"},
                headers={"authorization": f"Bearer {server.key}"},
            )
            assert (answer.status_code == 400) == (name in refused), name


def test_a_portrait_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    manifest = manifest_in(tmp_path, 2, 0)
    (tmp_path / "w0.png").write_bytes(b"broken")
    cv2.imwrite(str(tmp_path / "w1.png"), np.random.default_rng(0).integers(0, 255, (90, 60, 3)))
    rule = PlantedRefusals.from_manifest(manifest, [Planted.parse("gender=female:1")])
    assert len(rule.album) == 1
    assert rule((tmp_path / "w1.png").read_bytes())
    assert rule((tmp_path / "w1.png").read_bytes())  # from memory
    assert not rule(b"broken")
