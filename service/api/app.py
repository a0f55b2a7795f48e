"""The application, put together: every module of this package with a ``router`` is a resource under
/v1; one with a ``root_router`` stands beside it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from service.api import metrics_page, openapi, problems
from service.api.bodies import Bodies
from service.api.context import Context
from service.api.edge import PREFIX, Edge
from service.api.headers import Origins
from service.api.health import Readiness
from service.api.idempotent import Idempotent
from service.api.metrics import Metrics
from service.api.security import Authentication


def create_app(context: Context) -> FastAPI:
    """The service over ``context``."""
    app = FastAPI(
        title="Likeness",
        version=_version(),
        description=openapi.DESCRIPTION,
        openapi_tags=openapi.TAGS,
        servers=[{"url": "/", "description": "This service"}],
        docs_url=None,  # the framework's own pages load their scripts from strangers
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.state.context, app.state.metrics = context, Metrics()
    app.state.readiness = Readiness()
    app.state.metrics.registry.register(metrics_page.Work(context))
    for module in modules():
        if isinstance(router := getattr(module, "router", None), APIRouter):
            app.include_router(router, prefix=PREFIX)
        if isinstance(router := getattr(module, "root_router", None), APIRouter):
            app.include_router(router)
    problems.install(app)
    openapi.install(app, context.limits)
    # from the inside to the outside: what is added last sees a request first
    app.add_middleware(Idempotent, context=context)
    app.add_middleware(Bodies, context=context)
    app.add_middleware(Authentication, context=context)
    app.add_middleware(Origins, context=context)
    app.add_middleware(Edge, context=context, metrics=app.state.metrics)
    return app


def modules() -> Iterator[ModuleType]:
    """Every module of this package, in the order of their names."""
    package = importlib.import_module("service.api")
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
        yield importlib.import_module(f"service.api.{info.name}")


def _operation_id(route: APIRoute) -> str:
    return route.name


def _version() -> str:
    try:
        return version("likeness-audit")
    except PackageNotFoundError:  # run from a copy that was not installed
        return "0"
