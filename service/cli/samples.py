"""``likeness samples``: which portraits come with the product, and where larger sets are to be had."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from domain.errors import LikenessError

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


@dataclass(frozen=True, slots=True)
class PublicSet:
    """A set of real portraits that a user gets from its makers. ``layout`` are lines about the manifest."""

    key: str
    title: str
    where: str
    licence: str
    layout: tuple[str, ...]


PUBLIC_SETS = (
    PublicSet(
        key="london",
        title="Face Research Lab London Set (102 adults, neutral and smiling, 1350 x 1350)",
        where="figshare, DOI 10.6084/m9.figshare.5047666 (DeBruine and Jones, 2017)",
        licence="CC BY 4.0: any use, with the makers named in what you publish",
        layout=(
            "file = neutral_front/001_03.jpg, subject_id = 001",
            "gender, age and ethnicity come from the set's london_faces_info.csv",
        ),
    ),
    PublicSet(
        key="fairface",
        title="FairFace (108,501 faces balanced over seven groups, 224 or 448 pixels)",
        where="the GitHub project joojs/fairface names the download (Karkkainen and Joo, WACV 2021)",
        licence="CC BY 4.0: any use, with the makers named; the pictures are from Flickr and keep their own rights",
        layout=(
            "file as in fairface_label_val.csv; no subject is named, so give each file its own subject_id",
            "gender, age and race are annotators' judgements: write them as declared columns",
            "faces are small: take the padding = 1.25 version, and leave out the age bands of minors",
        ),
    ),
    PublicSet(
        key="ffhq",
        title="Flickr-Faces-HQ (70,000 faces, 1024 x 1024)",
        where="the GitHub project NVlabs/ffhq-dataset names the download (Karras et al., CVPR 2019)",
        licence="CC BY-NC-SA 4.0 for the set: no commercial use, share alike; each picture keeps its "
        "photographer's licence (ffhq-dataset-v2.json)",
        layout=(
            "file = images1024x1024/00000/00000.png, subject_id = the number",
            "the set declares no gender, age or skin tone: add columns that you have the right to declare",
            "it is not to be used for recognising people or guessing their attributes (the makers' terms)",
        ),
    ),
)

MANIFEST_HELP = """\
Lay a set out as a folder with a manifest.csv beside the pictures:

  file,subject_id,gender,age,skin_tone
  images/p001.jpg,p001,woman,34,III
  images/p002.jpg,p002,man,41,V

  file        path of the picture, relative to the manifest; unique
  subject_id  the person: several pictures of one person share it, and statistics count persons
  the rest    declared attributes, named as you like; an empty cell means "not declared".
              Nothing about a person is ever guessed; the audit plan says which columns are groups.

Then name the manifest in a plan (portraits: {manifest: PATH}) and run: likeness audit PLAN --out DIR"""


def register(app: typer.Typer) -> None:
    """Add ``samples fetch`` and ``samples list``."""
    group = typer.Typer(help="Portraits to audit with.", no_args_is_help=True)
    group.command("fetch")(fetch)
    group.command("list")(list_samples)
    app.add_typer(group, name="samples")


def fetch(
    name: Annotated[str | None, typer.Argument(help="One set: london, fairface or ffhq.")] = None,
) -> None:
    """Tell where the public sets are to be had and how each licence binds. Downloads nothing.

    Their makers ask users to read and accept terms, which no program can do for them.
    """
    known = {one.key: one for one in PUBLIC_SETS}
    if name is not None and name not in known:
        raise LikenessError(f"unknown set '{name}'; known: {', '.join(known)}")
    for one in [known[name]] if name else PUBLIC_SETS:
        typer.echo(f"{one.key}: {one.title}")
        typer.echo(f"  get it:   {one.where}")
        typer.echo(f"  licence:  {one.licence}")
        for line in one.layout:
            typer.echo(f"  manifest: {line}")
        typer.echo("")
    typer.echo(MANIFEST_HELP)


def list_samples() -> None:
    """Show the manifests that come with the product, with how many portraits and persons each has."""
    manifests = sorted(SAMPLES.glob("*/manifest.csv"))
    if not manifests:
        raise LikenessError(f"no samples in {SAMPLES}: they come with a clone of the project")
    from service.portraits import read_manifest

    for path in manifests:
        portraits = read_manifest(path)
        persons = len({portrait.subject_id for portrait in portraits})
        typer.echo(f"{path}: {len(portraits)} portraits of {persons} subjects")
        readme = path.parent / "README.md"
        if readme.is_file():
            typer.echo(
                f"  {readme.read_text(encoding='utf-8').strip().splitlines()[0].lstrip('# ')}"
            )
