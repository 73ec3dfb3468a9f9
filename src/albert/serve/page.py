"""The page at `/` and the API's description at `/docs`: plain files that fetch nothing from elsewhere."""

from __future__ import annotations

import importlib.resources

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
PAGES = {"/": "index.html", "/docs": "docs.html"}


def add_page(app: FastAPI) -> None:
    """Serve the files, from memory."""
    folder = importlib.resources.files("albert.serve") / "page_files"
    files = {path.name: path.read_bytes() for path in folder.iterdir() if _type(path.name)}
    paths = PAGES | {f"/page/{name}": name for name in files if _type(name) != TYPES[".html"]}
    for path, name in paths.items():
        app.router.routes.append(Route(path, _answer(files[name], _type(name)), methods=["GET", "HEAD"]))


def _type(name: str) -> str:
    return TYPES.get(name[name.rfind(".") :], "")


def _answer(content: bytes, kind: str):  # type: ignore[no-untyped-def]
    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

    return answer
