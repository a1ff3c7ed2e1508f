"""What the shipped catalogues say about models holds together: no capability stands without the one it needs.

Only declarations are read; that they are true is the contract suite's affair.
"""

from __future__ import annotations

from interlingua._plugins.registry import Registry
from interlingua.errors import CapabilityError
from interlingua.plugins import ConnectionSettings
from interlingua.types.options import RequestOptions

NEEDS_IMAGES = ("supports_image_urls", "supports_tool_result_images")


def test_images_by_url_or_in_results_need_images() -> None:
    wrong, looked = [], 0
    for provider in Registry().providers():
        apis = provider.connection(ConnectionSettings()).endpoints or {"": ""}
        for model, api in [(model, api) for model in provider.models() for api in (None, *apis)]:
            try:
                can = provider.capabilities(model.id, RequestOptions(model=model.id, api=api))
            except CapabilityError:
                continue  # an endpoint that is no choice of the caller's
            looked += 1
            claimed = [name for name in NEEDS_IMAGES if getattr(can, name) and not can.supports_images]
            wrong += [f"{provider.key}:{model.id} ({api}): {name}" for name in claimed]
    assert not wrong
    assert looked > 100  # models with several APIs, over all providers
