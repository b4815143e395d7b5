"""Modules that come along with a function, as source text, for Python to import.

They are those beside a script that only the body of a function imports: the process
that calls it may be on a machine without the script's files. They are found before all
others, as beside a script they are, and are run when they are first imported.
"""

from __future__ import annotations

import sys
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.util import spec_from_file_location

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Source = tuple[str, str, bool]
    """The text of a module, the path of its file, and whether it is a package."""


class CarriedModules(MetaPathFinder, InspectLoader):
    """Finds and loads modules whose text has come."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}

    def use(self, sources: Mapping[str, Source]) -> None:
        """Find these and no others from now on."""
        if sources != self._sources:
            self._drop_all()
            self.add(sources)

    def add(self, sources: Mapping[str, Source]) -> None:
        """Find these, too."""
        known = self._sources
        if any(known.get(name, source) != source for name, source in sources.items()):
            # Others may have imported the one that has changed.
            sources = {**known, **sources}
            self._drop_all()
        for name in sources.keys() - self._sources.keys():
            self._sources[name] = sources[name]
            sys.modules.pop(name, None)
        if sources and self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def _drop_all(self) -> None:
        for name in self._sources:
            sys.modules.pop(name, None)
        self._sources = {}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Find a module that has come."""
        if fullname not in self._sources:
            return None
        _, place, is_package = self._sources[fullname]
        folder = [place.rpartition("/")[0]] if is_package else None
        return spec_from_file_location(
            fullname, place, loader=self, submodule_search_locations=folder
        )

    def get_source(self, fullname: str) -> str | None:
        """Return the text of a module, which tracebacks show as well."""
        return self._sources[fullname][0] if fullname in self._sources else None

    def get_code(self, fullname: str) -> Any:  # noqa: ANN401 -- as Python declares it
        """Return the code of a module, which has the path of its file."""
        text, place, _ = self._sources[fullname]
        return compile(text, place, "exec", dont_inherit=True)


carried = CarriedModules()
came: dict[str, Source] = {}
"""What has come since this was last cleared."""


def with_modules(value: Any, sources: dict[str, Source]) -> Any:  # noqa: ANN401
    """Return what was unpickled, with modules that its functions import when called."""
    came.update(sources)
    carried.add(sources)
    return value


class WithModules:
    """Is pickled in place of a value, and read as that value."""

    def __init__(self, value: Any, sources: dict[str, Source]) -> None:  # noqa: ANN401
        self._parts = value, sources

    def __reduce__(self) -> tuple[Any, ...]:
        """Have the modules there when the value is."""
        return with_modules, self._parts
