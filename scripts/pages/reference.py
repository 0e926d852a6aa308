"""Show in the API reference the signature and docstring of `help`, which has each option of a TypedDict."""

from __future__ import annotations

import inspect
from typing import Any

import griffe

from scripts.pages.client import shown


class Taken(griffe.Extension):
    """Extend methods that `takes` decorates, whose source has `**options` only."""

    def on_function(self, *, func: griffe.Function, loader: griffe.GriffeLoader, **more: Any) -> None:
        """Replace the source's docstring and parameters by those at run time."""
        if func.docstring is None or not any(str(each.value).startswith("takes(") for each in func.decorators):
            return
        method = griffe.dynamic_import(func.path)
        func.docstring.value = inspect.getdoc(method) or ""
        own = func.parameters
        del own["options"]
        for one in inspect.signature(method).parameters.values():
            if one.name not in own:
                kind = griffe.ParameterKind.keyword_only
                own.add(griffe.Parameter(one.name, annotation=one.annotation, kind=kind, default=shown(one.default)))
