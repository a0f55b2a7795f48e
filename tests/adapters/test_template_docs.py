"""The examples in the pages of these tools are plans that build."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import SecretStr

from adapters.contract import build, discover
from domain.plan import ToolChoice

PAGES = Path(__file__).parents[2] / "docs" / "tools"


@pytest.mark.parametrize("name", ["replicate", "bfl", "http_template"])
def test_every_example_of_the_page_builds_and_can_do_its_tasks(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert blocks
    for block in blocks:
        for given in yaml.safe_load(block)["tools"]:
            choice = ToolChoice.model_validate(given)
            settings: dict[str, Any] = {**choice.settings, "key": SecretStr("k" * 20)}
            settings.pop("key_env", None)
            tool = build(choice.id, settings)
            assert set(choice.tasks) <= set(tool.spec.tasks)
            tool.close()


@pytest.mark.parametrize("name", ["replicate", "bfl", "http_template"])
def test_every_setting_that_the_page_names_exists_and_every_own_one_is_named(name: str) -> None:
    from adapters.bfl import BflSettings
    from adapters.hosted.replicate_settings import ReplicateSettings
    from adapters.over_http.wire import HttpSettings
    from adapters.template.settings import TemplateSettings

    models = {"replicate": ReplicateSettings, "bfl": BflSettings, "http_template": TemplateSettings}
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    own = set(models[name].model_fields) - set(HttpSettings.model_fields) - {"poll_s"}
    assert {field for field in own if f"`{field}`" not in page} == set()
    assert name in discover()
